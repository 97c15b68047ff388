//! A type for bytes from which secrets have been removed, so that only such bytes are sent over a socket.

use super::writer::{Form, clean};
use ptc_base::secrets::SecretRegistry;
use std::borrow::Cow;

/// Bytes that are free of secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactedBytes(Vec<u8>);

impl RedactedBytes {
    /// Redacts secrets.
    pub(super) fn new(bytes: Vec<u8>, form: Form, secrets: &SecretRegistry) -> RedactedBytes {
        if secrets.is_empty() {
            return RedactedBytes(bytes);
        }
        let cleaned = {
            let text = String::from_utf8_lossy(&bytes);
            match clean(&text, form, secrets) {
                Cow::Owned(text) => Some(text),
                Cow::Borrowed(_) => None,
            }
        };
        RedactedBytes(cleaned.map_or(bytes, String::into_bytes))
    }

    /// Constant bytes.
    pub fn constant(text: &'static str) -> RedactedBytes {
        RedactedBytes(text.as_bytes().to_vec())
    }

    /// Adds the framing of a protocol. `before` and `after` must not contain foreign text.
    pub fn framed(self, before: &str, after: &str) -> RedactedBytes {
        let mut framed = Vec::with_capacity(before.len() + self.0.len() + after.len());
        framed.extend_from_slice(before.as_bytes());
        framed.extend_from_slice(&self.0);
        framed.extend_from_slice(after.as_bytes());
        RedactedBytes(framed)
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
