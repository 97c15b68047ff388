//! What a guest is given.

use super::departures::{Departure, Departures, Errand};
use super::{CallId, Reply};
use crate::broker::DirectCall;
use crate::run::RunId;
use crate::run::account::RunAccount;
use ptc_vm::Preemption;
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

impl Port {
    pub(crate) fn new(departures: Rc<Departures>) -> Port {
        Port(departures)
    }

    /// Lets the I/O runtime do `work`; what comes of it reaches [`super::Guest::answer`]. It begins with the end of this
    /// turn at the latest. Work of one run shares a task, so what keeps its thread busy keeps other work of the same run
    /// waiting.
    #[must_use = "dropping it stops the work"]
    pub fn hand_out(&self, call: CallId, work: impl Future<Output = Reply> + Send + 'static) -> Errand {
        self.0.add(call, Departure::Work(Box::pin(work)))
    }

    /// [`Port::hand_out`] for a call of a function in this process.
    #[must_use = "dropping it stops the call"]
    pub(crate) fn hand_out_call(&self, call: CallId, direct: DirectCall) -> Errand {
        self.0.add(call, Departure::Call(direct))
    }
}
