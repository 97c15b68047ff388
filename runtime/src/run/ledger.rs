//! The calls of one run: those under way, and those that have ended, in the order in which they did.
//!
//! Invariant: a call that was opened ends exactly once: with an answer, with a fault, or cancelled; it is cancelled
//! when whatever works on it is dropped, and at the latest when its run ends.

use super::account::RunAccount;
use super::outcome::{ArgumentsHash, CallFault, CallRecord, CallStatus, Effect};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Who an upstream call was for, as the ledger shows it.
#[derive(Clone, Debug)]
pub struct CallLabel {
    /// Configured name of the upstream.
    pub server: Arc<str>,
    /// Tool name.
    pub tool: Arc<str>,
    /// What it may change.
    pub effect: Effect,
}

/// Names a call of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallTag(u64);

/// The calls of one run.
#[derive(Default)]
pub(super) struct Ledger {
    inner: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// Calls under way, in the order in which they began, with gaps where one has ended.
    open: VecDeque<Option<OpenEntry>>,
    /// Calls before those.
    gone: u64,
    ended: Vec<CallRecord>,
    /// Calls that ended otherwise than by being cancelled.
    answered: u64,
}

struct OpenEntry {
    label: CallLabel,
    begun: Instant,
    /// From the beginning of the run.
    offset: Duration,
    arguments_hash: Option<ArgumentsHash>,
}

impl Entries {
    fn open(&mut self, tag: CallTag) -> Option<&mut OpenEntry> {
        let at = usize::try_from(tag.0.checked_sub(self.gone)?).ok()?;
        self.open.get_mut(at)?.as_mut()
    }

    /// Takes a call out, if it is under way.
    fn take(&mut self, tag: CallTag) -> Option<OpenEntry> {
        let at = usize::try_from(tag.0.checked_sub(self.gone)?).ok()?;
        let taken = self.open.get_mut(at)?.take();
        while let Some(None) = self.open.front() {
            self.open.pop_front();
            self.gone += 1;
        }
        taken
    }
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self, label: CallLabel, begun: Instant, offset: Duration) -> CallTag {
        let mut inner = self.lock();
        inner.open.push_back(Some(OpenEntry { label, begun, offset, arguments_hash: None }));
        CallTag(inner.gone + inner.open.len() as u64 - 1)
    }

    pub(super) fn cancel(&self, tag: CallTag) {
        let mut inner = self.lock();
        if let Some(open) = inner.take(tag) {
            inner.ended.push(cancelled(open));
        }
    }

    pub(super) fn cancel_all(&self) {
        let mut inner = self.lock();
        let open = std::mem::take(&mut inner.open);
        inner.gone += open.len() as u64;
        inner.ended.extend(open.into_iter().flatten().map(cancelled));
    }

    /// Takes the calls that have ended.
    pub(super) fn take(&self) -> Vec<CallRecord> {
        std::mem::take(&mut self.lock().ended)
    }

    /// The calls that have ended.
    pub(super) fn ended(&self) -> Vec<CallRecord> {
        self.lock().ended.clone()
    }

    pub(super) fn answered(&self) -> u64 {
        self.lock().answered
    }

    /// The calls under way, and for how long.
    pub(super) fn under_way(&self) -> Vec<(CallLabel, Duration)> {
        let inner = self.lock();
        inner.open.iter().flatten().map(|open| (open.label.clone(), open.begun.elapsed())).collect()
    }
}

fn cancelled(open: OpenEntry) -> CallRecord {
    let status = CallStatus::Error {
        reason: CallFault::Cancelled,
        error: "the program or branch ended while the call was in flight".to_owned(),
    };
    let duration = open.begun.elapsed();
    record(open, status, duration, None)
}

fn record(open: OpenEntry, status: CallStatus, duration: Duration, result_bytes: Option<u64>) -> CallRecord {
    let OpenEntry { label: CallLabel { server, tool, effect }, begun: _, offset, arguments_hash } = open;
    CallRecord { server, tool, status, begun: offset, duration, result_bytes, effect, arguments_hash }
}

/// A call under way. Dropped without an end, it was cancelled.
pub(crate) struct OpenCall {
    account: Arc<RunAccount>,
    tag: CallTag,
    begun: Instant,
}

impl OpenCall {
    /// A call that begins at this moment.
    pub(crate) fn begin(account: &Arc<RunAccount>, label: CallLabel, begun: Instant) -> OpenCall {
        let tag = account.ledger().open(label, begun, account.elapsed_at(begun));
        OpenCall { account: account.clone(), tag, begun }
    }

    /// Its name.
    pub(crate) fn tag(&self) -> CallTag {
        self.tag
    }

    /// How long it has taken.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Its tool has become known.
    pub(crate) fn set_effect(&self, effect: Effect) {
        if let Some(open) = self.account.ledger().lock().open(self.tag) {
            open.label.effect = effect;
        }
    }

    /// Its arguments have become known.
    pub(crate) fn set_arguments_hash(&self, hash: ArgumentsHash) {
        if let Some(open) = self.account.ledger().lock().open(self.tag) {
            open.arguments_hash = Some(hash);
        }
    }

    /// Ends it. A call that was cancelled meanwhile stays cancelled.
    pub(crate) fn end(self, status: CallStatus, duration: Duration, bytes: Option<u64>) {
        let mut inner = self.account.ledger().lock();
        if let Some(open) = inner.take(self.tag) {
            inner.ended.push(record(open, status, duration, bytes));
            inner.answered += 1;
        }
    }

    /// Takes it back: it was wrong, and nobody was asked.
    pub(crate) fn withdraw(self) {
        self.account.ledger().lock().take(self.tag);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.account.ledger().cancel(self.tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::limits::Limits;
    use ptc_vm::Interrupt;

    fn label(tool: &str) -> CallLabel {
        CallLabel { server: "s".into(), tool: tool.into(), effect: Effect::Unknown }
    }

    #[test]
    fn every_call_ends_once_and_whatever_is_left_is_cancelled_in_the_order_of_its_beginning() {
        let account = Arc::new(RunAccount::new(Limits::default(), Interrupt::default()));
        let [a, b, c, d, e] =
            ["a", "b", "c", "d", "e"].map(|tool| OpenCall::begin(&account, label(tool), Instant::now()));
        d.end(CallStatus::Ok, Duration::ZERO, Some(1));
        drop(c);
        e.withdraw();
        assert_eq!(account.calls_in_flight().len(), 2);
        account.cancel_calls();
        // Too late.
        b.end(CallStatus::Ok, Duration::ZERO, None);
        drop(a);
        let ended: Vec<_> = account
            .take_ledger()
            .into_iter()
            .map(|call| (call.tool.to_string(), call.status == CallStatus::Ok))
            .collect();
        assert_eq!(
            ended,
            [("d", true), ("c", false), ("a", false), ("b", false)].map(|(t, ok)| (t.into(), ok))
        );
        assert_eq!(account.calls_answered(), 1);
    }
}
