//! How an idle thread returns memory to the system.

unsafe extern "C" {
    /// Part of mimalloc's library, and of no default part of its bindings.
    fn mi_collect(force: bool);
}

/// Returns free pages of the calling thread, and of threads that have ended, to the system.
pub(crate) fn collect() {
    // SAFETY: the function takes no memory of ours and may be called on any thread at any time.
    unsafe { mi_collect(true) }
}
