//! What a guest is given.

use super::departures::Departures;
use super::{CallId, Reply};
use crate::run::RunId;
use crate::run::account::RunAccount;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, abortable};
use ptc_vm::Preemption;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;

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
    /// Leaves replies for the worker of the run.
    fn deliver(&self, run: RunId, replies: Vec<(CallId, Reply)>);
}

/// Lets the I/O runtime work for a run.
pub struct Port(Rc<Departures>);

/// Work under way. Dropping it stops the work.
pub struct Errand(AbortHandle);

impl Port {
    pub(crate) fn new(departures: Rc<Departures>) -> Port {
        Port(departures)
    }

    /// Lets the I/O runtime do `work`; what comes of it reaches [`super::Guest::answer`]. It begins with the end of this
    /// turn at the latest. Work of one run shares a task, so what keeps its thread busy keeps other work of the same run
    /// waiting.
    #[must_use = "dropping it stops the work"]
    pub fn hand_out(&self, call: CallId, work: impl Future<Output = Reply> + Send + 'static) -> Errand {
        let (work, handle) = abortable(work);
        let work = AssertUnwindSafe(work).catch_unwind();
        self.0.add(Box::pin(async move {
            // What was stopped, or has met a defect, has no reply.
            Some((call, work.await.ok()?.ok()?))
        }));
        Errand(handle)
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        self.0.abort();
    }
}
