//! A guest that runs a future on the I/O runtime: it hands the future out, waits, and ends with its
//! result.

use super::{CallId, Guest, GuestContext, MakeGuest, Progress, Reply, TaskHandle};
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::limits::Limits;
use ptc_calls::run::outcome::{Ending, Failure, FailureKind};
use ptc_vm::{InterruptKind, Reason};
use std::pin::Pin;
use std::sync::Arc;

type Work = Pin<Box<dyn Future<Output = Ending> + Send>>;

/// The end of a run that was interrupted.
type Interrupted = Box<dyn Fn(InterruptKind, &Limits) -> Ending + Send>;

struct AsyncGuest {
    context: GuestContext,
    interrupted: Interrupted,
    work: Option<Work>,
    /// Dropping it stops the work.
    under_way: Option<TaskHandle>,
    end: Option<Box<Ending>>,
}

/// A guest that runs this future. The future is dropped when the run is cancelled or out of time; then
/// `interrupted` gives the ending.
pub fn async_guest<W: Future<Output = Ending> + Send + 'static, E: Into<Ending>>(
    interrupted: impl Fn(InterruptKind, &Limits) -> E + Send + 'static,
    work: impl FnOnce(Arc<RunAccount>) -> W + Send + 'static,
) -> MakeGuest {
    Box::new(move |context| {
        let work: Work = Box::pin(work(context.account.clone()));
        let interrupted: Interrupted = Box::new(move |kind, limits| interrupted(kind, limits).into());
        Ok(Box::new(AsyncGuest { context, interrupted, work: Some(work), under_way: None, end: None }))
    })
}

/// The default failure of an interrupted run.
pub fn interrupted(kind: InterruptKind, limits: &Limits) -> Failure {
    match kind {
        InterruptKind::Cancelled => Failure::cancelled(),
        InterruptKind::Deadline => Failure::new(
            FailureKind::from(Reason::Timeout),
            format!("no end within {} ms", limits.timeout_ms),
        ),
    }
}

impl Guest for AsyncGuest {
    fn advance(&mut self) -> Progress {
        if let Some(kind) = self.context.account.interrupted() {
            self.under_way = None;
            let end = (self.interrupted)(kind, self.context.account.limits());
            return Progress::Finished(Box::new(end));
        }
        if let Some(end) = self.end.take() {
            return Progress::Finished(end);
        }
        if let Some(work) = self.work.take() {
            let work = async move { Reply::Ended(Box::new(work.await)) };
            self.under_way = Some(self.context.port.hand_out(CallId(0), work));
        }
        Progress::Waiting
    }

    fn answer(&mut self, _: CallId, reply: Reply) {
        if let Reply::Ended(end) = reply {
            self.end = Some(end);
        }
    }

    fn live_bytes(&self) -> u64 {
        0
    }

    fn close(self: Box<Self>) {}
}
