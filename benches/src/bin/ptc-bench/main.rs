//! The command line of `ptc-bench`: the arguments of each measurement of `ptc`, and the tables that it
//! prints. Measurements of the server start the `ptc` in the folder of `ptc-bench`.

#[path = "../../../../mcp/src/bin/ptc/allocator.rs"]
mod allocator;
#[path = "../../../../mcp/src/bin/ptc/collector.rs"]
mod collector;
mod overhead;
mod scripts;

use clap::{Parser, Subcommand};
use overhead::OverheadArgs;
use ptc_benches::measure::memory::{sessions, suspended, values};
use ptc_benches::measure::pmap::{self as pmap_measure, Sides, Transport};
use ptc_benches::measure::workload::{Tracking, WORKLOADS};
use ptc_benches::measure::{
    delay_http, delay_server, fairness, http_load, latency, prelude, serve, spill, text_block, tool_list,
};
use ptc_engine::RuntimeConfig;
use ptc_mcp::cli::boot::start_runtime;
use ptc_server::console::{self, logging};
use ptc_server::console::{Abort, Exit};
use ptc_server::redact::{self, Form, shapes};
use ptc_upstream::config::ServerEntry;
use scripts::PythonBenchArgs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: allocator::Mimalloc = allocator::Mimalloc;

/// Measures ptc.
#[derive(Debug, Parser)]
#[command(
    name = "ptc-bench",
    about = "Measures ptc: calls in flight, requests a second, memory, workloads",
    after_help = "Examples:
  ptc-bench pmap            100 and 1,000 calls of 200 ms in flight, against a bare client
  ptc-bench pmap --transport http      the same over HTTP, against reqwest alone
  ptc-bench python          a trivial script end to end; 100 calls of 200 ms in flight
  ptc-bench overhead        what a tool/call costs beyond its server
  ptc-bench serve           requests a second over stdio, against a bare loop
  ptc-bench http            the same over HTTP, against a bare axum echo; a quiet client beside a flood; idle ones
  ptc-bench fairness        1,000 new programs beside 40 long ones; 200,000 pipelined ones
  ptc-bench text-block      5 MB of JSON in a text block, against serde_json
  ptc-bench spill           a result of 500 MB in a file: memory, grep, sums by slices
  ptc-bench tool-list       bytes of the tool list with 1 to 1,000 upstream tools
  ptc-bench workloads       the nine workloads of the peer benchmark: time, fuel, bytes
  ptc-bench labels          the same with labels on values, against without
  ptc-bench workload w1     one of them, for the peer benchmark's runner
  ptc-bench latency         source text to value, new and reused isolates
  ptc-bench suspended       memory of programs that wait for a tool
  ptc-bench session         memory and time of sessions, beside programs on their own
  ptc-bench prelude         what attaching a prelude costs a program, and calling it
  ptc-bench values          memory of strings, maps, vectors …"
)]
struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// pmap over a slow tool, against a bare client doing the same
    Pmap(PmapArgs),
    /// Python scripts: a trivial one end to end, and gather over a slow tool against a bare client
    Python(PythonBenchArgs),
    /// Calls through ptc against a bare client making the same ones
    Overhead(OverheadArgs),
    /// Requests a second of `ptc serve` over stdio, against a loop that only reads and answers JSON-RPC
    Serve(ServeBenchArgs),
    /// Requests a second over HTTP against a bare axum echo, a quiet client during a flood, idle connections
    Http(http_load::HttpBenchArgs),
    /// Requests a second over HTTP with a signed token of an issuer, against a static token
    HttpTokens(http_load::tokens::TokenBenchArgs),
    /// The echo of `ptc-bench http`
    #[command(hide = true)]
    HttpEcho,
    /// How long new programs wait in a server full of long ones, and how many of a flood are refused
    Fairness(FairnessArgs),
    /// A large JSON text block from frame to values, against unescaping and serde_json
    TextBlock(TextBlockArgs),
    /// The workloads of the peer benchmark: CPU time, fuel and bytes of one run
    Workloads,
    /// The nine workloads with labels on values, against without: no value has a label, all have one
    Labels,
    /// Small programs from source text to value: microseconds, new and reused isolates
    Latency(LatencyArgs),
    /// Memory of programs that are suspended in a call
    Suspended(SuspendedArgs),
    /// Sessions: memory of an empty one, time of its first program with and without a session
    Session(SessionArgs),
    /// Preludes of 1, 50 and 1,000 exports: what attaching them and calling an export costs
    Prelude {
        /// Runs of each program
        #[arg(long, default_value_t = 5_000)]
        runs: usize,
    },
    /// Memory of values, by the program's account and by the process
    Values(ValuesArgs),
    /// One workload of the peer benchmark: prints `RES name result ms ms …`
    Workload(WorkloadArgs),
    /// Bytes of the tool list that clients read, compared with those of the upstreams
    ToolList(ToolListArgs),
    /// A server with made-up tools, for `ptc-bench tool-list`
    #[command(hide = true)]
    ToolServer(ToolServerArgs),
    /// A result of 500 MB through proxy-dispatch: memory of the server, and how fast the result is looked into
    Spill(SpillArgs),
    /// The server of `ptc-bench spill`
    #[command(hide = true)]
    RowsServer,
    /// The bare loop of `ptc-bench serve`
    #[command(hide = true)]
    EchoServer,
    /// The server that `ptc-bench pmap` calls
    #[command(hide = true)]
    DelayServer(DelayArgs),
}

#[derive(Debug, clap::Args)]
struct PmapArgs {
    /// How the server is reached
    #[arg(long, value_enum, default_value_t = Transport::Stdio)]
    transport: Transport,
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
struct ServeBenchArgs {
    /// Requests of each round
    #[arg(long, default_value_t = 200_000)]
    requests: usize,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

#[derive(Debug, clap::Args)]
struct FairnessArgs {
    /// Long programs that run meanwhile
    #[arg(long, default_value_t = 40)]
    others: usize,
    /// New programs sent for each kind of long ones
    #[arg(long, default_value_t = 1_000)]
    programs: usize,
    /// New programs that are pipelined
    #[arg(long, default_value_t = 200_000)]
    flood: usize,
}

#[derive(Debug, clap::Args)]
struct TextBlockArgs {
    /// Bytes of JSON
    #[arg(long, default_value_t = 5_000_000)]
    bytes: usize,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

#[derive(Debug, clap::Args)]
struct LatencyArgs {
    /// Runs of each row; the fastest counts
    #[arg(long, default_value_t = 2000)]
    runs: usize,
}

#[derive(Debug, clap::Args)]
struct SuspendedArgs {
    /// Programs to suspend
    #[arg(long, default_value_t = 100_000)]
    programs: usize,
}

#[derive(Debug, clap::Args)]
struct SessionArgs {
    /// Sessions open at once
    #[arg(long, default_value_t = 1_000)]
    sessions: usize,
}

#[derive(Debug, clap::Args)]
struct ValuesArgs {
    /// How many of each kind
    #[arg(long, default_value_t = 100_000)]
    count: usize,
}

#[derive(Debug, clap::Args)]
struct WorkloadArgs {
    /// Which: w1 w2 w3 w4 w5 w6 w7p w7w w8
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
struct SpillArgs {
    /// Bytes of the result
    #[arg(long, default_value_t = 500_000_000)]
    bytes: u64,
}

#[derive(Debug, clap::Args)]
struct DelayArgs {
    /// What one call takes
    delay: u64,
    /// Over HTTP; the port is printed on stdout
    #[arg(long)]
    http: bool,
}

fn main() -> ExitCode {
    ptc_base::memory::set_collector(collector::collect);
    logging::init(logging::LogFilter::default());
    match BenchArgs::parse().run() {
        Ok(exit) => exit.into(),
        Err(abort) => {
            console::complain(&format!("error: {}", abort.message));
            abort.exit.into()
        }
    }
}

impl BenchArgs {
    fn run(self) -> Result<Exit, Abort> {
        match self.bench {
            Bench::Pmap(args) => ptc_mcp::cli::on_runtime(pmap(args)),
            Bench::Python(args) => ptc_mcp::cli::on_runtime(scripts::scripts(args)),
            Bench::Overhead(args) => ptc_mcp::cli::on_runtime(overhead::run(args)),
            Bench::Serve(args) => serve_rates(&args),
            Bench::Http(args) => {
                http_load::report(&args, console::write_line)?;
                Ok(Exit::Ok)
            }
            Bench::HttpTokens(args) => {
                http_load::tokens::report(&args, console::write_line)?;
                Ok(Exit::Ok)
            }
            Bench::HttpEcho => ptc_mcp::cli::on_all_cores(async {
                let say =
                    |url: &str| console::write_line(url).map_err(|abort| io::Error::other(abort.message));
                http_load::echo(say).await?;
                Ok(Exit::Ok)
            }),
            Bench::Fairness(args) => fair(&args),
            Bench::TextBlock(args) => text_blocks(&args),
            Bench::EchoServer => {
                serve::echo(std::io::stdin(), redact::stdout(Form::Json(&shapes::MCP)))?;
                Ok(Exit::Ok)
            }
            Bench::Spill(args) => spilled(&args),
            Bench::RowsServer => {
                spill::serve(std::io::stdin().lock(), redact::stdout(Form::Json(&shapes::MCP)))?;
                Ok(Exit::Ok)
            }
            Bench::Workloads => workloads(),
            Bench::Labels => labels(),
            Bench::Latency(args) => latency(&args),
            Bench::Suspended(args) => suspended(&args),
            Bench::Prelude { runs } => ptc_mcp::cli::on_runtime(async move {
                console::write_line(&prelude::report(runs).await.map_err(program_failed)?)?;
                Ok(Exit::Ok)
            }),
            Bench::Session(args) => ptc_mcp::cli::on_runtime(session_cost(args)),
            Bench::Values(args) => value_sizes(&args),
            Bench::Workload(args) => workload(&args),
            Bench::ToolList(args) => ptc_mcp::cli::on_runtime(tool_lists(args)),
            Bench::ToolServer(args) => {
                tool_list::serve(
                    args.tools,
                    std::io::stdin().lock(),
                    redact::stdout(Form::Json(&shapes::MCP)),
                )?;
                Ok(Exit::Ok)
            }
            Bench::DelayServer(args) if args.http => ptc_mcp::cli::on_runtime(async move {
                let say = |port| {
                    console::write_line(&format!("{port}")).map_err(|abort| io::Error::other(abort.message))
                };
                delay_http::serve(Duration::from_millis(args.delay), say).await?;
                Ok(Exit::Ok)
            }),
            Bench::DelayServer(args) => {
                delay_server::serve(
                    Duration::from_millis(args.delay),
                    std::io::stdin().lock(),
                    redact::stdout(Form::Json(&shapes::MCP)),
                )?;
                Ok(Exit::Ok)
            }
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
            ServerEntry::own_binary(&format!("server-{index:02}"), "Repositories", &["tool-server", &own])
        };
        let servers = (0..servers).map(entry).collect::<Result<Vec<_>, _>>()?;
        let count = servers.len();
        let runtime = Arc::new(start_runtime(RuntimeConfig { servers, ..RuntimeConfig::default() }).await?);
        let sizes = tool_list::measure(&runtime);
        runtime.shutdown().await;
        console::write_line(&format!(
            "| {tools} | {count} | {} | {} | {} |",
            sizes.upstreams, sizes.auto, sizes.inline
        ))?;
    }
    Ok(Exit::Ok)
}

fn spilled(args: &SpillArgs) -> Result<Exit, Abort> {
    let spill::SpillFigures { bytes, idle, peak, call, stat, grep, peer, sum, program } =
        spill::measure(args.bytes).map_err(program_failed)?;
    let [bytes, idle, peak] = [bytes, idle, peak].map(|bytes| bytes as f64 / 1e6);
    let [call, stat, grep, peer, sum] = [call, stat, grep, peer, sum].map(|took| took.as_secs_f64() * 1e3);
    console::write_line(&format!(
        "| kept MB | idle MB | peak MB | call ms | stat ms | grep ms | grep(1) ms | of its speed | sum by slices ms |\n\
         |---|---|---|---|---|---|---|---|---|\n\
         | {bytes:.0} | {idle:.1} | {peak:.1} | {call:.0} | {stat:.2} | {grep:.0} | {peer:.0} | {:.2} | {sum:.0} |",
        peer / grep
    ))?;
    let spill::ProgramFigures { idle, peak, took, fuel } = program;
    console::write_line(&format!(
        "\n| the sum in one program | idle MB | peak MB | s | fuel |\n|---|---|---|---|---|\n\
         | with its call, 32 MB | {:.1} | {:.1} | {:.1} | {fuel} |",
        idle as f64 / 1e6,
        peak as f64 / 1e6,
        took.as_secs_f64()
    ))?;
    Ok(Exit::Ok)
}

fn workload(args: &WorkloadArgs) -> Result<Exit, Abort> {
    let Some(workload) = WORKLOADS.iter().find(|workload| workload.name == args.name) else {
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        return Err(Abort::usage(format!("no workload {:?}; there are {}", args.name, names.join(", "))));
    };
    let measured = workload.run(Path::new("."), Tracking::Off).map_err(program_failed)?;
    let millis: Vec<String> = measured.millis.iter().map(|millis| format!("{millis:.4}")).collect();
    console::write_line(&format!("RES {} {} {}", workload.name, measured.result, millis.join(" ")))?;
    Ok(Exit::Ok)
}

/// Prints how much longer the workloads run with labels on values.
fn labels() -> Result<Exit, Abort> {
    console::write_line("| workload | ms | no value has a label | all have one |\n|---|---|---|---|")?;
    let mut missing = Vec::new();
    for workload in WORKLOADS {
        let least = |tracking| -> Result<f64, Abort> {
            let measured = workload.run(Path::new("."), tracking).map_err(program_failed)?;
            Ok(measured.millis.iter().copied().fold(f64::MAX, f64::min))
        };
        let off = match least(Tracking::Off) {
            Ok(off) => off,
            Err(abort) => {
                missing.push(format!("{}: {}", workload.title, abort.message));
                continue;
            }
        };
        let (clear, sourced) = (least(Tracking::Clear)? / off, least(Tracking::Sourced)? / off);
        console::write_line(&format!("| {} | {off:.2} | {clear:.2} | {sourced:.2} |", workload.title))?;
    }
    missing.iter().try_for_each(|message| console::write_line(message))?;
    Ok(Exit::Ok)
}

/// Prints a table of all workloads. Those without their input file are named below it.
fn workloads() -> Result<Exit, Abort> {
    console::write_line(
        "| workload | ms | fuel | ns per fuel | peak bytes | elements copied |\n|---|---|---|---|---|---|",
    )?;
    let mut missing = Vec::new();
    for workload in WORKLOADS {
        let mut measured = match workload.run(Path::new("."), Tracking::Off) {
            Ok(measured) => measured,
            Err(message) => {
                missing.push(format!("{}: {message}", workload.title));
                continue;
            }
        };
        measured.millis.sort_by(f64::total_cmp);
        let median = measured.millis[measured.millis.len() / 2];
        console::write_line(&format!(
            "| {} | {median:.2} | {} | {:.1} | {} | {} |",
            workload.title,
            measured.fuel,
            median * 1e6 / measured.fuel.max(1) as f64,
            measured.peak_bytes,
            measured.copied_elements
        ))?;
    }
    for line in missing {
        console::complain(&line);
    }
    Ok(Exit::Ok)
}

/// Prints one row a line, in the format of the peer benchmark's drivers.
fn latency(args: &LatencyArgs) -> Result<Exit, Abort> {
    for row in latency::measure(args.runs).map_err(program_failed)? {
        let at = |part: f64| row.micros[((row.micros.len() - 1) as f64 * part) as usize];
        console::write_line(&format!(
            "LAT {} {} min={:.1} med={:.1} p95={:.1} n={}",
            row.name,
            row.result,
            at(0.0),
            at(0.5),
            at(0.95),
            row.micros.len()
        ))?;
    }
    Ok(Exit::Ok)
}

fn serve_rates(args: &ServeBenchArgs) -> Result<Exit, Abort> {
    let all = serve::measure(args.requests, args.rounds)?;
    console::write_line(
        "| server | requests a second | of the bare loop's, by rounds | CPU a request |\n|---|---|---|---|",
    )?;
    for (side, measured) in serve::SIDES.iter().zip(&all) {
        console::write_line(&format!(
            "| {} | {:.0} | {:.2} | {:.2} µs |",
            side.name,
            measured.per_second,
            measured.of_bare,
            measured.cpu.as_secs_f64() * 1e6
        ))?;
    }
    Ok(Exit::Ok)
}

fn fair(args: &FairnessArgs) -> Result<Exit, Abort> {
    console::write_line(&format!(
        "| {} new programs beside {} | one by one: median | p99 | slowest | all at once: median | p99 | slowest |\n\
         |---|---|---|---|---|---|---|",
        args.programs, args.others
    ))?;
    for (name, program) in fairness::KINDS {
        let fairness::WaitsUnderLoad { in_turn, at_once } =
            fairness::under_load(program, args.others, args.programs)?;
        let cells: Vec<String> = [in_turn, at_once]
            .iter()
            .flat_map(|waits| [0.5, 0.99, 1.0].map(|part| millis(waits.at(part))))
            .collect();
        console::write_line(&format!("| {name} | {} |", cells.join(" | ")))?;
    }
    let flood = fairness::flood(args.flood)?;
    console::write_line(&format!(
        "{} pipelined new programs: {} busy, {} in all",
        args.flood,
        flood.busy,
        millis(flood.wall)
    ))?;
    Ok(Exit::Ok)
}

fn text_blocks(args: &TextBlockArgs) -> Result<Exit, Abort> {
    let measured = text_block::measure(args.bytes, args.rounds).map_err(program_failed)?;
    console::write_line(&format!(
        "a text block of {} bytes of JSON, a frame of {} bytes: {} to values, unescape and serde_json {}, ratio {:.2}",
        measured.text_bytes,
        measured.frame_bytes,
        millis(measured.ours),
        millis(measured.serde),
        measured.ours.as_secs_f64() / measured.serde.as_secs_f64()
    ))?;
    Ok(Exit::Ok)
}

fn suspended(args: &SuspendedArgs) -> Result<Exit, Abort> {
    let measured = suspended::measure(args.programs).map_err(program_failed)?;
    let (before, after) = measured.resident;
    console::write_line(&format!(
        "{} suspended programs: {:.1} MB resident (idle {:.1} MB), {:.0} bytes a program, of these {} logical",
        measured.programs,
        after as f64 / 1e6,
        before as f64 / 1e6,
        after.saturating_sub(before) as f64 / measured.programs.max(1) as f64,
        measured.logical
    ))?;
    Ok(Exit::Ok)
}

async fn session_cost(args: SessionArgs) -> Result<Exit, Abort> {
    let measured = sessions::measure(args.sessions).await.map_err(program_failed)?;
    let [before, empty, used] = measured.resident;
    let each = |bytes: u64| bytes.saturating_sub(before) as f64 / measured.sessions.max(1) as f64;
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    console::write_line(&format!(
        "{} sessions: {:.0} bytes each when empty, {:.0} after their first programs\n\
         start and first program {:.1} us, the same program without a session {:.1} us: {:.1} us more; second {:.1} us",
        measured.sessions,
        each(empty),
        each(used),
        micros(measured.session),
        micros(measured.stateless),
        micros(measured.session) - micros(measured.stateless),
        micros(measured.second)
    ))?;
    Ok(Exit::Ok)
}

fn value_sizes(args: &ValuesArgs) -> Result<Exit, Abort> {
    console::write_line("| value | logical bytes | resident bytes |\n|---|---|---|")?;
    for measured in values::measure(args.count).map_err(program_failed)? {
        let values::ValueSize { kind, logical, resident } = measured;
        console::write_line(&format!("| {} | {logical:.0} | {resident:.0} |", kind.name))?;
    }
    Ok(Exit::Ok)
}

fn program_failed(message: String) -> Abort {
    Abort { exit: Exit::ProgramFailed, message }
}

async fn pmap(args: PmapArgs) -> Result<Exit, Abort> {
    let mut sides = Sides::start(args.transport, args.delay)?;
    let config = RuntimeConfig { servers: vec![sides.entry.clone()], ..RuntimeConfig::default() };
    let runtime = start_runtime(config).await?;
    console::write_line(
        "| program | calls | bare client | ptc | ratio | more CPU a call |\n|---|---|---|---|---|---|",
    )?;
    for &calls in &args.calls {
        let best = sides.measure(&runtime, calls, args.rounds).await?;
        console::write_line(&format!(
            "| pmap | {calls} | {} | {} | {:.2} | {:.1} µs |",
            millis(best.bare.wall),
            millis(best.ptc.wall),
            best.ptc.wall.as_secs_f64() / best.bare.wall.as_secs_f64(),
            best.more_micros(calls).1
        ))?;
    }
    if args.sequential > 0 {
        let cost = pmap_measure::run(&runtime, "map", args.sequential).await?;
        console::write_line(&format!("| map | {} | | {} | | |", args.sequential, millis(cost.wall)))?;
    }
    runtime.shutdown().await;
    Ok(Exit::Ok)
}

fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}
