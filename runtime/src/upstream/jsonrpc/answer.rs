//! The result of a request as it came: bytes that nobody has decoded.

use std::ops::Range;

/// The raw JSON text of a `result` member, still inside the line it came in (no copy).
#[derive(Clone)]
pub struct RawAnswer {
    line: Vec<u8>,
    result: Range<usize>,
}

impl RawAnswer {
    /// The result at a place of the text that it came in.
    pub(crate) fn within(line: Vec<u8>, result: Range<usize>) -> RawAnswer {
        RawAnswer { line, result }
    }

    /// Wraps a whole text.
    pub fn from_bytes(text: impl Into<Vec<u8>>) -> RawAnswer {
        let line = text.into();
        let result = 0..line.len();
        RawAnswer { line, result }
    }

    /// The JSON text of the result.
    pub fn bytes(&self) -> &[u8] {
        self.line.get(self.result.clone()).unwrap_or_default()
    }

    /// Bytes kept alive by this answer.
    pub fn held_bytes(&self) -> usize {
        self.line.capacity()
    }
}

impl std::fmt::Debug for RawAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawAnswer({} bytes)", self.result.len())
    }
}
