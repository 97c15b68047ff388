//! What a guest is given.

use super::{CallId, Reply};
use crate::run::RunId;
use crate::run::account::RunAccount;
use ptc_vm::Preemption;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// The place of a guest on its worker.
pub struct Seat {
    /// Budget, ledger, deadline and interrupt of its run.
    pub account: Arc<RunAccount>,
    /// How others work for it.
    pub port: Port,
    /// How native work of the guest gives its turn back: what polls it can be suspended half-way.
    pub preemption: Preemption,
}

/// Where replies go.
pub trait ReplySink: Send + Sync {
    /// Leaves the reply for the worker of the run.
    fn deliver(&self, run: RunId, call: CallId, reply: Reply);
}

/// Lets the I/O runtime work for a run.
pub struct Port {
    io: Handle,
    mailbox: Arc<dyn ReplySink>,
    run: RunId,
}

/// Work under way. Dropping it stops the work.
pub struct Errand(AbortHandle);

impl Port {
    pub(crate) fn new(io: Handle, mailbox: Arc<dyn ReplySink>, run: RunId) -> Port {
        Port { io, mailbox, run }
    }

    /// Lets the I/O runtime do `work`; what comes of it reaches [`super::Guest::answer`].
    #[must_use = "dropping it stops the work"]
    pub fn hand_out(&self, call: CallId, work: impl Future<Output = Reply> + Send + 'static) -> Errand {
        let (mailbox, run) = (self.mailbox.clone(), self.run);
        let task = self.io.spawn(async move {
            let reply = work.await;
            mailbox.deliver(run, call, reply);
        });
        Errand(task.abort_handle())
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        self.0.abort();
    }
}
