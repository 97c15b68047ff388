//! Starts third-party MCP servers that are reached over HTTP.

use crate::third_party::{installed, python, python_with_old_sdk};
use serde_json::{Value, json};
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to listen, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ports outside the range that systems hand out: a free port inside that range may be taken a moment later.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// A port claimed across all test processes; released when dropped.
struct ClaimedPort {
    port: u16,
    /// Holds the lock of the port.
    _claim: File,
}

impl ClaimedPort {
    fn claim() -> ClaimedPort {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let folder = std::env::temp_dir().join("ptc-test-ports");
        std::fs::create_dir_all(&folder).unwrap();
        let count = PORTS.len() as u16;
        // Processes start at different ports to avoid collisions.
        let first = (std::process::id() % u32::from(count)) as u16;
        for _ in 0..count {
            let port = PORTS.start + (first + NEXT.fetch_add(1, Ordering::Relaxed) % count) % count;
            let claim = File::create(folder.join(port.to_string())).unwrap();
            if claim.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return ClaimedPort { port, _claim: claim };
            }
        }
        panic!("no port is free");
    }
}

/// A server in a process; ends when dropped.
pub struct RemoteProcess {
    child: Child,
    port: ClaimedPort,
}

impl RemoteProcess {
    /// Starts a server, which listens on the port it is given.
    fn start(make: impl FnOnce(u16) -> Command) -> RemoteProcess {
        let claimed = ClaimedPort::claim();
        let port = claimed.port;
        let child =
            make(port).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut server = RemoteProcess { child, port: claimed };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the server does not listen");
            assert!(server.child.try_wait().unwrap().is_none(), "the server has ended");
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

    /// An example of the TypeScript SDK. Its port is hard-coded, so a modified copy runs.
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

    /// The same tool by PyPI `mcp`, major version 1 or 2.
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

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port.port)
    }

    /// A configuration entry for the server.
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
