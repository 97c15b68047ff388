//! The command `ptc install`, which adds `ptc` to the configuration of a client, moves the client's own servers to
//! `ptc` on request, and undoes both.

use super::moved::{Moved, MovedEntries, OwnServers, missing};
use super::target::{Target, write_file};
use crate::import::edit::JsonFile;
use crate::import::hosts::{EntryDialect, Host, HostFile, HostFolders, Syntax};
use crate::import::own::starts_ptc;
use crate::import::source;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ptc_base::files::{self, FileAccess, LinkRule};
use ptc_server::console;
use ptc_server::console::exit::{Abort, Exit};
use ptc_upstream::config;
use serde_json::{Map, Value, json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Arguments of `ptc install`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ptc install claude-code
  ptc install vscode --project
  ptc install cursor --upstreams-config ~/servers.json
  ptc install cursor --replace
  ptc install cursor --undo

The client starts this very file as `ptc serve`. Its configuration is copied beside itself (.ptc-backup) before it is
changed; comments and everything else in it stay. With --project nothing is written outside of the working directory,
wherever links in it lead. So --replace does not go with it: commands of a project would run in every folder. For Goose, whose files are not written, it says what to write. Exit
codes: 0 written or there already, 2 there is another entry, or the client's file cannot be changed, 4 not written.")]
pub struct InstallArgs {
    /// The client
    #[arg(value_parser = clients())]
    client: Host,
    /// The file with the servers that ptc is to serve [default: the one that is used when no other is named]
    #[arg(long, value_name = "FILE")]
    upstreams_config: Option<PathBuf>,
    /// Write the file of the project in the working directory instead of the user's
    #[arg(long)]
    project: bool,
    /// Move the client's own servers into the configuration of ptc, so that no tool is there twice
    #[arg(long, conflicts_with = "undo")]
    replace: bool,
    /// Take ptc out again, and give back what --replace has moved
    #[arg(long)]
    undo: bool,
    /// Only say what would be written
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
}

/// The name of the entry.
const NAME: &str = "ptc";

/// Accepts all hosts by name; help hides those with files that cannot be written.
fn clients() -> impl TypedValueParser<Value = Host> {
    let hosts =
        Host::ALL.map(|host| PossibleValue::new(host.key()).hide(host.format().syntax == Syntax::Yaml));
    PossibleValuesParser::new(hosts).try_map(|name| Host::from_str(&name, false))
}

/// Runs the command.
pub fn run(args: &InstallArgs) -> Result<Exit, Abort> {
    if args.replace && args.project {
        return Err(Abort::usage(
            "--replace does not go with --project: it would move the commands of this project into the configuration \
             of ptc, where they run in every folder; `ptc add` gives ptc those that you trust",
        ));
    }
    let places = HostFolders::from_environment().ok_or_else(|| Abort::usage("HOME is not set"))?;
    let path = file_of(args.client, &places, args.project)?;
    // The project may be a checkout of other people's work, so its links must not lead a write outside of it.
    let links = if args.project { LinkRule::Within(&places.project) } else { LinkRule::Follow };
    files::settle(&path, links).map_err(|error| Abort::usage(format!("{}: {error}", path.display())))?;
    let file = ClientFile { path: &path, links };
    let old = match files::read_text(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        // The file is no text. `undo` may still find a backup of it.
        Err(error) if error.kind() == ErrorKind::InvalidData && args.undo => Some(String::from("\0")),
        Err(error) => return Err(Abort::usage(format!("{}: {error}", path.display()))),
    };
    if args.undo { undo(args, &file, old) } else { install(args, &file, old, &places) }
}

/// The client's configuration file, and the rule for links in its path.
struct ClientFile<'a> {
    path: &'a Path,
    links: LinkRule<'a>,
}

impl ClientFile<'_> {
    /// Writes the file with its present access rights, which are the client's concern.
    fn write(&self, text: &str) -> Result<(), Abort> {
        write_file(self.path, text, self.links, FileAccess::Kept)
    }

    /// Saves a copy of the file's content in the same folder, readable by its owner only. Replaces a link of
    /// that name.
    fn keep(&self, ending: &str, content: &[u8]) -> Result<PathBuf, Abort> {
        let aside = beside(self.path, ending);
        let failed = |error: std::io::Error| Abort {
            exit: Exit::Io,
            message: format!("{}: {error}", aside.display()),
        };
        files::replace(&aside, content, LinkRule::Replace, FileAccess::Private).map_err(failed)?;
        Ok(aside)
    }

    /// The backup that `install` made. A link is not followed, because it may lead to a foreign file.
    fn backup(&self) -> Option<String> {
        let path = beside(self.path, BACKUP);
        let is_link = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
        if is_link { None } else { files::read_text(&path).ok() }
    }

    fn remove_backup(&self) -> std::io::Result<()> {
        std::fs::remove_file(beside(self.path, BACKUP))
    }
}

/// The suffix of the backup's file name.
const BACKUP: &str = ".ptc-backup";

fn install(
    args: &InstallArgs,
    file: &ClientFile<'_>,
    old: Option<String>,
    places: &HostFolders,
) -> Result<Exit, Abort> {
    let (path, client) = (file.path, args.client);
    let entry = entry(args)?;
    let shown = written(client, &entry);
    let text = old.as_deref().unwrap_or_default();
    let is_there = entries(client, text).is_ok_and(|entries| entries.get(NAME) == Some(&entry));
    let new = match is_there {
        true => text.to_owned(),
        false => with(client, text, &entry).map_err(|error| {
            Abort::usage(format!("{}: {error}; the entry would be:\n{shown}", path.display()))
        })?,
    };
    if args.dry_run {
        console::write_line(&format!("{} would get:\n{shown}", path.display()))?;
        return Ok(Exit::Ok);
    }
    let mut target = Target::read(Target::path(args.upstreams_config.as_deref())?, false)?;
    let own = OwnServers::find(client, path, places, &target);
    let (new, moved) = match args.replace {
        true => {
            let (new, moved) = own.move_to(&mut target, client, &new)?;
            (new, Some(moved))
        }
        false => (new, None),
    };
    // A file that starts ptc already has the backup of the first time. So has one whose servers have moved: a copy of
    // what is left would replace the one that holds them.
    let has_backup = file.backup().is_some() && (is_there || !args.project && Moved::read(path)?.is_some());
    if let Some(old) = old.as_deref().filter(|_| !has_backup) {
        file.keep(BACKUP, old.as_bytes())?;
    }
    let write = || if new == text { Ok(()) } else { file.write(&new) };
    match moved {
        None => write()?,
        Some(moved) => write_both(path, &target, moved, write)?,
    }
    let label = client.label();
    let does = if is_there { "starts ptc already" } else { "will start ptc" };
    console::write_line(&format!("{label} {does}: {}", path.display()))?;
    let all: Vec<&str> = own.twice.iter().chain(&own.others).map(String::as_str).collect();
    match args.replace && !all.is_empty() {
        true => console::write_line(&format!("moved to {}: {}", target.path.display(), all.join(", ")))?,
        false => own.advice(client, args.project).map_or(Ok(()), |advice| console::write_line(&advice))?,
    }
    let project = if args.project { " --project" } else { "" };
    console::write_line(&format!(
        "next: restart {label}; `ptc install {}{project} --undo` takes it back",
        client.key()
    ))?;
    Ok(Exit::Ok)
}

/// Adds servers to the configuration of `ptc`, then changes the client's file with `write`. When that fails, the
/// configuration is as before.
fn write_both(
    path: &Path,
    target: &Target,
    moved: MovedEntries,
    write: impl Fn() -> Result<(), Abort>,
) -> Result<(), Abort> {
    let names: Vec<String> = moved.added.keys().cloned().collect();
    let earlier = Moved::record(path, target, moved)?;
    target
        .write()
        .and_then(|()| {
            write().inspect_err(|_| {
                // The first error is the one to report.
                for name in &names {
                    target.remove(name);
                }
                let _ = target.write();
            })
        })
        .inspect_err(|_| {
            let _ = earlier.map_or_else(|| Moved::forget(path), |earlier| earlier.write());
        })
}

/// Takes the entry out of the client's file, and the servers that `--replace` moved out of the configuration of `ptc`.
/// Both are computed before one is written, and no server leaves the configuration that the client has not got back.
/// When the second write fails, the client's file is as before.
fn undo(args: &InstallArgs, file: &ClientFile<'_>, now: Option<String>) -> Result<Exit, Abort> {
    let (path, label) = (file.path, args.client.label());
    // Nothing of a project is moved, and a project must not have anything removed.
    let moved = if args.project { None } else { Moved::read(path)? };
    let now = match now {
        None if moved.is_some() => String::new(),
        now => now.ok_or_else(|| no_entry(path))?,
    };
    let back = moved.as_ref().map(Moved::taken_back).transpose()?;
    let Undone { text, is_backup, said } = undone(args.client, file, &now, moved.as_ref().map(Moved::own))?;
    let after = entries(args.client, &text).unwrap_or_default();
    let lost: Vec<String> =
        moved.iter().flat_map(|moved| missing(moved.own(), &after)).map(|(name, _)| name).collect();
    if !lost.is_empty() {
        let (path, names) = (path.display(), lost.join(", "));
        return Err(Abort::usage(format!("{path} cannot get {names} back; nothing is changed")));
    }
    file.write(&text)?;
    if let (Some((target, names)), Some(moved)) = (back, &moved) {
        if !names.is_empty() {
            target.write().inspect_err(|_| drop(file.write(&now)))?;
        }
        Moved::forget(path)?;
        let own: Vec<&str> = moved.own().keys().map(String::as_str).collect();
        if !own.is_empty() {
            console::write_line(&format!("{label} starts these itself again: {}", own.join(", ")))?;
        }
    }
    if is_backup {
        file.remove_backup()?;
    }
    console::write_line(&said)?;
    Ok(Exit::Ok)
}

fn no_entry(path: &Path) -> Abort {
    Abort::usage(format!("{} has no entry {NAME}", path.display()))
}

/// The client's file without `ptc`.
struct Undone {
    text: String,
    /// It is the backup, which is not needed any more.
    is_backup: bool,
    /// What the user reads.
    said: String,
}

/// The backup if the file has not changed since, or cannot be read any more. Otherwise the present text without the
/// entry. Both with the servers that have `moved`.
fn undone(
    client: Host,
    file: &ClientFile<'_>,
    now: &str,
    moved: Option<&Map<String, Value>>,
) -> Result<Undone, Abort> {
    let path = file.path;
    let before = file.backup();
    let there = match entries(client, now) {
        Ok(there) => there,
        Err(error) => return undone_unreadable(client, file, before, moved, &error),
    };
    let current = match there.get(NAME) {
        None if moved.is_none() => return Err(no_entry(path)),
        Some(current) if !starts_ptc(current, None) => {
            let path = path.display();
            return Err(Abort::usage(format!(
                "the entry {NAME} of {path} starts something else; it is left as it is"
            )));
        }
        current => current,
    };
    let of_backup = before.as_deref().and_then(|before| entries(client, before).ok()).unwrap_or_default();
    let lacking = missing(&of_backup, &there);
    // Without a record the backup says what has moved.
    let taken = moved.map_or(lacking.clone(), |moved| missing(moved, &there));
    let is_in_backup = |(name, entry): (&String, &Value)| of_backup.get(name) == Some(entry);
    let replaced = |before: &str| {
        let text = current.map_or(Ok(before.to_owned()), |current| with(client, before, current))?;
        if taken.is_empty() { Ok(text) } else { without_all(client, &text, &taken) }
    };
    let is_same =
        |before: &String| taken.iter().all(is_in_backup) && replaced(before).is_ok_and(|text| text == now);
    let mut said = format!("{} does not start ptc any more: {}", client.label(), path.display());
    if let Some(text) = before.filter(is_same) {
        return Ok(Undone { text, is_backup: true, said });
    }
    let text = current.map_or(Ok(now.to_owned()), |current| without(client, now, current));
    let mut text = text.map_err(Abort::usage)?;
    match moved {
        Some(_) => text = with_all(client, &text, &taken).map_err(Abort::usage)?,
        None if !lacking.is_empty() => {
            let names = lacking.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let backup = beside(path, BACKUP);
            said += &format!("\n{} has servers that it lacks now: {names}", backup.display());
        }
        None => {}
    }
    Ok(Undone { text, is_backup: false, said })
}

/// For a file that cannot be read: its backup, if that is well.
fn undone_unreadable(
    client: Host,
    file: &ClientFile<'_>,
    before: Option<String>,
    moved: Option<&Map<String, Value>>,
    error: &str,
) -> Result<Undone, Abort> {
    let path = file.path;
    let well = before.and_then(|before| Some((entries(client, &before).ok()?, before)));
    let Some((there, mut text)) = well else {
        return Err(Abort::usage(format!("{}: {error}; it is left as it is", path.display())));
    };
    let taken = moved.map(|moved| missing(moved, &there)).unwrap_or_default();
    if !taken.is_empty() {
        text = with_all(client, &text, &taken).map_err(Abort::usage)?;
    }
    let aside = file.keep(".ptc-unreadable", &files::read(path)?)?;
    let said = format!(
        "{} was not readable ({error}): it is as it was before ptc was installed; what it held is in {}",
        path.display(),
        aside.display()
    );
    Ok(Undone { text, is_backup: true, said })
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// The client's file: an existing one, else one in an existing folder, else the first.
fn file_of(client: Host, places: &HostFolders, project: bool) -> Result<PathBuf, Abort> {
    let files = client.files(places).into_iter().filter(|file| file.of_project == project);
    let own: Vec<PathBuf> = files.map(|HostFile { path, .. }| path).collect();
    let there = own.iter().find(|file| file.is_file());
    let folder = || own.iter().find(|file| file.parent().and_then(Path::parent).is_some_and(Path::is_dir));
    let file = there.or_else(folder).or(own.first());
    file.cloned().ok_or_else(|| {
        let what = if places.project == places.home { " here: this is the home" } else { "" };
        Abort::usage(format!("{} has no configuration of a project{what}", client.label()))
    })
}

/// The entry in the client's dialect.
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
        (_, EntryDialect::Goose) => {
            json!({ "name": NAME, "type": "stdio", "cmd": program, "args": arguments, "enabled": true })
        }
        (_, EntryDialect::Usual) => json!({ "command": program, "args": arguments }),
    })
}

/// The entry in the syntax of the client's file, to be shown.
fn written(client: Host, entry: &Value) -> String {
    let key = client.format().key;
    match client.format().syntax {
        Syntax::Json | Syntax::JsonWithProjects => format!("{:#}", json!({ key: { NAME: entry } })),
        Syntax::Toml => table(key, entry).trim().to_owned(),
        Syntax::Yaml => {
            let lines = entry.as_object().into_iter().flatten();
            // JSON values are valid YAML.
            let lines: String = lines.map(|(name, value)| format!("\n    {name}: {value}")).collect();
            format!("{key}:\n  {NAME}:{lines}")
        }
    }
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
            if entries(client, text)?.contains_key(NAME) {
                return Err(format!("it has an entry {NAME} already"));
            }
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            let new = format!("{text}{gap}{}", table(format.key, entry));
            // An inline table cannot be extended by another table.
            match entries(client, &new) {
                Ok(entries) if entries.get(NAME) == Some(entry) => Ok(new),
                _ => Err(format!("a table cannot be added below {}, which is in braces there", format.key)),
            }
        }
        Syntax::Yaml => {
            Err(format!("its files are not written; add the server with {}'s own settings", client.label()))
        }
    }
}

/// The entry as a TOML table. Strings and lists of strings have the same notation as in JSON.
fn table(key: &str, entry: &Value) -> String {
    let mut table = format!("\n[{key}.{NAME}]\n");
    // A sorted map gives the same order for every source.
    let keys: std::collections::BTreeMap<_, _> = entry.as_object().into_iter().flatten().collect();
    for (name, value) in keys {
        table.push_str(&format!("{name} = {value}\n"));
    }
    table
}

/// The servers of a client's file. The error says what is wrong with it.
fn entries(client: Host, text: &str) -> Result<Map<String, Value>, String> {
    let format = client.format();
    match format.syntax {
        Syntax::Json | Syntax::JsonWithProjects => Ok(JsonFile::read(text)?.entries(format.key)),
        syntax => match source::read_root(text, syntax)?.get(format.key) {
            None => Ok(Map::new()),
            Some(Value::Object(entries)) => Ok(entries.clone()),
            Some(_) => Err(format!("{} holds something else than servers", format.key)),
        },
    }
}

fn without(client: Host, text: &str, entry: &Value) -> Result<String, String> {
    let format = client.format();
    if format.syntax == Syntax::Toml {
        let table = table(format.key, entry);
        return match text.split_once(&table) {
            Some((before, after)) => Ok(format!("{before}{after}")),
            None => Err(format!("the entry {NAME} was changed by hand: remove it by hand")),
        };
    }
    let file = JsonFile::read(text)?;
    file.remove(format.key, NAME);
    Ok(file.text())
}

/// The text of a JSON file without these servers.
fn without_all(client: Host, text: &str, servers: &Map<String, Value>) -> Result<String, String> {
    let file = JsonFile::read(text)?;
    for name in servers.keys() {
        file.remove(client.format().key, name);
    }
    Ok(file.text())
}

/// The text of a JSON file with these servers.
fn with_all(client: Host, text: &str, servers: &Map<String, Value>) -> Result<String, String> {
    let file = JsonFile::read(text)?;
    for (name, entry) in servers {
        file.set(client.format().key, name, entry)?;
    }
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
            assert_eq!(entries(client, &new).unwrap().get(NAME), Some(&entry), "{new}");
            assert!(with(client, &new, &entry).unwrap_err().contains("already"));
            let old = without(client, &new, &entry).unwrap();
            assert!(!entries(client, &old).unwrap().contains_key(NAME), "{old}");
            assert!(!text.contains("mine") || old.contains("mine"), "{old}");
        }
        assert!(with(Host::Goose, "", &entry).is_err());
    }
}
