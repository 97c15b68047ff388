//! Data flows under a policy in sessions: what earlier programs have got, defined and shown counts for later ones.

use super::flows::RULES;
use super::{PolicyFile, probe};
use ptc_tests::serve::{Server, text_of};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server with sessions, and one session of it.
struct Session {
    server: Server,
    id: String,
}

impl Session {
    fn start(flags: &[&str]) -> Session {
        let mut session = Session { server: Server::start(flags), id: String::new() };
        session.renew();
        session
    }

    /// Goes on with another session of the server.
    fn renew(&mut self) {
        if !self.id.is_empty() {
            self.call("lisp_session_close", json!({ "session_id": self.id }));
        }
        let started = self.call("lisp_session_start", json!({}));
        let mut words = started.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
        self.id = words.find(|word| word.len() > 15).unwrap_or_else(|| panic!("{started}")).to_owned();
    }

    fn call(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.server.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        text_of(&answer["result"])
    }

    fn run(&mut self, program: &str) -> String {
        self.call("lisp_session_eval", json!({ "session_id": self.id, "program": program }))
    }

    /// Runs a program whose answer is a number: the model sees no text of a server.
    fn count(&mut self, program: &str) -> String {
        let schema = json!({ "type": "integer" });
        self.call(
            "lisp_session_eval",
            json!({ "session_id": self.id, "program": program, "output_schema": schema }),
        )
    }

    /// True when a call with this value is denied.
    fn is_denied(&mut self, value: &str) -> bool {
        let said = self
            .count(&format!("(if (= :denied (:reason (tool/call 'probe/echo {{:v {value}}}))) 1000 2000)"));
        assert!(said.contains("1000") != said.contains("2000"), "{said}");
        said.contains("1000")
    }
}

#[test]
fn a_session_remembers_what_it_has_got_and_shown() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let mut session = Session::start(&config.flags(&["--policy", policy.path(), "--sessions"]));
    assert!(!session.is_denied("1"));
    // The model learns one number.
    session.count("(count (tool/call! 'probe/stats {}))");
    assert!(!session.is_denied("1"));
    session.run("(do (def s (tool/call! 'probe/stats {})) 1)");
    assert!(session.is_denied("s"));
    // The beginning of `s` was shown, so the model may have been steered.
    assert!(session.is_denied("1"));
}

/// A run without labels on values takes its definitions from the plan: those of ways that it did not take too.
#[test]
fn a_name_that_was_not_defined_says_why() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let mut session = Session::start(&config.flags(&["--policy", policy.path(), "--sessions"]));
    for (define, is_denied) in [
        ("(when (= 0 (count s)) (def y 2))", true),
        ("(do (when (< 0 (count s)) (return 1)) (def y 2))", true),
        ("(when (= 0 (count s)) (def z 2))", false),
    ] {
        session.renew();
        session.count("(do (def y 1) (def z 1) 1)");
        session.count(&format!("(let [s (tool/call! 'probe/stats {{}})] {define} 1)"));
        assert_eq!(session.is_denied("y"), is_denied, "{define}");
    }
}

#[test]
fn a_name_that_is_made_of_names_has_their_sources() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let mut session = Session::start(&config.flags(&["--policy", policy.path(), "--sessions"]));
    session.count("(do (def y 1) 1)");
    session.count("(do (def z (inc y)) 1)");
    session.count("(count (tool/call! 'probe/stats {}))");
    assert!(!session.is_denied("z"));
    session.count("(let [s (tool/call! 'probe/stats {})] (when (= 0 (count s)) (def y 2)) 1)");
    session.count("(do (def z (inc y)) 1)");
    assert!(session.is_denied("z"));
}

#[test]
fn keys_of_the_context_are_followed_through_names_and_functions() {
    let config = probe();
    let policy = PolicyFile::new(&RULES.replace("[labels]\n", "[labels]\nuser = [\"data/question\"]\n"));
    let mut session = Session::start(&config.flags(&["--policy", policy.path(), "--sessions"]));
    let context = json!({ "question": "a", "page": "b" });
    let id = session.id.clone();
    let mut with_context = |program: &str| {
        let arguments = json!({
            "session_id": id, "program": program, "context": context, "output_schema": { "type": "integer" },
        });
        session.call("lisp_session_eval", arguments)
    };
    with_context("(do (def page data/page) (def question data/question) (defn read-page [] data/page) 1)");
    let denied =
        |value: &str| format!("(if (= :denied (:reason (tool/call 'probe/echo {{:v {value}}}))) 1000 2000)");
    for (value, is_denied) in [
        ("1", false),
        ("data/question", false),
        ("data/page", true),
        ("question", false),
        ("page", true),
        ("(read-page)", true),
        ("(first [1 page])", false),
    ] {
        let said = with_context(&denied(value));
        assert_eq!(said.contains("1000"), is_denied, "{value}: {said}");
        assert!(said.contains("1000") != said.contains("2000"), "{said}");
    }
}

/// The text of a fault, and the messages of calls, may quote a server.
#[test]
fn what_failed_programs_and_views_have_shown_outlives_the_process() {
    let rules = RULES.replace("\"probe/stats\"", "\"probe/refuse\"");
    let (config, policy, state) = (probe(), PolicyFile::new(&rules), TempDir::new().unwrap());
    let state = state.path().join("state").to_str().unwrap().to_owned();
    let flags = config.flags(&["--policy", policy.path(), "--sessions", "--state", &state]);
    let view = json!({ "view": "tool_calls" });
    for (program, view) in
        [("(tool/call! 'probe/refuse {})", None), ("(do (tool/call 'probe/refuse {}) 1)", Some(view))]
    {
        let mut session = Session::start(&flags);
        assert!(!session.is_denied("1"));
        session.count(program);
        if let Some(mut view) = view {
            assert!(!session.is_denied("1"), "{program}");
            view["session_id"] = session.id.clone().into();
            session.call("lisp_session_inspect", view);
        }
        assert!(session.is_denied("1"), "{program}");
        let id = session.id.clone();
        drop(session);
        let mut again = Session { server: Server::start(&flags), id };
        assert!(again.is_denied("1"), "{program}");
    }
}

/// With `status = true`, whether a call succeeded is data, so the model that has seen it may have been steered.
#[test]
fn a_status_that_counts_may_have_steered_the_model() {
    for (status, is_denied) in [("status = true\n", true), ("", false)] {
        let (config, policy) = (probe(), PolicyFile::new(&format!("{RULES}{status}")));
        let mut session = Session::start(&config.flags(&["--policy", policy.path(), "--sessions"]));
        session.run("(str (:ok (tool/call 'probe/stats {})))");
        assert_eq!(session.is_denied("1"), is_denied, "{status}");
    }
}

#[test]
fn calls_of_functions_of_earlier_programs_are_decided_by_their_values() {
    let (config, policy) = (probe(), PolicyFile::new(RULES));
    let mut session = Session::start(&config.flags(&["--policy", policy.path(), "--sessions"]));
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
        session.renew();
        session.run(
            "(defn f [v] (str (:reason (tool/call 'probe/echo {:v v})))) (defn g [x] (count x))
             (defn p [a] (str (:reason (tool/call 'probe/echo a))))",
        );
        let said = session.run(program);
        assert_eq!(said.contains("denied"), is_denied, "{program}: {said}");
    }
}
