//! `ptc disasm`: the bytecode of a program.

use super::flags::source::Source;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::console::style::Style;
use ptc_compiler::diagnostic::Report;
use ptc_compiler::{CompileOptions, Externals};

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
    match ptc_compiler::compile(&source.text, &Externals::default(), &CompileOptions::default()) {
        Ok(compiled) => {
            console::write(&compiled.program.disassemble())?;
            Ok(Exit::Ok)
        }
        Err(rejection) => {
            let palette = Style::stderr().palette();
            for finding in rejection.iter() {
                let report = Report::of_diagnostic(finding, &source.text);
                console::complain(&report.text(&source.name, palette));
            }
            if rejection.more > 0 {
                console::complain(&format!("… and {} more errors", rejection.more));
            }
            Ok(Exit::ProgramFailed)
        }
    }
}
