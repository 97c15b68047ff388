//! The process group of a child, so that nothing it started survives it.

use super::Guardian;
use std::sync::Arc;

/// Kills the group when dropped, unless it was swept before.
pub(super) struct ProcessGroup {
    leader: Option<u32>,
    guardian: Arc<Guardian>,
}

/// What to tell a group.
#[derive(Clone, Copy)]
pub(super) enum Signal {
    /// Please end.
    Terminate,
    /// End.
    Kill,
}

impl ProcessGroup {
    /// The group led by a child that was spawned with a group of its own.
    pub(super) fn led_by(leader: Option<u32>, guardian: Arc<Guardian>) -> ProcessGroup {
        if let Some(leader) = leader {
            guardian.watch(leader);
        }
        ProcessGroup { leader, guardian }
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

    /// Kills what is left, after the leader is gone.
    pub(super) fn sweep(&mut self) {
        self.signal(Signal::Kill);
        if let Some(leader) = self.leader.take() {
            self.guardian.forget(leader);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.sweep();
    }
}
