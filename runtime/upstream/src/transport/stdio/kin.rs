//! Finds and kills the processes that a server has started, directly or indirectly, even those that have left its
//! process group (on Linux, by `/proc`).
//!
//! A process that makes a session of its own leaves its process group. It is still found by descent, as long as its
//! parents live, and by a mark in the environment, which children inherit. Without `/proc` only the group is known.

use ptc_base::files;
use std::collections::HashSet;

/// The variable that marks a server and what it starts.
pub(in crate::transport) const MARK: &str = "PTC_UPSTREAM";

/// Looks for processes that were started while others were being ended.
const ROUNDS: usize = 20;

/// A process, distinguished from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) id: u32,
    pub(super) parent: u32,
    pub(super) is_zombie: bool,
    started: u64,
}

impl Process {
    fn read(id: u32) -> Option<Process> {
        let text = files::read(format!("/proc/{id}/stat").as_ref()).ok()?;
        // The name in parentheses may hold anything, parentheses too.
        let rest = &text[memchr::memrchr(b')', &text)? + 1..];
        let fields: Vec<&str> = std::str::from_utf8(rest).ok()?.split_whitespace().collect();
        Some(Process {
            id,
            parent: fields.get(1)?.parse().ok()?,
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn is_still_there(&self) -> bool {
        Process::read(self.id).is_some_and(|now| now.started == self.started && !now.is_zombie)
    }

    /// Kills it, unless it has ended.
    pub(super) fn kill(&self) {
        if self.id > 1 && self.is_still_there() {
            signal(self.id, libc::SIGKILL);
        }
    }

    /// True when its environment holds this text.
    pub(super) fn carries(&self, mark: &str) -> bool {
        let environment = files::read(format!("/proc/{}/environ", self.id).as_ref()).unwrap_or_default();
        memchr::memmem::find(&environment, mark.as_bytes()).is_some()
    }
}

/// Sends a signal to one process.
fn signal(process: u32, number: libc::c_int) {
    if let Ok(process) = libc::pid_t::try_from(process)
        && process > 1
    {
        // SAFETY: kill takes two integers and touches no memory of ours; a positive id names one process.
        unsafe { libc::kill(process, number) };
    }
}

/// Every process.
fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(Process::read).collect()
}

/// The children of this process, adopted ones included.
pub(super) fn children() -> Vec<Process> {
    let own = std::process::id();
    let lists = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = lists.filter_map(|thread| files::read_text(&thread.ok()?.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    if lists.is_empty() {
        // A kernel without these lists.
        return all().into_iter().filter(|process| process.parent == own).collect();
    }
    let ids = lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|id| id.parse().ok());
    ids.filter_map(Process::read).filter(|process| process.parent == own).collect()
}

/// The living processes that descend from `roots`, or carry the mark, or descend from one that does; the roots
/// themselves included.
pub(super) fn of(roots: &[u32], mark: &str) -> Vec<Process> {
    let own = std::process::id();
    let all = all();
    let mut found: HashSet<u32> = roots.iter().copied().collect();
    found.extend(all.iter().filter(|process| process.carries(mark)).map(|process| process.id));
    loop {
        let before = found.len();
        let more = all.iter().filter(|process| found.contains(&process.parent)).map(|process| process.id);
        let more: Vec<u32> = more.collect();
        found.extend(more);
        if found.len() == before {
            break;
        }
    }
    let is_kin = |process: &Process| found.contains(&process.id) && process.id != own && !process.is_zombie;
    all.into_iter().filter(is_kin).collect()
}

/// Kills whatever carries the mark or descends from it, until nothing of it is left.
pub(in crate::transport) fn end_marked(mark: &str) {
    end(of(&[], mark), mark);
}

/// Kills the processes given and whatever carries the mark or descends from it, until nothing of it is left.
pub(super) fn end(mut kin: Vec<Process>, mark: &str) {
    for _ in 0..ROUNDS {
        kin.iter().for_each(Process::kill);
        kin = of(&[], mark);
        if kin.is_empty() {
            return;
        }
        // Being killed takes a moment; what is new among them is killed in the next round.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Waits for an adopted process that has ended.
pub(super) fn reap(process: &Process) {
    if let Ok(id) = libc::pid_t::try_from(process.id) {
        // SAFETY: waitpid with a null status pointer writes nothing; it names one process, and does not block.
        unsafe { libc::waitpid(id, std::ptr::null_mut(), libc::WNOHANG) };
    }
}

/// Makes this process the parent of orphans among its descendants (a subreaper).
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // SAFETY: prctl with this option takes integers only.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    }
}
