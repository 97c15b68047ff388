//! `ptc install`: puts `ptc` into the configuration of a client, and takes it out again.

use super::target::write_file;
use crate::console;
use crate::console::exit::{Abort, Exit};
use crate::import::edit::JsonFile;
use crate::import::hosts::{EntryDialect, Host, HostFolders, Syntax};
use ptc_runtime::config;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Arguments of `ptc install`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc install claude-code
  ptc install vscode --project
  ptc install cursor --upstreams-config ~/servers.json
  ptc install cursor --undo

The client starts this very file as `ptc serve`. Its configuration is copied beside itself (.ptc-backup) before it is
changed; comments and everything else in it stay. Exit codes: 0 written, 2 it is there already, or the client's file
cannot be changed, 4 not written.")]
pub struct InstallArgs {
    /// The client
    #[arg(value_enum)]
    client: Host,
    /// The file with the servers that ptc is to serve [default: the one that is used when no other is named]
    #[arg(long, value_name = "FILE")]
    upstreams_config: Option<PathBuf>,
    /// Write the file of the project in the working directory instead of the user's
    #[arg(long)]
    project: bool,
    /// Take ptc out again
    #[arg(long)]
    undo: bool,
    /// Only say what would be written
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
}

/// What the entry is called.
const NAME: &str = "ptc";

/// Runs the command.
pub fn run(args: &InstallArgs) -> Result<Exit, Abort> {
    let places = HostFolders::of_environment().ok_or_else(|| Abort::usage("HOME is not set"))?;
    let path = file_of(args.client, &places, args.project)?;
    let old = match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Abort::usage(format!("{}: {error}", path.display()))),
    };
    if args.undo { undo(args, &path, old) } else { install(args, &path, old) }
}

fn install(args: &InstallArgs, path: &Path, old: Option<String>) -> Result<Exit, Abort> {
    let entry = entry(args)?;
    let new = with(args.client, old.as_deref().unwrap_or_default(), &entry)
        .map_err(|error| Abort::usage(format!("{}: {error}; the entry would be {entry}", path.display())))?;
    if args.dry_run {
        console::write_line(&format!("{} would get:", path.display()))?;
        console::write_document(&json!({ NAME: entry }))?;
        return Ok(Exit::Ok);
    }
    if let Some(old) = old {
        write_file(&backup(path), &old)?;
    }
    write_file(path, &new)?;
    console::write_line(&format!("{} will start ptc: {}", args.client.label(), path.display()))?;
    console::write_line(&format!(
        "next: restart {}; `ptc install {} --undo` takes it back",
        args.client.label(),
        args.client.key()
    ))?;
    Ok(Exit::Ok)
}

/// Gives the file back as it was, if nobody has changed it since; otherwise only the entry goes.
fn undo(args: &InstallArgs, path: &Path, now: Option<String>) -> Result<Exit, Abort> {
    let not_there = || Abort::usage(format!("{} has no entry {NAME}", path.display()));
    let now = now.ok_or_else(not_there)?;
    let before = std::fs::read_to_string(backup(path)).ok();
    let current = current_entry(args.client, &now).ok_or_else(not_there)?;
    let untouched = |before: &String| with(args.client, before, &current).is_ok_and(|text| text == now);
    match before.filter(untouched) {
        Some(before) => {
            write_file(path, &before)?;
            std::fs::remove_file(backup(path))?;
        }
        None => write_file(path, &without(args.client, &now).map_err(Abort::usage)?)?,
    }
    console::write_line(&format!("{} does not start ptc any more: {}", args.client.label(), path.display()))?;
    Ok(Exit::Ok)
}

fn backup(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".ptc-backup");
    path.with_file_name(name)
}

/// The file that is there, else the one in a folder that is.
fn file_of(client: Host, places: &HostFolders, project: bool) -> Result<PathBuf, Abort> {
    let files = client.files(places);
    let own: Vec<&PathBuf> = files.iter().filter(|file| places.is_of_project(file) == project).collect();
    let there = own.iter().find(|file| file.is_file());
    let folder = || own.iter().find(|file| file.parent().and_then(Path::parent).is_some_and(Path::is_dir));
    let file = there.or_else(folder).or(own.first());
    file.map(|file| (*file).clone())
        .ok_or_else(|| Abort::usage(format!("{} has no configuration of a project", client.label())))
}

/// The entry as the client writes it.
fn entry(args: &InstallArgs) -> Result<Value, Abort> {
    let program = std::env::current_exe()?.display().to_string();
    let mut arguments = vec!["serve".to_owned()];
    let named: Vec<PathBuf> = args.upstreams_config.iter().cloned().collect();
    for file in config::find(&named) {
        if named.is_empty() && config::default_file().as_ref() == Some(&file) {
            continue;
        }
        let absolute = std::path::absolute(&file)?;
        arguments.extend(["--upstreams-config".to_owned(), absolute.display().to_string()]);
    }
    Ok(match (args.client, args.client.format().dialect) {
        (_, EntryDialect::Opencode) => {
            let command: Vec<String> = std::iter::once(program).chain(arguments).collect();
            json!({ "type": "local", "command": command, "enabled": true })
        }
        (Host::Copilot, _) => {
            json!({ "type": "local", "command": program, "args": arguments, "tools": ["*"] })
        }
        (Host::Vscode, _) => json!({ "type": "stdio", "command": program, "args": arguments }),
        (_, EntryDialect::Zed) => {
            json!({ "source": "custom", "command": program, "args": arguments, "env": {} })
        }
        (_, EntryDialect::Usual | EntryDialect::Goose) => json!({ "command": program, "args": arguments }),
    })
}

fn with(client: Host, text: &str, entry: &Value) -> Result<String, String> {
    let format = client.format();
    match format.syntax {
        Syntax::Json | Syntax::JsonWithProjects => {
            let file = JsonFile::read(text)?;
            if file.entries(format.key).contains_key(NAME) {
                return Err(format!("it has an entry {NAME} already"));
            }
            file.set(format.key, NAME, entry)?;
            Ok(file.text())
        }
        Syntax::Toml => {
            let there: Value = toml::from_str(text).map_err(|error| error.message().to_owned())?;
            if there[format.key].get(NAME).is_some() {
                return Err(format!("it has an entry {NAME} already"));
            }
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            Ok(format!("{text}{gap}{}", table(format.key, entry)))
        }
        Syntax::Yaml => {
            Err(format!("its files are not written; add the server with {}'s own settings", client.label()))
        }
    }
}

/// The entry as a table of TOML. Texts and lists of them are written as in JSON.
fn table(key: &str, entry: &Value) -> String {
    let mut table = format!("\n[{key}.{NAME}]\n");
    // In one order, whoever has read it.
    let keys: std::collections::BTreeMap<_, _> = entry.as_object().into_iter().flatten().collect();
    for (name, value) in keys {
        table.push_str(&format!("{name} = {value}\n"));
    }
    table
}

fn current_entry(client: Host, text: &str) -> Option<Value> {
    let format = client.format();
    match format.syntax {
        Syntax::Json | Syntax::JsonWithProjects => {
            JsonFile::read(text).ok()?.entries(format.key).remove(NAME)
        }
        Syntax::Toml => toml::from_str::<Value>(text).ok()?.get(format.key)?.get(NAME).cloned(),
        Syntax::Yaml => None,
    }
}

fn without(client: Host, text: &str) -> Result<String, String> {
    let format = client.format();
    if format.syntax == Syntax::Toml {
        let entry = current_entry(client, text).unwrap_or_default();
        let table = table(format.key, &entry);
        return match text.split_once(&table) {
            Some((before, after)) => Ok(format!("{before}{after}")),
            None => Err(format!("the entry {NAME} was changed by hand: remove it by hand")),
        };
    }
    let file = JsonFile::read(text)?;
    file.remove(format.key, NAME);
    Ok(file.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_can_be_taken_out() {
        let entry = json!({ "command": "/bin/ptc", "args": ["serve"] });
        for (client, text) in [
            (Host::Cursor, "{\n  // mine\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n"),
            (Host::Codex, "model = \"m\" # mine\n"),
            (Host::Gemini, "{\n  \"theme\": \"dark\"\n}\n"),
        ] {
            let new = with(client, text, &entry).unwrap();
            assert_eq!(current_entry(client, &new), Some(entry.clone()), "{new}");
            assert!(with(client, &new, &entry).unwrap_err().contains("already"));
            let old = without(client, &new).unwrap();
            assert_eq!(current_entry(client, &old), None, "{old}");
            assert!(!text.contains("mine") || old.contains("mine"), "{old}");
        }
        assert!(with(Host::Goose, "", &entry).is_err());
    }
}
