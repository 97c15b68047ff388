//! The command `ptc check`, which compiles a program without running it and reports errors, warnings and, on request,
//! data flows.

use super::OutputFormat;
use super::flags::prelude::{NO_INVENTORY, PreludeFlags};
use super::flags::source::Source;
use ptc_engine::Inspection;
use ptc_server::answer::report::reports_json;
use ptc_server::console::{self, Abort, Exit, Style};
use serde_json::json;

/// Arguments of `ptc check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc check report.ptc
  echo '(+ 1 fooo)' | ptc check - --output json
  ptc check report.ptc -p crm.clj
  ptc check --flows report.ptc
  ptc check --flows=picture report.ptc

JSON: {\"ok\", \"file\", \"diagnostics\": [{\"severity\": \"error\" or \"warning\", \"reason\", \"message\",
\"line\", \"column\", \"end_line\", \"end_column\", \"source\", \"hints\": [text]}]}, positions from 1; \"more\" counts errors beyond those;
\"flows\" is there with --flows.

Exit codes: 0 no errors, 1 errors, 2 unreadable file. Warnings do not change the exit code.")]
pub struct CheckArgs {
    /// Program text, a file, or `-` for standard input
    #[arg(value_name = "PROGRAM | FILE | -")]
    file: String,
    /// How to write the findings
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    /// Print which data may reach which argument of which call, as text or as a picture (a flowchart for Mermaid)
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    flows: Option<FlowForm>,
    /// Print what prompts say of the preludes to standard error first
    #[arg(long)]
    show_prompt_inventory: bool,
    #[command(flatten)]
    preludes: PreludeFlags,
}

/// How data flows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FlowForm {
    /// As text
    Text,
    /// As a flowchart in the notation of Mermaid
    Picture,
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<Exit, Abort> {
    let source = Source::read(&args.file)?;
    let prelude = args.preludes.prelude()?;
    if args.show_prompt_inventory {
        let inventory = prelude.as_ref().and_then(|prelude| prelude.inventory());
        console::complain(inventory.as_deref().unwrap_or(NO_INVENTORY));
    }
    let inspection = match args.flows {
        Some(_) => Inspection::compile_with_flows(&source.text, prelude.as_deref()),
        None => Inspection::compile_with(&source.text, prelude.as_deref()),
    };
    let ok = inspection.is_ok();
    match args.output {
        OutputFormat::Text => {
            let flows = match args.flows {
                None => None,
                Some(FlowForm::Text) => inspection.flows_text().map(|flows| format!("\n{flows}")),
                Some(FlowForm::Picture) => inspection.flows_picture(),
            };
            // A picture is read by another program.
            let is_picture = args.flows == Some(FlowForm::Picture) && flows.is_some();
            let report = if is_picture { String::new() } else { text_report(&source, &inspection) };
            console::write(&(report + &flows.unwrap_or_default()))?;
        }
        OutputFormat::Json => {
            let findings = reports_json(&inspection.findings);
            let mut report = json!({ "ok": ok, "file": source.name, "diagnostics": findings });
            if inspection.more > 0 {
                report["more"] = inspection.more.into();
            }
            if let Some(flows) = inspection.flows_json() {
                report["flows"] = flows;
            }
            console::write_json(&report)?;
        }
    }
    Ok(if ok { Exit::Ok } else { Exit::ProgramFailed })
}

fn text_report(source: &Source, inspection: &Inspection) -> String {
    let Inspection { findings, more, .. } = inspection;
    let style = Style::stdout();
    let mut text: String =
        findings.iter().map(|report| format!("{}\n\n", report.text(&source.name, style.palette()))).collect();
    if *more > 0 {
        text.push_str(&format!("… and {more} more errors\n"));
    }
    if inspection.is_ok() {
        text.push_str(&format!("{}: {}\n", source.name, style.green("ok")));
    }
    text
}
