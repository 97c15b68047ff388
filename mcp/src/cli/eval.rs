//! `ptc eval`: one program.

use super::OutputFormat;
use super::boot::{Need, UpstreamFlags, boot};
use super::console;
use super::exit::{Abort, Exit};
use super::limits::LimitFlags;
use super::source::{Source, context};
use super::style::Style;
use crate::tool::profile::{call_json, usage_json};
use crate::tool::record::Run;
use crate::tool::report::reports_json;
use ptc_runtime::metrics::PtcMetrics;
use ptc_runtime::options::RunOptions;
use ptc_runtime::outcome::{Failure, Outcome};
use serde_json::{Map, Value};

/// Arguments of `ptc eval`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc eval '(reduce + (range 10))'
  ptc eval report.ptc --context @orders.json
  ptc eval '(count data/orders)' --context '{\"orders\": [1, 2]}'
  ptc eval '(tool/call {:server \"fs\" :tool \"list_directory\" :args {:path \"/tmp\"}})' \\
      --upstreams-config upstreams.json --output json

Exit codes: 0 the program answered, 1 it failed, 2 usage or configuration error, 3 an upstream
server did not start.")]
pub struct EvalArgs {
    /// Program text, a file, or `-` for standard input
    #[arg(value_name = "PROGRAM | FILE | -")]
    program: String,
    /// JSON object (or @FILE) whose key k is read as data/k
    #[arg(long, value_name = "JSON | @FILE")]
    context: Option<String>,
    /// How to write the answer
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    /// The clock as programs see it, in milliseconds since 1970 [default: the real one]
    #[arg(long, value_name = "MILLIS", allow_negative_numbers = true)]
    now: Option<i64>,
    #[command(flatten)]
    upstreams: UpstreamFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Runs the command.
pub async fn run(args: EvalArgs) -> Result<Exit, Abort> {
    let source = Source::read(&args.program)?;
    let booted = boot(&args.upstreams, Need::Program(&source.text), 1).await?;
    let limits = args.limits.limits(booted.has_upstreams)?;
    let context = args.context.as_deref().map(|text| context(text, limits.max_context_bytes)).transpose()?;
    let options = RunOptions {
        context,
        limits,
        want_json: args.output == OutputFormat::Json,
        source_name: source.name.clone(),
        now_ms: args.now,
        ..RunOptions::default()
    };
    let outcome = booted.runtime.run(source.text, options).await;
    booted.runtime.shutdown().await;
    let exit = if outcome.result.is_ok() { Exit::Ok } else { Exit::ProgramFailed };
    match args.output {
        OutputFormat::Text => print_text(&source.name, &outcome)?,
        OutputFormat::Json => console::write_line(&json_report(outcome).to_string())?,
    }
    Ok(exit)
}

fn print_text(source_name: &str, outcome: &Outcome) -> Result<(), Abort> {
    for note in &outcome.notes {
        console::complain(&format!("note: {note}"));
    }
    let mut text: String = outcome.prints.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    match &outcome.result {
        Ok(answer) => {
            text.push_str(&answer.text);
            text.push('\n');
            console::write(&text)
        }
        Err(failure) => {
            console::write(&text)?;
            console::complain(&failure.text(source_name, Style::stderr().palette()));
            Ok(())
        }
    }
}

fn json_report(outcome: Outcome) -> Value {
    let mut report = Map::new();
    report.insert("ok".into(), outcome.result.is_ok().into());
    let final_bytes = outcome.result.as_ref().map_or(0, |answer| answer.text_bytes);
    let metrics = PtcMetrics::of(&outcome, final_bytes);
    match outcome.result {
        Ok(answer) => {
            report.insert("value".into(), answer.text.into());
            if let Some(Ok(json)) = &answer.json
                && let Ok(json) = serde_json::from_str::<Value>(json)
            {
                report.insert("json".into(), json);
            }
        }
        Err(failure) => put_failure(&mut report, &failure),
    }
    report.insert("prints".into(), outcome.prints.clone().into());
    if !outcome.notes.is_empty() {
        report.insert("notes".into(), outcome.notes.clone().into());
    }
    let calls: Vec<Value> = outcome.upstream_calls.iter().map(call_json).collect();
    report.insert("upstream_calls".into(), calls.into());
    if !outcome.upstream_calls.is_empty() {
        report.insert("ptc_metrics".into(), serde_json::to_value(metrics).unwrap_or_default());
    }
    let run = Run {
        prints: outcome.prints,
        calls: outcome.upstream_calls,
        notes: outcome.notes,
        usage: outcome.usage,
    };
    report.insert("usage".into(), usage_json(&run));
    report.into()
}

fn put_failure(report: &mut Map<String, Value>, failure: &Failure) {
    report.insert("error".into(), failure.reason.raw().into());
    report.insert("message".into(), failure.message.as_str().into());
    if let Some(value) = &failure.value {
        report.insert("value".into(), value.as_str().into());
    }
    report.insert("diagnostics".into(), reports_json(&failure.reports));
}
