//! The command `ptc trace`, which draws the trace of one call (its program, its upstream calls and its answer) as text,
//! HTML or SVG.
//!
//! # Layout
//!
//! `timeline`: draws text. `page`: draws a page of HTML.

mod page;
mod timeline;

use clap::Subcommand;
use ptc_calls::outcome::Outcome;
use ptc_server::console::{self, Abort, Exit, Style};
pub(super) use ptc_server::drawing::units::count;
use ptc_server::drawing::{chart, trace::Trace};
use std::path::PathBuf;

/// Arguments of `ptc trace`.
#[derive(Debug, clap::Args)]
pub struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Draw a call: when its upstream calls ran, what it cost, what came of it
    Show(ShowArgs),
}

/// Arguments of `ptc trace show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc serve --trace-dir traces …
  ptc trace show traces/2026-11-23T10-15-02.123456Z-4b227777-ok.jsonl
  ptc trace show traces                      the newest trace of a folder
  ptc trace show traces --html > call.html
  ptc trace show traces --svg > call.svg     its calls as a picture")]
struct ShowArgs {
    /// A trace, or a folder of which the newest one is meant
    #[arg(value_name = "FILE | DIR")]
    file: PathBuf,
    /// Write one page of HTML with everything in it
    #[arg(long)]
    html: bool,
    /// Write its calls as one picture in SVG
    #[arg(long, conflicts_with = "html")]
    svg: bool,
    /// Columns of the picture [default: as wide as the terminal, or 100]
    #[arg(long, value_name = "N")]
    width: Option<usize>,
}

/// Draws a program that has just run.
pub(super) fn drawn(program: &str, outcome: &Outcome) -> String {
    let width = console::terminal_width().unwrap_or(100);
    timeline::render(&Trace::of_run(program, outcome), width, Style::stdout())
}

/// Draws the calls of a program that has just run as SVG.
pub(super) fn picture(title: &str, program: &str, outcome: &Outcome) -> String {
    chart::picture(&Trace { tool: title.to_owned(), ..Trace::of_run(program, outcome) })
}

/// Runs the command.
pub fn run(args: &TraceArgs) -> Result<Exit, Abort> {
    let TraceCommand::Show(args) = &args.command;
    let trace = Trace::read(&args.file)?;
    let drawn = match (args.html, args.svg) {
        (true, _) => page::render(&trace),
        (_, true) => chart::picture(&trace),
        _ => {
            let width = args.width.or_else(console::terminal_width).unwrap_or(100);
            timeline::render(&trace, width, Style::stdout())
        }
    };
    console::write(&drawn)?;
    Ok(Exit::Ok)
}
