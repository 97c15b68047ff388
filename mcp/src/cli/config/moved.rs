//! Moves MCP servers from a client's own configuration to that of `ptc` (`ptc install --replace`), and back by a record
//! of the move (`--undo`).

use super::file::{EditRight, unwritten, write_file};
use super::target::Target;
use crate::import::edit::JsonFile;
use crate::import::hosts::{Host, HostFolders, Syntax};
use crate::import::merge::{Fate, ITSELF, Import, Imported};
use crate::import::source;
use crate::import::switches::ProjectSwitches;
use ptc_base::digest::{hex, sha256};
use ptc_base::files::{self, FileAccess, LinkRule};
use ptc_server::console::Abort;
use ptc_server::redact;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The servers that a client starts itself.
pub(super) struct OwnServers {
    import: Import,
    /// Those that `ptc` serves too.
    pub(super) twice: Vec<String>,
    /// Those that only the client has.
    pub(super) others: Vec<String>,
    /// The name in the configuration of `ptc` of each.
    served: BTreeMap<String, String>,
    /// What the client's projects say about them, which `ptc` cannot keep.
    of_projects: Vec<String>,
}

impl OwnServers {
    /// Those in this file of a client, compared with the servers of `ptc`.
    pub(super) fn find(
        client: Host,
        path: &Path,
        places: &HostFolders,
        there: Map<String, Value>,
        projects: &ProjectSwitches,
    ) -> OwnServers {
        let read = |file: &Path| if file == path { source::text_of(file) } else { Ok(None) };
        let import = Import::collect(&[client], places, there, read);
        for secret in import.secrets() {
            // `ptc doctor` reports secrets that cannot be redacted.
            let _ = redact::secrets().register(&secret);
        }
        let (mut twice, mut others, mut served) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut of_projects = Vec::new();
        for found in import.files.iter().flat_map(|file| file.servers.iter().flatten()) {
            let (name, ours) = match &found.fate {
                Fate::SameAs(ours) | Fate::Written(ours) => (&found.name, ours),
                Fate::Skipped(_) => continue,
            };
            let is_twice = matches!(found.fate, Fate::SameAs(_)) || import.there.contains_key(name);
            if is_twice { &mut twice } else { &mut others }.push(name.clone());
            served.insert(name.clone(), ours.clone());
            let entry = import.servers.get(ours).or_else(|| import.there.get(ours));
            if entry.and_then(|entry| entry.get("disabled")) != Some(&Value::Bool(true)) {
                of_projects.extend(projects.off(name).iter().map(|(project, key)| {
                    format!("  {name}: switched off in {project} by {key}, but ptc serves it in every folder")
                }));
            }
        }
        OwnServers { import, twice, others, served, of_projects }
    }

    /// What a user has to know about them.
    pub(super) fn advice(&self, client: Host, of_project: bool) -> Option<String> {
        let (label, key) = (client.label(), client.key());
        let names = |names: &[String]| names.join(", ");
        let said = match (self.twice.as_slice(), self.others.as_slice()) {
            ([], []) => return None,
            ([], others) => format!("{label} goes on starting {} itself", names(others)),
            (twice, []) => format!("{label} has these twice, its own and those of ptc: {}", names(twice)),
            (twice, others) => format!(
                "{label} has these twice, its own and those of ptc: {}; it goes on starting {} itself",
                names(twice),
                names(others)
            ),
        };
        Some(match client.format().syntax {
            _ if of_project => format!("{said}\n  `ptc add` gives ptc those that you trust"),
            Syntax::Json | Syntax::JsonWithProjects => {
                format!(
                    "{said}\n  `ptc install {key} --replace` leaves all of them to ptc, `--undo` takes that back"
                )
            }
            Syntax::Toml | Syntax::Yaml => {
                format!("{said}\n  `ptc config import --from {key}`, then remove them there")
            }
        })
    }

    /// What `--replace` does with them, a line each, with what is lost: in the future tense for a dry run.
    pub(super) fn moves(&self, client: Host, target: &Path, is_dry: bool) -> Vec<String> {
        let moved: Vec<&str> = self.twice.iter().chain(&self.others).map(String::as_str).collect();
        let mut lines = Vec::new();
        if !moved.is_empty() {
            let said = if is_dry { "would move" } else { "moved" };
            lines.push(format!("{said} to {}: {}", target.display(), moved.join(", ")));
        }
        for Imported { name, fate, notes } in
            self.import.files.iter().flat_map(|file| file.servers.iter().flatten())
        {
            match fate {
                Fate::Written(ours) if ours != name => lines.push(format!("  {name}: it is {ours} there")),
                Fate::Skipped(why) if why != ITSELF => {
                    lines.push(format!("  {name}: {} keeps it: {why}", client.label()));
                }
                Fate::Written(_) | Fate::SameAs(_) | Fate::Skipped(_) => {}
            }
            lines.extend(notes.iter().map(|note| format!("  {name}: {note}")));
        }
        lines.extend(self.of_projects.iter().cloned());
        lines
    }

    /// Adds them to `target`, and returns the text of the client's file without them, with what has moved. Writes
    /// nothing.
    pub(super) fn move_to(
        &self,
        target: &mut Target,
        client: Host,
        text: &str,
    ) -> Result<(String, MovedEntries), Abort> {
        let key = client.format().key;
        if !matches!(client.format().syntax, Syntax::Json | Syntax::JsonWithProjects) {
            let label = client.label();
            return Err(Abort::usage(format!(
                "--replace cannot change the servers of {label}: `ptc config import --from {}` takes them, then remove them \
                 there",
                client.key()
            )));
        }
        let file = JsonFile::read(text).map_err(Abort::usage)?;
        target.set_as_hosts(&self.import.servers)?;
        let mut own = file.entries(key);
        own.retain(|name, _| self.twice.iter().chain(&self.others).any(|moved| moved == name));
        for name in own.keys() {
            file.remove(key, name);
        }
        let (added, served) = (self.import.servers.clone(), self.served.clone());
        Ok((file.text(), MovedEntries { added, own, served, kept: BTreeSet::new() }))
    }
}

/// Servers that `--replace` moves.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct MovedEntries {
    /// Those that it added to the configuration of `ptc`, as they were added.
    pub(super) added: Map<String, Value>,
    /// Those that it took out of the client's file, as they stood there. No other file has them so.
    pub(super) own: Map<String, Value>,
    /// The names of those in the configuration of `ptc`. A name that is not here is the same there.
    #[serde(default)]
    served: BTreeMap<String, String>,
    /// Those in the configuration of `ptc` that were taken out of the client's file before another one of the same name,
    /// so they cannot go back.
    #[serde(default)]
    kept: BTreeSet<String>,
}

impl MovedEntries {
    /// Adds those of a later time. One that takes the name of an earlier one leaves it where it has moved to.
    fn extend(&mut self, later: MovedEntries) {
        for (name, entry) in later.own {
            let ours = later.served.get(&name).unwrap_or(&name).clone();
            let earlier = self.served.insert(name.clone(), ours.clone());
            let is_other = self.own.insert(name.clone(), entry.clone()).is_some_and(|own| own != entry);
            let earlier = earlier.unwrap_or(name);
            if is_other && earlier != ours && self.added.remove(&earlier).is_some() {
                self.kept.insert(earlier);
            }
        }
        self.added.extend(later.added);
    }

    /// The names in the client's file of a server of `ptc`.
    fn names_of(&self, ours: &str) -> impl Iterator<Item = &String> {
        self.own.keys().filter(move |name| self.served.get(*name).unwrap_or(name) == ours)
    }
}

/// What `--replace` moved to the configuration of `ptc` from one file of a client. The record is private, and lies in the
/// state folder: a file next to the client's could come from a checkout.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Moved {
    /// The client's file.
    client: PathBuf,
    /// The configuration of `ptc`.
    target: PathBuf,
    #[serde(flatten)]
    entries: MovedEntries,
}

impl Moved {
    /// The record for this file of a client, if there is one.
    pub(super) fn read(client: &Path) -> Result<Option<Moved>, Abort> {
        let client = std::path::absolute(client)?;
        Ok(Moved::load(&Moved::path(&client)?)?.filter(|moved| moved.client == client))
    }

    fn load(path: &Path) -> Result<Option<Moved>, Abort> {
        let unreadable = |why: String| Abort::usage(format!("{}: {why}", path.display()));
        match files::read_text(path) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|why| unreadable(why.to_string())),
            // A state folder that is no folder holds no records.
            Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(why) => Err(unreadable(why.to_string())),
        }
    }

    /// The records of the files of other clients, with servers that moved to the same configuration, and a record that
    /// cannot be read.
    fn others(&self) -> Result<(Vec<Moved>, Option<PathBuf>), Abort> {
        let own = Moved::path(&self.client)?;
        let folder = own.parent().unwrap_or(Path::new("/"));
        let names = std::fs::read_dir(folder).map_err(|error| unwritten(folder, &error))?;
        let paths = names.filter_map(|name| Some(name.ok()?.path()));
        let is_record = |path: &PathBuf| *path != own && path.extension().is_some_and(|end| end == "json");
        let (mut others, mut unread) = (Vec::new(), None);
        for path in paths.filter(is_record) {
            match Moved::load(&path) {
                Ok(Some(other)) if other.target == self.target => others.push(other),
                Ok(_) => {}
                Err(_) => unread = Some(path),
            }
        }
        Ok((others, unread))
    }

    /// Records that these servers move to `target`, with those of an earlier time.
    pub(super) fn record(
        client: &Path,
        target: &Target,
        moved: MovedEntries,
    ) -> Result<Option<Moved>, Abort> {
        let earlier = Moved::read(client)?;
        let path = std::path::absolute(target.path())?;
        if let Some(earlier) = earlier.as_ref().filter(|earlier| earlier.target != path) {
            return Err(Abort::usage(format!(
                "an earlier --replace moved servers of this file to {}: take that back with --undo first",
                earlier.target.display()
            )));
        }
        let mut entries = earlier.as_ref().map(|earlier| earlier.entries.clone()).unwrap_or_default();
        entries.extend(moved);
        Moved { client: std::path::absolute(client)?, target: path, entries }.write()?;
        Ok(earlier)
    }

    pub(super) fn write(&self) -> Result<(), Abort> {
        let text = serde_json::to_string(self).map_err(std::io::Error::from)?;
        write_file(&Moved::path(&self.client)?, &text, LinkRule::Replace, FileAccess::Private)
    }

    pub(super) fn forget(client: &Path) -> Result<(), Abort> {
        let path = Moved::path(client)?;
        std::fs::remove_file(&path).map_err(|error| unwritten(&path, &error))
    }

    /// The servers that the client gets back, as they stood in its file.
    pub(super) fn own(&self) -> &Map<String, Value> {
        &self.entries.own
    }

    /// What leaves the configuration of `ptc`: the servers that are still as they were added, that the client's file
    /// has `after` the undoing, and that no other client relies on. Writes nothing.
    pub(super) fn taken_back(
        &self,
        right: &EditRight,
        after: &Map<String, Value>,
    ) -> Result<TakenBack, Abort> {
        let target = Target::read(right, self.target.clone(), false)?;
        let now = target.entries();
        let (mut heirs, unread) = self.others()?;
        let mut doubtful = Vec::new();
        let mut stay: Vec<String> =
            self.entries.kept.iter().filter(|name| now.contains_key(*name)).cloned().collect();
        let (mut inherited, mut is_changed) = (BTreeMap::new(), false);
        let is_ours = |(name, entry): &(&String, &Value)| now.get(*name) == Some(*entry);
        for (ours, entry) in self.entries.added.iter().filter(is_ours) {
            let has_not = |name: &String| after.get(name) != self.entries.own.get(name);
            if self.entries.names_of(ours).any(has_not) {
                stay.push(ours.clone());
            } else if let Some(heir) =
                heirs.iter_mut().find(|heir| heir.entries.names_of(ours).next().is_some())
            {
                heir.entries.added.insert(ours.clone(), entry.clone());
                inherited.insert(ours.clone(), heir.client.clone());
            } else if unread.is_some() {
                doubtful.push(ours.clone());
            } else {
                is_changed |= target.remove(ours);
            }
        }
        let doubtful = unread.filter(|_| !doubtful.is_empty()).map(|record| (record, doubtful));
        heirs.retain(|heir| inherited.values().any(|client| *client == heir.client));
        Ok(TakenBack { target, is_changed, stay, inherited, doubtful, heirs })
    }

    /// The record's file, named after a digest of the client's file.
    fn path(client: &Path) -> Result<PathBuf, Abort> {
        let state = files::state_folder().ok_or_else(|| Abort::usage("HOME is not set"))?;
        let client = std::path::absolute(client)?;
        let name = hex(&sha256(client.as_os_str().as_bytes())[..16]);
        Ok(state.join("moved").join(format!("{name}.json")))
    }
}

/// What `--undo` takes out of the configuration of `ptc`, and what stays in it.
pub(super) struct TakenBack {
    target: Target,
    is_changed: bool,
    /// Those that cannot go back, as the client has others of their names.
    stay: Vec<String>,
    /// Those that another client relies on, with its file.
    inherited: BTreeMap<String, PathBuf>,
    /// Those that another client may rely on, as its record cannot be read.
    doubtful: Option<(PathBuf, Vec<String>)>,
    /// The records of those clients, which hold these servers now.
    heirs: Vec<Moved>,
}

impl TakenBack {
    /// Writes what comes before the client's file: the records. So a folder of records that cannot be written ends the
    /// command before it has done anything. `own` is the record of this client, which stays until all is done.
    pub(super) fn prepare(&self, own: &Moved) -> Result<(), Abort> {
        self.heirs.iter().chain([own]).try_for_each(Moved::write)?;
        if self.is_changed { self.target.must_be_writable() } else { Ok(()) }
    }

    /// Writes the configuration of `ptc`.
    pub(super) fn write(&self) -> Result<(), Abort> {
        if self.is_changed { self.target.write() } else { Ok(()) }
    }

    /// What stays, a line for each reason.
    pub(super) fn said(&self, client: Host) -> Vec<String> {
        let (target, label) = (self.target.path().display(), client.label());
        let mut lines: Vec<String> = self
            .inherited
            .iter()
            .map(|(name, heir)| format!("{target} keeps {name}: it was moved from {}, too", heir.display()))
            .collect();
        if let Some((record, names)) = &self.doubtful {
            let (names, record) = (names.join(", "), record.display());
            lines.push(format!(
                "{target} keeps {names}: {record}, the record of another client, cannot be read"
            ));
        }
        if !self.stay.is_empty() {
            let names = self.stay.join(", ");
            lines.push(format!("{target} keeps {names}: {label} has other servers of the same names"));
        }
        lines
    }
}

/// The servers that a backup has and the present file lacks.
pub(super) fn missing(before: &Map<String, Value>, now: &Map<String, Value>) -> Map<String, Value> {
    let lacks = |(name, _): &(&String, &Value)| !now.contains_key(*name);
    before.iter().filter(lacks).map(|(name, entry)| (name.clone(), entry.clone())).collect()
}
