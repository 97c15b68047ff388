//! Runs work on a native stack that is too small for recursion over values.

/// The native stack of a test, in bytes.
pub const STACK: usize = 256 * 1024;

/// Runs `work` on a thread with a stack of [`STACK`] bytes. An overflow aborts the process.
pub fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap();
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
