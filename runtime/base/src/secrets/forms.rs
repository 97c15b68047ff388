//! Computes the forms in which a secret may appear in a text (as it is, escaped, in hexadecimal, in base64), so that
//! redaction finds all of them.

use super::REDACTED;
use super::canonical::canonical;
use std::collections::BTreeSet;

/// Minimum length of a secret, in canonical bytes: shorter ones would redact ordinary text everywhere.
pub(super) const SHORTEST: usize = 4;

/// Minimum length of a line of a secret that is also searched for alone.
pub(super) const SHORTEST_LINE: usize = 8;

/// Ordinary values of settings: they are no secrets and occur in many texts.
const ORDINARY: [&str; 6] = ["true", "false", "null", "none", "undefined", "default"];

/// The forms of a secret, canonical and literal.
#[derive(Default)]
pub(super) struct Forms {
    pub(super) canonical: Vec<Vec<u8>>,
    pub(super) verbatim: Vec<Vec<u8>>,
    /// Canonical forms of key material; parts of these are searched for as well.
    pub(super) keys: Vec<Vec<u8>>,
}

impl Forms {
    pub(super) fn append(&mut self, more: Forms) {
        self.canonical.extend(more.canonical);
        self.verbatim.extend(more.verbatim);
        self.keys.extend(more.keys);
    }
}

/// True for a value that cannot be distinguished from ordinary text.
pub(super) fn is_ordinary(value: &str) -> bool {
    let value = value.trim();
    ORDINARY.iter().any(|word| word.eq_ignore_ascii_case(value)) || REDACTED.contains(value)
}

/// Every form of a secret; none if it is too short.
pub(super) fn forms_of(value: &str) -> Forms {
    let mut forms = Forms::default();
    for text in parts(value) {
        add(&mut forms, text);
    }
    forms
}

/// The value and the parts of it that are secrets on their own: its lines, what follows the name of a scheme,
/// the password in an address, a base64 value without its padding.
fn parts(value: &str) -> Vec<&str> {
    let whole = value.trim();
    let mut parts = vec![whole];
    if whole.contains(['\n', '\r']) {
        let lines = whole.lines().map(str::trim);
        parts.extend(lines.filter(|line| line.len() >= SHORTEST_LINE && !line.starts_with("-----")));
    }
    for scheme in ["bearer ", "basic ", "token "] {
        if let Some((name, rest)) = whole.split_at_checked(scheme.len())
            && name.eq_ignore_ascii_case(scheme)
        {
            parts.push(rest.trim());
        }
    }
    parts.extend(password(whole));
    // base64 is often written without padding.
    for part in parts.clone() {
        let unfilled = part.trim_end_matches('=');
        if unfilled.len() < part.len() {
            parts.push(unfilled);
        }
    }
    parts
}

/// The password of `scheme://user:password@host`.
pub(super) fn password(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(user.split_once(':').map_or(user, |(_, password)| password)).filter(|password| !password.is_empty())
}

fn add(forms: &mut Forms, text: &str) {
    let plain = canonical(text.as_bytes());
    if plain.len() < SHORTEST {
        return;
    }
    // The text before a secret may look like the beginning of an escape that includes its first characters.
    let escaped = serde_json::Value::from(text).to_string();
    forms.verbatim.push(text.as_bytes().to_vec());
    forms.verbatim.push(escaped.as_bytes()[1..escaped.len() - 1].to_vec());
    let first = forms.canonical.len();
    forms.canonical.push(plain);
    // The encoded text may be a document in which the secret is escaped, such as the claims of a JWT.
    let inside = &escaped[1..escaped.len() - 1];
    let ascii = ascii_only(inside);
    let (html, percent) = (html(text), percent(text));
    let texts = BTreeSet::from([text, inside, &ascii, &html, &percent]);
    for text in texts.into_iter().map(str::as_bytes) {
        let encoded = [LOWER, UPPER].map(|digits| hexadecimal(text, digits)).into_iter();
        let encoded = encoded.chain(
            [STANDARD, URL]
                .into_iter()
                .flat_map(|alphabet| (0..3).map(move |before| base64_inside(text, before, alphabet))),
        );
        forms.canonical.extend(encoded.map(|form| canonical(&form)).filter(|form| form.len() >= SHORTEST));
    }
    if is_key(text) {
        forms.keys.extend_from_slice(&forms.canonical[first..]);
    }
}

/// JSON text in which every non-ASCII character is escaped.
fn ascii_only(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for unit in json.encode_utf16() {
        match u8::try_from(unit).ok().filter(u8::is_ascii) {
            Some(byte) => text.push(char::from(byte)),
            None => text.push_str(&format!("\\u{unit:04x}")),
        }
    }
    text
}

/// Text in which the characters that mean something in HTML are escaped, as most libraries do it.
fn html(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&#39;")
}

/// Text percent-encoded as a component of an address (RFC 3986, sections 2.1 and 2.3).
fn percent(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.extend([
                '%',
                char::from(UPPER[usize::from(byte >> 4)]),
                char::from(UPPER[usize::from(byte & 15)]),
            ]);
        }
    }
    encoded
}

/// True for a value that looks random: its parts then identify it.
fn is_key(text: &str) -> bool {
    text.len() >= SHORTEST_LINE
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte))
        && !text.contains("://")
        && !text.starts_with(['/', '~', '.'])
        && is_telling(text.as_bytes())
}

/// True for what is no word, name or number: it has a digit and a letter, or mixed case inside.
pub(super) fn is_telling(part: &[u8]) -> bool {
    let letters = || part.iter().filter(|byte| byte.is_ascii_alphabetic()).map(u8::is_ascii_uppercase);
    let changes = letters().zip(letters().skip(1)).filter(|(left, right)| left != right).count();
    changes >= 2 || (part.iter().any(u8::is_ascii_digit) && letters().next().is_some())
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

fn hexadecimal(bytes: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]).collect()
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The base64 digits that depend on these bytes alone, when `before` bytes (modulo three) come before them.
fn base64_inside(bytes: &[u8], before: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let first = (before * 8).div_ceil(6);
    let end = (before + bytes.len()) * 8 / 6;
    let bit = |at: usize| {
        let byte = bytes[at / 8 - before];
        usize::from(byte >> (7 - at % 8) & 1)
    };
    (first..end).map(|digit| alphabet[(0..6).fold(0, |value, at| value << 1 | bit(digit * 6 + at))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(value: &str) -> Vec<String> {
        forms_of(value).canonical.iter().map(|form| String::from_utf8_lossy(form).into_owned()).collect()
    }

    #[test]
    fn base64_is_found_behind_any_number_of_bytes() {
        let forms = texts("hunter2!");
        // base64 of "hunter2!", "u:hunter2!" and "me:hunter2!".
        for encoded in ["aHVudGVyMiE=", "dTpodW50ZXIyIQ==", "bWU6aHVudGVyMiE="] {
            assert!(forms.iter().any(|form| encoded.contains(form.as_str())), "{encoded}: {forms:?}");
        }
        assert!(
            forms.contains(&"68756e7465723221".to_owned()) && forms.contains(&"68756E7465723221".to_owned())
        );
    }

    #[test]
    fn parts_that_are_secrets_alone_are_looked_for_alone() {
        assert_eq!(parts("Bearer abc\n"), ["Bearer abc", "abc"]);
        assert_eq!(parts("QWxhZGRpbg=="), ["QWxhZGRpbg==", "QWxhZGRpbg"]);
        assert_eq!(
            parts("-----BEGIN X-----\nMIIEvQIBAD\nab\n"),
            ["-----BEGIN X-----\nMIIEvQIBAD\nab", "MIIEvQIBAD"]
        );
        assert_eq!(password("postgres://me:p%40ss@h:1/db?x=y"), Some("p%40ss"));
        assert_eq!(password("https://token@h/x@y"), Some("token"));
        assert_eq!(password("https://h/a@b"), None);
    }

    #[test]
    fn what_is_too_short_has_no_form() {
        assert!(texts("abc").is_empty() && texts("a b\n+c").is_empty());
        assert!(is_ordinary("True") && is_ordinary("ACTED") && !is_ordinary("text"));
    }
}
