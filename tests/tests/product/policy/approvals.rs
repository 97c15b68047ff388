//! Calls that a person has to approve: who is asked, what an answer counts for, and what happens without one.

use super::{PolicyFile, probe};
use ptc_tests::binary::{ptc, run};
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::probe_server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Everything may be called, and this is asked about.
pub(super) fn asks(remember: &str) -> PolicyFile {
    PolicyFile::new(&format!(
        "default = {{ read = \"allow\", write = \"allow\", destructive = \"allow\" }}
[[rule]]
do = \"ask\"
tools = [\"probe/echo\"]
remember = \"{remember}\"
"
    ))
}

pub(super) fn serve(policy: &PolicyFile, flags: &[&str], capabilities: Value) -> Server {
    let config = probe();
    let flags = config.flags(&[&["--policy", policy.path()], flags].concat());
    Server::offering(ptc(&[&["serve"][..], &flags].concat()), capabilities)
}

/// The next message with an id.
pub(super) fn next(server: &mut Server) -> Value {
    loop {
        let message = server.receive();
        if message.get("id").is_some() {
            return message;
        }
    }
}

/// Answers a form. Returns its text.
pub(super) fn decide(server: &mut Server, decision: &str) -> String {
    let request = next(server);
    assert_eq!(request["method"], "elicitation/create", "{request}");
    let result = match decision {
        "decline" | "cancel" => json!({ "action": decision }),
        decision => json!({ "action": "accept", "content": { "decision": decision } }),
    };
    server.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    request["params"]["message"].as_str().unwrap().to_owned()
}

/// The text of the program's answer.
pub(super) fn answer(server: &mut Server) -> String {
    let message = next(server);
    assert!(message.get("result").is_some(), "{message}");
    text_of(&message["result"])
}

#[test]
fn the_user_of_the_client_decides_about_each_call() {
    let policy = asks("call");
    let mut server = serve(&policy, &[], json!({ "elicitation": {} }));
    let program = "(:reason (tool/call 'probe/echo {:v \"\u{202e}x\"}) :made)";
    for (decision, want) in [
        ("approve", ":made"),
        ("deny", ":denied"),
        ("decline", ":denied"),
        ("cancel", ":approval_unavailable"),
    ] {
        server.begin_program(program);
        let text = decide(&mut server, decision);
        assert!(
            text.starts_with("May ptc call probe/echo (destructive)?\narguments: {\"v\":\"\\u202ex\"}"),
            "{text}"
        );
        assert!(
            text.contains("\nasked by: program\nrule: policy") && text.contains(": ask probe/echo"),
            "{text}"
        );
        assert_eq!(answer(&mut server), want, "{decision}");
    }
    // An answer counts once: the same call is asked about again.
    server.begin_program("(mapv #(:ok (tool/call 'probe/echo {:v %})) [1 1])");
    decide(&mut server, "approve");
    decide(&mut server, "approve");
    assert_eq!(answer(&mut server), "[true true]");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn alike_calls_of_parallel_branches_are_one_question() {
    let policy = asks("call");
    let mut server = serve(&policy, &[], json!({ "elicitation": {} }));
    server.begin_program("(count (filter :ok (pmap #(tool/call 'probe/echo {:v %}) (range 40))))");
    let text = decide(&mut server, "approve");
    assert!(text.starts_with("May ptc make 40 calls of probe/echo"), "{text}");
    assert!(text.contains("\n1. {\"v\":0}\n") && text.contains("\n40. {\"v\":39}\n"), "{text}");
    assert_eq!(answer(&mut server), "40");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn an_answer_is_remembered_for_as_long_as_the_rule_says() {
    let program = "(mapv #(:ok (tool/call 'probe/echo {:v %})) [1 1 2])";
    for (remember, questions) in [("call", 3), ("args", 2), ("tool", 1), ("run", 1), ("session", 1)] {
        let policy = asks(remember);
        let mut server = serve(&policy, &[], json!({ "elicitation": {} }));
        // The second run is asked about again: it is no session.
        for _ in 0..2 {
            server.begin_program(program);
            (0..questions).for_each(|_| drop(decide(&mut server, "approve")));
            assert_eq!(answer(&mut server), "[true true true]", "{remember}");
        }
        assert_eq!(server.end(), Some(0));
    }
}

#[test]
fn without_a_person_to_ask_the_call_is_refused_at_once() {
    let policy = asks("call");
    let mut server = serve(&policy, &[], json!({}));
    let begun = Instant::now();
    let result = server.run("(let [r (tool/call 'probe/echo {:v 1})] [(:reason r) (:message r)])");
    let text = text_of(&result);
    assert!(text.contains(":approval_unavailable") && text.contains("--approvals wait"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_policy_that_denies_while_a_question_waits_wins() {
    let policy = asks("call");
    let mut server = serve(&policy, &["--catalog-snapshot-mode", "live"], json!({ "elicitation": {} }));
    server.begin_program("(:reason (tool/call 'probe/echo {:v 1}))");
    let request = next(&mut server);
    policy.rewrite("[[rule]]\ndo = \"deny\"\ntools = [\"probe/echo\"]\n");
    until_denied(&mut server);
    let result = json!({ "action": "accept", "content": { "decision": "approve" } });
    server.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    assert_eq!(answer(&mut server), ":denied");
    assert_eq!(server.end(), Some(0));
}

/// A question about one call, and one about a whole program.
#[test]
fn a_tool_that_is_withdrawn_while_a_question_waits_is_not_called() {
    for calls in [1, 2] {
        let (policy, config) = (asks("call"), probe());
        let flags = config.flags(&["--policy", policy.path(), "--config-reload", "watch"]);
        let command = ptc(&[&["serve"][..], &flags].concat());
        let mut server = Server::offering(command, json!({ "elicitation": {} }));
        let call = "(tool/call 'probe/echo {:v 1})";
        server.begin_program(&format!("[{}]", call.repeat(calls)));
        let request = next(&mut server);
        let mut entry = probe_server(&[]);
        entry["tools"] = json!({ "block": ["echo"] });
        std::fs::write(config.path(), json!({ "upstreams": { "probe": entry } }).to_string()).unwrap();
        while text_of(&server.run("(dir 'probe)")).contains("echo {") {}
        let result = json!({ "action": "accept", "content": { "decision": "approve" } });
        server.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
        let said = answer(&mut server);
        assert!(said.contains("tools.block of the configuration names it"), "{said}");
        assert_eq!(server.end(), Some(0));
    }
}

#[test]
fn an_approval_of_a_server_is_none_of_another_program_that_gets_its_name() {
    for calls in [1, 2] {
        let (policy, config) = (asks("call"), probe());
        let flags = config.flags(&["--policy", policy.path(), "--config-reload", "watch"]);
        let command = ptc(&[&["serve"][..], &flags].concat());
        let mut server = Server::offering(command, json!({ "elicitation": {} }));
        let call = "(:reason (tool/call 'probe/echo {:v 1}))";
        server.begin_program(&format!("[{}]", call.repeat(calls)));
        let request = next(&mut server);
        // The same tools with the same texts.
        let mut entry = probe_server(&[]);
        entry["env"] = json!({ "WHO": "another" });
        let servers = json!({ "probe": entry, "other": probe_server(&[]) });
        std::fs::write(config.path(), json!({ "upstreams": servers }).to_string()).unwrap();
        let other = "(:ok (tool/call {:server \"other\" :tool \"echo\" :args {:v 1}}))";
        while text_of(&server.run(other)) != "true" {}
        let result = json!({ "action": "accept", "content": { "decision": "approve" } });
        server.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
        for _ in 0..calls {
            decide(&mut server, "deny");
        }
        let said = answer(&mut server);
        assert!(said.starts_with("[:denied"), "{said}");
        assert_eq!(server.end(), Some(0));
    }
}

/// Makes calls until the server has read a policy that denies them.
pub(super) fn until_denied(server: &mut Server) {
    loop {
        let id = server.begin_program("(:reason (tool/call 'probe/echo {:v 2}))");
        let message = next(server);
        if message["id"] == id {
            assert_eq!(text_of(&message["result"]), ":denied");
            return;
        }
        // It asked: the file before still counts.
        let result = json!({ "action": "accept", "content": { "decision": "deny" } });
        server.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        assert_eq!(text_of(&next(server)["result"]), ":denied");
    }
}

#[test]
fn ptc_approvals_lists_and_answers_what_waits() {
    let (config, policy, state) = (probe(), asks("call"), tempfile::tempdir().unwrap());
    let named = |arguments: &[&str]| {
        let mut command = ptc(arguments);
        command.env("XDG_STATE_HOME", state.path());
        command
    };
    let approvals = |arguments: &[&str]| run(named(&[&["approvals"], arguments].concat()), "");
    let flags = config.flags(&["--policy", policy.path(), "--approvals", "wait"]);
    let mut server = Server::from_command(named(&[&["serve"][..], &flags].concat()));
    for (decision, want) in [("approve", "nil"), ("deny", ":denied")] {
        server.begin_program("(:reason (tool/call 'probe/echo {:v 7}))");
        let waiting = loop {
            let listed: Value =
                serde_json::from_str(&approvals(&["list", "--output", "json"]).stdout).unwrap();
            if listed["waiting"][0].is_object() {
                break listed["waiting"][0].clone();
            }
        };
        let id = waiting["id"].as_str().unwrap();
        assert_eq!(waiting["call"], "probe/echo");
        assert!(approvals(&["show", id]).stdout.contains("arguments: {\"v\":7}"));
        assert_eq!(approvals(&["approve", "0123456789"]).code, Some(2));
        let done = approvals(&[decision, &id[..8]]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(answer(&mut server), want);
        assert_eq!(approvals(&[]).stdout, "no call waits\n");
        assert_eq!(approvals(&[decision, id]).code, Some(2));
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_question_of_a_process_that_was_killed_does_not_wait_any_more() {
    let (config, policy, state) = (probe(), asks("call"), tempfile::tempdir().unwrap());
    let named = |arguments: &[&str]| {
        let mut command = ptc(arguments);
        command.env("XDG_STATE_HOME", state.path());
        command
    };
    let approvals = |arguments: &[&str]| run(named(&[&["approvals"], arguments].concat()), "");
    let flags = config.flags(&["--policy", policy.path(), "--approvals", "wait"]);
    let mut server = Server::from_command(named(&[&["serve"][..], &flags].concat()));
    server.begin_program("(tool/call 'probe/echo {:v 7})");
    let id = loop {
        let listed: Value = serde_json::from_str(&approvals(&["list", "--output", "json"]).stdout).unwrap();
        if let Some(id) = listed["waiting"][0]["id"].as_str() {
            break id.to_owned();
        }
    };
    let killed = std::process::Command::new("kill").args(["-9", &server.id().to_string()]).status().unwrap();
    assert!(killed.success() && server.ended().is_none());
    let refused = approvals(&["approve", &id]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(approvals(&[]).stdout, "no call waits\n");
}
