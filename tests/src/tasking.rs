//! Starts an MCP server over HTTP with the tool `work`, which is called as a task (`tests/python/tasking.py`).

use crate::scripts::data;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Such a server; it ends when it is dropped.
pub struct Tasking {
    process: Child,
    port: String,
}

impl Tasking {
    /// Starts it with these words: its form, and what else the file says. It writes to the file `log` of this folder.
    pub fn start(folder: &Path, words: &[&str]) -> Tasking {
        let mut process = Command::new("python3")
            .arg(data("tasking.py"))
            .arg(words[0])
            .arg(folder.join("log"))
            .args(&words[1..])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Tasking { process, port: port.trim().to_owned() }
    }

    /// Its entry in a configuration file.
    pub fn entry(&self) -> Value {
        json!({ "transport": "mcp_http", "url": format!("http://127.0.0.1:{}/mcp", self.port) })
    }
}

impl Drop for Tasking {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
