//! Replays a recorded run in the engine of its language (Lisp or Python), for `ptc replay` and `ptc test`.

use crate::cli::flags::python::PythonFlags;
use ptc_calls::journal::{Language, Recording};
use ptc_engine::{ReplayOptions, Replayed, Runtime};
use ptc_python::engine::Engine;
use ptc_server::console::Abort;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// What recordings are replayed with.
pub(super) struct Replayer<'f> {
    runtime: Arc<Runtime>,
    python: &'f PythonFlags,
    /// Started with the first script.
    engine: OnceCell<Arc<dyn Engine>>,
}

impl<'f> Replayer<'f> {
    /// Replays in this runtime, and scripts in the engine of these flags.
    pub(super) fn new(runtime: Arc<Runtime>, python: &'f PythonFlags) -> Replayer<'f> {
        Replayer { runtime, python, engine: OnceCell::new() }
    }

    /// Replays one recording.
    ///
    /// # Errors
    /// It cannot be run.
    pub(super) async fn replay(
        &self,
        recording: &Arc<Recording>,
        options: &ReplayOptions,
    ) -> Result<Replayed, Abort> {
        let replayed = match recording.header().language {
            Language::Lisp => self.runtime.replay(recording, options).await,
            Language::Python => {
                let engine = self.engine.get_or_try_init(|| self.start_engine()).await?.clone();
                ptc_python::replay::replay(&self.runtime, recording, options, engine).await
            }
        };
        replayed.map_err(|error| Abort::usage(error.to_string()))
    }

    async fn start_engine(&self) -> Result<Arc<dyn Engine>, Abort> {
        self.python.engine(&self.python.limits_of_replays()?, u64::MAX).await
    }

    /// Stops the runtime.
    pub(super) async fn shutdown(self) {
        self.runtime.shutdown().await;
    }
}
