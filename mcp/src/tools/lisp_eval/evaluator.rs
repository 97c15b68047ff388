//! The one thing `lisp_eval` needs from the runtime, so that tests can replace it.

use crate::tools::Cancel;
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::Outcome;
use ptc_runtime::watcher::RunWatcher;
use ptc_runtime::{Runtime, Warm};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Weak};

/// Runs programs.
pub trait Evaluator: Send + Sync {
    /// Runs a program that is known to be over at once, on this thread; `None` means to submit it.
    fn run_now(&self, _program: &str, _options: &RunOptions) -> Option<Outcome> {
        None
    }

    /// Starts a program; its watcher is told how it goes, and exactly once how it ended.
    fn submit(&self, program: String, options: RunOptions, watcher: Box<dyn RunWatcher>) -> Cancel;
}

thread_local! {
    /// Programs that this thread keeps loaded, and the runtime that they belong to: an isolate never leaves its
    /// thread, while a connection may.
    ///
    /// Freeing an isolate needs other thread-locals, which may be gone when a thread ends. So what the threads that
    /// serve connections keep, a few small programs each, is left to the end of the process.
    static LOADED: ManuallyDrop<RefCell<(Weak<Runtime>, Warm)>> = ManuallyDrop::default();
}

/// A runtime as what a tool runs programs on.
pub struct RuntimeEvaluator(pub Arc<Runtime>);

impl Evaluator for RuntimeEvaluator {
    fn run_now(&self, program: &str, options: &RunOptions) -> Option<Outcome> {
        LOADED.with(|loaded| {
            let (owner, warm) = &mut *loaded.borrow_mut();
            // The weak count keeps the address from being used again.
            if !std::ptr::eq(owner.as_ptr(), Arc::as_ptr(&self.0)) {
                (*owner, *warm) = (Arc::downgrade(&self.0), Warm::default());
            }
            self.0.run_now(warm, program, options)
        })
    }

    fn submit(&self, program: String, options: RunOptions, watcher: Box<dyn RunWatcher>) -> Cancel {
        let submitted = self.0.submit(program, options, watcher);
        Box::new(move || submitted.cancel())
    }
}
