//! Moves MCP servers from a client's own configuration to that of `ptc` (`ptc install --replace`), and back by a record
//! of the move (`--undo`).

use super::target::{Target, write_file};
use crate::import::edit::JsonFile;
use crate::import::hosts::{Host, HostFolders, Syntax};
use crate::import::merge::{Fate, ITSELF, Import, Imported};
use crate::import::source;
use ptc_base::digest::{hex, sha256};
use ptc_base::files::{self, FileAccess, LinkRule};
use ptc_server::console::exit::Abort;
use ptc_server::redact;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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
}

impl OwnServers {
    /// Those in this file of a client, compared with the configuration of `ptc`.
    pub(super) fn find(client: Host, path: &Path, places: &HostFolders, target: &Target) -> OwnServers {
        let there = target.entries();
        let read = |file: &Path| if file == path { source::text_of(file) } else { Ok(None) };
        let import = Import::collect(&[client], places, there.clone(), read);
        for secret in import.secrets() {
            // `ptc doctor` reports secrets that cannot be redacted.
            let _ = redact::secrets().register(&secret);
        }
        let (mut twice, mut others) = (Vec::new(), Vec::new());
        for found in import.files.iter().flat_map(|file| file.servers.iter().flatten()) {
            match &found.fate {
                Fate::SameAs(_) => twice.push(found.name.clone()),
                Fate::Written(_) if there.contains_key(&found.name) => twice.push(found.name.clone()),
                Fate::Written(_) => others.push(found.name.clone()),
                Fate::Skipped(_) => {}
            }
        }
        OwnServers { import, twice, others }
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
        Ok((file.text(), MovedEntries { added: self.import.servers.clone(), own }))
    }
}

/// Servers that `--replace` moves.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct MovedEntries {
    /// Those that it added to the configuration of `ptc`, as they were added.
    pub(super) added: Map<String, Value>,
    /// Those that it took out of the client's file, as they stood there. No other file has them so.
    pub(super) own: Map<String, Value>,
}

/// What `--replace` moved to the configuration of `ptc` from one file of a client. The record is private, and lies in the
/// state folder: a file next to the client's could come from a checkout.
#[derive(Debug, Deserialize, Serialize)]
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
        let (client, path) = (std::path::absolute(client)?, Moved::path(client)?);
        let unreadable = |why: String| Abort::usage(format!("{}: {why}", path.display()));
        match files::read_text(&path) {
            Ok(text) => match serde_json::from_str::<Moved>(&text) {
                Ok(moved) => Ok(Some(moved).filter(|moved| moved.client == client)),
                Err(why) => Err(unreadable(why.to_string())),
            },
            // A state folder that is no folder holds no records.
            Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(why) => Err(unreadable(why.to_string())),
        }
    }

    /// Records that these servers move to `target`, with those of an earlier time.
    pub(super) fn record(
        client: &Path,
        target: &Target,
        moved: MovedEntries,
    ) -> Result<Option<Moved>, Abort> {
        let earlier = Moved::read(client)?;
        let path = std::path::absolute(&target.path)?;
        if let Some(earlier) = earlier.as_ref().filter(|earlier| earlier.target != path) {
            return Err(Abort::usage(format!(
                "an earlier --replace moved servers of this file to {}: take that back with --undo first",
                earlier.target.display()
            )));
        }
        let mut entries = earlier.as_ref().map(|earlier| earlier.entries.clone()).unwrap_or_default();
        entries.added.extend(moved.added);
        entries.own.extend(moved.own);
        Moved { client: std::path::absolute(client)?, target: path, entries }.write()?;
        Ok(earlier)
    }

    pub(super) fn write(&self) -> Result<(), Abort> {
        let text = serde_json::to_string(self).map_err(std::io::Error::from)?;
        write_file(&Moved::path(&self.client)?, &text, LinkRule::Replace, FileAccess::Private)
    }

    pub(super) fn forget(client: &Path) -> Result<(), Abort> {
        Ok(std::fs::remove_file(Moved::path(client)?)?)
    }

    /// The servers that the client gets back, as they stood in its file.
    pub(super) fn own(&self) -> &Map<String, Value> {
        &self.entries.own
    }

    /// The configuration of `ptc` without the servers that are still as they were added, and their names. Writes
    /// nothing.
    pub(super) fn taken_back(&self) -> Result<(Target, Vec<String>), Abort> {
        let target = Target::read(self.target.clone(), false)?;
        let now = target.entries();
        let is_ours = |(name, entry): &(&String, &Value)| now.get(*name) == Some(*entry);
        let names: Vec<String> =
            self.entries.added.iter().filter(is_ours).map(|(name, _)| name.clone()).collect();
        for name in &names {
            target.remove(name);
        }
        Ok((target, names))
    }

    /// The record's file, named after a digest of the client's file.
    fn path(client: &Path) -> Result<PathBuf, Abort> {
        let state = files::state_folder().ok_or_else(|| Abort::usage("HOME is not set"))?;
        let client = std::path::absolute(client)?;
        let name = hex(&sha256(client.as_os_str().as_bytes())[..16]);
        Ok(state.join("moved").join(format!("{name}.json")))
    }
}

/// The servers that a backup has and the present file lacks.
pub(super) fn missing(before: &Map<String, Value>, now: &Map<String, Value>) -> Map<String, Value> {
    let lacks = |(name, _): &(&String, &Value)| !now.contains_key(*name);
    before.iter().filter(lacks).map(|(name, entry)| (name.clone(), entry.clone())).collect()
}
