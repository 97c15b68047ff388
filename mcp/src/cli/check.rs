//! `ptc check`: compile only.

use super::OutputFormat;
use super::console;
use super::exit::{Abort, Exit};
use super::source::Source;
use super::style::Style;
use ptc_compiler::diagnostic::{Diagnostic, Severity, line_column, render};
use ptc_compiler::{CompileOptions, Externals};
use serde_json::{Value, json};

/// Arguments of `ptc check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc check report.ptc
  echo '(+ 1 fooo)' | ptc check - --output json

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
    let (ok, findings) = findings(&source.text);
    match args.output {
        OutputFormat::Text => console::write(&text_report(&source, ok, &findings))?,
        OutputFormat::Json => console::write_line(&json_report(&source, ok, &findings).to_string())?,
    }
    Ok(if ok { Exit::Ok } else { Exit::ProgramFailed })
}

fn findings(source: &str) -> (bool, Vec<Diagnostic>) {
    match ptc_compiler::compile(source, &Externals::default(), &CompileOptions::default()) {
        Ok(compiled) => (true, compiled.warnings),
        Err(diagnostics) => (false, diagnostics),
    }
}

fn text_report(source: &Source, ok: bool, findings: &[Diagnostic]) -> String {
    let style = Style::stdout();
    let mut report = String::new();
    for finding in findings {
        let text = render(
            &source.text,
            &source.name,
            finding.reason,
            &finding.message,
            Some(finding.span),
            &finding.hints,
        );
        let (head, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let head = match finding.severity {
            Severity::Error => style.red(head),
            Severity::Warning => format!("warning: {head}"),
        };
        report.push_str(&format!("{head}\n{rest}\n\n"));
    }
    if ok {
        report.push_str(&format!("{}: {}\n", source.name, style.green("ok")));
    }
    report
}

fn json_report(source: &Source, ok: bool, findings: &[Diagnostic]) -> Value {
    let findings: Vec<Value> = findings
        .iter()
        .map(|finding| {
            let (line, column) = line_column(&source.text, finding.span.start);
            let (end_line, end_column) = line_column(&source.text, finding.span.end);
            json!({
                "severity": match finding.severity { Severity::Error => "error", Severity::Warning => "warning" },
                "reason": finding.reason.raw(), "message": finding.message, "hints": finding.hints,
                "line": line, "column": column, "end_line": end_line, "end_column": end_column,
            })
        })
        .collect();
    json!({ "ok": ok, "file": source.name, "diagnostics": findings })
}
