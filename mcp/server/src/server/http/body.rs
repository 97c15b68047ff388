//! Reads the body of a request, bounded in bytes and time. The bytes of all bodies together are bounded as
//! well.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body::Body as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFault {
    /// It has more bytes than allowed, or declares that it has.
    TooLarge,
    /// The bodies of other requests use up the common limit.
    NoRoom,
    /// It did not arrive in time.
    Slow,
    /// The client has gone, or the encoding is broken.
    Broken,
}

/// A body, and its permits from the common limit.
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

/// Reads a body to its end. `room` has a permit for each byte.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    most: usize,
    time: Duration,
    room: &Arc<Semaphore>,
) -> Result<RequestBody, BodyFault> {
    let declared =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|declared| declared > most as u64) {
        return Err(BodyFault::TooLarge);
    }
    timeout(time, read_all(body, most, room)).await.unwrap_or(Err(BodyFault::Slow))
}

async fn read_all(body: Body, most: usize, room: &Arc<Semaphore>) -> Result<RequestBody, BodyFault> {
    let mut body = pin!(body);
    // Usually there is one piece, which is not copied.
    let mut first = Bytes::new();
    let mut rest: Vec<u8> = Vec::new();
    let mut held: Option<OwnedSemaphorePermit> = None;
    loop {
        let frame = match std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            None => break,
            Some(frame) => frame.map_err(|_| BodyFault::Broken)?,
        };
        let Ok(piece) = frame.into_data() else { continue };
        if first.len() + rest.len() + piece.len() > most {
            return Err(BodyFault::TooLarge);
        }
        let bytes = u32::try_from(piece.len()).map_err(|_| BodyFault::TooLarge)?;
        let more = room.clone().try_acquire_many_owned(bytes).map_err(|_| BodyFault::NoRoom)?;
        match &mut held {
            Some(held) => held.merge(more),
            None => held = Some(more),
        }
        if first.is_empty() && rest.is_empty() {
            first = piece;
        } else {
            rest.extend_from_slice(&std::mem::take(&mut first));
            rest.extend_from_slice(&piece);
        }
    }
    Ok(RequestBody { bytes: if rest.is_empty() { first } else { rest.into() }, _room: held })
}
