//! The commands that change configuration files (`ptc config import`, `add`, `remove`, `install`) or print their JSON
//! Schema (`ptc config schema`).
//!
//! # Layout
//!
//! - `import`: copies the servers of other hosts. [`add`]: adds or removes one server. [`install`]: adds
//!   `ptc` to the configuration of a client.
//! - `undo`: takes `ptc` out again. `client_text`: the text of a client's file. `moved`: servers that a client has twice.
//!   `service`: a JSON service with an OpenAPI document.
//! - `target`: the configuration file that servers are written into. `file`: a file from reading to writing.

pub mod add;
mod client_text;
mod file;
mod import;
pub mod install;
mod moved;
mod service;
mod target;
mod undo;

use clap::Subcommand;
use ptc_server::console::{self, Abort, Exit};
use ptc_upstream::config;

/// Arguments of `ptc config`.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Gather the servers of Claude, Cursor, VS Code, Codex, Gemini, Zed and seven more in one file
    Import(import::ImportArgs),
    /// Print the JSON Schema of the file
    Schema,
}

/// Runs the command.
pub fn run(args: &ConfigArgs) -> Result<Exit, Abort> {
    match &args.command {
        ConfigCommand::Schema => {
            console::write_document(&config::json_schema())?;
            Ok(Exit::Ok)
        }
        ConfigCommand::Import(args) => import::run(args),
    }
}
