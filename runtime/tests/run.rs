//! A single run: answers, failures, limits, cancellation.

use crate::common;
use common::programs::{failure, options, run, runtime, runtime_of, value};
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{CallFault, CallStatus, Completion, JsonRefusal, Palette, Position};
use ptc_engine::{Runtime, StartPolicy};
use ptc_vm::Reason;
use std::task::Poll;

async fn bare() -> Runtime {
    runtime_of(vec![], StartPolicy::All, 2).await
}

#[tokio::test]
async fn a_value_a_return_and_a_failure() {
    let runtime = bare().await;
    let outcome = run(&runtime, "(println \"hi\") (+ 1 2)").await;
    let answer = outcome.result.unwrap();
    assert_eq!((answer.text.as_str(), answer.completion), ("3", Completion::Value));
    assert_eq!(outcome.prints, ["hi"]);
    assert!(outcome.usage.fuel > Some(0) && outcome.usage.peak_bytes > 0);
    let answer = run(&runtime, "(do (return {:a 1}) 2)").await.result.unwrap();
    assert_eq!((answer.text.as_str(), answer.completion), ("{:a 1}", Completion::Return));
    let failed = failure(&runtime, "(fail {:why \"x\"})").await;
    assert_eq!((failed.reason, failed.value.as_deref()), (Reason::Fail.into(), Some("{:why \"x\"}")));
    assert_eq!(failure(&runtime, "(fail \"plain\")").await.message, "plain");
}

#[tokio::test]
async fn a_failure_keeps_its_value_once() {
    let runtime = bare().await;
    let long = "(let [s (apply str (repeat 300000 \"é\"))]";
    for (program, first) in [(format!("{long} (fail s))"), "é"), (format!("{long} (fail [s s]))"), "[")] {
        let failed = failure(&runtime, &program).await;
        assert!(failed.value.as_ref().unwrap().len() > 600_000);
        for message in [&failed.message, &failed.reports[0].message] {
            assert!(message.chars().count() == 1_000 && message.starts_with(first) && message.ends_with('…'));
        }
        let (compact, text) = (failed.compact(), failed.text("program", Palette::PLAIN));
        assert!(compact.len() < 4_000 && text.len() < 4_000, "{} {}", compact.len(), text.len());
    }
    // Cut to the caller's limit, the value takes no more memory than that.
    let options = RunOptions { result_bytes: 10_000, ..options() };
    let failed = runtime.run(format!("{long} (fail s))"), options).await.result.unwrap_err();
    assert!(failed.value.unwrap().len() <= 10_000 && failed.message.chars().count() == 1_000);
}

#[tokio::test]
async fn prints_before_a_failure_are_kept() {
    let outcome = run(&bare().await, "(println 1) (/ 1 0)").await;
    assert_eq!(outcome.prints, ["1"]);
    assert_eq!(outcome.result.unwrap_err().reason, Reason::ArithmeticError);
}

#[tokio::test]
async fn failures_have_a_place() {
    let runtime = bare().await;
    let failed = failure(&runtime, "(let [a 1]\n  (+ a \"x\"))").await;
    assert_eq!(failed.position().map(|place| place.line), Some(2));
    assert!(failed.text("program", Palette::PLAIN).contains("--> program:2:"));
    assert!(failed.compact().contains("\nat 2:3: (+ a \"x\")\n"), "{}", failed.compact());
    let rejected = failure(&runtime, "(+ nope 1)").await;
    assert_eq!(
        (rejected.reason, rejected.position()),
        (Reason::UnboundVar.into(), Some(Position { line: 1, column: 4 }))
    );
}

#[tokio::test]
async fn context_becomes_data() {
    let runtime = bare().await;
    let with = |strict_data| RunOptions {
        context: Some(r#"{"n": 5, "list": [1]}"#.into()),
        strict_data,
        ..RunOptions::default()
    };
    let text = runtime.run("[data/n data/list data/absent]", with(false)).await.result.unwrap().text;
    assert_eq!(text, "[5 [1] nil]");
    let failed = runtime.run("data/absent", with(true)).await.result.unwrap_err();
    assert_eq!(failed.reason, Reason::RuntimeError);
    let broken = RunOptions { context: Some("[1]".into()), ..RunOptions::default() };
    assert!(runtime.run("1", broken).await.result.is_err());
}

#[tokio::test]
async fn answers_are_cut_and_rendered_as_json() {
    let runtime = bare().await;
    let cut = RunOptions { result_bytes: 10, want_json: true, ..RunOptions::default() };
    let answer = runtime.run("(vec (range 100))", cut).await.result.unwrap();
    assert!(answer.truncated && answer.text.len() <= 10 && answer.text_bytes > 10);
    assert!(answer.json.unwrap().unwrap().ends_with(",99]"));
    // The full size of a cut value is counted up to the caller's limit.
    for (counted, bytes) in [(10_000, 291), (100, 101)] {
        let cut = RunOptions { result_bytes: 10, counted_bytes: counted, ..RunOptions::default() };
        let answer = runtime.run("(vec (range 100))", cut).await.result.unwrap();
        assert_eq!((answer.text.as_str(), answer.text_bytes), ("[0 1 2 3 4", bytes));
    }
    let json = RunOptions { want_json: true, json_bytes: 20, ..RunOptions::default() };
    let refused = runtime.run("{:a [inc]}", json.clone()).await.result.unwrap().json;
    assert!(matches!(refused, Some(Err(JsonRefusal::NotEncodable { path })) if path.contains('a')));
    let refused = runtime.run("(vec (range 100))", json).await.result.unwrap().json;
    assert!(matches!(refused, Some(Err(JsonRefusal::TooLarge { .. }))));
    let both = RunOptions { want_json: true, ..RunOptions::default() };
    let refused =
        runtime.run("{:rows [{:n 1 \"n\" 2}]}", both).await.result.unwrap().json.unwrap().unwrap_err();
    assert_eq!(refused.to_string(), "the keys \"n\" and :n have the same name in JSON (at rows[0].n)");
}

/// The first run is on a worker, later ones might be on the caller's thread.
#[tokio::test]
async fn nil_for_text_that_is_not_json_is_noted() {
    let runtime = bare().await;
    for _ in 0..3 {
        let outcome = run(&runtime, "(map json/parse-string [\"{\" \"1\" \"x\"])").await;
        assert_eq!(outcome.result.unwrap().text, "[nil 1 nil]");
        let [note] = &outcome.notes[..] else { panic!("{:?}", outcome.notes) };
        assert!(
            note.starts_with("json: nil stands for a text that is not JSON (") && note.contains("2 texts")
        );
    }
    assert!(run(&runtime, "(json/parse-string \"1\")").await.notes.is_empty());
}

/// The first run is on a worker, later ones might be on the caller's thread.
#[tokio::test]
async fn what_a_text_does_not_mean_is_noted() {
    let runtime = bare().await;
    for _ in 0..3 {
        for (program, said) in [
            ("((fn [x & xs] (if xs 1 2)) 0)", "line 1, column 19: xs is never nil"),
            ("(count \"\\u00e9\")", "line 1, column 9: \\u00e9 is not decoded"),
            ("(+ 1 2))", "line 1, column 8: extra ')' skipped"),
        ] {
            let outcome = run(&runtime, program).await;
            assert!(outcome.result.is_ok(), "{program}");
            let [note] = &outcome.notes[..] else { panic!("{:?}", outcome.notes) };
            assert!(note.starts_with(said), "{note}");
        }
    }
}

#[tokio::test]
async fn what_is_rendered_of_a_result_counts_together() {
    let runtime = bare().await;
    let limits = Limits { memory_bytes: 1_000_000, ..Limits::default() };
    let program = "(vec (range 88000))";
    let text = RunOptions { limits, ..RunOptions::default() };
    assert!(runtime.run(program, text.clone()).await.result.is_ok());
    let both = RunOptions { want_json: true, ..text };
    assert_eq!(runtime.run(program, both).await.result.unwrap_err().reason, Reason::MemoryExceeded);
}

#[tokio::test]
async fn budgets_end_programs_and_the_worker_goes_on() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    let limits = Limits { timeout_ms: 30, ..Limits::default() };
    let quick = RunOptions { limits, ..RunOptions::default() };
    let failed = runtime.run("(loop [] (recur))", quick).await.result.unwrap_err();
    assert_eq!(
        (failed.reason, failed.message.as_str()),
        (Reason::Timeout.into(), "execution exceeded 30ms limit (--timeout)")
    );
    let limits = Limits { fuel: 10_000, ..Limits::default() };
    let lean = RunOptions { limits, ..RunOptions::default() };
    assert_eq!(runtime.run("(loop [] (recur))", lean).await.result.unwrap_err().reason, Reason::FuelExceeded);
    let limits = Limits { memory_bytes: 1 << 20, timeout_ms: 60_000, ..Limits::default() };
    let small = RunOptions { limits, ..RunOptions::default() };
    let failed = runtime.run("(defn f [n] (+ 1 (f n))) (f 1)", small).await.result.unwrap_err();
    assert_eq!(failed.reason, Reason::MemoryExceeded);
    let limits = Limits { max_program_bytes: 3, ..Limits::default() };
    let short = RunOptions { limits, ..RunOptions::default() };
    assert_eq!(runtime.run("(+ 1 2)", short).await.result.unwrap_err().reason, Reason::ProgramTooLarge);
    assert_eq!(value(&runtime, "(+ 1 2)").await, "3");
}

#[tokio::test]
async fn dropping_the_future_stops_a_busy_program() {
    let runtime = runtime_of(vec![], StartPolicy::All, 1).await;
    drop(runtime.run("(loop [] (recur))", options()));
    {
        let busy = runtime.run("(loop [] (recur))", options());
        tokio::pin!(busy);
        assert!(futures_util::poll!(&mut busy).is_pending());
    }
    // The only worker is free again.
    assert_eq!(value(&runtime, "(+ 1 2)").await, "3");
}

#[tokio::test]
async fn a_program_sees_the_timeout_of_a_call_before_its_own() {
    let runtime = runtime().await;
    let limits = Limits { timeout_ms: 2_000, ..Limits::with_upstreams() };
    assert!(limits.upstream_call_timeout_ms > limits.timeout_ms);
    let hang = "(select-keys (tool/call {:server \"fake\" :tool \"hang\"}) [:ok :reason])";
    let outcome = runtime.run(hang, RunOptions { limits, ..RunOptions::default() }).await;
    assert_eq!(outcome.result.unwrap().text, "{:ok false :reason :timeout}");
    let [record] = outcome.upstream_calls.as_slice() else { panic!("{:?}", outcome.upstream_calls) };
    assert!(matches!(record.status, CallStatus::Error { reason: CallFault::Timeout, .. }));
    let stats = value(&runtime, "(:value (tool/call 'fake/stats))").await;
    assert!(stats.contains("\"reason\" \"timeout\""), "{stats}");
}

#[tokio::test]
async fn a_program_that_waits_too_long_times_out_and_names_what_it_waited_for() {
    let runtime = runtime().await;
    let limits = Limits { timeout_ms: 200, ..Limits::with_upstreams() };
    let quick = RunOptions { limits, ..RunOptions::default() };
    let outcome = {
        let run = runtime.run("(tool/call {:server \"fake\" :tool \"hang\"})", quick);
        tokio::pin!(run);
        // The event loop that would enforce the call's deadline is on this thread, and gets no time.
        loop {
            if let Poll::Ready(outcome) = futures_util::poll!(&mut run) {
                break outcome;
            }
            std::thread::yield_now();
        }
    };
    let failed = outcome.result.unwrap_err();
    assert_eq!(failed.reason, Reason::Timeout);
    assert!(failed.hints()[0].contains("fake/hang"), "{:?}", failed.hints());
    assert!(failed.position().is_some());
    let [record] = outcome.upstream_calls.as_slice() else { panic!("{:?}", outcome.upstream_calls) };
    assert!(matches!(record.status, CallStatus::Error { reason: CallFault::Cancelled, .. }));
}

#[tokio::test]
async fn dropping_the_future_cancels_calls_in_flight() {
    let runtime = runtime().await;
    let hang = "(tool/call {:server \"fake\" :tool \"hang\"})";
    {
        let waiting = runtime.run(hang, options());
        tokio::pin!(waiting);
        // The later program runs on the same worker, and its answer comes over the same connection, after the first
        // program's request was written.
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("a hung call was answered"),
            _ = value(&runtime, "(tool/call 'fake/stats)") => {}
        }
    }
    loop {
        let stats = value(&runtime, "(:value (tool/call 'fake/stats))").await;
        if stats.contains("\"requestId\"") {
            break;
        }
    }
}

#[tokio::test]
async fn the_clock_is_settable_and_fixed() {
    let runtime = bare().await;
    let fixed = RunOptions { now_ms: Some(1_700_000_000_001), ..options() };
    let program = "[(System/currentTimeMillis) (currentTimeMillis) (java.util.Date.)
                    (pmap (fn [_] (.getTime (java.util.Date.))) [1 2]) (map (fn [f] (f)) [java.util.Date.])]";
    let expected = "[1700000000001 1700000000001 \"2023-11-14T22:13:20.001Z\" \
                     [1700000000001 1700000000001] [\"2023-11-14T22:13:20.001Z\"]]";
    assert_eq!(runtime.run(program, fixed).await.result.unwrap().text, expected);
    // By default it is the real clock, read once.
    let program = "(let [a (currentTimeMillis)]
                     (reduce (fn [n i] (+ n i)) 0 (range 100000))
                     [(= a (currentTimeMillis)) (> a 1700000000000)])";
    assert_eq!(value(&runtime, program).await, "[true true]");
}

#[tokio::test]
async fn programs_after_shutdown_are_cancelled() {
    let runtime = bare().await;
    let late = runtime.run("(loop [] (recur))", options());
    runtime.shutdown().await;
    assert_eq!(late.await.result.unwrap_err().reason, Reason::Cancelled);
}

#[tokio::test]
async fn many_programs_share_few_workers() {
    let runtime = bare().await;
    let runs: Vec<_> = (0..500).map(|n| runtime.run(format!("(reduce + (range {n}))"), options())).collect();
    for (n, run) in runs.into_iter().enumerate() {
        let sum = if n == 0 { 0 } else { n * (n - 1) / 2 };
        assert_eq!(run.await.result.unwrap().text, sum.to_string());
    }
}
