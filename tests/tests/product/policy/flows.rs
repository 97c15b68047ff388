//! Data flows under a policy: programs that are planned, scripts and sessions that are not.

use super::approvals::{answer, decide, serve};
use super::{PolicyFile, probe};
use ptc_tests::binary::{eval, ptc, run_ptc, value};
use ptc_tests::scripts::ONLY_SCRIPTS;
use ptc_tests::serve::{Server, text_of};
use ptc_tests::upstreams::{Upstreams, probe_server};
use serde_json::json;

/// Everything may be called; what `stats` answers must not reach `echo`.
pub(super) const RULES: &str = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }
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

/// The plan knows a list as a whole. What its items have inside is decided by their values, at the call.
#[test]
fn parts_of_lists_are_told_apart_by_their_values() {
    let rules = "default = { read = \"allow\", write = \"allow\", destructive = \"allow\" }
flows = \"standard\"
[labels]
untrusted = [\"probe/stats\"]
closed = [\"probe/*\"]
";
    let (config, policy) = (probe(), PolicyFile::new(rules));
    let flags = config.flags(&["--policy", policy.path()]);
    for (item, is_sent) in [
        ("{:recipient \"GB1\" :note (count s)}", true),
        ("{:note {:a {:b {:c {:d {:e (count s)}}}}}}", true),
        ("{:recipient (count s) :note 1}", false),
        ("{:note {:a {:b {:c {:d {:fileID (count s)}}}}}}", false),
    ] {
        let program = format!(
            "(let [s (tool/call! 'probe/stats {{}})] (:reason (tool/call 'probe/echo {{:transfers [{item}]}})))"
        );
        assert_eq!(value(&program, &flags) == "nil", is_sent, "{item}");
    }
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

/// What one script has read stays in the names of its session.
#[test]
#[cfg_attr(not(jail), ignore = "scripts cannot be jailed here")]
fn scripts_of_one_session_are_decided_by_what_came_before() {
    let limit = "[[limit]]\ntools = [\"probe/refuse\"]\nper = \"session\"\nlimit = 'calls <= 1 per day'\n";
    let (config, policy, state) =
        (probe(), PolicyFile::new(&format!("{RULES}{limit}")), tempfile::tempdir().unwrap());
    let flags = config.flags(&["--policy", policy.path(), ONLY_SCRIPTS[0], ONLY_SCRIPTS[1], "--sessions"]);
    let mut command = ptc(&[&["serve"][..], &flags].concat());
    command.env("XDG_STATE_HOME", state.path());
    let mut server = Server::from_command(command);
    let mut run = |code: &str, session: &str| {
        let arguments = json!({ "code": code, "session_id": session });
        let answer =
            server.request("tools/call", json!({ "name": "execute_program", "arguments": arguments }));
        let text = text_of(&answer["result"]);
        let id = text.split("[session_id: ").nth(1).and_then(|rest| rest.split(']').next());
        (id.unwrap_or_else(|| panic!("{text}")).to_owned(), text)
    };
    let (id, _) = run("seen = await mcp__probe__stats()", "new");
    let (_, after) = run("print(await mcp__probe__echo(v=str(seen)))", &id);
    assert!(after.contains("denied") && after.contains("was read before this call"), "{after}");
    // Another session has read nothing, and has limits of its own.
    let (other, said) = run("print(await mcp__probe__echo(v=1))", "new");
    assert!(!said.contains("denied"), "{said}");
    let refuse = "try:\n    await mcp__probe__refuse()\nexcept Exception as error:\n    print(error)";
    for (session, is_denied) in [(&id, false), (&id, true), (&other, false), (&other, true)] {
        let (_, said) = run(refuse, session);
        assert_eq!(said.contains("limit calls <= 1 per day"), is_denied, "{said}");
    }
}

#[test]
fn the_command_finds_labels_and_rules_that_match_nothing() {
    let (config, policy) = (probe(), PolicyFile::new("[labels]\nprivate = [\"prob/*\"]\n"));
    let ran =
        run_ptc(&["policy", "check", "--upstreams-config", config.path(), "--policy", policy.path()], "");
    assert_eq!(ran.code, Some(2));
    assert!((ran.stdout + &ran.stderr).contains("2:12: there is no server prob; did you mean probe?"));
}
