//! Errors of commands: exit codes as documented, no text of programs, names and remedies.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use ptc_tests::binary::{Finished, ptc, run, run_ptc};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use tempfile::TempDir;

/// A server with a tool that has arguments, one that fails and one that gives much.
const SERVER: &str = r#"
import json, sys
def tool(name, properties, required):
    return {"name": name, "description": "About " + name, "inputSchema": {"type": "object",
        "properties": properties, "required": required, "additionalProperties": False}}
tools = [tool("get_time", {"timezone": {"type": "string"}}, ["timezone"]), tool("fail", {}, []), tool("big", {}, [])]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call":
        text = {"get_time": "noon", "fail": "it is broken", "big": "x" * 3000000}[params["name"]]
        result = {"content": [{"type": "text", "text": text}], "isError": params["name"] == "fail"}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

struct Folder {
    folder: TempDir,
}

impl Folder {
    /// A configuration with the server `time` and these.
    fn with(more: &[(&str, Value)]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("server.py");
        fs::write(&script, SERVER).unwrap();
        let mut servers = json!({ "time": { "command": "python3", "args": [script] } });
        for (name, entry) in more {
            servers[name] = entry.clone();
        }
        let file = json!({ "mcpServers": servers });
        fs::write(folder.path().join("c.json"), file.to_string()).unwrap();
        Folder { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        let mut command = ptc(arguments);
        command.env("PTC_UPSTREAMS", self.path("c.json"));
        run(command, "")
    }
}

#[test]
fn a_wrong_call_is_explained_in_the_notation_of_the_command_line() {
    let folder = Folder::with(&[]);
    for (arguments, said) in [
        (&["time/get_time", "timezon=UTC"][..], "Did you mean timezone?"),
        (&["time/get_time", "timezon=UTC"], "usage: ptc call time/get_time timezone=string"),
        (&["time/get_time"], "time/get_time: missing required args timezone"),
        (&["tiem/get_time"], "Did you mean \"time\"?"),
        (&["time/get_tim"], "Did you mean \"get_time\"?"),
        (&["time.get_time"], "did you mean time/get_time?"),
        (&["time"], "`ptc tools time`"),
        (&["time/get_time", "{\"a\""], "no JSON object"),
    ] {
        let finished = folder.run(&[&["call"], arguments].concat());
        assert!(finished.stderr.contains(said), "{arguments:?}: {finished:?}");
        assert_eq!(finished.code, Some(2), "{arguments:?}: {finished:?}");
        for program in ["tool/call", ":timezon", "-->", ":ok"] {
            assert!(!finished.stderr.contains(program), "{program}: {finished:?}");
        }
    }
}

#[test]
fn exit_codes_of_call_say_who_failed() {
    let folder =
        Folder::with(&[("broken", json!({ "command": "sh", "args": ["-c", "echo no key >&2; exit 3"] }))]);
    let answered = folder.run(&["call", "time/get_time", "timezone=UTC"]);
    assert_eq!((answered.code, answered.stdout.as_str()), (Some(0), "noon\n"));
    let failed = folder.run(&["call", "time/fail"]);
    assert_eq!((failed.code, failed.stderr.as_str()), (Some(1), "it is broken\n"));
    let down = folder.run(&["call", "broken/x"]);
    assert_eq!(down.code, Some(3), "{down:?}");
    assert_eq!(down.stderr.matches("stderr: no key").count(), 1, "{down:?}");
    assert!(down.stderr.contains("broken did not start") && !down.stderr.contains("recovery"), "{down:?}");
}

#[test]
fn a_start_that_fails_tells_what_the_server_wrote_to_standard_output() {
    let says = "echo 'Usage: serve [--port N]'; exec cat";
    let entry = json!({ "command": "sh", "args": ["-c", says], "handshake_timeout_ms": 1500 });
    let folder = Folder::with(&[("talks", entry)]);
    let down = folder.run(&["call", "talks/x"]);
    assert_eq!(down.code, Some(3), "{down:?}");
    assert!(down.stderr.contains("; stdout: Usage: serve [--port N]"), "{down:?}");
}

#[test]
fn a_traceback_names_the_file() {
    let folder = Folder::with(&[]);
    fs::write(folder.path("a.py"), "x = 1\nx / 0\n").unwrap();
    let script = folder.path("a.py");
    let failed = folder.run(&["exec", script.to_str().unwrap()]);
    assert!(failed.stdout.contains("a.py\", line 2"), "{failed:?}");
}

#[test]
fn a_limit_is_named_by_its_flag() {
    let folder = Folder::with(&[]);
    let large = folder.run(&["call", "time/big"]);
    assert!(large.stderr.contains("--max-upstream-response-bytes"), "{large:?}");
    let enough = folder.run(&["call", "time/big", "--max-upstream-response-bytes", "8M"]);
    assert_eq!((enough.code, enough.stdout.len()), (Some(0), 3_000_001));
}

#[test]
fn a_time_without_a_unit_is_refused() {
    let refused = run_ptc(&["eval", "1", "--timeout", "20"], "");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("write 20s for seconds"), "{refused:?}");
    // The earlier name says its unit.
    assert_eq!(run_ptc(&["eval", "1", "--program-timeout-ms", "60000"], "").code, Some(0));
}

#[test]
fn a_file_without_executable_bit_has_its_own_remedy() {
    let folder = Folder::with(&[]);
    let script = folder.path("server.py");
    let text = json!({ "mcpServers": { "plain": { "command": script } } }).to_string();
    fs::write(folder.path("c.json"), text).unwrap();
    let refused = folder.run(&["call", "plain/x"]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("chmod +x"), "{refused:?}");
}

#[test]
fn a_dead_proxy_is_named() {
    let folder =
        Folder::with(&[("far", json!({ "url": "https://example.com/mcp", "proxy": "http://127.0.0.1:9" }))]);
    let refused = folder.run(&["call", "far/x"]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("the proxy does not answer"), "{refused:?}");
}

/// Answers each request with 401 and the document of RFC 9728.
fn asks_for_a_login() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 8192]);
            let _ = stream.write_all(
                b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer resource_metadata=\"https://a.example/x\"\r\n\
                content-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    address
}

#[test]
fn a_server_that_asks_for_oauth_names_the_command_of_its_login() {
    let address = asks_for_a_login();
    let folder = Folder::with(&[("linear", json!({ "url": address }))]);
    for command in [&["call", "linear/x"][..], &["doctor"]] {
        let said = folder.run(command);
        assert!((said.stdout.clone() + &said.stderr).contains("ptc login linear"), "{said:?}");
    }
}

#[test]
fn a_missing_token_says_how_to_make_one() {
    for short in [None, Some("short")] {
        let mut command = ptc(&["serve", "--http", "0.0.0.0:0"]);
        command.envs(short.map(|token| ("PTC_HTTP_AUTH_TOKEN", token)));
        let refused = run(command, "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("openssl rand -hex 32"), "{refused:?}");
        assert!(refused.stderr.contains("PTC_HTTP_AUTH_TOKEN"), "{refused:?}");
    }
}

#[test]
fn tools_suggests_names_of_servers_tools_and_keys() {
    let folder = Folder::with(&[("odd", json!({ "comand": "x" }))]);
    for (which, said) in [
        ("tiem", "did you mean time?"),
        ("time/get_tim", "did you mean get_time?"),
        ("xyz", "there are odd, time"),
    ] {
        let refused = folder.run(&["tools", which]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    let odd = folder.run(&["tools", "odd"]);
    assert!(odd.stdout.contains("did you mean \"command\"?"), "{odd:?}");
}

#[test]
fn an_operator_between_its_operands_is_noted() {
    let finished = run_ptc(&["eval", "1 + 2"], "");
    assert_eq!((finished.stdout.as_str(), finished.code), ("2\n", Some(0)));
    assert_eq!(
        finished.stderr,
        "note: an operator comes first, as in (+ 1 2); here only the last form counts\n"
    );
    assert_eq!(run_ptc(&["eval", "1 inc 2"], "").stderr, "");
    for whole in ["(+ 1 2)", "(list < 1)", "(apply < [1])"] {
        assert_eq!(run_ptc(&["eval", whole], "").stderr, "", "{whole}");
    }
}

#[test]
fn flags_of_a_server_over_http_are_refused_without_one() {
    for flags in [
        &["--ui"][..],
        &["--http-port", "7999"],
        &["--http-tokens", "nosuch"],
        &["--http-max-sessions", "3"],
        &["--http-disable-auth"],
    ] {
        let refused = run_ptc(&[&["serve"], flags].concat(), "");
        assert_eq!(refused.code, Some(2), "{flags:?}: {refused:?}");
        assert!(refused.stderr.contains(&format!("{} does nothing without --http", flags[0])), "{refused:?}");
    }
    // A variable may be there for another server.
    let mut serve = ptc(&["serve"]);
    serve.env("PTC_HTTP_PORT", "7999").env("PTC_UI", "true");
    assert_eq!(run(serve, "").code, Some(0));
}

#[test]
fn limits_that_are_not_set_are_no_warning() {
    // No machine has this address, so the server ends.
    let said = |flags: &[&str]| {
        let mut serve = ptc(&[&["serve", "--http", "192.0.2.1:1"], flags].concat());
        serve.env("PTC_HTTP_AUTH_TOKEN", "0123456789abcdef0123456789abcdef");
        run(serve, "").stderr
    };
    let plain = said(&[]);
    assert!(plain.contains("192.0.2.1") && !plain.contains("owner_cap"), "{plain}");
    assert!(said(&["--http-max-sessions-per-owner", "3"]).contains("owner_cap"));
}

#[test]
fn limits_of_programs_are_refused_for_scripts() {
    for (flag, said) in
        [("--timeout", "their limit is --python-timeout"), ("--fuel", "does nothing for scripts")]
    {
        let refused = run_ptc(&["exec", "-", flag, if flag == "--fuel" { "10" } else { "10s" }], "print(1)");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
        assert!(!run_ptc(&["exec", "--help"], "").stdout.contains(&format!("{flag} ")));
    }
}

#[test]
fn a_folder_whose_name_is_no_text_is_a_folder() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::with(&[]);
    let odd = folder.folder.path().join(std::ffi::OsStr::from_bytes(b"d\xff"));
    fs::create_dir(&odd).unwrap();
    let in_it = |arguments: &[&str]| {
        let mut command = ptc(arguments);
        command.env("PTC_UPSTREAMS", folder.path("c.json")).current_dir(&odd);
        run(command, "")
    };
    let called = in_it(&["call", "time/get_time", "timezone=UTC"]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "noon\n"), "{called:?}");
    let refused = in_it(&["add", "x", "./program"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("is no UTF-8"), "{refused:?}");
}

#[test]
fn a_missing_file_with_a_blank_in_its_path_is_a_missing_file() {
    let folder = Folder::with(&[]);
    let entry = json!({ "mcpServers": { "x": { "command": folder.path("a folder/x") } } });
    fs::write(folder.path("c.json"), entry.to_string()).unwrap();
    let looked = folder.run(&["doctor"]);
    assert!(looked.stdout.contains("there is no such file"), "{looked:?}");
    assert!(!looked.stdout.contains("a command is one program"), "{looked:?}");
}

#[test]
fn a_key_that_a_configuration_has_twice_is_a_warning_and_said_once() {
    let folder = Folder::with(&[]);
    let text = fs::read_to_string(folder.path("c.json")).unwrap();
    fs::write(
        folder.path("c.json"),
        text.replacen('{', "{\"mcpServers\": {\"lost\": {\"command\": \"x\"}},\n", 1),
    )
    .unwrap();
    let looked = folder.run(&["doctor"]);
    assert!(looked.stdout.contains("c.json:2:1: \"mcpServers\" is there twice"), "{looked:?}");
    assert!(looked.stdout.contains("-> remove one of the two by hand"), "{looked:?}");
    assert!(!looked.stderr.contains("twice"), "{looked:?}");
    assert!(folder.run(&["tools"]).stderr.contains("is there twice"));
}

#[test]
fn a_server_that_has_to_start_ends_programs_that_do_not_name_it() {
    let folder = Folder::with(&[("broken", json!({ "command": "false" }))]);
    for arguments in [&["batch"][..], &["eval", "1"]] {
        let mut command = ptc(&[arguments, &["--startup", "strict"]].concat());
        command.env("PTC_UPSTREAMS", folder.path("c.json"));
        let ended = run(command, "{\"id\": 1, \"program\": \"1\"}\n");
        assert_eq!(ended.code, Some(3), "{arguments:?}: {ended:?}");
        assert_eq!(folder.run(arguments).code, Some(0));
    }
}

#[test]
fn files_of_editors_that_mark_the_byte_order_are_read_and_wrong_ones_named() {
    let folder = Folder::with(&[]);
    for (name, text) in
        [("p.ptc", "data/a"), ("s.py", "print(1)"), ("c.txt", "{\"a\": 1}"), ("wrong.txt", "{")]
    {
        fs::write(folder.path(name), format!("\u{feff}{text}")).unwrap();
    }
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let context = format!("@{}", path("c.txt"));
    assert_eq!(run_ptc(&["eval", &path("p.ptc"), "--context", &context], "").stdout, "1\n");
    assert_eq!(run_ptc(&["exec", &path("s.py")], "").stdout, "1\n");
    let refused = run_ptc(&["eval", "1", "--context", &format!("@{}", path("wrong.txt"))], "");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("wrong.txt is not JSON") && !refused.stderr.contains("use @FILE"),
        "{refused:?}"
    );
}

#[test]
fn a_place_that_is_not_there_is_not_made_by_looking() {
    let folder = tempfile::tempdir().unwrap();
    let typo = folder.path().join("typo");
    for command in ["list", "show"] {
        let looked = run_ptc(
            &[
                &["runs", command][..],
                if command == "show" { &["1"] } else { &[] },
                &["--state", typo.to_str().unwrap()],
            ]
            .concat(),
            "",
        );
        assert_eq!(looked.code, Some(2), "{looked:?}");
        assert!(looked.stderr.contains("there is no folder"), "{looked:?}");
    }
    // Without a word it is the list.
    let private: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    for words in [&["--output", "json"][..], &["--output", "json", "list"]] {
        let stored = tempfile::Builder::new().permissions(private.clone()).tempdir().unwrap();
        let state = stored.path().to_str().unwrap();
        let listed = run_ptc(&[&["runs"][..], words, &["--state", state]].concat(), "");
        assert_eq!(listed.stdout, "{\"runs\":[]}\n", "{listed:?}");
    }
    assert!(!typo.exists());
    let mut pin = ptc(&["pin", "--all"]);
    pin.current_dir(folder.path());
    let pinned = run(pin, "");
    assert_eq!(pinned.code, Some(2), "{pinned:?}");
    assert!(pinned.stderr.contains("no servers are configured"), "{pinned:?}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}
