//! Queues the messages that wait to be written to one server, so that a server that stops reading takes a bounded
//! amount of memory.
//!
//! Requests with arguments wait for room before they enter, and are removed when their caller gives up. Everything else
//! is small and goes first: questions of the protocol, a few at a time, and what the server itself causes (answers to
//! its requests, notices of cancelled calls). The latter is dropped beyond a bound, so a server that does not read gets
//! no queue for it.

use bytes::Bytes;
use ptc_base::sync::Locked;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Bytes of calls that may wait to be written; a larger call waits alone.
const CALL_ROOM: u32 = 1 << 20;

/// Bytes of answers and notices that may wait to be written.
const REPLY_ROOM: usize = 256 << 10;

/// Frames written together.
const BATCH: usize = 64 << 10;

/// Room for one call, until it is dropped.
pub(super) struct Room {
    _share: OwnedSemaphorePermit,
}

/// Frames that are written at once.
pub(super) enum Batch {
    /// Whole frames.
    Small(Vec<u8>),
    /// One frame, which holds its room and stays on its program's account.
    Large {
        /// The frame.
        frame: [Bytes; 3],
        _room: Room,
    },
}

/// Bytes of a frame in parts.
pub(super) fn frame_bytes(parts: &[Bytes]) -> usize {
    parts.iter().map(Bytes::len).sum()
}

/// The queue of one connection.
pub(super) struct FrameQueue {
    queue: Mutex<QueuedFrames>,
    room: Arc<Semaphore>,
    arrived: Notify,
}

#[derive(Default)]
struct QueuedFrames {
    first: VecDeque<Vec<u8>>,
    first_bytes: usize,
    /// By the ids of their requests, which grow.
    calls: BTreeMap<u64, ([Bytes; 3], Room)>,
    closed: bool,
}

impl FrameQueue {
    pub(super) fn new() -> FrameQueue {
        FrameQueue {
            queue: Mutex::default(),
            room: Arc::new(Semaphore::new(CALL_ROOM as usize)),
            arrived: Notify::new(),
        }
    }

    /// Waits, first come first served, until a call of so many bytes may enter; `None` once the outbox is closed.
    pub(super) async fn room(&self, bytes: usize) -> Option<Room> {
        let share = u32::try_from(bytes).unwrap_or(CALL_ROOM).min(CALL_ROOM);
        self.room.clone().acquire_many_owned(share).await.ok().map(|share| Room { _share: share })
    }

    /// Adds a call.
    pub(super) fn call(&self, id: u64, frame: [Bytes; 3], room: Room) {
        let mut queue = self.queue.locked();
        if !queue.closed {
            queue.calls.insert(id, (frame, room));
            self.arrived.notify_one();
        }
    }

    /// Removes a call; false when it is written, or being written.
    pub(super) fn revoke(&self, id: u64) -> bool {
        self.queue.locked().calls.remove(&id).is_some()
    }

    /// Adds a frame that is small and one of few.
    pub(super) fn own(&self, frame: Vec<u8>) {
        let mut queue = self.queue.locked();
        if !queue.closed {
            queue.first_bytes += frame.len();
            queue.first.push_back(frame);
            self.arrived.notify_one();
        }
    }

    /// Adds a frame that the server has caused; false when it does not read the earlier ones.
    pub(super) fn reply(&self, frame: Vec<u8>) -> bool {
        let fits = self.queue.locked().first_bytes + frame.len() <= REPLY_ROOM;
        if fits {
            self.own(frame);
        }
        fits
    }

    /// Accepts nothing more and drops the calls; small frames that are there are still written.
    pub(super) fn close(&self) {
        let calls = {
            let mut queue = self.queue.locked();
            queue.closed = true;
            std::mem::take(&mut queue.calls)
        };
        drop(calls);
        self.room.close();
        self.arrived.notify_one();
    }

    /// The next frames to write; `None` once the outbox is closed and empty. For one writer.
    pub(super) async fn next(&self) -> Option<Batch> {
        loop {
            {
                let mut queue = self.queue.locked();
                if let Some(batch) = queue.take() {
                    return Some(batch);
                }
                if queue.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }
}

impl QueuedFrames {
    fn take(&mut self) -> Option<Batch> {
        let mut batch = Vec::new();
        while batch.len() < BATCH
            && let Some(frame) = self.first.pop_front()
        {
            self.first_bytes -= frame.len();
            batch.extend_from_slice(&frame);
        }
        while batch.len() < BATCH
            && let Some(entry) = self.calls.first_entry()
        {
            if frame_bytes(&entry.get().0) > BATCH {
                if batch.is_empty() {
                    let (frame, room) = entry.remove();
                    return Some(Batch::Large { frame, _room: room });
                }
                break;
            }
            let (frame, _room) = entry.remove();
            frame.iter().for_each(|part| batch.extend_from_slice(part));
        }
        (!batch.is_empty()).then_some(Batch::Small(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;

    fn frame(bytes: usize) -> [Bytes; 3] {
        ["<".into(), "x".repeat(bytes).into(), ">".into()]
    }

    async fn enter(outbox: &FrameQueue, id: u64, bytes: usize) {
        let room = outbox.room(bytes + 2).await.unwrap();
        outbox.call(id, frame(bytes), room);
    }

    #[tokio::test]
    async fn calls_wait_for_room_and_leave_it_when_they_are_taken_out() {
        let outbox = FrameQueue::new();
        enter(&outbox, 1, 5 << 20).await;
        let next = outbox.room(10);
        tokio::pin!(next);
        assert!(poll!(&mut next).is_pending());
        assert!(outbox.revoke(1) && !outbox.revoke(1));
        assert!(poll!(&mut next).is_ready());
        enter(&outbox, 2, 600 << 10).await;
        let Some(Batch::Large { frame, _room: room }) = outbox.next().await else { panic!() };
        assert!(!outbox.revoke(2), "it is being written");
        let next = outbox.room(600 << 10);
        tokio::pin!(next);
        assert!(poll!(&mut next).is_pending());
        drop((frame, room));
        assert!(poll!(&mut next).is_ready());
    }

    #[tokio::test]
    async fn small_frames_go_first_and_together() {
        let outbox = FrameQueue::new();
        enter(&outbox, 1, 1).await;
        enter(&outbox, 2, 100 << 10).await;
        enter(&outbox, 3, 2).await;
        outbox.own(b"ping".to_vec());
        let Some(Batch::Small(batch)) = outbox.next().await else { panic!() };
        assert_eq!(batch, b"ping<x>");
        assert!(matches!(outbox.next().await, Some(Batch::Large { .. })));
        let Some(Batch::Small(batch)) = outbox.next().await else { panic!() };
        assert_eq!(batch, b"<xx>");
        assert!(poll!(Box::pin(outbox.next())).is_pending());
    }

    #[tokio::test]
    async fn what_a_server_causes_is_bounded() {
        let outbox = FrameQueue::new();
        let taken = (0..1_000_000).filter(|_| outbox.reply(b"0123456789".to_vec())).count();
        assert_eq!(taken, REPLY_ROOM / 10);
        // A question of ours is accepted nevertheless.
        outbox.own(b"ping".to_vec());
        enter(&outbox, 1, 10).await;
        outbox.close();
        assert!(outbox.room(1).await.is_none());
        let mut written = 0;
        while let Some(Batch::Small(batch)) = outbox.next().await {
            written += batch.len();
        }
        assert_eq!(written, taken * 10 + 4);
    }
}
