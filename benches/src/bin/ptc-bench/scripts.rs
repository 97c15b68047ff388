//! `ptc-bench python`: Python scripts, compared with a bare client and with other products.

use super::millis;
use ptc_benches::measure::pmap::{Sides, Transport};
use ptc_benches::measure::python;
use ptc_engine::RuntimeConfig;
use ptc_mcp::cli::boot::start_runtime;
use ptc_server::console::{self, Abort, Exit};
use std::time::Duration;

/// The engines that are measured.
const ENGINES: &[&str] = if cfg!(feature = "monty") { &["cpython", "monty"] } else { &["cpython"] };

#[derive(Debug, clap::Args)]
pub(super) struct PythonBenchArgs {
    /// Trivial scripts
    #[arg(long, default_value_t = 200)]
    scripts: usize,
    /// Calls of the script that gathers
    #[arg(long, default_value_t = 100)]
    calls: usize,
    /// What one call takes
    #[arg(long, value_name = "MS", default_value_t = 200)]
    delay: u64,
    /// Rounds of it; the best counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// An interpreter that has pydantic-monty or fastmcp installed, to measure these too
    #[arg(long, value_name = "PYTHON")]
    peers: Option<String>,
}

pub(super) async fn scripts(args: PythonBenchArgs) -> Result<Exit, Abort> {
    console::write_line("| product | trivial script: least | median | p95 |\n|---|---|---|---|")?;
    for engine in ENGINES {
        let times = python::end_to_end(engine, args.scripts)?;
        let at = |part: f64| {
            format!("{:.2} ms", times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3)
        };
        let row = format!("| ptc serve, {engine}, over stdio | {} | {} | {} |", at(0.0), at(0.5), at(0.95));
        console::write_line(&row)?;
    }
    let peers = match &args.peers {
        Some(interpreter) => python::peers(interpreter, args.scripts, args.calls, args.delay)?,
        None => String::new(),
    };
    let (trivial, gathers): (Vec<&str>, Vec<&str>) = peers.lines().partition(|row| row.starts_with("| "));
    trivial.iter().try_for_each(|row| console::write_line(row))?;
    let mut sides = Sides::start(Transport::Stdio, args.delay)?;
    let config = RuntimeConfig { servers: vec![sides.entry.clone()], ..RuntimeConfig::default() };
    let runtime = start_runtime(config).await?;
    console::write_line("\n| product | calls in flight | time | of the bare client's |\n|---|---|---|---|")?;
    let row = |name: &str, took: Duration, bare: Duration| {
        let ratio = took.as_secs_f64() / bare.as_secs_f64();
        console::write_line(&format!("| {name} | {} | {} | {ratio:.2} |", args.calls, millis(took)))
    };
    let mut bare = Duration::MAX;
    for engine in ENGINES {
        let executes = python::engine(engine).await?;
        let best = python::gather(executes, &mut sides, &runtime, args.calls, args.rounds).await?;
        if bare == Duration::MAX {
            row("bare client", best.bare.wall, best.bare.wall)?;
        }
        bare = best.bare.wall;
        row(&format!("ptc, {engine}, asyncio.gather"), best.ptc.wall, bare)?;
    }
    for peer in gathers {
        // A row of calls in flight: `name=seconds`.
        if let Some((name, seconds)) = peer.rsplit_once('=')
            && let Ok(seconds) = seconds.parse::<f64>()
        {
            row(name, Duration::from_secs_f64(seconds), bare)?;
        }
    }
    runtime.shutdown().await;
    Ok(Exit::Ok)
}
