//! The command `ptc demo`, which starts two sample MCP servers, runs a program that joins their data, and prints its
//! answer and its calls.

use super::boot::boot_demo;
use super::trace;
use crate::demo::{PROGRAM, Sample, report};
use crate::sample_server;
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_server::redact::{self, Form, shapes};

/// Arguments of `ptc demo`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Starts two sample MCP servers (a shop and a help desk, with made-up data) as processes of
their own, runs a program that joins them, and prints its answer, its calls and the payload it saved.
Needs nothing installed and no network."
)]
pub struct DemoArgs {
    /// Write a picture of its calls instead, in SVG
    #[arg(long)]
    svg: bool,
}

/// Arguments of the hidden `ptc demo-server`.
#[derive(Debug, clap::Args)]
pub struct DemoServerArgs {
    /// Which one
    sample: Sample,
}

/// Runs the demo.
pub async fn run(args: DemoArgs) -> Result<Exit, Abort> {
    let style = Style::stdout();
    if !args.svg {
        console::write_line(&report::introduction(style))?;
    }
    let booted = boot_demo(&Sample::ALL).await?;
    let options =
        RunOptions { limits: Limits::with_upstreams(), source_name: "demo".into(), ..RunOptions::default() };
    let outcome = booted.runtime.run(PROGRAM, options).await;
    booted.runtime.shutdown().await;
    console::write(&match args.svg {
        true => trace::picture("ptc demo", PROGRAM, &outcome),
        false => report::outcome(&outcome, style),
    })?;
    Ok(if outcome.result.is_ok() { Exit::Ok } else { Exit::ProgramFailed })
}

/// Runs one sample server.
pub fn serve(args: &DemoServerArgs) -> Result<Exit, Abort> {
    sample_server::serve(args.sample, std::io::stdin().lock(), redact::stdout(Form::Json(&shapes::MCP)))?;
    Ok(Exit::Ok)
}
