//! The command `ptc pin`, which shows how upstream tools differ from their last approved definitions, and approves the
//! present ones.

use super::OutputFormat;
use super::boot::{Booted, Need, UpstreamFlags, boot};
use super::policy::flags::lock_file;
use ptc_base::files::{self, FileLock};
use ptc_calls::policy::{PinDifference, PinLock};
use ptc_calls::tools::nearest;
use ptc_server::console::{self, Abort, Exit, Style};
use ptc_server::redact::visible_line;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// Arguments of `ptc pin`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc pin                   what differs, of all servers; accepts nothing
  ptc pin github            what differs, and accept it
  ptc pin --all             the same for all servers
  ptc serve --pin enforce

The tools are recorded in ptc.lock, next to the configuration. Exit codes: 0 nothing differs, or it is accepted,
1 something differs, 2 configuration error, 3 a server did not start.")]
pub struct PinArgs {
    /// Accept this server as it is now
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// Accept all servers as they are now, and forget those that are no longer configured
    #[arg(long, conflicts_with = "server")]
    all: bool,
    /// How to write the differences
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    upstreams: UpstreamFlags,
}

/// Runs the command.
pub async fn run(args: PinArgs) -> Result<Exit, Abort> {
    let mut flags = args.upstreams.clone();
    flags.policy = flags.policy.without_pins();
    let path = lock_file(&flags.files());
    let accepts = match (&args.server, args.all) {
        (Some(_), _) => Accepted::One,
        (None, true) => Accepted::All,
        (None, false) => Accepted::Nothing,
    };
    // Before servers start: nothing is accepted into a file that cannot be read.
    read(&path, accepts)?;
    let need = args.server.as_deref().map_or(Need::Check, Need::StateOf);
    let booted = boot(&flags, need, 1).await?;
    let result = locked(accepts).and_then(|_lock| compared(&booted, &args, read(&path, accepts)?, &path));
    booted.runtime.shutdown().await;
    result
}

/// What a command accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepted {
    Nothing,
    One,
    All,
}

/// The right to write the file, if something is accepted.
fn locked(accepts: Accepted) -> Result<Option<FileLock>, Abort> {
    match accepts {
        Accepted::Nothing => Ok(None),
        Accepted::One | Accepted::All => Ok(files::lock_edits()?),
    }
}

/// The file; empty if it is not there.
fn read(path: &Path, accepts: Accepted) -> Result<PinLock, Abort> {
    match (PinLock::read(path), accepts) {
        (Ok(lock), _) => Ok(lock),
        (Err(error), _) if error.kind() == ErrorKind::NotFound => Ok(PinLock::default()),
        (Err(error), Accepted::One) if error.kind() == ErrorKind::InvalidData => Err(Abort::usage(format!(
            "{}: {error}; it is left as it is, with what was reviewed of other servers: put a copy of it in its place, or \
             review all servers with `ptc pin`, then `ptc pin --all`",
            path.display()
        ))),
        // It was edited: everything is reviewed again.
        (Err(error), Accepted::Nothing | Accepted::All) if error.kind() == ErrorKind::InvalidData => {
            console::complain(&format!("{}: {error}", path.display()));
            Ok(PinLock::default())
        }
        (Err(error), _) => Err(Abort::usage(format!("{}: {error}", path.display()))),
    }
}

fn compared(booted: &Booted, args: &PinArgs, mut lock: PinLock, path: &Path) -> Result<Exit, Abort> {
    let catalog = booted.runtime.catalog();
    let servers = booted.runtime.servers();
    let names: Vec<&str> = servers.iter().map(|server| &*server.name).collect();
    if let Some(server) = args.server.as_deref().filter(|server| !names.contains(server)) {
        let near = nearest(server, &names).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        return Err(Abort::usage(format!("no server {server} is configured{near}")));
    }
    if servers.is_empty() && !path.exists() {
        return Err(Abort::usage("no servers are configured, so there is nothing to compare"));
    }
    let meant = |name: &str| args.server.as_deref().is_none_or(|server| server == name);
    let (mut found, mut missing) = (BTreeMap::new(), Vec::new());
    for server in servers.iter().filter(|server| meant(&server.name)) {
        match catalog.server(&server.name).and_then(|known| known.proven().cloned()) {
            Some(tools) => {
                let listed = tools.listed();
                found.insert(server.name.to_string(), lock.differences(&server.name, &listed));
                if args.all || args.server.is_some() {
                    lock.accept(&server.name, &listed);
                }
            }
            None => missing.push(server.name.to_string()),
        }
    }
    let is_accepted = args.all || args.server.is_some();
    if is_accepted {
        if args.all {
            lock.retain(|server| names.contains(&server));
        }
        lock.write(path).map_err(|error| Abort::usage(format!("{}: {error}", path.display())))?;
    }
    match args.output {
        OutputFormat::Text => console::write(&text(&found, &missing, is_accepted, path))?,
        OutputFormat::Json => console::write_json(&report(&found, &missing, is_accepted))?,
    }
    Ok(match (missing.is_empty(), is_accepted || found.values().all(Vec::is_empty)) {
        (false, _) => Exit::Upstream,
        (true, true) => Exit::Ok,
        (true, false) => Exit::ProgramFailed,
    })
}

fn text(
    found: &BTreeMap<String, Vec<PinDifference>>,
    missing: &[String],
    is_accepted: bool,
    path: &Path,
) -> String {
    let style = Style::stdout();
    let mut text = String::new();
    for (server, differences) in found {
        for PinDifference { subject, lines, is_harmless, .. } in differences {
            let mark = if *is_harmless { " (nothing that was relied on)" } else { "" };
            text += &format!("{}: {}{mark}\n", visible_line(server), visible_line(subject));
            for line in lines {
                let line = visible_line(line);
                let line = if line.starts_with('-') { style.red(&line) } else { style.green(&line) };
                text += &format!("  {line}\n");
            }
        }
        if differences.is_empty() {
            text += &format!("{}: as it was pinned\n", visible_line(server));
        }
    }
    for server in missing {
        text += &format!("{}: did not start, so it is not compared\n", visible_line(server));
    }
    if is_accepted {
        text += &format!("accepted: {}\n", path.display());
    }
    text
}

fn report(found: &BTreeMap<String, Vec<PinDifference>>, missing: &[String], is_accepted: bool) -> Value {
    let servers = found.iter().map(|(server, differences)| {
        let differences = differences.iter().map(|difference| {
            json!({ "subject": difference.subject, "lines": difference.lines, "harmless": difference.is_harmless })
        });
        (server.clone(), Value::Array(differences.collect()))
    });
    json!({ "servers": Value::Object(servers.collect()), "missing": missing, "accepted": is_accepted })
}
