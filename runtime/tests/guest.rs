//! A second guest, without any PTC-Lisp: a JSON list of calls, made one after the other over a transport in memory.
//! Budget, ledger, checks, cancellation, deadlines and redaction are those of every run.

use crate::common;
use common::memory::MemoryServer;
use ptc_base::secrets::SecretRegistry;
use ptc_calls::limits::Limits;
use ptc_calls::outcome::{CallFault, CallRecord, CallStatus, Failure, FailureKind, Outcome, RenderedValue};
use ptc_calls::run::account::RunAccount;
use ptc_calls::tools::{LookUp, Notation};
use ptc_calls::watcher::RunWatcher;
use ptc_engine::broker::{CallError, CallPayload, PayloadValue, ToolBroker, ToolCall};
use ptc_engine::guest::{CallId, Guest, MakeGuest, Port, Progress, Reply, TaskHandle};
use ptc_engine::{Runtime, RuntimeConfig, StartPolicy};
use ptc_vm::{Class, InterruptKind};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The guest. Its result is the list of answers.
struct CallList {
    account: Arc<RunAccount>,
    port: Rc<Port>,
    broker: Arc<ToolBroker>,
    left: VecDeque<ToolCall>,
    answers: Vec<Value>,
    under_way: Option<TaskHandle>,
    failure: Option<Failure>,
}

impl CallList {
    /// `calls`: `[server, tool, arguments]` each.
    fn make(broker: &Arc<ToolBroker>, calls: Value) -> MakeGuest {
        let calls: Vec<(String, String, Value)> = serde_json::from_value(calls).expect("a list of calls");
        let call = |(server, tool, arguments): (String, String, Value)| {
            let arguments = arguments.to_string();
            ToolCall { server, tool, arguments, notation: Notation::Json }
        };
        let (broker, left) = (broker.clone(), calls.into_iter().map(call).collect());
        Box::new(move |account, port, _| {
            let (answers, under_way, failure) = (Vec::new(), None, None);
            Ok(Box::new(CallList { account, port, broker, left, answers, under_way, failure }))
        })
    }

    fn ended(&mut self) -> Option<Result<RenderedValue, Failure>> {
        let failed =
            |raw, class| Some(Err(Failure::new(FailureKind::new(raw, class), "the list was stopped")));
        match self.account.interrupted() {
            Some(InterruptKind::Cancelled) => return failed("cancelled", Class::Cancelled),
            Some(InterruptKind::Deadline) => return failed("too_slow", Class::Timeout),
            None => {}
        }
        if let Some(failure) = self.failure.take() {
            return Some(Err(failure));
        }
        let is_over = self.under_way.is_none() && self.left.is_empty();
        is_over.then(|| {
            let text = Value::from(std::mem::take(&mut self.answers)).to_string();
            Ok(RenderedValue { json: Some(Ok(text.clone())), ..RenderedValue::from_text(text) })
        })
    }
}

impl Guest for CallList {
    fn advance(&mut self) -> Progress {
        if let Some(result) = self.ended() {
            let ending = Outcome { prints: vec!["ended".to_owned()], ..Outcome::with_result(result) };
            return Progress::Finished(Box::new(ending));
        }
        if self.under_way.is_none()
            && let Some(call) = self.left.pop_front()
        {
            let (broker, account) = (self.broker.clone(), self.account.clone());
            let work = async move { Reply::Payload(broker.call(&account, call).await) };
            self.under_way = Some(self.port.hand_out(CallId(0), Box::pin(work)));
        }
        Progress::Waiting
    }

    fn answer(&mut self, _: CallId, reply: Reply) {
        self.under_way = None;
        let Reply::Payload(reply) = reply else { panic!("nothing else was handed out") };
        match reply {
            Ok(payload) => self.answers.push(shown(&payload)),
            Err(CallError::World(fault)) => self.answers.push(json!([fault.reason.name(), fault.message])),
            Err(CallError::Wrong(wrong)) => {
                let kind = FailureKind::new("wrong_call", Class::RuntimeError);
                self.failure =
                    Some(Failure::new(kind, format!("{}; {}", wrong.message, wrong.hints.join(" "))));
            }
            Err(CallError::OverMemory { bytes }) => self.answers.push(json!(["over_memory", bytes])),
        }
    }

    fn live_bytes(&self) -> u64 {
        0
    }

    fn close(self: Box<Self>) {}
}

fn shown(payload: &CallPayload) -> Value {
    match payload.value() {
        PayloadValue::Json(text) => serde_json::from_slice(text).expect("JSON"),
        PayloadValue::Text(text) => text.into(),
        PayloadValue::Nothing => Value::Null,
    }
}

async fn runtime_with(server: &MemoryServer, start: StartPolicy, secrets: &SecretRegistry) -> Runtime {
    let (servers, secrets) = (vec![server.entry()], secrets.clone());
    let config = RuntimeConfig { servers, start, workers: 1, secrets, ..RuntimeConfig::default() };
    Runtime::start(config).await.expect("a runtime")
}

fn limits() -> Limits {
    Limits { timeout_ms: 60_000, ..Limits::with_upstreams() }
}

async fn run(runtime: &Runtime, limits: Limits, calls: Value) -> Outcome {
    runtime.run_guest(limits, CallList::make(runtime.broker(), calls)).await
}

fn answers(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.result.as_ref().expect("an answer").text).expect("JSON")
}

fn ledger(outcome: &Outcome) -> Vec<(String, String)> {
    let row = |call: &CallRecord| {
        let status = match &call.status {
            CallStatus::Ok => "ok",
            CallStatus::Error { reason, .. } => reason.name(),
        };
        (call.tool.to_string(), status.to_owned())
    };
    outcome.upstream_calls.iter().map(row).collect()
}

fn rows<const N: usize>(rows: [(&str, &str); N]) -> Vec<(String, String)> {
    rows.map(|(tool, status)| (tool.to_owned(), status.to_owned())).to_vec()
}

#[tokio::test]
async fn calls_are_paid_for_and_entered_whoever_makes_them() {
    let server = MemoryServer::default();
    // No server starts before the first call.
    let runtime = runtime_with(&server, StartPolicy::Lazy, &SecretRegistry::new()).await;
    assert!(matches!(runtime.broker().look_up("memory", "echo"), LookUp::NotLoaded));
    let calls = json!([
        ["memory", "echo", {"rows": [1, 2]}],
        ["memory", "fail", {"why": "not today"}],
        ["memory", "echo", {}],
        ["memory", "echo", {}],
    ]);
    let outcome = run(&runtime, Limits { max_upstream_calls: 3, ..limits() }, calls).await;
    let want =
        json!([{"rows": [1, 2]}, ["upstream_error", "not today"], {}, ["cap_exhausted", "cap_exhausted"]]);
    assert_eq!(answers(&outcome), want);
    let want = rows([("echo", "ok"), ("fail", "upstream_error"), ("echo", "ok"), ("echo", "cap_exhausted")]);
    assert_eq!(ledger(&outcome), want);
    assert_eq!((outcome.usage.upstream_calls, outcome.usage.fuel), (3, None));
    assert_eq!(outcome.upstream_calls[0].result_bytes, Some(14));
    let sent = server.log().iter().filter(|line| line.starts_with("tools/call")).count();
    assert_eq!(sent, 3, "what is over the budget is not sent");
    assert!(matches!(runtime.broker().look_up("memory", "echo"), LookUp::Ready(_)));
    assert!(matches!(runtime.broker().look_up("memory", "ecko"), LookUp::NoTool(_)));
    assert!(matches!(runtime.broker().look_up("memoir", "echo"), LookUp::NoServer));
}

#[tokio::test]
async fn wrong_calls_are_told_as_such_and_nobody_is_asked() {
    let server = MemoryServer::default();
    let runtime = runtime_with(&server, StartPolicy::All, &SecretRegistry::new()).await;
    let table = [
        (
            json!(["memoir", "echo", {}]),
            "no upstream 'memoir' configured. Configured upstreams: memory; Did you",
        ),
        (
            json!(["memory", "ecko", {}]),
            "no tool 'ecko' in upstream 'memory'. Known tools: echo, fail, grow, hang;",
        ),
        (
            json!(["memory", "fail", {"why": 1}]),
            "tool 'memory.fail' rejected args: why must be string, got 1; Write",
        ),
        (
            json!(["memory", "fail", {"whi": "x"}]),
            "tool 'memory.fail' rejected args: unknown arg whi; Did you mean why?",
        ),
        (
            json!(["memory", "fail", [1]]),
            "tool 'memory.fail' rejected args: they must be an object, got a list",
        ),
    ];
    for (call, message) in table {
        let outcome = run(&runtime, limits(), json!([call])).await;
        let failure = outcome.result.unwrap_err();
        assert!(failure.message.starts_with(message), "{}", failure.message);
        assert_eq!((failure.reason.raw(), failure.reason.class()), ("wrong_call", Class::RuntimeError));
        assert_eq!(failure.compact(), failure.message);
        assert!(outcome.upstream_calls.is_empty() && outcome.usage.upstream_calls == 0);
    }
    assert!(!server.log().iter().any(|line| line.starts_with("tools/call")));
    let outcome = run(&runtime, limits(), json!([["memory", "fail", {"unheard_of": 1}]])).await;
    assert!(
        outcome.notes[0].starts_with("the schema of memory/fail has no argument unheard_of"),
        "{outcome:?}"
    );
}

/// Waits for a line in the log of a server.
async fn logged(server: &MemoryServer, beginning: &str) {
    while !server.log().iter().any(|line| line.starts_with(beginning)) {
        tokio::task::yield_now().await;
    }
}

struct Watcher(UnboundedSender<String>);

impl RunWatcher for Watcher {
    fn suspended(&mut self, _: u64) {
        let _ = self.0.send("suspended".to_owned());
    }

    fn call_ended(&mut self, ended: u64) {
        let _ = self.0.send(format!("call {ended}"));
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        let how = outcome.result.as_ref().map_or_else(|failure| failure.reason.raw(), |_| "answer");
        let _ = self.0.send(format!("{how} {:?}", ledger(&outcome)));
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_takes_its_call_back() {
    let server = MemoryServer::default();
    let runtime = runtime_with(&server, StartPolicy::All, &SecretRegistry::new()).await;
    let calls = json!([["memory", "echo", {}], ["memory", "hang", {}], ["memory", "echo", {}]]);
    let (sender, mut events) = unbounded_channel();
    let guest = CallList::make(runtime.broker(), calls);
    let submitted = runtime.submit_guest(limits(), guest, Box::new(Watcher(sender)));
    logged(&server, "tools/call hang").await;
    submitted.cancel();
    let mut seen = Vec::new();
    while let Some(event) = events.recv().await {
        seen.push(event);
    }
    let end = format!("cancelled {:?}", rows([("echo", "ok"), ("hang", "cancelled")]));
    assert_eq!(seen, ["suspended", "call 1", "suspended", &end]);
    logged(&server, "tools/call hang cancelled").await;
}

#[tokio::test]
async fn a_call_and_a_run_end_at_their_deadlines() {
    let server = MemoryServer::default();
    let runtime = runtime_with(&server, StartPolicy::All, &SecretRegistry::new()).await;
    let hang = json!([["memory", "hang", {}]]);
    let outcome = run(&runtime, Limits { upstream_call_timeout_ms: 20, ..limits() }, hang.clone()).await;
    assert_eq!(answers(&outcome), json!([["timeout", "no answer within 20 ms (--upstream-call-timeout)"]]));
    assert_eq!(ledger(&outcome), rows([("hang", "timeout")]));
    // A call's deadline is a little before its run's, so only a run of several calls reaches its own deadline.
    let many = Value::from(vec![hang[0].clone(); 20]);
    let outcome = run(&runtime, Limits { timeout_ms: 60, ..limits() }, many).await;
    assert_eq!(outcome.result.unwrap_err().reason.raw(), "too_slow");
}

#[tokio::test]
async fn secrets_leave_in_no_answer_fault_or_ledger() {
    let secrets = SecretRegistry::new();
    secrets.register("correct-horse-battery-staple");
    let server = MemoryServer::default();
    let runtime = runtime_with(&server, StartPolicy::All, &secrets).await;
    let calls = json!([
        ["memory", "echo", {"token": "correct-horse-battery-staple"}],
        ["memory", "fail", {"why": "bad token correct-horse-battery-staple"}],
    ]);
    let outcome = run(&runtime, limits(), calls).await;
    let [_, CallRecord { status: CallStatus::Error { reason: CallFault::UpstreamError, error }, .. }] =
        outcome.upstream_calls.as_slice()
    else {
        panic!("{outcome:?}")
    };
    assert!(error.starts_with("bad token ") && !error.contains("horse"), "{error}");
    let told = format!("{outcome:?}");
    assert!(!told.contains("horse") && told.contains("bad token"), "{told}");
}

#[tokio::test]
async fn a_defect_of_a_guest_ends_its_run_alone() {
    struct Broken;
    impl Guest for Broken {
        fn advance(&mut self) -> Progress {
            panic!("out of order")
        }
        fn answer(&mut self, _: CallId, _: Reply) {}
        fn live_bytes(&self) -> u64 {
            0
        }
        fn close(self: Box<Self>) {}
    }
    let server = MemoryServer::default();
    let runtime = runtime_with(&server, StartPolicy::All, &SecretRegistry::new()).await;
    let failure =
        runtime.run_guest(limits(), Box::new(|_, _, _| Ok(Box::new(Broken)))).await.result.unwrap_err();
    assert_eq!(failure.message, "internal defect: out of order");
    let outcome = run(&runtime, limits(), json!([["memory", "echo", {"n": 1}]])).await;
    assert_eq!(answers(&outcome), json!([{"n": 1}]));
}
