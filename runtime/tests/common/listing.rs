//! Fake servers with the tool lists that a test writes.
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]

use super::fake_server;
use ptc_engine::{Runtime, RuntimeConfig, StartPolicy};
use ptc_upstream::config::ServerEntry;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Files of one test; removed when dropped.
pub(crate) struct Listings {
    folder: PathBuf,
}

impl Listings {
    pub(crate) fn new(test: &str) -> Listings {
        let folder = std::env::temp_dir().join(format!("ptc-listing-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Listings { folder }
    }

    /// A server with these tools, which logs the calls that arrive.
    pub(crate) fn server(&self, name: &str, description: &str, tools: &Value) -> ServerEntry {
        let file = self.folder.join(format!("{name}.json"));
        std::fs::write(&file, tools.to_string()).unwrap();
        let arguments = vec![file.display().to_string(), self.log(name).display().to_string()];
        self.entry(name, description, arguments)
    }

    /// A server that does not start.
    pub(crate) fn dead_server(&self, name: &str, description: &str) -> ServerEntry {
        self.entry(name, description, vec!["--dead".to_owned()])
    }

    fn entry(&self, name: &str, description: &str, arguments: Vec<String>) -> ServerEntry {
        let command = fake_server().with_file_name("listing_server").display().to_string();
        let mut entry = ServerEntry::stdio(name, command, arguments);
        entry.description = (!description.is_empty()).then(|| description.to_owned());
        entry
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// The number of calls that a server has received.
    pub(crate) fn calls(&self, name: &str) -> usize {
        std::fs::read_to_string(self.log(name)).map_or(0, |log| log.lines().count())
    }
}

impl Drop for Listings {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A runtime with one worker.
pub(crate) async fn start(servers: Vec<ServerEntry>, start: StartPolicy) -> Runtime {
    Runtime::start(RuntimeConfig { servers, start, workers: 1, ..RuntimeConfig::default() }).await.unwrap()
}

/// Tools of a file server.
pub(crate) fn file_tools() -> Value {
    json!([
        {"name": "read_text_file", "description": "Read the contents of a UTF-8 text file",
         "inputSchema": {"type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "head": {"type": "integer"}}},
         "annotations": {"readOnlyHint": true}},
        {"name": "list_directory", "description": "List the entries in a directory",
         "inputSchema": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}},
        {"name": "deleteFile", "description": "Remove something for good",
         "inputSchema": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}},
         "annotations": {"destructiveHint": true}},
    ])
}

/// Tools of an issue tracker.
pub(crate) fn issue_tools() -> Value {
    json!([
        {"name": "search_issues", "description": "Search issues",
         "inputSchema": {"type": "object", "required": ["query"], "properties": {
            "query": {"type": "string"}, "state": {"type": "string", "enum": ["open", "closed"]},
            "kind": {"const": "issue"}, "labels": {"type": "array", "items": {"type": "string"}}}},
         "outputSchema": {"type": "object", "required": ["items"], "properties": {
            "items": {"type": "array", "items": {"type": "object", "properties": {"number": {"type": "integer"}}}}}}},
        {"name": "get_pr", "description": "Get a pull request. It reads files, too.",
         "inputSchema": {"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}}},
    ])
}
