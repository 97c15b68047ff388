//! Keeps the most recent tool calls in memory, for the tool `lisp_debug` and the web page (`--ui`), which show them.
//! The ring buffer is bounded in number and in bytes.

use super::entry::RecordedCall;
use crate::answer::outcome::call_fault;
use ptc_base::sync::Locked;
use ptc_calls::outcome::CallRecord;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Most bytes of arguments. Beyond that the oldest records lose theirs.
const MOST_ARGUMENTS: usize = 16 << 20;

/// Most bytes of records of upstream calls. Beyond that the oldest calls are removed.
const MOST_RECORDS: usize = 32 << 20;

/// The most recent calls.
#[derive(Debug)]
pub struct CallRing {
    /// How many records it can hold.
    pub(crate) size: usize,
    state: Mutex<RingState>,
}

#[derive(Debug, Default)]
struct RingState {
    /// Oldest first.
    calls: VecDeque<RecordedCall>,
    /// Number of records at the front without arguments.
    stripped: usize,
    argument_bytes: usize,
    /// Bytes of the records of upstream calls.
    record_bytes: usize,
}

impl CallRing {
    /// A ring for at most `size` records.
    pub fn new(size: usize) -> CallRing {
        CallRing { size: size.max(1), state: Mutex::default() }
    }

    /// Adds a record, and removes the oldest ones when there is no room.
    pub fn push(&self, call: RecordedCall) {
        let gone = {
            let mut state = self.state.locked();
            state.argument_bytes += stored_bytes(&call);
            state.record_bytes += record_bytes(&call);
            state.calls.push_back(call);
            let gone = state.take_oldest(self.size);
            state.strip();
            gone
        };
        // Freed outside of the lock.
        drop(gone);
    }

    /// The record of the call with this number of an owner.
    pub fn find(&self, owner: u64, number: u64) -> Option<RecordedCall> {
        let state = self.state.locked();
        let mut calls = state.calls.iter().rev();
        calls.find(|call| call.entry.owner == owner && call.entry.number == number).cloned()
    }

    /// The number of the newest call of an owner.
    pub fn newest_number(&self, owner: u64) -> Option<u64> {
        let state = self.state.locked();
        let newest = state.calls.iter().rev().find(|call| call.entry.owner == owner);
        newest.map(|call| call.entry.number)
    }

    /// So many calls of an owner, newest first.
    pub fn newest_of(&self, owner: u64, most: usize) -> Vec<RecordedCall> {
        let state = self.state.locked();
        state.calls.iter().rev().filter(|call| call.entry.owner == owner).take(most).cloned().collect()
    }

    /// All records, newest first.
    pub fn newest_first(&self) -> Vec<RecordedCall> {
        self.state.locked().calls.iter().rev().cloned().collect()
    }
}

impl RingState {
    /// Removes the oldest calls until at most `size` are left and their records are within the limit.
    fn take_oldest(&mut self, size: usize) -> Vec<RecordedCall> {
        let mut taken = Vec::new();
        while self.calls.len() > size || (self.record_bytes > MOST_RECORDS && self.calls.len() > 1) {
            let Some(oldest) = self.calls.pop_front() else { break };
            self.argument_bytes -= stored_bytes(&oldest);
            self.record_bytes -= record_bytes(&oldest);
            self.stripped = self.stripped.saturating_sub(1);
            taken.push(oldest);
        }
        taken
    }

    /// Drops the arguments of the oldest records that have some, until the rest is within the limit.
    fn strip(&mut self) {
        while self.argument_bytes > MOST_ARGUMENTS {
            let Some(oldest) = self.calls.get_mut(self.stripped) else { return };
            self.stripped += 1;
            self.argument_bytes -= stored_bytes(oldest);
            if let Some(arguments) = &mut oldest.arguments {
                arguments.text = None;
            }
        }
    }
}

fn record_bytes(call: &RecordedCall) -> usize {
    call.entry.calls().iter().map(|call| size_of_val(call) + error_bytes(call)).sum()
}

fn error_bytes(call: &CallRecord) -> usize {
    call_fault(call).map_or(0, |(_, error)| error.len())
}

fn stored_bytes(call: &RecordedCall) -> usize {
    call.arguments.as_ref().and_then(|arguments| arguments.text.as_ref()).map_or(0, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::super::entry::{CallArguments, CallEntry};
    use super::*;
    use std::sync::Arc;

    fn call(id: usize, bytes: usize) -> RecordedCall {
        let entry = CallEntry::in_tests(&id.to_string());
        let text = Some("x".repeat(bytes).into());
        RecordedCall { entry: Arc::new(entry), arguments: Some(CallArguments { bytes, text }), answer: None }
    }

    #[test]
    fn it_is_bounded_in_number_and_in_bytes() {
        let ring = CallRing::new(10);
        for id in 0..100 {
            // Seven of these fit.
            ring.push(call(id, MOST_ARGUMENTS / 7));
            let calls = ring.newest_first();
            let ids: Vec<String> = calls.iter().map(|call| call.entry.request_id.to_string()).collect();
            let want: Vec<String> = (0..=id).rev().take(10).map(|id| id.to_string()).collect();
            assert_eq!(ids, want);
            let kept: Vec<bool> = calls.iter().map(|call| stored_bytes(call) > 0).collect();
            let want: Vec<bool> = (0..calls.len()).map(|age| age < 7).collect();
            assert_eq!(kept, want, "the newest have theirs");
        }
        ring.push(call(100, MOST_ARGUMENTS + 1));
        assert!(ring.newest_first().iter().all(|call| stored_bytes(call) == 0));
        ring.push(call(101, 5));
        assert_eq!(ring.newest_first().iter().map(stored_bytes).sum::<usize>(), 5);
    }
}
