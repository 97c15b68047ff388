//! How a caller follows one run.

use super::account::RunAccount;
use super::limits::Limits;
use super::outcome::{CallRecord, Ending, Failure, Outcome};
use super::release::{clean_call, release};
use crate::secrets::SecretRegistry;
use ptc_vm::Interrupt;
use tokio::sync::oneshot;

/// Told how one run goes. Called on the runtime's threads, so it must be quick and must not block.
pub trait RunWatcher: Send {
    /// The program has begun, or ended before it could.
    fn begun(&mut self) {}

    /// The program waits for upstream servers and holds this many live bytes meanwhile.
    fn suspended(&mut self, _live_bytes: u64) {}

    /// A suspended program can run again.
    fn resumed(&mut self) {}

    /// One more upstream call has ended, in whatever way: how many have in this run.
    fn call_ended(&mut self, _ended: u64) {}

    /// It wants to know of lines and calls while the run goes on. Asked once, before the run begins.
    fn follows(&self) -> bool {
        false
    }

    /// The run has printed a line, of whoever [follows](RunWatcher::follows). What is printed is seen at the end of a
    /// turn, and what branches print when they have ended.
    fn printed(&mut self, _line: &str) {}

    /// A call has ended, of whoever [follows](RunWatcher::follows).
    fn called(&mut self, _call: &CallRecord) {}

    /// The run is over. Called exactly once, whatever happens to the run.
    fn ended(self: Box<Self>, outcome: Outcome);
}

impl RunWatcher for oneshot::Sender<Outcome> {
    fn ended(self: Box<Self>, outcome: Outcome) {
        // The caller may have given up in this instant.
        let _ = self.send(outcome);
    }
}

/// The watcher of one run on its way through queue and worker. Dropped without an outcome, it tells of a
/// cancelled run, or of a defect: no caller waits for ever. Nothing reaches the watcher but through here, and
/// nothing passes here with a secret in it.
pub(crate) struct Recipient {
    watcher: Option<Box<dyn RunWatcher>>,
    /// What the watcher was told, if it follows the run.
    told: Option<Told>,
    interrupt: Interrupt,
    limits: Limits,
    secrets: SecretRegistry,
}

impl Recipient {
    pub(crate) fn new(
        watcher: Box<dyn RunWatcher>,
        interrupt: Interrupt,
        limits: Limits,
        secrets: SecretRegistry,
    ) -> Recipient {
        let told = watcher.follows().then(Told::default);
        Recipient { watcher: Some(watcher), told, interrupt, limits, secrets }
    }

    pub(crate) fn send(mut self, mut outcome: Outcome) {
        self.follow(&outcome.prints, |known| {
            outcome.upstream_calls.get(known..).unwrap_or_default().to_vec()
        });
        if let Some(watcher) = self.watcher.take() {
            release(&mut outcome, &self.secrets);
            watcher.ended(outcome);
        }
    }

    /// Somebody wants to know of lines and calls.
    pub(crate) fn follows(&self) -> bool {
        self.told.is_some()
    }

    /// Passes on the lines and calls that the watcher does not know yet; `calls` gives those after so many.
    pub(crate) fn follow(&mut self, lines: &[String], calls: impl FnOnce(usize) -> Vec<CallRecord>) {
        let (Some(told), Some(watcher)) = (&mut self.told, &mut self.watcher) else { return };
        // Answers come before a turn, lines in it.
        for mut call in calls(told.calls) {
            clean_call(&mut call, &self.secrets);
            watcher.called(&call);
            told.calls += 1;
        }
        for line in lines.iter().skip(told.lines) {
            watcher.printed(&self.secrets.scrub(line));
        }
        told.lines = told.lines.max(lines.len());
    }

    pub(crate) fn begun(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            watcher.begun();
        }
    }

    pub(crate) fn suspended(&mut self, live_bytes: u64) {
        if let Some(watcher) = &mut self.watcher {
            watcher.suspended(live_bytes);
        }
    }

    pub(crate) fn resumed(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            watcher.resumed();
        }
    }

    pub(crate) fn call_ended(&mut self, ended: u64) {
        if let Some(watcher) = &mut self.watcher {
            watcher.call_ended(ended);
        }
    }
}

/// How much of a run its watcher knows.
#[derive(Default)]
struct Told {
    lines: usize,
    calls: usize,
}

impl Drop for Recipient {
    fn drop(&mut self) {
        let Some(watcher) = self.watcher.take() else { return };
        let failure = match self.interrupt.get() {
            Some(_) => Failure::cancelled(),
            None => Failure::defect("the program could not be started"),
        };
        let account = RunAccount::new(self.limits, self.interrupt.clone());
        let mut outcome = Outcome::of(Ending::failed(failure), &account);
        release(&mut outcome, &self.secrets);
        watcher.ended(outcome);
    }
}
