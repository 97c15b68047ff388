//! The one thing the edge needs from the runtime, so that tests can replace it.

use ptc_runtime::Now;
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::Outcome;
use ptc_runtime::watcher::RunWatcher;

/// Stops a submitted program, whose watcher is told so. Without effect once it has ended.
pub type Cancel = Box<dyn FnOnce() + Send>;

/// Runs programs.
pub trait Engine: Sync {
    /// What a thread that runs programs itself keeps between them.
    type Warm: Default;

    /// Runs a program that is known to be over at once, on this thread; `None` means to submit it.
    fn run_now(&self, _warm: &mut Self::Warm, _program: &str, _options: &RunOptions) -> Option<Outcome> {
        None
    }

    /// [`Engine::run_now`] for a caller to whom the text of an answer is enough.
    fn run_brief<'w>(
        &self,
        warm: &'w mut Self::Warm,
        program: &str,
        options: &RunOptions,
    ) -> Option<Now<'w>> {
        self.run_now(warm, program, options).map(|outcome| Now::Outcome(Box::new(outcome)))
    }

    /// Starts a program; its watcher is told how it goes, and exactly once how it ended.
    fn submit(&self, program: String, options: RunOptions, watcher: Box<dyn RunWatcher>) -> Cancel;
}

impl Engine for ptc_runtime::Runtime {
    type Warm = ptc_runtime::Warm;

    fn run_now(&self, warm: &mut Self::Warm, program: &str, options: &RunOptions) -> Option<Outcome> {
        ptc_runtime::Runtime::run_now(self, warm, program, options)
    }

    fn run_brief<'w>(
        &self,
        warm: &'w mut Self::Warm,
        program: &str,
        options: &RunOptions,
    ) -> Option<Now<'w>> {
        ptc_runtime::Runtime::run_brief(self, warm, program, options)
    }

    fn submit(&self, program: String, options: RunOptions, watcher: Box<dyn RunWatcher>) -> Cancel {
        let submitted = ptc_runtime::Runtime::submit(self, program, options, watcher);
        Box::new(move || submitted.cancel())
    }
}
