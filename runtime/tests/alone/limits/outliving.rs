//! No work outlives its run, however the run ends.

use super::common::entry;
use super::common::programs::{options, runtime_of};
use ptc_runtime::prelude_store::{PreludeStore, editing};
use ptc_runtime::tasks::{TaskOwner, alive};
use ptc_runtime::{Scope, StartPolicy};
use std::sync::Arc;
use std::time::Duration;

/// Programs for each way to end, with their limit in milliseconds; with `gives_up`, their caller drops them.
const ENDINGS: [(&str, &str, u64, bool); 9] = [
    ("a value", "(+ 1 2)", 60_000, false),
    ("a failure", "(fail :no)", 60_000, false),
    ("a fault", "(/ 1 0)", 60_000, false),
    ("the deadline in a loop", "(loop [] (recur))", 5, false),
    ("the deadline in branches", "(doall (pmap (fn [_] (loop [] (recur))) (range 10)))", 5, false),
    ("the deadline in a call", "(tool/call {:server \"fake\" :tool \"hang\" :args {}})", 5, false),
    ("memory", "(loop [v []] (recur (conj v (range 1000))))", 60_000, false),
    ("a caller that gives up", "(loop [] (recur))", 60_000, true),
    ("a caller that gives up a call", "(tool/call {:server \"fake\" :tool \"hang\" :args {}})", 60_000, true),
];

/// A text of constants that together take much work, or much memory.
fn costly(constant: &str) -> String {
    let constants: String = (0..500).map(|n| format!("(def c{n} {constant}) ")).collect();
    format!("(ns aa) {constants}")
}

async fn run(place: &Scope, program: &str, timeout_ms: u64, gives_up: bool) {
    let mut options = options();
    options.limits.timeout_ms = timeout_ms;
    options.limits.memory_bytes = 10 << 20;
    let run = place.run(program, options);
    if gives_up {
        // The run may or may not have begun; both cases must end.
        let _ = tokio::time::timeout(Duration::from_millis(2), run).await;
    } else {
        run.await;
    }
}

/// Waits until no work of runs is left.
async fn nothing_is_left(what: &str) {
    for _ in 0..2_000 {
        if alive(TaskOwner::Run) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: {} pieces of work are alive", alive(TaskOwner::Run));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_runs_on_after_a_thousand_runs() {
    let _alone = crate::ALONE.lock().await;
    let store = Arc::new(PreludeStore::in_memory());
    let runtime = runtime_of(vec![entry("fake", &[])], StartPolicy::All, 2).await;
    let (tools, namespace) = editing(&store);
    let place = runtime.base().with(tools, &[namespace]).expect("a place");
    for (what, program, timeout_ms, gives_up) in ENDINGS {
        for _ in 0..110 {
            run(&place, program, timeout_ms, gives_up).await;
        }
        nothing_is_left(what).await;
    }
    for constant in ["(reduce + (range 1900000))", "(reduce (fn [s _] (str s s)) \\\"x\\\" (range 22))"] {
        let source = costly(constant);
        let program =
            format!("(prelude/write {{:id \"aa\" :source \"{source}\" :metadata {{:reason \"x\"}}}})");
        for gives_up in [false, true] {
            for _ in 0..3 {
                run(&place, &program, if gives_up { 60_000 } else { 30 }, gives_up).await;
            }
            nothing_is_left(constant).await;
        }
    }
    assert!(store.list().expect("a store").is_empty(), "no text was kept");
    runtime.shutdown().await;
}

#[test]
fn constants_have_bounds_together() {
    for constant in ["(reduce + (range 1900000))", "(reduce (fn [s _] (str s s)) \"x\" (range 22))"] {
        let error = ptc_runtime::Prelude::compile("aa", &costly(constant)).expect_err("too much");
        let message = error.to_string();
        assert!(message.contains("prelude evaluation exceeded sandbox limits"), "{message}");
    }
}

#[test]
fn a_store_keeps_so_many_bytes_and_no_more() {
    let store = PreludeStore::in_memory();
    let text = |id: &str| format!("(ns {id})\n;{}\n(defn f [] 1)", "x".repeat(900_000));
    let mut written = 0;
    let refused = loop {
        let id = format!("p{written}");
        match store.write(&id, &text(&id), serde_json::Map::new(), None) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "no bound");
    };
    assert_eq!((refused.reason, written), ("store_full", 74));
}
