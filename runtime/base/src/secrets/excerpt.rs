//! Truncates texts for models and people, without leaving a part of a secret at the cut, which redaction would not
//! recognize. No other code truncates such texts.
//!
//! A text is redacted first and then cut: [`SecretRegistry::excerpt`], or [`CleanText::first`] for a text that is
//! already redacted. Where no registry is at hand, because a text is redacted later, [`shortened`] leaves an ellipsis:
//! a part of a secret in front of it is recognized.

use super::{CleanText, SecretRegistry};
use std::borrow::Cow;

/// Where to cut a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// After this many characters.
    Chars(usize),
    /// After as many whole characters as fit into this many bytes.
    Bytes(usize),
}

impl Cut {
    /// The end of the part that remains.
    fn end(self, text: &str) -> usize {
        match self {
            Cut::Chars(most) => text.char_indices().nth(most).map_or(text.len(), |(end, _)| end),
            Cut::Bytes(most) => text.floor_char_boundary(most),
        }
    }
}

impl SecretRegistry {
    /// The beginning of a text, redacted.
    #[doc(hidden)]
    pub fn excerpt<'t>(&self, text: &'t str, at: Cut) -> Cow<'t, str> {
        match self.scrub(text) {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..at.end(text)]),
            Cow::Owned(mut text) => {
                text.truncate(at.end(&text));
                Cow::Owned(text)
            }
        }
    }
}

impl CleanText {
    /// Its beginning.
    pub fn first(&self, at: Cut) -> &str {
        &self[..at.end(self)]
    }

    /// Cuts it to its beginning.
    pub fn into_first(self, at: Cut) -> CleanText {
        CleanText::new(self.first(at).to_owned())
    }
}

/// The text, or its beginning and an ellipsis: for texts that are redacted later, or were.
pub fn shortened(text: &str, at: Cut) -> Cow<'_, str> {
    marked(text, at, "…")
}

/// [`shortened`] with three dots, as the language reference has them.
pub fn dotted(text: &str, at: Cut) -> Cow<'_, str> {
    marked(text, at, "...")
}

fn marked<'t>(text: &'t str, at: Cut, ellipsis: &str) -> Cow<'t, str> {
    match at.end(text) {
        end if end == text.len() => Cow::Borrowed(text),
        end => Cow::Owned(format!("{}{ellipsis}", text[..end].trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cut_leaves_a_part_of_a_secret() {
        let secrets = SecretRegistry::new();
        secrets.register("correct-horse-battery");
        for before in 0..40 {
            let text = format!("{}correct-horse-battery and more of it", "é".repeat(before));
            for at in [Cut::Chars(30), Cut::Bytes(30), Cut::Bytes(31)] {
                let shown = secrets.excerpt(&text, at);
                assert!(!shown.contains("cor") && "é".repeat(30).len() >= shown.len(), "{before}: {shown}");
                assert_eq!(secrets.clean(&text).first(at), shown);
                let later = shortened(&text, at).into_owned();
                let later = secrets.scrub(&later);
                assert!(!later.contains("corr") && later.ends_with('…'), "{before}: {later}");
            }
        }
    }

    #[test]
    fn what_fits_is_whole() {
        let secrets = SecretRegistry::new();
        for at in [Cut::Chars(2), Cut::Bytes(3)] {
            assert_eq!((secrets.excerpt("aé", at), shortened("aé", at)), ("aé".into(), "aé".into()));
        }
        assert_eq!(secrets.excerpt("aé", Cut::Bytes(2)), "a");
        assert_eq!(shortened("a bc", Cut::Bytes(2)), "a…");
        assert_eq!(shortened("é", Cut::Chars(0)), "…");
    }
}
