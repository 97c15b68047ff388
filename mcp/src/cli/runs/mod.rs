//! The command `ptc runs`, which lists, cancels and resumes unfinished runs of programs that are stored so that they
//! outlive their process.
//!
//! A run is stored once it changes something or waits for a person. One that is here after its process has ended was
//! interrupted.
//!
//! # Layout
//! - this file: the command; [`state`]: the flag `--state`; `control`: the socket of the server that has the runs
//! - [`check`]: the command `ptc state check`

pub mod check;
pub(super) mod control;
pub mod state;

use crate::cli::OutputFormat;
use crate::cli::boot::{Need, UpstreamFlags, boot_with};
use crate::cli::flags::prelude::PreludeFlags;
use clap::{Subcommand, ValueEnum};
use control::{Reply, Request};
use ptc_base::store::StoreError;
use ptc_calls::journal::{DurableRuns, InDoubt, Record, Recording, StoredRun};
use ptc_calls::outcome::Palette;
use ptc_engine::Runtime;
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_server::redact::visible;
use serde_json::{Value, json};
use state::StateFlags;
use std::time::{SystemTime, UNIX_EPOCH};

/// Arguments of `ptc runs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc runs --state DIR
  ptc runs show 019a --state DIR
  ptc runs resume 019a --state DIR --upstreams-config upstreams.json

ID may be its beginning. A server that uses the folder does the work, with its own servers and preludes.

A run goes on where it was: calls that had an answer keep it. A call that was under way and may have changed something is
not made again: the program gets {:ok false :reason :outcome_unknown}. A run whose calls a policy decided about needs
--policy.

Exit codes: 0 done, 1 the program failed, 2 there is no such run, 3 an upstream server did not start.")]
pub struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// How to write the list [default: text]
    #[arg(long, value_enum)]
    output: Option<OutputFormat>,
    #[command(flatten)]
    state: StateFlags,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// Show the runs that have not ended
    List {
        /// How to write the list [default: text]
        #[arg(long, value_enum)]
        output: Option<OutputFormat>,
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
    /// What becomes of calls that were under way and may have changed something: the program gets `:outcome_unknown`
    /// (report), or a person is asked whether they are made again (ask) [default: report]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    in_doubt: Option<InDoubtFlag>,
    #[command(flatten)]
    state: StateFlags,
    #[command(flatten)]
    preludes: PreludeFlags,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// `--in-doubt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InDoubtFlag {
    Report,
    Ask,
}

/// Runs the command: in the server that has the folder, or here if there is none.
pub async fn run(args: RunsArgs) -> Result<Exit, Abort> {
    let (mut output, mut resume) = (args.output, None);
    if output.is_some() && !matches!(args.command, None | Some(RunsCommand::List { .. })) {
        return Err(Abort::usage("--output is a flag of the list alone"));
    }
    let (request, state) = match args.command {
        None => (Request::List, args.state),
        Some(RunsCommand::List { output: wanted, state }) => {
            output = wanted.or(output);
            (Request::List, state.or(args.state))
        }
        Some(RunsCommand::Show { id, state }) => (Request::Show { id }, state.or(args.state)),
        Some(RunsCommand::Cancel { id, state }) => (Request::Cancel { id }, state.or(args.state)),
        Some(RunsCommand::Resume(given)) => {
            let ResumeArgs { id, in_doubt, state, preludes, upstreams } = *given;
            resume = Some((preludes, upstreams));
            let asks = in_doubt == Some(InDoubtFlag::Ask);
            (Request::Resume { id, asks }, state.or(args.state))
        }
    };
    let location = state.required()?;
    if let Some(folder) = location.folder().filter(|folder| !folder.exists()) {
        return Err(Abort::usage(format!("--state: there is no folder {}", folder.display())));
    }
    let reply = match (state::open(&location, state.lease()?, state.patience()?).await, location.folder()) {
        (Ok(runs), _) => here(&runs, &request, resume).await?,
        (Err(StoreError::Taken(why)), Some(folder)) => {
            // What would be denied here must not be allowed there.
            if let Some(flag) = resume.as_ref().and_then(|(_, upstreams)| upstreams.policy.given()) {
                return Err(Abort::usage(format!(
                    "{flag}: the server that has the folder goes on with the run, under its own policy ({why}); stop it first, \
                     or leave {flag} out"
                )));
            }
            let reply = control::ask(folder, &request).await;
            reply.map_err(|error| Abort::usage(format!("--state: {why}, which does not answer: {error}")))?
        }
        (Err(error), _) => return Err(Abort::usage(format!("--state: {error}"))),
    };
    show(reply, output.unwrap_or_default())
}

/// Carries a command out in this process.
async fn here(
    runs: &DurableRuns,
    request: &Request,
    resume: Option<(PreludeFlags, UpstreamFlags)>,
) -> Result<Reply, Abort> {
    let (Some((preludes, mut upstreams)), Request::Resume { id, .. }) = (resume, request) else {
        return Ok(perform(runs, None, request, Palette::PLAIN).await);
    };
    find(runs, id).await.map_err(Abort::usage)?;
    upstreams.state = Some(runs.clone());
    let booted = boot_with(&upstreams, preludes.prelude()?, Need::OnDemand, 1).await?;
    let palette = Style::stderr().palette();
    let reply = perform(runs, Some(&booted.runtime), request, palette).await;
    booted.runtime.shutdown().await;
    Ok(reply)
}

/// Shows what a command has given.
fn show(reply: Reply, output: OutputFormat) -> Result<Exit, Abort> {
    let Reply { text, data, runs, complaints, has_failed, refused } = reply;
    if let Some(why) = refused {
        return Err(Abort::usage(why));
    }
    match output {
        OutputFormat::Json => console::write_json(&json!({ "runs": runs }))?,
        OutputFormat::Text => console::write(&text)?,
    }
    console::write_data([data.as_str()])?;
    complaints.iter().for_each(|complaint| console::complain(complaint));
    Ok(if has_failed { Exit::ProgramFailed } else { Exit::Ok })
}

/// Carries a command out.
async fn perform(
    runs: &DurableRuns,
    runtime: Option<&Runtime>,
    request: &Request,
    palette: Palette,
) -> Reply {
    let done = match request {
        Request::List => list(runs).await,
        Request::Show { id } => shown(runs, id).await.map(Reply::text),
        Request::Cancel { id } => cancel(runs, id).await.map(Reply::text),
        Request::Resume { id, asks } => match runtime {
            Some(runtime) => resumed(runs, runtime, id, *asks, palette).await,
            None => Err("there are no servers to go on with".to_owned()),
        },
    };
    done.unwrap_or_else(|why| Reply { refused: Some(why), ..Reply::default() })
}

async fn resumed(
    runs: &DurableRuns,
    runtime: &Runtime,
    id: &str,
    asks: bool,
    palette: Palette,
) -> Result<Reply, String> {
    let id = find(runs, id).await?;
    let in_doubt = if asks { InDoubt::Ask } else { InDoubt::Report };
    let outcome = runtime.resume(&id, in_doubt).await.map_err(|error| error.to_string())?;
    let mut reply = Reply::default();
    reply.complaints.extend(outcome.notes.iter().map(|note| format!("note: {note}")));
    outcome.prints.iter().for_each(|line| reply.data.extend([line.as_str(), "\n"]));
    match &outcome.result {
        Ok(answer) => reply.data.extend([answer.text.as_str(), "\n"]),
        Err(failure) => {
            reply.has_failed = true;
            reply.complaints.push(failure.text(&id, palette));
        }
    }
    Ok(reply)
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
            // Its server is asked what has become of it.
            Record::Task { seq: known, .. } => in_doubt.retain(|seq| seq != known),
            Record::End(end) if end.answer.is_some() => in_doubt.retain(|seq| *seq != end.seq),
            _ => {}
        }
    }
    let label = |call: &&&ptc_calls::journal::CallBegun| in_doubt.contains(&call.seq);
    let in_doubt = calls.iter().filter(label).map(|call| format!("{} {}", call.label(), call.args.get()));
    Summary { calls: calls.len(), in_doubt: in_doubt.collect() }
}

async fn list(runs: &DurableRuns) -> Result<Reply, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let (mut text, mut rows) = (String::new(), Vec::new());
    for StoredRun { name: id, is_executed } in runs.list().await.map_err(|error| error.to_string())? {
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
        let status = if is_executed { "running" } else { "interrupted" };
        text += &format!("{id}  {status}  {age} s ago  {calls} calls{doubt}  {}\n", visible(program));
        rows.push(json!({ "id": id, "status": status, "begun_ms": header.begun_ms, "calls": calls,
            "in_doubt": in_doubt, "program": header.program, "owner": header.owner }));
    }
    if rows.is_empty() {
        text += "no run is stored\n";
    }
    Ok(Reply { text, runs: rows, ..Reply::default() })
}

async fn shown(runs: &DurableRuns, id: &str) -> Result<String, String> {
    let journal = runs.journal(&find(runs, id).await?).await.map_err(|error| error.to_string())?;
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
    Ok(text)
}

async fn cancel(runs: &DurableRuns, id: &str) -> Result<String, String> {
    let id = find(runs, id).await?;
    runs.remove(&id).await.map_err(|error| error.to_string())?;
    Ok(format!("cancelled: {id}\n"))
}

/// True if an id on the command line means this one: the whole, or how it begins. An empty word means none: it is a variable
/// of a shell that is not set.
pub(in crate::cli) fn is_meant(known: &str, id: &str) -> bool {
    !id.is_empty() && known.starts_with(id)
}

/// The run of this name, or the only one that begins so.
async fn find(runs: &DurableRuns, id: &str) -> Result<String, String> {
    let known = runs.list().await.map_err(|error| error.to_string())?;
    let known = known.into_iter().map(|run| run.name);
    let mut known: Vec<String> = known.filter(|known| is_meant(known, id)).collect();
    match known.len() {
        1 => Ok(known.remove(0)),
        0 => Err(format!("there is no run {id:?}; `ptc runs` lists them")),
        many => Err(format!("{many} runs begin with {id:?}: give more of the id")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_may_be_its_beginning_and_an_empty_word_is_none() {
        assert!(is_meant("1a224ca01e8", "1a22") && is_meant("1a22", "1a22"));
        assert!(!is_meant("1a22", "1a22f") && !is_meant("1a22", ""));
    }
}
