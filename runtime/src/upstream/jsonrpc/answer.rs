//! The result of a request as it came: bytes that nobody has decoded.

use crate::spill::RawSpill;
use std::ops::Range;
use std::sync::Arc;

/// The raw JSON text of a `result` member, still inside the line it came in (no copy); or the file that the line went to,
/// where a request allowed that.
#[derive(Clone)]
pub struct RawAnswer {
    line: Vec<u8>,
    result: Range<usize>,
    spilled: Option<Arc<RawSpill>>,
}

impl RawAnswer {
    /// The result at a place of the text that it came in.
    pub(crate) fn within(line: Vec<u8>, result: Range<usize>) -> RawAnswer {
        RawAnswer { line, result, spilled: None }
    }

    /// An answer whose message is in a file.
    pub(crate) fn in_file(raw: RawSpill) -> RawAnswer {
        RawAnswer { line: Vec::new(), result: 0..0, spilled: Some(Arc::new(raw)) }
    }

    /// The file of the whole message; the text here is empty then.
    pub fn spilled(&self) -> Option<&Arc<RawSpill>> {
        self.spilled.as_ref()
    }

    /// Wraps a whole text.
    pub fn from_bytes(text: impl Into<Vec<u8>>) -> RawAnswer {
        let line = text.into();
        let result = 0..line.len();
        RawAnswer { line, result, spilled: None }
    }

    /// The JSON text of the result.
    pub fn bytes(&self) -> &[u8] {
        self.line.get(self.result.clone()).unwrap_or_default()
    }

    /// The whole text that it came in.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.line
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
