//! Watches the memory of script processes, page tables included, and ends the ones that hold too much.
//!
//! The kernel's limit of a process (RLIMIT_AS) counts mapped bytes, but not the tables that map them: 65,000 single
//! pages, far apart, hold 500 MB of tables. And it says nothing about all processes together, of which those of
//! sessions stay. So the counters of each process (`VmPTE`, `RssAnon` in `/proc/PID/status`) are read while scripts
//! run. Without `/proc`, or without its lists of children, only the kernel's limit holds.

use ptc_base::files;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time between two readings. A script needs about ten times as long to fill half a gigabyte of tables.
pub(super) const INTERVAL: Duration = Duration::from_millis(50);

/// Bytes beyond the limit that a process may have: tables of the memory that it may use, and the kernel's rounding.
const MARGIN: u64 = 4 << 20;

/// The memory that scripts of all owners hold together, beyond that of the warm processes.
#[derive(Debug)]
pub(super) struct SharedTotal {
    most: u64,
    held: AtomicU64,
}

impl SharedTotal {
    /// A total with a limit in bytes.
    pub(super) fn new(most: u64) -> SharedTotal {
        SharedTotal { most, held: AtomicU64::new(0) }
    }
}

/// Reads the memory of the scripts of one warm process.
pub(super) struct MemoryWatch {
    /// The process that ptc has started. A jail has one more above its scripts.
    pub(super) started: u32,
    pub(super) is_jailed: bool,
    /// Most bytes that one script may hold.
    pub(super) each: u64,
    pub(super) total: Arc<SharedTotal>,
    /// What its scripts hold, as counted in the total.
    pub(super) counted: u64,
}

impl MemoryWatch {
    /// Reads all processes once. Kills those beyond the limit of one. While all together are beyond the total, it kills
    /// the largest that is stopped between two scripts of a session, else the largest: retained memory of one owner ends
    /// no running script of another.
    pub(super) fn enforce(&mut self) {
        let warm = if self.is_jailed { children(self.started).first().copied() } else { Some(self.started) };
        let base = warm.and_then(Holder::read);
        let mut scripts = base.map(scripts).unwrap_or_default();
        let most = self.each.saturating_add(MARGIN);
        scripts.sort_by_key(|script| (script.bytes > most, script.is_stopped, script.bytes));
        self.count(scripts.iter().map(|script| script.bytes).sum());
        while let Some(largest) = scripts.pop() {
            let held = self.total.held.load(Ordering::Relaxed);
            if largest.bytes <= most && held <= self.total.most {
                return;
            }
            tracing::warn!(
                bytes = largest.bytes,
                held,
                "a script's process holds too much memory and is ended"
            );
            largest.kill();
            self.count(self.counted - largest.bytes);
        }
    }

    /// Replaces what its scripts hold in the total.
    fn count(&mut self, bytes: u64) {
        self.total.held.fetch_add(bytes, Ordering::Relaxed);
        self.total.held.fetch_sub(self.counted, Ordering::Relaxed);
        self.counted = bytes;
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.count(0);
    }
}

/// The scripts of a warm process, with what each holds beyond it.
fn scripts(base: Holder) -> Vec<Holder> {
    let beyond = |script: Holder| Holder { bytes: script.bytes.saturating_sub(base.bytes), ..script };
    children(base.id).into_iter().filter_map(Holder::read).map(beyond).collect()
}

/// A process and its parent, with the bytes that it holds.
#[derive(Clone, Copy)]
struct Holder {
    id: u32,
    parent: u32,
    bytes: u64,
    /// It is stopped, as the process of a session is between two scripts.
    is_stopped: bool,
}

impl Holder {
    fn read(id: u32) -> Option<Holder> {
        let text = files::read_text(format!("/proc/{id}/status").as_ref()).ok()?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let kibibytes = field("RssAnon")? + field("VmPTE")?;
        let parent = u32::try_from(field("PPid")?).ok()?;
        let is_stopped = text.lines().any(|line| line.starts_with("State:\tT"));
        Some(Holder { id, parent, bytes: kibibytes << 10, is_stopped })
    }

    /// Kills the process, unless it has ended and its number belongs to another one.
    fn kill(&self) {
        let pid = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        if let Some(handle) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            && Holder::read(self.id).is_some_and(|now| now.parent == self.parent)
        {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

fn children(id: u32) -> Vec<u32> {
    let list = files::read_text(format!("/proc/{id}/task/{id}/children").as_ref()).unwrap_or_default();
    list.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}
