//! Serves our own `probe-server` over HTTP, for tests that need the same tools behind the other transport.

use crate::binary::build_dir;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

/// A process of `probe-server`, with one request at a time.
struct Probe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Probe {
    fn start() -> Probe {
        let mut command = Command::new(build_dir().join("probe-server"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Probe { child, input, output: BufReader::new(output) }
    }

    /// The response to a message; `None` for a notification.
    fn answer(&mut self, message: &Value) -> Option<String> {
        writeln!(self.input, "{message}").unwrap();
        message.get("id")?;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == message["id"] {
                return Some(line);
            }
        }
    }
}

/// The entry of an HTTP server with the tools, resources and prompts of `probe-server`. It serves until the test ends.
pub fn probe_over_http() -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let probe = Arc::new(Mutex::new(Probe::start()));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let probe = probe.clone();
            std::thread::spawn(move || serve(&stream, &probe));
        }
    });
    json!({ "transport": "mcp_http", "url": url, "allow_insecure_http": true, "handshake_timeout_ms": 120_000 })
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, probe: &Mutex<Probe>) {
    let mut reader = BufReader::new(stream);
    while let Some((is_post, body)) = request(&mut reader) {
        let message = serde_json::from_str(&body).ok().filter(|_| is_post);
        let (status, answer) = match message.map(|message| probe.lock().unwrap().answer(&message)) {
            None => ("405 Method Not Allowed", String::new()),
            Some(None) => ("202 Accepted", String::new()),
            Some(Some(answer)) => ("200 OK", answer),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let mut out = stream;
        if out.write_all((head + &answer).as_bytes()).is_err() {
            return;
        }
    }
}

/// Whether the next request is a POST, and its body; `None` at the end.
fn request(reader: &mut BufReader<&TcpStream>) -> Option<(bool, String)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|size| *size > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first.starts_with("POST "), String::from_utf8(body).ok()?))
}
