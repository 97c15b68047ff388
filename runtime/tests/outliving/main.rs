//! No task and no thread outlives its run, however the run ends. Alone in its process, because it counts threads.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "names of threads are read from files of the system")]

#[path = "../common/mod.rs"]
mod common;

use common::entry;
use common::programs::{options, runtime_of};
use ptc_base::tasks::{TaskOwner, alive};
use ptc_engine::prelude_store::{PreludeStore, editing};
use ptc_engine::{Scope, StartPolicy};
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

/// What exists in this process apart from runs: tasks of other owners, and the names of threads.
fn others() -> (usize, usize, Vec<String>) {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the threads");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        // A thread may end meanwhile.
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let mut names: Vec<String> = tasks.filter_map(name).collect();
    names.sort();
    (alive(TaskOwner::Connection), alive(TaskOwner::Process), names)
}

/// [`others`], once it stays the same for a while.
async fn settled() -> (usize, usize, Vec<String>) {
    let mut last = others();
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = others();
        if now == last {
            return now;
        }
        last = now;
    }
}

/// Waits until no work of runs is left, and nothing else that was not there before.
async fn nothing_is_left(what: &str, before: &(usize, usize, Vec<String>)) {
    for _ in 0..2_000 {
        if alive(TaskOwner::Run) == 0 && others() == *before {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: {} pieces of work are alive; {:?} became {:?}", alive(TaskOwner::Run), before, others());
}

#[test]
fn nothing_runs_on_after_a_thousand_runs() {
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Threads for blocking work count as well.
        .thread_keep_alive(Duration::from_millis(50))
        .enable_all()
        .build();
    io.expect("threads").block_on(run_in_each_way());
}

async fn run_in_each_way() {
    let store = Arc::new(PreludeStore::in_memory());
    let runtime = runtime_of(vec![entry("fake", &[])], StartPolicy::All, 2).await;
    let (tools, namespace) = editing(&store);
    let place = runtime.base().with(tools, &[namespace]).expect("a place");
    // The first call starts the server.
    run(&place, "(tool/call {:server \"fake\" :tool \"echo\" :args {}})", 60_000, false).await;
    let before = settled().await;
    for (what, program, timeout_ms, gives_up) in ENDINGS {
        for _ in 0..110 {
            run(&place, program, timeout_ms, gives_up).await;
        }
        nothing_is_left(what, &before).await;
    }
    for constant in ["(reduce + (range 1900000))", "(reduce (fn [s _] (str s s)) \\\"x\\\" (range 22))"] {
        let source = costly(constant);
        let program =
            format!("(prelude/write {{:id \"aa\" :source \"{source}\" :metadata {{:reason \"x\"}}}})");
        for gives_up in [false, true] {
            for _ in 0..3 {
                run(&place, &program, if gives_up { 60_000 } else { 30 }, gives_up).await;
            }
            nothing_is_left(constant, &before).await;
        }
    }
    assert!(store.list().expect("a store").is_empty(), "no text was kept");
    runtime.shutdown().await;
}
