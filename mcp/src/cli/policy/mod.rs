//! Policies (rules for which tool calls are allowed) on the command line: the command `ptc policy`, the flags that load
//! them, and warnings in the log of `ptc serve`.
//!
//! # Layout
//! - `check`: `ptc policy check`; [`flags`]: `--policy`, of every command that calls tools; [`warnings`]: the log of
//!   `ptc serve`

mod check;
pub mod flags;
pub mod warnings;

use clap::Subcommand;
use ptc_server::console::{Abort, Exit};

/// Arguments of `ptc policy`.
#[derive(Debug, clap::Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Show what the policy says of every tool, or of the calls of a program
    Check(check::CheckArgs),
}

/// Runs the command.
pub async fn run(args: PolicyArgs) -> Result<Exit, Abort> {
    match args.command {
        PolicyCommand::Check(args) => check::run(args).await,
    }
}
