//! The `ptc` command line: the commands, and how each is run.
//!
//! # Layout
//!
//! - One file or folder a command: [`serve`], [`eval`], [`mod@exec`], [`task`], [`call`], [`batch`],
//!   [`check`], [`disasm`], [`tools`], [`doctor`], [`policy`], [`approvals`], [`pin`], [`prelude`],
//!   [`demo`](mod@demo) for `ptc demo`; [`trace`] draws a recorded call; [`replay`]: recorded runs, and tests of them;
//!   [`runs`]: interrupted ones; [`login`] at servers; [`repl`]; [`config`] with `add`, `remove` and `install`;
//!   [`manual`] for completions and man pages; `help`, the shape of `--help`.
//! - [`background`]: servers that are kept running between commands. [`ui`]: the page for people.
//! - [`boot`]: flags of upstream servers, configuration lookup, start of the runtime. `print`: outcomes for people.
//! - [`flags`]: flags that several commands share: limits, programs and contexts, environment variables.
//! - `toolset`: the tools that `serve` offers. `reload`: configuration files that are edited while `serve`
//!   runs. `stop`: signals, and an input that ends early. `holding`: defers signals while a login is renewed.

pub mod approvals;
pub mod background;
pub mod batch;
pub mod boot;
pub mod call;
pub mod check;
pub mod config;
pub mod demo;
pub mod disasm;
pub mod doctor;
#[cfg(test)]
mod documents;
pub mod eval;
pub mod exec;
pub mod flags;
mod help;
mod holding;
pub mod login;
pub mod manual;
pub mod pin;
pub mod policy;
pub mod prelude;
mod print;
mod reload;
pub mod repl;
pub mod replay;
pub mod runs;
pub mod serve;
mod stop;
pub mod task;
pub mod tools;
mod toolset;
pub mod trace;
pub mod ui;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use ptc_base::memory;
use ptc_base::oauth::settle_for_good;
use ptc_base::panics::takes_panics_for_damage;
use ptc_base::process;
use ptc_server::console::logging;
use ptc_server::console::{self, Abort, EXIT_CODES, Exit, Style};
use ptc_server::redact;
use ptc_upstream::config::names;
use std::process::ExitCode;
use std::time::Duration;

/// Runs one small program next to many tools.
#[derive(Debug, Parser)]
#[command(
    name = "ptc",
    version,
    about = "Runs PTC-Lisp programs next to MCP tools: one program calls many tools, only its answer comes back",
    after_help = EXIT_CODES,
    after_long_help = concat_help(),
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    /// How much to log to stderr: debug, info, warn or error [default: warn]
    #[arg(long, global = true, value_name = "LEVEL", value_enum, hide_possible_values = true)]
    log_level: Option<logging::LogFilter>,
    #[command(subcommand)]
    command: Commands,
}

fn concat_help() -> String {
    format!(
        "Examples:
  ptc demo                                    see it work, nothing to install
  ptc config import && ptc doctor             with the servers you have
  ptc call fs/list_directory path=/tmp
  ptc eval '(+ 1 2)'
  ptc eval report.ptc --context @orders.json
  ptc serve --upstreams-config upstreams.json  as an MCP server over stdio

{}

Flags of limits and of `serve` can also be given as environment variables: --foo-bar is
PTC_FOO_BAR. Upstream servers come from --upstreams-config, else from PTC_UPSTREAMS, else from
~/.config/ptc/upstreams.json.",
        EXIT_CODES
    )
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Run as an MCP server, over standard input and output or over HTTP
    Serve(Box<serve::ServeArgs>),
    /// Run one program
    Eval(eval::EvalArgs),
    /// Type programs that build on each other
    Repl(repl::ReplArgs),
    /// Run one Python script
    Exec(exec::ExecArgs),
    /// Solve a task in words: a model writes the programs
    Task(task::TaskArgs),
    /// Run many programs: JSON Lines in, JSON Lines out
    Batch(batch::BatchArgs),
    /// Show the configured servers, their state and their tools
    Tools(tools::ToolsArgs),
    /// Check the configuration and every server, and say what to do about each finding
    Doctor(doctor::DoctorArgs),
    /// Keep the servers running between commands
    Up(background::UpArgs),
    /// End what `ptc up` keeps running
    Down,
    /// Show what `ptc up` keeps running
    Status(background::StatusArgs),
    /// Show a page of runs, approvals, servers and sessions in the browser
    Ui(Box<ui::UiArgs>),
    /// Call one tool, without a program
    Call(call::CallArgs),
    /// Run a recorded program again, with the recorded answers
    Replay(replay::ReplayArgs),
    /// Replay recorded runs and show what differs
    Test(replay::test::TestArgs),
    /// Show stored runs that were interrupted, and go on with them
    Runs(runs::RunsArgs),
    /// Check the place of stored runs
    State(runs::check::StateArgs),
    /// Draw what a call did, from a trace of ptc serve --trace-dir
    Trace(trace::TraceArgs),
    /// Log in at a server that asks for it (OAuth)
    Login(login::LoginArgs),
    /// Forget a login at a server
    Logout(login::LogoutArgs),
    /// Show the stored logins
    Auth(login::AuthArgs),
    /// Add a server to the configuration
    Add(config::add::AddArgs),
    /// Remove a server from the configuration
    Remove(config::add::RemoveArgs),
    /// Put ptc into the configuration of a client, or take it out again
    Install(config::install::InstallArgs),
    /// Gather the servers of other hosts; show the schema of the configuration
    Config(config::ConfigArgs),
    /// Check, document and test preludes: files that define namespaces for programs
    Prelude(prelude::PreludeArgs),
    /// Show how tools differ from those that were reviewed, and accept them
    Pin(pin::PinArgs),
    /// Approve or deny calls that wait for a person
    Approvals(approvals::ApprovalsArgs),
    /// Explain what a policy says of tools and programs
    Policy(policy::PolicyArgs),
    /// Compile a program without running it
    Check(check::CheckArgs),
    /// Print the bytecode of a program
    Disasm(disasm::DisasmArgs),
    /// See it work: two sample servers, one program, the payload it saved
    Demo(demo::DemoArgs),
    /// Write a script that completes the command line of a shell
    Completions(manual::CompletionsArgs),
    /// Write the manual pages
    Man(manual::ManArgs),
    /// One of the sample servers of `ptc demo`
    #[command(hide = true)]
    DemoServer(demo::DemoServerArgs),
    /// A process that Python scripts run in
    #[cfg(feature = "monty")]
    #[command(hide = true)]
    PythonWorker(exec::worker::WorkerArgs),
    /// The process of `ptc up`
    #[command(hide = true)]
    Background(background::UpArgs),
    /// A server of `ptc prelude test --replay`
    #[command(hide = true)]
    ReplayServer(prelude::ReplayServerArgs),
}

/// How a command writes its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

impl Commands {
    /// Whether it works for nothing, or does things without a word, if nothing can be written to standard output.
    fn is_lost_without_output(&self) -> bool {
        match self {
            Commands::Batch(args) => args.writes_answers(),
            Commands::Eval(_)
            | Commands::Exec(_)
            | Commands::Task(_)
            | Commands::Call(_)
            | Commands::Replay(_)
            | Commands::Test(_) => true,
            _ => false,
        }
    }
}

/// Parses the command line, runs the command, and reports its error. `output_is_closed`: what is written to standard output
/// is lost without an error.
pub fn main(output_is_closed: bool) -> ExitCode {
    process::harden();
    let command = help::shaped(Cli::command());
    let words = match config::add::separated(&command, std::env::args_os().collect()) {
        Ok(words) => words,
        Err(abort) => return failed(&abort),
    };
    let parsed = command.try_get_matches_from(words);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, not errors. If printing fails, nothing else can be done.
            let _ = error.print();
            return match error.use_stderr() {
                true => Exit::Usage.into(),
                false if output_is_closed => failed(&redact::closed_stdout().into()),
                false => Exit::Ok.into(),
            };
        }
    };
    if output_is_closed {
        if cli.command.is_lost_without_output() {
            return failed(&redact::closed_stdout().into());
        }
        redact::close_stdout();
    }
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(abort) => failed(&abort),
    }
}

fn failed(abort: &Abort) -> ExitCode {
    if !abort.message.is_empty() {
        console::complain(&format!("{} {}", Style::stderr().red("error:"), abort.message));
    }
    abort.exit.into()
}

fn run(cli: Cli) -> Result<Exit, Abort> {
    // The default hook writes to the stream directly, past the redaction.
    std::panic::set_hook(Box::new(|defect| {
        if !takes_panics_for_damage() {
            console::complain(&defect.to_string());
        }
    }));
    let level = flags::variables::given_or_read(cli.log_level, "log-level", flags::variables::word)?;
    logging::init(level.unwrap_or_default());
    holding::install();
    names::conflicts().iter().for_each(|conflict| tracing::warn!("{conflict}"));
    match cli.command {
        Commands::Serve(args) => serve::command(*args),
        Commands::Eval(args) => on_runtime(eval::run(args)),
        Commands::Repl(args) => on_runtime(repl::run(args)),
        Commands::Exec(args) => on_runtime(exec::run(args)),
        Commands::Task(args) => on_runtime(task::run(args)),
        Commands::Batch(args) => on_runtime(batch::run(args)),
        Commands::Tools(args) => on_runtime(tools::run(args)),
        Commands::Doctor(args) => on_runtime(doctor::run(args)),
        Commands::Call(args) => on_runtime(call::run(args)),
        Commands::Up(args) => background::up(&args),
        Commands::Down => background::down(),
        Commands::Ui(args) => ui::command(&args),
        Commands::Status(args) => background::status(&args),
        Commands::Background(args) => on_all_cores(background::serve(args)),
        Commands::Login(args) => on_runtime(login::run(args)),
        Commands::Logout(args) => on_runtime(login::logout(args)),
        Commands::Auth(args) => on_runtime(login::auth(args)),
        Commands::Replay(args) => on_runtime(replay::run(args)),
        Commands::Test(args) => on_runtime(replay::test::run(args)),
        Commands::Runs(args) => on_runtime(runs::run(args)),
        Commands::State(args) => on_runtime(runs::check::run(args)),
        Commands::Trace(args) => trace::run(&args),
        Commands::Add(args) => on_runtime(config::add::add(args)),
        Commands::Remove(args) => config::add::remove(&args),
        Commands::Install(args) => config::install::run(&args),
        Commands::Config(args) => config::run(&args),
        Commands::Completions(args) => manual::completions(&args, Cli::command()),
        Commands::Man(args) => manual::man(&args, Cli::command()),
        Commands::Pin(args) => on_runtime(pin::run(args)),
        Commands::Approvals(args) => on_runtime(approvals::run(args)),
        Commands::Policy(args) => on_runtime(policy::run(args)),
        Commands::Check(args) => check::run(&args),
        Commands::Disasm(args) => disasm::run(&args),
        Commands::Demo(args) => on_runtime(demo::run(args)),
        Commands::DemoServer(args) => demo::serve(&args),
        #[cfg(feature = "monty")]
        Commands::PythonWorker(args) => args.serve(),
        Commands::Prelude(args) => on_runtime(prelude::run(args)),
        Commands::ReplayServer(args) => prelude::replay(&args),
    }
}

/// Runs a command on one thread. That is enough, because it only moves bytes; programs run on workers.
pub fn on_runtime(command: impl Future<Output = Result<Exit, Abort>>) -> Result<Exit, Abort> {
    finish(
        tokio::runtime::Builder::new_current_thread().enable_all().on_thread_park(memory::parked).build()?,
        1,
        command,
    )
}

/// How long blocked threads may take after the command has ended. Their results are not needed any more.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long the renewal of a login may take at the end of a command: the time limit of its request, and the write.
const SETTLING: Duration = Duration::from_secs(25);

/// How long a thread for blocking work waits for more. Its memory is returned after it has ended.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

fn finish(
    runtime: tokio::runtime::Runtime,
    threads: usize,
    command: impl Future<Output = Result<Exit, Abort>>,
) -> Result<Exit, Abort> {
    let idle = runtime.spawn(memory::watch_idle(threads));
    let ended = runtime.block_on(async {
        let ended = command.await;
        settle_for_good(SETTLING).await;
        ended
    });
    idle.abort();
    runtime.shutdown_timeout(PATIENCE);
    ended
}

/// [`on_runtime`] with a thread a core, for a server with many connections.
pub fn on_all_cores(command: impl Future<Output = Result<Exit, Abort>>) -> Result<Exit, Abort> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores())
        .thread_keep_alive(KEEP_ALIVE)
        .on_thread_park(memory::parked)
        .enable_all()
        .build()?;
    finish(runtime, cores(), command)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
