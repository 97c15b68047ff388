//! Ends the processes of servers when this process ends, even if it is killed.
//!
//! A killed process cannot stop its children. A server that ignores the end of its input, or a grandchild that never
//! reads it, would live on. The *helper*, a small shell script (`guardian.sh`), gets the id of every process group over
//! a pipe. When the pipe ends, it terminates, then kills the groups still on its list and what has come from them. A
//! helper that ends too early is replaced.
//!
//! A program that has no children but its servers may *adopt* (see [`Guardian::adopting`]): orphans of its servers
//! become its children. It then knows them, ends them with the servers, and reaps them.

use super::kin::{self, MARK, Process};
use crate::transport::companions::companions;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

/// The helper. Its head says what it reads.
const SCRIPT: &str = include_str!("guardian.sh");

/// How often a program that adopts checks its children; the end of a child makes it check as well.
const LOOK: Duration = Duration::from_secs(1);

/// The shortest time between two checks.
const PAUSE: Duration = Duration::from_millis(50);

/// Knows the processes of servers.
pub struct Guardian {
    /// In the environment of everything that comes from a server of this guardian.
    mark: String,
    adopts: bool,
    state: Mutex<GuardianState>,
}

#[derive(Default)]
struct GuardianState {
    helper: Helper,
    groups: BTreeSet<u32>,
    /// Adopted processes that the helper knows.
    single: BTreeSet<u32>,
    /// Children that are no orphans: servers, the helper, and children from before.
    own: HashSet<u32>,
    spawned: u64,
}

#[derive(Default)]
enum Helper {
    #[default]
    NotStarted,
    Running(Child, ChildStdin),
    /// There is no shell, or it is not needed any more. Servers are still stopped when this process ends in order.
    Absent,
}

impl Default for Guardian {
    fn default() -> Guardian {
        Guardian::new(false, GuardianState::default())
    }
}

impl Guardian {
    fn new(adopts: bool, state: GuardianState) -> Guardian {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mark = format!("{MARK}={}-{:x}.", std::process::id(), now.as_nanos());
        Guardian { mark, adopts, state: Mutex::new(state) }
    }

    /// A guardian for a program whose only children are its servers: orphans of servers become children of this process,
    /// and none outlives its server.
    pub fn adopting() -> Guardian {
        let own = kin::children().iter().map(|child| child.id).collect();
        kin::adopt_orphans();
        Guardian::new(true, GuardianState { own, ..GuardianState::default() })
    }

    /// Spawns a server; `spawn` gets the value of [`MARK`] for its environment. Returns the mark of this one server.
    pub(super) fn spawn<C>(
        &self,
        spawn: impl FnOnce(&str) -> Result<C, String>,
        id: impl FnOnce(&C) -> Option<u32>,
    ) -> Result<(C, String), String> {
        // Under the lock, so that no child is taken for an orphan.
        let mut state = self.state.locked();
        state.spawned += 1;
        let mark = format!("{}{}.", self.mark, state.spawned);
        let value = mark.split_once('=').map_or("", |(_, value)| value);
        let child = spawn(value)?;
        if let Some(group) = id(&child) {
            state.own.insert(group);
            state.groups.insert(group);
            state.start(&self.mark);
            state.report('+', group, &self.mark);
        }
        Ok((child, mark))
    }

    /// Removes a group that has ended.
    pub(super) fn forget(&self, group: u32) {
        let mut state = self.state.locked();
        state.own.remove(&group);
        state.groups.remove(&group);
        state.report('-', group, &self.mark);
    }

    /// Ends orphans that hide their origin. Those that carry the mark of a server end with it.
    pub(super) fn end_strays(&self) {
        if self.adopts {
            for stray in self.orphans(&self.state.locked()) {
                if !stray.carries(&self.mark) {
                    stray.kill();
                }
            }
        }
    }

    /// Watches helper and orphans until the guardian is gone.
    pub async fn keep(guardian: Weak<Guardian>) {
        let Ok(mut ended) = signal(SignalKind::child()) else { return };
        loop {
            let _ = timeout(LOOK, ended.recv()).await;
            sleep(PAUSE).await;
            let Some(guardian) = guardian.upgrade() else { return };
            let _ = tasks::blocking(TaskOwner::Process, move |_| guardian.look()).await;
        }
    }

    /// Replaces a helper that has ended, reaps orphans that have ended, and reports living ones to the helper.
    fn look(&self) {
        let mut state = self.state.locked();
        state.revive(&self.mark);
        if !self.adopts {
            return;
        }
        let orphans = self.orphans(&state);
        orphans.iter().filter(|orphan| orphan.is_zombie).for_each(kin::reap);
        let living: BTreeSet<u32> =
            orphans.iter().filter(|orphan| !orphan.is_zombie).map(|orphan| orphan.id).collect();
        let known = std::mem::replace(&mut state.single, living.clone());
        for new in living.difference(&known) {
            state.report('=', *new, &self.mark);
        }
        for gone in known.difference(&living) {
            state.report('~', *gone, &self.mark);
        }
    }

    fn orphans(&self, state: &GuardianState) -> Vec<Process> {
        let companions = companions();
        let is_own = |child: &Process| state.own.contains(&child.id) || companions.contains(&child.id);
        kin::children().into_iter().filter(|child| !is_own(child)).collect()
    }

    /// Ends what is left of all servers, then the helper, and waits for it. Blocks for as long as a shell needs to
    /// end, or for a second when there still are groups on the list.
    pub fn close(&self) {
        let mut state = self.state.locked();
        let helper = std::mem::replace(&mut state.helper, Helper::Absent);
        if state.spawned > 0 && state.groups.is_empty() {
            let strays = if self.adopts { self.orphans(&state) } else { Vec::new() };
            kin::end(strays, &self.mark);
            if self.adopts {
                self.orphans(&state).iter().for_each(kin::reap);
            }
        }
        if let Helper::Running(mut child, mut pipe) = helper {
            if state.groups.is_empty() {
                let _ = writeln!(pipe, ". 0");
            }
            drop(pipe);
            let _ = child.wait();
        }
    }
}

impl GuardianState {
    /// Starts the helper with the first group.
    fn start(&mut self, mark: &str) {
        if matches!(self.helper, Helper::NotStarted) {
            self.helper = Helper::start(mark);
            if let Helper::Running(child, _) = &self.helper {
                self.own.insert(child.id());
            }
        }
    }

    /// Replaces a helper that is gone, and passes the list on to the new one.
    fn revive(&mut self, mark: &str) {
        let Helper::Running(child, _) = &mut self.helper else { return };
        if !matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        tracing::warn!("the guardian of the server processes has ended; it is replaced");
        let old = child.id();
        self.own.remove(&old);
        self.helper = Helper::NotStarted;
        self.start(mark);
        let Helper::Running(_, pipe) = &mut self.helper else { return };
        let lines = self.groups.iter().map(|group| ('+', group));
        let lines = lines.chain(self.single.iter().map(|process| ('=', process)));
        for (sign, id) in lines {
            // One that ends at once is seen at the next check.
            let _ = writeln!(pipe, "{sign} {id}");
        }
    }

    fn report(&mut self, sign: char, id: u32, mark: &str) {
        // One short line: the pipe never fills.
        let reported = match &mut self.helper {
            Helper::Running(_, pipe) => writeln!(pipe, "{sign} {id}"),
            Helper::NotStarted | Helper::Absent => Ok(()),
        };
        if reported.is_err() {
            self.revive(mark);
        }
    }
}

impl Helper {
    fn start(mark: &str) -> Helper {
        match Helper::spawn(mark) {
            Ok((child, pipe)) => Helper::Running(child, pipe),
            Err(error) => {
                tracing::debug!(%error, "no guardian for the server processes");
                Helper::Absent
            }
        }
    }

    fn spawn(mark: &str) -> io::Result<(Child, ChildStdin)> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "ptc-guardian", mark]).stdin(Stdio::piped());
        // Servers can read the environment of a shell of the same user, so the shell gets none of ours.
        command.stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        // A group of its own: signals to our group must not reach it.
        command.process_group(0);
        let mut child = command.spawn()?;
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((child, pipe))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};

    fn deaf(guardian: &Guardian, ignored: &str) -> Child {
        let script = format!("trap '' {ignored}; echo; while :; do sleep 60 & wait $!; done");
        let spawn = |mark: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &script]).process_group(0).stdout(Stdio::piped()).env(MARK, mark);
            command.spawn().map_err(|error| error.to_string())
        };
        let (mut child, _) = guardian.spawn(spawn, |child| Some(child.id())).unwrap();
        // One byte says that the trap is set.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        child
    }

    #[test]
    fn groups_on_the_list_end_with_the_guardian_even_if_they_ignore_sigterm() {
        let (guardian, other) = (Guardian::default(), Guardian::default());
        let mut listed = deaf(&guardian, "TERM INT HUP");
        let mut forgotten = deaf(&other, "TERM");
        drop(guardian);
        assert_eq!(listed.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(forgotten.try_wait().unwrap().is_none(), "that of another guardian");
        drop(other);
        forgotten.wait().unwrap();
    }

    #[test]
    fn a_helper_that_is_killed_is_replaced_and_knows_what_the_first_one_knew() {
        let guardian = Guardian::default();
        let mut listed = deaf(&guardian, "TERM INT HUP");
        let helper = |guardian: &Guardian| match &guardian.state.locked().helper {
            Helper::Running(child, _) => child.id(),
            _ => 0,
        };
        let first = helper(&guardian);
        // SAFETY: two integers; the process is the helper, which has not been waited for.
        unsafe { libc::kill(libc::pid_t::try_from(first).unwrap(), libc::SIGKILL) };
        while helper(&guardian) == first {
            guardian.look();
        }
        drop(guardian);
        assert_eq!(listed.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}
