//! Defines a run that is a future on the async runtime instead of code on a worker thread, because it only waits for
//! tools or another process.

use ptc_calls::run::account::RunAccount;
use ptc_calls::run::client::CallingClient;
use ptc_calls::run::limits::Limits;
use ptc_calls::run::outcome::{Failure, FailureKind, Outcome};
use ptc_calls::run::trace::TraceContext;
use ptc_vm::{InterruptKind, Reason};
use std::pin::Pin;
use std::sync::Arc;

/// The work of a run, up to its end.
pub(crate) type AsyncWork = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The end of a run that was interrupted.
type Interrupted = Box<dyn FnOnce(InterruptKind, &Limits) -> Outcome + Send>;

/// What a run on the I/O runtime does. `Runtime::submit_async` starts it.
pub struct AsyncRun {
    pub(crate) work: Box<dyn FnOnce(Arc<RunAccount>) -> AsyncWork + Send>,
    pub(crate) interrupted: Interrupted,
    trace: Option<TraceContext>,
    client: Option<CallingClient>,
}

impl AsyncRun {
    /// A run of this future. The future is dropped when the run is cancelled or out of time; then `interrupted`
    /// gives the ending.
    pub fn new<W: Future<Output = Outcome> + Send + 'static, E: Into<Outcome>>(
        interrupted: impl FnOnce(InterruptKind, &Limits) -> E + Send + 'static,
        work: impl FnOnce(Arc<RunAccount>) -> W + Send + 'static,
    ) -> AsyncRun {
        AsyncRun {
            work: Box::new(move |account| Box::pin(work(account))),
            interrupted: Box::new(move |kind, limits| interrupted(kind, limits).into()),
            trace: None,
            client: None,
        }
    }

    /// The trace of the caller, which its calls carry on.
    #[must_use]
    pub fn traced(self, trace: Option<TraceContext>) -> AsyncRun {
        AsyncRun { trace, ..self }
    }

    /// The client that upstreams may elicit from.
    #[must_use]
    pub fn asking(self, client: Option<CallingClient>) -> AsyncRun {
        AsyncRun { client, ..self }
    }

    /// Gives the account what is known of the caller.
    pub(crate) fn introduce(&mut self, account: &RunAccount) {
        if let Some(trace) = self.trace.take() {
            account.set_trace(trace);
        }
        if let Some(client) = self.client.take() {
            account.set_client(client);
        }
    }
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
