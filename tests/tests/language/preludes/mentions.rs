//! How descriptions of tools, traces and the turn log mention preludes.

use ptc_tests::binary::{ptc, run_ptc};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::path::Path;

fn crm() -> String {
    workspace().join("tests/preludes/crm.clj").to_str().expect("a path").to_owned()
}

/// The description of `lisp_eval`.
fn description(flags: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = ptc(&[&["serve"], flags].concat());
    command.envs(variables.iter().copied());
    let mut server = Server::from_command(command);
    let listed = server.request("tools/list", json!({}));
    server.end();
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let tool = tools.iter().find(|tool| tool["name"] == "lisp_eval").expect("lisp_eval");
    tool["description"].as_str().expect("text").to_owned()
}

#[test]
fn a_host_keeps_exports_out_of_descriptions_and_not_from_programs() {
    let crm = crm();
    let listed = |description: &str| {
        ["crm/get-user ", "crm/get-user! ", "crm/search ", "crm/list-users "]
            .map(|name| description.contains(name))
    };
    let shown = |flags: &[&str]| listed(&description(&[&["--prelude", crm.as_str()], flags].concat(), &[]));
    assert_eq!(shown(&[]), [true, true, true, false]);
    assert_eq!(shown(&["--prelude-discoverable", "crm/search"]), [true, true, false, false]);
    let two = ["--prelude-discoverable", "crm/search", "--prelude-discoverable", "crm/get-user"];
    assert_eq!(shown(&two), [false, true, false, false]);
    // A namespace that is discoverable as a whole: the description does not mention preludes.
    let none = description(&["--prelude", &crm, "--prelude-discoverable", "crm"], &[]);
    assert!(!none.contains("crm") && !none.contains("prelude"), "{none}");
    let variables =
        [("PTC_PRELUDE", crm.as_str()), ("PTC_PRELUDE_DISCOVERABLE", "crm/search, crm/get-user!")];
    assert_eq!(listed(&description(&[], &variables)), [true, false, false, false]);
    // Programs find and call exports that are not listed.
    let mut server = Server::start(&["--prelude", &crm, "--prelude-discoverable", "crm"]);
    assert_eq!(server.text("crm/page-size"), "50");
    assert_eq!(server.text("(map :visibility (vals (ns-publics 'crm)))").matches(":discoverable").count(), 5);
    assert_eq!(server.text("(first (apropos \"search\"))"), "<text>\nprelude: crm/search - Search users.");
    server.end();
    // An unknown name is reported, and so is a helper.
    for name in ["crm/serach", "hr", "crm/normalize-id", ""] {
        let refused = run_ptc(&["eval", "1", "-p", &crm, "--prelude-discoverable", name], "");
        assert_eq!(refused.code, Some(2), "{name}: {refused:?}");
        assert!(refused.stderr.contains("--prelude-discoverable"), "{name}: {refused:?}");
    }
}

/// The lines with this event in the only file of a folder.
fn records(folder: &Path, event: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        found.extend(lines.filter(|line| line["event"] == event));
    }
    found
}

#[test]
fn traces_and_the_turn_log_say_which_prelude_a_program_had() {
    let (traces, turns) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let hr = traces.path().with_extension("clj");
    std::fs::write(&hr, "(ns hr \"People.\")\n(defn- secret-helper [] 1)\n(defn who [] (secret-helper))")
        .expect("written");
    let (hr, crm) = (hr.to_str().expect("a path"), crm());
    let at = |folder: &tempfile::TempDir| folder.path().to_str().expect("a path").to_owned();
    let flags =
        ["--sessions", "-p", &crm, "-p", hr, "--trace-dir", &at(&traces), "--turn-log-dir", &at(&turns)];
    let mut server = Server::start(&flags);
    assert_eq!(text_of(&server.run("(hr/who)")), "1");
    let mut call = |tool: &str, arguments: Value| {
        server.request("tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
    };
    let begun: Value = serde_json::from_str(&text_of(&call("lisp_session_start", json!({})))).expect("JSON");
    let arguments = json!({ "session_id": begun["session_id"], "program": "(def n (hr/who))" });
    call("lisp_session_eval", arguments);
    server.end();
    std::fs::remove_file(hr).expect("it was there");

    let stops = records(traces.path(), "ptc_runner.lisp.execute.stop");
    assert_eq!(stops.len(), 2, "{stops:#?}");
    for stop in &stops {
        let trace = &stop["metadata"]["prelude_trace"];
        assert_eq!(trace["protected_namespaces"], json!(["crm", "hr"]));
        let parts = trace["components"].as_array().expect("components");
        assert_eq!((parts.len(), &parts[0]["id"]), (2, &json!("crm")), "{trace}");
        for key in ["source_hash", "artifact_hash"] {
            assert_eq!(trace[key].as_str().map(str::len), Some(64), "{trace}");
        }
        let exports = trace["exports"].as_array().expect("exports");
        let who = exports.iter().find(|export| export["ref"] == "hr/who").expect("hr/who");
        assert_eq!((&who["arity"], &who["visibility"]), (&json!(0), &json!("prompt")));
        let user = exports.iter().find(|export| export["ref"] == "crm/get-user").expect("crm/get-user");
        assert_eq!(user["requires"], json!(["upstream:crm/get_user"]));
        assert!(!trace.to_string().contains("helper") && !trace.to_string().contains("normalize"), "{trace}");
    }
    assert_eq!(stops[0]["metadata"], stops[1]["metadata"], "a call alone and one of a session");
    let turns = records(turns.path(), "turn");
    let [said] = turns[0]["data"]["preludes"].as_array().expect("preludes").as_slice() else {
        panic!("{turns:#?}");
    };
    let trace = &stops[0]["metadata"]["prelude_trace"];
    assert_eq!(said["source_hash"], trace["source_hash"]);
    assert_eq!(said["namespaces"], json!(["crm", "hr"]));
    assert_eq!(said["components"], trace["components"]);
}
