//! Servers that a client starts itself although `ptc` serves the same tools: finds them for `ptc install`, moves them into
//! the configuration of `ptc`, and moves them back.

use super::target::{Target, write_file};
use crate::console::exit::Abort;
use crate::import::edit::JsonFile;
use crate::import::hosts::{Host, HostFolders, Syntax};
use crate::import::merge::{Fate, Import};
use crate::redact;
use ptc_runtime::files::{self, FileAccess, LinkRule};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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
        let read = |file: &Path| if file == path { files::read_text(file).ok() } else { None };
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
    pub(super) fn advice(&self, client: Host) -> Option<String> {
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

    /// Copies them into the configuration of `ptc`, and returns the file of the client without them. Nothing is written
    /// to that yet.
    pub(super) fn move_to(
        &self,
        target: &mut Target,
        client: Host,
        text: &str,
    ) -> Result<(String, Moved), Abort> {
        let key = client.format().key;
        if !matches!(client.format().syntax, Syntax::Json | Syntax::JsonWithProjects) {
            let label = client.label();
            return Err(Abort::usage(format!(
                "--replace cannot change the servers of {label}: remove them there"
            )));
        }
        let file = JsonFile::read(text).map_err(Abort::usage)?;
        target.set_as_hosts(&self.import.servers)?;
        target.write()?;
        for name in self.twice.iter().chain(&self.others) {
            file.remove(key, name);
        }
        let added = self.import.servers.keys().cloned().collect();
        Ok((file.text(), Moved { target: std::path::absolute(&target.path)?, added }))
    }
}

/// What `--replace` added to the configuration of `ptc`: it is kept next to the backup of the client's file.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Moved {
    target: PathBuf,
    added: Vec<String>,
}

impl Moved {
    pub(super) fn write(&self, path: &Path) -> Result<(), Abort> {
        let text = serde_json::to_string(self).map_err(std::io::Error::from)?;
        write_file(path, &text, LinkRule::Replace, FileAccess::Private)
    }

    /// Takes the servers out of the configuration of `ptc` again, if `--replace` added any.
    pub(super) fn undo(path: &Path) -> Result<Vec<String>, Abort> {
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        let Ok(text) = files::read_text(path) else { return Ok(Vec::new()) };
        let Some(moved) = serde_json::from_str::<Moved>(&text).ok().filter(|_| !is_link) else {
            return Ok(Vec::new());
        };
        let target = Target::read(moved.target, false)?;
        let removed: Vec<String> = moved.added.into_iter().filter(|name| target.remove(name)).collect();
        if !removed.is_empty() {
            target.write()?;
        }
        std::fs::remove_file(path)?;
        Ok(removed)
    }
}

/// The servers that a backup has and the present file lacks.
pub(super) fn missing(before: &Map<String, Value>, now: &Map<String, Value>) -> Map<String, Value> {
    let lacks = |(name, _): &(&String, &Value)| !now.contains_key(*name);
    before.iter().filter(lacks).map(|(name, entry)| (name.clone(), entry.clone())).collect()
}
