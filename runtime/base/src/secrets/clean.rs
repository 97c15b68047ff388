//! Defines `CleanText`, a string type for text without secrets, which only the redacting code can construct.

use std::fmt;
use std::ops::Deref;

/// Text without secrets. Only a [`SecretRegistry`](super::SecretRegistry) makes one, so a stored value of
/// this type is certainly redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanText(String);

impl CleanText {
    pub(super) fn new(cleaned: String) -> CleanText {
        CleanText(cleaned)
    }
}

impl Deref for CleanText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CleanText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
