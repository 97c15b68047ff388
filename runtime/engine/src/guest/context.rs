//! What a guest is given to work with: its account, its port to the I/O runtime and its preemption.

use super::task_batch::{TaskBatch, TaskHandle};
use super::{CallId, Reply};
use ptc_calls::run::account::RunAccount;
use ptc_vm::Preemption;
use std::rc::Rc;
use std::sync::Arc;

/// The context of a guest on its worker.
pub struct GuestContext {
    /// Budget, ledger, deadline and interrupt of its run.
    pub account: Arc<RunAccount>,
    /// Starts work for it elsewhere.
    pub port: Port,
    /// Lets native work of the guest be suspended half-way at its polls.
    pub preemption: Preemption,
}

/// Starts work of a run on the I/O runtime.
pub struct Port(Rc<TaskBatch>);

impl Port {
    pub(crate) fn new(batch: Rc<TaskBatch>) -> Port {
        Port(batch)
    }

    /// Starts `work` on the I/O runtime; its reply reaches [`super::Guest::answer`]. It starts at the end of
    /// this quantum at the latest. Work of one run may share a task, so work that blocks its thread delays
    /// other work of the same run.
    #[must_use = "dropping it stops the work"]
    pub fn hand_out(&self, call: CallId, work: impl Future<Output = Reply> + Send + 'static) -> TaskHandle {
        self.0.add(call, work)
    }
}
