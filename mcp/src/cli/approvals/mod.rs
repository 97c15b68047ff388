//! The command `ptc approvals`, which shows calls that wait for a person, and answers them.

use crate::cli::OutputFormat;
use crate::cli::flags::variables;
use crate::cli::runs::is_meant;
use crate::cli::runs::state::{LEASE, PATIENCE, StateLocation, open};
use clap::Subcommand;
use ptc_base::files;
use ptc_calls::policy::{ApprovalChoice, ApprovalList, WaitingQuestion};
use ptc_server::console::{self, Abort, Exit};
use ptc_server::redact::visible;
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

/// Arguments of `ptc approvals`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc approvals
  ptc approvals show 3f2a
  ptc approvals approve 3f2a
  ptc approvals approve 3f2a --any-arguments    a program's question, also for computed arguments

Calls wait here under `--approvals wait`, of all servers of this user, or of all nodes with one database (`--state`). ID
may be its beginning.
Exit codes: 0 done, 2 there is no such question.")]
pub struct ApprovalsArgs {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
    /// The database of nodes: the calls of all of them. (A folder, which PTC_STATE may name, has no calls that wait)
    #[arg(long, value_name = "URL", global = true)]
    state: Option<String>,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// Show the calls that wait
    List {
        /// How to write the list
        #[arg(long, value_enum, default_value_t)]
        output: OutputFormat,
    },
    /// Show the whole question
    Show {
        /// Which question
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Let the call be made, once
    Approve {
        /// Which question
        #[arg(value_name = "ID")]
        id: String,
        /// Of a question about a program: also let it call the tools that it names with arguments that it computes
        #[arg(long)]
        any_arguments: bool,
    },
    /// Refuse the call
    Deny {
        /// Which question
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Characters of an id in the list.
const SHORT: usize = 8;

/// Runs the command.
pub async fn run(args: ApprovalsArgs) -> Result<Exit, Abort> {
    let list = list_of(args.state).await?;
    match args.command {
        None => show_all(&list, OutputFormat::Text).await,
        Some(ApprovalsCommand::List { output }) => show_all(&list, output).await,
        Some(ApprovalsCommand::Show { id }) => {
            console::write_line(&visible(&find(&list, &id).await?.text))?;
            Ok(Exit::Ok)
        }
        Some(ApprovalsCommand::Approve { id, any_arguments: false }) => {
            answer(&list, &id, ApprovalChoice::Approve).await
        }
        Some(ApprovalsCommand::Approve { id, any_arguments: true }) => {
            answer(&list, &id, ApprovalChoice::ApproveAny).await
        }
        Some(ApprovalsCommand::Deny { id }) => answer(&list, &id, ApprovalChoice::Deny).await,
    }
}

/// The list of the nodes with this database, or that of this user.
async fn list_of(state: Option<String>) -> Result<ApprovalList, Abort> {
    let is_given = state.is_some();
    let wrong = |why: String| Abort::usage(format!("--state: {why}"));
    let state = variables::given_or_read(state, "state", variables::text)?;
    match state.as_deref().map(StateLocation::new).transpose().map_err(wrong)? {
        Some(location @ StateLocation::Database(_)) => {
            let nodes = open(&location, LEASE, PATIENCE).await.map_err(|error| wrong(error.to_string()))?;
            return Ok(ApprovalList::in_database(nodes));
        }
        Some(StateLocation::Folder(_)) if is_given => {
            return Err(wrong("no calls wait in a folder of runs: leave the flag out".to_owned()));
        }
        Some(StateLocation::Folder(_)) | None => {}
    }
    let state = files::state_folder();
    let state = state.ok_or_else(|| Abort::usage("there is no state folder: set HOME or XDG_STATE_HOME"))?;
    Ok(ApprovalList::below(&state))
}

async fn show_all(list: &ApprovalList, output: OutputFormat) -> Result<Exit, Abort> {
    let waiting = list.waiting().await?;
    if output == OutputFormat::Json {
        console::write_json(&json!({ "waiting": waiting }))?;
        return Ok(Exit::Ok);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut text = String::new();
    for question in &waiting {
        let WaitingQuestion { id, call, calls, asked, text: whole, .. } = question;
        let calls = if *calls > 1 { format!(" ({calls} calls)") } else { String::new() };
        let arguments = whole.lines().nth(1).unwrap_or_default();
        let id = id.get(..SHORT).unwrap_or(id);
        text +=
            &format!("{id}  {call}{calls}  {} s ago  {}\n", now.saturating_sub(*asked), visible(arguments));
    }
    if waiting.is_empty() {
        text += "no call waits\n";
    }
    console::write(&text)?;
    Ok(Exit::Ok)
}

/// The question with this id, or the only one that begins with it.
async fn find(list: &ApprovalList, id: &str) -> Result<WaitingQuestion, Abort> {
    let mut waiting = list.waiting().await?;
    waiting.retain(|question| is_meant(&question.id, id));
    match waiting.len() {
        1 => Ok(waiting.remove(0)),
        0 => Err(Abort::usage(format!("no question {id:?} waits; `ptc approvals` lists them"))),
        many => Err(Abort::usage(format!("{many} questions begin with {id:?}: give more of the id"))),
    }
}

async fn answer(list: &ApprovalList, id: &str, choice: ApprovalChoice) -> Result<Exit, Abort> {
    let question = find(list, id).await?;
    if choice == ApprovalChoice::ApproveAny && !question.offers_any {
        return Err(Abort::usage("the question shows all arguments: approve it without --any-arguments"));
    }
    list.answer(&question, choice, "ptc approvals").await?;
    let done = if choice == ApprovalChoice::Deny { "denied" } else { "approved" };
    console::write_line(&format!("{done}: {}", question.call))?;
    Ok(Exit::Ok)
}
