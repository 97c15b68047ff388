//! `ptc up`: servers keep their state between commands, calls are quick, and nothing is left when the process is killed.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{Finished, ptc, run};
use ptc_tests::terminal::Terminal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A server that counts calls, and writes down its process.
const SERVER: &str = r#"
import json, os, sys
open(sys.argv[1], "a").write(str(os.getpid()) + "\n")
count = 0
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "prompts": {}}, "serverInfo": {"name": "n", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "count", "inputSchema": {"type": "object"}}, {"name": "fail", "inputSchema": {"type": "object"}}]}
    elif method == "prompts/list":
        result = {"prompts": [{"name": "greet"}]}
    elif method == "tools/call":
        count += 1
        result = {"content": [{"type": "text", "text": str(count)}], "isError": message["params"]["name"] == "fail"}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A user with one server. The background process is ended with it.
struct User(TempDir);

impl User {
    fn new() -> User {
        let user = User(tempfile::tempdir().unwrap());
        fs::write(user.path("server.py"), SERVER).unwrap();
        user.configure("count");
        user
    }

    fn configure(&self, name: &str) {
        let entry = json!({ "command": "python3", "args": [self.path("server.py"), self.path("processes")] });
        fs::write(self.path("c.json"), json!({ "mcpServers": { name: entry } }).to_string()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = ptc(arguments);
        command.env("PTC_UPSTREAMS", self.path("c.json")).env("XDG_STATE_HOME", self.path("state"));
        command.env_remove("XDG_RUNTIME_DIR");
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        run(self.command(arguments), "")
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let finished = self.run(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {finished:?}");
        finished.stdout
    }

    fn state(&self) -> Value {
        serde_json::from_str(&self.run(&["status", "--output", "json"]).stdout).unwrap()
    }

    /// The processes of the server, as it has written them down.
    fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path("processes")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.run(&["down"]);
    }
}

/// Waits until a process has ended.
fn ended(process: u32) {
    let path = PathBuf::from(format!("/proc/{process}/stat"));
    while fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::yield_now();
    }
}

#[test]
fn a_hundred_calls_keep_the_state_of_one_process() {
    let user = User::new();
    let said = user.ok(&["up"]);
    assert!(said.contains("count ready, 2 tools"), "{said}");
    for number in 1..=100 {
        assert_eq!(user.ok(&["call", "count/count"]), format!("{number}\n"));
    }
    assert_eq!(user.ok(&["eval", "(:value (tool/call 'count/count {}))"]), "101\n");
    assert_eq!(user.processes().len(), 1);
    assert!(user.ok(&["eval", "(prompt/list {:server \"count\"})"]).contains("greet"));
    let failed = user.run(&["call", "count/fail"]);
    assert_eq!((failed.code, failed.stderr.as_str()), (Some(1), "102\n"));

    user.ok(&["down"]);
    ended(user.processes()[0]);
    assert_eq!(user.state()["running"], false);
    assert_eq!(user.ok(&["call", "count/count"]), "1\n");
}

#[test]
fn a_session_of_the_repl_and_scripts_use_it() {
    let user = User::new();
    user.ok(&["up"]);
    let typed = run(user.command(&["repl"]), "(:value (tool/call 'count/count {}))\n");
    assert!(typed.stdout.contains('1'), "{typed:?}");
    let listed = user.ok(&["tools"]);
    assert!(listed.contains("count ready"), "{listed}");
    assert_eq!(user.processes().len(), 1);
}

#[test]
fn killed_it_leaves_nothing_and_the_next_command_works() {
    let user = User::new();
    user.ok(&["up"]);
    user.ok(&["call", "count/count"]);
    let process = user.state()["state"]["process"].to_string();
    let server = user.processes()[0];
    assert!(Command::new("kill").args(["-9", &process]).status().unwrap().success());
    ended(server);
    assert_eq!(user.ok(&["call", "count/count"]), "1\n");
    user.ok(&["up"]);
    assert_eq!(user.ok(&["call", "count/count"]), "1\n");
}

#[test]
fn a_server_that_is_configured_differently_is_started_by_the_command() {
    let user = User::new();
    user.ok(&["up"]);
    user.ok(&["call", "count/count"]);
    let other = user.path("other.json");
    fs::copy(user.path("c.json"), &other).unwrap();
    let mut command = user.command(&["call", "count/count"]);
    command.env("PTC_UPSTREAMS", &other);
    assert_eq!(run(command, "").stdout, "1\n");
    assert_eq!(user.ok(&["call", "count/count"]), "2\n");
}

#[test]
fn the_socket_is_private_and_a_second_up_is_no_second_process() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::new();
    user.ok(&["up"]);
    let mode = |name: &str| fs::metadata(user.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("state/ptc/run"), mode("state/ptc/run/background.sock")), (0o700, 0o600));
    let first = user.state()["state"]["process"].clone();
    assert!(user.ok(&["up"]).contains("already"));
    assert_eq!(user.state()["state"]["process"], first);
    // A folder that others can enter is not trusted.
    fs::set_permissions(user.path("state/ptc/run"), PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(user.state()["running"], false);
    fs::set_permissions(user.path("state/ptc/run"), PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn of_several_up_at_once_one_starts_the_process_and_all_find_it() {
    let user = User::new();
    let all = std::thread::scope(|scope| {
        let started: Vec<_> = (0..6).map(|_| scope.spawn(|| user.run(&["up"]))).collect();
        started.into_iter().map(|up| up.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(all.iter().all(|up| up.code == Some(0)), "{all:?}");
    assert_eq!(all.iter().filter(|up| up.stdout.contains("already")).count(), 5, "{all:?}");
    assert_eq!(user.processes().len(), 1);
}

#[test]
fn a_server_that_inherits_its_environment_is_shared_with_the_same_environment_alone() {
    let user = User::new();
    let args = [user.path("server.py"), user.path("processes")];
    let entry = json!({ "command": "python3", "args": args, "inheritEnv": true });
    fs::write(user.path("c.json"), json!({ "mcpServers": { "count": entry } }).to_string()).unwrap();
    let with = |token: &str, words: &[&str]| {
        let mut command = user.command(words);
        command.env("SOME_TOKEN", token);
        run(command, "").stdout
    };
    with("a", &["up"]);
    for (token, counts) in [("a", "1\n"), ("b", "1\n"), ("a", "2\n")] {
        assert_eq!(with(token, &["call", "count/count"]), counts, "{token}");
    }
}

#[test]
fn a_server_with_an_input_is_shared_while_the_variable_of_the_input_is_the_same() {
    let user = User::new();
    let args = [user.path("server.py"), user.path("processes")];
    let entry = json!({ "command": "python3", "args": args, "env": { "KEY": "${input:api-key}" } });
    fs::write(user.path("c.json"), json!({ "servers": { "count": entry } }).to_string()).unwrap();
    let with = |key: &str, words: &[&str]| {
        let mut command = user.command(words);
        command.env("API_KEY", key);
        run(command, "").stdout
    };
    with("first-account", &["up"]);
    for (key, counts) in [("first-account", "1\n"), ("second-account", "1\n"), ("first-account", "2\n")] {
        assert_eq!(with(key, &["call", "count/count"]), counts, "{key}");
    }
}

#[test]
fn an_unused_process_ends_by_itself() {
    let user = User::new();
    user.ok(&["up", "--idle", "1ms"]);
    for server in user.processes() {
        ended(server);
    }
    assert_eq!(user.state()["running"], false);
}

#[test]
fn flags_of_the_policy_are_refused_where_they_do_nothing() {
    let user = User::new();
    for (flag, value) in [
        ("--policy", "p.toml"),
        ("--approvals", "wait"),
        ("--approval-ttl", "1m"),
        ("--approval-timeout", "1m"),
    ] {
        let refused = user.run(&["up", flag, value]);
        assert_eq!(refused.code, Some(2), "{flag}: {}", refused.stderr);
        assert!(refused.stderr.contains(&format!("{flag} does nothing in `ptc up`")), "{}", refused.stderr);
    }
    let help = user.ok(&["up", "--help"]);
    assert!(help.contains("--handshake-timeout") && !help.contains("--policy"), "{help}");
    assert!(!user.ok(&["man", "up"]).contains("policy"));
    let mut command = user.command(&["eval", "1"]);
    command.env("PTC_POLICY", "");
    let refused = run(command, "");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("PTC_POLICY is empty"), "{}", refused.stderr);
}

#[test]
fn after_down_nothing_is_left_of_it() {
    let user = User::new();
    for _ in 0..5 {
        user.ok(&["up"]);
        let process = &user.state()["state"]["process"];
        user.ok(&["down"]);
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z ") || stat.contains(") X "), "{stat}");
    }
}

#[test]
fn ptc_ui_leads_to_its_page() {
    use std::io::{Read, Write};
    let user = User::new();
    user.ok(&["up"]);
    let link = || {
        let said = user.ok(&["ui"]);
        said.trim().split_once("http://").unwrap().1.to_owned()
    };
    let ask = |target: &str, cookie: &str| {
        let (address, path) = target.split_once('/').unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let head = format!(
            "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let (first, second) = (link(), link());
    let address = first.split_once('/').unwrap().0;
    assert!(second.starts_with(&format!("{address}/ui/open?link=")) && second != first);
    let entered = ask(&first, "");
    let cookie = entered.split_once("set-cookie: ").unwrap().1.split_once(';').unwrap().0.to_owned();
    assert!(ask(&first, "").starts_with("HTTP/1.1 403"));
    let shown = ask(&format!("{address}/ui/servers"), &cookie);
    assert!(shown.contains("count <span class=\"fine\">ready</span>"), "{shown}");
    assert!(ask(&format!("{address}/ui"), &cookie).contains("<h1>Runs</h1>"));
    assert!(ask(&format!("{address}/mcp"), &cookie).starts_with("HTTP/1.1 401"));
    user.ok(&["down"]);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn other_flags_and_files_are_not_taken_for_those_that_run() {
    let user = User::new();
    user.ok(&["up"]);
    let other = user.path("other.json");
    fs::copy(user.path("c.json"), &other).unwrap();
    for flags in [["--upstreams-config", other.to_str().unwrap()], ["--idle", "1h"]] {
        let refused = user.run(&[&["up"], &flags[..]].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.stderr.contains("with other flags, variables of flags, or files: `ptc down` first"),
            "{refused:?}"
        );
    }
    let mut command = user.command(&["up"]);
    command.env("PTC_HANDSHAKE_TIMEOUT", "1s");
    let refused = run(command, "");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(user.ok(&["up"]).contains("already"));
    user.ok(&["down"]);
    for _ in 0..2 {
        user.ok(&["up", "--idle", "1h"]);
    }
    assert!(user.ok(&["up"]).contains("already"));
}

#[test]
fn a_configuration_that_comes_later_is_followed() {
    let user = User::new();
    let without = |arguments: &[&str]| {
        let mut command = user.command(arguments);
        command.env_remove("PTC_UPSTREAMS").env("XDG_CONFIG_HOME", user.path("config"));
        run(command, "")
    };
    assert_eq!(without(&["up"]).code, Some(0));
    fs::create_dir_all(user.path("config/ptc")).unwrap();
    fs::copy(user.path("c.json"), user.path("config/ptc/upstreams.json")).unwrap();
    while user.processes().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(without(&["call", "count/count"]).stdout, "1\n");
    assert_eq!(without(&["call", "count/count"]).stdout, "2\n");
}

#[test]
fn why_it_cannot_be_started_is_said_once_and_with_a_path() {
    let user = User::new();
    fs::write(user.path("c.json"), "{").unwrap();
    let failed = user.run(&["up"]);
    assert!(failed.stderr.starts_with("error: it could not be started: "), "{failed:?}");
    assert_eq!(failed.stderr.matches("error:").count(), 1, "{failed:?}");
    let mut command = user.command(&["up"]);
    command.env("XDG_STATE_HOME", user.path("c.json"));
    let failed = run(command, "");
    assert_eq!(failed.code, Some(4), "{failed:?}");
    assert!(failed.stderr.contains("c.json/ptc/run: "), "{failed:?}");
}

#[test]
fn a_process_that_stands_still_is_there() {
    let user = User::new();
    user.ok(&["up"]);
    let process = user.state()["state"]["process"].to_string();
    let signal =
        |name: &str| assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    signal("-STOP");
    for command in ["status", "down", "up"] {
        let said = user.run(&[command]);
        assert_eq!(said.code, Some(4), "{command}: {said:?}");
        assert!(said.stderr.contains("does not answer"), "{command}: {said:?}");
    }
    signal("-CONT");
    user.ok(&["status"]);
}

#[test]
fn ctrl_c_while_servers_start_ends_the_process_too() {
    let user = User::new();
    // It never answers.
    let entry = json!({ "mcpServers": { "mute": { "command": "sleep", "args": ["1000"] } } });
    fs::write(user.path("c.json"), entry.to_string()).unwrap();
    let mut terminal = Terminal::start(&user.command(&["up"]));
    while user.state()["running"] == false {}
    let process = user.state()["state"]["process"].as_u64().unwrap();
    terminal.press("\x03");
    assert!(!terminal.ended());
    ended(u32::try_from(process).unwrap());
    // Once its servers have started, it is no concern of the terminal.
    user.configure("count");
    let mut terminal = Terminal::start(&user.command(&["up"]));
    terminal.until("its end", |shown| shown.contains("`ptc down` ends it"));
    terminal.press("\x03");
    // The command may be over before the signal comes, or not.
    let _ = terminal.ended();
    user.ok(&["status"]);
}
