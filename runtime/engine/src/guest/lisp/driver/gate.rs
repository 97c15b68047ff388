//! Holds a program back before its first instruction until the servers that its prelude (a preloaded library) calls are
//! started and their tools known.

use super::Execution;
use crate::broker::start_all;
use crate::guest::{CallId, Progress, Reply, TaskHandle};
use futures_util::FutureExt;
use ptc_calls::run::outcome::Failure;
use ptc_vm::{Fault, InterruptKind, Reason};

/// Id of the work that a program waits for before its first instruction. Calls of its isolate count up from
/// 0.
pub(super) const ATTACHING: CallId = CallId(u64::MAX);

/// Whether a program may run.
pub(super) enum AttachState {
    /// It may.
    Open,
    /// The servers that its prelude calls are being started, so that their tools are known before its first
    /// instruction.
    Attaching { _task: TaskHandle },
    /// Its prelude lacks something.
    Refused(Failure),
}

impl Execution {
    /// Starts the servers behind the needed definitions of its prelude if their tools are not known. A
    /// program with an incomplete prelude makes no call at all.
    pub(super) fn attach(&mut self) {
        // The needs of functions of a session were checked when these were defined.
        let upstreams = self.environment.unproven(&self.program.needed, &self.lisp.broker);
        if upstreams.is_empty() {
            // The tools may have become known since `needed` was computed.
            return self.attached();
        }
        self.host_calls = true;
        let starts = start_all(&self.account, upstreams);
        let task = self.port.hand_out(ATTACHING, Box::pin(starts.map(|()| Reply::Started)));
        self.gate = AttachState::Attaching { _task: task };
    }

    /// The tools of the servers are known, or the servers were asked to start.
    pub(super) fn attached(&mut self) {
        self.follow_lists();
        if self.program.needed.is_empty() {
            return;
        }
        self.gate = match self.environment.check_reached(&self.program.needed, &self.lisp.broker) {
            Ok(()) => AttachState::Open,
            Err(failure) => AttachState::Refused(failure),
        };
    }

    /// What has to happen before its first instruction; `None` when it may run.
    pub(super) fn at_the_gate(&mut self) -> Option<Progress> {
        match std::mem::replace(&mut self.gate, AttachState::Open) {
            AttachState::Open => None,
            AttachState::Attaching { _task } => {
                let Some(kind) = self.account.interrupted() else {
                    self.gate = AttachState::Attaching { _task };
                    return Some(Progress::Waiting);
                };
                let reason = match kind {
                    InterruptKind::Deadline => Reason::Timeout,
                    InterruptKind::Cancelled => Reason::Cancelled,
                };
                let fault =
                    Fault::new(reason, "the program ended before the servers of its prelude had started");
                Some(Progress::Finished(self.fail(&fault)))
            }
            AttachState::Refused(failure) => Some(Progress::Finished(self.end(Err(failure)))),
        }
    }
}
