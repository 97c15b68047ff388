//! Merges the MCP servers from the configuration files of client applications (Claude, Cursor …) into those of `ptc`,
//! and reports for each server whether it was added, renamed or skipped.

use super::convert::{Converted, convert};
use super::hosts::{Host, HostFile, HostFolders};
use super::own::starts_ptc;
use super::source;
use super::switches::Switches;
use ptc_base::secrets::names;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// An existing configuration file of a host.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its host.
    pub host: Host,
    /// Its path.
    pub path: PathBuf,
    /// Its servers, or the error in it.
    pub servers: Result<Vec<Imported>, String>,
}

/// The result for one entry.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Its name in the host's file.
    pub name: String,
    /// What happened to it.
    pub fate: Fate,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// What happened to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Written under this name.
    Written(String),
    /// Equal to an entry of another host, which is written under this name.
    SameAs(String),
    /// Skipped, for this reason.
    Skipped(String),
}

/// The reason why the entry of `ptc` is skipped.
pub const ITSELF: &str = "it is ptc itself";

/// The result of an import.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// Existing files, in the order of the hosts.
    pub files: Vec<SourceFile>,
    /// Earlier entries of our configuration, by name.
    pub there: Map<String, Value>,
    /// New entries by name.
    pub servers: Map<String, Value>,
    /// Names of all entries, by their canonical text.
    names: HashMap<String, BTreeSet<String>>,
}

impl Import {
    /// Reads the files of these hosts, and merges their entries with those that we already have. `read` gives the text of a
    /// file, `None` where there is none, or why it cannot be read.
    pub fn collect(
        hosts: &[Host],
        places: &HostFolders,
        there: Map<String, Value>,
        read: impl Fn(&Path) -> Result<Option<String>, String>,
    ) -> Import {
        let mut import = Import::default();
        for (name, entry) in &there {
            import.names.entry(canonical(entry)).or_default().insert(name.clone());
        }
        import.there = there;
        for &host in hosts {
            let format = host.format();
            let switches = Switches::read(host, places, |path| read(path).ok().flatten());
            for HostFile { path, of_project } in host.files(places) {
                let text = match read(&path) {
                    Ok(Some(text)) => Ok(text),
                    Ok(None) => continue,
                    Err(why) => Err(why),
                };
                let project = places.project.as_deref();
                let base = project.filter(|_| of_project);
                let found = text.and_then(|text| source::read(&text, format, project));
                let servers = found.map(|found| {
                    let add = |(name, entry): (&String, &Value)| {
                        let converted = convert(entry, host, places, base).map(|mut converted| {
                            switches.apply(name, of_project, &mut converted);
                            converted
                        });
                        import.add(host, name, converted, starts_ptc(entry, base))
                    };
                    found.iter().map(add).collect()
                });
                import.files.push(SourceFile { host, path, servers });
            }
        }
        import
    }

    /// The literal secrets in all entries.
    pub fn secrets(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.servers.values().filter_map(Value::as_object).flat_map(names::in_entry)
    }

    /// A configuration with the new entries alone.
    pub fn document(&self) -> Value {
        json!({ "mcpServers": self.servers })
    }

    fn add(&mut self, host: Host, name: &str, found: Result<Converted, String>, is_ptc: bool) -> Imported {
        let fated = |fate, notes| Imported { name: name.to_owned(), fate, notes };
        if is_ptc {
            return fated(Fate::Skipped(ITSELF.into()), Vec::new());
        }
        if name.is_empty() {
            return fated(Fate::Skipped("its name is empty".into()), Vec::new());
        }
        let Converted { entry, mut notes } = match found {
            Ok(converted) => converted,
            Err(reason) => return fated(Fate::Skipped(reason), Vec::new()),
        };
        let entry = Value::Object(entry);
        let same = self.names.entry(canonical(&entry)).or_default();
        let longer = format!("{name}-");
        let is_longer = |known: &&String| known.starts_with(&longer);
        if let Some(known) = same.get(name).or_else(|| same.range(longer.clone()..).next().filter(is_longer))
        {
            return fated(Fate::SameAs(known.clone()), Vec::new());
        }
        let mut ours = name.to_owned();
        if self.is_taken(&ours) {
            notes.push(format!("there is a different {name} already"));
            ours = format!("{name}-{}", host.key());
        }
        let mut number = 2;
        while self.is_taken(&ours) {
            ours = format!("{name}-{}-{number}", host.key());
            number += 1;
        }
        self.names.entry(canonical(&entry)).or_default().insert(ours.clone());
        self.servers.insert(ours.clone(), entry);
        fated(Fate::Written(ours), notes)
    }

    fn is_taken(&self, name: &str) -> bool {
        self.there.contains_key(name) || self.servers.contains_key(name)
    }
}

/// A text that is the same for all equal entries.
fn canonical(entry: &Value) -> String {
    let mut entry = entry.clone();
    entry.sort_all_objects();
    entry.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn hosts_are_merged_without_losing_or_repeating_anything() {
        let places = HostFolders::in_tests();
        let read = |path: &Path| {
            match path.to_str() {
            Some("/h/.config/Claude/claude_desktop_config.json") => Some(
                r#"{"mcpServers": {"fs": {"command": "npx", "args": ["fs"]}, "ptc": {"command": "/bin/ptc", "args": ["serve"]}}}"#
                    .to_owned(),
            ),
            Some("/h/.cursor/mcp.json") => Some(
                r#"{"mcpServers": {"fs": {"command": "npx", "args": ["fs"]}, "git": {"command": "uvx"}}}"#.to_owned(),
            ),
            Some("/p/.vscode/mcp.json") => Some("{\"servers\": {\"fs\": {\"command\": \"other\"}, }}".to_owned()),
            Some("/h/.codeium/windsurf/mcp_config.json") => Some("{oops".to_owned()),
            Some("/h/.codex/config.toml") => Some("[mcp_servers.fs]\ncommand = \"third\"\n".to_owned()),
            _ => None,
        }
        };
        let import = Import::collect(Host::value_variants(), &places, Map::new(), |path| Ok(read(path)));
        assert_eq!(
            import.document(),
            json!({ "mcpServers": {
                "fs": { "command": "npx", "args": ["fs"] }, "git": { "command": "uvx" },
                "fs-vscode": { "command": "other" }, "fs-codex": { "command": "third" } } })
        );
        let hosts: Vec<&str> = import.files.iter().map(|file| file.host.key()).collect();
        assert_eq!(hosts, ["claude-desktop", "cursor", "vscode", "windsurf", "codex"]);
        let fates = |at: usize| -> Vec<Fate> {
            import.files[at]
                .servers
                .as_ref()
                .expect("servers")
                .iter()
                .map(|found| found.fate.clone())
                .collect()
        };
        assert_eq!(fates(0), [Fate::Written("fs".into()), Fate::Skipped("it is ptc itself".into())]);
        assert_eq!(fates(1), [Fate::SameAs("fs".into()), Fate::Written("git".into())]);
        assert!(import.files[3].servers.is_err());
    }
}
