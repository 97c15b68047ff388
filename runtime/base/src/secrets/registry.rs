//! Registers the secrets that the process knows, and redacts them in texts that leave the process. Tokens that are
//! registered only while they are in use are forgotten some time after that.

use super::document::{DocumentShape, scrub_document};
use super::finder::{Finder, Tail};
use super::forms::{self, Forms, forms_of};
use super::owners::Owners;
use super::{CleanText, REDACTED};
use crate::sync::RwLocked;
use secrecy::ExposeSecret;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, RwLock};
use std::time::{Duration, Instant};

/// Known secrets. Clones share one registry.
#[derive(Clone, Default)]
pub struct SecretRegistry {
    pub(super) shared: Arc<Shared>,
}

#[derive(Default)]
pub(super) struct Shared {
    /// True once a secret is registered. Checked without the lock for every text that is sent.
    any: AtomicBool,
    secrets: RwLock<Secrets>,
    pub(super) owners: Owners,
}

#[derive(Default)]
struct Secrets {
    values: Vec<Known>,
    /// Built when it is first needed, because secrets are registered one by one before any text is sent.
    finder: OnceLock<Arc<Finder>>,
}

/// One secret.
struct Known {
    value: secrecy::SecretString,
    /// It is redacted until the end of the process.
    lasts: bool,
    /// The number of its holds.
    holds: usize,
    /// When the last hold ended.
    ended: Instant,
}

/// How long a token is redacted after its last use: an old one may still stand in answers and logs.
const AFTERWARDS: Duration = Duration::from_secs(600);

/// Limit of tokens that are redacted after their last use.
const MOST_AFTERWARDS: usize = 64;

/// The least bytes of a token that is redacted.
const TOKEN_BYTES: usize = 16;

/// The bytes of a token that is redacted even if it is made of letters alone, or of digits alone.
const SURE_BYTES: usize = 32;

/// True for a text that is a token and no text that answers of servers may hold by chance: at least 16 bytes of the
/// alphabet of bearer tokens (`b64token`, RFC 6750, section 2.1), and below 32 bytes letters as well as digits. Tokens are
/// chosen by servers: one that issues a common text as its token would take that text out of all other answers.
fn is_token(value: &str) -> bool {
    let body = value.trim_end_matches('=');
    let is_b64 = body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
    let mixed = || {
        body.bytes().any(|byte| byte.is_ascii_digit()) && body.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    is_b64 && value.len() >= TOKEN_BYTES && (value.len() >= SURE_BYTES || mixed())
}

impl Secrets {
    /// The entry of a value, made if it is new. What is not redacted any more goes then.
    fn entry(&mut self, value: &str) -> &mut Known {
        let at = self.values.iter().position(|known| known.value.expose_secret() == value);
        let at = at.unwrap_or_else(|| {
            self.forget();
            self.values.push(Known { value: value.into(), lasts: false, holds: 0, ended: Instant::now() });
            self.finder = OnceLock::new();
            self.values.len() - 1
        });
        &mut self.values[at]
    }

    /// Forgets tokens that are long out of use, and the oldest of too many.
    fn forget(&mut self) {
        let is_over = |known: &Known| !known.lasts && known.holds == 0;
        let mut ends: Vec<Instant> =
            self.values.iter().filter(|known| is_over(known)).map(|known| known.ended).collect();
        ends.sort_unstable();
        let surplus = ends.len().saturating_sub(MOST_AFTERWARDS);
        let oldest = ends.get(surplus).copied();
        self.values.retain(|known| {
            !is_over(known)
                || known.ended.elapsed() < AFTERWARDS && oldest.is_none_or(|oldest| known.ended >= oldest)
        });
    }
}

/// The use of a token: the registry redacts it while this exists, and some time after that.
pub(super) struct SecretHold {
    registry: SecretRegistry,
    value: secrecy::SecretString,
}

impl Drop for SecretHold {
    fn drop(&mut self) {
        let mut secrets = self.registry.shared.secrets.write_locked();
        let known = secrets.entry(self.value.expose_secret());
        known.holds = known.holds.saturating_sub(1);
        known.ended = Instant::now();
    }
}

/// How well a registered value is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It never leaves the process.
    Full,
    /// It is too short to be distinguished from ordinary text, and is not redacted.
    TooShort,
    /// It is a common word, and is not redacted.
    Ordinary,
    /// The value is empty.
    Empty,
}

impl Protection {
    /// Why the value is not redacted; `None` when it is.
    pub const fn complaint(self) -> Option<&'static str> {
        match self {
            Protection::Full | Protection::Empty => None,
            Protection::TooShort => Some("is too short to be recognised in text"),
            Protection::Ordinary => Some("is an ordinary word"),
        }
    }
}

impl SecretRegistry {
    /// An empty registry.
    pub fn new() -> SecretRegistry {
        SecretRegistry::default()
    }

    /// Registers a value in every form in which it may come back.
    pub fn register(&self, value: &str) -> Protection {
        if value.trim().is_empty() {
            return Protection::Empty;
        }
        if forms::is_ordinary(value) {
            return Protection::Ordinary;
        }
        if forms_of(value).canonical.is_empty() {
            return Protection::TooShort;
        }
        self.shared.secrets.write_locked().entry(value).lasts = true;
        self.shared.any.store(true, Ordering::Release);
        Protection::Full
    }

    /// Registers a token for the time of its use. `None` for a text that has not the shape of a token (see
    /// [`TOKEN_BYTES`]): it is not redacted.
    pub(super) fn hold(&self, value: &str) -> Option<SecretHold> {
        if !is_token(value) || forms::is_ordinary(value) || forms_of(value).canonical.is_empty() {
            return None;
        }
        self.shared.secrets.write_locked().entry(value).holds += 1;
        self.shared.any.store(true, Ordering::Release);
        Some(SecretHold { registry: self.clone(), value: value.into() })
    }

    /// The text, redacted.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace(text, Tail::Whole)
    }

    /// A text that was cut, redacted; the beginning of a secret at its end is removed, too.
    pub fn scrub_cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace(text, Tail::Cut)
    }

    /// [`SecretRegistry::scrub`] for a text that is stored.
    #[doc(hidden)]
    pub fn clean(&self, text: &str) -> CleanText {
        CleanText::new(self.scrub(text).into_owned())
    }

    /// [`SecretRegistry::scrub_cut`] for a text that is stored.
    #[doc(hidden)]
    pub fn clean_cut(&self, text: &str) -> CleanText {
        CleanText::new(self.scrub_cut(text).into_owned())
    }

    /// JSON texts, one or several, redacted. Only text in them changes, so they stay valid and keep the words
    /// that `shape` names. If they are no JSON, they are redacted as plain text.
    #[doc(hidden)]
    pub fn scrub_json<'t>(&self, text: &'t str, shape: &DocumentShape) -> Cow<'t, str> {
        let Some(finder) = self.finder().filter(|finder| finder.may_find(text)) else {
            return Cow::Borrowed(text);
        };
        let clean = scrub_document(text, shape, |part| replaced(&finder, part, Tail::Whole));
        Cow::Owned(clean.unwrap_or_else(|| replaced(&finder, text, Tail::Whole).into_owned()))
    }

    /// Redacts in place.
    pub fn scrub_string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.scrub(text) {
            *text = clean;
        }
    }

    /// True when no secret is registered.
    pub fn is_empty(&self) -> bool {
        !self.shared.any.load(Ordering::Acquire)
    }

    fn replace<'t>(&self, text: &'t str, tail: Tail) -> Cow<'t, str> {
        match self.finder() {
            Some(finder) => replaced(&finder, text, tail),
            None => Cow::Borrowed(text),
        }
    }

    fn finder(&self) -> Option<Arc<Finder>> {
        if self.is_empty() {
            return None;
        }
        let secrets = self.shared.secrets.read_locked();
        let finder = secrets.finder.get_or_init(|| {
            let mut all = Forms::default();
            for known in &secrets.values {
                all.append(forms_of(known.value.expose_secret()));
            }
            Arc::new(Finder::new(all))
        });
        Some(finder.clone())
    }
}

fn replaced<'t>(finder: &Finder, text: &'t str, tail: Tail) -> Cow<'t, str> {
    let found = finder.find(text, tail);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    for place in found {
        clean.push_str(&text[at..place.start]);
        clean.push_str(REDACTED);
        at = place.end;
    }
    clean.push_str(&text[at..]);
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(values: &[&str]) -> SecretRegistry {
        let secrets = SecretRegistry::new();
        for value in values {
            assert_eq!(secrets.register(value), Protection::Full, "{value}");
        }
        secrets
    }

    #[test]
    fn secrets_within_and_across_each_other_leave_no_tail() {
        let secrets = registry(&["hunter2", "hunter2-and-more", "more-of-it"]);
        let text = "a hunter2-and-more b hunter2 c hunter2-and-more-of-it d";
        assert_eq!(secrets.scrub(text), "a [REDACTED] b [REDACTED] c [REDACTED] d");
    }

    #[test]
    fn escaped_and_joined_forms_are_found_and_text_stays_readable() {
        let secrets = registry(&["pass\"word\nand é"]);
        assert_eq!(secrets.scrub(r#"{"k":"pass\"word\nand é"}"#), r#"{"k":"[REDACTED]"}"#);
        assert_eq!(secrets.scrub(r#"{"k":"pass\\\"word\\nand \\u00E9\n"}"#), r#"{"k":"[REDACTED]\n"}"#);
        assert_eq!(secrets.scrub("got pass\"word and é?"), "got [REDACTED]?");
        assert_eq!(secrets.scrub("nothing here"), "nothing here");
    }

    #[test]
    fn what_stands_before_a_secret_does_not_hide_it() {
        let secrets = registry(&["nabcdef", "41bcdef", "u00e9x-secret"]);
        for before in ["\\", "\\\\", "%", "%25", "x"] {
            for secret in ["nabcdef", "41bcdef", "u00e9x-secret"] {
                let text = format!("{before}{secret}");
                assert!(!secrets.scrub(&text).contains(secret), "{text}: {}", secrets.scrub(&text));
            }
        }
    }

    #[test]
    fn no_part_of_a_secret_is_left_where_a_text_was_cut() {
        let secrets = registry(&["s3cret-token-value"]);
        assert_eq!(secrets.scrub("got s3cret..."), "got [REDACTED]...");
        assert_eq!(secrets.scrub("got s3cret-t… (9 more)"), "got [REDACTED]… (9 more)");
        assert_eq!(secrets.scrub_cut("got s3cr"), "got [REDACTED]");
        assert_eq!(secrets.scrub("got s3cret%2..."), "got [REDACTED]...");
        assert_eq!(secrets.scrub_cut("got s3cret\\u002"), "got [REDACTED]");
        for broken in ["&", "&#", "&#4", "&#x2", "\\x2", "\\05"] {
            assert_eq!(secrets.scrub_cut(&format!("got s3cret{broken}")), "got [REDACTED]", "{broken}");
        }
        assert_eq!(secrets.scrub("got s3cret"), "got s3cret");
        assert_eq!(secrets.scrub("got s3cret-token-v"), "got [REDACTED]");
    }

    #[test]
    fn tokens_are_redacted_while_they_are_used_and_not_for_ever() {
        let secrets = SecretRegistry::new();
        let tokens: Vec<String> = (1..=200u64)
            .map(|at| {
                let random = |odd: u64| at.wrapping_mul(odd);
                format!("{:016x}{:016x}", random(0x9E37_79B9_7F4A_7C15), random(0xC2B2_AE3D_27D4_EB4F))
            })
            .collect();
        let held = secrets.hold(&tokens[0]).unwrap();
        let twice = secrets.hold(&tokens[0]).unwrap();
        drop(twice);
        for token in &tokens[1..] {
            drop(secrets.hold(token).unwrap());
        }
        assert_eq!(secrets.scrub(&tokens[0]), "[REDACTED]", "it is still used");
        assert_eq!(secrets.scrub(&tokens[199]), "[REDACTED]", "it was used a moment ago");
        assert_eq!(secrets.scrub(&tokens[1]), tokens[1].as_str(), "it is long out of use");
        let known = secrets.shared.secrets.read_locked().values.len();
        assert!(known <= MOST_AFTERWARDS + 2, "{known}");
        // What is registered for ever stays, even if it is a token as well.
        secrets.register(&tokens[0]);
        drop(held);
        for token in &tokens[1..] {
            drop(secrets.hold(token).unwrap());
        }
        assert_eq!(secrets.scrub(&tokens[0]), "[REDACTED]");
    }

    #[test]
    fn a_server_cannot_have_common_texts_redacted() {
        let secrets = SecretRegistry::new();
        for text in [
            "token",
            "application/json",
            "structuredContent",
            "Authorization",
            "2026-11-24",
            "a b c d e f g h i j k l",
        ] {
            assert!(secrets.hold(text).is_none(), "{text}");
        }
        for token in [
            "ya29.a0AfH6SMBx1",
            "gho_16C7e42F292c6912E7710c838347Ae178B4a",
            "abcdefghijklmnopqrstuvwxyzABCDEF",
            "YWJjZGVmZ2gxMjM0NTY3OA==",
        ] {
            assert!(secrets.hold(token).is_some(), "{token}");
        }
    }

    #[test]
    fn what_cannot_be_protected_is_told() {
        let secrets = SecretRegistry::new();
        assert_eq!(secrets.register("abc"), Protection::TooShort);
        assert_eq!(secrets.register("true"), Protection::Ordinary);
        assert_eq!(secrets.register(" \n"), Protection::Empty);
        assert!(secrets.is_empty());
    }
}
