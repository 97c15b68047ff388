//! Builds configuration files that name upstream servers.

use crate::binary::build_dir;
use crate::workspace;
use serde_json::{Map, Value, json};
use std::io::Write;
use tempfile::NamedTempFile;

/// A configuration file under construction.
#[derive(Default)]
pub struct Upstreams {
    servers: Map<String, Value>,
    credentials: Map<String, Value>,
}

impl Upstreams {
    /// Starts with our own `probe-server` under the name `probe`.
    pub fn probe() -> Upstreams {
        Upstreams::default().add("probe", probe_server(&[]))
    }

    /// Adds a server.
    pub fn add(mut self, name: &str, entry: Value) -> Upstreams {
        self.servers.insert(name.into(), entry);
        self
    }

    /// Adds a credential.
    pub fn credential(mut self, name: &str, binding: Value) -> Upstreams {
        self.credentials.insert(name.into(), binding);
        self
    }

    /// Writes the file.
    pub fn write(self) -> ConfigFile {
        let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        write!(file, "{:#}", json!({ "credentials": self.credentials, "upstreams": self.servers })).unwrap();
        ConfigFile { file }
    }
}

/// A configuration file; removed when dropped.
pub struct ConfigFile {
    file: NamedTempFile,
}

impl ConfigFile {
    /// Its path.
    pub fn path(&self) -> &str {
        self.file.path().to_str().unwrap()
    }

    /// The flags of `ptc` that name the file, followed by `more`.
    pub fn flags<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        ["--upstreams-config", self.path()].into_iter().chain(more.iter().copied()).collect()
    }
}

/// A stdio entry with a handshake timeout that suits a busy machine.
pub fn stdio(command: &str, arguments: &[&str]) -> Value {
    json!({ "transport": "mcp_stdio", "command": command, "args": arguments, "handshake_timeout_ms": 120_000 })
}

/// An entry of our own `probe-server`.
pub fn probe_server(arguments: &[&str]) -> Value {
    stdio(build_dir().join("probe-server").to_str().unwrap(), arguments)
}

/// A file that names `probe-server` by each of these names.
pub fn probes(names: &[&str]) -> String {
    let servers: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), probe_server(&[]))).collect();
    json!({ "upstreams": servers }).to_string()
}

/// An entry of our own `table-server` for the section `name` of a file of tables; the path is relative to the
/// workspace.
pub fn table_server(file: &str, name: &str) -> Value {
    let file = workspace().join(file);
    stdio(build_dir().join("table-server").to_str().unwrap(), &[file.to_str().unwrap(), name])
}

/// An entry of our own `hostile-server`, marked as optional.
pub fn hostile_server(arguments: &[&str]) -> Value {
    let mut entry = stdio(build_dir().join("hostile-server").to_str().unwrap(), arguments);
    entry["required"] = false.into();
    entry
}
