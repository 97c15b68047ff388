//! Defines the handles with which an application follows a running program: a future of its outcome, and a stream of
//! its events (printed lines, tool calls, outcome). Dropping a handle cancels the program.

use crate::exec::handle::Submitted;
use ptc_calls::run::outcome::{CallRecord, Failure, Outcome};
use ptc_calls::run::watcher::RunWatcher;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// A running program; resolves to its outcome. Dropping it asks for its cancellation: its calls are dropped soon after, and
/// its session is busy until then.
pub struct Run {
    outcome: oneshot::Receiver<Outcome>,
    /// `None` once the outcome has arrived.
    submitted: Option<Submitted>,
}

impl Run {
    pub(crate) fn begin(submit: impl FnOnce(Box<dyn RunWatcher>) -> Submitted) -> Run {
        let (sender, outcome) = oneshot::channel();
        Run { submitted: Some(submit(Box::new(sender))), outcome }
    }

    pub(crate) fn try_begin<E>(
        submit: impl FnOnce(Box<dyn RunWatcher>) -> Result<Submitted, E>,
    ) -> Result<Run, E> {
        let (sender, outcome) = oneshot::channel();
        Ok(Run { submitted: Some(submit(Box::new(sender))?), outcome })
    }
}

impl Future for Run {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = std::task::ready!(Pin::new(&mut self.outcome).poll(cx));
        self.submitted = None;
        Poll::Ready(outcome.unwrap_or_else(|_| lost()))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(submitted) = self.submitted.take() {
            submitted.cancel();
        }
    }
}

/// A watcher is always given an outcome, so a closed channel is a defect.
fn lost() -> Outcome {
    Outcome::failed(Failure::defect("the program was lost"))
}

/// An event of a running program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunEvent {
    /// It printed a line. Lines of the branches of a `pmap` arrive when all of them have ended.
    Printed(String),
    /// A tool call has ended.
    Called(CallRecord),
    /// The program has ended. This is the last event; its outcome repeats all lines and calls.
    Ended(Outcome),
}

/// The events of a running program, one by one from [`RunStream::next`]. Dropping it cancels the program.
///
/// Unread events are kept: the limits of the program (printed bytes, calls) bound their size.
pub struct RunStream {
    events: mpsc::UnboundedReceiver<RunEvent>,
    /// `None` once the program has ended.
    submitted: Option<Submitted>,
}

impl RunStream {
    pub(crate) fn begin(submit: impl FnOnce(Box<dyn RunWatcher>) -> Submitted) -> RunStream {
        let (sender, events) = mpsc::unbounded_channel();
        RunStream { submitted: Some(submit(Box::new(Follower(sender)))), events }
    }

    /// The next event; `None` after the last one. Cancel safe.
    pub async fn next(&mut self) -> Option<RunEvent> {
        self.submitted.as_ref()?;
        let event = self.events.recv().await.unwrap_or_else(|| RunEvent::Ended(lost()));
        if matches!(event, RunEvent::Ended(_)) {
            self.submitted = None;
        }
        Some(event)
    }
}

impl Drop for RunStream {
    fn drop(&mut self) {
        if let Some(submitted) = self.submitted.take() {
            submitted.cancel();
        }
    }
}

/// Sends the events of a run to its reader, which may be gone.
struct Follower(mpsc::UnboundedSender<RunEvent>);

impl RunWatcher for Follower {
    fn follows(&mut self) -> bool {
        true
    }

    fn printed(&mut self, line: &str) {
        let _ = self.0.send(RunEvent::Printed(line.to_owned()));
    }

    fn called(&mut self, call: &CallRecord) {
        let _ = self.0.send(RunEvent::Called(call.clone()));
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        let _ = self.0.send(RunEvent::Ended(outcome));
    }
}
