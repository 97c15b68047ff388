//! `ptc-bench overhead`: compares calls through `ptc` with those of a bare client or, given a policy, calls
//! under the policy with calls without it.

use super::millis;
use clap::Args;
use ptc_benches::measure::overhead::{CALL_PATTERNS, COSTS, RATIOS, RuledRuntimes};
use ptc_calls::policy::Policy;
use ptc_engine::RuntimeConfig;
use ptc_mcp::cli::boot::start_runtime;
use ptc_server::console::{self, Abort, Exit};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct OverheadArgs {
    /// Rounds; the best counts
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Rules for the calls: compares calls with and without them
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
}

pub(crate) async fn run(args: OverheadArgs) -> Result<Exit, Abort> {
    let mut entries = CALL_PATTERNS.iter().map(|pattern| pattern.entry()).collect::<Result<Vec<_>, _>>()?;
    // Patterns of one server stand next to each other.
    entries.dedup_by(|one, other| one.name == other.name);
    let policy = match args.policy.as_slice() {
        [] => None,
        files => {
            Policy::load(files).map(Arc::new).map(Some).map_err(|error| Abort::usage(error.to_string()))?
        }
    };
    let config = |policy| RuntimeConfig { servers: entries.clone(), policy, ..RuntimeConfig::default() };
    if policy.is_some() {
        let start = |policy: &Option<Arc<Policy>>| start_runtime(config(policy.clone()));
        let without = [start(&None).await?, start(&None).await?];
        let with = [start(&policy).await?, start(&policy).await?];
        let runtimes = RuledRuntimes { without, with };
        console::write_line(RATIOS)?;
        for pattern in CALL_PATTERNS {
            console::write_line(&pattern.ratio(&runtimes, args.rounds).await?)?;
        }
        return Ok(Exit::Ok);
    }
    console::write_line(COSTS)?;
    let runtime = start_runtime(config(None)).await?;
    for pattern in CALL_PATTERNS {
        let measured = pattern.measure(&runtime, args.rounds).await?;
        let (more, more_cpu) = measured.more_micros(pattern.calls);
        console::write_line(&format!(
            "| {}: {} | {} | {} | {:.1} µs | {:.1} µs |",
            pattern.calls,
            pattern.name,
            millis(measured.bare.wall),
            millis(measured.ptc.wall),
            more,
            more_cpu
        ))?;
    }
    runtime.shutdown().await;
    Ok(Exit::Ok)
}
