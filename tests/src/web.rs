//! Runs `ptc serve --http`, and provides an HTTP client that sends exactly the bytes of a test.

use crate::PATIENCE;
use crate::binary::ptc;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};

/// A server process; killed when dropped.
pub struct WebServer {
    child: Child,
    address: SocketAddr,
    path: String,
    log: Receiver<String>,
}

impl WebServer {
    /// Starts `ptc serve --http` on a free port, with these further flags.
    pub fn start(flags: &[&str]) -> WebServer {
        let arguments: Vec<&str> =
            ["serve", "--http", "127.0.0.1:0"].into_iter().chain(flags.iter().copied()).collect();
        WebServer::from_command(ptc(&arguments))
    }

    /// Starts a server that runs one program at a time, without a time limit.
    pub fn one_at_a_time() -> WebServer {
        let time = ["--timeout", "600s", "--fuel", "1000000000000000"];
        WebServer::start(&[&time[..], &["--max-concurrent", "1", "--max-suspended", "0"]].concat())
    }

    /// The text result of a program, sent over a new connection.
    pub fn eval(&self, text: &str) -> String {
        let body = stateless_body(1, "tools/call", program(text));
        let answer = self.ask("POST", &stateless_headers("tools/call", "lisp_eval"), &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Starts this command, and waits until it logs its address.
    pub fn from_command(mut command: Command) -> WebServer {
        let mut child = command.spawn().unwrap();
        let (sender, log) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut said = Vec::new();
        let url = loop {
            let Ok(line) = log.recv_timeout(PATIENCE) else { panic!("it does not listen: {said:?}") };
            match line.strip_prefix("listening at ") {
                Some(url) => break url.to_owned(),
                None => said.push(line),
            }
        };
        let (address, path) = url.split_once("://").unwrap().1.split_once('/').unwrap();
        WebServer { child, address: address.parse().unwrap(), path: format!("/{path}"), log }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The URL of its MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new connection.
    pub fn connect(&self) -> Browser {
        self.door().try_connect().unwrap()
    }

    /// A handle that other threads may use to connect.
    pub fn door(&self) -> Door {
        Door { address: self.address, path: self.path.clone() }
    }

    /// Sends a request over a new connection.
    pub fn ask(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.connect().ask(method, headers, body)
    }

    /// Sends GET for another path.
    pub fn get(&self, path: &str) -> Answer {
        let mut browser = self.connect();
        browser.path = path.into();
        browser.ask("GET", &[], "")
    }

    /// New lines of its log since the last call.
    pub fn log(&self) -> Vec<String> {
        self.log.try_iter().collect()
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        crate::processes::signal(self.id(), name);
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        crate::processes::signal(self.id(), "TERM");
    }

    /// Waits for the exit; returns the exit code.
    pub fn ended(mut self) -> Option<i32> {
        let id = self.id();
        crate::processes::eventually("the server ends", || !crate::processes::is_alive(id));
        self.child.wait().unwrap().code()
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The address of a server.
#[derive(Clone, Debug)]
pub struct Door {
    address: SocketAddr,
    path: String,
}

impl Door {
    /// Connects, if the server still listens.
    pub fn try_connect(&self) -> Option<Browser> {
        let stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(Browser { reader: BufReader::new(stream), address: self.address, path: self.path.clone() })
    }
}

/// One connection.
pub struct Browser {
    reader: BufReader<TcpStream>,
    address: SocketAddr,
    path: String,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, as far as it was read.
    pub body: String,
}

impl Answer {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The messages of an event stream.
    pub fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"), "{self:?}");
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        data.filter(|data| !data.trim().is_empty()).map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

impl Browser {
    /// Sends further requests of this connection to another path.
    pub fn at(&mut self, path: &str) -> &mut Browser {
        self.path = path.into();
        self
    }

    /// Sends bytes verbatim. An error is legitimate: the server may have closed the connection.
    pub fn send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// The connection itself.
    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Sends a request. `Host` defaults to the address.
    pub fn send(&mut self, method: &str, headers: &[(&str, &str)], body: &str) {
        self.try_send(method, headers, body).unwrap();
    }

    /// [`Browser::send`], if the server may have closed the connection.
    pub fn try_send(&mut self, method: &str, headers: &[(&str, &str)], body: &str) -> std::io::Result<()> {
        let mut head = format!("{method} {} HTTP/1.1\r\n", self.path);
        let has = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if !has("host") {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        if method == "POST" && !has("content-type") {
            head.push_str("Content-Type: application/json\r\n");
        }
        if !has("accept") {
            head.push_str("Accept: application/json, text/event-stream\r\n");
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.push_str(body);
        self.send_raw(head.as_bytes())
    }

    /// Sends a request and reads the whole response.
    pub fn ask(&mut self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send(method, headers, body);
        self.answer()
    }

    /// Reads a whole response.
    pub fn answer(&mut self) -> Answer {
        self.try_answer().expect("an answer")
    }

    /// [`Browser::answer`], or `None` if the connection is closed.
    pub fn try_answer(&mut self) -> Option<Answer> {
        let mut answer = self.head()?;
        while let Some(piece) = self.piece(&answer) {
            answer.body.push_str(&piece);
            if answer.header("transfer-encoding").is_none() {
                break;
            }
        }
        Some(answer)
    }

    /// Reads the head of a response; `None` if the server closes the connection instead.
    pub fn head(&mut self) -> Option<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Some(Answer { status, headers, body: String::new() });
            }
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Reads the next piece of the body; `None` at its end.
    pub fn piece(&mut self, head: &Answer) -> Option<String> {
        if head.header("transfer-encoding").is_some() {
            let length = usize::from_str_radix(self.line()?.trim(), 16).ok()?;
            let mut piece = vec![0; length + 2];
            self.reader.read_exact(&mut piece).ok()?;
            piece.truncate(length);
            return (length > 0).then(|| String::from_utf8(piece).unwrap());
        }
        let length: usize = head.header("content-length")?.parse().ok()?;
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).ok()?;
        Some(String::from_utf8(body).unwrap())
    }

    /// Reads the rest of a body in pieces; false if it breaks off.
    pub fn ends_whole(&mut self) -> bool {
        loop {
            let Some(length) = self.line().and_then(|line| usize::from_str_radix(line.trim(), 16).ok())
            else {
                return false;
            };
            let mut piece = vec![0; length + 2];
            match self.reader.read_exact(&mut piece) {
                Ok(()) if length == 0 => return true,
                Ok(()) => {}
                Err(_) => return false,
            }
        }
    }

    /// Reads pieces of an event stream until one contains this text.
    pub fn until(&mut self, head: &Answer, text: &str) -> String {
        loop {
            let piece = self.piece(head).unwrap_or_else(|| panic!("the stream ends without {text:?}"));
            if piece.contains(text) {
                return piece;
            }
        }
    }

    /// Reads the next message of an event stream; `None` at its end.
    pub fn event(&mut self, head: &Answer) -> Option<Value> {
        loop {
            let piece = self.piece(head)?;
            if let Some(data) = piece.lines().find_map(|line| line.strip_prefix("data:")) {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }
}

/// The protocol revision without a handshake.
pub const STATELESS: &str = "2026-07-28";

/// The body of a stateless request.
pub fn stateless_body(id: u64, method: &str, params: Value) -> String {
    let params = stateless_params(params, json!({}));
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Parameters with the `_meta` that each stateless request carries, for a client with these capabilities.
pub fn stateless_params(mut params: Value, capabilities: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = STATELESS.into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}

/// The headers that it needs.
pub fn stateless_headers<'h>(method: &'h str, name: &'h str) -> Vec<(&'h str, &'h str)> {
    let mut headers = vec![("MCP-Protocol-Version", STATELESS), ("Mcp-Method", method)];
    if !name.is_empty() {
        headers.push(("Mcp-Name", name));
    }
    headers
}

/// The parameters that call `lisp_eval`.
pub fn program(text: &str) -> Value {
    json!({ "name": "lisp_eval", "arguments": { "program": text } })
}

/// The parameters of a program that first calls the probe server and reports that, then runs `rest`.
pub fn after_a_call(rest: &str) -> Value {
    let text = format!(r#"(do (tool/call {{:server "probe" :tool "echo" :args {{:v 1}}}}) {rest})"#);
    let mut params = program(&text);
    params["_meta"] = json!({ "progressToken": 1 });
    params
}

/// Sends such a program over a new connection. The first event comes after its call, so the program runs by then.
pub fn begin(server: &WebServer, headers: &[(&str, &str)], body: &str) -> (Browser, Answer) {
    let mut browser = server.connect();
    browser.send("POST", headers, body);
    let head = browser.head().expect("an answer");
    browser.until(&head, "notifications/progress");
    (browser, head)
}

/// A client with a handshake and a session.
pub struct SessionClient {
    /// The headers of each request.
    pub headers: Vec<(String, String)>,
    next_id: u64,
}

impl SessionClient {
    /// Shakes hands in this revision, with these headers.
    pub fn begin(server: &WebServer, version: &str, headers: &[(&str, &str)]) -> SessionClient {
        SessionClient::offering(server, version, &json!({}), headers)
    }

    /// [`SessionClient::begin`] for a client with these capabilities.
    pub fn offering(
        server: &WebServer,
        version: &str,
        capabilities: &Value,
        headers: &[(&str, &str)],
    ) -> SessionClient {
        let client = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": "tests", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client });
        let answer = server.ask("POST", headers, &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["result"]["protocolVersion"], version, "{answer:?}");
        let session = answer.header("mcp-session-id").expect("a session").to_owned();
        let own = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let said =
            [("Mcp-Session-Id".to_owned(), session), ("MCP-Protocol-Version".to_owned(), version.to_owned())];
        let client = SessionClient { headers: own.chain(said).collect(), next_id: 1 };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(server.ask("POST", &client.headers(), &initialized.to_string()).status, 202);
        client
    }

    /// Its headers.
    pub fn headers(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (&**name, &**value)).collect()
    }

    /// The body of its next request.
    pub fn body(&mut self, method: &str, params: Value) -> String {
        self.next_id += 1;
        json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }).to_string()
    }

    /// Begins a program over a new connection.
    pub fn begin_program(&mut self, server: &WebServer, text: &str) -> Browser {
        let body = self.body("tools/call", program(text));
        let mut browser = server.connect();
        browser.send("POST", &self.headers(), &body);
        browser
    }

    /// Answers a server request with these members; returns the status.
    pub fn respond(&self, server: &WebServer, request: &Value, answer: &Value) -> u16 {
        let mut message = json!({ "jsonrpc": "2.0", "id": request["id"] });
        message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        // Pretty-printed, as a body may be.
        let body = serde_json::to_string_pretty(&message).unwrap();
        server.ask("POST", &self.headers(), &body).status
    }

    /// Sends a request over a new connection.
    pub fn ask(&mut self, server: &WebServer, method: &str, params: Value) -> Answer {
        let body = self.body(method, params);
        server.ask("POST", &self.headers(), &body)
    }
}

/// The hash of a text, as token files have it.
pub fn sha256(text: &str) -> String {
    let mut child = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("sha256sum runs");
    std::io::Write::write_all(&mut child.stdin.take().expect("sha256sum runs"), text.as_bytes())
        .expect("sha256sum runs");
    let output = child.wait_with_output().expect("sha256sum runs");
    String::from_utf8(output.stdout).expect("sha256sum runs")[..64].to_owned()
}
