//! How a caller follows one run.

use crate::exec::queue::RunHandle;
use crate::guest::lisp::rendering;
use crate::run::account::RunAccount;
use crate::run::limits::Limits;
use crate::run::outcome::Outcome;
use crate::run::release::release;
use crate::secrets::SecretRegistry;
use std::sync::Arc;
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
    handle: Arc<RunHandle>,
    limits: Limits,
    secrets: SecretRegistry,
    calls_ended: u64,
}

impl Recipient {
    pub(crate) fn new(
        watcher: Box<dyn RunWatcher>,
        handle: Arc<RunHandle>,
        limits: Limits,
        secrets: SecretRegistry,
    ) -> Recipient {
        Recipient { watcher: Some(watcher), handle, limits, secrets, calls_ended: 0 }
    }

    pub(crate) fn send(mut self, outcome: Outcome) {
        if let Some(watcher) = self.watcher.take() {
            watcher.ended(release(outcome, &self.secrets));
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

    pub(crate) fn call_ended(&mut self) {
        self.calls_ended += 1;
        if let Some(watcher) = &mut self.watcher {
            watcher.call_ended(self.calls_ended);
        }
    }
}

impl Drop for Recipient {
    fn drop(&mut self) {
        let Some(watcher) = self.watcher.take() else { return };
        let failure = match self.handle.interrupt.get() {
            Some(_) => rendering::cancelled(),
            None => rendering::defect("the program could not be started"),
        };
        let context = RunAccount::new(self.limits, self.handle.interrupt.clone());
        watcher.ended(release(rendering::without_isolate(failure, &context), &self.secrets));
    }
}
