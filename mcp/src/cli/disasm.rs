//! The command `ptc disasm`, which prints the bytecode of a program.

use super::flags::source::Source;
use ptc_engine::Inspection;
use ptc_server::console::{self, Abort, Exit, Style};

/// Arguments of `ptc disasm`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc disasm report.ptc
  echo '(map inc [1 2])' | ptc disasm -")]
pub struct DisasmArgs {
    /// Program text, a file, or `-` for standard input
    #[arg(value_name = "PROGRAM | FILE | -")]
    file: String,
}

/// Runs the command.
pub fn run(args: &DisasmArgs) -> Result<Exit, Abort> {
    let source = Source::read(&args.file)?;
    let inspection = Inspection::compile(&source.text);
    if let Some(bytecode) = inspection.bytecode() {
        console::write(&bytecode)?;
        return Ok(Exit::Ok);
    }
    for report in &inspection.findings {
        console::complain(&report.text(&source.name, Style::stderr().palette()));
    }
    if inspection.more > 0 {
        console::complain(&format!("… and {} more errors", inspection.more));
    }
    Ok(Exit::ProgramFailed)
}
