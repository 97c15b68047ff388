//! Namespaces that scripts of one owner share (`session_id`), with either engine, and the records of scripts.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_tests::processes::{descendants, eventually};
use ptc_tests::scripts::{ONLY_SCRIPTS, data, engine, engines};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::Upstreams;
use serde_json::{Value, json};

fn server(engine: &str, flags: &[&str]) -> Server {
    let finance = json!({ "transport": "mcp_stdio", "command": "python3", "args": [data("finance.py")] });
    let config = Upstreams::default().add("finance", finance).write();
    let own = ["--sessions", "--python-engine", engine];
    Server::start(&config.flags(&[&ONLY_SCRIPTS[..], &own, flags].concat()))
}

/// The text of a script's answer, and what it says about the session.
fn run(server: &mut Server, session: &str, code: &str) -> (String, String) {
    let arguments = json!({ "code": code, "session_id": session });
    let answer = server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
    let text = text_of(&answer["result"]);
    let (text, last) = text.trim_end().rsplit_once('\n').unwrap_or((&text, ""));
    (text.to_owned(), last.to_owned())
}

fn begun(server: &mut Server, code: &str) -> String {
    let (_, last) = run(server, "new", code);
    last.strip_prefix("[session_id: ").unwrap().strip_suffix(']').unwrap().to_owned()
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn scripts_of_a_session_build_on_each_other() {
    for engine in engines() {
        let mut server = server(engine, &[]);
        let id = begun(
            &mut server,
            "import json\ntotal = 0\ndef add(n):\n    global total\n    total += n\n    return total",
        );
        for (code, want) in [
            ("print(add(2))", "[Script executed successfully]\n2"),
            (
                "rows = await mcp__finance__query_financials(ticker='GOOG', limit=2)\nprint(len(rows), add(3))",
                "[Script executed successfully]\n2 5",
            ),
            (
                "print(json.dumps([r['revenue'] for r in rows]))",
                "[Script executed successfully]\n[96500000000.0, 88300000000.0]",
            ),
            ("kept = 1", "[Script executed successfully]\n(no output)"),
        ] {
            assert_eq!(
                run(&mut server, &id, code),
                (want.to_owned(), format!("[session_id: {id}]")),
                "{engine}: {code}"
            );
        }
        // Definitions before a failure are retained.
        let (text, last) = run(&mut server, &id, "late = 7\n1/0");
        assert!(
            text.starts_with("[Script execution failed]\nTraceback")
                && text.ends_with("ZeroDivisionError: division by zero"),
            "{text}"
        );
        assert_eq!(last, format!("[session_id: {id}]"));
        assert_eq!(run(&mut server, &id, "print(late, kept)").0, "[Script executed successfully]\n7 1");
        // Another session, and a script without one, do not see them.
        let other = begun(&mut server, "x = 1");
        assert!(run(&mut server, &other, "print(kept)").0.contains("NameError"), "{engine}");
        let answer = server.request(
            "tools/call",
            json!({ "name": "execute_program", "arguments": { "code": "print(kept)" } }),
        );
        assert!(text_of(&answer["result"]).contains("NameError"));
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn a_session_ends() {
    for engine in engines() {
        let mut server = server(engine, &["--python-timeout", "2s", "--max-sessions-per-owner", "2"]);
        let before = descendants(server.id()).len();
        let (first, second) = (begun(&mut server, "x = 1"), begun(&mut server, "x = 2"));
        let full = run(&mut server, "new", "x = 3");
        assert!(format!("{full:?}").contains("session_limit_exceeded"), "{full:?}");
        // When a call ends it explicitly.
        let arguments = json!({ "code": "print(x)", "session_id": first, "end_session": true });
        let answer =
            server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
        assert_eq!(text_of(&answer["result"]), "[Script executed successfully]\n1\n[session ended]");
        assert!(format!("{:?}", run(&mut server, &first, "print(x)")).contains("session_not_found"));
        // When a script in it is cut off.
        let slow = run(&mut server, &second, "while True: pass");
        let want = "[Script execution failed]\nTimeoutError: Execution exceeded 2s limit";
        assert_eq!(slow, (want.to_owned(), "[session ended]".to_owned()), "{engine}");
        assert!(format!("{:?}", run(&mut server, &second, "print(x)")).contains("session_"));
        // An unknown session and a session of another owner look the same.
        let unknown = format!("{:?}", run(&mut server, "ptcs_AAAA", "print(x)"));
        assert!(unknown.contains("\"session_not_found: no such session"), "{unknown}");
        let idle = std::thread::available_parallelism().unwrap().get().max(2);
        eventually("their processes have ended", || descendants(server.id()).len() <= before + idle);
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn sessions_are_asked_for() {
    let mut server = Server::start(&[&ONLY_SCRIPTS[..], &["--python-engine", engine()]].concat());
    let (text, last) = run(&mut server, "new", "print(1)");
    assert!(format!("{text}{last}").contains("keeps no sessions"), "{text}");
    let mut server = Server::start(
        &[&ONLY_SCRIPTS[..], &["--python-engine", engine(), "--sessions", "--session-ttl", "3s"]].concat(),
    );
    let id = begun(&mut server, "x = 1");
    eventually("it has ended", || {
        format!("{:?}", run(&mut server, &id, "print(x)")).contains("session_not_found")
    });
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn what_a_script_leaves_running_gets_no_processor() {
    let mut server = server("cpython", &[]);
    let id = begun(
        &mut server,
        "import signal, time\nturns = 0\ndef turn(*_):\n    global turns\n    turns += 1\nsignal.signal(signal.SIGALRM, turn)",
    );
    // Its process is stopped until the next script.
    let stopped = |server: &Server| {
        descendants(server.id()).into_iter().any(|id| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('T')
        })
    };
    eventually("it is stopped", || stopped(&server));
    assert_eq!(run(&mut server, &id, "print(turns)").0, "[Script executed successfully]\n0");
    eventually("it is stopped again", || stopped(&server));
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn scripts_are_recorded_as_programs_are() {
    for engine in engines() {
        let traces = tempfile::tempdir().unwrap();
        let folder = traces.path().to_str().unwrap();
        let mut server = server(engine, &["--debug-tool", "--trace-dir", folder]);
        let id = begun(&mut server, "rows = await mcp__finance__query_financials(ticker='GOOG', limit=1)");
        run(&mut server, &id, "1/0");
        let ask = |server: &mut Server, arguments| {
            let answer =
                server.request("tools/call", json!({ "name": "lisp_debug", "arguments": arguments }));
            serde_json::from_str::<serde_json::Value>(&text_of(&answer["result"])).unwrap()
        };
        let stats = ask(&mut server, json!({ "op": "stats" }));
        let tool = &stats["by_tool"]["execute_program"];
        assert_eq!(
            (&tool["calls"], &tool["ok"], &tool["error"]),
            (&json!(2), &json!(1), &json!(1)),
            "{stats}"
        );
        let recent = ask(&mut server, json!({ "op": "recent", "limit": 2 }));
        let calls = recent["calls"].as_array().unwrap();
        let with_call = calls.iter().find(|call| call["status"] == "ok").unwrap();
        assert_eq!(
            (&with_call["upstream_calls"], &with_call["result_bytes"]),
            (&json!(1), &json!(11)),
            "{recent}"
        );
        assert_eq!(server.end(), Some(0));
        let all: String = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        assert!(all.contains("execute_program") && all.contains("query_financials"), "{all}");
    }
}

#[test]
#[cfg_attr(not(scripts), ignore = "no engine runs scripts here")]
fn the_debug_profile_names_the_session_among_its_data() {
    for engine in engines() {
        let mut server = server(engine, &["--response-profile", "debug"]);
        let mut run = |session: &Value, code: &str, ends: bool| {
            let arguments = json!({ "code": code, "session_id": session, "end_session": ends });
            let answer =
                server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
            let data = answer["result"]["structuredContent"].clone();
            assert_eq!(serde_json::from_str::<Value>(&text_of(&answer["result"])).unwrap(), data);
            data
        };
        let id = run(&json!("new"), "x = 7", false)["session_id"].clone();
        assert!(id.is_string(), "{engine}: {id}");
        let second = run(&id, "print(x)", false);
        assert_eq!((&second["session_id"], &second["result"]), (&id, &json!("7\n")), "{engine}");
        assert_eq!(run(&id, "1/0", false)["session_id"], id, "{engine}");
        assert!(run(&id, "print(x)", true)["session_id"].is_null(), "{engine}");
    }
}
