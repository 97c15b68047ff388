//! Holds the account of one run of a program or script, which records the calls and time that the run has used and
//! enforces its limits. It also holds the context of the run's calls: client, trace, session, plan, journal.

mod clock;
pub(crate) mod flows;
mod plan;

pub use super::ledger::{CallLabel, CallTag};
pub use plan::{PlannedCall, ProgramPlan};
pub use plan::{Planner, RunPlan};

use super::client::asker::{CallAsker, CallOrigin};
use super::client::{CallingClient, ProgressListener};
use super::ledger::{Ledger, OpenCallRecord};
use super::limits::Limits;
use super::outcome::{CallFault, CallRecord};
use super::outgoing::Outgoing;
use super::totals::CallTotals;
use super::trace::TraceContext;
use crate::journal::RunJournal;
use clock::RunClock;
use flows::RunFlows;
use ptc_base::files::random;
use ptc_base::secrets::{Cut, shortened};
use ptc_base::sync::Locked;
use ptc_vm::{Interrupt, InterruptKind};
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// Limit of notes of one run.
const MOST_NOTES: usize = 10;

/// Limit of further notes, which say that something is missing.
const MOST_LOSSES: usize = 6;

/// Limit of texts of discovery that are recognized in an answer.
const MOST_DISCOVERED: usize = 5_000;

/// Size limit of one note.
const NOTE_TEXT: Cut = Cut::Bytes(4_096);

/// Time that a call leaves its program to handle a timeout; at most a tenth of the program's time.
const MARGIN: Duration = Duration::from_millis(500);

/// Timeout of a call relative to the end of its run: large enough that the run ends first.
const BEYOND: Duration = Duration::from_secs(60);

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The notes of a run, in order.
#[derive(Default)]
struct Notes {
    texts: Vec<String>,
    /// How many of them say that something is missing.
    losses: usize,
}

/// The account of one run. Everything that works for the run shares it.
pub struct RunAccount {
    limits: Limits,
    interrupt: Interrupt,
    clock: RunClock,
    calls: AtomicU32,
    /// Calls to servers that have a limit of calls per program.
    calls_by_server: Mutex<HashMap<String, u32>>,
    discoveries: AtomicU32,
    /// Servers with listed tools.
    listed: Mutex<HashSet<String>>,
    waiting_bytes: AtomicU64,
    outgoing: Arc<Outgoing>,
    /// Microseconds.
    longest_encoding: AtomicU64,
    /// Calls may take all the time that is left.
    is_margin_dropped: AtomicBool,
    notes: Mutex<Notes>,
    /// Hashes of the texts that discovery has given.
    discovered: Mutex<HashSet<u64>>,
    trace: OnceLock<TraceContext>,
    client: OnceLock<CallingClient>,
    origin: OnceLock<CallOrigin>,
    session: OnceLock<(Weak<dyn Any + Send + Sync>, u64)>,
    /// Unique among the runs of the process, once it is asked for.
    serial: OnceLock<u64>,
    progress: OnceLock<Arc<dyn ProgressListener>>,
    plan: RunPlan,
    journal: OnceLock<Arc<RunJournal>>,
    pub(super) ledger: Ledger,
    flows: RunFlows,
}

impl RunAccount {
    /// The account of a run that begins now.
    pub fn new(limits: Limits, interrupt: Interrupt) -> RunAccount {
        RunAccount {
            limits,
            interrupt,
            clock: RunClock::new(),
            calls: AtomicU32::new(0),
            calls_by_server: Mutex::default(),
            discoveries: AtomicU32::new(0),
            listed: Mutex::default(),
            waiting_bytes: AtomicU64::new(0),
            outgoing: Outgoing::new(limits.memory_bytes),
            longest_encoding: AtomicU64::new(0),
            is_margin_dropped: AtomicBool::new(false),
            notes: Mutex::default(),
            discovered: Mutex::default(),
            trace: OnceLock::new(),
            client: OnceLock::new(),
            origin: OnceLock::new(),
            session: OnceLock::new(),
            serial: OnceLock::new(),
            progress: OnceLock::new(),
            plan: RunPlan::default(),
            journal: OnceLock::new(),
            ledger: Ledger::default(),
            flows: RunFlows::default(),
        }
    }

    /// The budgets.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// When the time limit is reached, unless the run waits for a start until then; `None` if that is beyond the
    /// range of the clock. It moves while the run waits for a start.
    pub fn deadline(&self) -> Option<Instant> {
        self.clock.end_of(self.limits.timeout())
    }

    /// True if the time of the run is used up.
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.clock.used_at(now) >= self.limits.timeout()
    }

    /// The clock of the run stands still until the guard is dropped: it waits for a server that starts, or for a person.
    pub fn wait_for_start(self: &Arc<RunAccount>) -> StartWait {
        self.clock.pause();
        StartWait(self.clone())
    }

    /// How long the run has taken, starts of servers included.
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed_at(Instant::now())
    }

    /// How long the run had taken at `moment`.
    pub(crate) fn elapsed_at(&self, moment: Instant) -> Duration {
        self.clock.elapsed_at(moment)
    }

    /// Time until the deadline.
    pub fn time_left(&self) -> Duration {
        self.limits.timeout().saturating_sub(self.clock.used_at(Instant::now()))
    }

    /// From now on a call may take all the time that is left. When the time is up, the run ends, and not a
    /// call, because the program could ignore its failure.
    pub fn drop_call_margin(&self) {
        self.is_margin_dropped.store(true, Ordering::Relaxed);
    }

    /// Timeout of a tool's call that begins at `moment` and wants this much time.
    pub fn tool_timeout_at(&self, moment: Instant, wanted: Duration) -> Duration {
        match self.is_margin_dropped.load(Ordering::Relaxed) {
            true => {
                let left = self.limits.timeout().saturating_sub(self.clock.used_at(moment));
                wanted.min(left.saturating_add(BEYOND))
            }
            false => self.call_timeout_at(moment, wanted),
        }
    }

    /// [`RunAccount::call_timeout`] at `moment`.
    fn call_timeout_at(&self, moment: Instant, wanted: Duration) -> Duration {
        let left = self.limits.timeout().saturating_sub(self.clock.used_at(moment));
        let margin = MARGIN.min(self.limits.timeout() / 10);
        wanted.min(left.saturating_sub(margin).max(left / 2))
    }

    /// Records how long it took to encode the arguments of a call.
    pub fn encoded_in(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.longest_encoding.fetch_max(micros, Ordering::Relaxed);
    }

    /// The longest time that encoding the arguments of a call took: an estimate for the next call.
    pub fn longest_encoding(&self) -> Duration {
        Duration::from_micros(self.longest_encoding.load(Ordering::Relaxed))
    }

    /// Asks the program to stop.
    pub fn interrupt(&self, kind: InterruptKind) {
        self.interrupt.set(kind);
    }

    /// The flag that asks the program to stop, for code that checks it often.
    pub fn interrupt_flag(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Why the program was asked to stop.
    pub fn interrupted(&self) -> Option<InterruptKind> {
        self.interrupt.get()
    }

    /// Takes one call from the budget; false when that is used up. Exact under concurrency.
    pub fn take_call(&self) -> bool {
        let limit = u32::try_from(self.limits.max_upstream_calls).unwrap_or(u32::MAX);
        let take = |made: u32| (made < limit).then(|| made + 1);
        self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Takes one call from the limit that a server sets per program; false when that is used up.
    pub fn take_call_of(&self, server: &str, limit: u32) -> bool {
        let mut calls = self.calls_by_server.locked();
        let made = calls.entry(server.to_owned()).or_default();
        let granted = *made < limit;
        *made += u32::from(granted);
        granted
    }

    /// Counts a call that was made in an earlier process for the limit that a server sets per program.
    pub fn count_call_of(&self, server: &str) {
        *self.calls_by_server.locked().entry(server.to_owned()).or_default() += 1;
    }

    /// Gives a call back to the budget and to the limit of its server: it is made anew.
    pub fn return_call(&self, server: &str) {
        let less = |made: u32| made.checked_sub(1);
        // A call that was taken was counted.
        let _ = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.calls_by_server
            .locked()
            .entry(server.to_owned())
            .and_modify(|made| *made = made.saturating_sub(1));
    }

    /// Calls taken from the budget.
    pub fn calls_made(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Takes one look at the upstreams' tools from its budget, which is separate from that of calls; false
    /// when that is used up.
    pub fn take_discovery(&self) -> bool {
        let limit = u32::try_from(self.limits.max_catalog_ops).unwrap_or(u32::MAX);
        let take = |made: u32| (made < limit).then(|| made + 1);
        self.discoveries.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// True for the first list of a server's tools. It is not charged, so a program can list the tools of all servers,
    /// however many there are; unless no look at tools is allowed.
    pub fn is_first_list(&self, server: &str) -> bool {
        self.limits.max_catalog_ops > 0 && self.listed.locked().insert(server.to_owned())
    }

    /// Records texts that discovery gives to the program.
    pub fn discover<'t>(&self, texts: impl Iterator<Item = &'t str>) {
        let mut discovered = self.discovered.locked();
        let room = MOST_DISCOVERED.saturating_sub(discovered.len());
        discovered.extend(texts.take(room).map(hash));
    }

    /// True for a text that discovery has given.
    pub fn is_discovered(&self, text: &str) -> bool {
        self.discovered.locked().contains(&hash(text))
    }

    /// Adds a note for the client. Duplicates are dropped, the number of notes is limited, and long ones are
    /// cut.
    pub fn note(&self, text: String) {
        self.add_note(&text, false);
    }

    /// [`RunAccount::note`] for a note that says that something is missing: other notes take no room from it.
    pub fn note_loss(&self, text: &str) {
        self.add_note(text, true);
    }

    fn add_note(&self, text: &str, is_loss: bool) {
        let mut notes = self.notes.locked();
        let text = shortened(text, NOTE_TEXT);
        let has_room = match is_loss {
            true => notes.losses < MOST_LOSSES,
            false => notes.texts.len() - notes.losses < MOST_NOTES,
        };
        if has_room && !notes.texts.iter().any(|note| *note == text) {
            notes.texts.push(text.into_owned());
            notes.losses += usize::from(is_loss);
        }
    }

    /// Takes the notes, in order.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.locked()).texts
    }

    /// Sets the caller's trace. Called at most once, before the run calls anything.
    pub fn set_trace(&self, trace: TraceContext) {
        let _ = self.trace.set(trace);
    }

    /// The trace that upstreams get.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.trace.get()
    }

    /// Sets the client. Called at most once, before the run calls anything.
    pub fn set_client(&self, client: CallingClient) {
        let _ = self.client.set(client);
    }

    /// The client that upstreams may elicit from.
    pub fn client(&self) -> Option<&CallingClient> {
        self.client.get()
    }

    /// Its data flows.
    pub fn flows(&self) -> &RunFlows {
        &self.flows
    }

    /// Sets where the calls of the run come from. The first value counts.
    pub fn set_origin(&self, origin: CallOrigin) {
        let _ = self.origin.set(origin);
    }

    /// Sets the session that the run belongs to, with its number ([`session_number`]). The first value counts.
    pub fn set_session(&self, session: Weak<dyn Any + Send + Sync>, id: u64) {
        let _ = self.session.set((session, id));
    }

    /// The session that the run belongs to.
    pub(crate) fn session(&self) -> Option<&Weak<dyn Any + Send + Sync>> {
        self.session.get().map(|(session, _)| session)
    }

    /// A name of the session, or of a run without one, that no other process has.
    pub(crate) fn session_name(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        static PROCESS: LazyLock<u64> = LazyLock::new(random);
        match self.session.get() {
            Some((_, id)) => format!("session {:x}-{id}", *PROCESS),
            None => {
                let serial = self.serial.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed));
                format!("run {:x}-{serial}", *PROCESS)
            }
        }
    }

    /// What its program's text shows of its calls.
    pub fn plan(&self) -> &RunPlan {
        &self.plan
    }

    /// Who makes the calls of the run.
    pub fn asker(&self) -> CallAsker<'_> {
        CallAsker {
            origin: self.origin.get().copied().unwrap_or_default(),
            identity: self.client().map(|client| &client.identity),
        }
    }

    /// Sets the receiver of tools' progress. Called at most once, before the run calls anything.
    pub fn set_progress_listener(&self, listener: Arc<dyn ProgressListener>) {
        let _ = self.progress.set(listener);
    }

    /// The receiver of tools' progress, while it wants any.
    pub fn progress_listener(&self) -> Option<&Arc<dyn ProgressListener>> {
        self.progress.get().filter(|listener| listener.listens())
    }

    /// Sets the journal. Called at most once, before the run calls anything.
    pub fn set_journal(&self, journal: Arc<RunJournal>) {
        let _ = self.journal.set(journal);
    }

    /// The journal, if the run has one.
    pub fn journal(&self) -> Option<&Arc<RunJournal>> {
        self.journal.get()
    }

    /// Calls left in the budget.
    pub fn calls_left(&self) -> u64 {
        self.limits.max_upstream_calls.saturating_sub(u64::from(self.calls_made()))
    }

    /// Counts bytes that wait for the program against its memory, until the result is dropped; `None` when
    /// they do not fit.
    pub fn hold(self: &Arc<RunAccount>, bytes: usize) -> Option<Held> {
        let bytes = bytes as u64;
        let limit = self.limits.memory_bytes;
        let add = |held: u64| held.checked_add(bytes).filter(|&sum| sum <= limit);
        self.waiting_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Held { account: self.clone(), bytes })
    }

    /// Encoded arguments that are not sent yet.
    pub fn outgoing(&self) -> &Arc<Outgoing> {
        &self.outgoing
    }

    /// Bytes outside the isolate that belong to the program: results that wait for it, and arguments that
    /// wait to be sent.
    pub fn held_bytes(&self) -> u64 {
        self.waiting_bytes.load(Ordering::Relaxed) + self.outgoing.bytes() as u64
    }

    /// Calls under way, and for how long, in the order in which they began.
    pub fn calls_in_flight(&self) -> Vec<(CallLabel, Duration)> {
        self.ledger.under_way()
    }

    /// Number of calls that have ended and were not cancelled.
    pub fn calls_answered(&self) -> u64 {
        self.ledger.answered()
    }

    /// Waits until calls have ended since the last time. For the one task that holds the account of a run.
    pub async fn more_calls_answered(&self) {
        self.ledger.more_answered().await;
    }

    /// Records of the calls that have ended so far, in order of completion, without the first `known`.
    pub fn calls_ended_after(&self, known: usize) -> Vec<CallRecord> {
        self.ledger.ended(known)
    }

    /// The state of its calls at this moment: see [`RunView::look`](super::watcher::RunView::look).
    pub(super) fn look(
        &self,
        known: usize,
        most: usize,
    ) -> (Vec<CallRecord>, Vec<OpenCallRecord>, CallTotals) {
        self.ledger.look(known, most)
    }

    /// Totals of the calls that have ended so far.
    pub fn call_totals(&self) -> CallTotals {
        self.ledger.totals()
    }

    /// Records a call that began at `begun` and was refused because a budget was used up.
    pub fn refuse_call(&self, label: CallLabel, begun: Instant, fault: CallFault, error: &str) {
        self.ledger.refuse(label, self.elapsed_at(begun), fault, error);
    }

    /// Records a call as cancelled, if it is under way.
    pub fn cancel_call(&self, call: CallTag) {
        self.ledger.cancel(call);
    }

    /// Records every call that is under way as cancelled.
    pub fn cancel_calls(&self) {
        self.ledger.cancel_all();
    }

    /// Takes the ledger, in completion order.
    pub fn take_ledger(&self) -> Vec<CallRecord> {
        self.ledger.take()
    }
}

/// A wait for the start of a server; the clock of the run goes on when it is dropped.
pub struct StartWait(Arc<RunAccount>);

impl Drop for StartWait {
    fn drop(&mut self) {
        self.0.clock.go_on();
    }
}

/// Bytes that wait for a program; dropping it releases them.
pub struct Held {
    account: Arc<RunAccount>,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.waiting_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A number for a new session, of programs or of scripts. No other session of this process has it.
pub fn session_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(limits: Limits) -> RunAccount {
        RunAccount::new(limits, Interrupt::default())
    }

    #[test]
    fn the_call_budget_is_exact_across_threads() {
        let account = account(Limits { max_upstream_calls: 50, ..Limits::default() });
        let granted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| (0..20).filter(|_| account.take_call()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((granted, account.calls_made()), (50, 50));
    }

    #[test]
    fn notes_of_losses_always_have_room() {
        let account = account(Limits::default());
        (0..20).for_each(|number| account.note(format!("note {number}")));
        (0..20).for_each(|number| account.note_loss(&format!("loss {}", number / 2)));
        let notes = account.take_notes();
        assert_eq!((notes.len(), notes[9].as_str(), notes[10].as_str()), (16, "note 9", "loss 0"));
        assert_eq!(notes[15], "loss 5");
    }

    #[test]
    fn a_call_leaves_time_to_answer() {
        let timeout = |limit, wanted| {
            let account = account(Limits { timeout_ms: limit, ..Limits::default() });
            account.call_timeout_at(Instant::now(), Duration::from_millis(wanted))
        };
        let near = |given: Duration, want| {
            given <= Duration::from_millis(want) && given.as_millis() > want as u128 / 2
        };
        assert!(near(timeout(10_000, 30_000), 9_500));
        assert!(near(timeout(1_000, 30_000), 900));
        assert_eq!(timeout(120_000, 400), Duration::from_millis(400));
        assert_eq!(timeout(0, 400), Duration::ZERO);
    }

    #[test]
    fn a_call_of_a_patient_run_never_ends_before_it() {
        let limits = Limits { timeout_ms: 120_000, upstream_call_timeout_ms: u64::MAX, ..Limits::default() };
        let account = account(limits);
        let timeout = |wanted| account.tool_timeout_at(Instant::now(), wanted);
        let most = limits.upstream_call_timeout();
        assert!(timeout(most) < limits.timeout());
        account.drop_call_margin();
        assert!(timeout(most) > limits.timeout());
        assert_eq!(timeout(Duration::from_millis(400)), Duration::from_millis(400));
    }

    #[test]
    fn waiting_bytes_stop_at_the_memory_limit() {
        let account = Arc::new(account(Limits { memory_bytes: 100, ..Limits::default() }));
        let held = account.hold(60);
        assert!(held.is_some() && account.hold(60).is_none());
        assert_eq!(account.held_bytes(), 60);
        drop(held);
        assert!(account.hold(100).is_some());
    }
}
