//! Rules for calls (`--policy`): every front end asks them, and no spelling goes around them.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

mod approvals;
mod flows;
mod limits;
mod pins;
mod programs;
mod session_flows;
mod webhook;

use ptc_tests::binary::{eval, run_ptc, value};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{ConfigFile, Upstreams};
use serde_json::{Value, json};
use std::io::Write;
use tempfile::NamedTempFile;

/// A policy in a file; removed when dropped.
pub(crate) struct PolicyFile(NamedTempFile);

impl PolicyFile {
    pub(crate) fn new(text: &str) -> PolicyFile {
        let mut file = tempfile::Builder::new().prefix("policy").suffix(".toml").tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        PolicyFile(file)
    }

    /// Replaces the text.
    fn rewrite(&self, text: &str) {
        std::fs::write(self.0.path(), text).unwrap();
    }

    pub(crate) fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
}

fn probe() -> ConfigFile {
    Upstreams::probe().write()
}

/// Reasons of `programs` under this policy; `ok` for a call that was made.
fn reasons(policy: &str, calls: &[&str]) -> Vec<String> {
    let (config, policy) = (probe(), PolicyFile::new(policy));
    let flags = config.flags(&["--policy", policy.path()]);
    let program = format!("(mapv (fn [r] (if (:ok r) \"ok\" (name (:reason r)))) [{}])", calls.join(" "));
    serde_json::from_str::<Vec<String>>(&value(&program, &flags).replace("\" \"", "\", \"")).unwrap()
}

#[test]
fn a_denied_call_is_data_and_names_its_rule() {
    let (config, policy) = (
        probe(),
        PolicyFile::new(
            "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n\n[[rule]]\ndo = \"deny\"\ntools = [\"probe/echo\"]\nwhen = { \"/v\" = { gt = 1 } }\nreason = \"too much\"\n",
        ),
    );
    let flags = config.flags(&["--policy", policy.path()]);
    let program = "(mapv #(select-keys % [:ok :reason]) [(tool/call 'probe/echo {:v 1}) (tool/call 'probe/echo {:v 2})])";
    assert_eq!(value(program, &flags), "[{:ok true} {:ok false :reason :denied}]");
    let message = value("(:message (tool/call 'probe/echo {:v 2}))", &flags);
    assert!(message.contains(".toml:3: deny probe/echo (too much)"), "{message}");
    let ended = eval("(tool/call! 'probe/echo {:v \"2\"})", &flags);
    assert!(ended["message"].as_str().unwrap().contains("probe/echo: :denied, denied by "), "{ended}");
    let record = &eval("(tool/call 'probe/echo {:v 2})", &flags)["upstream_calls"][0];
    assert_eq!(
        (&record["reason"], &record["policy"]["verdict"]),
        (&json!("denied"), &json!("deny")),
        "{record}"
    );
}

#[test]
fn resources_prompts_and_lists_are_calls() {
    let policy = "default = { read = \"allow\" }
[[rule]]
do = \"deny\"
tools = [\"probe/resources/read\"]
when = { \"/uri\" = \"memo://numbers/*\" }
[[rule]]
do = \"deny\"
tools = [\"mcp__probe__prompts_get\"]
when = { \"/arguments/who\" = \"Eve\" }
";
    let calls = [
        "(resource/read {:server \"probe\" :uri \"memo://notes\"})",
        "(resource/read {:server \"probe\" :uri \"memo://numbers/7\"})",
        "(prompt/get {:server \"probe\" :name \"greet\" :args {:who \"Ada\"}})",
        "(prompt/get {:server \"probe\" :name \"greet\" :args {:who \"Eve\"}})",
        "(prompt/list {:server \"probe\"})",
    ];
    assert_eq!(reasons(policy, &calls), ["ok", "denied", "ok", "denied", "ok"]);
}

/// Go's `encoding/json` takes `ſ` for s and the Kelvin sign for k in keys.
#[test]
fn keys_that_a_server_may_read_as_the_same_are_the_same() {
    let rule = |verdict: &str, key: &str, value: &str| {
        format!(
            "default = {{ read = \"deny\", write = \"deny\", destructive = \"deny\" }}\n[[rule]]\ndo = \"allow\"\ntools = [\"probe/*\"]\n{}[[rule]]\ndo = \"{verdict}\"\ntools = [\"probe/echo\"]\nwhen = {{ \"/{key}\" = \"{value}\" }}\n",
            if verdict == "allow" { "when = { \"/v\" = \"other\" }\n" } else { "" }
        )
    };
    let call = |arguments: &str| {
        format!("(tool/call 'probe/echo (json/parse-string \"{}\"))", arguments.replace('"', "\\\""))
    };
    let denied = [call("{\"v\":1,\"uſers\":\"admin\"}"), call("{\"v\":1,\"USERS\":\"admin\"}")];
    let calls: Vec<&str> = denied.iter().map(String::as_str).collect();
    assert_eq!(reasons(&rule("deny", "users", "admin"), &calls), ["denied", "denied"]);
    let safe = [call("{\"task\":\"safe\"}"), call("{\"task\":\"safe\",\"tas\u{212a}\":\"evil\"}")];
    let calls: Vec<&str> = safe.iter().map(String::as_str).collect();
    assert_eq!(reasons(&rule("allow", "task", "safe"), &calls), ["ok", "denied"]);
}

/// A list that was emptied does not mean all.
#[test]
fn empty_lists_are_errors() {
    let rule = "[[rule]]\ndo = \"allow\"\ntools = [\"probe/echo\"]\n";
    for (text, want) in [
        (format!("{rule}who = []\n"), "who = [] names no caller"),
        (format!("{rule}when = {{}}\n"), "when = {} has no condition"),
    ] {
        let (config, policy) = (probe(), PolicyFile::new(&text));
        let arguments = [&["eval", "1"][..], &config.flags(&["--policy", policy.path()])].concat();
        let ran = run_ptc(&arguments, "");
        assert!(ran.code == Some(2) && ran.stderr.contains(want), "{ran:?}");
    }
}

/// Functions of the host have that name, and policies trust them.
#[test]
fn no_server_has_the_name_of_the_host() {
    let config = Upstreams::default().add("tool", ptc_tests::upstreams::probe_server(&[])).write();
    let ran = run_ptc(&[&["eval", "1"][..], &config.flags(&[])].concat(), "");
    assert!(ran.code == Some(2) && ran.stderr.contains("an upstream cannot be named tool"), "{ran:?}");
}

#[test]
fn a_program_that_does_not_compile_is_not_a_program_without_calls() {
    let (config, policy) = (probe(), PolicyFile::new("default = { write = \"deny\" }\n"));
    let check = |program: &str| {
        let flags = config.flags(&["--policy", policy.path()]);
        run_ptc(&[&["policy", "check", program][..], &flags].concat(), "")
    };
    let ran = check("(tool/call 'probe/echo {:v 200}");
    assert!(ran.code == Some(2) && ran.stderr.contains("1:1: "), "{ran:?}");
    let ran = check("(resource/read {:server \"probe\" :uri \"memo://notes\"})");
    assert!(ran.stdout.contains("also makes calls that are only known when it runs"), "{ran:?}");
}

#[test]
fn the_strictest_file_decides_and_a_file_that_says_nothing_does_not() {
    let config = probe();
    let open =
        PolicyFile::new("default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n");
    let deny = PolicyFile::new("[[rule]]\ndo = \"deny\"\ntools = [\"probe/refuse\"]\n");
    let allow = PolicyFile::new("[[rule]]\ndo = \"allow\"\ntools = [\"*\"]\n");
    for files in [[&open, &deny, &allow], [&allow, &deny, &open], [&deny, &open, &allow]] {
        let named = files.map(|file| ["--policy", file.path()]).concat();
        let flags = config.flags(&named);
        assert_eq!(
            value("(mapv :reason [(tool/call 'probe/echo {:v 1}) (tool/call 'probe/refuse {})])", &flags),
            "[nil :denied]"
        );
    }
    // No file has an opinion: what may destroy something is asked, and there is no person to ask.
    let nothing = PolicyFile::new("");
    let flags = config.flags(&["--policy", nothing.path()]);
    assert_eq!(value("(:reason (tool/call 'probe/echo {:v 1}))", &flags), ":approval_unavailable");
}

#[test]
fn rules_that_can_match_nothing_are_errors_with_a_place() {
    let config = probe();
    let check = |text: &str| {
        let policy = PolicyFile::new(text);
        let arguments = ["policy", "check", "--upstreams-config", config.path(), "--policy", policy.path()];
        let ran = run_ptc(&arguments, "");
        (ran.code, ran.stdout + &ran.stderr)
    };
    for (text, want) in [
        (
            "[[rule]]\ndo = \"deny\"\ntools = [\"prob/echo\"]",
            ":3:10: there is no server prob; did you mean probe?",
        ),
        (
            "[[rule]]\ndo = \"deny\"\ntools = [\"probe/ecko\"]",
            ":3:10: no tool is called probe/ecko; did you mean echo?",
        ),
        (
            "[[rule]]\ndo = \"deny\"\ntools = [\"probe\"]",
            ":3:10: probe is a server: write probe/* for all of its tools",
        ),
        ("[[rule]]\ndo = \"dney\"\ntools = [\"probe/*\"]", ":2:6: unknown variant `dney`"),
        ("[[rules]]\ndo = \"deny\"", ":1:3: unknown field `rules`"),
        (
            "[[rule]]\ndo = \"deny\"\ntools = [\"probe/*\"]\nwho = [\"tokn:x\"]",
            ":4:8: \"tokn:x\" names no one",
        ),
        ("[servers.prob]\ntrust = \"annotations\"", "there is no server prob"),
    ] {
        let (code, said) = check(text);
        assert_eq!(code, Some(2), "{text}: {said}");
        assert!(said.contains(want), "{text}: {said}");
    }
    let (code, said) = check("[[rule]]\ndo = \"deny\"\ntools = [\"probe/r*\"]");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("deny   probe/refuse"), "{said}");
}

/// The reason that the proxy reports for a call, or `None`.
fn by_proxy(server: &mut Server, tool: &str) -> String {
    let arguments = json!({ "action": "call", "connection": "probe", "tool": tool, "arguments": { "v": 1 } });
    let answer = server.request("tools/call", json!({ "name": "proxy-dispatch", "arguments": arguments }));
    text_of(&answer["result"])
}

#[test]
fn every_front_end_of_the_server_asks() {
    let (config, policy) = (
        probe(),
        PolicyFile::new(
            "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n[[rule]]\ndo = \"deny\"\ntools = [\"probe/echo\"]\n",
        ),
    );
    let tools = "--tools=lisp_eval,proxy-dispatch,lisp_session_start,lisp_session_eval";
    let mut server = Server::start(&config.flags(&["--policy", policy.path(), tools]));
    let said = text_of(&server.run("(:reason (tool/call 'probe/echo {:v 1}))"));
    assert!(said.contains("denied"), "{said}");
    let said = by_proxy(&mut server, "echo");
    assert!(said.contains("denied by "), "{said}");
    let begun = server.request("tools/call", json!({ "name": "lisp_session_start", "arguments": {} }));
    let id = begun["result"]["structuredContent"]["session_id"].clone();
    let arguments = json!({ "session_id": id, "program": "(:reason (tool/call 'probe/echo {:v 1}))" });
    let answer: Value =
        server.request("tools/call", json!({ "name": "lisp_session_eval", "arguments": arguments }));
    assert!(answer.to_string().contains("denied"), "{answer}");
    assert_eq!(server.end(), Some(0));
}

/// An editor, or a full disk, may leave an empty file for a moment.
#[test]
fn a_policy_that_is_emptied_while_it_is_used_stays() {
    let (config, policy) =
        (probe(), PolicyFile::new("[[rule]]\ndo = \"deny\"\ntools = [\"probe/resources/read\"]\n"));
    let mut server = Server::start(&config.flags(&["--policy", policy.path(), "--config-reload", "watch"]));
    let read = "(:reason (resource/read {:server \"probe\" :uri \"memo://notes\"}))";
    assert_eq!(text_of(&server.run(read)), ":denied");
    policy.rewrite("# Nothing.\n");
    server.has_logged("it is empty now; the policy before stays");
    assert_eq!(text_of(&server.run(read)), ":denied");
}

#[test]
fn rules_of_servers_that_an_edit_removes_are_a_warning() {
    let (policy, folder) = (PolicyFile::new(""), tempfile::tempdir().unwrap());
    policy.rewrite("[[rule]]\ndo = \"deny\"\ntools = [\"other/echo\"]\n");
    let path = folder.path().join("config.json");
    std::fs::write(&path, ptc_tests::upstreams::probes(&["probe", "other"])).unwrap();
    let flags =
        ["--upstreams-config", path.to_str().unwrap(), "--policy", policy.path(), "--config-reload", "watch"];
    let mut server = Server::start(&flags);
    assert_eq!(text_of(&server.run("(:reason (tool/call 'other/echo {:v 1}))")), ":denied");
    std::fs::write(&path, ptc_tests::upstreams::probes(&["probe"])).unwrap();
    server.has_logged("the edited configuration leaves rules of the policy without effect");
    server.has_logged("there is no server other");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn names_that_are_read_as_others_are_found() {
    let list = json!({ "tools": [{ "name": "d\u{435}lete", "inputSchema": { "type": "object" } }] });
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "{list}").unwrap();
    let list = file.path().to_str().unwrap();
    let config =
        Upstreams::default().add("odd", ptc_tests::upstreams::hostile_server(&["--list", list])).write();
    let policy = PolicyFile::new("[[rule]]\ndo = \"deny\"\ntools = [\"odd/delete\"]\n");
    let ran =
        run_ptc(&["policy", "check", "--upstreams-config", config.path(), "--policy", policy.path()], "");
    assert!(ran.stdout.contains("has letters that look like others: it is read as delete"), "{ran:?}");
    assert!(ran.stdout.contains("deny   odd/d\u{435}lete"), "{ran:?}");
    let doctor = run_ptc(&["doctor", "--upstreams-config", config.path()], "");
    assert!(doctor.stdout.contains("it is read as delete"), "{doctor:?}");
}

#[test]
fn edits_that_weaken_something_are_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let config = |servers: Value| json!({ "mcpServers": servers }).to_string();
    let mut probe = ptc_tests::upstreams::probe_server(&[]);
    let members = probe.as_object_mut().unwrap();
    members.retain(|key, _| key == "command" || key == "args");
    let secure = json!({ "url": "https://127.0.0.1:9/mcp" });
    let path = write("config.json", &config(json!({ "probe": probe, "far": secure })));
    let policy = write("policy.toml", "[[rule]]\ndo = \"allow\"\ntools = [\"echo\"]\n");
    let flags = ["--upstreams-config", &path, "--policy", &policy, "--config-reload", "watch"];
    let mut server = Server::start(&flags);
    assert_eq!(text_of(&server.run("(:ok (tool/call 'probe/echo {:v 1}))")), "true");
    let plain = json!({ "url": "http://127.0.0.1:9/mcp" });
    write("config.json", &config(json!({ "probe": probe, "far": plain, "other": probe })));
    server.has_logged("reaches far over http:// in place of https://");
    while text_of(&server.run("(:reason (tool/call 'other/refuse {}) \"\")")).contains("no server") {}
    server.has_logged("adds the server other, whose tool echo has the name of a tool of probe");
    server.has_logged("echo is allowed of several servers: other, probe; write SERVER/echo");
    write("policy.toml", "default = { destructive = \"allow\" }\n");
    server.has_logged("the edited policy allows more: probe/refuse: ask to allow");
    assert_eq!(server.end(), Some(0));
}
