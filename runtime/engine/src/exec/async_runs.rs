//! Executes runs that only wait (for tools, or for a script in another process) as async tasks, so that they occupy no
//! worker thread. It enforces their deadlines and cancellation. The task holds the account of its run.

use super::handle::RunHandle;
use crate::guest::AsyncRun;
use ptc_base::panics::{contained, panic_text};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::limits::Limits;
use ptc_calls::run::outcome::{Failure, Outcome};
use ptc_calls::run::watcher::Recipient;
use ptc_vm::InterruptKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

/// The shortest pause between two looks at a clock that has stood still, because a server starts or a person is asked.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Most bytes of an outcome that is finished on the I/O runtime, which takes a fraction of a millisecond.
const MOST_HERE: usize = 64 << 10;

/// Starts runs on the I/O runtime and stops them.
pub(crate) struct AsyncRuns {
    io: Handle,
    /// True once the runtime shuts down. Each run holds a receiver until its end.
    stopping: watch::Sender<bool>,
}

impl AsyncRuns {
    pub(crate) fn new(io: Handle) -> AsyncRuns {
        AsyncRuns { io, stopping: watch::Sender::new(false) }
    }

    /// Starts a run. Its recipient gets the outcome, whatever happens.
    pub(crate) fn start(&self, run: AsyncRun, limits: Limits, handle: Arc<RunHandle>, recipient: Recipient) {
        let stopping = self.stopping.subscribe();
        let _io = self.io.enter();
        tasks::spawn(TaskOwner::Run, drive(run, limits, handle, recipient, stopping));
    }

    /// Cancels all runs, and those that begin later.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits until no run is left.
    pub(crate) async fn ended(&self) {
        self.stopping.closed().await;
    }
}

async fn drive(
    run: AsyncRun,
    limits: Limits,
    handle: Arc<RunHandle>,
    mut recipient: Recipient,
    mut stopping: watch::Receiver<bool>,
) {
    let account = Arc::new(RunAccount::new(limits, handle.interrupt.clone()));
    // A defect of the work or of the watcher leaves the account, so the outcome has the calls that were made.
    let outcome =
        contained(Box::pin(go_through(run, &account, &handle, &mut recipient, &mut stopping))).await;
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        tracing::error!(panic = text, "a run hit a defect");
        Outcome::failed(Failure::defect(&format!("internal defect: {text}")))
    });
    end(account, recipient, outcome).await;
}

/// Does the work of a run. What the run holds is released before this returns, so before its caller hears of the end.
async fn go_through(
    mut run: AsyncRun,
    account: &Arc<RunAccount>,
    handle: &RunHandle,
    recipient: &mut Recipient,
    stopping: &mut watch::Receiver<bool>,
) -> Outcome {
    recipient.entered(account);
    recipient.begun();
    let cancelled = Arc::new(Notify::new());
    if !handle.pin_to_io(&cancelled) {
        return Outcome::failed(Failure::cancelled());
    }
    run.introduce(account);
    let AsyncRun { work, interrupted, .. } = run;
    recipient.suspended(account.held_bytes());
    let ended = {
        let mut work = work(account.clone());
        let mut interrupt = pin!(interrupt(account, &cancelled, stopping));
        loop {
            let ended = tokio::select! {
                biased;
                kind = &mut interrupt => Some(Err(kind)),
                () = account.more_calls_answered() => None,
                ended = &mut work => Some(Ok(ended)),
            };
            if let Some(ended) = ended {
                break ended;
            }
            recipient.follow(&[], |known| account.calls_ended_after(known));
            recipient.calls_ended(account.calls_answered());
        }
    };
    ended.unwrap_or_else(|kind| interrupted(kind, account.limits()))
}

/// Ends a run. A large outcome is redacted and written on a thread for blocking work: other runs and connections need
/// this one.
async fn end(account: Arc<RunAccount>, mut recipient: Recipient, outcome: Outcome) {
    let bytes = outcome.result.as_ref().map_or(0, |value| value.text.len())
        + outcome.prints.iter().chain(&outcome.stderr).map(String::len).sum::<usize>();
    if bytes <= MOST_HERE {
        return recipient.finish(&account, outcome);
    }
    tasks::blocking(TaskOwner::Run, move |_| recipient.finish(&account, outcome)).await;
}

/// Waits until the run is interrupted: by its caller, by its deadline, or because the runtime shuts down.
async fn interrupt(
    account: &RunAccount,
    cancelled: &Notify,
    stopping: &mut watch::Receiver<bool>,
) -> InterruptKind {
    let mut shortest = Duration::ZERO;
    loop {
        if let Some(kind) = account.interrupted() {
            return kind;
        }
        if account.is_overdue(Instant::now()) {
            account.interrupt(InterruptKind::Deadline);
            continue;
        }
        let pause = account.time_left().max(shortest);
        shortest = LOOK_AGAIN;
        tokio::select! {
            () = cancelled.notified() => account.interrupt(InterruptKind::Cancelled),
            () = sleep(pause) => {}
            _ = stopping.wait_for(|stopping| *stopping) => account.interrupt(InterruptKind::Cancelled),
        }
    }
}
