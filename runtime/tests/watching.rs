//! Observers of a run see suspensions, ended calls and exactly one outcome; and runs may execute on the caller's own
//! thread.

use crate::common;
use common::entry;
use common::programs::{options, runtime_of};
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{CallRecord, Outcome};
use ptc_calls::watcher::RunWatcher;
use ptc_engine::session::SessionLimits;
use ptc_engine::{Runtime, StartPolicy};
use ptc_vm::Reason;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

#[derive(Debug)]
enum Event {
    Suspended(u64),
    Resumed,
    CallEnded(u64),
    Ended(Box<Outcome>),
}

struct Watcher(UnboundedSender<Event>);

impl RunWatcher for Watcher {
    fn suspended(&mut self, live_bytes: u64) {
        let _ = self.0.send(Event::Suspended(live_bytes));
    }

    fn resumed(&mut self) {
        let _ = self.0.send(Event::Resumed);
    }

    fn call_ended(&mut self, ended: u64) {
        let _ = self.0.send(Event::CallEnded(ended));
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        let _ = self.0.send(Event::Ended(Box::new(outcome)));
    }
}

fn watched() -> (Box<Watcher>, UnboundedReceiver<Event>) {
    let (sender, events) = unbounded_channel();
    (Box::new(Watcher(sender)), events)
}

/// Forwards the lines that a run prints.
struct Lines(UnboundedSender<String>);

impl RunWatcher for Lines {
    fn follows(&mut self) -> bool {
        true
    }

    fn printed(&mut self, line: &str) {
        let _ = self.0.send(line.to_owned());
    }

    fn called(&mut self, call: &CallRecord) {
        let _ = self.0.send(format!("call {}", call.tool));
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        let _ = self.0.send(outcome.result.map_or_else(|failure| failure.to_string(), |answer| answer.text));
    }
}

#[tokio::test]
async fn a_program_of_a_session_is_followed_like_any_other() {
    let runtime = runtime_of(vec![entry("fake", &[])], StartPolicy::All, 1).await;
    let session = runtime.session(SessionLimits::default());
    let (sender, mut lines) = unbounded_channel();
    let program = "(println \"one\") (:ok (tool/call 'fake/number)) (println \"two\") 3";
    session.submit(program, options(), None, Box::new(Lines(sender))).expect("nothing else runs there");
    let mut seen = Vec::new();
    while let Some(line) = lines.recv().await {
        seen.push(line);
    }
    assert_eq!(seen, ["one", "call number", "two", "3"]);
}

#[tokio::test]
async fn the_next_program_of_a_session_waits_for_the_end_of_a_cancelled_one_whenever_it_ends() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let session = runtime.session(SessionLimits::default());
    for _ in 0..3_000 {
        let (watcher, mut events) = watched();
        session
            .submit("(loop [] (recur))", options(), None, watcher)
            .expect("nothing else runs there")
            .cancel();
        // The server asks both once. It may end before, between and after the two.
        let permit = loop {
            match session.acquire() {
                Ok(permit) => break permit,
                Err(_) => assert!(session.acquire_after_cancel().is_some(), "it was cancelled"),
            }
        };
        drop(permit);
        assert_eq!(ended(&mut events).await.result.unwrap_err().reason, Reason::Cancelled);
    }
    runtime.shutdown().await;
}

async fn ended(events: &mut UnboundedReceiver<Event>) -> Outcome {
    loop {
        if let Event::Ended(outcome) = events.recv().await.expect("an outcome") {
            return *outcome;
        }
    }
}

#[tokio::test]
async fn a_watcher_sees_suspensions_calls_and_the_end() {
    let runtime = runtime_of(vec![entry("fake", &[])], StartPolicy::All, 1).await;
    let program = "(def xs (mapv inc (range 1000)))
        [(:ok (tool/call 'fake/number)) (:ok (tool/call 'fake/fail)) (count xs)]";
    let (watcher, mut events) = watched();
    runtime.base().submit(program, options(), watcher);
    let mut seen = Vec::new();
    while let Some(event) = events.recv().await {
        seen.push(event);
    }
    let [first, rest @ ..] = seen.as_slice() else { panic!("{seen:?}") };
    assert!(matches!(first, Event::Suspended(bytes) if *bytes >= 16_000), "{first:?}");
    let calls: Vec<u64> =
        rest.iter().filter_map(|e| if let Event::CallEnded(n) = e { Some(*n) } else { None }).collect();
    assert_eq!(calls, [1, 2]);
    let count = |wanted: fn(&Event) -> bool| seen.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|e| matches!(e, Event::Suspended(_))), count(|e| matches!(e, Event::Resumed)));
    let Some(Event::Ended(outcome)) = seen.last() else { panic!("{seen:?}") };
    assert_eq!(outcome.result.as_ref().unwrap().text, "[true false 1000]");
    assert_eq!(count(|e| matches!(e, Event::Ended(_))), 1);
}

#[tokio::test]
async fn a_cancelled_run_and_a_runtime_that_ends_give_an_outcome_too() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let (watcher, mut events) = watched();
    let submitted = runtime.base().submit("(loop [] (recur))", options(), watcher);
    submitted.cancel();
    assert_eq!(ended(&mut events).await.result.unwrap_err().reason, Reason::Cancelled);

    let (watcher, mut events) = watched();
    runtime.base().submit("(loop [] (recur))", options(), watcher);
    let (late, mut late_events) = watched();
    runtime.base().submit("(loop [] (recur))", options(), late);
    runtime.shutdown().await;
    for events in [&mut events, &mut late_events] {
        assert_eq!(ended(events).await.result.unwrap_err().reason, Reason::Cancelled);
    }
}

/// The outcome of a program that runs on this thread.
fn here(runtime: &Runtime, program: &str, options: &RunOptions) -> Option<Outcome> {
    runtime.try_run(program, options.context.as_deref(), options, Outcome::clone)
}

async fn learn(runtime: &Runtime, program: &str, options: &RunOptions) -> Outcome {
    assert!(here(runtime, program, options).is_none(), "nothing is known of {program}");
    runtime.run(program, options.clone()).await
}

#[tokio::test]
async fn a_program_known_to_be_tiny_runs_on_its_callers_thread() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let options = RunOptions { want_json: true, context: Some("{\"n\": 3}".into()), ..RunOptions::default() };
    let program = "(println data/n) {:sum (reduce + (range data/n))}";
    let learnt = learn(&runtime, program, &options).await;
    let now = here(&runtime, program, &options).expect("tiny");
    let (first, second) = (learnt.result.unwrap(), now.result.unwrap());
    assert_eq!((first.text, first.json), (second.text, second.json));
    assert_eq!((learnt.prints, learnt.usage.fuel), (now.prints, now.usage.fuel));
    let failing = "(fail {:why data/n})";
    learn(&runtime, failing, &options).await;
    assert!(here(&runtime, failing, &options).is_none(), "failures are left to a worker");
}

#[tokio::test]
async fn a_context_that_has_to_be_refused_is_left_to_who_submits_it() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let with = |context: &str| RunOptions {
        context: Some(context.into()),
        limits: Limits { max_context_bytes: 8, ..Limits::default() },
        ..RunOptions::default()
    };
    for refused in ["{\"n\": 11}", "{\"\":1}", "{\"/\":1}", "[1]", "{"] {
        let program = format!("(str {})", refused.len());
        runtime.run(program.as_str(), with("{}")).await;
        assert!(here(&runtime, &program, &with("{\"n\":1}")).is_some(), "{refused}");
        assert!(here(&runtime, &program, &with(refused)).is_none(), "{refused}");
    }
}

#[tokio::test]
async fn a_tiny_program_that_grows_is_handed_over_with_nothing_done() {
    let runtime = runtime_of(vec![entry("fake", &[])], StartPolicy::All, 1).await;
    let with = |n: u64| RunOptions {
        context: Some(format!("{{\"n\": {n}}}")),
        limits: Limits { timeout_ms: 60_000, ..Limits::with_upstreams() },
        ..RunOptions::default()
    };
    let programs = [
        ("(loop [i 0] (if (< i data/n) (recur (inc i)) i))", "1000000"),
        ("(count (mapv str (range data/n)))", "1000000"),
        ("(if (< data/n 5) 0 (:value (tool/call 'fake/number)))", "42"),
        ("(if (< data/n 5) 0 (count (str data/n)))", "7"),
    ];
    for (program, answer) in programs {
        learn(&runtime, program, &with(1)).await;
        assert!(here(&runtime, program, &with(1)).is_some(), "{program}");
        let grown = here(&runtime, program, &with(1_000_000));
        if program.contains("(str") {
            assert_eq!(grown.expect("still tiny").result.unwrap().text, answer);
            continue;
        }
        assert!(grown.is_none(), "{program}");
        assert_eq!(runtime.run(program, with(1_000_000)).await.result.unwrap().text, answer);
        assert!(here(&runtime, program, &with(1)).is_none(), "what grew once is not tried again: {program}");
    }
}

#[tokio::test]
async fn a_tiny_program_that_runs_again_and_again_begins_anew_each_time() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let options = RunOptions::default();
    // Definitions, memoized results, printed lines, names made at run time.
    let programs = [
        "(def total (reduce + (range 10))) (println total) total",
        "(let [f (memoize (fn [x] (println x) (* x x)))] [(f 3) (f 3)])",
        "(mapv keyword [\"a\" \"b\"])",
        "(get-in {:a {:b 1}} [:a :b])",
        "(return (re-find #\"b+\" \"abbc\"))",
    ];
    for program in programs {
        let learnt = learn(&runtime, program, &options).await;
        for _ in 0..3 {
            let now = here(&runtime, program, &options).expect(program);
            assert_eq!(now.result.unwrap().text, learnt.result.as_ref().unwrap().text, "{program}");
            assert_eq!((&now.prints, now.usage.fuel), (&learnt.prints, learnt.usage.fuel), "{program}");
            assert_eq!(now.usage.peak_bytes, learnt.usage.peak_bytes, "{program}");
        }
    }
    // More programs than the cache holds.
    for n in 0..100 {
        let program = format!("(+ {n} {})", n % 20);
        learn(&runtime, &program, &options).await;
        let now = here(&runtime, &program, &options).expect("tiny");
        assert_eq!(now.result.unwrap().text, (n + n % 20).to_string());
    }
}

#[tokio::test]
async fn equal_requests_follow_what_differs_beside_their_program() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let text = |outcome: Option<Outcome>| outcome.map(|outcome| outcome.result.unwrap().text);
    let with =
        |context: Option<&str>| RunOptions { context: context.map(str::to_owned), ..RunOptions::default() };
    // Definitions of one request do not exist in the next, whatever ran in between.
    let (define, use_it) = ("(def x 1) x", "(let [x 2] x)");
    for program in [define, use_it] {
        learn(&runtime, program, &with(None)).await;
    }
    for _ in 0..2 {
        assert_eq!(text(here(&runtime, define, &with(None))).as_deref(), Some("1"));
        assert_eq!(text(here(&runtime, use_it, &with(None))).as_deref(), Some("2"));
    }
    assert!(runtime.run("x", with(None)).await.result.is_err());
    // The context is that of the request.
    let program = "[data/n (count \"ab\")]";
    learn(&runtime, program, &with(Some("{\"n\":1}"))).await;
    for n in [1, 2, 1] {
        let context = format!("{{\"n\":{n}}}");
        let answer = text(here(&runtime, program, &with(Some(&context))));
        assert_eq!(answer, Some(format!("[{n} 2]")));
    }
    // So are limits and the requested formats.
    let json = RunOptions { want_json: true, ..RunOptions::default() };
    let outcome = here(&runtime, use_it, &json).expect("tiny");
    assert_eq!(outcome.result.unwrap().json, Some(Ok("2".into())));
    let short =
        RunOptions { limits: Limits { max_program_bytes: 3, ..Limits::default() }, ..RunOptions::default() };
    assert!(here(&runtime, use_it, &short).is_none());
}

#[tokio::test]
async fn a_limit_of_symbols_holds_for_cached_programs_too() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let program = "[:a :b :c]";
    let few = RunOptions { limits: Limits { max_symbols: 2, ..Limits::default() }, ..RunOptions::default() };
    learn(&runtime, program, &RunOptions::default()).await;
    assert!(here(&runtime, program, &RunOptions::default()).is_some());
    assert!(here(&runtime, program, &few).is_none());
    let refused = runtime.run(program, few).await.result.unwrap_err();
    assert_eq!(refused.reason, Reason::SymbolLimitExceeded);
}

#[tokio::test]
async fn what_runs_at_once_is_told_as_by_a_worker() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let cut = RunOptions { result_bytes: 4, ..RunOptions::default() };
    let json = RunOptions { want_json: true, ..RunOptions::default() };
    let (plain, usual) = ("(str \"a\" \"b\")", RunOptions::default());
    for (program, options) in [(plain, &usual), ("(println 1) 2", &usual), ("(range 9)", &cut), ("7", &json)]
    {
        let learnt = learn(&runtime, program, options).await;
        let answer = learnt.result.unwrap();
        for _ in 0..2 {
            let outcome = here(&runtime, program, options).expect("tiny");
            let now = outcome.result.unwrap();
            assert_eq!((now.text, now.json), (answer.text.clone(), answer.json.clone()), "{program}");
            assert_eq!((&outcome.prints, now.truncated), (&learnt.prints, answer.truncated), "{program}");
        }
    }
    runtime.secrets().register("ab-secret");
    let secret = "(str \"ab-\" \"secret\")";
    learn(&runtime, secret, &usual).await;
    for (program, expected) in [(secret, "\"[REDACTED]\""), (plain, "\"ab\"")] {
        let now = here(&runtime, program, &usual).expect("tiny");
        assert_eq!(now.result.unwrap().text, expected);
    }
}
