//! One question about a whole program, before its first call leaves.

use super::approvals::{answer, asks, decide, next, serve, until_denied};
use super::{PolicyFile, probe};
use ptc_tests::binary::{ptc, run};
use ptc_tests::serve::{Server, text_of};
use serde_json::{Value, json};

/// Two calls whose arguments stand in the text, one with computed ones, and one that needs no approval.
const PROGRAM: &str = "(let [a (tool/call 'probe/stats {})
      b (tool/call 'probe/echo {:v 1})
      c (tool/call 'probe/echo {:w 3 :v 2})]
  (mapv #(:reason % :made) [a b c (tool/call 'probe/echo {:v (inc (count [1]))})]))";

fn forms() -> Value {
    json!({ "elicitation": {} })
}

#[test]
fn one_question_shows_what_the_program_does_and_computed_calls_are_asked_about_later() {
    let policy = asks("call");
    let mut server = serve(&policy, &[], forms());
    server.begin_program(PROGRAM);
    let text = decide(&mut server, "approve");
    let want = "May ptc run this program? It makes these calls, where it gets to them:
1. line 1: probe/stats (destructive) {}: allowed
2. line 2: probe/echo (destructive) {\"v\":1}
3. line 3: probe/echo (destructive) {\"w\":3,\"v\":2}
4. line 4: probe/echo (destructive) with arguments that it computes
";
    assert!(text.starts_with(want), "{text}");
    assert!(text.contains("\nasked by: program"), "{text}");
    let text = decide(&mut server, "deny");
    assert!(text.contains("arguments: {\"v\":2}\nlines of the program: 2, 3, 4\n"), "{text}");
    assert_eq!(answer(&mut server), "[:made :made :made :denied]");
    // Nothing is left of the answer for the next run.
    server.begin_program(PROGRAM);
    decide(&mut server, "approve with any arguments");
    assert_eq!(answer(&mut server), "[:made :made :made :made]");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_call_that_is_made_more_often_than_shown_is_asked_about() {
    let policy = asks("call");
    let mut server = serve(&policy, &[], forms());
    server.begin_program(
        "(do (tool/call 'probe/echo {:v 0}) (mapv (fn [_] (:reason (tool/call 'probe/echo {:v 1}) :made)) [1 2]))",
    );
    let text = decide(&mut server, "approve");
    assert!(text.starts_with("May ptc run this program?"), "{text}");
    let text = decide(&mut server, "deny");
    assert!(text.starts_with("May ptc call probe/echo (destructive)?\narguments: {\"v\":1}\n"), "{text}");
    assert_eq!(answer(&mut server), "[:made :denied]");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_program_that_is_refused_makes_no_call() {
    let policy = asks("call");
    let mut server = serve(&policy, &[], forms());
    for (decision, want) in [
        ("deny", "[:denied :denied :denied :denied]"),
        ("cancel", "[:made :approval_unavailable :approval_unavailable :approval_unavailable]"),
    ] {
        server.begin_program(PROGRAM);
        decide(&mut server, decision);
        assert_eq!(answer(&mut server), want, "{decision}");
    }
    // One call alone is asked about when it is made, and no question comes if nothing is asked about.
    server.begin_program("(:reason (tool/call 'probe/echo {:v 1}) :made)");
    assert!(decide(&mut server, "approve").starts_with("May ptc call probe/echo"));
    assert_eq!(answer(&mut server), ":made");
    assert_eq!(
        text_of(&server.run("(mapv :ok [(tool/call 'probe/stats {}) (tool/call 'probe/stats {})])")),
        "[true true]"
    );
    assert_eq!(server.end(), Some(0));
}

#[test]
fn ptc_approvals_approves_a_program() {
    let (config, policy, state) = (probe(), asks("call"), tempfile::tempdir().unwrap());
    let named = |arguments: &[&str]| {
        let mut command = ptc(arguments);
        command.env("XDG_STATE_HOME", state.path());
        command
    };
    let approvals = |arguments: &[&str]| run(named(&[&["approvals"], arguments].concat()), "");
    let flags = config.flags(&["--policy", policy.path(), "--approvals", "wait"]);
    let mut server = Server::from_command(named(&[&["serve"][..], &flags].concat()));
    server.begin_program(PROGRAM);
    let id = waiting(&approvals);
    assert!(approvals(&["show", &id]).stdout.starts_with("May ptc run this program?"));
    assert_eq!(approvals(&["approve", &id, "--any-arguments"]).code, Some(0));
    assert_eq!(answer(&mut server), "[:made :made :made :made]");
    server.begin_program("(:reason (tool/call 'probe/echo {:v 1}) :made)");
    let id = waiting(&approvals);
    let refused = approvals(&["approve", &id, "--any-arguments"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("shows all arguments"), "{refused:?}");
    assert_eq!(approvals(&["approve", &id]).code, Some(0));
    assert_eq!(answer(&mut server), ":made");
    assert_eq!(server.end(), Some(0));
}

/// The id of the only question, once it is there.
fn waiting(approvals: &impl Fn(&[&str]) -> ptc_tests::binary::Finished) -> String {
    loop {
        let listed: Value = serde_json::from_str(&approvals(&["list", "--output", "json"]).stdout).unwrap();
        if let Some(id) = listed["waiting"][0]["id"].as_str() {
            return id.to_owned();
        }
    }
}

#[test]
fn an_edit_of_the_policy_ends_the_approval_of_a_program() {
    let policy = asks("call");
    let mut server = serve(&policy, &["--catalog-snapshot-mode", "live"], forms());
    server.begin_program(
        "(do (tool/call 'probe/echo {:v 1}) (mapv #(:reason % :made) [(tool/call 'probe/echo {:v 2})]))",
    );
    let request = next(&mut server);
    let denies = "[[rule]]\ndo = \"deny\"\ntools = [\"probe/echo\"]\n";
    policy.rewrite(denies);
    until_denied(&mut server);
    let result = json!({ "action": "accept", "content": { "decision": "approve" } });
    server.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    assert_eq!(answer(&mut server), "[:denied]");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_policy_file_is_needed_for_a_question() {
    let policy =
        PolicyFile::new("default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }\n");
    let mut server = serve(&policy, &[], forms());
    assert_eq!(text_of(&server.run(PROGRAM)), "[:made :made :made :made]");
    assert_eq!(server.end(), Some(0));
}
