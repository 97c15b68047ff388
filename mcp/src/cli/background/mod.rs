//! The commands `ptc up`, `ptc down` and `ptc status`: one process of this user keeps servers running, so that what
//! they hold (tabs, shells, logins) lasts from one command to the next.
//!
//! - here: the commands. `listener`: that process. `relay`: its answers to other processes. `page`: its web page.
//!   `client`: how commands find it and use its servers. `protocol`: their messages.
//!
//! It listens on a Unix socket in a folder that only this user can enter. A connection begins with one line of JSON,
//! which asks for the state, the end, or a server by name and fingerprint. A connection to a server then carries MCP.

pub(super) mod client;
mod listener;
mod page;
mod protocol;
mod relay;

use super::OutputFormat;
use super::boot::UpstreamFlags;
use super::flags::limits::parser;
use super::policy::flags::PolicyFlags;
use clap::{Arg, Args};
use client::Background;
use protocol::{State, UpSettings};
use ptc_base::files::{self, FileLock};
use ptc_calls::limits::Unit;
use ptc_calls::tools::text::count;
use ptc_server::console;
use ptc_server::console::exit::{Abort, Exit};
use ptc_server::console::style::Style;
use serde_json::json;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Arguments of `ptc up`, and of the process that it starts.
#[derive(Clone, Debug, clap::Args)]
#[command(
    mut_args(without_policy),
    after_help = "Examples:
  ptc up
  ptc up --upstreams-config .mcp.json --idle 8h
  ptc status

`call`, `eval`, `exec`, `tools` and `repl` then use its servers where their configuration is the same. A server keeps its
state from one command to the next, and runs in the folder in which `ptc up` was called. Edits of the configuration are
followed. Exit codes: 0 it runs, 2 configuration error, or it runs with other flags, variables of flags or files, 4 it
cannot be started."
)]
pub struct UpArgs {
    /// It ends when no command has used it for so long; 0 means never
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parser(Unit::Millis))]
    idle: u64,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Hides a flag of the policy: commands decide about their own calls, and [`up`] refuses it.
fn without_policy(arg: Arg) -> Arg {
    let policy = PolicyFlags::augment_args(clap::Command::new("policy"));
    let is_refused = policy.get_arguments().any(|refused| refused.get_id() == arg.get_id());
    if is_refused { arg.hide(true) } else { arg }
}

/// Arguments of `ptc status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 it runs, 1 it does not, 4 it does not answer.")]
pub struct StatusArgs {
    /// How to write the report
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// The hidden command of the process.
pub(super) const COMMAND: &str = "background";

/// How long another command may take to start the process.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// The last line that the process writes before it listens.
const READY: &str = "ready";

/// Runs `ptc up`.
pub fn up(args: &UpArgs) -> Result<Exit, Abort> {
    // Its servers are used by other commands, which decide about their own calls.
    if let Some(flag) = args.upstreams.policy.given() {
        return Err(Abort::usage(format!(
            "{flag} does nothing in `ptc up`, which makes no calls: give it to the commands that run programs, as in \
             `ptc eval {flag} …`"
        )));
    }
    let words: Vec<OsString> = std::env::args_os().skip(1).skip_while(|word| word != "up").skip(1).collect();
    let folder =
        files::runtime_folder().ok_or_else(|| Abort::usage("no folder for the socket: HOME is not set"))?;
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Abort { exit: Exit::Io, message: format!("{path}: {error}") }
    };
    files::private_folder(&folder).map_err(failed(&folder))?;
    // Of several commands at once one starts the process, and the others find it.
    let lock_file = folder.join("up.lock");
    let starting = FileLock::wait(&lock_file, START_PATIENCE).map_err(failed(&lock_file))?;
    if let Some(background) = find()? {
        if background.is_of_this_version() {
            let (state, asked) = (&background.state, UpSettings::new(&words, &args.upstreams)?);
            if !state.settings.has(&asked) {
                return Err(Abort::usage(format!(
                    "it runs already (process {}), with other flags, variables of flags, or files: `ptc down` first",
                    state.process
                )));
            }
            console::write_line(&format!("it runs already (process {})", background.state.process))?;
            return Ok(Exit::Ok);
        }
        background.stop()?;
    }
    start(&folder, words)?;
    drop(starting);
    let background = Background::find();
    status_text(&background.and_then(|background| background.settled()))?;
    console::write_line("next: ptc call SERVER/TOOL; `ptc down` ends it")?;
    Ok(Exit::Ok)
}

/// Starts the process, and waits until it can be found.
fn start(folder: &Path, words: Vec<OsString>) -> Result<(), Abort> {
    let log_file = folder.join("background.log");
    let log = files::open_to_append(&log_file)
        .map_err(|error| Abort { exit: Exit::Io, message: format!("{}: {error}", log_file.display()) })?;
    // The process takes the same flags. It leaves the group of this one once its servers have started: until then Ctrl-C
    // ends both.
    let mut process = Command::new(std::env::current_exe()?);
    process.arg(COMMAND).args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = process.spawn()?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut said)?;
    }
    if said.trim() != READY {
        let code = child.wait()?.code();
        let exit = if code == Some(Exit::Usage as i32) { Exit::Usage } else { Exit::Io };
        return Err(Abort { exit, message: format!("it could not be started: {}", last_line(folder)) });
    }
    Ok(())
}

/// The running process.
///
/// # Errors
/// There is one, and it does not answer.
fn find() -> Result<Option<Background>, Abort> {
    match Background::find() {
        None if Background::is_silent() => {
            let message = "a process of `ptc up` is there, and does not answer: is it stopped?".to_owned();
            Err(Abort { exit: Exit::Io, message })
        }
        found => Ok(found),
    }
}

fn last_line(folder: &Path) -> String {
    let log = files::read_text(&folder.join("background.log")).unwrap_or_default();
    let last = log.lines().last().unwrap_or("it said nothing");
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// A link to the page of the process; `None`: there is no process of this version.
pub(super) fn page_link() -> Result<Option<String>, Abort> {
    let background = Background::find().filter(Background::is_of_this_version);
    background
        .map(|background| background.page_link().map_err(|message| Abort { exit: Exit::Io, message }))
        .transpose()
}

/// Runs `ptc down`.
pub fn down() -> Result<Exit, Abort> {
    let said = match find()? {
        Some(background) => {
            background.stop()?;
            "it has ended, and its servers with it"
        }
        None => "it does not run",
    };
    console::write_line(said)?;
    Ok(Exit::Ok)
}

/// Runs `ptc status`.
pub fn status(args: &StatusArgs) -> Result<Exit, Abort> {
    let state = find()?.map(|background| background.state);
    match args.output {
        OutputFormat::Text => status_text(&state)?,
        OutputFormat::Json => console::write_json(&json!({ "running": state.is_some(), "state": state }))?,
    }
    Ok(if state.is_some() { Exit::Ok } else { Exit::ProgramFailed })
}

fn status_text(state: &Option<State>) -> Result<(), Abort> {
    let Some(state) = state else {
        return console::write_line("no servers are kept running; `ptc up` does that");
    };
    let style = Style::stdout();
    let mut report = format!("ptc {} keeps servers running (process {})\n", state.package, state.process);
    for server in &state.servers {
        let name = style.bold(&server.name);
        report.push_str(&format!("  {name} {}, {}\n", server.state, count(server.tools)));
        if let Some(error) = &server.error {
            report.push_str(&format!("    {}\n", style.red(error)));
        }
    }
    console::write(&report)
}

/// Runs the process that `ptc up` has started.
pub async fn serve(args: UpArgs) -> Result<Exit, Abort> {
    let idle = (args.idle > 0).then(|| Duration::from_millis(args.idle));
    listener::run(&args.upstreams, idle).await
}

/// The socket of the process.
fn socket() -> Option<PathBuf> {
    Some(files::runtime_folder()?.join("background.sock"))
}
