//! Chooses and starts the interpreter of Python scripts, and sets the limits of scripts, as the command-line flags and
//! the configuration say.

use super::limits::{FlagTable, LimitFlags};
#[cfg(feature = "monty")]
use crate::cli::exec::worker::WORKER;
use ptc_calls::limit_table;
use ptc_calls::limits::Limits;
use ptc_python::engine::Engine;
use ptc_python::engine::cpython::{CPython, Options};
#[cfg(feature = "monty")]
use ptc_python::engine::monty::Monty;
use ptc_server::console::Abort;
use ptc_server::tools::execute_program::ScriptLimits;
use ptc_upstream::config::ScriptSettings;
use std::path::PathBuf;
use std::sync::Arc;

limit_table! {
    /// The limits of a script, in addition to those of programs.
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
    /// What runs scripts: cpython is the interpreter in a jail of the kernel, monty one of a subset of Python that
    /// ptc has when it is built with the feature of that name; auto takes cpython where every layer of its jail can be
    /// enforced, else monty
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t, hide_possible_values = true)]
    python_engine: EngineChoice,
    /// The interpreter, 3.10 or later
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,
    /// Run scripts of cpython without a jail: each can do whatever ptc can
    #[arg(long)]
    python_unsandboxed: bool,
    #[command(flatten)]
    limits: LimitFlags<PythonLimits>,
}

/// `--python-engine`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum EngineChoice {
    /// The first that its scripts can be held in.
    #[default]
    Auto,
    /// The machine's `python3`.
    Cpython,
    /// The subset that is built in.
    Monty,
}

/// What to do where no engine can run scripts.
pub const REMEDY: &str = if cfg!(feature = "monty") {
    "--python-engine monty runs a subset of Python anywhere; --python-unsandboxed runs scripts without a jail, as the \
     user that ptc runs as"
} else {
    "install python3, 3.10 or later, or name an interpreter with --python; a ptc that is built with --features monty \
     runs a subset of Python without one; --python-unsandboxed runs scripts without a jail, as the user that ptc runs as"
};

impl PythonFlags {
    /// The limits of scripts: defaults, then the configuration, then environment variables, then flags.
    ///
    /// The timeout of an upstream call does not apply to scripts unless it was set: a call may use all the
    /// time of its script.
    pub fn limits(
        &self,
        programs: &LimitFlags,
        has_upstreams: bool,
        configured: ScriptSettings,
    ) -> Result<ScriptLimits, Abort> {
        const CALL: &str = "upstream-call-timeout";
        let says_call_timeout = programs.is_given(CALL)?;
        let mut programs = programs.limits(has_upstreams)?;
        if !says_call_timeout {
            programs.upstream_call_timeout_ms = u64::MAX;
        }
        self.with_programs(programs, configured)
    }

    /// The limits of scripts that are replayed: what they may do is that of their recordings.
    pub fn limits_of_replays(&self) -> Result<ScriptLimits, Abort> {
        self.with_programs(Limits::default(), ScriptSettings::default())
    }

    /// The limits of scripts with these limits of calls.
    fn with_programs(&self, programs: Limits, configured: ScriptSettings) -> Result<ScriptLimits, Abort> {
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

    /// Describes the isolation of scripts on this machine, for `ptc doctor`.
    ///
    /// # Errors
    /// Why scripts cannot run.
    pub async fn describe(&self) -> Result<String, String> {
        let limits = self.limits_of_replays().map_err(|abort| abort.message)?;
        let ChosenEngine { engine, instead_of } = self.choose(&limits, u64::MAX).await?;
        let why = instead_of.map(|why| format!("; not CPython: {why}")).unwrap_or_default();
        Ok(engine.describe() + &why)
    }

    async fn cpython(&self, limits: &ScriptLimits, total_bytes: u64) -> Result<Arc<dyn Engine>, String> {
        let options = Options {
            python: self.python.clone(),
            jail: !self.python_unsandboxed,
            memory_bytes: limits.process_bytes,
            total_bytes,
            // The kernel counts whole seconds. One more lets the wall clock end a script first.
            cpu_seconds: limits.limits.timeout_ms / 1_000 + 1,
        };
        Ok(Arc::new(CPython::start(options).await?))
    }

    #[cfg(feature = "monty")]
    fn monty(limits: &ScriptLimits) -> Result<Arc<dyn Engine>, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = vec![program.into_os_string(), WORKER.into()];
        Ok(Arc::new(Monty::start(program, limits.process_bytes)?))
    }

    #[cfg(not(feature = "monty"))]
    fn monty(_: &ScriptLimits) -> Result<Arc<dyn Engine>, String> {
        Err("this ptc was built without monty (cargo build --release --features monty builds one with it)"
            .to_owned())
    }

    async fn choose(&self, limits: &ScriptLimits, total_bytes: u64) -> Result<ChosenEngine, String> {
        let chosen = |engine| ChosenEngine { engine, instead_of: None };
        match self.python_engine {
            EngineChoice::Cpython => self.cpython(limits, total_bytes).await.map(chosen),
            EngineChoice::Monty => PythonFlags::monty(limits).map(chosen),
            EngineChoice::Auto => match self.cpython(limits, total_bytes).await {
                Ok(engine) => Ok(chosen(engine)),
                Err(why) => match PythonFlags::monty(limits) {
                    Ok(engine) => Ok(ChosenEngine { engine, instead_of: Some(why) }),
                    Err(_) => Err(why),
                },
            },
        }
    }

    /// Starts the engine; `total_bytes` bounds the memory of all script processes together.
    pub async fn engine(&self, limits: &ScriptLimits, total_bytes: u64) -> Result<Arc<dyn Engine>, Abort> {
        let refused = |why: String| Abort::usage(format!("Python scripts cannot be run: {why}; {REMEDY}"));
        let ChosenEngine { engine, instead_of } = self.choose(limits, total_bytes).await.map_err(refused)?;
        if let Some(why) = instead_of {
            tracing::warn!("Python scripts run by monty, which has a subset of Python, since {why}");
        }
        tracing::info!(engine = engine.describe(), "Python scripts can be run");
        Ok(engine)
    }
}

/// The engine that runs scripts.
struct ChosenEngine {
    engine: Arc<dyn Engine>,
    /// Why it is not CPython, where CPython was tried first.
    instead_of: Option<String>,
}
