//! Reads, changes and writes the configuration file of `ptc` for `ptc add`, `remove`, `install` and `config import`.

use crate::import::edit::JsonFile;
use ptc_base::files::{self, FileAccess, FileLock, LinkRule};
use ptc_server::console::exit::{Abort, Exit};
use ptc_upstream::config::{self, Shape};
use serde_json::{Map, Value};
use std::path::{Component, Path, PathBuf};

/// A configuration file of `ptc` before a change.
pub(super) struct Target {
    pub(super) path: PathBuf,
    file: JsonFile,
    links: Links,
    /// Held from reading to writing.
    _lock: Option<FileLock>,
}

/// Where links of the file may lead.
enum Links {
    /// The file is replaced without being read, so a link is replaced instead of followed.
    Replaced,
    /// The file is the user's own.
    Anywhere,
    /// The file may be one of a checkout, which must not lead what is written to another place.
    Within(PathBuf),
}

impl Links {
    fn for_path(path: &Path) -> std::io::Result<Links> {
        let own = config::default_file();
        let folder = |path: &Path| path.parent().map(Path::to_owned);
        let is_own = config::find(&[]).iter().any(|used| used == path)
            || own.is_some_and(|own| folder(&own) == folder(path));
        let is_below = path.is_relative() && !path.components().any(|part| part == Component::ParentDir);
        let is_folder = |folder: &&Path| folder.as_os_str().is_empty() || folder.is_dir();
        Ok(match path.parent().and_then(|folder| folder.ancestors().find(is_folder)) {
            _ if is_own => Links::Anywhere,
            Some(folder) if !is_below && !folder.as_os_str().is_empty() => Links::Within(folder.to_owned()),
            _ => Links::Within(std::env::current_dir()?),
        })
    }

    fn rule(&self) -> LinkRule<'_> {
        match self {
            Links::Replaced => LinkRule::Replace,
            Links::Anywhere => LinkRule::Follow,
            Links::Within(folder) => LinkRule::Within(folder),
        }
    }
}

/// Every shape; those of the hosts come first.
const SHAPES: [Shape; 3] = [Shape::McpServers, Shape::Servers, Shape::Upstreams];

impl Target {
    /// The file that was named, or the default one.
    pub(super) fn path(named: Option<&Path>) -> Result<PathBuf, Abort> {
        match named {
            Some(path) => Ok(path.to_owned()),
            None => config::find(&[])
                .pop()
                .or_else(config::default_file)
                .ok_or_else(|| Abort::usage("HOME is not set: name a file with --to")),
        }
    }

    /// Reads the file. One that does not exist, or is to be replaced, counts as empty.
    pub(super) fn read(path: PathBuf, replace: bool) -> Result<Target, Abort> {
        let lock = files::lock_edits()?;
        let links = if replace { Links::Replaced } else { Links::for_path(&path)? };
        files::settle(&path, links.rule())
            .map_err(|error| Abort::usage(format!("{}: {error}", path.display())))?;
        let text = match files::read_text(&path) {
            _ if replace => String::new(),
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Abort::usage(format!("{}: {error}", path.display()))),
        };
        let file = JsonFile::read(&text).map_err(|error| {
            let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
            let why =
                if is_yaml { "files of YAML are not edited: change it by hand".to_owned() } else { error };
            Abort::usage(format!("{}: {why}; it is left as it is", path.display()))
        })?;
        if let Some(name) = file.doubled() {
            return Err(Abort::usage(format!("{}: {}", path.display(), twice(&name))));
        }
        Ok(Target { path, file, links, _lock: lock })
    }

    /// The servers of the file in all shapes.
    pub(super) fn entries(&self) -> Map<String, Value> {
        SHAPES.iter().flat_map(|shape| self.file.entries(shape.key())).collect()
    }

    /// The hosts' shape for servers in this file. It may be used next to `upstreams`, where the same keys
    /// have another meaning.
    fn hosts_shape(&self) -> Shape {
        let hosts = [Shape::McpServers, Shape::Servers];
        let there =
            hosts.iter().find(|shape| self.file.has(shape.key()) && self.file.can_have_entries(shape.key()));
        *there.unwrap_or(&Shape::McpServers)
    }

    /// Sets servers given in the hosts' shape.
    pub(super) fn set_as_hosts(&mut self, servers: &Map<String, Value>) -> Result<(), Abort> {
        let shape = self.hosts_shape();
        for other in SHAPES.into_iter().filter(|other| *other != shape) {
            let names = self.file.entries(other.key()).into_iter().map(|(name, _)| name);
            for name in names.filter(|name| servers.contains_key(name)) {
                self.file.remove(other.key(), &name);
            }
        }
        let set = self.file.set_all(shape.key(), servers);
        set.map_err(|error| Abort::usage(format!("{}: {error}", self.path.display())))
    }

    fn set_in(&self, shape: Shape, name: &str, entry: Map<String, Value>) -> Result<(), Abort> {
        for other in SHAPES.into_iter().filter(|other| *other != shape) {
            self.file.remove(other.key(), name);
        }
        let set = self.file.set(shape.key(), name, &entry.into());
        set.map_err(|error| Abort::usage(format!("{}: {error}", self.path.display())))
    }

    /// Sets a server, given in the hosts' shape, in the shape that the file uses.
    pub(super) fn set(&self, name: &str, mut entry: Map<String, Value>) -> Result<(), Abort> {
        let mut shape = self.hosts_shape();
        if self.file.has(Shape::Upstreams.key()) && !self.file.has(shape.key()) {
            shape = Shape::Upstreams;
            if entry.contains_key("headers") {
                let path = self.path.display();
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
            [used] if *used == self.path => String::new(),
            _ => format!(" --upstreams-config {}", quoted(&self.path.display().to_string())),
        }
    }

    /// Removes a server. Returns false when there is none of this name.
    pub(super) fn remove(&self, name: &str) -> bool {
        // A name may exist in several shapes; `count` visits all of them.
        SHAPES.iter().filter(|shape| self.file.remove(shape.key(), name)).count() > 0
    }

    /// Copies the present file beside itself, if there is one.
    pub(super) fn keep(&self) -> Result<Option<PathBuf>, Abort> {
        let before = match files::read(&self.path) {
            Ok(before) => before,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Abort::usage(format!("{}: {error}", self.path.display()))),
        };
        let aside = beside(&self.path, BACKUP);
        let failed = |error: std::io::Error| Abort {
            exit: Exit::Io,
            message: format!("{}: {error}", aside.display()),
        };
        files::replace(&aside, &before, LinkRule::Replace, FileAccess::Private).map_err(failed)?;
        Ok(Some(aside))
    }

    /// Writes the file for its owner only, because it may hold secrets.
    pub(super) fn write(&self) -> Result<(), Abort> {
        write_file(&self.path, &self.file.text(), self.links.rule(), FileAccess::Private)
    }
}

/// The suffix of a backup's file name.
pub(super) const BACKUP: &str = ".ptc-backup";

/// The path with another ending after the name.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
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

/// [`files::replace`] with an error of the command line.
pub(super) fn write_file(
    path: &Path,
    text: &str,
    links: LinkRule<'_>,
    access: FileAccess,
) -> Result<(), Abort> {
    let failed =
        |error: std::io::Error| Abort { exit: Exit::Io, message: format!("{}: {error}", path.display()) };
    files::replace(path, text.as_bytes(), links, access).map_err(failed)
}
