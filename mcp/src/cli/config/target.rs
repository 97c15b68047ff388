//! Reads, changes and writes the configuration file of `ptc` for `ptc add`, `remove`, `install` and `config import`.

use super::file::{BACKUP, ConfigFile, EditRight, Links};
use crate::import::edit::{JsonFile, entries_below};
use crate::import::hosts::Syntax;
use crate::import::source;
use ptc_base::files::FileAccess;
use ptc_server::console::Abort;
use ptc_upstream::config::{self, Shape};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A configuration file of `ptc` before a change.
pub(super) struct Target {
    file: ConfigFile,
    entries: JsonFile,
}

/// Every shape; those of the hosts come first.
const SHAPES: [Shape; 3] = [Shape::McpServers, Shape::Servers, Shape::Upstreams];

impl Target {
    /// The file that was named, or the default one.
    pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Abort> {
        match named {
            Some(path) => Ok(path.to_owned()),
            None => config::find(&[])
                .pop()
                .or_else(config::default_file)
                .ok_or_else(|| Abort::usage("HOME is not set: name a file with --to")),
        }
    }

    /// Reads the file. One that does not exist, or is to be replaced, counts as empty.
    pub(super) fn read(right: &EditRight, path: PathBuf, replace: bool) -> Result<Target, Abort> {
        let links = if replace { Links::Replaced } else { Links::of_servers(&path)? };
        let file = ConfigFile::read(right, path, links, FileAccess::Private)?;
        let path = &file.path;
        let entries = JsonFile::read(&file.text()?.unwrap_or_default()).map_err(|error| {
            let why = if is_yaml(path) {
                "files of YAML are not edited: change it by hand".to_owned()
            } else {
                error
            };
            Abort::usage(format!("{}: {why}; it is left as it is", path.display()))
        })?;
        if let Some(name) = entries.doubled() {
            return Err(Abort::usage(format!("{}: {}", path.display(), twice(&name))));
        }
        Ok(Target { file, entries })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.file.path
    }

    /// The servers of the file in all shapes.
    pub(super) fn entries(&self) -> Map<String, Value> {
        SHAPES.iter().flat_map(|shape| self.entries.entries(shape.key())).collect()
    }

    /// The hosts' shape for servers in this file. It may be used next to `upstreams`, where the same keys
    /// have another meaning.
    fn hosts_shape(&self) -> Shape {
        let hosts = [Shape::McpServers, Shape::Servers];
        let there = hosts
            .iter()
            .find(|shape| self.entries.has(shape.key()) && self.entries.can_have_entries(shape.key()));
        *there.unwrap_or(&Shape::McpServers)
    }

    /// Sets servers given in the hosts' shape.
    pub(super) fn set_as_hosts(&mut self, servers: &Map<String, Value>) -> Result<(), Abort> {
        let shape = self.hosts_shape();
        for other in SHAPES.into_iter().filter(|other| *other != shape) {
            let names = self.entries.entries(other.key()).into_iter().map(|(name, _)| name);
            for name in names.filter(|name| servers.contains_key(name)) {
                self.entries.remove(other.key(), &name);
            }
        }
        let set = self.entries.set_all(shape.key(), servers);
        set.map_err(|error| Abort::usage(format!("{}: {error}", self.path().display())))
    }

    fn set_in(&self, shape: Shape, name: &str, entry: Map<String, Value>) -> Result<(), Abort> {
        for other in SHAPES.into_iter().filter(|other| *other != shape) {
            self.entries.remove(other.key(), name);
        }
        let set = self.entries.set(shape.key(), name, &entry.into());
        set.map_err(|error| Abort::usage(format!("{}: {error}", self.path().display())))
    }

    /// Sets a server, given in the hosts' shape, in the shape that the file uses.
    pub(super) fn set(&self, name: &str, mut entry: Map<String, Value>) -> Result<(), Abort> {
        let mut shape = self.hosts_shape();
        if self.entries.has(Shape::Upstreams.key()) && !self.entries.has(shape.key()) {
            shape = Shape::Upstreams;
            if entry.contains_key("headers") {
                let path = self.path().display();
                return Err(Abort::usage(format!(
                    "{path} has the shape of upstreams, where headers are static_headers and secrets are credentials: \
                    write {name} there by hand, or leave --header out"
                )));
            }
            let transport = match (entry.remove("type"), entry.get("url").and_then(Value::as_str)) {
                (Some(kind), _) if kind == "sse" => "sse",
                (_, Some(_)) => "mcp_http",
                (_, None) => "mcp_stdio",
            };
            if entry.get("url").and_then(Value::as_str).is_some_and(|url| url.starts_with("http://")) {
                entry.insert("allow_insecure_http".into(), true.into());
            }
            entry.insert("transport".into(), transport.into());
        }
        self.set_in(shape, name, entry)
    }

    /// The flag with which commands use this file, with a blank before it; empty if they use it anyway.
    pub(super) fn flag(&self) -> String {
        match config::find(&[]).as_slice() {
            [used] if used == self.path() => String::new(),
            _ => format!(" --upstreams-config {}", quoted(&self.path().display().to_string())),
        }
    }

    /// Removes a server. Returns false when there is none of this name.
    pub(super) fn remove(&self, name: &str) -> bool {
        // A name may exist in several shapes; `count` visits all of them.
        SHAPES.iter().filter(|shape| self.entries.remove(shape.key(), name)).count() > 0
    }

    /// Copies the present file beside itself, if there is one.
    pub(super) fn keep(&self) -> Result<Option<PathBuf>, Abort> {
        self.file.keep(BACKUP)
    }

    /// [`ConfigFile::must_be_writable`].
    pub(super) fn must_be_writable(&self) -> Result<(), Abort> {
        self.file.must_be_writable()
    }

    /// Writes the file for its owner only, because it may hold secrets.
    pub(super) fn write(&self) -> Result<(), Abort> {
        self.file.write(&self.entries.text())
    }
}

/// The servers of a configuration that is only read: in any syntax, in all shapes. A file that does not exist has none.
///
/// # Errors
/// It cannot be read.
pub(super) fn servers_in(path: &Path) -> Result<Map<String, Value>, Abort> {
    let syntax = if is_yaml(path) { Syntax::Yaml } else { Syntax::Json };
    let root = source::text_of(path).and_then(|text| source::read_root(&text.unwrap_or_default(), syntax));
    let root = root.map_err(|why| Abort::usage(format!("{}: {why}", path.display())))?;
    Ok(SHAPES.iter().flat_map(|shape| entries_below(&root, shape.key())).collect())
}

fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml"))
}

/// About a key that a file has twice.
pub(super) fn twice(name: &str) -> String {
    format!("{name:?} is there twice, and the last one counts; remove one by hand")
}

/// A path as a configuration holds it.
///
/// # Errors
/// It is not UTF-8, which no configuration can hold.
pub(super) fn path_text(path: &Path) -> Result<String, Abort> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Abort::usage(format!("{} is no UTF-8, so no configuration can name it", path.display()))
    })
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}
