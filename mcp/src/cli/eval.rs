//! The command `ptc eval`, which runs one Lisp program and prints its answer.

use super::OutputFormat;
use super::boot::Need;
use super::flags::program::ProgramFlags;
use super::flags::source::{Source, context};
use super::print::print_text;
use super::replay::record::RecordFlags;
use ptc_calls::options::RunOptions;
use ptc_server::answer::outcome::WholeOutcomeJson;
use ptc_server::console::{self, Abort, Exit};
use ptc_server::redact::stdout_is_terminal;

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
    /// JSON object (or @FILE); programs read its key k as data/k
    #[arg(long, value_name = "JSON | @FILE")]
    context: Option<String>,
    /// How to write the answer
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    /// The clock as programs see it, in milliseconds since 1970 [default: the real one]
    #[arg(long, value_name = "MILLIS", allow_negative_numbers = true)]
    now: Option<i64>,
    #[command(flatten)]
    record: RecordFlags,
    #[command(flatten)]
    programs: ProgramFlags,
}

/// Runs the command.
pub async fn run(mut args: EvalArgs) -> Result<Exit, Abort> {
    args.programs.record(args.record.recorder()?);
    let source = Source::read(&args.program)?;
    let (booted, limits) = args.programs.boot(Need::Program(&source.text), 1).await?;
    let context = args.context.as_deref().map(|text| context(text, limits.max_context_bytes)).transpose()?;
    let options = RunOptions {
        context,
        limits,
        want_json: args.output == OutputFormat::Json,
        plain_text: args.output == OutputFormat::Text && stdout_is_terminal(),
        brief_text: args.output == OutputFormat::Text,
        source_name: source.name.clone().into(),
        now_ms: args.now,
        ..RunOptions::default()
    };
    let infix = as_prefix(&source.text);
    let outcome = booted.runtime.run(source.text, options).await;
    booted.runtime.shutdown().await;
    let exit = if outcome.result.is_ok() { Exit::Ok } else { Exit::ProgramFailed };
    match args.output {
        OutputFormat::Text => {
            if let Some(meant) = infix {
                console::complain(&format!(
                    "note: an operator comes first, as in {meant}; here only the last form counts"
                ));
            }
            print_text(&source.name, &outcome)?;
        }
        OutputFormat::Json => console::write_json(&WholeOutcomeJson::from_outcome(&outcome))?,
    }
    Ok(exit)
}

/// What is meant by a text like `1 + 2`, which is three forms.
fn as_prefix(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [one, operator @ ("+" | "-" | "*" | "/" | "<" | ">" | "<=" | ">=" | "="), other] = words[..] else {
        return None;
    };
    // In a form, as in `(list < 1)`, an operator is a value.
    if text.contains(['(', ')', '[', ']', '{', '}', '"', ';']) {
        return None;
    }
    Some(format!("({operator} {one} {other})"))
}
