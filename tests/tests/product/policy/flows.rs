//! Data flows under a policy: programs that are planned, scripts and sessions that are not.

use super::approvals::{answer, decide, serve};
use super::{PolicyFile, probe};
use ptc_tests::binary::{eval, run_ptc, value};
use ptc_tests::scripts::ONLY_SCRIPTS;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{Upstreams, probe_server};
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
            "(let [call tool/call s (call 'probe/stats {})] (:reason (call 'probe/echo {:v (count s)})))"
                .to_owned(),
            ":denied",
        ),
        // Functions that only call a builtin, for each item.
        (after("{:v (first (mapv (fn [x] (str x)) [(count s)]))}"), ":denied"),
        (after("{:v (first (keep (fn [x] (str x)) [(count s)]))}"), ":denied"),
        (after("{:v (first (filterv (fn [x] (some? x)) [(count s)]))}"), ":denied"),
        (after("{:v (second (mapv (fn [x] (str x)) [(count s) 1]))}"), "nil"),
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
        // A name that a function defines last, on a way that is not taken.
        (
            "(do (def y 1) (defn g [a] (when a (def y 2)))
               (let [s (tool/call! 'probe/stats {})] (g (= 0 (count s)))) (:reason (tool/call 'probe/echo {:v y})))"
                .to_owned(),
            ":denied",
        ),
    ] {
        assert_eq!(value(&program, &flags), want, "{program}");
    }
    let record = &eval(&after("{:v (count s)}"), &flags)["upstream_calls"][1];
    let rule = record["policy"]["rule"].as_str().expect("a rule");
    assert!(rule.contains("deny untrusted to probe/echo: probe/stats (line 1) (untrusted) may reach /v of probe/echo (line 1)"), "{rule}");
}

#[test]
fn a_call_is_made_whose_values_do_not_carry_what_the_plan_fears() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let flags = config.flags(&["--policy", policy.path()]);
    let after = |value: &str| {
        format!(
            "(let [s (tool/call! 'probe/stats {{}}) n (count s)] (:reason (tool/call 'probe/echo {{:v {value}}})))"
        )
    };
    for (program, want) in [
        // One item of several.
        (after("(first (reverse [n 1]))"), "nil"),
        (after("(last (reverse [n 1]))"), ":denied"),
        (after("(first (concat [1] [n]))"), "nil"),
        (after("(second (concat [1] [n]))"), ":denied"),
        (after("(first (filter odd? (conj [1 3] 5)))"), "nil"),
        (after("(first (filter odd? [1 n]))"), ":denied"),
        // An entry that was replaced.
        (after("(:to (assoc {:to n} :to 1))"), "nil"),
        (after("(:by (assoc {:by n} :to 1))"), ":denied"),
        // A way that is not taken, and one that is.
        (after("(if (:ok (tool/call 'probe/stats {})) 1 n)"), "nil"),
        (after("(if (:ok (tool/call 'probe/stats {})) n 1)"), ":denied"),
        // A condition counts, whichever way is taken.
        (after("(if (< n 0) 2 1)"), ":denied"),
        (after("(loop [i 0] (if (< i n) (recur (inc i)) i))"), ":denied"),
        (after("(let [r (tool/call 'probe/stats {})] (count r))"), ":denied"),
        // Functions that the plan does not know.
        (after("((get {:f (fn [x] x)} :f) 1)"), "nil"),
        (after("(reduce + (map (fn [x] (* x n)) [1 2]))"), ":denied"),
        (after("(apply str (map (fn [x] x) [1 2]))"), "nil"),
        (after("(let [f (memoize (fn [x] n))] (f 1))"), ":denied"),
        (after("(do (def g 1) (when (< n 0) (def g 2)) g)"), ":denied"),
        (after("(first (pmap (fn [x] (+ x n)) [1]))"), ":denied"),
        (after("(str (count (tool/call! 'probe/stats {})))"), ":denied"),
    ] {
        assert_eq!(value(&program, &flags), want, "{program}");
    }
}

#[test]
fn which_server_was_called_may_be_in_what_another_one_answers() {
    let (config, policy) =
        (Upstreams::probe().add("other", probe_server(&[])).write(), PolicyFile::new(RULES));
    let flags = config.flags(&["--policy", policy.path()]);
    let program = |server: &str| {
        format!(
            "(let [n (count (tool/call! 'probe/stats {{}}))]
               (tool/call! {{:server {server} :tool \"echo\" :args {{:w 1}}}})
               (:reason (tool/call 'probe/echo {{:v (tool/call! 'other/echo {{:w 1}})}})))"
        )
    };
    assert_eq!(value(&program("(if (< n 0) \"other\" \"probe\")"), &flags), ":denied");
    assert_eq!(value(&program("\"other\""), &flags), "nil");
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
fn calls_of_functions_of_earlier_programs_are_decided_by_their_values() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let flags = config.flags(&["--policy", policy.path(), "--sessions"]);
    let mut server = Server::start(&flags);
    let mut call = |tool: &str, arguments| {
        let answer = server.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        answer["result"].clone()
    };
    for (program, is_denied) in [
        ("(f 1)", false),
        ("(do (tool/call! 'probe/stats {}) (f 1))", false),
        ("(f (count (tool/call! 'probe/stats {})))", true),
        ("(when (tool/call! 'probe/stats {}) (f 1))", true),
        ("(do (doc 'probe/echo) (f 1))", false),
        ("(f (count (doc 'probe/echo)))", true),
        ("(do (g (tool/call! 'probe/stats {})) (f 1))", false),
        ("(f (g (tool/call! 'probe/stats {})))", true),
        // A key, the number of empty maps, and whether the argument is there.
        ("(p {:v {(str (count (tool/call! 'probe/stats {}))) {}}})", true),
        ("(p {:v (mapv (fn [_] {}) (range (count (tool/call! 'probe/stats {}))))})", true),
        ("(p (if (= 0 (count (tool/call! 'probe/stats {}))) {:v 1} {:w 1}))", true),
        ("(p {:w (count (tool/call! 'probe/stats {}))})", false),
        ("(p {:w 1})", false),
        ("(when (tool/call! 'probe/stats {}) (p {:w 1}))", false),
        ("(f (count (str (budget/remaining))))", false),
        ("(do (tool/call! 'probe/stats {}) (f (count (str (budget/remaining)))))", true),
    ] {
        let started = text_of(&call("lisp_session_start", json!({})));
        let id = started
            .split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'))
            .find(|word| word.len() > 15)
            .unwrap_or_else(|| panic!("{started}"))
            .to_owned();
        let mut run = |program: &str| {
            text_of(&call("lisp_session_eval", json!({ "session_id": id, "program": program })))
        };
        run("(defn f [v] (str (:reason (tool/call 'probe/echo {:v v})))) (defn g [x] (count x))
             (defn p [a] (str (:reason (tool/call 'probe/echo a))))");
        let said = run(program);
        assert_eq!(said.contains("denied"), is_denied, "{program}: {said}");
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
