//! The command `ptc exec`, which runs one Python script that can call tools of MCP servers, as the tool
//! `execute_program` of `ptc serve` does.
//!
//! `worker`: the hidden command that runs scripts in Monty, an interpreter of a subset of Python.

#[cfg(feature = "monty")]
pub(super) mod worker;

use super::boot::{Need, UpstreamFlags, boot};
use super::flags::limits::LimitFlags;
use super::flags::python::PythonFlags;
use super::flags::source::without_mark;
use super::print::print_script;
use super::replay::record::RecordFlags;
use clap::Arg;
use ptc_python::engine::Script;
use ptc_python::functions::FunctionTable;
use ptc_python::guest::ScriptRun;
use ptc_server::console::{Abort, Exit};
use std::io::Read;
use std::sync::Arc;

/// Arguments of `ptc exec`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc exec report.py --upstreams-config upstreams.json
  echo 'print(1 + 1)' | ptc exec -

Tools are async functions: `await mcp__<server>__<tool>(name=value)`.")]
#[command(mut_args(without_limits_of_programs))]
pub struct ExecArgs {
    /// The script; - for standard input
    #[arg(value_name = "FILE")]
    file: String,
    #[command(flatten)]
    record: RecordFlags,
    #[command(flatten)]
    python: PythonFlags,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Texts that occur in every script that looks for tools or makes names of them.
const LOOKING: [&str; 8] = ["\"mcp__", "'mcp__", "tools", "help", "globals", "eval", "exec", "dir("];

/// Limits of programs that scripts do not have, and those of scripts in their place.
const OF_PROGRAMS: [(&str, Option<&str>); 7] = [
    ("timeout", Some("python-timeout")),
    ("memory", Some("python-memory")),
    ("max-print-bytes", Some("python-output")),
    ("fuel", None),
    ("loop-limit", None),
    ("parallel-width", None),
    ("max-symbols", None),
];

/// Hides a flag that is refused.
fn without_limits_of_programs(arg: Arg) -> Arg {
    let is_refused = OF_PROGRAMS.iter().any(|(flag, _)| arg.get_id() == flag);
    if is_refused { arg.hide(true) } else { arg }
}

/// Runs the command.
pub async fn run(mut args: ExecArgs) -> Result<Exit, Abort> {
    let is_given = |(flag, _): &&(&str, Option<&str>)| args.limits.has(flag);
    if let Some((flag, of_scripts)) = OF_PROGRAMS.iter().find(is_given) {
        let instead = of_scripts.map_or_else(String::new, |flag| format!(": their limit is --{flag}"));
        return Err(Abort::usage(format!("--{flag} does nothing for scripts{instead}")));
    }
    args.upstreams.recorder = args.record.recorder()?;
    let code = match args.file.as_str() {
        "-" => {
            let mut code = String::new();
            std::io::stdin().read_to_string(&mut code).map(|_| code)
        }
        file => ptc_base::files::read_text(file.as_ref()),
    };
    let code = without_mark(code.map_err(|error| Abort::usage(format!("{}: {error}", args.file)))?);
    let need = if LOOKING.iter().any(|name| code.contains(name)) { Need::All } else { Need::Script(&code) };
    let booted = boot(&args.upstreams, need, 1).await?;
    let limits = args.python.limits(&args.limits, booted.has_upstreams, booted.execution)?;
    let functions = Arc::<FunctionTable>::default();
    if let Some(clash) = functions.for_catalog(&booted.runtime.catalog()).clashes().first() {
        booted.runtime.shutdown().await;
        return Err(Abort::usage(clash.to_string()));
    }
    let engine = args.python.engine(&limits, u64::MAX).await?;
    let script = Script { code: code.into(), output_bytes: limits.output_bytes };
    let broker = booted.runtime.broker().clone();
    let source_name = if args.file == "-" { "<program>".into() } else { args.file.as_str().into() };
    let run = ScriptRun { engine, broker, functions, script, source_name, replayed: None, permit: None };
    let outcome = booted.runtime.run_async(limits.limits, run.into_run()).await;
    booted.runtime.shutdown().await;
    print_script(&outcome, &args.file)
}
