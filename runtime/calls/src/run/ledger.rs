//! Keeps the list of the tool calls of one run, under way and ended, for the report of the run and for decisions that
//! depend on what it has called.
//!
//! Its size is bounded. Calls under way are limited by the call budget, records of refused calls by
//! `REFUSED`, and all records together by `ROOM` bytes. Totals are exact. One record is kept beyond
//! `ROOM`: the first of each tool that may have changed something, because guards decide by records.
//!
//! Invariant: an open call ends exactly once: with an answer, with a fault, or cancelled. It is cancelled
//! when the work on it is dropped, and at the latest when its run ends.

use super::account::RunAccount;
use super::outcome::{ArgumentsHash, CallFault, CallRecord, CallStatus, Effect, PolicyRuling};
use super::totals::CallTotals;
use ptc_base::secrets::{Cut, shortened};
use ptc_base::sync::Locked;
use ptc_vm::Span;
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Limit of records of refused calls; further ones are only counted.
const REFUSED: u64 = 50;

/// Size limit of the records of one run, in bytes; calls that end later are only counted.
const ROOM: usize = 4 << 20;

/// Size limit of the text of one failure.
const ERROR_TEXT: Cut = Cut::Bytes(2_048);

/// Server and tool of an upstream call, as the ledger shows them.
#[derive(Clone, Debug)]
pub struct CallLabel {
    /// Configured name of the server.
    pub server: Arc<str>,
    /// Tool name.
    pub tool: Arc<str>,
    /// What the call may change.
    pub effect: Effect,
}

/// Identifies a call of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallTag(u64);

impl CallTag {
    /// The number of the call in its run, in the order of beginnings.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The calls of one run.
#[derive(Default)]
pub(super) struct Ledger {
    inner: Mutex<Entries>,
    /// Wakes the task of the run for each call that ends, if that waits for it.
    one_answered: Notify,
}

#[derive(Default)]
struct Entries {
    /// Calls under way, in the order in which they began; `None` where one has ended.
    open: VecDeque<Option<OpenEntry>>,
    /// Number of calls before those in `open`.
    gone: u64,
    ended: Vec<CallRecord>,
    /// Size of the records, in bytes.
    bytes: usize,
    /// Server and tool of the records that were kept beyond [`ROOM`].
    effectful: HashSet<(Arc<str>, Arc<str>)>,
    totals: CallTotals,
    /// Number of calls that were sent and not cancelled, and have ended.
    answered: u64,
}

/// A call under way, for those who follow its run.
#[derive(Clone, Debug)]
pub struct OpenCallRecord {
    /// Configured name of the server.
    pub server: Arc<str>,
    /// Tool name.
    pub tool: Arc<str>,
    /// When it began, since the beginning of the run.
    pub begun: Duration,
    /// Its number among the calls of its run.
    pub number: u64,
    /// Where the text of its program makes it.
    pub place: Option<Span>,
}

impl OpenCallRecord {
    fn new(open: &OpenEntry) -> OpenCallRecord {
        let CallRecord { server, tool, begun, place, .. } = &open.record;
        let (server, tool) = (server.clone(), tool.clone());
        OpenCallRecord { server, tool, begun: *begun, number: open.number, place: *place }
    }
}

struct OpenEntry {
    begun: Instant,
    number: u64,
    /// What is known of it until it ends.
    record: CallRecord,
}

impl OpenEntry {
    /// The record of the call, which has ended now.
    fn ended(self, status: CallStatus, duration: Duration, result_bytes: Option<u64>) -> CallRecord {
        CallRecord { status, duration, result_bytes, number: Some(self.number), ..self.record }
    }
}

impl Entries {
    fn open(&mut self, tag: CallTag) -> Option<&mut OpenEntry> {
        let at = usize::try_from(tag.0.checked_sub(self.gone)?).ok()?;
        self.open.get_mut(at)?.as_mut()
    }

    /// Removes and returns a call, if it is under way.
    fn take(&mut self, tag: CallTag) -> Option<OpenEntry> {
        let at = usize::try_from(tag.0.checked_sub(self.gone)?).ok()?;
        let taken = self.open.get_mut(at)?.take();
        while let Some(None) = self.open.front() {
            self.open.pop_front();
            self.gone += 1;
        }
        taken
    }

    /// Counts a call that has ended, and stores its record while there is room.
    fn enter(&mut self, mut call: CallRecord) {
        self.totals.add(&call.status, call.result_bytes);
        if let CallStatus::Error { reason, error } = &mut call.status {
            if *reason == CallFault::CapExhausted && self.totals.refused > REFUSED {
                return;
            }
            if let Cow::Owned(text) = shortened(error, ERROR_TEXT) {
                *error = text;
            }
            error.shrink_to_fit();
        }
        let bytes = call.bytes();
        let has_room = self.bytes + bytes <= ROOM;
        if has_room
            || (call.effect != Effect::Read
                && self.effectful.insert((call.server.clone(), call.tool.clone())))
        {
            self.bytes += bytes;
            self.ended.push(call);
        }
    }
}

impl CallRecord {
    /// The record of a call that begins this long after its run.
    fn new(CallLabel { server, tool, effect }: CallLabel, begun: Duration) -> CallRecord {
        CallRecord {
            server,
            tool,
            status: CallStatus::Ok,
            begun,
            duration: Duration::ZERO,
            result_bytes: None,
            effect,
            arguments_hash: None,
            cached: false,
            ruling: None,
            number: None,
            place: None,
        }
    }

    /// Its size in bytes, with its names in full although they are shared.
    fn bytes(&self) -> usize {
        let error = match &self.status {
            CallStatus::Ok => 0,
            CallStatus::Error { reason: _, error } => error.len(),
        };
        let ruling = self.ruling.as_ref().map_or(0, |ruling| size_of_val(&**ruling) + ruling.rule.len());
        size_of::<CallRecord>() + self.server.len() + self.tool.len() + error + ruling
    }
}

impl Ledger {
    pub(super) fn open(
        &self,
        label: CallLabel,
        begun: Instant,
        offset: Duration,
        place: Option<Span>,
    ) -> CallTag {
        let mut inner = self.inner.locked();
        let number = inner.gone + inner.open.len() as u64;
        let record = CallRecord { place, ..CallRecord::new(label, offset) };
        inner.open.push_back(Some(OpenEntry { begun, number, record }));
        CallTag(number)
    }

    pub(super) fn cancel(&self, tag: CallTag) {
        let mut inner = self.inner.locked();
        if let Some(open) = inner.take(tag) {
            inner.enter(cancelled(open));
        }
    }

    /// Records a call that was refused because a budget was used up.
    pub(super) fn refuse(&self, label: CallLabel, offset: Duration, fault: CallFault, error: &str) {
        let mut inner = self.inner.locked();
        let status = CallStatus::Error { reason: fault, error: error.to_owned() };
        inner.enter(CallRecord { status, ..CallRecord::new(label, offset) });
    }

    pub(super) fn cancel_all(&self) {
        let mut inner = self.inner.locked();
        let open = std::mem::take(&mut inner.open);
        inner.gone += open.len() as u64;
        open.into_iter().flatten().for_each(|open| inner.enter(cancelled(open)));
    }

    /// Takes the records of the calls that have ended.
    pub(super) fn take(&self) -> Vec<CallRecord> {
        std::mem::take(&mut self.inner.locked().ended)
    }

    /// Records of the calls that have ended, without the first `known`.
    pub(super) fn ended(&self, known: usize) -> Vec<CallRecord> {
        self.inner.locked().ended.get(known..).unwrap_or_default().to_vec()
    }

    pub(super) fn totals(&self) -> CallTotals {
        self.inner.locked().totals
    }

    pub(super) fn answered(&self) -> u64 {
        self.inner.locked().answered
    }

    /// Waits until calls have ended since the last time; for one task.
    pub(super) async fn more_answered(&self) {
        self.one_answered.notified().await;
    }

    /// At most `most` of the records after the first `known`, at most as many calls under way, and the totals, all of one
    /// moment.
    pub(super) fn look(
        &self,
        known: usize,
        most: usize,
    ) -> (Vec<CallRecord>, Vec<OpenCallRecord>, CallTotals) {
        let inner = self.inner.locked();
        let ended = inner.ended.iter().skip(known).take(most).cloned().collect();
        let open = inner.open.iter().flatten().take(most).map(OpenCallRecord::new).collect();
        (ended, open, inner.totals)
    }

    /// The calls under way, and how long they have taken.
    pub(super) fn under_way(&self) -> Vec<(CallLabel, Duration)> {
        let label = |CallRecord { server, tool, effect, .. }: &CallRecord| CallLabel {
            server: server.clone(),
            tool: tool.clone(),
            effect: *effect,
        };
        let inner = self.inner.locked();
        inner.open.iter().flatten().map(|open| (label(&open.record), open.begun.elapsed())).collect()
    }
}

fn cancelled(open: OpenEntry) -> CallRecord {
    let status = CallStatus::Error {
        reason: CallFault::Cancelled,
        error: "the program or branch ended while the call was in flight".to_owned(),
    };
    let duration = open.begun.elapsed();
    open.ended(status, duration, None)
}

/// A call under way. Dropping it without an end cancels it.
pub struct OpenCall {
    account: Arc<RunAccount>,
    tag: CallTag,
    begun: Instant,
}

impl OpenCall {
    /// A call that began at `begun`.
    pub fn begin(
        account: &Arc<RunAccount>,
        label: CallLabel,
        begun: Instant,
        place: Option<Span>,
    ) -> OpenCall {
        let tag = account.ledger.open(label, begun, account.elapsed_at(begun), place);
        OpenCall { account: account.clone(), tag, begun }
    }

    /// Its identity.
    pub fn tag(&self) -> CallTag {
        self.tag
    }

    /// How long it has taken.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn change(&self, change: impl FnOnce(&mut CallRecord)) {
        if let Some(open) = self.account.ledger.inner.locked().open(self.tag) {
            change(&mut open.record);
        }
    }

    /// Sets the effect, once the tool is known.
    pub fn set_effect(&self, effect: Effect) {
        self.change(|record| record.effect = effect);
    }

    /// Sets where its program's text makes it, once that is known.
    pub fn set_place(&self, place: Span) {
        self.change(|record| record.place = Some(place));
    }

    /// Sets the hash of the arguments, once they are known.
    pub fn set_arguments_hash(&self, hash: ArgumentsHash) {
        self.change(|record| record.arguments_hash = Some(hash));
    }

    /// Marks it as answered from the cache: its server is not asked.
    pub fn set_cached(&self) {
        self.change(|record| record.cached = true);
    }

    /// Sets what the policy decided.
    pub fn set_ruling(&self, ruling: PolicyRuling) {
        self.change(|record| record.ruling = Some(Box::new(ruling)));
    }

    /// Ends it. A call that was cancelled meanwhile stays cancelled.
    pub fn end(self, status: CallStatus, duration: Duration, bytes: Option<u64>) {
        let mut inner = self.account.ledger.inner.locked();
        if let Some(open) = inner.take(self.tag) {
            inner.enter(open.ended(status, duration, bytes));
            inner.answered += 1;
            drop(inner);
            self.account.ledger.one_answered.notify_one();
        }
    }

    /// Removes it: the call was malformed, and was not sent.
    pub fn withdraw(self) {
        self.account.ledger.inner.locked().take(self.tag);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.account.ledger.cancel(self.tag);
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
        let [a, b, c, d, e] = ["a", "b", "c", "d", "e"]
            .map(|tool| OpenCall::begin(&account, label(tool), Instant::now(), None));
        d.end(CallStatus::Ok, Duration::ZERO, Some(1));
        drop(c);
        e.withdraw();
        assert_eq!(account.calls_in_flight().len(), 2);
        account.cancel_calls();
        // Too late: the call was already cancelled.
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

    #[test]
    fn records_are_bounded_and_totals_are_exact() {
        let limits = Limits { max_upstream_calls: 1_000_000, ..Limits::default() };
        let account = Arc::new(RunAccount::new(limits, Interrupt::default()));
        for _ in 0..100_000 {
            account.refuse_call(label("t"), Instant::now(), CallFault::CapExhausted, "cap_exhausted");
        }
        assert_eq!((account.ledger.take().len() as u64, account.call_totals().refused), (REFUSED, 100_000));
        for _ in 0..10_000 {
            let status = CallStatus::Error { reason: CallFault::ToolError, error: "é".repeat(100_000) };
            OpenCall::begin(&account, label("t"), Instant::now(), None).end(status, Duration::ZERO, Some(2));
        }
        let kept = account.take_ledger();
        let bytes: usize = kept.iter().map(CallRecord::bytes).sum();
        assert!(kept.len() > 1_000 && bytes <= ROOM + 4_096, "{} records, {bytes} bytes", kept.len());
        let totals = account.call_totals();
        assert_eq!((totals.count(), totals.failed.bytes), (110_000, 20_000));
    }
}
