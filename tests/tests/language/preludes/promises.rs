//! How faults, records, lists and commands show preludes.

use super::attach::with_servers;
use super::{CRM, run};
use ptc_tests::binary::{Finished, ptc, run_ptc};
use ptc_tests::model::ModelServer;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::tasks::{shop, started, task};
use ptc_tests::upstreams::{ConfigFile, Upstreams, table_server};
use serde_json::{Value, json};
use std::path::Path;

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("a path").to_owned()
}

/// A server with a tool that is marked as destructive.
fn marked() -> ConfigFile {
    Upstreams::default().add("crm", table_server("tests/preludes/servers.json", "marked")).write()
}

const WIPES: &str = "(ns w \"Cleans up.\")\n(defn wipe \"Wipes all. At once.\" [] (tool/call {:server \"crm\" :tool \"wipe\" :args {}}))";

#[tokio::test]
async fn an_abort_inside_an_export_is_shown_at_the_call_of_the_program() {
    let runtime = with_servers(CRM, &["crm"]).await;
    let program = "(+ 1 (count (crm/get-user! \"zz\")))";
    let failure = run(&runtime, program).await.result.expect_err("it aborts");
    let place = failure.reports[0].location.as_ref().expect("a place");
    assert_eq!((place.start.line, place.start.column), (1, 13), "{failure:?}");
    assert!(
        failure.hints()[0].starts_with("It happened in crm/get-user!, at p.clj:"),
        "{:?}",
        failure.hints()
    );
    assert!(!failure.hints().iter().any(|hint| hint.contains("itself")), "{:?}", failure.hints());
    let own = run(&runtime, "(fail :no)").await.result.expect_err("it aborts");
    assert!(own.hints()[0].contains("The program itself called `fail`"), "{:?}", own.hints());
}

#[test]
fn the_debug_profile_shows_components_and_exports() {
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b] = ["a", "b"]
        .map(|name| file(folder.path(), &format!("{name}.clj"), &format!("(ns {name}) (defn f [] 1)")));
    let mut server = Server::start(&["--prelude", &a, "--prelude", &b, "--response-profile", "debug"]);
    let trace = server.run("1")["structuredContent"]["prelude_trace"].clone();
    let ids: Vec<&str> =
        trace["components"].as_array().expect("a list").iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!(ids, ["a", "b"], "{trace}");
    let exports: Vec<&str> =
        trace["exports"].as_array().expect("a list").iter().filter_map(|it| it["ref"].as_str()).collect();
    assert_eq!(exports, ["a/f", "b/f"]);
    assert_eq!(trace["components"][0]["origin"], format!("file:{a}"));
    server.end();
}

#[test]
fn tasks_say_which_prelude_their_programs_had() {
    let folder = tempfile::tempdir().expect("a folder");
    let prelude = file(folder.path(), "n.clj", "(ns n) (defn one [] 1)");
    let traces = folder.path().join("traces");
    let (config, model) = (shop(), ModelServer::with_programs(&["(return (n/one))", "(return (n/one))"]));
    let flags =
        ["--aggregator-read-only", "--prelude", &prelude, "--trace-dir", traces.to_str().expect("a path")];
    let mut slim = started(&config, &model, &flags);
    let told = task(&mut slim, json!({ "task": "?" }))["structuredContent"].clone();
    assert!(told["answer"] == "1" && told.get("prelude_trace").is_none(), "{told}");
    slim.end();
    let written: String = std::fs::read_dir(&traces)
        .expect("traces")
        .flatten()
        .map(|entry| std::fs::read_to_string(entry.path()).expect("a trace"))
        .collect();
    assert!(written.contains("\"prelude_trace\"") && written.contains("n/one"), "{written}");
    let mut debug = started(&config, &model, &[&flags[..], &["--response-profile", "debug"]].concat());
    let told = task(&mut debug, json!({ "task": "?" }))["structuredContent"].clone();
    assert_eq!(told["prelude_trace"]["components"][0]["id"], "n", "{told}");
    debug.end();
}

#[test]
fn servers_are_named_beside_any_prelude() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = file(folder.path(), "q.clj", "(ns q) (defn f \"Does a thing.\" [] 1)");
    let many: String = (0..20)
        .flat_map(|n| (0..5).map(move |m| (n, m)))
        .map(|(n, m)| {
            let start = if m == 0 { format!("(ns n{n})\n") } else { String::new() };
            format!("{start}(defn f{m} \"{}\" [] {m})\n", "Word after word. ".repeat(20))
        })
        .collect();
    let many = file(folder.path(), "many.clj", &many);
    for prelude in [small, many] {
        for mode in ["auto", "lazy"] {
            let config = marked();
            let flags = config.flags(&["--sessions", "--prelude", &prelude, "--catalog-mode", mode]);
            let mut server = Server::start(&flags);
            let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
            for name in ["lisp_eval", "lisp_session_eval"] {
                let tool =
                    tools.as_array().expect("tools").iter().find(|tool| tool["name"] == name).expect(name);
                let text = tool["description"].as_str().expect("text");
                assert!(text.starts_with("Find tools with (apropos"), "{text}");
                assert!(text.contains("\n- crm: 1 tool") && text.len() < 4_096, "{} {text}", text.len());
            }
            server.end();
        }
    }
}

#[test]
fn a_mode_that_is_not_available_is_refused_and_the_mode_is_in_the_answer() {
    let start = |server: &mut Server, mode: &str| {
        let arguments = json!({ "name": "lisp_session_start", "arguments": { "mode": mode } });
        let text = text_of(&server.request("tools/call", arguments)["result"]);
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store.redb").to_str().expect("a path").to_owned();
    for (flags, missing) in [
        (vec!["--sessions"], "--prelude-store and --sessions-allow-prelude-write"),
        (vec!["--sessions", "--prelude-store", &store], "--sessions-allow-prelude-write"),
    ] {
        let mut server = Server::start(&flags);
        let refused = start(&mut server, "write_capable");
        let text = format!("mode write_capable is not available: the server was started without {missing}");
        assert_eq!((&refused["reason"], &refused["message"]), (&json!("session_args_error"), &json!(text)));
        assert_eq!(start(&mut server, "read_only")["mode"], "read_only");
        server.end();
    }
    let mut server =
        Server::start(&["--sessions", "--prelude-store", &store, "--sessions-allow-prelude-write"]);
    assert_eq!(start(&mut server, "write_capable")["mode"], "write_capable");
    let tools = server.request("tools/list", json!({}))["result"]["tools"].clone();
    for name in ["lisp_session_start", "lisp_session_eval"] {
        let tool = tools.as_array().expect("tools").iter().find(|tool| tool["name"] == name).expect(name);
        assert!(tool["description"].as_str().expect("text").contains("(dir 'prelude)"), "{tool}");
    }
    server.end();
    let refused = run_ptc(&["serve", "--sessions", "--sessions-allow-prelude-write"], "");
    assert!(refused.code == Some(2) && refused.stderr.contains("needs --prelude-store"), "{refused:?}");
}

#[test]
fn an_export_over_a_tool_that_changes_something_is_never_said_to_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (prelude, config) = (file(folder.path(), "w.clj", WIPES), marked());
    let mut server = Server::start(&config.flags(&["--prelude", &prelude]));
    let doc = server.text("(doc 'w/wipe)");
    assert!(doc.contains("Effect: write"), "{doc}");
    assert_eq!(server.text("(:effect (meta 'w/wipe))"), ":write");
    let listed = server.request("tools/list", json!({}))["result"].to_string();
    assert!(listed.contains("w/wipe (wipe) [write] — Wipes all.") && !listed.contains("At once"), "{listed}");
    server.end();
    let with_servers =
        |command: &str| run_ptc(&["prelude", command, &prelude, "--upstreams-config", config.path()], "");
    let doc = with_servers("doc");
    assert!(
        doc.stdout.contains("May change something.") && !doc.stdout.contains("change nothing"),
        "{doc:?}"
    );
    assert!(with_servers("inventory").stdout.contains("[write]"));
    let check = with_servers("check");
    let text = "export `w/wipe` is said to read, but `upstream:crm/wipe` is annotated as changing something";
    assert!(check.stdout.contains(text) && check.code == Some(0), "{check:?}");
    // Without configured servers nothing is known of them.
    let alone = run_ptc(&["prelude", "doc", &prelude], "");
    assert!(alone.stdout.contains("Meant to change nothing."), "{alone:?}");
}

#[test]
fn what_a_prelude_lacks_is_said_at_the_start_and_by_doctor() {
    let folder = tempfile::tempdir().expect("a folder");
    let prelude = file(
        folder.path(),
        "m.clj",
        "(ns m) (defn f [] (tool/call {:server \"crm\" :tool \"zork\" :args {}}))",
    );
    let config = marked();
    let server = Server::start(&config.flags(&["--prelude", &prelude]));
    server.has_logged("tool `zork` is not present on upstream server `crm`");
    server.end();
    let told = run_ptc(&["doctor", "--upstreams-config", config.path(), "--prelude", &prelude], "");
    assert!(told.code == Some(2) && told.stdout.contains("tool `zork` is not present"), "{told:?}");
    let good = file(folder.path(), "w.clj", WIPES);
    let told = run_ptc(&["doctor", "--upstreams-config", config.path(), "--prelude", &good], "");
    assert!(told.code == Some(0) && told.stdout.contains("all that its exports need is there"), "{told:?}");
}

#[test]
fn programs_over_a_prelude_can_be_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let prelude = file(folder.path(), "w.clj", WIPES);
    assert_eq!(run_ptc(&["check", "(w/wipe)"], "").code, Some(1));
    let done = run_ptc(&["check", "(w/wipe)", "-p", &prelude, "--show-prompt-inventory"], "");
    assert!(done.code == Some(0) && done.stderr.contains("w/wipe (wipe)"), "{done:?}");
    assert_eq!(run_ptc(&["check", "(w/wip)", "-p", &prelude], "").code, Some(1));
}

#[test]
fn a_task_of_the_command_line_has_a_prelude() {
    let folder = tempfile::tempdir().expect("a folder");
    let prelude = file(folder.path(), "n.clj", "(ns n) (defn one [] 41)");
    let model = ModelServer::with_programs(&["(return (inc (n/one)))"]);
    let mut command =
        ptc(&["task", "?", "-p", &prelude, "--show-prompt-inventory", "--aggregator-read-only"]);
    command.args(["--agentic-model", "some-model", "--agentic-base-url", model.url()]);
    let Finished { stdout, stderr, code, .. } = ptc_tests::binary::run(command, "");
    assert_eq!((stdout.as_str(), code), ("42\n", Some(0)), "{stderr}");
    assert!(stderr.contains("n/one (one)") && model.prompts()[0].contains("n/one (one)"), "{stderr}");
}

#[test]
fn a_store_is_edited_by_many_processes_while_a_server_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store.redb").to_str().expect("a path").to_owned();
    let source = file(folder.path(), "shared.clj", "(ns shared) (defn f [] 1)");
    let mut server =
        Server::start(&["--sessions", "--prelude-store", &store, "--sessions-allow-prelude-write"]);
    let writers: Vec<_> = (0..20)
        .map(|n| {
            let (store, source) = (store.clone(), source.clone());
            std::thread::spawn(move || {
                run_ptc(
                    &[
                        "prelude",
                        "write",
                        "shared",
                        &source,
                        "--reason",
                        &n.to_string(),
                        "--prelude-store",
                        &store,
                    ],
                    "",
                )
            })
        })
        .collect();
    let mut versions: Vec<String> = Vec::new();
    for writer in writers {
        let done = writer.join().expect("no defect");
        assert_eq!(done.code, Some(0), "{done:?}");
        versions.extend(done.stdout.split(' ').next().map(str::to_owned));
    }
    versions.sort_by_key(|text| text.trim_start_matches("shared@").parse::<u64>().ok());
    assert_eq!(
        versions,
        (1..=20).map(|n| format!("shared@{n}")).collect::<Vec<_>>(),
        "each has a number of its own"
    );
    let rolled = run_ptc(&["prelude", "set-default", "shared@3", "--prelude-store", &store], "");
    assert_eq!(rolled.stdout, "shared@3 is the current version\n", "{rolled:?}");
    // The server sees versions that others have written, and others see its own.
    let mut call = |name: &str, arguments: Value| {
        text_of(&server.request("tools/call", json!({ "name": name, "arguments": arguments }))["result"])
    };
    let listed: Value = serde_json::from_str(&call("lisp_session_list_preludes", json!({}))).expect("JSON");
    assert_eq!(listed["preludes"][0]["current_version"], 3, "{listed}");
    let started: Value =
        serde_json::from_str(&call("lisp_session_start", json!({ "mode": "write_capable" }))).expect("JSON");
    let program = "(:version (prelude/set-default {:id \"shared\" :version 5}))";
    let set = call("lisp_session_eval", json!({ "session_id": started["session_id"], "program": program }));
    assert!(set.starts_with('5'), "{set}");
    let listed = run_ptc(&["prelude", "list", "--prelude-store", &store], "");
    assert_eq!(listed.stdout, "shared@5 (latest 20): f\n", "{listed:?}");
    server.end();
}

#[test]
fn annotations_are_kept_whole_and_found_by_their_texts() {
    let config = marked();
    let mut server = Server::start(&config.flags(&[]));
    assert_eq!(
        server.text("(get (meta 'crm/wipe) \"annotations\")"),
        "{\"destructiveHint\" true \"readOnlyHint\" false \"title\" \"Chronometer\" \"x-group\" \"Wombats\"}"
    );
    assert_eq!(server.text("(get (meta 'crm/wipe) \"title\")"), "\"Chronometer\"");
    for (query, found) in
        [("chronometer", 1), ("wombats", 1), ("destructive", 1), ("read", 0), ("read only", 0)]
    {
        let count = server.text(&format!("(count (apropos \"{query}\" {{:load true}}))"));
        assert_eq!(count, found.to_string(), "{query}");
    }
    server.end();
    let mut proxy = Server::start(&config.flags(&["--tools", "proxy-dispatch"]));
    let mut ask = |arguments: Value| {
        let asked = json!({ "name": "proxy-dispatch", "arguments": arguments });
        text_of(&proxy.request("tools/call", asked)["result"])
    };
    let found = ask(json!({ "action": "search", "query": "Chronometer", "includeAnnotations": true }));
    assert!(found.contains("wipe") && found.contains("Wombats"), "{found}");
    let listed = ask(json!({ "action": "list", "includeTools": true, "includeAnnotations": true }));
    assert!(listed.contains("Chronometer") && listed.contains("x-group"), "{listed}");
    proxy.end();
}
