//! What is left when this process is killed: a helper that ends the servers in its place.
//!
//! A killed process cannot stop its children, and a server that ignores the end of its input, or a
//! grandchild that never reads it, would live on. The helper is a small shell script that learns of every
//! process group over a pipe. When the pipe ends, the groups still on its list are terminated, then killed.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Reads `+ group` and `- group`; a group that was stopped properly is no longer on the list at the end.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
groups=
while read -r sign group; do
  case $sign in
    +) groups="$groups $group" ;;
    -) rest=
       for known in $groups; do [ "$known" = "$group" ] || rest="$rest $known"; done
       groups=$rest ;;
  esac
done
[ -n "$groups" ] || exit 0
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

/// The helper; started with the first group.
#[derive(Default)]
pub struct Guardian {
    helper: Mutex<Helper>,
}

#[derive(Default)]
enum Helper {
    #[default]
    NotStarted,
    Running(Child, ChildStdin),
    /// There is no shell, or it has gone: servers are still stopped whenever this process ends in order.
    Absent,
}

impl Guardian {
    /// Puts a process group on the list.
    pub(super) fn watch(&self, group: u32) {
        self.tell('+', group, true);
    }

    /// Takes it off: it has ended.
    pub(super) fn forget(&self, group: u32) {
        self.tell('-', group, false);
    }

    fn tell(&self, sign: char, group: u32, start: bool) {
        let mut helper = self.helper.lock().unwrap_or_else(PoisonError::into_inner);
        if start && matches!(*helper, Helper::NotStarted) {
            *helper = Helper::start();
        }
        // One short line: the pipe never fills.
        if let Helper::Running(_, pipe) = &mut *helper
            && writeln!(pipe, "{sign} {group}").is_err()
        {
            tracing::debug!("the guardian of the server processes is gone");
            *helper = Helper::Absent;
        }
    }

    /// Ends the helper and waits for it. Blocks for as long as a shell needs to end, or for a second when
    /// there still are groups on the list.
    pub(crate) fn close(&self) {
        let mut helper = self.helper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Helper::Running(mut child, pipe) = std::mem::replace(&mut *helper, Helper::Absent) {
            drop(pipe);
            let _ = child.wait();
        }
    }
}

impl Helper {
    fn start() -> Helper {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "ptc-guardian"]).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: what is sent to ours must not reach it.
        command.process_group(0);
        match command.spawn() {
            Ok(mut child) => match child.stdin.take() {
                Some(pipe) => Helper::Running(child, pipe),
                None => Helper::Absent,
            },
            Err(error) => {
                tracing::debug!(%error, "no guardian for the server processes");
                Helper::Absent
            }
        }
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

    fn deaf(ignored: &str) -> Child {
        let script = format!("trap '' {ignored}; echo; while :; do sleep 60 & wait $!; done");
        let mut child = Command::new("/bin/sh")
            .args(["-c", &script])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // One byte says that the trap is set.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        child
    }

    #[test]
    fn groups_on_the_list_end_with_the_guardian_even_if_they_ignore_sigterm() {
        let (mut listed, mut forgotten) = (deaf("TERM INT HUP"), deaf("TERM"));
        let guardian = Guardian::default();
        guardian.watch(listed.id());
        guardian.watch(forgotten.id());
        guardian.forget(forgotten.id());
        drop(guardian);
        assert_eq!(listed.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(forgotten.try_wait().unwrap().is_none());
        let group = libc::pid_t::try_from(forgotten.id()).unwrap();
        // SAFETY: two integers; the group is that of the child above, which has not been waited for.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        forgotten.wait().unwrap();
    }
}
