//! The one thing `lisp_eval` needs from the runtime, so that tests can replace it.

use crate::tools::Cancel;
use ptc_runtime::Runtime;
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::Outcome;
use ptc_runtime::watcher::RunWatcher;

/// Runs programs.
pub trait Evaluator: Send + Sync {
    /// Runs a program that is known to be over at once, on this thread, and shows its outcome; false, and nothing
    /// shown, means to submit it. So it does with a context that is too large, no object or has keys that are no names.
    fn try_run(
        &self,
        _program: &str,
        _context: Option<&str>,
        _options: &RunOptions,
        _look: &mut dyn FnMut(&Outcome),
    ) -> bool {
        false
    }

    /// Starts a program; its watcher is told how it goes, and exactly once how it ended.
    fn submit(&self, program: String, options: RunOptions, watcher: Box<dyn RunWatcher>) -> Cancel;
}

impl Evaluator for Runtime {
    fn try_run(
        &self,
        program: &str,
        context: Option<&str>,
        options: &RunOptions,
        look: &mut dyn FnMut(&Outcome),
    ) -> bool {
        Runtime::try_run(self, program, context, options, look).is_some()
    }

    fn submit(&self, program: String, options: RunOptions, watcher: Box<dyn RunWatcher>) -> Cancel {
        let submitted = Runtime::submit(self, program, options, watcher);
        Box::new(move || submitted.cancel())
    }
}
