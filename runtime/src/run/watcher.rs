//! How a caller follows one run.

use super::account::RunAccount;
use super::limits::Limits;
use super::outcome::{Ending, Failure, Outcome};
use super::release::release;
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
        Recipient { watcher: Some(watcher), interrupt, limits, secrets }
    }

    pub(crate) fn send(mut self, mut outcome: Outcome) {
        if let Some(watcher) = self.watcher.take() {
            release(&mut outcome, &self.secrets);
            watcher.ended(outcome);
        }
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
