//! CPU time of processes, which other programs on the machine disturb less than the wall clock.

use std::io;
use std::time::Duration;

/// CPU time of this process so far.
pub fn cpu() -> Duration {
    // The clock of the own process always exists.
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default()
}

/// CPU time of this process so far, in milliseconds.
pub fn cpu_millis() -> f64 {
    cpu().as_secs_f64() * 1e3
}

/// CPU time of another process so far.
///
/// # Errors
/// A process that does not exist any more.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub fn cpu_of(process: u32) -> io::Result<Duration> {
    let process = libc::pid_t::try_from(process).map_err(io::Error::other)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a live clock number, which the call fills.
    match unsafe { libc::clock_getcpuclockid(process, &mut clock) } {
        0 => read(clock),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// CPU time of another process so far.
///
/// # Errors
/// Always: this system does not report it.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
pub fn cpu_of(_process: u32) -> io::Result<Duration> {
    Err(io::ErrorKind::Unsupported.into())
}

fn read(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec, which the call fills.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Ok(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))),
        _ => Err(io::Error::last_os_error()),
    }
}
