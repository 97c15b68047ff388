//! Bodies that may be larger than memory is given to them.

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

/// Reads a body to its end: at most `cap` bytes into memory, more of them into a file of `overflow`.
pub(super) async fn read(
    body: &mut Body,
    cap: usize,
    overflow: Option<&SpillStore>,
) -> Result<RawAnswer, OverflowFault> {
    let Some(store) = overflow else { return Ok(RawAnswer::from_bytes(body.read(cap).await?)) };
    let mut text = Vec::new();
    let mut file: Option<RawSpill> = None;
    while let Some(chunk) = body.chunk().await? {
        match &mut file {
            Some(file) => file.push(&chunk)?,
            None if text.len() + chunk.len() <= cap => text.extend_from_slice(&chunk),
            None => {
                let mut made = store.raw()?;
                made.push(&std::mem::take(&mut text))?;
                made.push(&chunk)?;
                file = Some(made);
            }
        }
    }
    Ok(match file {
        Some(file) => RawAnswer::in_file(file),
        None => RawAnswer::from_bytes(text),
    })
}
