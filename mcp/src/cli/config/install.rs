//! The command `ptc install`, which adds `ptc` to the configuration of a client, moves the client's own servers to
//! `ptc` on request, and undoes both.

use super::client_text::{NAME, doubled, entries, entry, with, written};
use super::file::{BACKUP, ConfigFile, EditRight, Links};
use super::moved::{Moved, MovedEntries, OwnServers};
use super::target::{Target, servers_in, twice};
use super::undo::undo;
use crate::import::edit::JsonFile;
use crate::import::hosts::{Host, HostFile, HostFolders, Syntax};
use crate::import::source;
use crate::import::switches::{ProjectSwitches, Switches, only_lists};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ptc_base::files::FileAccess;
use ptc_server::console::{self, Abort, Exit};
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
2 there is another entry, or the client's file cannot be changed, 4 not written, or another program wrote the file
meanwhile.")]
pub struct InstallArgs {
    /// The client
    #[arg(value_parser = clients())]
    pub(super) client: Host,
    /// The file with the servers that ptc is to serve [default: the one that is used when no other is named]
    #[arg(long, value_name = "FILE")]
    upstreams_config: Option<PathBuf>,
    /// Write the file of the project in the working directory instead of the user's
    #[arg(long)]
    pub(super) project: bool,
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
    let named = |host: &Host| PossibleValue::new(host.key()).hide(host.format().syntax == Syntax::Yaml);
    let hosts = Host::value_variants().iter().map(named);
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
        Some(project) if args.project => Links::Within(project.clone()),
        _ => Links::Anywhere,
    };
    let right = EditRight::wait()?;
    // The access rights of the file are the client's concern.
    let file = ConfigFile::read(&right, path, links, FileAccess::Kept)?;
    let old = match file.text() {
        // `undo` may still find a backup of a file that is no text.
        Err(_) if args.undo => Some(String::from("\0")),
        old => old?,
    };
    if let Some(name) = old.as_deref().and_then(|old| doubled(args.client, old)) {
        return Err(Abort::usage(format!("{}: {}", file.path.display(), twice(&name))));
    }
    if args.undo {
        return undo(args, &right, &file, old);
    }
    let plan = Plan::new(args, &right, &file, old.unwrap_or_default(), &places)?;
    if !args.dry_run {
        plan.carry_out()?;
    }
    plan.say()?;
    Ok(Exit::Ok)
}

/// What `install` does to a client's file, and to the configuration of `ptc`.
struct Plan<'a> {
    args: &'a InstallArgs,
    file: &'a ConfigFile,
    /// The client's file before and after.
    old: String,
    new: String,
    /// The entry as the file holds it.
    entry: String,
    /// The file has the entry already.
    is_there: bool,
    /// Why the client does not start `ptc`, although its file has the new text: a switch outside of the entry.
    excluded: Option<String>,
    /// The client's own servers.
    own: OwnServers,
    /// The configuration of `ptc`.
    servers: PathBuf,
    /// What moves there, for `--replace`.
    moved: Option<(Target, MovedEntries)>,
}

impl<'a> Plan<'a> {
    fn new(
        args: &'a InstallArgs,
        right: &EditRight,
        file: &'a ConfigFile,
        old: String,
        places: &HostFolders,
    ) -> Result<Plan<'a>, Abort> {
        let (path, client) = (&file.path, args.client);
        let entry = entry(client, args.upstreams_config.as_deref())?;
        let shown = written(client, &entry);
        let is_there = entries(client, &old).is_ok_and(|entries| entries.get(NAME) == Some(&entry));
        let new = with(client, &old, &entry).map_err(|error| {
            Abort::usage(format!("{}: {error}; the entry would be:\n{shown}", path.display()))
        })?;
        let read = |file: &Path| match file == path {
            true => Some(new.clone()),
            false => source::text_of(file).ok().flatten(),
        };
        let excluded = Switches::read(client, places, read)
            .off(NAME, args.project)
            .map(|key| format!("{} leaves {NAME} out, by {key} in its settings", client.label()));
        let of_projects = ProjectSwitches::read(client, places, read);
        let servers = Target::find(args.upstreams_config.as_deref())?;
        let target = args.replace.then(|| Target::read(right, servers.clone(), false)).transpose()?;
        let there = target.as_ref().map_or_else(|| servers_in(&servers), |target| Ok(target.entries()))?;
        // What a client has for one project stays there: the user's servers of ptc run in every folder.
        let places = if args.project { places.clone() } else { places.of_user() };
        let own = OwnServers::find(client, path, &places, there, &of_projects);
        let mut plan =
            Plan { entry: shown, args, file, old, new, is_there, excluded, own, servers, moved: None };
        if let Some(target) = target {
            plan.replace(target)?;
        }
        if plan.new != plan.old {
            file.must_be_writable()?;
        }
        Ok(plan)
    }

    /// Plans that the client's own servers move to `target`.
    fn replace(&mut self, mut target: Target) -> Result<(), Abort> {
        if let Some(key) = &self.excluded {
            return Err(Abort::usage(format!(
                "{key}: change that first, --replace would leave it without servers"
            )));
        }
        let (new, moved) = self.own.move_to(&mut target, self.args.client, &self.new)?;
        self.new = new;
        self.moved = Some((target, moved));
        Ok(())
    }

    fn carry_out(&self) -> Result<(), Abort> {
        let file = self.file;
        // A file that starts ptc already has the backup of the first time. So has one with servers that have moved: a copy of
        // what is left would replace the one that holds them.
        let was_installed = || Ok::<_, Abort>(!self.args.project && Moved::read(&file.path)?.is_some());
        let has_backup = file.backup().is_some() && (self.is_there || was_installed()?);
        if !has_backup {
            file.keep(BACKUP)?;
        }
        match &self.moved {
            None => self.write(),
            Some((target, moved)) => self.write_both(target, moved.clone()),
        }
    }

    fn write(&self) -> Result<(), Abort> {
        if self.new == self.old { Ok(()) } else { self.file.write(&self.new) }
    }

    /// Adds servers to the configuration of `ptc`, then changes the client's file. When that fails, the configuration is
    /// as before.
    fn write_both(&self, target: &Target, moved: MovedEntries) -> Result<(), Abort> {
        let names: Vec<String> = moved.added.keys().cloned().collect();
        let path = &self.file.path;
        let earlier = Moved::record(path, target, moved)?;
        target
            .write()
            .and_then(|()| {
                self.write().inspect_err(|_| {
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

    /// Says what has been done, or would be.
    fn say(&self) -> Result<(), Abort> {
        let (args, label, path) = (self.args, self.args.client.label(), self.file.path.display());
        let is_dry = args.dry_run;
        let mut lines = vec![match (&self.excluded, self.is_there) {
            (_, false) if is_dry => format!("{path} would get:\n{}", self.entry),
            (Some(_), true) if is_dry => format!("{label} has ptc already, and does not start it: {path}"),
            (Some(_), _) => format!("{label} has ptc now, and does not start it: {path}"),
            (None, true) => format!("{label} starts ptc already: {path}"),
            (None, false) => format!("{label} will start ptc: {path}"),
        }];
        lines.extend(self.excluded.clone());
        let gets = if is_dry { "would get" } else { "has got" };
        lines.extend(self.lists().iter().map(|list| format!("{list} there {gets} {NAME}, too")));
        match args.replace {
            true => lines.extend(self.own.moves(args.client, &self.servers, is_dry)),
            false => lines.extend(self.own.advice(args.client, args.project)),
        }
        if args.upstreams_config.is_some() && !self.servers.exists() {
            lines.push(format!("{} is not there: ptc does not start until it is", self.servers.display()));
        }
        if !is_dry {
            let (key, project) = (args.client.key(), if args.project { " --project" } else { "" });
            lines.push(format!("next: restart {label}; `ptc install {key}{project} --undo` takes it back"));
        }
        lines.iter().try_for_each(|line| console::write_line(line))
    }

    /// The lists of the only enabled servers that `ptc` comes into.
    fn lists(&self) -> Vec<String> {
        let (Ok(old), Ok(new)) = (JsonFile::read(&self.old), JsonFile::read(&self.new)) else {
            return Vec::new();
        };
        let gets = |list: &&&[&str]| new.has_in_list(list, NAME) && !old.has_in_list(list, NAME);
        only_lists(self.args.client)
            .collect::<Vec<_>>()
            .iter()
            .filter(gets)
            .map(|list| list.join("."))
            .collect()
    }
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
