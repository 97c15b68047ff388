//! Reads bodies that may exceed their memory limit: the rest goes to a spill file.

use super::{RawAnswer, UpstreamFault};
use crate::net::{Body, NetError};
use crate::spill::{RawSpill, SpillError, SpillStore};

/// Why a body could not be read.
pub(super) enum OverflowFault {
    Net(NetError),
    Spill(SpillError),
}

impl From<NetError> for OverflowFault {
    fn from(error: NetError) -> OverflowFault {
        OverflowFault::Net(error)
    }
}

impl From<SpillError> for OverflowFault {
    fn from(error: SpillError) -> OverflowFault {
        OverflowFault::Spill(error)
    }
}

impl From<SpillError> for UpstreamFault {
    fn from(error: SpillError) -> UpstreamFault {
        match error {
            SpillError::TooLarge { most } => {
                UpstreamFault::TooLarge { bytes: most.saturating_add(1), cap: most }
            }
            SpillError::Io(_) => UpstreamFault::Protocol(error.to_string()),
        }
    }
}

impl From<OverflowFault> for UpstreamFault {
    fn from(fault: OverflowFault) -> UpstreamFault {
        match fault {
            OverflowFault::Net(error) => error.into(),
            OverflowFault::Spill(error) => error.into(),
        }
    }
}

/// A response that is being received: in memory, or in a file once it exceeds the memory limit.
pub struct AnswerWriter {
    cap: usize,
    overflow: Option<SpillStore>,
    /// Text around the body in a file, which makes it a JSON-RPC message.
    around: [&'static [u8]; 2],
    text: Vec<u8>,
    file: Option<RawSpill>,
}

impl AnswerWriter {
    /// A writer for an MCP result: at most `cap` bytes in memory, larger ones as a message in a file of
    /// `overflow`.
    pub fn of_result(cap: usize, overflow: Option<SpillStore>) -> AnswerWriter {
        AnswerWriter { around: [b"{\"result\":", b"}"], ..AnswerWriter::of_body(cap, overflow) }
    }

    fn of_body(cap: usize, overflow: Option<SpillStore>) -> AnswerWriter {
        AnswerWriter { cap, overflow, around: [b"", b""], text: Vec::new(), file: None }
    }

    /// Checks that this many bytes fit, evicting older results if necessary.
    ///
    /// # Errors
    /// They do not fit; nothing was evicted.
    pub fn expect_bytes(&self, bytes: u64) -> Result<(), SpillError> {
        let most = self.overflow.as_ref().map_or(self.cap as u64, SpillStore::most_bytes);
        if bytes > most { Err(SpillError::TooLarge { most }) } else { Ok(()) }
    }

    /// Appends a part of the text.
    ///
    /// # Errors
    /// It does not fit.
    pub fn push(&mut self, part: &[u8]) -> Result<(), SpillError> {
        if let Some(file) = &mut self.file {
            return file.push(part);
        }
        if self.text.len() + part.len() <= self.cap {
            self.text.extend_from_slice(part);
            return Ok(());
        }
        let Some(store) = &self.overflow else { return Err(SpillError::TooLarge { most: self.cap as u64 }) };
        let mut file = store.raw()?;
        for part in [self.around[0], &std::mem::take(&mut self.text), part] {
            file.push(part)?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// The complete answer.
    ///
    /// # Errors
    /// Its end does not fit.
    pub fn finish(self) -> Result<RawAnswer, SpillError> {
        Ok(match self.file {
            Some(mut file) => {
                file.push(self.around[1])?;
                RawAnswer::in_file(file)
            }
            None => RawAnswer::from_bytes(self.text),
        })
    }
}

/// Reads a body to its end: at most `cap` bytes into memory, larger ones into a file of `overflow`.
pub(super) async fn read(
    body: &mut Body,
    cap: usize,
    overflow: Option<&SpillStore>,
) -> Result<RawAnswer, OverflowFault> {
    let Some(store) = overflow else { return Ok(RawAnswer::from_bytes(body.read(cap).await?)) };
    let mut answer = AnswerWriter::of_body(cap, Some(store.clone()));
    while let Some(chunk) = body.chunk().await? {
        answer.push(&chunk)?;
    }
    Ok(answer.finish()?)
}
