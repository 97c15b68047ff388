//! Defines the body of an outgoing HTTP request as a sequence of shared buffers, so that neither building nor cloning
//! it copies bytes.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body in parts, of known length. Clones share the parts; their owners are dropped with the last clone.
#[derive(Clone, Default)]
pub struct Payload {
    parts: VecDeque<Bytes>,
    left: u64,
}

impl Payload {
    /// These parts, one behind the other.
    pub fn new(parts: impl IntoIterator<Item = Bytes>) -> Payload {
        let parts: VecDeque<Bytes> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let left = parts.iter().map(|part| part.len() as u64).sum();
        Payload { parts, left }
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Payload {
        Payload::new([Bytes::from(text)])
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.parts.pop_front();
        self.left -= part.as_ref().map_or(0, |part| part.len() as u64);
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
