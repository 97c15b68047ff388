//! Drives one run on its worker thread from start to end: makes its guest (the program to run), gives it time slices
//! and replies, and frees it. It is a task for coroutines, because each of these steps may take long.

use super::coroutine::{PREEMPTION, Task};
use super::handle::RunHandle;
use super::inbox::Inbox;
use super::queue::QueuedRun;
use crate::guest::{CallId, Guest, MakeGuest, Port, Progress, Reply};
use ptc_base::panics::caught;
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::outcome::{Failure, Outcome};
use ptc_calls::run::watcher::Recipient;
use ptc_vm::InterruptKind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// A run at some point of its life.
pub(crate) struct Work {
    account: Arc<RunAccount>,
    stage: Stage,
    /// Replies to its calls that it has not processed.
    pub(crate) replies: Vec<(CallId, Reply)>,
    /// Receives its progress and outcome.
    recipient: Recipient,
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
        handle: Arc<RunHandle>,
        make: MakeGuest,
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
        job: Box<QueuedRun>,
        account: Arc<RunAccount>,
        inbox: &Arc<Inbox>,
        port: Rc<Port>,
    ) -> Work {
        let QueuedRun { handle, make, recipient, .. } = *job;
        let stage = Stage::New { handle, make, inbox: inbox.clone(), port };
        Work { account, stage, replies: Vec::new(), recipient, waits: false }
    }

    /// Logical bytes alive.
    pub(crate) fn live_bytes(&self) -> u64 {
        match &self.stage {
            Stage::Begun(guest) => guest.live_bytes(),
            Stage::New { .. } | Stage::Over => 0,
        }
    }
}

impl Task for Work {
    type Done = Needs;

    fn run(&mut self) -> Needs {
        if matches!(self.stage, Stage::New { .. })
            && let Stage::New { handle, make, inbox, port } = std::mem::replace(&mut self.stage, Stage::Over)
        {
            self.recipient.entered(&self.account);
            self.recipient.begun();
            let made = match handle.pin(&inbox) {
                true => make(self.account.clone(), port, PREEMPTION),
                false => Err(Box::new(Outcome::failed(Failure::cancelled()))),
            };
            match made {
                Ok(guest) => self.stage = Stage::Begun(guest),
                Err(outcome) => self.recipient.finish(&self.account, *outcome),
            }
        }
        let Stage::Begun(guest) = &mut self.stage else { return Needs::Nothing };
        if std::mem::take(&mut self.waits) {
            self.recipient.resumed();
        }
        for (call, reply) in std::mem::take(&mut self.replies) {
            guest.answer(call, reply);
        }
        if self.account.is_overdue(Instant::now()) {
            self.account.interrupt(InterruptKind::Deadline);
        }
        match guest.advance() {
            Progress::Ready => {}
            Progress::Waiting => self.waits = true,
            Progress::Finished(outcome) => {
                self.recipient.finish(&self.account, *outcome);
                if let Stage::Begun(guest) = std::mem::replace(&mut self.stage, Stage::Over) {
                    guest.close();
                }
                return Needs::Nothing;
            }
        }
        if self.recipient.follows() {
            self.recipient.follow(guest.printed(), |known| self.account.calls_ended_after(known));
        }
        self.recipient.calls_ended(self.account.calls_answered());
        if !self.waits {
            return Needs::Turn;
        }
        let held = self.live_bytes() + self.account.held_bytes();
        self.recipient.suspended(held);
        Needs::Reply
    }

    fn abandon(&mut self, message: &str) -> Needs {
        self.recipient.finish(&self.account, Outcome::failed(Failure::defect(message)));
        if let Stage::Begun(guest) = std::mem::replace(&mut self.stage, Stage::Over) {
            let freed = caught(|| guest.close());
            if freed.is_err() {
                tracing::error!("a defect while freeing a program");
            }
        }
        Needs::Nothing
    }
}
