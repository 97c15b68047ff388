//! The command `ptc task`, which lets a model write programs that solve a task given in natural language, and prints
//! the answer.

use super::OutputFormat;
use super::boot::{Need, UpstreamFlags, boot_with};
use super::flags::agentic::{TaskFlags, TaskServers};
use super::flags::limits::LimitFlags;
use super::flags::prelude::{NO_INVENTORY, PreludeFlags};
use super::flags::source::context;
use super::replay::record::RecordFlags;
use ptc_server::console::progress::ToolLine;
use ptc_server::console::{self, Abort, Exit};
use ptc_server::tools::lisp_task::{SolvedTask, TaskRequest};
use ptc_upstream::ProgressListener;
use serde_json::{Value, json};
use std::sync::Arc;

/// Arguments of `ptc task`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc task 'How many open issues have no assignee?' --aggregator-read-only
  ptc task 'Sum up data/orders by user' --context @orders.json --agentic-model ollama:qwen3
  ptc task 'Close stale issues' --agentic-allow-writes --agentic-max-turns 4 --output json
  ptc task 'Who pays late?' -p crm.clj

The model writes programs that run here; their answer is printed. Exit codes: 0 an answer, 1 none,
2 usage or configuration error, 3 an upstream server did not start.")]
pub struct TaskArgs {
    /// What is to be found out or done
    #[arg(value_name = "TASK")]
    task: String,
    /// JSON object (or @FILE); programs read its key k as data/k
    #[arg(long, value_name = "JSON | @FILE")]
    context: Option<String>,
    /// JSON object with what the answer has to keep to: max_items, preferred_fields
    #[arg(long, value_name = "JSON")]
    constraints: Option<String>,
    /// How to write the answer
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    /// Print what prompts say of the preludes to standard error first
    #[arg(long)]
    show_prompt_inventory: bool,
    #[command(flatten)]
    record: RecordFlags,
    #[command(flatten)]
    preludes: PreludeFlags,
    #[command(flatten)]
    tasks: TaskFlags,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Runs the command.
pub async fn run(mut args: TaskArgs) -> Result<Exit, Abort> {
    args.upstreams.recorder = args.record.recorder()?;
    let most = args.limits.limits(true)?.max_context_bytes;
    let mut arguments = json!({ "task": args.task });
    let parsed = |name: &str, text: &str| {
        serde_json::from_str::<Value>(text).map_err(|error| Abort::usage(format!("--{name}: {error}")))
    };
    if let Some(text) = &args.context {
        arguments["context"] = parsed("context", &context(text, most)?)?;
    }
    if let Some(text) = &args.constraints {
        arguments["constraints"] = parsed("constraints", text)?;
    }
    let request = TaskRequest::read(&arguments.to_string(), most).map_err(Abort::usage)?;
    let prelude = args.preludes.prelude()?;
    if args.show_prompt_inventory {
        let inventory = prelude.as_ref().and_then(|prelude| prelude.inventory());
        console::complain(inventory.as_deref().unwrap_or(NO_INVENTORY));
    }
    let booted = boot_with(&args.upstreams, prelude, Need::All, 1).await?;
    let servers = TaskServers {
        flags: &args.upstreams,
        has_upstreams: booted.has_upstreams,
        read_only: args.upstreams.read_only()?,
    };
    let limits = args.limits.limits(booted.has_upstreams)?;
    let tasks = args.tasks.tasks(&booted.runtime, limits, servers);
    let line = ToolLine::on_terminal();
    let listener = line.clone().map(|line| line as Arc<dyn ProgressListener>);
    let solved = match tasks {
        Ok(tasks) => Ok(tasks.solve(&request, None, None, listener).await),
        Err(abort) => Err(abort),
    };
    if let Some(line) = line {
        line.finish();
    }
    booted.runtime.shutdown().await;
    let SolvedTask { answer, is_ok, summary: _ } = solved?;
    match args.output {
        OutputFormat::Json => console::write_json(&answer)?,
        OutputFormat::Text => {
            let text = |name: &str| answer[name].as_str().unwrap_or_default();
            for warning in answer["warnings"].as_array().into_iter().flatten() {
                console::complain(&format!("note: {}: {}", warning["code"], warning["detail"]));
            }
            match is_ok {
                true => console::write_data([text("answer"), "\n"])?,
                false => console::complain(&format!("{}: {}", text("reason"), text("message"))),
            }
        }
    }
    Ok(if is_ok { Exit::Ok } else { Exit::ProgramFailed })
}
