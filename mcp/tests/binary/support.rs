//! Support of the tests: runs the real binary.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

/// A command of the binary that does not see the user's own configuration.
pub(crate) fn ptc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptc"));
    command
        .args(arguments)
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("XDG_STATE_HOME", "/dev/null")
        .env_remove("PTC_UPSTREAMS");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the binary to its end with this input.
pub(crate) fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = ptc(arguments).spawn().expect("binary starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A command that does not read its input closes the pipe, which is not an error.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().expect("binary ends");
    writer.join().expect("written");
    output
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// A running `ptc serve`.
pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(flags: &[&str]) -> Server {
        let arguments: Vec<&str> = std::iter::once("serve").chain(flags.iter().copied()).collect();
        let mut child = ptc(&arguments).stderr(Stdio::inherit()).spawn().expect("binary starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("stdout"));
        Server { child, input, output }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().expect("open"), "{message}").expect("server reads");
    }

    /// Hands the input to a thread that writes while answers are read.
    pub(crate) fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("open")
    }

    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request and receives its response.
    pub(crate) fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls `lisp_eval` and returns the `tools/call` result.
    pub(crate) fn eval(&mut self, id: u64, arguments: Value) -> Value {
        let params = serde_json::json!({ "name": "lisp_eval", "arguments": arguments });
        self.ask(id, "tools/call", params)["result"].clone()
    }

    /// Closes the input and waits; returns the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().expect("server ends").code()
    }
}
