//! Defines the trait `Evaluator`, through which `lisp_eval` and similar tools run programs: implemented by the runtime,
//! and by substitutes in tests.

use crate::tools::Cancel;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::InDoubt;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::Outcome;
use ptc_calls::watcher::RunWatcher;
use ptc_engine::Runtime;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Runs programs.
pub trait Evaluator: Send + Sync {
    /// Runs a program on this thread if it is known to be short, and passes its outcome to `look`.
    ///
    /// Returns false, without a call of `look`, when the program must be submitted instead. This includes a
    /// context that is too large, is no object, or has a key that is no name.
    fn try_run(
        &self,
        _program: &str,
        _context: Option<&str>,
        _options: &RunOptions,
        _look: &mut dyn FnMut(&Outcome),
    ) -> bool {
        false
    }

    /// Starts a program. The watcher gets its progress, and its end exactly once.
    fn submit(&self, program: String, options: RunOptions, watcher: Box<dyn RunWatcher>) -> Cancel;

    /// Goes on with a stored run. An evaluator without stored runs drops the watcher.
    fn resume(self: Arc<Self>, _run: String, _options: RunOptions, _: Box<dyn RunWatcher>) -> Cancel {
        Box::new(|| {})
    }
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
        let submitted = self.scope().submit(program, options, watcher);
        Box::new(move || submitted.cancel())
    }

    fn resume(self: Arc<Self>, run: String, options: RunOptions, watcher: Box<dyn RunWatcher>) -> Cancel {
        let (cancel, cancelled) = oneshot::channel::<()>();
        tasks::spawn(TaskOwner::Run, async move {
            let resumed = self.resume_for(&run, InDoubt::Report, options, watcher).await;
            // The runtime may end meanwhile.
            drop(self);
            match resumed {
                Ok(submitted) => {
                    if cancelled.await.is_ok() {
                        submitted.cancel();
                    }
                }
                Err(error) => tracing::error!(%error, "a stored run does not go on"),
            }
        });
        // Dropping it leaves the run alone.
        Box::new(move || {
            let _ = cancel.send(());
        })
    }
}
