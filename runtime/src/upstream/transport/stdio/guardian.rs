//! Who sees to it that no process of a server outlives this one.
//!
//! A killed process cannot stop its children, and a server that ignores the end of its input, or a grandchild that
//! never reads it, would live on. The *helper* is a small shell script that learns of every process group over a
//! pipe. When the pipe ends, the groups still on its list, and what has come from them, are terminated, then killed.
//! A helper that ends before its time is replaced.
//!
//! A program that has no other children than its servers may *adopt* (see [`Guardian::adopting`]): orphans of its
//! servers become its children, so that it knows them, ends them with the servers, and reaps them.

use super::kin::{self, MARK, Process};
use crate::tasks::{self, TaskOwner};
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

/// Reads `+ group` and `- group`, and `= process` and `~ process` for single ones; what was stopped properly is no
/// longer on the list at the end. `.` says that nothing is left. `$1` is the mark of everything that comes from a server.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
mark=$1 groups= single=
without() { rest=; for known in $1; do [ "$known" = "$2" ] || rest="$rest $known"; done; }
while read -r sign id; do
  case $sign in
    +) groups="$groups $id" ;;
    -) without "$groups" "$id"; groups=$rest ;;
    =) single="$single $id" ;;
    '~') without "$single" "$id"; single=$rest ;;
    .) exit 0 ;;
  esac
done
kin() {
  found=" $groups $single "
  for entry in $(grep -lsF "$mark" /proc/[0-9]*/environ); do
    entry=${entry%/environ}
    found="$found${entry#/proc/} "
  done
  grown=1
  while [ "$grown" ]; do
    grown=
    for entry in /proc/[0-9]*; do
      case $found in *" ${entry#/proc/} "*) continue ;; esac
      { read -r line < "$entry/stat"; } 2>/dev/null || continue
      set -- ${line##*) }
      case $found in *" $2 "*) found="$found${entry#/proc/} " grown=1 ;; esac
    done
  done
}
end() {
  for group in $groups; do kill -s "$1" -- "-$group"; done
  for process in $found; do kill -s "$1" -- "$process"; done
}
kin
[ "$(echo $found)" ] || exit 0
end TERM
sleep 1
kin
end KILL
"#;

/// How often a program that adopts looks at its children; each end of one makes it look as well.
const LOOK: Duration = Duration::from_secs(1);

/// The shortest time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Keeps account of the processes of servers.
pub struct Guardian {
    /// Of everything that comes from a server of this guardian.
    mark: String,
    adopts: bool,
    state: Mutex<GuardianState>,
}

#[derive(Default)]
struct GuardianState {
    helper: Helper,
    groups: BTreeSet<u32>,
    /// Adopted processes that the helper knows of.
    single: BTreeSet<u32>,
    /// Children that are no orphans: our servers, the helper, and whatever there was before.
    own: HashSet<u32>,
    spawned: u64,
}

#[derive(Default)]
enum Helper {
    #[default]
    NotStarted,
    Running(Child, ChildStdin),
    /// There is no shell, or it is not needed any more: servers are still stopped whenever this process ends in
    /// order.
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

    /// A guardian for a program that has no other children than its servers: orphans of theirs become children of
    /// this process, and none of them outlives its server.
    pub fn adopting() -> Guardian {
        let own = kin::children().iter().map(|child| child.id).collect();
        kin::adopt_orphans();
        Guardian::new(true, GuardianState { own, ..GuardianState::default() })
    }

    /// Spawns a server; `spawn` is told the value of [`MARK`] in its environment. The mark is that of this one
    /// server.
    pub(super) fn spawn<C>(
        &self,
        spawn: impl FnOnce(&str) -> Result<C, String>,
        id: impl FnOnce(&C) -> Option<u32>,
    ) -> Result<(C, String), String> {
        // Under the lock, so that no child is taken for an orphan.
        let mut state = self.lock();
        state.spawned += 1;
        let mark = format!("{}{}.", self.mark, state.spawned);
        let value = mark.split_once('=').map_or("", |(_, value)| value);
        let child = spawn(value)?;
        if let Some(group) = id(&child) {
            state.own.insert(group);
            state.groups.insert(group);
            state.start(&self.mark);
            state.tell('+', group, &self.mark);
        }
        Ok((child, mark))
    }

    /// Takes a group off the list: it has ended.
    pub(super) fn forget(&self, group: u32) {
        let mut state = self.lock();
        state.own.remove(&group);
        state.groups.remove(&group);
        state.tell('-', group, &self.mark);
    }

    /// Ends orphans that hide whose they are. Those that carry the mark of a server end with it.
    pub(super) fn end_strays(&self) {
        if self.adopts {
            for stray in self.orphans(&self.lock()) {
                if !stray.carries(&self.mark) {
                    stray.kill();
                }
            }
        }
    }

    /// Looks after helper and orphans until the guardian is gone.
    pub(crate) async fn keep(guardian: Weak<Guardian>) {
        let Ok(mut ended) = signal(SignalKind::child()) else { return };
        loop {
            let _ = timeout(LOOK, ended.recv()).await;
            sleep(PAUSE).await;
            let Some(guardian) = guardian.upgrade() else { return };
            let _ = tasks::blocking(TaskOwner::Process, move |_| guardian.look()).await;
        }
    }

    /// Replaces a helper that has ended, reaps orphans that have, and tells the helper of those that live.
    fn look(&self) {
        let mut state = self.lock();
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
            state.tell('=', *new, &self.mark);
        }
        for gone in known.difference(&living) {
            state.tell('~', *gone, &self.mark);
        }
    }

    fn orphans(&self, state: &GuardianState) -> Vec<Process> {
        let companions = companions();
        let is_own = |child: &Process| state.own.contains(&child.id) || companions.contains(&child.id);
        kin::children().into_iter().filter(|child| !is_own(child)).collect()
    }

    /// Ends what is left of all servers, then the helper, and waits for it. Blocks for as long as a shell needs to
    /// end, or for a second when there still are groups on the list.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, GuardianState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Children of this process that come from no server; of the whole process, as its children are.
static COMPANIONS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn companions() -> MutexGuard<'static, BTreeSet<u32>> {
    COMPANIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Spawns a child that no guardian takes for an orphan of a server, until it is forgotten.
///
/// # Errors
/// Those of `spawn`.
pub fn spawn_companion<C, E>(
    spawn: impl FnOnce() -> Result<C, E>,
    id: impl FnOnce(&C) -> Option<u32>,
) -> Result<C, E> {
    // Under the lock, so that nobody looks before it is known.
    let mut companions = companions();
    let child = spawn()?;
    companions.extend(id(&child));
    Ok(child)
}

/// A companion has ended, or is about to.
pub fn forget_companion(id: u32) {
    companions().remove(&id);
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

    /// Replaces a helper that is gone, and tells the new one what the old one knew.
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
            // One that ends at once is seen at the next look.
            let _ = writeln!(pipe, "{sign} {id}");
        }
    }

    fn tell(&mut self, sign: char, id: u32, mark: &str) {
        // One short line: the pipe never fills.
        let told = match &mut self.helper {
            Helper::Running(_, pipe) => writeln!(pipe, "{sign} {id}"),
            Helper::NotStarted | Helper::Absent => Ok(()),
        };
        if told.is_err() {
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
        // Servers can read the environment of a shell of the same user, so ours is not in it.
        command.stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        // A group of its own: what is sent to ours must not reach it.
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
        let helper = |guardian: &Guardian| match &guardian.lock().helper {
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
