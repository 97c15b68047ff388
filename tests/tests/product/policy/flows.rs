//! Data flows under a policy: programs that are planned, scripts and sessions that are not.

use super::approvals::{answer, decide, serve};
use super::{PolicyFile, probe};
use ptc_tests::binary::{eval, run_ptc, value};
use ptc_tests::scripts::ONLY_SCRIPTS;
use ptc_tests::serve::{Server, text_of};
use serde_json::json;

/// Everything may be called; what `stats` answers must not reach `echo`.
const RULES: &str = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }
[labels]
untrusted = [\"probe/stats\"]
[[flow]]
do = \"deny\"
from = \"untrusted\"
to = [\"probe/echo\"]
args = [\"/v\"]
";

#[test]
fn a_call_is_denied_by_what_reaches_its_arguments() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let flags = config.flags(&["--policy", policy.path()]);
    let after = |call: &str| {
        format!("(let [s (tool/call! 'probe/stats {{}})] (:reason (tool/call 'probe/echo {call})))")
    };
    for (program, want) in [
        (after("{:v 1}"), "nil"),
        (after("{:v (count s)}"), ":denied"),
        (after("{:v {:deep [(count s)]}}"), ":denied"),
        (after("{:w (count s)}"), "nil"),
        ("(:reason (tool/call 'probe/echo {:v (:ok (tool/call 'probe/stats {}))}))".to_owned(), "nil"),
        (
            "(when (tool/call! 'probe/stats {}) (:reason (tool/call 'probe/echo {:v 1})))".to_owned(),
            ":denied",
        ),
        (
            "(let [call tool/call s (call 'probe/stats {})] (:reason (call 'probe/echo {:v 1})))".to_owned(),
            ":denied",
        ),
        // A reduction without items, a memoized function, an endless sequence.
        (
            "(let [s (tool/call! 'probe/stats {})]
               (:reason (reduce (fn ([] (tool/call 'probe/echo {:v (count s)})) ([a b] a)) [])))"
                .to_owned(),
            ":denied",
        ),
        ("(:reason (reduce (fn ([] (tool/call 'probe/echo {:v 1})) ([a b] a)) []))".to_owned(), "nil"),
        (
            "(let [s (tool/call! 'probe/stats {}) f (memoize (fn [x] (tool/call 'probe/echo {:v x})))]
               (f (count s)) (:reason (f 1)))"
                .to_owned(),
            ":denied",
        ),
        (
            "(let [s (tool/call! 'probe/stats {}) calls (map (fn [x] (tool/call 'probe/echo {:v x})) (range))]
               (if (= 0 (count s)) 1 (:reason (first (vec (take 1 calls))))))"
                .to_owned(),
            ":denied",
        ),
        ("(first (map :reason (pmap #(tool/call 'probe/echo {:v %}) [1])))".to_owned(), "nil"),
    ] {
        assert_eq!(value(&program, &flags), want, "{program}");
    }
    let record = &eval(&after("{:v (count s)}"), &flags)["upstream_calls"][1];
    let rule = record["policy"]["rule"].as_str().expect("a rule");
    assert!(rule.contains("deny untrusted to probe/echo: probe/stats (line 1) (untrusted) may reach /v of probe/echo (line 1)"), "{rule}");
}

#[test]
fn a_rule_may_refuse_programs_before_they_run() {
    let (config, policy) = (probe(), PolicyFile::new(&format!("{RULES}before = true\n")));
    let flags = config.flags(&["--policy", policy.path()]);
    let program = "(let [s (tool/call! 'probe/stats {})] (tool/call 'probe/echo {:v s}))";
    let ended = eval(program, &flags);
    assert_eq!((&ended["error"], &ended["upstream_calls"]), (&json!("denied"), &json!([])), "{ended}");
    assert_eq!(value("(tool/call 'probe/stats {}) (:ok (tool/call 'probe/echo {:v 1}))", &flags), "true");
}

#[test]
fn a_person_sees_the_flow_before_anything_runs() {
    let policy = PolicyFile::new(&RULES.replace("deny", "ask"));
    let mut server = serve(&policy, &[], json!({ "elicitation": {} }));
    let program = "(let [s (tool/call 'probe/stats {})]
      (:reason (tool/call 'probe/echo {:v (count (:value s))}) :made))";
    for (decision, want) in [("approve with any arguments", ":made"), ("deny", ":denied")] {
        server.begin_program(program);
        let text = decide(&mut server, decision);
        let flow = "probe/stats (line 1) (untrusted) may reach /v of probe/echo (line 2)";
        assert!(text.starts_with("May ptc run this program?") && text.contains(flow), "{text}");
        assert_eq!(answer(&mut server), want, "{decision}");
    }
    // A program without the flow is not asked about.
    assert_eq!(text_of(&server.run("(:ok (tool/call 'probe/echo {:v 1}))")), "true");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_session_remembers_what_it_has_got_and_shown() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let flags = config.flags(&["--policy", policy.path(), "--sessions"]);
    let mut server = Server::start(&flags);
    let mut call = |tool: &str, arguments| {
        let answer = server.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        answer["result"].clone()
    };
    let started = text_of(&call("lisp_session_start", json!({})));
    let id =
        started.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).find(|word| word.len() > 15);
    let id = id.unwrap_or_else(|| panic!("{started}")).to_owned();
    let mut run = |program: &str, schema: Option<&str>| {
        let mut arguments = json!({ "session_id": id, "program": program });
        if let Some(kind) = schema {
            arguments["output_schema"] = json!({ "type": kind });
        }
        text_of(&call("lisp_session_eval", arguments))
    };
    let echo = "(str (:reason (tool/call 'probe/echo {:v 1})))";
    assert!(!run(echo, None).contains("denied"));
    // The model learns one number.
    run("(count (tool/call! 'probe/stats {}))", Some("integer"));
    assert!(!run(echo, None).contains("denied"));
    run("(do (def s (tool/call! 'probe/stats {})) 1)", None);
    let with_name = run("(str (:reason (tool/call 'probe/echo {:v s})))", None);
    assert!(with_name.contains("denied"), "{with_name}");
    // The beginning of `s` was shown, so the model may have been steered.
    let steered = run(echo, None);
    assert!(steered.contains("denied"), "{steered}");
}

#[test]
fn calls_of_functions_of_earlier_programs_are_decided_by_what_came_before() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let flags = config.flags(&["--policy", policy.path(), "--sessions"]);
    for (before, is_denied) in
        [("1", false), ("(tool/call! 'probe/stats {})", true), ("(doc 'probe/echo)", true)]
    {
        let mut server = Server::start(&flags);
        let mut call = |tool: &str, arguments| {
            let answer = server.request("tools/call", json!({ "name": tool, "arguments": arguments }));
            answer["result"].clone()
        };
        let started = text_of(&call("lisp_session_start", json!({})));
        let id = started
            .split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'))
            .find(|word| word.len() > 15)
            .unwrap_or_else(|| panic!("{started}"))
            .to_owned();
        let mut run = |program: &str| {
            text_of(&call("lisp_session_eval", json!({ "session_id": id, "program": program })))
        };
        run("(defn f [v] (str (:reason (tool/call 'probe/echo {:v v}))))");
        // The call stands in no plan: its argument may have everything.
        let said = run(&format!("(do {before} (f 1))"));
        assert_eq!(said.contains("denied"), is_denied, "{before}: {said}");
    }
}

#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn calls_of_scripts_are_decided_by_what_came_before() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let flags = config.flags(&["--policy", policy.path(), ONLY_SCRIPTS[0], ONLY_SCRIPTS[1]]);
    let mut server = Server::start(&flags);
    let mut run = |code: &str| {
        let answer =
            server.request("tools/call", json!({ "name": "execute_program", "arguments": { "code": code } }));
        text_of(&answer["result"])
    };
    assert!(!run("print(await mcp__probe__echo(v=1))").contains("denied"));
    let after = run("await mcp__probe__stats()\nprint(await mcp__probe__echo(v=1))");
    assert!(after.contains("denied") && after.contains("was read before this call"), "{after}");
}

#[test]
fn the_command_finds_labels_and_rules_that_match_nothing() {
    let (config, policy) = (probe(), PolicyFile::new("[labels]\nprivate = [\"prob/*\"]\n"));
    let ran =
        run_ptc(&["policy", "check", "--upstreams-config", config.path(), "--policy", policy.path()], "");
    assert_eq!(ran.code, Some(2));
    assert!((ran.stdout + &ran.stderr).contains("2:12: there is no server prob; did you mean probe?"));
}
