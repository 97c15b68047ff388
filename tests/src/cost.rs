//! Measures processor time and resident memory of this process, independent of other load on the machine.

use std::time::Duration;

/// Longest that a check of one small input may take, with sanitizers on. Work bounded by fuel takes a hundredth of
/// it.
pub const MOST_OF_A_CHECK: Duration = Duration::from_secs(2);

/// Processor time of a thread, or of this process.
fn scheduled(path: &std::path::Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

/// Processor time that this process has used, all threads together.
pub fn processor_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    Duration::from_nanos(tasks.filter_map(|task| scheduled(&task.path().join("schedstat"))).sum())
}

/// Runs `work`, which must take at most `most` of this thread's processor time.
///
/// # Panics
/// If it took longer.
pub fn within(most: Duration, work: impl FnOnce()) {
    let now = || scheduled("/proc/thread-self/schedstat".as_ref()).unwrap_or(0);
    let begun = now();
    work();
    let took = Duration::from_nanos(now().saturating_sub(begun));
    assert!(took <= most, "took {took:?} of processor time, more than {most:?}");
}

/// Bytes of resident memory now.
pub fn resident() -> u64 {
    status("VmRSS:")
}

/// Most bytes of resident memory since the last [`forget_peak`].
pub fn peak_resident() -> u64 {
    status("VmHWM:")
}

/// Resets the peak. If the kernel does not support that, the peak is that of the whole process, which is a stricter
/// bound.
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1_024
}
