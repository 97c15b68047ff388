//! Compiling is part of a run: it obeys the run's deadline, cancellation and memory limit, and delays no other run.

use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{FailureKind, Outcome};
use ptc_calls::watcher::RunWatcher;
use ptc_engine::{Runtime, RuntimeConfig};
use ptc_vm::Reason;
use std::time::{Duration, Instant};

/// Far more than the promised milliseconds, so that other load does not matter.
const SOON: Duration = Duration::from_secs(5);

async fn one_worker() -> Runtime {
    Runtime::start(RuntimeConfig { workers: 1, ..RuntimeConfig::default() }).await.expect("it starts")
}

fn limits(timeout_ms: u64, memory_bytes: u64) -> RunOptions {
    RunOptions { limits: Limits { timeout_ms, memory_bytes, ..Limits::default() }, ..RunOptions::default() }
}

/// A program that takes long to compile.
fn long() -> String {
    "(inc 1)".repeat(1_400_000)
}

async fn ends_with(runtime: &Runtime, source: &str, options: RunOptions) -> (FailureKind, String) {
    let begun = Instant::now();
    let failure = runtime.run(source, options).await.result.expect_err("it is refused");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(runtime.run("(+ 1 2)", RunOptions::default()).await.result.expect("an answer").text, "3");
    (failure.reason, failure.message)
}

#[tokio::test]
async fn the_deadline_covers_compilation() {
    let runtime = one_worker().await;
    let mut options = limits(20, 8 << 30);
    options.limits.max_program_bytes = 10_000_000;
    let (reason, message) = ends_with(&runtime, &long(), options).await;
    assert_eq!(
        (reason, message.as_str()),
        (Reason::CompileTimeout.into(), "compilation exceeded 20ms limit (--timeout)")
    );
    runtime.shutdown().await;
}

#[tokio::test]
async fn memory_bounds_compilation() {
    let runtime = one_worker().await;
    let source = format!("(and {})", "1 ".repeat(490_000));
    let (reason, message) = ends_with(&runtime, &source, limits(10_000, 10 << 20)).await;
    assert_eq!(reason, Reason::CompileMemoryExceeded, "{message}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn texts_of_errors_end_soon() {
    let runtime = one_worker().await;
    for unit in ["#", "\0", "é", ": ", "^", "(foo/bar 1)", "(zork 1)", "'a ", "\\ "] {
        let source = unit.repeat(990_000 / unit.len());
        let begun = Instant::now();
        let _ = runtime.run(source, limits(200, 10 << 20)).await;
        assert!(begun.elapsed() < SOON, "{unit:?}: {:?}", begun.elapsed());
    }
    runtime.shutdown().await;
}

/// Sends its outcome over a channel.
struct Told(std::sync::mpsc::Sender<Outcome>);

impl RunWatcher for Told {
    fn ended(self: Box<Self>, outcome: Outcome) {
        let _ = self.0.send(outcome);
    }
}

#[tokio::test]
async fn cancellation_ends_a_compilation() {
    let runtime = one_worker().await;
    let (told, outcome) = std::sync::mpsc::channel();
    let mut options = limits(60_000, 8 << 30);
    options.limits.max_program_bytes = 10_000_000;
    let run = runtime.base().submit(long(), options, Box::new(Told(told)));
    // It ends, whether it is compiling by now or still in the queue.
    tokio::time::sleep(Duration::from_millis(20)).await;
    run.cancel();
    let outcome = outcome.recv_timeout(SOON).expect("an outcome");
    assert_eq!(outcome.result.expect_err("it is cancelled").reason, Reason::Cancelled);
    assert_eq!(runtime.run("(+ 1 2)", RunOptions::default()).await.result.expect("an answer").text, "3");
    runtime.shutdown().await;
}
