//! `ptc check`: compile only.

use super::OutputFormat;
use super::console;
use super::exit::{Abort, Exit};
use super::source::Source;
use super::style::Style;
use crate::tool::report::reports_json;
use ptc_compiler::diagnostic::Report;
use ptc_compiler::{CompileOptions, Externals};
use serde_json::json;

/// Arguments of `ptc check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc check report.ptc
  echo '(+ 1 fooo)' | ptc check - --output json

JSON: {\"ok\", \"file\", \"diagnostics\": [{\"severity\": \"error\" or \"warning\", \"reason\", \"message\",
\"line\", \"column\", \"end_line\", \"end_column\", \"source\", \"hints\": [text]}]}, positions from 1.

Exit codes: 0 no errors, 1 errors, 2 unreadable file. Warnings do not change the exit code.")]
pub struct CheckArgs {
    /// File with a program, or `-` for standard input
    file: String,
    /// How to write the findings
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<Exit, Abort> {
    let source = Source::read_file(&args.file)?;
    let (ok, reports) = check(&source.text);
    match args.output {
        OutputFormat::Text => console::write(&text_report(&source, ok, &reports))?,
        OutputFormat::Json => {
            let report = json!({ "ok": ok, "file": source.name, "diagnostics": reports_json(&reports) });
            console::write_json(&report)?;
        }
    }
    Ok(if ok { Exit::Ok } else { Exit::ProgramFailed })
}

fn check(source: &str) -> (bool, Vec<Report>) {
    let (ok, findings) =
        match ptc_compiler::compile(source, &Externals::default(), &CompileOptions::default()) {
            Ok(compiled) => (true, compiled.warnings),
            Err(findings) => (false, findings),
        };
    (ok, findings.iter().map(|finding| Report::of_diagnostic(finding, source)).collect())
}

fn text_report(source: &Source, ok: bool, reports: &[Report]) -> String {
    let style = Style::stdout();
    let mut text: String =
        reports.iter().map(|report| format!("{}\n\n", report.text(&source.name, style.palette()))).collect();
    if ok {
        text.push_str(&format!("{}: {}\n", source.name, style.green("ok")));
    }
    text
}
