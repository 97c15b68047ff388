//! Reads the configuration file of servers, in the format of `ptc` or of other MCP hosts, into server entries, settings
//! for scripts, and credentials.
//!
//! It may have `{"upstreams": …}` of this project, the shapes that hosts use (`{"mcpServers": …}` of Claude and
//! Cursor, `{"servers": …}` of VS Code), or a list of named servers (`servers: […]`). It is JSON or YAML. One file may
//! have several of these keys; each keeps its own meaning.
//!
//! Errors carry file, line and column.

mod address;
mod credentials;
mod entry;
mod error;
mod general;
pub mod keys;
mod location;
mod lookup;
mod schema;
mod syntax;
mod transport;
mod vars;

pub use entry::{DEFAULT_HANDSHAKE_TIMEOUT, DEFAULT_UNRESPONSIVE_TIMEOUT, ServerEntry};
pub use error::ConfigError;
pub use general::ScriptSettings;
pub use lookup::{default_file, find, names};
pub use schema::json_schema;
pub use syntax::{json_options, read_json};

use credentials::CredentialReader;
use location::{Document, NAME, at_index};
use ptc_base::secrets::{Credential, SecretRegistry};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use syntax::FileSyntax;

/// How entries are written; the shape also decides the default start-up policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `{"upstreams": {…}}`: strict by default.
    Upstreams,
    /// `{"mcpServers": {…}}`: lenient by default.
    McpServers,
    /// `{"servers": {…}}`: lenient by default.
    Servers,
    /// `{"servers": [{"name": …}]}`: lenient by default, with placeholders as in the hosts' shapes.
    Listed,
}

impl Shape {
    /// Shapes that have a top-level key of their own.
    const KEYS: [Shape; 3] = [Shape::Upstreams, Shape::McpServers, Shape::Servers];

    /// The top-level key.
    pub const fn key(self) -> &'static str {
        match self {
            Shape::Upstreams => "upstreams",
            Shape::McpServers => "mcpServers",
            Shape::Servers | Shape::Listed => "servers",
        }
    }

    /// The start-up policy that users of this shape expect.
    pub const fn startup(self) -> Startup {
        match self {
            Shape::Upstreams => Startup::Strict,
            Shape::McpServers | Shape::Servers | Shape::Listed => Startup::Lenient,
        }
    }
}

/// What happens when a server does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Startup {
    /// Start-up fails; the tool lists are stable afterwards.
    Strict,
    /// Start-up goes on; calls to it fail until it recovers.
    Lenient,
}

/// A parsed configuration file. Holds resolved secrets, so it implements neither `Debug` nor `Serialize`.
#[derive(Clone)]
pub struct Config {
    /// The shape of the file; of several, the first in the order ours, then the hosts'.
    pub shape: Shape,
    /// Its servers in file order, shape by shape, without disabled ones. In the hosts' shapes an invalid
    /// entry is included, as a server that never starts.
    pub servers: Vec<ServerEntry>,
    /// Settings for scripts.
    pub execution: ScriptSettings,
    /// Its credentials by name, for other uses than servers, such as the key of a model.
    pub credentials: BTreeMap<String, Credential>,
    /// Oddities that are no errors: unknown keys, servers named in two files.
    pub warnings: Vec<ConfigError>,
}

impl Config {
    /// Reads and parses a file. Resolved `${VAR}` values, and literal ones with names that suggest secrets, are
    /// registered as secrets; one that cannot be hidden causes a warning.
    pub fn load(path: &Path, secrets: &SecretRegistry) -> Result<Config, ConfigError> {
        let name = path.display().to_string();
        let text =
            ptc_base::files::read_text(path).map_err(|error| ConfigError::unreadable(&name, &error))?;
        Config::parse(&text, &name, secrets)
    }

    /// Reads files that are used together. A server of a later file replaces one of the same name of an
    /// earlier file, with a warning.
    pub fn load_all(paths: &[PathBuf], secrets: &SecretRegistry) -> Result<Vec<Config>, ConfigError> {
        let mut configs: Vec<Config> = Vec::with_capacity(paths.len());
        for path in paths {
            let mut config = Config::load(path, secrets)?;
            for (earlier, earlier_path) in configs.iter_mut().zip(paths) {
                earlier.servers.retain(|server| {
                    let replaced = config.servers.iter().any(|later| later.name == server.name);
                    if replaced {
                        config.warnings.push(ConfigError {
                            file: path.display().to_string(),
                            position: None,
                            message: format!(
                                "upstream {} replaces the one in {}",
                                server.name,
                                earlier_path.display()
                            ),
                        });
                    }
                    !replaced
                });
            }
            configs.push(config);
        }
        Ok(configs)
    }

    /// Parses the text of a file called `name`.
    pub fn parse(text: &str, name: &str, secrets: &SecretRegistry) -> Result<Config, ConfigError> {
        Config::parse_with(text, name, secrets, &|variable| std::env::var(variable).ok())
    }

    fn parse_with(
        text: &str,
        name: &str,
        secrets: &SecretRegistry,
        variables: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Config, ConfigError> {
        let text = syntax::without_mark(text);
        let syntax = FileSyntax::for_file(name);
        let document = Document { name, text, syntax };
        if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
            return Err(foreign(&document, &[], "codex"));
        }
        let Value::Object(root) = syntax.parse(text, name)? else {
            let what = match syntax {
                FileSyntax::Json => "a JSON object",
                FileSyntax::Yaml => "a YAML mapping",
            };
            return Err(document.error(&[], format!("upstreams config must be {what}")));
        };
        let shapes = servers_of(&root, &document)?;
        let shape = shapes[0].0;
        let shared = match root.get("tools") {
            // A YAML key without a value.
            None | Some(Value::Null) => None,
            Some(value) => general::rule(value).map_err(|(below, message)| {
                let path: Vec<&str> = std::iter::once("tools").chain(below).collect();
                document.error(&path, message)
            })?,
        };
        const TOP_KEYS: [&str; 6] =
            ["$schema", "tools", "inputs", "name", general::EXECUTION, credentials::KEY];
        let is_known =
            |key: &str| Shape::KEYS.iter().any(|shape| shape.key() == key) || TOP_KEYS.contains(&key);
        let unknown = root.keys().filter(|key| !is_known(key));
        let mut warnings: Vec<ConfigError> =
            unknown.map(|key| document.error(&[key], format!("unknown key \"{key}\""))).collect();
        warnings.extend(document.doubled());
        let reader = CredentialReader { document: &document, secrets, variables, warnings: &mut warnings };
        let credentials = reader.read(&root)?;
        let execution = ScriptSettings::read(&root, &document, &mut warnings)?;
        let mut servers: Vec<ServerEntry> = Vec::new();
        let mut named: HashMap<&str, Shape> = HashMap::new();
        for (shape, (server, value)) in
            shapes.iter().flat_map(|(shape, all)| all.iter().map(move |one| (*shape, one)))
        {
            if let Some(first) = named.insert(server, shape) {
                named.insert(server, first);
                let message =
                    format!("{server} is in {} and in {}; the first is used", first.key(), shape.key());
                warnings.push(document.error(&[shape.key(), server], message));
                continue;
            }
            let reader = entry::EntryReader {
                document: &document,
                shape,
                server,
                tools: shared.as_ref(),
                credentials: &credentials,
                secrets,
                variables,
                unprotected: std::cell::RefCell::default(),
            };
            warnings.extend(reader.unknown_keys(value));
            let mut read = reader.read_for_its_shape(value)?;
            if let Some(entry) = &mut read {
                entry.written = Some(fingerprint(&document, &root, value));
            }
            servers.extend(read);
            warnings.extend(reader.unprotected.into_inner());
        }
        Ok(Config { shape, servers, execution, credentials: credentials.into_values(), warnings })
    }
}

/// Variables that a shell changes with each command: they say nothing about how a server works.
const OF_A_SHELL: [&str; 4] = ["_", "OLDPWD", "PWD", "SHLVL"];

/// Hash of all that the file says about an entry. Unlike the text, it holds no secrets.
fn fingerprint(document: &Document<'_>, root: &Map<String, Value>, entry: &Value) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    std::path::absolute(document.name).ok().hash(&mut hasher);
    let shared =
        ["tools", credentials::KEY].map(|key| root.get(key).map(Value::to_string).unwrap_or_default());
    let text = [entry.to_string(), shared.concat()].concat();
    text.hash(&mut hasher);
    let inherits = entry.get("inheritEnv").and_then(Value::as_bool) == Some(true);
    let inputs = vars::variables_of_inputs(&text);
    // Wherever a name stands, the entry may mean the variable.
    let decides = |name: &str| match OF_A_SHELL.contains(&name) {
        true => ["${", "${env:"].iter().any(|form| text.contains(&format!("{form}{name}"))),
        false => inherits || text.contains(name) || inputs.iter().any(|input| input == name),
    };
    let mut variables: Vec<_> =
        std::env::vars_os().filter(|(name, _)| name.to_str().map_or(inherits, decides)).collect();
    variables.sort_unstable();
    variables.hash(&mut hasher);
    hasher.finish()
}

/// Top-level keys of hosts with entries in a different format, and the names of those hosts in `ptc config
/// import`.
const FOREIGN: [(&str, &str); 4] =
    [("context_servers", "zed"), ("mcp", "opencode"), ("extensions", "goose"), ("mcp_servers", "codex")];

fn foreign(document: &Document<'_>, key: &[&str], host: &str) -> ConfigError {
    let message = format!(
        "this is how {host} writes its servers: `ptc config import --from {host} --to FILE` writes a file of them"
    );
    document.error(key, message)
}

/// The servers of one shape, by name.
type ShapedServers<'v> = (Shape, Cow<'v, Map<String, Value>>);

/// Finds the top-level keys that hold servers; there must be at least one.
fn servers_of<'v>(
    root: &'v Map<String, Value>,
    document: &Document<'_>,
) -> Result<Vec<ShapedServers<'v>>, ConfigError> {
    let present = Shape::KEYS.into_iter().filter_map(|shape| Some((shape, root.get(shape.key())?)));
    let shapes: Vec<_> = present
        .map(|(shape, value)| match value {
            Value::Object(entries) => Ok((shape, Cow::Borrowed(entries))),
            Value::Array(items) if shape == Shape::Servers => {
                listed(items, document).map(|entries| (Shape::Listed, Cow::Owned(entries)))
            }
            Value::Array(_) => {
                let message =
                    format!("{} must be an object; a list of servers is under servers", shape.key());
                Err(document.error(&[shape.key()], message))
            }
            _ => Err(document.error(&[shape.key()], format!("{} must be an object", shape.key()))),
        })
        .collect::<Result<_, _>>()?;
    if !shapes.is_empty() {
        return Ok(shapes);
    }
    Err(match FOREIGN.iter().find(|(key, _)| root.contains_key(*key)) {
        Some((key, host)) => foreign(document, &[key], host),
        None => document.error(
            &[],
            "no servers: expected a top-level \"upstreams\" (or \"mcpServers\", or \"servers\") object",
        ),
    })
}

/// A list of servers as entries by name.
fn listed(items: &[Value], document: &Document<'_>) -> Result<Map<String, Value>, ConfigError> {
    let mut entries = Map::new();
    for (index, item) in items.iter().enumerate() {
        let index = at_index(index);
        let wrong = |key: &[&str], message: String| {
            let path: Vec<&str> =
                [Shape::Listed.key(), &index].into_iter().chain(key.iter().copied()).collect();
            document.error(&path, message)
        };
        let Value::Object(item) = item else {
            return Err(wrong(&[], "each of servers must have a name and a transport".to_owned()));
        };
        let Some(name) = item.get(NAME).and_then(Value::as_str).filter(|name| !name.is_empty()) else {
            return Err(wrong(&[NAME], "a server needs a name, which is a text".to_owned()));
        };
        let mut entry = item.clone();
        entry.shift_remove(NAME);
        if entries.insert(name.to_owned(), entry.into()).is_some() {
            return Err(wrong(
                &[NAME],
                format!("two servers are called {name}; tools are found by these names"),
            ));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
