//! Collects a response in memory, or in a spill file once it exceeds its memory limit.

use super::{ErrorObject, RawAnswer, ResultSink, UpstreamFault};
use ptc_base::net::{Body, NetError};
use ptc_base::spill::{RawSpill, SpillError, SpillStore};

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
    sink: ResultSink,
    /// Text around the body in a file, which makes it a JSON-RPC message.
    around: [&'static [u8]; 2],
    text: Vec<u8>,
    file: Option<RawSpill>,
}

impl AnswerWriter {
    /// The result of a request of MCP. In a file it becomes a whole message.
    pub fn of_result(sink: ResultSink) -> AnswerWriter {
        AnswerWriter { around: [b"{\"result\":", b"}"], ..AnswerWriter::of_body(sink) }
    }

    fn of_body(sink: ResultSink) -> AnswerWriter {
        AnswerWriter { sink, around: [b"", b""], text: Vec::new(), file: None }
    }

    /// Checks that this many bytes are within the limit.
    ///
    /// # Errors
    /// They are not.
    pub fn expect_bytes(&self, bytes: u64) -> Result<(), SpillError> {
        let most = self.sink.store.as_ref().map_or(self.sink.max_bytes as u64, SpillStore::most_bytes);
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
        if self.text.len() + part.len() <= self.sink.max_bytes {
            self.text.extend_from_slice(part);
            return Ok(());
        }
        let Some(store) = &self.sink.store else {
            return Err(SpillError::TooLarge { most: self.sink.max_bytes as u64 });
        };
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

/// A complete answer of MCP, in a file if it exceeds the memory limit: its connection may have read more than its call
/// takes.
///
/// # Errors
/// It is too large.
pub(super) fn placed(answer: RawAnswer, sink: &ResultSink) -> Result<RawAnswer, UpstreamFault> {
    if answer.bytes().len() <= sink.max_bytes || answer.spilled().is_some() {
        return Ok(answer);
    }
    if sink.store.is_none() {
        return Err(sink.too_large(answer.bytes().len() as u64));
    }
    let mut writer = AnswerWriter::of_result(sink.clone());
    writer.push(answer.bytes())?;
    Ok(writer.finish()?)
}

/// The answer to a call in a message of so many bytes, on a connection that many calls share.
///
/// # Errors
/// The error of the server, or the answer is too large.
pub(super) fn of_message(
    body: Result<RawAnswer, ErrorObject>,
    bytes: usize,
    sink: &ResultSink,
) -> Result<RawAnswer, UpstreamFault> {
    if bytes > sink.max_bytes && sink.store.is_none() {
        return Err(sink.too_large(bytes as u64));
    }
    placed(body.map_err(UpstreamFault::Rpc)?, sink)
}

/// Reads a body to its end into a sink.
pub(super) async fn read(body: &mut Body, sink: &ResultSink) -> Result<RawAnswer, OverflowFault> {
    if sink.store.is_none() {
        return Ok(RawAnswer::from_bytes(body.read(sink.max_bytes).await?));
    }
    let mut answer = AnswerWriter::of_body(sink.clone());
    while let Some(chunk) = body.chunk().await? {
        answer.push(&chunk)?;
    }
    Ok(answer.finish()?)
}
