//! A running `ptc serve`, and the client side of its connection.

use crate::PATIENCE;
use crate::binary::ptc;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

/// Number of log lines that a failing test shows.
const LOG_LINES: usize = 30;

/// A server process; killed when dropped, so that a failed test leaves nothing behind.
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Arc<Mutex<VecDeque<String>>>,
    next_id: u64,
}

impl Server {
    /// Starts `ptc serve` with these flags and shakes hands.
    pub fn start(flags: &[&str]) -> Server {
        let arguments: Vec<&str> = std::iter::once("serve").chain(flags.iter().copied()).collect();
        Server::from_command(ptc(&arguments))
    }

    /// Starts this `ptc serve` command and shakes hands. A failing test shows the end of its log.
    pub fn from_command(command: Command) -> Server {
        Server::offering(command, json!({}))
    }

    /// [`Server::from_command`] for a client with these capabilities.
    pub fn offering(command: Command, capabilities: Value) -> Server {
        let mut server = Server::silent(command);
        let client = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "tests", "version": "1" } });
        let answer = server.request("initialize", client);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    /// Starts this `ptc serve` command without sending anything.
    pub fn silent(mut command: Command) -> Server {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&log);
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap();
                if kept.len() == LOG_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Server { input: child.stdin.take(), child, lines, log, next_id: 0 }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends one message.
    pub fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a line verbatim.
    pub fn send_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Receives one message.
    pub fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request without waiting; returns its id.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a request and receives its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a program without waiting; returns the request's id.
    pub fn begin_program(&mut self, program: &str) -> u64 {
        self.begin("tools/call", json!({ "name": "lisp_eval", "arguments": { "program": program } }))
    }

    /// Runs a program: the `tools/call` result.
    pub fn run(&mut self, program: &str) -> Value {
        let id = self.begin_program(program);
        loop {
            let answer = self.receive();
            // Notifications, such as a changed tool list, may come at any time.
            if answer.get("id").is_some() {
                assert_eq!(answer["id"], id, "{answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The text of a program's answer.
    pub fn text(&mut self, program: &str) -> String {
        text_of(&self.run(program))
    }

    /// Waits until the log contains this text.
    pub fn has_logged(&self, text: &str) {
        let is_there = || self.log.lock().unwrap().iter().any(|line| line.contains(text));
        crate::processes::eventually(text, is_there);
    }

    /// Waits for the exit; returns the exit code.
    pub fn ended(mut self) -> Option<i32> {
        self.wait()
    }

    /// Sends SIGTERM and waits for the exit.
    pub fn terminate(mut self) {
        crate::processes::signal(self.id(), "TERM");
        self.wait();
    }

    /// Closes the input and waits for the exit; returns the exit code.
    pub fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.wait()
    }

    fn wait(&mut self) -> Option<i32> {
        let id = self.id();
        crate::processes::eventually("the server ends", || !crate::processes::is_alive(id));
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking()
            && let Ok(log) = self.log.lock()
        {
            log.iter().for_each(|line| eprintln!("the server's log: {line}"));
        }
    }
}

/// The one text block of a `tools/call` result.
pub fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
}
