//! One run as its worker sees it, from the queued job to the freed guest. It is a task for coroutines:
//! everything that may take long happens in here, which is making the guest (compiling), its quanta, and
//! freeing it.

use super::coroutine::{PREEMPTION, Task};
use super::queue::{Inbox, QueuedRun};
use crate::guest::{CallId, Guest, GuestContext, Port, Progress, Reply};
use ptc_calls::journal::OutcomeRecord;
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::outcome::{Ending, Failure, Outcome};
use ptc_calls::run::watcher::Recipient;
use ptc_vm::InterruptKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// A run at some point of its life.
pub(crate) struct Work {
    account: Arc<RunAccount>,
    stage: Stage,
    /// Replies to its calls that it has not processed.
    pub(crate) replies: Vec<(CallId, Reply)>,
    /// Receives its progress and outcome; `None` once it has ended.
    recipient: Option<Recipient>,
    /// Its watcher has been notified that it waits.
    waits: bool,
}

/// What it needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Another slice.
    Turn,
    /// A reply.
    Reply,
    /// Nothing: its caller has the outcome.
    Nothing,
}

enum Stage {
    /// Not begun.
    New {
        job: Box<QueuedRun>,
        inbox: Arc<Inbox>,
        port: Rc<Port>,
    },
    Begun(Box<dyn Guest>),
    /// Nothing is left of it.
    Over,
}

impl Work {
    /// A run that begins with its first quantum.
    pub(crate) fn new(
        mut job: Box<QueuedRun>,
        account: Arc<RunAccount>,
        inbox: &Arc<Inbox>,
        port: Rc<Port>,
    ) -> Work {
        let mut recipient = job.recipient.take();
        if let Some(recipient) = &mut recipient {
            recipient.entered(&account);
        }
        let stage = Stage::New { job, inbox: inbox.clone(), port };
        Work { account, stage, replies: Vec::new(), recipient, waits: false }
    }

    /// Logical bytes alive.
    pub(crate) fn live_bytes(&self) -> u64 {
        match &self.stage {
            Stage::Begun(guest) => guest.live_bytes(),
            Stage::New { .. } | Stage::Over => 0,
        }
    }

    fn begin(&mut self, job: QueuedRun, inbox: &Arc<Inbox>, port: Rc<Port>) {
        if let Some(recipient) = &mut self.recipient {
            recipient.begun();
        }
        let QueuedRun { handle, make, .. } = job;
        if !handle.pin(inbox) {
            return self.finish(Ending::failed(Failure::cancelled()));
        }
        match make(GuestContext { account: self.account.clone(), port, preemption: PREEMPTION }) {
            Ok(guest) => self.stage = Stage::Begun(guest),
            Err(ending) => self.finish(*ending),
        }
    }

    /// Gives the caller the outcome and cancels calls that are under way.
    fn finish(&mut self, ending: Ending) {
        if let Some(recipient) = self.recipient.take() {
            finish(&self.account, recipient, ending);
        }
    }
}

/// Ends a run: cancels its calls that are under way, and gives its caller the outcome.
pub(super) fn finish(account: &RunAccount, recipient: Recipient, ending: Ending) {
    account.cancel_calls();
    let outcome = Outcome::from_ending(ending, account);
    if let Some(journal) = account.journal() {
        journal.outcome(OutcomeRecord::from(&outcome));
    }
    recipient.send(outcome);
}

impl Task for Work {
    type Done = Needs;

    fn run(&mut self) -> Needs {
        if matches!(self.stage, Stage::New { .. })
            && let Stage::New { job, inbox, port } = std::mem::replace(&mut self.stage, Stage::Over)
        {
            self.begin(*job, &inbox, port);
        }
        let Stage::Begun(guest) = &mut self.stage else { return Needs::Nothing };
        if std::mem::take(&mut self.waits)
            && let Some(recipient) = &mut self.recipient
        {
            recipient.resumed();
        }
        for (call, reply) in std::mem::take(&mut self.replies) {
            guest.answer(call, reply);
        }
        if self.account.is_overdue(Instant::now()) {
            self.account.interrupt(InterruptKind::Deadline);
        }
        let progress = guest.advance();
        if let Some(recipient) = &mut self.recipient {
            if recipient.follows() {
                recipient.follow(guest.printed(), |known| self.account.calls_ended_after(known));
            }
            recipient.calls_ended(self.account.calls_answered());
        }
        match progress {
            Progress::Ready => Needs::Turn,
            Progress::Waiting => {
                self.waits = true;
                let held = self.live_bytes() + self.account.held_bytes();
                if let Some(recipient) = &mut self.recipient {
                    recipient.suspended(held);
                }
                Needs::Reply
            }
            Progress::Finished(ending) => {
                self.finish(*ending);
                if let Stage::Begun(guest) = std::mem::replace(&mut self.stage, Stage::Over) {
                    guest.close();
                }
                Needs::Nothing
            }
        }
    }

    fn abandon(&mut self, message: &str) -> Needs {
        self.finish(Ending::failed(Failure::defect(message)));
        if let Stage::Begun(guest) = std::mem::replace(&mut self.stage, Stage::Over) {
            let freed = catch_unwind(AssertUnwindSafe(|| guest.close()));
            if freed.is_err() {
                tracing::error!("a defect while freeing a program");
            }
        }
        Needs::Nothing
    }
}
