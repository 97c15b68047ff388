//! Flags of what runs Python scripts.

use super::limits::{FlagTable, LimitFlags};
use crate::console::exit::Abort;
use crate::tools::execute_program::ScriptLimits;
use ptc_python::engine::Engine;
use ptc_python::engine::cpython::{CPython, Options};
use ptc_runtime::config::ScriptSettings;
use ptc_runtime::limit_table;
use ptc_runtime::limits::Limits;
use std::path::PathBuf;
use std::sync::Arc;

limit_table! {
    /// The limits of a script beside those of programs.
    PythonLimits;
    /// Wall clock of one script, waiting for tools included.
    timeout_ms: Millis = 120_000, "python-timeout", "TimeoutError";
    /// Output of one script.
    output_bytes: Bytes = 65_536, "python-output", "cut";
    /// Memory of one script's process, beyond what the interpreter needs.
    process_bytes: Bytes = 256 << 20, "python-memory", "MemoryError";
}

impl FlagTable for PythonLimits {}

/// Flags of what runs Python scripts.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Python")]
pub struct PythonFlags {
    /// The interpreter, 3.10 or later
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,
    /// Run scripts without a jail: each can do whatever ptc can
    #[arg(long)]
    python_unsandboxed: bool,
    #[command(flatten)]
    limits: LimitFlags<PythonLimits>,
}

impl PythonFlags {
    /// What scripts may use, where programs may use so much: defaults, then what the configuration says, then
    /// environment variables, then flags.
    pub fn limits(&self, programs: Limits, configured: ScriptSettings) -> Result<ScriptLimits, Abort> {
        let mut defaults = PythonLimits::default();
        if let Some(timeout) = configured.timeout {
            defaults.timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        }
        defaults.output_bytes = configured.max_output_bytes.unwrap_or(defaults.output_bytes);
        let PythonLimits { timeout_ms, output_bytes, process_bytes } = self.limits.over(defaults)?;
        Ok(ScriptLimits {
            limits: Limits { timeout_ms, memory_bytes: process_bytes, ..programs },
            output_bytes: usize::try_from(output_bytes).unwrap_or(usize::MAX),
            process_bytes,
        })
    }

    /// Starts the engine.
    pub async fn engine(&self, limits: &ScriptLimits) -> Result<Arc<dyn Engine>, Abort> {
        let options = Options {
            python: self.python.clone(),
            jail: !self.python_unsandboxed,
            memory_bytes: limits.process_bytes,
            // A whole one more, since the kernel counts whole seconds: the wall clock ends a script first.
            cpu_seconds: limits.limits.timeout_ms / 1_000 + 1,
        };
        let refused = |why: String| {
            Abort::usage(format!(
                "Python scripts cannot be run: {why}. Without `execute_program` in --tools everything else works; \
                 --python-unsandboxed runs scripts without a jail, as the user that ptc runs as"
            ))
        };
        let engine = CPython::start(options).await.map_err(refused)?;
        tracing::info!(engine = engine.describe(), "Python scripts can be run");
        Ok(Arc::new(engine))
    }
}
