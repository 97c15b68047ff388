//! The subcommands of `ptc prelude` that list, show, write and select versions in a store of preludes (Lisp libraries
//! for programs).

use crate::cli::OutputFormat;
use crate::cli::flags::prelude::open_store;
use crate::cli::flags::source::Source;
use ptc_engine::prelude_store::{PreludeRef, PreludeStore, StoreError};
use ptc_server::console::{self, Abort, Exit, Style};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The store's file and the output format.
#[derive(Debug, clap::Args)]
pub(super) struct StoreArgs {
    /// File of the store; one process has it at a time
    #[arg(long, value_name = "FILE")]
    prelude_store: PathBuf,
    /// How to write the answer
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// An operation on a store.
#[derive(Debug, clap::Subcommand)]
pub(super) enum StoreCommand {
    /// List the preludes of a store
    List {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// List the versions of a prelude that are kept
    History {
        /// The prelude
        id: String,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Print the text of a version
    Show {
        /// The prelude, or `id@7`
        reference: String,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Compile a file and make it the current version of a prelude
    Write {
        /// The prelude, which is also the namespace that the file declares
        id: String,
        /// The file, or `-`
        file: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
        /// The checksum that the current version must have
        #[arg(long, value_name = "CHECKSUM")]
        parent: Option<String>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Make a version the current one
    SetDefault {
        /// The version, as `id@7`
        reference: String,
        /// The checksum that it must have
        #[arg(long)]
        checksum: Option<String>,
        /// Why
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// Runs the command.
pub(super) fn run(command: StoreCommand) -> Result<Exit, Abort> {
    let args = match &command {
        StoreCommand::Write { store, .. } => store,
        StoreCommand::List { store }
        | StoreCommand::History { store, .. }
        | StoreCommand::Show { store, .. }
        | StoreCommand::SetDefault { store, .. } => {
            if !store.prelude_store.exists() {
                let path = store.prelude_store.display();
                return Err(Abort::usage(format!("there is no store {path}; `ptc prelude write` makes one")));
            }
            store
        }
    };
    let store = open_store(&args.prelude_store)?;
    match done(&command, &store) {
        Ok(answer) => answer.write(args.output),
        Err(StoreError { reason, message, compile }) => {
            let file = match &command {
                StoreCommand::Write { file, .. } if file != "-" => file,
                _ => "the prelude",
            };
            let detail = compile.map(|failure| failure.text(file, Style::stderr().palette()));
            let detail = detail.map(|detail| format!("\n{detail}")).unwrap_or_default();
            Err(Abort { exit: Exit::ProgramFailed, message: format!("{reason}: {message}{detail}") })
        }
    }
}

/// An answer in both formats.
struct StoreAnswer {
    text: String,
    json: Value,
}

impl StoreAnswer {
    fn write(self, output: OutputFormat) -> Result<Exit, Abort> {
        match output {
            OutputFormat::Text => console::write_data([self.text.as_str()])?,
            OutputFormat::Json => console::write_json(&self.json)?,
        }
        Ok(Exit::Ok)
    }
}

fn reasoned(reason: Option<&String>) -> Map<String, Value> {
    reason.map(|reason| ("reason".to_owned(), reason.as_str().into())).into_iter().collect()
}

fn done(command: &StoreCommand, store: &PreludeStore) -> Result<StoreAnswer, StoreError> {
    match command {
        StoreCommand::List { .. } => {
            let stored = store.list()?;
            let line = |stored: &ptc_engine::prelude_store::StoredPrelude| {
                let exports = stored.current.exports.join(" ");
                format!(
                    "{}@{} (latest {}): {exports}\n",
                    stored.id, stored.current_version, stored.latest_version
                )
            };
            Ok(StoreAnswer {
                text: stored.iter().map(line).collect(),
                json: stored.iter().map(|stored| stored.public_view()).collect(),
            })
        }
        StoreCommand::History { id, .. } => {
            let versions = store.history(id)?;
            let line = |version: &ptc_engine::prelude_store::PreludeVersion| {
                let view = version.public_view();
                let (at, reason) = (view["created_at"].as_str().unwrap_or_default(), &version.metadata);
                let reason = reason.get("reason").and_then(Value::as_str).unwrap_or_default();
                let line = format!("{id}@{} {} {at} {reason}", version.version, version.checksum);
                format!("{}\n", line.trim_end())
            };
            Ok(StoreAnswer {
                text: versions.iter().map(line).collect(),
                json: versions.iter().map(|version| version.public_view()).collect(),
            })
        }
        StoreCommand::Show { reference, .. } => {
            let found = store.read(&reference.parse()?)?;
            let mut json = found.version.public_view();
            json["source"] = found.source.as_str().into();
            Ok(StoreAnswer { json, text: found.source })
        }
        StoreCommand::Write { id, file, reason, parent, .. } => {
            let source = Source::read_file(file).map_err(|abort| StoreError {
                reason: "invalid_argument",
                message: abort.message,
                compile: None,
            })?;
            let written = store.write(id, &source.text, reasoned(reason.as_ref()), parent.as_deref())?;
            Ok(StoreAnswer {
                text: format!("{id}@{} {}\n", written.version, written.checksum),
                json: written.public_view(),
            })
        }
        StoreCommand::SetDefault { reference, checksum, reason, .. } => {
            let reference = PreludeRef { checksum: checksum.clone(), ..reference.parse()? };
            let selection = store.set_default(&reference, reasoned(reason.as_ref()))?;
            let version = selection.version;
            Ok(StoreAnswer {
                text: format!("{}@{version} is the current version\n", reference.id),
                json: json!({ "id": reference.id, "version": version }),
            })
        }
    }
}
