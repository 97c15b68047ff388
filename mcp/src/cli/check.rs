//! `ptc check`: compile only.

use super::OutputFormat;
use super::flags::source::Source;
use crate::answer::report::reports_json;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::console::style::Style;
use ptc_compiler::diagnostic::Report;
use ptc_compiler::{CompileOptions, Externals, Rejection};
use serde_json::json;

/// Arguments of `ptc check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc check report.ptc
  echo '(+ 1 fooo)' | ptc check - --output json

JSON: {\"ok\", \"file\", \"diagnostics\": [{\"severity\": \"error\" or \"warning\", \"reason\", \"message\",
\"line\", \"column\", \"end_line\", \"end_column\", \"source\", \"hints\": [text]}]}, positions from 1; \"more\" counts errors beyond those.

Exit codes: 0 no errors, 1 errors, 2 unreadable file. Warnings do not change the exit code.")]
pub struct CheckArgs {
    /// Program text, a file, or `-` for standard input
    #[arg(value_name = "PROGRAM | FILE | -")]
    file: String,
    /// How to write the findings
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<Exit, Abort> {
    let source = Source::read(&args.file)?;
    let (ok, reports, more) = check(&source.text);
    match args.output {
        OutputFormat::Text => console::write(&text_report(&source, ok, &reports, more))?,
        OutputFormat::Json => {
            let mut report = json!({ "ok": ok, "file": source.name, "diagnostics": reports_json(&reports) });
            if more > 0 {
                report["more"] = more.into();
            }
            console::write_json(&report)?;
        }
    }
    Ok(if ok { Exit::Ok } else { Exit::ProgramFailed })
}

/// Whether a program compiles, the findings, and how many errors were left out.
fn check(source: &str) -> (bool, Vec<Report>, usize) {
    let (ok, findings, more) =
        match ptc_compiler::compile(source, &Externals::default(), &CompileOptions::default()) {
            Ok(compiled) => (true, compiled.warnings, 0),
            Err(Rejection { errors, more }) => (false, errors, more),
        };
    (ok, findings.iter().map(|finding| Report::of_diagnostic(finding, source)).collect(), more)
}

fn text_report(source: &Source, ok: bool, reports: &[Report], more: usize) -> String {
    let style = Style::stdout();
    let mut text: String =
        reports.iter().map(|report| format!("{}\n\n", report.text(&source.name, style.palette()))).collect();
    if more > 0 {
        text.push_str(&format!("… and {more} more errors\n"));
    }
    if ok {
        text.push_str(&format!("{}: {}\n", source.name, style.green("ok")));
    }
    text
}
