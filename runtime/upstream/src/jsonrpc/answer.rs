//! Holds the result of a JSON-RPC request as raw bytes that are not decoded yet, in memory or, if it is large, in a
//! file.

use ptc_base::spill::RawSpill;
use std::ops::Range;
use std::sync::Arc;

/// The raw JSON text of a `result` member, still inside the line that it arrived in (no copy); or the file
/// that the line was written to, if the request allowed that.
#[derive(Clone)]
pub struct RawAnswer(AnswerBody);

#[derive(Clone)]
enum AnswerBody {
    InMemory { line: Vec<u8>, result: Range<usize> },
    InFile(Arc<RawSpill>),
}

impl RawAnswer {
    /// The result at a range of the text that it arrived in.
    pub(crate) fn within(line: Vec<u8>, result: Range<usize>) -> RawAnswer {
        RawAnswer(AnswerBody::InMemory { line, result })
    }

    /// A result with its message in a file.
    pub(crate) fn in_file(raw: RawSpill) -> RawAnswer {
        RawAnswer(AnswerBody::InFile(Arc::new(raw)))
    }

    /// A result that is the whole text.
    pub fn from_bytes(text: impl Into<Vec<u8>>) -> RawAnswer {
        let line = text.into();
        let result = 0..line.len();
        RawAnswer::within(line, result)
    }

    /// The JSON text of the result; empty if it is in a file.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            AnswerBody::InMemory { line, result } => line.get(result.clone()).unwrap_or_default(),
            AnswerBody::InFile(_) => &[],
        }
    }

    /// The file of the whole message, if it is in one.
    pub fn spilled(&self) -> Option<&Arc<RawSpill>> {
        match &self.0 {
            AnswerBody::InMemory { .. } => None,
            AnswerBody::InFile(raw) => Some(raw),
        }
    }

    /// The whole text that it arrived in; empty if that is a file.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self.0 {
            AnswerBody::InMemory { line, .. } => line,
            AnswerBody::InFile(_) => Vec::new(),
        }
    }

    /// Bytes of memory that it holds.
    pub fn held_bytes(&self) -> usize {
        match &self.0 {
            AnswerBody::InMemory { line, .. } => line.capacity(),
            AnswerBody::InFile(_) => 0,
        }
    }
}

impl std::fmt::Debug for RawAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            AnswerBody::InMemory { result, .. } => write!(f, "RawAnswer({} bytes)", result.len()),
            AnswerBody::InFile(raw) => write!(f, "RawAnswer({raw:?})"),
        }
    }
}
