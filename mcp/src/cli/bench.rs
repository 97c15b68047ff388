//! `ptc bench`.

use super::boot::start_runtime;
use super::console;
use super::exit::{Abort, Exit};
use crate::bench::overhead::WAYS;
use crate::bench::pmap::{BareClient, run as run_program};
use crate::bench::workload::WORKLOADS;
use crate::bench::{delay_server, tool_list};
use clap::Subcommand;
use ptc_runtime::config::ServerEntry;
use ptc_runtime::{Runtime, RuntimeConfig};
use std::time::Duration;

/// Arguments of `ptc bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc bench pmap            100 and 1,000 calls of 200 ms in flight, against a bare client
  ptc bench overhead        what a tool/call costs beyond its server
  ptc bench tool-list       bytes of the tool list with 1 to 1,000 upstream tools
  ptc bench workload w1     one workload of the peer benchmark, CPU time")]
pub struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// pmap over a slow tool, against a bare client doing the same
    Pmap(PmapArgs),
    /// Calls through ptc against a bare client making the same ones
    Overhead(OverheadArgs),
    /// One workload of the peer benchmark: prints `RES name result ms ms …`
    Workload(WorkloadArgs),
    /// Bytes of the tool list that clients read, beside those of the upstreams
    ToolList(ToolListArgs),
    /// A server with made-up tools, for `ptc bench tool-list`
    #[command(hide = true)]
    ToolServer(ToolServerArgs),
    /// The server that `ptc bench pmap` calls
    #[command(hide = true)]
    DelayServer(DelayArgs),
}

#[derive(Debug, clap::Args)]
struct PmapArgs {
    /// Numbers of calls
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    calls: Vec<usize>,
    /// What one call takes
    #[arg(long, value_name = "MS", default_value_t = 200)]
    delay: u64,
    /// Rounds; the best counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Calls of the sequential `map` for comparison; 0 leaves it out
    #[arg(long, default_value_t = 20)]
    sequential: usize,
}

#[derive(Debug, clap::Args)]
struct OverheadArgs {
    /// Rounds; the best counts
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

#[derive(Debug, clap::Args)]
struct WorkloadArgs {
    /// Which: w1 or w2
    name: String,
}

#[derive(Debug, clap::Args)]
struct ToolListArgs {
    /// Numbers of upstream tools
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1000])]
    tools: Vec<usize>,
}

#[derive(Debug, clap::Args)]
struct ToolServerArgs {
    /// How many tools it has
    tools: usize,
}

#[derive(Debug, clap::Args)]
struct DelayArgs {
    /// What one call takes
    delay: u64,
}

/// Runs the command. Like other commands it must not be inside an async context when it begins.
pub fn run(args: BenchArgs) -> Result<Exit, Abort> {
    match args.bench {
        Bench::Pmap(args) => super::on_runtime(pmap(args)),
        Bench::Overhead(args) => super::on_runtime(overhead(args)),
        Bench::Workload(args) => workload(&args),
        Bench::ToolList(args) => super::on_runtime(tool_lists(args)),
        Bench::ToolServer(args) => {
            tool_list::serve(args.tools, std::io::stdin().lock(), std::io::stdout().lock())?;
            Ok(Exit::Ok)
        }
        Bench::DelayServer(args) => {
            delay_server::serve(
                Duration::from_millis(args.delay),
                std::io::stdin().lock(),
                std::io::stdout(),
            )?;
            Ok(Exit::Ok)
        }
    }
}

async fn tool_lists(args: ToolListArgs) -> Result<Exit, Abort> {
    console::write_line(
        "| upstream tools | servers | upstream lists | ptc, default | ptc, inline |\n|---|---|---|---|---|",
    )?;
    for &tools in &args.tools {
        let servers = tools.div_ceil(tool_list::TOOLS_A_SERVER);
        let entry = |index: usize| {
            let own = (tools - index * tool_list::TOOLS_A_SERVER).min(tool_list::TOOLS_A_SERVER).to_string();
            ServerEntry::own_binary(
                &format!("server-{index:02}"),
                "Repositories",
                &["bench", "tool-server", &own],
            )
        };
        let servers = (0..servers).map(entry).collect::<Result<Vec<_>, _>>()?;
        let count = servers.len();
        let runtime = start_runtime(RuntimeConfig { servers, ..RuntimeConfig::default() }).await?;
        let sizes = tool_list::measure(&runtime);
        runtime.shutdown().await;
        console::write_line(&format!(
            "| {tools} | {count} | {} | {} | {} |",
            sizes.upstreams, sizes.auto, sizes.inline
        ))?;
    }
    Ok(Exit::Ok)
}

fn workload(args: &WorkloadArgs) -> Result<Exit, Abort> {
    let Some(workload) = WORKLOADS.iter().find(|workload| workload.name == args.name) else {
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        return Err(Abort::usage(format!("no workload {:?}; there are {}", args.name, names.join(", "))));
    };
    match workload.run() {
        Ok(measured) => {
            let millis: Vec<String> = measured.millis.iter().map(|millis| format!("{millis:.4}")).collect();
            console::write_line(&format!("RES {} {} {}", workload.name, measured.result, millis.join(" ")))?;
            eprintln!("{}: {} units of fuel a run", workload.title, measured.fuel);
            Ok(Exit::Ok)
        }
        Err(message) => Err(Abort { exit: Exit::ProgramFailed, message }),
    }
}

async fn pmap(args: PmapArgs) -> Result<Exit, Abort> {
    let delay = args.delay.to_string();
    let command = ["bench", "delay-server", &delay];
    let entry = ServerEntry::own_binary(delay_server::NAME, "answers late", &command)?;
    let config = RuntimeConfig { servers: vec![entry], ..RuntimeConfig::default() };
    let runtime = start_runtime(config).await?;
    let mut bare = BareClient::start(&command.map(String::from))?;
    console::write_line("| program | calls | bare client | ptc | ratio |\n|---|---|---|---|---|")?;
    for &calls in &args.calls {
        let (mut best_bare, mut best) = (Duration::MAX, Duration::MAX);
        for _ in 0..args.rounds {
            best_bare = best_bare.min(bare.calls(calls)?);
            best = best.min(checked(&runtime, "pmap", calls).await?);
        }
        let ratio = best.as_secs_f64() / best_bare.as_secs_f64();
        console::write_line(&format!(
            "| pmap | {calls} | {} | {} | {ratio:.2} |",
            millis(best_bare),
            millis(best)
        ))?;
    }
    if args.sequential > 0 {
        let duration = checked(&runtime, "map", args.sequential).await?;
        console::write_line(&format!("| map | {} | | {} | |", args.sequential, millis(duration)))?;
    }
    runtime.shutdown().await;
    Ok(Exit::Ok)
}

async fn overhead(args: OverheadArgs) -> Result<Exit, Abort> {
    let mut entries: Vec<ServerEntry> = Vec::new();
    for way in WAYS {
        let entry = way.entry()?;
        if !entries.iter().any(|known| known.name == entry.name) {
            entries.push(entry);
        }
    }
    let config = RuntimeConfig { servers: entries, ..RuntimeConfig::default() };
    let runtime = start_runtime(config).await?;
    console::write_line("| calls | bare client | ptc | more a call |\n|---|---|---|---|")?;
    for way in WAYS {
        let measured = way.measure(&runtime, args.rounds).await?;
        let each = (measured.ptc.as_secs_f64() - measured.bare.as_secs_f64()) * 1e6 / way.calls as f64;
        console::write_line(&format!(
            "| {}: {} | {} | {} | {each:.1} µs |",
            way.calls,
            way.name,
            millis(measured.bare),
            millis(measured.ptc)
        ))?;
    }
    runtime.shutdown().await;
    Ok(Exit::Ok)
}

fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

async fn checked(runtime: &Runtime, form: &str, calls: usize) -> Result<Duration, Abort> {
    let round = run_program(runtime, form, calls).await;
    match round.answer {
        Ok(answer) if answer == calls.to_string() => Ok(round.duration),
        Ok(answer) => {
            let message = format!("{form} of {calls} calls: only {answer} came back well");
            Err(Abort { exit: Exit::ProgramFailed, message })
        }
        Err(message) => Err(Abort { exit: Exit::ProgramFailed, message }),
    }
}
