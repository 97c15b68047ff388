//! Benchmark of host tools: 1,000 calls in flight, compared with calling the same async function without a
//! program.
//!
//! The baseline spawns a task for each call and joins them all after the last spawn. The cost of a call is
//! the difference between adjacent rounds, less the time of the same program without calls: one millisecond
//! of difference is one microsecond a call.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptc_calls::limits::Limits;
use ptc_calls::{Effect, HostTool, RunOptions};
use ptc_engine::Runtime;
use ptc_runtime::schemars::JsonSchema;
use serde::Deserialize;
use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};

const CALLS: u64 = 1_000;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "ptc_runtime::schemars")]
struct Number {
    n: u64,
}

/// Yields once, so that all calls are in flight before the first has ended.
async fn next(number: u64) -> u64 {
    tokio::task::yield_now().await;
    number + 1
}

fn took(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn host_tools(criterion: &mut Criterion) {
    let Ok(io) = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() else {
        return;
    };
    let tool =
        HostTool::new("next", |Number { n }: Number| async move { Ok::<_, Infallible>(next(n).await) });
    let started = io.block_on(Runtime::builder().workers(1).tool(tool.effect(Effect::Read)).start());
    let Ok(runtime) = started else { return };
    let limits = Limits { max_upstream_calls: CALLS, parallel_width: CALLS, ..Limits::with_upstreams() };
    let options = RunOptions { limits, ..RunOptions::default() };
    let run = |program: &'static str| {
        let outcome = io.block_on(runtime.run(program, options.clone()));
        assert!(outcome.result.is_ok(), "{outcome:?}");
        black_box(outcome);
    };
    let without = "(reduce + (pmap (fn [n] (inc n)) (range 1000)))";
    let with = "(reduce + (pmap (fn [n] (tool/next n)) (range 1000)))";
    let with_maps = "(reduce + (pmap (fn [n] (tool/next {:n n})) (range 1000)))";
    let spawned = || {
        io.block_on(async {
            let tasks: Vec<_> = (0..CALLS).map(|number| tokio::spawn(next(number))).collect();
            for task in tasks {
                black_box(task.await.is_ok());
            }
        });
    };
    let mut group = criterion.benchmark_group("host tools");
    group.throughput(Throughput::Elements(CALLS));
    group.bench_function("spawned async calls", |bencher| bencher.iter(spawned));
    group.bench_function("pmap without calls", |bencher| bencher.iter(|| run(without)));
    group.bench_function("pmap of calls", |bencher| bencher.iter(|| run(with)));
    group.bench_function("pmap of calls by map", |bencher| bencher.iter(|| run(with_maps)));
    group.bench_function("calls over async calls", |bencher| {
        bencher.iter_custom(|rounds| {
            let (mut calls, mut others) = (Duration::ZERO, Duration::ZERO);
            for _ in 0..rounds {
                calls += took(|| run(with));
                others += took(spawned) + took(|| run(without));
            }
            calls.saturating_sub(others)
        });
    });
    group.finish();
}

criterion_group!(benches, host_tools);
criterion_main!(benches);
