//! Lets a caller follow one run, by events (progress, printed lines, ended calls, the outcome) and by snapshots of its
//! calls, in which secrets are redacted.

use super::account::RunAccount;
use super::client::ProgressListener;
pub use super::ledger::OpenCallRecord;
use super::outcome::{CallRecord, Failure, Outcome};
use super::release::{clean_call, clean_name, release};
use super::totals::CallTotals;
use crate::journal::OutcomeRecord;
use ptc_base::panics::{caught, panic_text};
use ptc_base::secrets::SecretRegistry;
use ptc_vm::Interrupt;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// Receives the events of one run. Its methods are called on the runtime's threads, so they must be quick and
/// must not block.
pub trait RunWatcher: Send {
    /// The watcher that gets every event which this one does not handle itself.
    fn inner(&mut self) -> Option<&mut dyn RunWatcher> {
        None
    }

    /// The run has an account, which `view` looks at while the run goes on. Called once, before the run begins.
    fn entered(&mut self, view: RunView) {
        self.inner().into_iter().for_each(|inner| inner.entered(view.clone()));
    }

    /// The program has begun, or ended before it could.
    fn begun(&mut self) {
        self.inner().into_iter().for_each(|inner| inner.begun());
    }

    /// The program waits for upstream servers and holds this many live bytes meanwhile.
    fn suspended(&mut self, live_bytes: u64) {
        self.inner().into_iter().for_each(|inner| inner.suspended(live_bytes));
    }

    /// A suspended program can run again.
    fn resumed(&mut self) {
        self.inner().into_iter().for_each(|inner| inner.resumed());
    }

    /// Another upstream call has ended in any way; `ended` is the number of calls that have.
    fn call_ended(&mut self, ended: u64) {
        self.inner().into_iter().for_each(|inner| inner.call_ended(ended));
    }

    /// Whether it wants lines and calls while the run goes on. Called once, before the run begins.
    fn follows(&mut self) -> bool {
        self.inner().is_some_and(|inner| inner.follows())
    }

    /// Receives the progress of the tools that the run calls. Called once, before the run begins.
    fn progress_listener(&mut self) -> Option<Arc<dyn ProgressListener>> {
        self.inner()?.progress_listener()
    }

    /// The run has printed a line; only for a watcher that [follows](RunWatcher::follows). Lines are
    /// delivered at the end of a quantum, those of branches when the branches have ended.
    fn printed(&mut self, line: &str) {
        self.inner().into_iter().for_each(|inner| inner.printed(line));
    }

    /// A call has ended; only for a watcher that [follows](RunWatcher::follows).
    fn called(&mut self, call: &CallRecord) {
        self.inner().into_iter().for_each(|inner| inner.called(call));
    }

    /// The run has ended. Called exactly once, whatever happens to the run.
    fn ended(self: Box<Self>, outcome: Outcome);
}

impl RunWatcher for oneshot::Sender<Outcome> {
    fn ended(self: Box<Self>, outcome: Outcome) {
        // The receiver may have been dropped in this instant.
        let _ = self.send(outcome);
    }
}

/// Holds the watcher of one run. If it is dropped without an outcome, it reports that the run was cancelled
/// or met a defect, so no caller waits for ever. All events pass through here, and secrets are redacted here.
pub struct Recipient {
    watcher: Option<Box<dyn RunWatcher>>,
    /// What the watcher has been notified of, if it follows the run.
    reported: Option<Reported>,
    /// How many ended calls it has been notified of.
    calls_ended: u64,
    interrupt: Interrupt,
    secrets: SecretRegistry,
}

impl Recipient {
    /// The recipient of a run with this interrupt.
    pub fn new(mut watcher: Box<dyn RunWatcher>, interrupt: Interrupt, secrets: SecretRegistry) -> Recipient {
        let reported = watcher.follows().then(Reported::default);
        Recipient { watcher: Some(watcher), reported, calls_ended: 0, interrupt, secrets }
    }

    /// Ends a run: cancels its calls that are under way, completes its outcome, and delivers it with secrets redacted,
    /// after the lines and calls that are new to the watcher. Only the first end of a run counts. Never panics: a watcher
    /// that does gets no more lines and calls, but still the whole outcome.
    pub fn finish(&mut self, account: &RunAccount, mut outcome: Outcome) {
        if self.watcher.is_none() {
            return;
        }
        let answered = account.calls_answered();
        account.cancel_calls();
        if let (Some(mut reported), Some(watcher)) = (self.reported.take(), &mut self.watcher) {
            let calls = account.calls_ended_after(reported.calls);
            contain(|| reported.deliver(&mut **watcher, &self.secrets, &outcome.prints, calls));
        }
        contain(|| self.calls_ended(answered));
        outcome.complete(account);
        if let Some(journal) = account.journal() {
            journal.outcome(OutcomeRecord::from(&outcome));
        }
        if let Some(watcher) = self.watcher.take() {
            release(&mut outcome, &self.secrets);
            contain(|| watcher.ended(outcome));
        }
    }

    /// Whether the watcher wants lines and calls.
    pub fn follows(&self) -> bool {
        self.reported.is_some()
    }

    /// Delivers lines and calls that are new to the watcher; `calls` returns those after the first `n`.
    pub fn follow(&mut self, lines: &[String], calls: impl FnOnce(usize) -> Vec<CallRecord>) {
        // Taken out: a watcher that panics gets no more lines and calls.
        let (Some(mut reported), Some(watcher)) = (self.reported.take(), &mut self.watcher) else { return };
        let calls = calls(reported.calls);
        reported.deliver(&mut **watcher, &self.secrets, lines, calls);
        self.reported = Some(reported);
    }

    /// Gives the watcher a view of the run, and the run the listener of the watcher.
    pub fn entered(&mut self, account: &Arc<RunAccount>) {
        let Some(watcher) = &mut self.watcher else { return };
        watcher.entered(RunView { account: Arc::downgrade(account), secrets: self.secrets.clone() });
        if let Some(listener) = watcher.progress_listener() {
            account.set_progress_listener(listener);
        }
    }

    /// Reports that the run is on a worker.
    pub fn begun(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            watcher.begun();
        }
    }

    /// Reports that the run waits for calls and holds this many bytes.
    pub fn suspended(&mut self, live_bytes: u64) {
        if let Some(watcher) = &mut self.watcher {
            watcher.suspended(live_bytes);
        }
    }

    /// Reports that the run goes on.
    pub fn resumed(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            watcher.resumed();
        }
    }

    /// Reports each call that has ended since the last report; `ended` is the number of all that have.
    pub fn calls_ended(&mut self, ended: u64) {
        let Some(watcher) = &mut self.watcher else { return };
        while self.calls_ended < ended {
            self.calls_ended += 1;
            watcher.call_ended(self.calls_ended);
        }
    }
}

/// A view of a run that goes on. It keeps nothing of the run alive, and its reader delays no run.
#[derive(Clone)]
pub struct RunView {
    account: Weak<RunAccount>,
    secrets: SecretRegistry,
}

/// The calls of a run at one moment, without secrets.
#[derive(Clone, Debug)]
pub struct RunState {
    /// How long the run has taken.
    pub elapsed: Duration,
    /// Calls that have ended, in the order of their ends.
    pub ended: Vec<CallRecord>,
    /// Calls under way, in the order in which they began.
    pub open: Vec<OpenCallRecord>,
    /// Totals of all calls that have ended.
    pub totals: CallTotals,
}

impl RunView {
    /// The state of the run; `None` once it is over. Of the calls that have ended it has at most `most` after the first
    /// `known`; of those under way, the first `most`.
    pub fn look(&self, known: usize, most: usize) -> Option<RunState> {
        let account = self.account.upgrade()?;
        let (mut ended, mut open, totals) = account.look(known, most);
        ended.iter_mut().for_each(|call| clean_call(call, &self.secrets));
        for name in open.iter_mut().flat_map(|call| [&mut call.server, &mut call.tool]) {
            clean_name(name, &self.secrets);
        }
        Some(RunState { elapsed: account.elapsed(), ended, open, totals })
    }
}

impl fmt::Debug for RunView {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RunView").finish_non_exhaustive()
    }
}

/// How much of a run its watcher has been notified of.
#[derive(Default)]
struct Reported {
    lines: usize,
    calls: usize,
}

impl Reported {
    /// Delivers further calls, and those of the lines that are new. Replies arrive before a quantum, lines are printed in
    /// it.
    fn deliver(
        &mut self,
        watcher: &mut dyn RunWatcher,
        secrets: &SecretRegistry,
        lines: &[String],
        calls: Vec<CallRecord>,
    ) {
        for mut call in calls {
            clean_call(&mut call, secrets);
            self.calls += 1;
            watcher.called(&call);
        }
        for line in lines.iter().skip(self.lines) {
            watcher.printed(&secrets.scrub(line));
        }
        self.lines = self.lines.max(lines.len());
    }
}

impl Drop for Recipient {
    fn drop(&mut self) {
        let Some(watcher) = self.watcher.take() else { return };
        let failure = match self.interrupt.get() {
            Some(_) => Failure::cancelled(),
            None => Failure::defect("the program could not be started"),
        };
        let mut outcome = Outcome::failed(failure);
        release(&mut outcome, &self.secrets);
        contain(|| watcher.ended(outcome));
    }
}

/// Calls a watcher at the end of its run, where a panic would end the thread that other runs share.
fn contain(call: impl FnOnce()) {
    if let Err(panic) = caught(call) {
        tracing::error!(panic = panic_text(&*panic), "the watcher of a run hit a defect");
    }
}
