//! MCP servers that we did not write, reached over HTTP.

use crate::third_party::{installed, python, python_with_old_sdk};
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to listen, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server in a process; ends when dropped.
pub struct RemoteProcess {
    child: Child,
    port: u16,
}

impl RemoteProcess {
    /// Starts a server, which listens at the port it is given.
    fn start(make: impl FnOnce(u16) -> Command) -> RemoteProcess {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child =
            make(port).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = RemoteProcess { child, port };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// npm `@modelcontextprotocol/server-everything`: `streamableHttp` or `sse`.
    pub fn everything(transport: &str) -> RemoteProcess {
        let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        RemoteProcess::start(|port| {
            let mut command = Command::new("node");
            command.arg(installed().join(script)).arg(transport).env("PORT", port.to_string());
            command
        })
    }

    /// An example of the TypeScript SDK. Its port stands in its text, so it is a copy that runs.
    pub fn sdk_example(name: &str) -> RemoteProcess {
        let folder = installed().join("node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server");
        let text = std::fs::read_to_string(folder.join(format!("{name}.js"))).unwrap();
        RemoteProcess::start(|port| {
            let copy = folder.join(format!("{name}-{port}.js"));
            std::fs::write(&copy, text.replace("const PORT = 3000", &format!("const PORT = {port}")))
                .unwrap();
            let mut command = Command::new("node");
            command.arg(copy).env("MCP_PORT", port.to_string());
            command
        })
    }

    /// PyPI `fastmcp`, with the tool `add`: `http`, `stateless-http` or `sse`.
    pub fn fastmcp(transport: &str) -> RemoteProcess {
        RemoteProcess::python(python(), "fastmcp", transport)
    }

    /// The same tool by PyPI `mcp`: 1 or 2.
    pub fn python_sdk(major: u32, transport: &str) -> RemoteProcess {
        RemoteProcess::python(if major == 1 { python_with_old_sdk() } else { python() }, "mcp", transport)
    }

    fn python(interpreter: String, library: &str, transport: &str) -> RemoteProcess {
        RemoteProcess::start(|port| {
            let mut command = Command::new(interpreter);
            command.arg(crate::workspace().join("tests/third_party/http_server.py"));
            command.args([library, transport, &port.to_string()]);
            command
        })
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// An entry for it.
    pub fn entry(&self, transport: &str, path: &str) -> Value {
        json!({
            "transport": transport, "url": self.url(path), "allow_insecure_http": true,
            "handshake_timeout_ms": 120_000,
        })
    }
}

impl Drop for RemoteProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
