//! Logins at servers (OAuth): the first one, renewals by many processes at once, and what may go wrong.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

mod asking;
mod ends;
mod first;
mod followed;
mod keycloak;
mod kills;
mod kinds;
mod renewal;
mod secrets;
mod shared;
mod stores;
mod traps;
mod unattended;

use ptc_tests::binary::{self, Finished, ptc};
use ptc_tests::oauth::{OAuthServer, visit};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use tempfile::TempDir;

/// A user with a configuration and a folder for logins.
struct User {
    folder: TempDir,
}

impl User {
    /// With the server `hosted`.
    fn of(server: &OAuthServer) -> User {
        User::with(json!({ "hosted": { "transport": "mcp_http", "url": server.url("/mcp") } }), json!({}))
    }

    fn with(upstreams: Value, credentials: Value) -> User {
        let user = User { folder: tempfile::tempdir().unwrap() };
        let file = json!({ "upstreams": upstreams, "credentials": credentials });
        fs::write(user.path("c.json"), file.to_string()).unwrap();
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = ptc(arguments);
        command.env("PTC_UPSTREAMS", self.path("c.json")).env("XDG_STATE_HOME", self.path("state"));
        command.env_remove("BROWSER").env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        binary::run(self.command(arguments), "")
    }

    /// Runs a program; gives its report.
    fn eval(&self, program: &str) -> Value {
        let said = self.run(&["eval", program, "--output", "json", "--timeout", "60s"]);
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    /// Calls `echo`; gives the program's value.
    fn echo(&self) -> Value {
        self.eval("(tool/call {:server \"hosted\" :tool \"echo\" :args {:a 1}})")
    }

    /// Logs in by pasting the address at which the browser ends.
    fn login(&self, arguments: &[&str]) -> Finished {
        let begun = self.begin_login(arguments);
        let answer = begun.consent();
        begun.paste(&answer)
    }

    fn begin_login(&self, arguments: &[&str]) -> BegunLogin {
        let all = [&["login", "hosted", "--paste"][..], arguments].concat();
        let mut child = self.command(&all).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            if output.read_line(&mut line).unwrap() == 0 {
                let rest = child.wait_with_output().unwrap();
                panic!("no address: {said}{}", String::from_utf8_lossy(&rest.stderr));
            }
            match line.trim().strip_prefix("http") {
                Some(_) => break line.trim().to_owned(),
                None => said += &line,
            }
        };
        BegunLogin { child, output, address }
    }

    /// The stored logins: path and content.
    fn stored(&self) -> Vec<(PathBuf, Value)> {
        let Ok(entries) = fs::read_dir(self.path("state/ptc/tokens")) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path());
        let json = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
        json.map(|path| (path.clone(), serde_json::from_slice(&fs::read(&path).unwrap()).unwrap())).collect()
    }

    /// Changes the only stored login.
    fn change(&self, change: impl FnOnce(&mut Value)) {
        let (path, mut login) = self.stored().pop().unwrap();
        change(&mut login);
        fs::write(path, login.to_string()).unwrap();
    }
}

/// A `ptc login` that waits for its answer.
struct BegunLogin {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    address: String,
}

impl BegunLogin {
    /// Visits the address; gives where that leads.
    fn consent(&self) -> String {
        let (status, location) = visit(&self.address);
        assert_eq!(status, 302, "{}", self.address);
        location.unwrap()
    }

    /// Pastes the answer; gives the signal that has ended the command.
    fn signalled(mut self, answer: &str) -> Option<i32> {
        writeln!(self.child.stdin.take().unwrap(), "{answer}").unwrap();
        self.child.wait().unwrap().signal()
    }

    fn paste(mut self, answer: &str) -> Finished {
        let mut input = self.child.stdin.take().unwrap();
        writeln!(input, "{answer}").unwrap();
        drop(input);
        let mut stdout = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut stdout).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        Finished { code: output.status.code(), stdout, stderr }
    }
}

/// Asserts that a report is the value of `echo`.
#[track_caller]
fn assert_echoed(report: &Value) {
    assert!(report["ok"] == true && report["value"].as_str().unwrap().contains(":ok true"), "{report:#}");
}
