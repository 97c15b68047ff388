//! The command `ptc install`, which adds `ptc` to the configuration of a client, moves the client's own servers to
//! `ptc` on request, and undoes both.

use super::client_text::{NAME, doubled, entries, entry, with, with_all, without, without_all, written};
use super::moved::{Moved, MovedEntries, OwnServers, missing};
use super::target::{BACKUP, Target, beside, twice, write_file};
use crate::import::hosts::{Host, HostFile, HostFolders, Syntax};
use crate::import::own::starts_ptc;
use crate::import::source;
use crate::import::switches::Switches;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ptc_base::files::{self, FileAccess, LinkRule};
use ptc_server::console;
use ptc_server::console::exit::{Abort, Exit};
use serde_json::{Map, Value};
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
wherever links in it lead. So --replace does not go with it: commands of a project would run in every folder, and what
a client has for one project stays there. For Goose, whose files are not written, it says what to write. --replace does
not edit the files of Codex: `ptc config import --from codex` takes its servers. Exit codes: 0 written or there already,
2 there is another entry, or the client's file cannot be changed, 4 not written.")]
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
    let links = match &places.project {
        Some(project) if args.project => LinkRule::Within(project),
        _ => LinkRule::Follow,
    };
    files::settle(&path, links).map_err(|error| Abort::usage(format!("{}: {error}", path.display())))?;
    let file = ClientFile { path: &path, links };
    let old = match files::read_text(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        // The file is no text. `undo` may still find a backup of it.
        Err(error) if error.kind() == ErrorKind::InvalidData && args.undo => Some(String::from("\0")),
        Err(error) => return Err(Abort::usage(format!("{}: {error}", path.display()))),
    };
    if let Some(name) = old.as_deref().and_then(|old| doubled(args.client, old)) {
        return Err(Abort::usage(format!("{}: {}", path.display(), twice(&name))));
    }
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

fn install(
    args: &InstallArgs,
    file: &ClientFile<'_>,
    old: Option<String>,
    places: &HostFolders,
) -> Result<Exit, Abort> {
    let (path, client) = (file.path, args.client);
    let entry = entry(client, args.upstreams_config.as_deref())?;
    let shown = written(client, &entry);
    let text = old.as_deref().unwrap_or_default();
    let is_there = entries(client, text).is_ok_and(|entries| entries.get(NAME) == Some(&entry));
    let new = with(client, text, &entry).map_err(|error| {
        Abort::usage(format!("{}: {error}; the entry would be:\n{shown}", path.display()))
    })?;
    let excluded = excluded(args, path, &new, places);
    let mut target = Target::read(Target::path(args.upstreams_config.as_deref())?, false)?;
    // What a client has for one project stays there: the user's servers of ptc run in every folder.
    let places = if args.project { places.clone() } else { places.of_user() };
    let own = OwnServers::find(client, path, &places, &target);
    let (new, moved) = match args.replace {
        true => {
            if let Some(key) = &excluded {
                return Err(Abort::usage(format!(
                    "{key}: change that first, --replace would leave it without servers"
                )));
            }
            let (new, moved) = own.move_to(&mut target, client, &new)?;
            (new, Some(moved))
        }
        false => (new, None),
    };
    if args.dry_run {
        console::write_line(&format!("{} would get:\n{shown}", path.display()))?;
        say_of_own(args, &own, &target)?;
        return Ok(Exit::Ok);
    }
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
    let does = match (&excluded, is_there) {
        (Some(_), _) => "has ptc now, and does not start it",
        (None, true) => "starts ptc already",
        (None, false) => "will start ptc",
    };
    console::write_line(&format!("{} {does}: {}", client.label(), path.display()))?;
    excluded.map_or(Ok(()), |key| console::write_line(&key))?;
    say_of_own(args, &own, &target)?;
    say_next(args, &target)
}

/// Says what is to be done next.
fn say_next(args: &InstallArgs, target: &Target) -> Result<Exit, Abort> {
    if args.upstreams_config.is_some() && !target.path.exists() {
        console::write_line(&format!(
            "{} is not there: ptc does not start until it is",
            target.path.display()
        ))?;
    }
    let project = if args.project { " --project" } else { "" };
    console::write_line(&format!(
        "next: restart {}; `ptc install {}{project} --undo` takes it back",
        args.client.label(),
        args.client.key()
    ))?;
    Ok(Exit::Ok)
}

/// Why the client does not start `ptc`, although its file has the new text: a switch outside of the entry.
fn excluded(args: &InstallArgs, path: &Path, new: &str, places: &HostFolders) -> Option<String> {
    let read = |file: &Path| match file == path {
        true => Some(new.to_owned()),
        false => source::text_of(file).ok().flatten(),
    };
    let key = Switches::read(args.client, places, read).off(NAME, args.project)?;
    Some(format!("{} leaves {NAME} out, by {key} in its settings", args.client.label()))
}

/// Says what becomes of the client's own servers.
fn say_of_own(args: &InstallArgs, own: &OwnServers, target: &Target) -> Result<(), Abort> {
    let lines = match args.replace {
        true => own.moves(args.client, &target.path, args.dry_run),
        false => own.advice(args.client, args.project).into_iter().collect(),
    };
    lines.iter().try_for_each(|line| console::write_line(line))
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
    if let Some(text) = before.clone().filter(is_same) {
        return Ok(Undone { text, is_backup: true, said });
    }
    let mut text = without(client, now, current, before.as_deref()).map_err(Abort::usage)?;
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

/// The client's file: an existing one, else one in an existing folder, else the first.
fn file_of(client: Host, places: &HostFolders, project: bool) -> Result<PathBuf, Abort> {
    let files = client.files(places).into_iter().filter(|file| file.of_project == project);
    let own: Vec<PathBuf> = files.map(|HostFile { path, .. }| path).collect();
    let there = own.iter().find(|file| file.is_file());
    let folder = || own.iter().find(|file| file.parent().and_then(Path::parent).is_some_and(Path::is_dir));
    let file = there.or_else(folder).or(own.first());
    file.cloned().ok_or_else(|| {
        let why = match &places.project {
            None => " here: the working directory is gone",
            Some(project) if *project == places.home => " here: this is the home",
            Some(_) => "",
        };
        Abort::usage(format!("{} has no configuration of a project{why}", client.label()))
    })
}
