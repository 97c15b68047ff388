//! Runs on the I/O runtime: limits, cancellation, defects and shutdown are those of every run, and no worker is needed.

use crate::common::programs;
use ptc_calls::limits::Limits;
use ptc_calls::outcome::{Outcome, RenderedValue};
use ptc_calls::run::account::RunAccount;
use ptc_calls::tools::Notation;
use ptc_calls::watcher::RunWatcher;
use ptc_engine::broker::ToolCall;
use ptc_engine::guest::{AsyncRun, interrupted};
use ptc_engine::{Runtime, RuntimeConfig};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

async fn runtime() -> Runtime {
    Runtime::start(RuntimeConfig { workers: 1, ..RuntimeConfig::default() }).await.expect("a runtime")
}

fn answer(text: &str) -> Outcome {
    Outcome::with_result(Ok(RenderedValue::from_text(text.to_owned())))
}

fn reason(outcome: &Outcome) -> &str {
    outcome.result.as_ref().map_or_else(|failure| failure.reason.raw(), |_| "answer")
}

struct Watcher(Option<oneshot::Sender<Outcome>>);

impl RunWatcher for Watcher {
    fn ended(mut self: Box<Self>, outcome: Outcome) {
        let _ = self.0.take().expect("one end").send(outcome);
    }
}

/// Sends how many futures were dropped before the watcher heard of the end.
struct DroppedFirst(oneshot::Sender<(Outcome, usize)>, Arc<AtomicUsize>);

impl RunWatcher for DroppedFirst {
    fn ended(self: Box<Self>, outcome: Outcome) {
        let dropped = self.1.load(Ordering::SeqCst);
        let _ = self.0.send((outcome, dropped));
    }
}

/// Counts the futures that were dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A run that says when it has begun, and never ends.
fn endless(begun: &Arc<Notify>, dropped: &Arc<AtomicUsize>) -> AsyncRun {
    let (begun, dropped) = (begun.clone(), Dropped(dropped.clone()));
    AsyncRun::new(interrupted, move |_| async move {
        let _dropped = dropped;
        begun.notify_one();
        pending::<Outcome>().await
    })
}

#[tokio::test]
async fn it_ends_with_its_answer_while_every_worker_is_busy() {
    let runtime = runtime().await;
    let limits = Limits { timeout_ms: 60_000, fuel: u64::MAX, loop_limit: u64::MAX, ..Limits::default() };
    let options = ptc_calls::RunOptions { limits, ..Default::default() };
    let busy = runtime.run("(loop [] (recur))", options);
    let outcome =
        runtime.run_async(Limits::default(), AsyncRun::new(interrupted, |_| async { answer("42") })).await;
    assert_eq!(outcome.result.expect("an answer").text, "42");
    drop(busy);
    runtime.shutdown().await;
}

#[tokio::test]
async fn its_deadline_and_its_caller_end_it_and_drop_its_work_first() {
    let runtime = runtime().await;
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let limits = Limits { timeout_ms: 30, ..Limits::default() };
    let outcome = runtime.run_async(limits, endless(&begun, &dropped)).await;
    assert_eq!((reason(&outcome), dropped.load(Ordering::SeqCst)), ("timeout", 1));
    assert!(outcome.usage.duration >= Duration::from_millis(30), "{:?}", outcome.usage);

    begun.notified().await;
    let (sender, ended) = oneshot::channel();
    let long = Limits { timeout_ms: 60_000, ..Limits::default() };
    let submitted = runtime.submit_async(long, endless(&begun, &dropped), Box::new(Watcher(Some(sender))));
    begun.notified().await;
    submitted.cancel();
    assert_eq!((reason(&ended.await.expect("an end")), dropped.load(Ordering::SeqCst)), ("cancelled", 2));

    // Dropping the future of a run cancels it, too.
    let run = runtime.run_async(long, endless(&begun, &dropped));
    begun.notified().await;
    drop(run);
    runtime.shutdown().await;
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn one_that_was_cancelled_at_once_never_begins_or_is_dropped() {
    let runtime = runtime().await;
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    for round in 1..=100 {
        let (sender, ended) = oneshot::channel();
        let run = endless(&begun, &dropped);
        let watcher = Box::new(DroppedFirst(sender, dropped.clone()));
        let submitted = runtime.submit_async(Limits::default(), run, watcher);
        submitted.cancel();
        let (outcome, before) = ended.await.expect("an end");
        assert_eq!(
            (reason(&outcome), before),
            ("cancelled", round),
            "its work is dropped before its end is told"
        );
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 100);
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_large_answer_arrives_whole() {
    let runtime = runtime().await;
    let text = "x".repeat(8 << 20);
    let answered = text.clone();
    let run = AsyncRun::new(interrupted, move |_| async move { answer(&answered) });
    let outcome = runtime.run_async(Limits::default(), run).await;
    assert!(outcome.result.expect("an answer").text == text);
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_defect_ends_it_alone() {
    let runtime = runtime().await;
    let broken = |_| async move { panic!("out of order") };
    let outcome = runtime.run_async(Limits::default(), AsyncRun::new(interrupted, broken)).await;
    let failure = outcome.result.expect_err("a defect");
    assert_eq!(failure.message, "internal defect: out of order");
    let outcome =
        runtime.run_async(Limits::default(), AsyncRun::new(interrupted, |_| async { answer("1") })).await;
    assert_eq!(reason(&outcome), "answer");
    runtime.shutdown().await;
}

/// Calls a tool for a run.
async fn echo(runtime: &Runtime, account: &Arc<RunAccount>) {
    let call = ToolCall {
        server: "fake".to_owned(),
        tool: "echo".to_owned(),
        arguments: r#"{"text":"said"}"#.to_owned(),
        notation: Notation::Json,
    };
    runtime.broker().call(account, call).await.expect("an answer");
}

/// Where a run or its watcher breaks.
#[derive(Clone, Copy, PartialEq)]
enum Breaks {
    AfterItsCall,
    WhenItIsInterrupted,
    WhenACallEnds,
}

/// A watcher that panics when a call ends.
struct Broken(Option<oneshot::Sender<Outcome>>);

impl RunWatcher for Broken {
    fn call_ended(&mut self, _: u64) {
        panic!("out of order");
    }

    fn ended(mut self: Box<Self>, outcome: Outcome) {
        let _ = self.0.take().expect("one end").send(outcome);
    }
}

#[tokio::test]
async fn a_defect_of_the_work_or_of_its_watcher_leaves_the_ledger() {
    let runtime = Arc::new(programs::runtime().await);
    for breaks in [Breaks::AfterItsCall, Breaks::WhenItIsInterrupted, Breaks::WhenACallEnds] {
        let inside = runtime.clone();
        let work = move |account: Arc<RunAccount>| async move {
            echo(&inside, &account).await;
            assert!(breaks != Breaks::AfterItsCall, "out of order");
            pending::<Outcome>().await
        };
        let at_end = move |kind, limits: &Limits| {
            assert!(breaks != Breaks::WhenItIsInterrupted, "out of order");
            interrupted(kind, limits)
        };
        let (sender, ended) = oneshot::channel();
        let watcher: Box<dyn RunWatcher> = match breaks {
            Breaks::WhenACallEnds => Box::new(Broken(Some(sender))),
            Breaks::AfterItsCall | Breaks::WhenItIsInterrupted => Box::new(Watcher(Some(sender))),
        };
        // Only the interrupted one lives to its deadline.
        let timeout_ms = if breaks == Breaks::WhenItIsInterrupted { 300 } else { 60_000 };
        let limits = Limits { timeout_ms, ..Limits::default() };
        let _submitted = runtime.submit_async(limits, AsyncRun::new(at_end, work), watcher);
        let outcome = ended.await.expect("an end");
        let failure = outcome.result.as_ref().expect_err("a defect");
        assert_eq!(failure.message, "internal defect: out of order");
        assert_eq!(outcome.upstream_calls.len(), 1, "{outcome:?}");
    }
    runtime.shutdown().await;
}

/// Lets the run go on when a call has ended.
struct GoesOn(Arc<Notify>, Option<oneshot::Sender<Outcome>>);

impl RunWatcher for GoesOn {
    fn call_ended(&mut self, _: u64) {
        self.0.notify_one();
    }

    fn ended(mut self: Box<Self>, outcome: Outcome) {
        let _ = self.1.take().expect("one end").send(outcome);
    }
}

#[tokio::test]
async fn its_watcher_hears_of_each_call_as_it_ends() {
    let runtime = Arc::new(programs::runtime().await);
    let heard = Arc::new(Notify::new());
    let (inside, waits) = (runtime.clone(), heard.clone());
    let work = move |account: Arc<RunAccount>| async move {
        for _ in 0..3 {
            echo(&inside, &account).await;
            waits.notified().await;
        }
        answer("3")
    };
    let (sender, ended) = oneshot::channel();
    let limits = Limits { timeout_ms: 60_000, ..Limits::default() };
    let watcher = Box::new(GoesOn(heard, Some(sender)));
    let _submitted = runtime.submit_async(limits, AsyncRun::new(interrupted, work), watcher);
    assert_eq!(reason(&ended.await.expect("an end")), "answer");
    runtime.shutdown().await;
}

#[tokio::test]
async fn the_end_of_the_runtime_ends_it_and_later_ones() {
    let runtime = runtime().await;
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (sender, ended) = oneshot::channel();
    let long = Limits { timeout_ms: 60_000, ..Limits::default() };
    let _submitted = runtime.submit_async(long, endless(&begun, &dropped), Box::new(Watcher(Some(sender))));
    begun.notified().await;
    runtime.shutdown().await;
    assert_eq!(reason(&ended.await.expect("an end")), "cancelled");
    let later = runtime.run_async(long, endless(&begun, &dropped)).await;
    assert_eq!((reason(&later), dropped.load(Ordering::SeqCst)), ("cancelled", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_returns_when_each_end_was_delivered() {
    for _ in 0..20 {
        let runtime = runtime().await;
        let begun = Arc::new(Notify::new());
        let begins = begun.clone();
        let work = move |_| async move {
            begins.notify_one();
            pending::<Outcome>().await
        };
        // Large enough to be ended on a thread for blocking work.
        let at_end = |_, _: &Limits| answer(&"x".repeat(1 << 20));
        let (sender, mut ended) = oneshot::channel();
        let long = Limits { timeout_ms: 60_000, ..Limits::default() };
        let _submitted =
            runtime.submit_async(long, AsyncRun::new(at_end, work), Box::new(Watcher(Some(sender))));
        begun.notified().await;
        runtime.shutdown().await;
        assert_eq!(reason(&ended.try_recv().expect("an end")), "answer");
    }
}
