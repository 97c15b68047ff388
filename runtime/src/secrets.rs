//! The one registry of secret values and the one path that scrubs them from outgoing text.
//!
//! Invariant: nothing that holds a credential implements `Debug` or `Serialize`.

use aho_corasick::{AhoCorasick, MatchKind};
use secrecy::{ExposeSecret, SecretString};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What replaces a secret.
pub const REDACTED: &str = "[REDACTED]";

/// Shorter values would redact ordinary words; they are not registered.
const SHORTEST: usize = 4;

/// Known secret values. Clones share one registry.
#[derive(Clone, Default)]
pub struct SecretRegistry {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Something is registered: read without the lock by everything that goes out.
    any: AtomicBool,
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    values: Vec<SecretString>,
    finder: Option<AhoCorasick>,
}

impl SecretRegistry {
    /// An empty registry.
    pub fn new() -> SecretRegistry {
        SecretRegistry::default()
    }

    /// Registers a value and the form it takes inside JSON text.
    pub fn register(&self, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        let quoted = serde_json::Value::from(value).to_string();
        let escaped = &quoted[1..quoted.len() - 1];
        let mut inner = self.shared.inner.write().unwrap_or_else(PoisonError::into_inner);
        for form in [value, escaped] {
            if !inner.values.iter().any(|known| known.expose_secret() == form) {
                inner.values.push(SecretString::from(form.to_owned()));
            }
        }
        // Leftmost-longest: a secret that contains another one leaves no tail behind.
        inner.finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(inner.values.iter().map(|value| value.expose_secret()))
            .ok();
        self.shared.any.store(true, Ordering::Release);
    }

    /// Replaces every registered value.
    pub fn scrub<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        let inner = self.shared.inner.read().unwrap_or_else(PoisonError::into_inner);
        match &inner.finder {
            Some(finder) if finder.is_match(text) => {
                let replacements = vec![REDACTED; finder.patterns_len()];
                Cow::Owned(finder.replace_all(text, &replacements))
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// Replaces every registered value in place.
    pub fn scrub_string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.scrub(text) {
            *text = clean;
        }
    }

    /// True when there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        !self.shared.any.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_secret_wins_and_leaves_no_tail() {
        let secrets = SecretRegistry::new();
        secrets.register("hunter2");
        secrets.register("hunter2-and-more");
        assert_eq!(secrets.scrub("a hunter2-and-more b hunter2 c"), "a [REDACTED] b [REDACTED] c");
    }

    #[test]
    fn json_escaped_forms_are_found() {
        let secrets = SecretRegistry::new();
        secrets.register("pass\"word");
        assert_eq!(secrets.scrub(r#"{"k":"pass\"word"}"#), r#"{"k":"[REDACTED]"}"#);
        assert_eq!(secrets.scrub("nothing here"), "nothing here");
    }

    #[test]
    fn very_short_values_are_left_alone() {
        let secrets = SecretRegistry::new();
        secrets.register("ab");
        assert!(secrets.is_empty());
    }
}
