//! `ptc serve`: an MCP server over standard input and output.

use super::boot::{Need, UpstreamFlags, boot};
use super::exit::{Abort, Exit};
use super::limits::{LimitFlags, parser};
use super::{cores, variables};
use crate::protocol::{Handler, Surface};
use crate::server::admission::Load;
use crate::server::stdio::{self, StdioConfig};
use crate::tool::caps::Profile;
use crate::tool::definition::definition;
use crate::tool::description::Facts;
use clap::ValueEnum;
use ptc_runtime::limits::Unit;

const DEFAULT_MAX_FRAME_BYTES: usize = 8 << 20;
// A program that waits for tools needs no core, so few cores are no reason to run few programs.
const MIN_CONCURRENT: usize = 8;
const DEFAULT_MAX_SUSPENDED: usize = 1_024;

const INSTRUCTIONS: &str = "Send one PTC-Lisp program to lisp_eval instead of many tool calls: it runs in a \
    sandbox with hard limits, calls the configured MCP servers with tool/call, and returns only its answer.";

/// Arguments of `ptc serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc serve                                            sandbox only, no tools
  ptc serve --upstreams-config upstreams.json
  claude mcp add ptc -- ptc serve --upstreams-config ~/.mcp.json

stdout carries MCP messages, one a line; logs go to stderr. At the end of input,
requests in flight are answered within 2 s, then the server exits with 0.")]
pub struct ServeArgs {
    /// How much of a run an answer shows [default: slim]
    #[arg(long, value_name = "PROFILE", value_enum)]
    response_profile: Option<Profile>,
    /// Programs that run at once, waiting for tools included [default: 2 x cores, at least 8]
    #[arg(long, value_name = "N", value_parser = variables::positive, alias = "max-concurrent-calls")]
    max_concurrent: Option<usize>,
    /// Programs that wait for their turn; beyond that a call is answered with `busy` [default: 1024]
    #[arg(long, value_name = "N")]
    max_suspended: Option<usize>,
    /// Memory that running programs may reach together; lowers the number that run at once
    /// [default: half of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = parser(Unit::Bytes))]
    max_total_memory: Option<u64>,
    /// Longest line of input, in bytes [default: 8388608]
    #[arg(long, value_name = "BYTES", value_parser = variables::positive)]
    max_frame_bytes: Option<usize>,
    /// Announce lisp_eval as read-only although there are upstream servers; this enforces nothing
    #[arg(long)]
    aggregator_read_only: bool,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Runs the command.
pub async fn run(args: ServeArgs) -> Result<Exit, Abort> {
    let profile = match args.response_profile {
        Some(profile) => Some(profile),
        None => variables::read("response-profile", |text| Profile::from_str(text, true))?,
    };
    let number = |flag, given: Option<usize>, parse: fn(&str) -> Result<usize, String>, default| match given {
        Some(number) => Ok(number),
        None => variables::read(flag, parse).map(|read| read.unwrap_or(default)),
    };
    let any = |text: &str| text.parse().map_err(|_| format!("must be a number, got: {text:?}"));
    let mut config = StdioConfig {
        max_frame_bytes: number(
            "max-frame-bytes",
            args.max_frame_bytes,
            variables::positive,
            DEFAULT_MAX_FRAME_BYTES,
        )?,
        load: Load {
            running: number(
                "max-concurrent",
                args.max_concurrent,
                variables::positive,
                (2 * cores()).max(MIN_CONCURRENT),
            )?,
            waiting: number("max-suspended", args.max_suspended, any, DEFAULT_MAX_SUSPENDED)?,
        },
    };
    let read_only = args.aggregator_read_only
        || variables::read("aggregator-read-only", variables::boolean)?.unwrap_or(false);

    let booted = boot(&args.upstreams, Need::All, 0).await?;
    let limits = args.limits.limits(booted.has_upstreams)?;
    let total = match args.max_total_memory {
        Some(total) => Some(total),
        None => variables::read("max-total-memory", parser(Unit::Bytes))?,
    };
    config.load.running = fitting(config.load.running, total.or_else(half_of_ram), limits.memory_bytes);
    let facts = Facts {
        catalog: booted.catalog(),
        discovery: booted.has_discovery(),
        max_calls: limits.max_upstream_calls,
        profile: profile.unwrap_or_default(),
    };
    let surface = Surface {
        tools: vec![definition(&facts, read_only)],
        instructions: INSTRUCTIONS.into(),
        profile: facts.profile,
        limits,
    };
    let handler = Handler::new(surface).map_err(|error| Abort::usage(error.to_string()))?;
    let served =
        stdio::serve(&booted.runtime, &handler, config, std::io::stdin(), std::io::stdout(), stopped()).await;
    booted.runtime.shutdown().await;
    served?;
    Ok(Exit::Ok)
}

/// How many programs may run at once so that all of them together stay within the total; at least one.
fn fitting(running: usize, total: Option<u64>, each: u64) -> usize {
    let Some(total) = total else { return running };
    let fit = usize::try_from(total / each.max(1)).unwrap_or(usize::MAX);
    running.min(fit).max(1)
}

/// Half of the physical memory, where the system says how much that is.
fn half_of_ram() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 512)
}

/// Resolves when the process is asked to stop; treated like the end of input.
async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_lowers_the_number_that_runs_at_once() {
        assert_eq!(fitting(8, None, 100), 8);
        assert_eq!(fitting(8, Some(350), 100), 3);
        assert_eq!(fitting(8, Some(50), 100), 1);
        assert_eq!(fitting(8, Some(5_000), 0), 8);
    }
}
