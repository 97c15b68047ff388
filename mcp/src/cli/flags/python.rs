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
    /// What runs scripts: cpython is the interpreter in a jail of the kernel; auto takes what can be held here
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t, hide_possible_values = true)]
    python_engine: EngineChoice,
    /// The interpreter, 3.10 or later
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,
    /// Run scripts without a jail: each can do whatever ptc can
    #[arg(long)]
    python_unsandboxed: bool,
    #[command(flatten)]
    limits: LimitFlags<PythonLimits>,
}

/// `--python-engine`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum EngineChoice {
    /// The first that every layer of its jail can be enforced for.
    #[default]
    Auto,
    /// The machine's `python3`.
    Cpython,
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

    /// What holds scripts here, for `ptc doctor`.
    ///
    /// # Errors
    /// Why they cannot be run.
    pub async fn look(&self) -> Result<String, String> {
        let engine = CPython::start(self.options(
            &self.limits(Limits::default(), ScriptSettings::default()).map_err(|abort| abort.message)?,
        ));
        engine.await.map(|engine| engine.describe())
    }

    fn options(&self, limits: &ScriptLimits) -> Options {
        // There is one engine to choose from.
        let (EngineChoice::Auto | EngineChoice::Cpython) = self.python_engine;
        Options {
            python: self.python.clone(),
            jail: !self.python_unsandboxed,
            memory_bytes: limits.process_bytes,
            // A whole one more, since the kernel counts whole seconds: the wall clock ends a script first.
            cpu_seconds: limits.limits.timeout_ms / 1_000 + 1,
        }
    }

    /// Starts the engine.
    pub async fn engine(&self, limits: &ScriptLimits) -> Result<Arc<dyn Engine>, Abort> {
        let refused = |why: String| {
            Abort::usage(format!(
                "Python scripts cannot be run: {why}. Without `execute_program` in --tools everything else works; \
                 --python-unsandboxed runs scripts without a jail, as the user that ptc runs as"
            ))
        };
        let engine = CPython::start(self.options(limits)).await.map_err(refused)?;
        tracing::info!(engine = engine.describe(), "Python scripts can be run");
        Ok(Arc::new(engine))
    }
}
