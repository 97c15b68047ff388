//! The command `ptc runs`, which shows stored runs that have not ended, and goes on with them.
//!
//! A run is stored once it changes something or waits for a person. One that is here after its process has ended was
//! interrupted.
//!
//! # Layout
//! - this file: the command; [`state`]: the flag `--state`

pub mod state;

use crate::cli::OutputFormat;
use crate::cli::boot::{Need, UpstreamFlags, boot_with};
use crate::cli::eval::print_text;
use crate::cli::flags::prelude::PreludeFlags;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::redact::visible;
use clap::Subcommand;
use ptc_runtime::journal::{DurableRuns, Record, Recording};
use serde_json::{Value, json};
use state::StateFlags;
use std::time::{SystemTime, UNIX_EPOCH};

/// Arguments of `ptc runs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc runs --state DIR
  ptc runs show 019a --state DIR
  ptc runs resume 019a --state DIR --upstreams-config upstreams.json

ID may be its beginning. A server that uses the folder has to be stopped first.

A run goes on where it was: calls that had an answer keep it. A call that was under way and may have changed something is
not made again: the program gets {:ok false :reason :outcome_unknown}.

Exit codes: 0 done, 1 the program failed, 2 there is no such run, 3 an upstream server did not start.")]
pub struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    state: StateFlags,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// Show the runs that have not ended
    List {
        /// How to write the list
        #[arg(long, value_enum, default_value_t)]
        output: OutputFormat,
        #[command(flatten)]
        state: StateFlags,
    },
    /// Show one run: its program and its calls
    Show {
        /// Which run
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        state: StateFlags,
    },
    /// Forget a run; what it has done stays done
    Cancel {
        /// Which run
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        state: StateFlags,
    },
    /// Go on with a run to its end, and print its answer
    Resume(Box<ResumeArgs>),
}

/// Arguments of `ptc runs resume`.
#[derive(Debug, clap::Args)]
struct ResumeArgs {
    /// Which run
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    state: StateFlags,
    #[command(flatten)]
    preludes: PreludeFlags,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Runs the command.
pub async fn run(args: RunsArgs) -> Result<Exit, Abort> {
    match args.command {
        None => list(&args.state.required()?, OutputFormat::Text).await,
        Some(RunsCommand::List { output, state }) => list(&state.or(args.state).required()?, output).await,
        Some(RunsCommand::Show { id, state }) => show(&state.or(args.state).required()?, &id).await,
        Some(RunsCommand::Cancel { id, state }) => cancel(&state.or(args.state).required()?, &id).await,
        Some(RunsCommand::Resume(resume)) => {
            let ResumeArgs { id, state, preludes, mut upstreams } = *resume;
            let runs = state.or(args.state).required()?;
            let id = find(&runs, &id).await?;
            upstreams.state = Some(runs);
            let booted = boot_with(&upstreams, preludes.prelude()?, Need::OnDemand, 1).await?;
            let outcome = booted.runtime.resume(&id).await;
            booted.runtime.shutdown().await;
            let outcome = outcome.map_err(|error| Abort::usage(error.to_string()))?;
            print_text(&id, &outcome)?;
            Ok(if outcome.result.is_ok() { Exit::Ok } else { Exit::ProgramFailed })
        }
    }
}

/// What is known of a stored run.
struct Summary {
    calls: usize,
    /// Calls without a known answer that may have changed something.
    in_doubt: Vec<String>,
}

fn summary(journal: &Recording) -> Summary {
    let (mut calls, mut in_doubt) = (Vec::new(), Vec::new());
    for record in journal.records() {
        match record {
            Record::Call(call) => calls.push(call),
            Record::Sent(seq) => in_doubt.push(*seq),
            Record::End(end) if end.answer.is_some() => in_doubt.retain(|seq| *seq != end.seq),
            _ => {}
        }
    }
    let label = |call: &&&ptc_runtime::journal::CallBegun| in_doubt.contains(&call.seq);
    let in_doubt = calls.iter().filter(label).map(|call| format!("{} {}", call.label(), call.args.get()));
    Summary { calls: calls.len(), in_doubt: in_doubt.collect() }
}

async fn list(runs: &DurableRuns, output: OutputFormat) -> Result<Exit, Abort> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let (mut text, mut rows) = (String::new(), Vec::new());
    for id in runs.list().await.map_err(|error| Abort::usage(error.to_string()))? {
        let journal = match runs.journal(&id).await {
            Ok(journal) => journal,
            Err(error) => {
                text += &format!("{id}  unreadable  {}\n", visible(&error.to_string()));
                rows.push(json!({ "id": id, "status": "unreadable", "error": error.to_string() }));
                continue;
            }
        };
        let Summary { calls, in_doubt } = summary(&journal);
        let header = journal.header();
        let age = now.saturating_sub(header.begun_ms.into()) / 1_000;
        let program = header.program.lines().next().unwrap_or_default();
        let doubt =
            if in_doubt.is_empty() { String::new() } else { format!("  {} in doubt", in_doubt.len()) };
        text += &format!("{id}  interrupted  {age} s ago  {calls} calls{doubt}  {}\n", visible(program));
        rows.push(json!({ "id": id, "status": "interrupted", "begun_ms": header.begun_ms, "calls": calls,
            "in_doubt": in_doubt, "program": header.program, "owner": header.owner }));
    }
    if output == OutputFormat::Json {
        console::write_json(&json!({ "runs": rows }))?;
        return Ok(Exit::Ok);
    }
    if rows.is_empty() {
        text += "no run is stored\n";
    }
    console::write(&text)?;
    Ok(Exit::Ok)
}

async fn show(runs: &DurableRuns, id: &str) -> Result<Exit, Abort> {
    let journal = journal(runs, &find(runs, id).await?).await?;
    let mut text = format!("{}\n", visible(&journal.header().program));
    let Summary { in_doubt, .. } = summary(&journal);
    for record in journal.records() {
        if let Record::Call(call) = record {
            let args: Value = serde_json::from_str(call.args.get()).unwrap_or_default();
            text += &format!("{}  {} {}\n", call.seq, visible(&call.label()), visible(&args.to_string()));
        }
    }
    for call in &in_doubt {
        text += &format!("in doubt: {}\n", visible(call));
    }
    console::write(&text)?;
    Ok(Exit::Ok)
}

async fn cancel(runs: &DurableRuns, id: &str) -> Result<Exit, Abort> {
    let id = find(runs, id).await?;
    runs.remove(&id).await.map_err(|error| Abort::usage(error.to_string()))?;
    console::write_line(&format!("cancelled: {id}"))?;
    Ok(Exit::Ok)
}

async fn journal(runs: &DurableRuns, id: &str) -> Result<Recording, Abort> {
    runs.journal(id).await.map_err(|error| Abort::usage(error.to_string()))
}

/// The run of this name, or the only one that begins so.
async fn find(runs: &DurableRuns, id: &str) -> Result<String, Abort> {
    let mut known = runs.list().await.map_err(|error| Abort::usage(error.to_string()))?;
    known.retain(|known| known.starts_with(id));
    match known.len() {
        1 => Ok(known.remove(0)),
        0 => Err(Abort::usage(format!("there is no run {id}; `ptc runs` lists them"))),
        many => Err(Abort::usage(format!("{many} runs begin with {id:?}: give more of the id"))),
    }
}
