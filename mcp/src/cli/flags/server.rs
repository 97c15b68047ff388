//! Declares the flags that limit a server as a whole: concurrent programs, their total memory, calls that wait for a
//! client's answer, background tasks, and the size of an input message.

use super::limits::FlagTable;
use ptc_calls::limit_table;
use ptc_engine::Capacity;

limit_table! {
    /// The limits of a server. Each program also has limits of its own.
    ServerLimits;
    /// Programs that take turns: twice the cores, at least 8. One more begins after 5 ms, one that waits for tools
    /// does not count.
    running: Positive = Capacity::default().running as u64, "max-concurrent", "waits";
    /// Programs that may have begun beyond those, such as wait for tools; later ones wait for one to end, and many
    /// of them for the client to be read on.
    suspended: Count = 1_024, "max-suspended", "waits";
    /// Memory that programs may hold together: half of the machine's. Without any left one of them goes on, and the
    /// others wait. Processes of scripts, of sessions too, may hold as much again; beyond it the largest is ended.
    total_bytes: Bytes = half_of_ram().unwrap_or(u64::MAX), "max-total-memory", "waits";
    /// Calls of clients without a handshake (2026-07-28) that wait until their clients have answered what servers ask. A
    /// server that asks beyond them gets the answer that no client can be asked.
    parked: Count = 256, "max-parked", "busy";
    /// How long one of them waits, and how long a task stays with its result; 7d with --state. Clients may ask for less.
    parked_ms: Millis = 600_000, "max-parked-time", "the program ends";
    /// Calls that go on without their requests, as tasks or with a run_id, and their results. A token may have a quarter
    /// of them.
    tasks: Count = 4_096, "max-tasks", "busy";
    /// How long a call may take before it answers with a run_id, with which lisp_run goes on; 0 means until its end. Clients
    /// that know tasks (2026-07-28) get one instead, after 3s if this is 0.
    detach_ms: Millis = 0, "detach-after", "a run_id, or a task";
    /// Longest line of input.
    frame_bytes: Bytes = 8 << 20, "max-frame-bytes", "an error of JSON-RPC";
}

impl FlagTable for ServerLimits {}

/// Half of the physical memory, if the system reports it.
fn half_of_ram() -> Option<u64> {
    let text = ptc_base::files::read_text("/proc/meminfo".as_ref()).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 512)
}
