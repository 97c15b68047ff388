//! Defers signals that would end the process while an OAuth login is being renewed, because the server may have
//! replaced the old tokens before the new ones are stored.
//!
//! Only signals whose default action would end the process are deferred: a command with handlers of its own waits by
//! itself. The third signal ends the process all the same.

use ptc_base::oauth::{ProcessHold, hold_process};
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Signals that ask a process to end.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The number of signals with which the process ends, whatever is under way.
const INSISTENT: u32 = 3;

/// The first signal that was deferred, or 0.
static DEFERRED: AtomicI32 = AtomicI32::new(0);

/// The number of signals since the deferral began.
static ARRIVED: AtomicU32 = AtomicU32::new(0);

/// The signals that are deferred now.
static HELD: Mutex<Vec<libc::c_int>> = Mutex::new(Vec::new());

/// Defers signals around changes of logins.
pub(super) fn install() {
    hold_process(ProcessHold { begin, end });
}

/// Runs in a signal handler: it only sets atomics, and ends the process.
extern "C" fn arrived(signal: libc::c_int) {
    let _ = DEFERRED.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire);
    if ARRIVED.fetch_add(1, Ordering::AcqRel) + 1 >= INSISTENT {
        // SAFETY: the function may be called in a signal handler.
        unsafe { libc::_exit(128 + signal) };
    }
}

fn handler() -> libc::sighandler_t {
    arrived as extern "C" fn(libc::c_int) as libc::sighandler_t
}

/// The action of a signal now; `None` where the system does not say.
fn action(signal: libc::c_int) -> Option<libc::sighandler_t> {
    // SAFETY: a zeroed sigaction is a valid value, and no action is changed.
    unsafe {
        let mut current: libc::sigaction = zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut current) == 0).then_some(current.sa_sigaction)
    }
}

fn set_action(signal: libc::c_int, action: libc::sighandler_t) {
    // SAFETY: a zeroed sigaction with an action is a valid value; the handler only sets atomics.
    unsafe {
        let mut next: libc::sigaction = zeroed();
        next.sa_sigaction = action;
        next.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const next, null_mut());
    }
}

fn begin() {
    let Ok(mut held) = HELD.lock() else { return };
    DEFERRED.store(0, Ordering::Release);
    ARRIVED.store(0, Ordering::Release);
    held.clear();
    for signal in ENDING {
        if action(signal) == Some(libc::SIG_DFL) {
            set_action(signal, handler());
            held.push(signal);
        }
    }
}

fn end() {
    let Ok(mut held) = HELD.lock() else { return };
    // A handler that was installed meanwhile stays; it has seen the signal, too.
    held.retain(|signal| action(*signal) == Some(handler()));
    for signal in held.iter() {
        set_action(*signal, libc::SIG_DFL);
    }
    let deferred = DEFERRED.swap(0, Ordering::AcqRel);
    if held.contains(&deferred) {
        // SAFETY: the default action of the signal ends this process, as it would have done before.
        unsafe { libc::raise(deferred) };
    }
    held.clear();
}
