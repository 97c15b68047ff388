//! Finds out before the runtime of Rust starts whether standard output is closed. The runtime opens `/dev/null` in its
//! place, so what is written there is lost without an error.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The loader calls it before `main`.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: it reads the flags of a descriptor, and no memory of this process.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    IS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether standard output was closed when the process began.
pub(super) fn output_is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}
