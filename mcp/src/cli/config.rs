//! `ptc config`: takes over the servers of other hosts; shows the schema of the file.

use super::OutputFormat;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::console::style::Style;
use crate::edge;
use crate::import::hosts::{Host, HostFolders};
use crate::import::merge::{Fate, Import, Imported, SourceFile};
use clap::Subcommand;
use ptc_runtime::config;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `ptc config`.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Gather the servers of Claude, Cursor, VS Code, Windsurf and Codex in one file
    Import(ImportArgs),
    /// Print the JSON Schema of the file
    Schema,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads the hosts' own files below the home and the working directory, and changes none of them.
`${VAR}` references are kept; the new file can be read by its owner only. `ptc doctor` then says
whether the servers work.

Exit codes: 0 written, 2 nothing was found or the file is there already (see --force), 4 not written."
)]
struct ImportArgs {
    /// The file to write [default: the one that is used when no other is named]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Only these hosts
    #[arg(long, value_name = "HOST", value_enum, value_delimiter = ',')]
    from: Vec<Host>,
    /// Replace the file if it is there
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
pub fn run(args: &ConfigArgs) -> Result<Exit, Abort> {
    match &args.command {
        ConfigCommand::Schema => {
            console::write_document(&config::json_schema())?;
            Ok(Exit::Ok)
        }
        ConfigCommand::Import(args) => import(args),
    }
}

fn import(args: &ImportArgs) -> Result<Exit, Abort> {
    let places = HostFolders::of_environment().ok_or_else(|| Abort::usage("HOME is not set"))?;
    let target = match &args.to {
        Some(path) => path.clone(),
        None => config::default_file().ok_or_else(|| Abort::usage("no home; name a file with --to"))?,
    };
    let hosts = if args.from.is_empty() { Host::ALL.to_vec() } else { args.from.clone() };
    // The target may be a file that is looked at, when it is to be replaced.
    let import = Import::collect(&hosts, &places, |path| std::fs::read_to_string(path).ok());
    // The file gets what it is about to be read for; what is shown of it does not.
    for secret in import.secrets() {
        // `ptc doctor` tells of those that nothing can hide.
        let _ = edge::secrets().register(secret);
    }
    let outcome = if import.servers.is_empty() {
        Err(Abort::usage(nothing_found(&hosts)))
    } else if args.dry_run {
        Ok("not written (--dry-run)".to_owned())
    } else {
        write(&target, &import, args.force).map(|()| format!("written: {}", target.display()))
    };
    let written = (outcome.is_ok() && !args.dry_run).then_some(target.as_path());
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
                    console::write_line("next: ptc doctor")?;
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

/// Writes a new file, or replaces the old one as a whole.
fn write(path: &Path, import: &Import, force: bool) -> Result<(), Abort> {
    if !force && path.exists() {
        return Err(Abort::usage(format!("{} is there already; --force replaces it", path.display())));
    }
    let failed =
        |error: std::io::Error| Abort { exit: Exit::Io, message: format!("{}: {error}", path.display()) };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let partial = path.with_extension("json.partial");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&partial).map_err(failed)?;
    writeln!(file, "{:#}", import.document()).and_then(|()| file.sync_all()).map_err(failed)?;
    std::fs::rename(&partial, path).map_err(failed)
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
