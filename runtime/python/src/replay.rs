//! Replays recorded Python scripts: their tool calls get the recorded answers, except that calls which only read can go
//! to live servers, if requested.

use crate::engine::{Engine, Script};
use crate::guest::ScriptRun;
use ptc_calls::journal::{Recording, RecordingError};
use ptc_engine::{ReplayOptions, Replayed, ReplayedScript, Runtime};
use std::sync::Arc;

/// Limit of the output of a script whose recording does not have it.
const OUTPUT_BYTES: usize = 1 << 16;

/// Runs a recorded script again in this engine. Calls find their answers by server, tool and arguments; a script that is
/// not edited gets the answers in the recorded order.
///
/// # Errors
/// A part of the recording is missing.
pub async fn replay(
    runtime: &Runtime,
    recording: &Arc<Recording>,
    options: &ReplayOptions,
    engine: Arc<dyn Engine>,
) -> Result<Replayed, RecordingError> {
    let guest = |script: ReplayedScript| {
        let ReplayedScript { program, source_name, output_bytes, broker, journal } = script;
        let script = Script { code: program, output_bytes: output_bytes.unwrap_or(OUTPUT_BYTES) };
        let (functions, permit, replayed) = (Arc::default(), None, Some(journal));
        ScriptRun { engine, broker, functions, script, source_name, replayed, permit }.into_run()
    };
    runtime.replay_script(recording, options, guest).await
}
