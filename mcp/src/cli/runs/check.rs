//! The command `ptc state check`, which tests whether the folder or database that stores runs is usable, and changes
//! nothing.

use super::state::{StateFlags, StateLocation, open};
use clap::Subcommand;
use ptc_base::store::{PostgresStore, StoreError};
use ptc_server::console::{self, Abort, Exit};
use std::time::Duration;

/// Arguments of `ptc state`.
#[derive(Debug, clap::Args)]
pub struct StateArgs {
    #[command(subcommand)]
    command: StateCommand,
}

#[derive(Debug, Subcommand)]
enum StateCommand {
    /// Check whether stored runs can be read and written, and say how many there are
    #[command(after_help = "Examples:
  ptc state check ~/.local/state/ptc/runs
  ptc state check postgres://ptc@db.example/ptc

Exit codes: 0 it can be used, 1 it cannot.")]
    Check {
        /// The folder or the address of the database [default: that of PTC_STATE]
        #[arg(value_name = "DIR|URL")]
        place: Option<String>,
        #[command(flatten)]
        state: StateFlags,
    },
}

/// Runs the command.
pub async fn run(args: StateArgs) -> Result<Exit, Abort> {
    let StateCommand::Check { place, state } = args.command;
    let location = match place {
        Some(place) => StateLocation::new(&place).map_err(Abort::usage)?,
        None => state.required()?,
    };
    let found = match &location {
        StateLocation::Folder(folder) if !folder.join("runs.redb").exists() => {
            Err(StoreError::Unavailable(format!("{} has no runs yet", folder.display())))
        }
        StateLocation::Folder(_) => folder(&location).await,
        StateLocation::Database(url) => database(url).await,
    };
    match found {
        Ok((text, is_usable)) => {
            console::write(&text)?;
            Ok(if is_usable { Exit::Ok } else { Exit::ProgramFailed })
        }
        Err(error) => {
            console::complain(&error.to_string());
            Ok(Exit::ProgramFailed)
        }
    }
}

async fn folder(location: &StateLocation) -> Result<(String, bool), StoreError> {
    match open(location, Duration::ZERO, Duration::ZERO).await {
        Ok(runs) => Ok((format!("it can be used\nruns: {}\n", runs.list().await?.len()), true)),
        Err(StoreError::Taken(why)) => Ok((format!("{why}\n"), true)),
        Err(error) => Err(error),
    }
}

async fn database(url: &str) -> Result<(String, bool), StoreError> {
    let check = PostgresStore::check(url).await?;
    let (version, newest) = check.schema;
    let schema = match version {
        0 => format!("no tables yet: the first process makes them (version {newest})"),
        version if version < newest => {
            format!("tables of version {version}: the next process takes them to {newest}")
        }
        version if version > newest => {
            format!("tables of version {version}, and this program knows {newest}: update it")
        }
        version => format!("tables of version {version}"),
    };
    let role = if check.is_read_only { "a standby, which takes no writes" } else { "it takes writes" };
    let text = format!(
        "PostgreSQL {}: {role}\n{schema}\nruns: {} ({} on {} nodes)\nsize: {} KiB\n",
        check.server,
        check.runs,
        check.held,
        check.nodes,
        check.bytes / 1_024
    );
    Ok((text, !check.is_read_only && version <= newest))
}
