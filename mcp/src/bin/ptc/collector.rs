//! Returns the free memory of an idle thread from the allocator (mimalloc) to the operating system.

unsafe extern "C" {
    /// Part of mimalloc's library. Its Rust bindings do not declare it by default.
    fn mi_collect(force: bool);
}

/// Returns free pages of the calling thread, and of threads that have ended, to the system.
pub(crate) fn collect() {
    // SAFETY: the function takes no memory of the caller and may be called on any thread at any time.
    unsafe { mi_collect(true) }
}
