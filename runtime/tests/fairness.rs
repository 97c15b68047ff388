//! No program keeps others waiting: neither endless programs, nor long native operations, nor programs that hold
//! memory.
//!
//! Nothing here is timed. The test waits for the program that must not be delayed, while the others cannot end by
//! themselves before it.

use crate::common;
use common::entry;
use common::programs::{options, runtime_of};
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_engine::{Capacity, Runtime, RuntimeConfig, StartPolicy};
use ptc_vm::Reason;
use std::time::Duration;

/// Programs that run far longer than a test may: they spend most of their time in one native operation.
const LONG: [(&str, &str); 8] = [
    ("loop", "(loop [n 0] (recur (inc n)))"),
    (
        "sort",
        "(let [v (vec (map (fn [n] (mod (* n 7919) 1000003)) (range 400000)))] (loop [] (sort v) (recur)))",
    ),
    (
        "equality of shared structure",
        "(let [dag (fn [] (reduce (fn [a _] [a a]) nil (range 64)))] (= (dag) (dag)))",
    ),
    ("bigint", "(loop [] (reduce * (range 1 200000)) (recur))"),
    (
        "pr-str of shared structure",
        "(let [d (reduce (fn [a _] [a a]) nil (range 22))] (loop [] (pr-str d) (recur)))",
    ),
    ("JSON of a large value", "(let [v (vec (range 500000))] (loop [] (json/generate-string v) (recur)))"),
    ("printing the result", "(reduce (fn [a _] [a a]) nil (range 64))"),
    ("search", "(let [s (apply str (repeat 500000 \"ab\"))] (loop [] (re-seq #\"(a|b)*c\" s) (recur)))"),
];

fn roomy() -> RunOptions {
    let limits = Limits {
        timeout_ms: 600_000,
        fuel: u64::MAX >> 1,
        memory_bytes: 1 << 30,
        ..Limits::with_upstreams()
    };
    RunOptions { limits, result_bytes: 1 << 40, ..RunOptions::default() }
}

async fn one_worker() -> Runtime {
    runtime_of(vec![], StartPolicy::All, 1).await
}

/// Runs fifty different short programs, one after the other.
async fn short_programs_end(runtime: &Runtime, beside: &str) {
    for n in 0..50 {
        let short = tokio::time::timeout(
            Duration::from_secs(60),
            runtime.run(format!("(+ {n} (reduce + (range 100)))"), options()),
        );
        let outcome = short.await.unwrap_or_else(|_| panic!("a short program waits for {beside}"));
        assert_eq!(outcome.result.map(|answer| answer.text).ok(), Some((4_950 + n).to_string()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_programs_run_beside_any_number_of_long_native_operations() {
    for (name, program) in LONG {
        let runtime = one_worker().await;
        let mut long: Vec<_> = (0..20).map(|_| runtime.run(program, roomy())).collect();
        short_programs_end(&runtime, name).await;
        for (index, run) in long.iter_mut().enumerate() {
            assert!(futures_util::poll!(run).is_pending(), "{name} {index} has ended");
        }
        // They end at their next poll, wherever they are.
        runtime.shutdown().await;
        for run in long {
            assert_eq!(run.await.result.unwrap_err().reason, Reason::Cancelled, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_programs_run_beside_endless_ones_of_every_kind() {
    let runtime = one_worker().await;
    let mut long: Vec<_> =
        (0..5).flat_map(|_| LONG).map(|(_, program)| runtime.run(program, roomy())).collect();
    short_programs_end(&runtime, "forty long ones").await;
    for run in &mut long {
        assert!(futures_util::poll!(run).is_pending());
    }
    // Cancelling one ends only that one.
    for run in long {
        drop(run);
        let short = runtime.run("(+ 1 2)", options()).await;
        assert_eq!(short.result.unwrap().text, "3");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_program_goes_on_beside_any_number_of_new_ones() {
    let runtime = one_worker().await;
    let mut old = std::pin::pin!(runtime.run("(reduce + (map (fn [n] (* n n)) (range 300000)))", roomy()));
    let mut young = 0;
    loop {
        let short = runtime.run(format!("(reduce + (range {young}))"), options());
        tokio::select! {
            biased;
            outcome = &mut old => {
                assert_eq!(outcome.result.unwrap().text, "8999955000050000");
                return;
            }
            _ = short => young += 1,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_tools_arrive_while_long_operations_run() {
    let runtime = runtime_of(vec![entry("fake", &[])], StartPolicy::All, 1).await;
    let long: Vec<_> = (0..3).flat_map(|_| LONG).map(|(_, program)| runtime.run(program, roomy())).collect();
    // A program that computes in one branch and calls a tool in another.
    let program = "(pmap (fn [n] (:ok (tool/call 'fake/stats))) (range 20))";
    for _ in 0..5 {
        let text = runtime.run(program, options()).await.result.unwrap().text;
        assert_eq!(text.matches("true").count(), 20);
    }
    drop(long);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadlines_are_kept_beside_long_operations() {
    let runtime = one_worker().await;
    let long: Vec<_> = (0..3).flat_map(|_| LONG).map(|(_, program)| runtime.run(program, roomy())).collect();
    for (name, program) in LONG {
        let limits = Limits { timeout_ms: 50, ..roomy().limits };
        let outcome = runtime.run(program, RunOptions { limits, ..roomy() }).await;
        assert_eq!(outcome.result.unwrap_err().reason, Reason::Timeout, "{name}");
        // Generous: the promise is 50 ms on an idle machine.
        assert!(outcome.usage.duration < Duration::from_secs(2), "{name}: {:?}", outcome.usage.duration);
    }
    drop(long);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_grow_together_only_as_far_as_there_is_room() {
    // Each holds some 24 MB for a while; together they would hold 480 MB.
    let program =
        "(let [v (vec (map inc (range 1500000)))] (reduce + (map (fn [i] (nth v i)) (range 1000))))";
    let load = Capacity { total_bytes: 100 << 20, ..Capacity::default() };
    let config = RuntimeConfig { workers: 2, load, ..RuntimeConfig::default() };
    let runtime = Runtime::start(config).await.unwrap();
    let runs: Vec<_> = (0..20).map(|_| runtime.run(program, roomy())).collect();
    for run in runs {
        let outcome = run.await;
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    }
    // Less than any program needs, so one runs at a time.
    let load = Capacity { total_bytes: 1, ..Capacity::default() };
    runtime.set_load(load);
    let runs: Vec<_> = (0..5).map(|_| runtime.run(program, roomy())).collect();
    for run in runs {
        assert!(run.await.result.is_ok());
    }
    assert_eq!(runtime.run("(+ 1 2)", options()).await.result.unwrap().text, "3");
}

/// Programs that hold 4.25 MiB each and then go on for ever: they call a tool that never answers, or loop.
const HOARDERS: [(&str, &str); 3] = [
    (
        "hoarders that wait",
        "(let [v [(vec (map inc (range 262144))) (vec (map inc (range 16384)))]] (tool/call 'fake/hang) (count v))",
    ),
    (
        "hoarders that loop",
        "(let [v [(vec (map inc (range 262144))) (vec (map inc (range 16384)))]] (loop [n 0] (if (nil? v) n (recur (inc n)))))",
    ),
    (
        "hoarders that grow",
        "(loop [v []] (recur (if (< (count v) 272) (conj v (vec (map inc (range 1024)))) v)))",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_programs_run_beside_others_that_hold_all_memory() {
    for workers in [1, 2] {
        for (name, program) in HOARDERS {
            // Nine of them fill the memory, so that only one of them can go on.
            let load = Capacity { total_bytes: 40 << 20, ..Capacity::default() };
            let servers = vec![entry("fake", &[])];
            let config = RuntimeConfig { servers, workers, load, ..RuntimeConfig::default() };
            let runtime = Runtime::start(config).await.unwrap();
            let limits =
                Limits { memory_bytes: 8 << 20, upstream_call_timeout_ms: 600_000, ..roomy().limits };
            let options = || RunOptions { limits, ..roomy() };
            let mut hoarders: Vec<_> = (0..9).map(|_| runtime.run(program, options())).collect();
            // A long program without memory goes on as well. By its end, the others have had as many quanta as they
            // could use.
            let long = runtime.run("(loop [n 0] (if (< n 2000000) (recur (inc n)) n))", roomy());
            let outcome = tokio::time::timeout(Duration::from_secs(60), long).await;
            let outcome = outcome.unwrap_or_else(|_| panic!("a small program waits for {name}"));
            assert_eq!(outcome.result.unwrap().text, "2000000");
            short_programs_end(&runtime, name).await;
            for hoarder in &mut hoarders {
                assert!(futures_util::poll!(hoarder).is_pending(), "{name}");
            }
            // Once they have gone, everything works as before.
            drop(hoarders);
            let large = runtime.run("(count (vec (map inc (range 1000000))))", roomy()).await;
            assert_eq!(large.result.unwrap().text, "1000000");
        }
    }
}
