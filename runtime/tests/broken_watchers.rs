//! A watcher that panics at any event of a run gets its outcome, and nothing else breaks: runs of workers, of sessions
//! and of the I/O runtime.

use crate::common;
use common::entry;
use common::programs::{options, runtime_of, value};
use ptc_calls::limits::Limits;
use ptc_calls::outcome::{CallRecord, Outcome, RenderedValue};
use ptc_calls::run::account::RunAccount;
use ptc_calls::tools::Notation;
use ptc_calls::watcher::{RunView, RunWatcher};
use ptc_engine::broker::ToolCall;
use ptc_engine::guest::{AsyncRun, interrupted};
use ptc_engine::session::SessionLimits;
use ptc_engine::{Runtime, StartPolicy};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The events of a run, each of which a watcher may break at.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BreaksAt {
    Entered,
    Begun,
    Suspended,
    Resumed,
    CallEnded,
    Called,
    Printed,
    Ended,
}

use BreaksAt::{Begun, CallEnded, Called, Ended, Entered, Printed, Resumed, Suspended};

const EVENTS: [BreaksAt; 8] = [Entered, Begun, Suspended, Resumed, CallEnded, Called, Printed, Ended];

struct Broken(BreaksAt, UnboundedSender<Outcome>);

impl Broken {
    fn hears(&self, event: BreaksAt) {
        assert!(self.0 != event, "out of order");
    }
}

impl RunWatcher for Broken {
    fn entered(&mut self, _: RunView) {
        self.hears(Entered);
    }

    fn begun(&mut self) {
        self.hears(Begun);
    }

    fn suspended(&mut self, _: u64) {
        self.hears(Suspended);
    }

    fn resumed(&mut self) {
        self.hears(Resumed);
    }

    fn call_ended(&mut self, _: u64) {
        self.hears(CallEnded);
    }

    fn follows(&mut self) -> bool {
        true
    }

    fn called(&mut self, _: &CallRecord) {
        self.hears(Called);
    }

    fn printed(&mut self, _: &str) {
        self.hears(Printed);
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        let _ = self.1.send(outcome);
        self.hears(Ended);
    }
}

/// Checks that there is one outcome: that of the program, or a defect where the watcher has broken the run.
async fn assert_outcome(mut outcomes: UnboundedReceiver<Outcome>, is_defect: bool, ending: &str, case: &str) {
    let outcome = outcomes.recv().await.expect("an outcome");
    let ended = outcome.result.map_or_else(|failure| failure.message, |answer| answer.text);
    assert_eq!(ended, if is_defect { "internal defect: out of order" } else { ending }, "{case}");
    assert!(outcomes.recv().await.is_none(), "one outcome: {case}");
}

/// Programs, the events at which a watcher breaks their run, and how they end. What is reported with the end breaks
/// nothing: the program is over.
const PROGRAMS: [(&str, &[BreaksAt], &str); 3] = [
    (
        "(println \"one\") (:ok (tool/call 'fake/number)) (println \"two\") 3",
        &[Entered, Begun, Suspended, Resumed, Printed],
        "3",
    ),
    (
        "(:ok (tool/call 'fake/number)) (println \"one\") (println \"two\") 3",
        &[Entered, Begun, Suspended, Resumed],
        "3",
    ),
    ("(println \"one\") (fail \"two\")", &[Entered, Begun], "two"),
];

#[tokio::test]
async fn the_worker_of_a_program_goes_on() {
    let runtime = runtime_of(vec![entry("fake", &[])], StartPolicy::All, 1).await;
    for (program, breaks_its_run, ending) in PROGRAMS {
        for breaks_at in EVENTS {
            let case = format!("{program} {breaks_at:?}");
            let (sender, outcomes) = unbounded_channel();
            runtime.base().submit(program, options(), Box::new(Broken(breaks_at, sender)));
            assert_outcome(outcomes, breaks_its_run.contains(&breaks_at), ending, &case).await;
            assert_eq!(value(&runtime, "(+ 1 2)").await, "3", "{case}");
        }
    }
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_session_goes_on_and_keeps_what_a_program_defined_that_was_over() {
    let runtime = runtime_of(vec![entry("fake", &[])], StartPolicy::All, 1).await;
    let session = runtime.session(SessionLimits::default());
    let run = |program: &str| session.run(program, options(), None).expect("nothing else runs there");
    let mut kept = 0;
    assert!(run("(def n 0)").await.result.is_ok());
    for (program, breaks_its_run, ending) in PROGRAMS {
        for breaks_at in EVENTS {
            let case = format!("{program} {breaks_at:?}");
            let (sender, outcomes) = unbounded_channel();
            let watcher = Box::new(Broken(breaks_at, sender));
            let defining = format!("(def n (inc n)) {program}");
            session.submit(defining, options(), None, watcher).expect("nothing else runs there");
            let is_defect = breaks_its_run.contains(&breaks_at);
            assert_outcome(outcomes, is_defect, ending, &case).await;
            kept += u32::from(!is_defect && ending == "3");
            let answer = run("n").await.result.expect("a value");
            assert_eq!(answer.text, kept.to_string(), "{case}");
        }
    }
    runtime.shutdown().await;
}

/// A run on the I/O runtime: one call, and `goes_on` after it, so that the watcher hears of the call before the end.
fn calling(runtime: &Arc<Runtime>, goes_on: bool) -> AsyncRun {
    let runtime = runtime.clone();
    AsyncRun::new(interrupted, move |account: Arc<RunAccount>| async move {
        let call = ToolCall {
            server: "fake".to_owned(),
            tool: "number".to_owned(),
            arguments: "{}".to_owned(),
            notation: Notation::Json,
        };
        runtime.broker().call(&account, call).await.expect("an answer");
        if goes_on {
            tokio::task::yield_now().await;
        }
        Outcome::with_result(Ok(RenderedValue::from_text("3".to_owned())))
    })
}

#[tokio::test]
async fn a_run_of_the_io_runtime_has_its_calls_in_its_outcome() {
    let runtime = Arc::new(runtime_of(vec![entry("fake", &[])], StartPolicy::All, 1).await);
    let rows: [(bool, &[BreaksAt]); 2] =
        [(false, &[Entered, Begun, Suspended]), (true, &[Entered, Begun, Suspended, CallEnded, Called])];
    for (goes_on, breaks_its_run) in rows {
        for breaks_at in EVENTS {
            let case = format!("{goes_on} {breaks_at:?}");
            let (sender, mut outcomes) = unbounded_channel();
            let limits = Limits { timeout_ms: 60_000, ..Limits::default() };
            let watcher = Box::new(Broken(breaks_at, sender));
            let _submitted = runtime.submit_async(limits, calling(&runtime, goes_on), watcher);
            let outcome = outcomes.recv().await.expect("an outcome");
            let calls = outcome.upstream_calls.len();
            assert_eq!(calls, usize::from(!matches!(breaks_at, Entered | Begun | Suspended)), "{case}");
            let ended = outcome.result.map_or_else(|failure| failure.message, |answer| answer.text);
            let is_defect = breaks_its_run.contains(&breaks_at);
            assert_eq!(ended, if is_defect { "internal defect: out of order" } else { "3" }, "{case}");
            assert!(outcomes.recv().await.is_none(), "one outcome: {case}");
        }
    }
    runtime.shutdown().await;
}
