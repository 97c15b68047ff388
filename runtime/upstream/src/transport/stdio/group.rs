//! Signals and ends the process group of a server, with the processes that it has started outside of the group.

use super::Guardian;
use super::kin::{self, Process};
use std::sync::Arc;

/// The process group of a child and its kin. Ended when dropped, which takes a moment: do it on a thread for
/// blocking work.
pub(super) struct ProcessGroup {
    leader: Option<u32>,
    /// In the environment of everything that the server starts.
    mark: String,
    guardian: Arc<Guardian>,
    /// Seen while the leader lived.
    kin: Vec<Process>,
}

/// A signal to a group.
#[derive(Clone, Copy)]
pub(super) enum Signal {
    /// Please end.
    Terminate,
    /// End.
    Kill,
}

impl ProcessGroup {
    /// The group led by a child that the guardian has spawned with a group of its own.
    pub(super) fn led_by(leader: Option<u32>, mark: String, guardian: Arc<Guardian>) -> ProcessGroup {
        ProcessGroup { leader, mark, guardian, kin: Vec::new() }
    }

    /// Signals every process of the group; a group that is gone is fine.
    pub(super) fn signal(&self, signal: Signal) {
        let number = match signal {
            Signal::Terminate => libc::SIGTERM,
            Signal::Kill => libc::SIGKILL,
        };
        if let Some(leader) = self.leader.and_then(|leader| libc::pid_t::try_from(leader).ok())
            && leader > 1
        {
            // SAFETY: kill takes two integers and touches no memory of ours. The id is positive and above 1,
            // so its negation names one process group: the one this child was made leader of.
            unsafe { libc::kill(-leader, number) };
        }
    }

    /// Takes the group out, to be ended elsewhere.
    pub(super) fn take(&mut self) -> ProcessGroup {
        ProcessGroup {
            leader: self.leader.take(),
            mark: self.mark.clone(),
            guardian: self.guardian.clone(),
            kin: std::mem::take(&mut self.kin),
        }
    }

    /// Notes the descendants of the leader: after its end they cannot be found by descent.
    pub(super) fn note_kin(&mut self) {
        self.kin = kin::of(self.leader.as_slice(), &self.mark);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let Some(leader) = self.leader else { return };
        // Before the leader is killed, if it lives.
        let mut kin = std::mem::take(&mut self.kin);
        kin.extend(kin::of(&[leader], &self.mark));
        self.signal(Signal::Kill);
        kin::end(kin, &self.mark);
        self.leader = None;
        self.guardian.forget(leader);
        self.guardian.end_strays();
    }
}
