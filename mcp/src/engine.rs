//! The one thing the edge needs from the runtime.

use futures_util::future::BoxFuture;
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::Outcome;

/// Runs programs. Dropping the future cancels the run.
pub trait Engine: Sync {
    /// Runs one program to its outcome.
    fn run(&self, source: String, options: RunOptions) -> BoxFuture<'_, Outcome>;
}

impl Engine for ptc_runtime::Runtime {
    fn run(&self, source: String, options: RunOptions) -> BoxFuture<'_, Outcome> {
        Box::pin(ptc_runtime::Runtime::run(self, source, options))
    }
}
