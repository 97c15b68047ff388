//! The command `ptc config import`, which copies MCP servers from the configuration of other programs, such as Claude
//! or VS Code: its flags, and what it writes and reports. [`crate::import`] finds the servers.

use super::file::EditRight;
use super::target::Target;
use crate::cli::OutputFormat;
use crate::import::hosts::{Host, HostFolders};
use crate::import::merge::{Fate, Import, Imported, SourceFile};
use crate::import::source;
use clap::ValueEnum;
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_server::redact;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Arguments of `ptc config import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads the hosts' own files below the home and the working directory, and changes none of them.
A file that is there already keeps what it has and gets what is new. `${VAR}` references are kept; a new file can be
read by its owner only. `ptc doctor` then says whether the servers work.

Exit codes: 0 written, 2 nothing was found or the file cannot be read, 4 not written."
)]
pub(super) struct ImportArgs {
    /// The file to write [default: the one that is used when no other is named]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Only these hosts
    #[arg(long, value_name = "HOST", value_enum, value_delimiter = ',')]
    from: Vec<Host>,
    /// Replace the file if it is there, and what it has
    #[arg(long)]
    force: bool,
    /// Show the file instead of writing it, without the secrets in it
    #[arg(long)]
    dry_run: bool,
    /// How to report what was found
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// Runs the command.
pub(super) fn run(args: &ImportArgs) -> Result<Exit, Abort> {
    let places = HostFolders::from_environment().ok_or_else(|| Abort::usage("HOME is not set"))?;
    let mut target = Target::read(&EditRight::wait()?, Target::find(args.to.as_deref())?, args.force)?;
    let hosts = if args.from.is_empty() { Host::value_variants().to_vec() } else { args.from.clone() };
    // The target may also be a source; when it is replaced, it must be read first.
    let import = Import::collect(&hosts, &places, target.entries(), source::text_of);
    // The report on the terminal is redacted; the file is not.
    for secret in import.secrets() {
        // `ptc doctor` reports secrets that cannot be redacted.
        let _ = redact::secrets().register(&secret);
    }
    let is_known =
        |file: &SourceFile| file.servers.iter().flatten().any(|found| matches!(found.fate, Fate::SameAs(_)));
    let outcome: Result<String, Abort> = if import.servers.is_empty() && !import.files.iter().any(is_known) {
        Err(Abort::usage(nothing_found(&hosts)))
    } else if args.dry_run {
        Ok("not written (--dry-run)".to_owned())
    } else {
        // Writes first, so that the report does not claim an import that failed.
        let kept = if args.force { target.keep()? } else { None };
        write(&mut target, &import)?;
        let kept =
            kept.map_or_else(String::new, |kept| format!("; what it replaces is in {}", kept.display()));
        Ok(format!("written: {}{kept}", target.path().display()))
    };
    let written = (outcome.is_ok() && !args.dry_run).then_some(target.path());
    match args.output {
        OutputFormat::Json => console::write_json(&json_report(&import, written, args.dry_run))?,
        OutputFormat::Text => {
            console::write(&text_report(&import))?;
            if args.dry_run && outcome.is_ok() {
                console::write_document(&import.document())?;
            }
            if let Ok(line) = &outcome {
                let count = import.servers.len();
                let plural = if count == 1 { "" } else { "s" };
                console::write_line(&format!("{count} server{plural} {line}"))?;
                if written.is_some() {
                    console::write_line(&format!("next: ptc doctor{}", target.flag()))?;
                }
            }
        }
    }
    outcome.map(|_| Exit::Ok)
}

fn nothing_found(hosts: &[Host]) -> String {
    let names: Vec<&str> = hosts.iter().map(|host| host.label()).collect();
    format!("no MCP servers were found in the configuration of {}", names.join(", "))
}

fn write(target: &mut Target, import: &Import) -> Result<(), Abort> {
    target.set_as_hosts(&import.servers)?;
    target.write()
}

fn text_report(import: &Import) -> String {
    let style = Style::stdout();
    let mut report = String::new();
    for SourceFile { host, path, servers } in &import.files {
        report.push_str(&format!(
            "{} {}\n",
            style.bold(host.label()),
            style.dim(&path.display().to_string())
        ));
        match servers {
            Err(error) => report.push_str(&format!("  {}\n", style.red(error))),
            Ok(servers) if servers.is_empty() => report.push_str("  no servers\n"),
            Ok(servers) => {
                for Imported { name, fate, notes } in servers {
                    let fate = match fate {
                        Fate::Written(ours) if ours == name => style.green("imported"),
                        Fate::Written(ours) => style.green(&format!("imported as {ours}")),
                        Fate::SameAs(ours) => style.dim(&format!("the same as {ours}")),
                        Fate::Skipped(reason) => style.dim(&format!("left out: {reason}")),
                    };
                    report.push_str(&format!("  {name}: {fate}\n"));
                    for note in notes {
                        report.push_str(&format!("    {note}\n"));
                    }
                }
            }
        }
    }
    report
}

fn json_report(import: &Import, written: Option<&Path>, shown: bool) -> Value {
    let files: Vec<Value> = import
        .files
        .iter()
        .map(|SourceFile { host, path, servers }| {
            let mut file = json!({ "host": host.key(), "path": path });
            match servers {
                Err(error) => file["error"] = error.as_str().into(),
                Ok(servers) => file["servers"] = servers.iter().map(imported_json).collect(),
            }
            file
        })
        .collect();
    let mut report = json!({ "files": files, "servers": import.servers.len(), "written": written });
    if shown {
        report["document"] = import.document();
    }
    report
}

fn imported_json(imported: &Imported) -> Value {
    let Imported { name, fate, notes } = imported;
    let (fate, detail) = match fate {
        Fate::Written(ours) => ("imported", ours),
        Fate::SameAs(ours) => ("same", ours),
        Fate::Skipped(reason) => ("skipped", reason),
    };
    let key = if fate == "skipped" { "reason" } else { "as" };
    json!({ "name": name, "fate": fate, key: detail, "notes": notes })
}
