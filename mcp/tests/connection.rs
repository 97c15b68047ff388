//! Tests of one connection: ids, cancellation, backpressure, oversize lines, the end of input.
//!
//! A script replaces the evaluator, so that a program ends exactly when a test says so.

#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

use ptc_base::secrets::SecretRegistry;
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{Outcome, RenderedValue};
use ptc_calls::watcher::RunWatcher;
use ptc_server::redact::{Form, RedactingWriter, shapes};
use ptc_server::server::stdio::serve;
use ptc_server::server::{ClientConnection, Gate, GateLimits, Handler, ParkingLimits, Surface};
use ptc_server::tools::catalog::{CatalogView, ServerView};
use ptc_server::tools::lisp_eval::Evaluator;
use ptc_server::tools::registry::MoreTools;
use ptc_server::tools::{Cancel, Facts, Registry};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::sync::{Semaphore, watch};

/// A scripted evaluator. `hold` never ends. `gate` ends when the test opens the gate. `calls` ends 1, 2 and
/// then 5 upstream calls before the gate. Any other program is answered at once with its own text.
#[derive(Clone)]
struct Script {
    gate: Arc<Semaphore>,
    dropped: mpsc::Sender<()>,
    started: Arc<AtomicUsize>,
}

struct SayWhenDropped(mpsc::Sender<()>);

impl Drop for SayWhenDropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl Evaluator for Script {
    fn try_run(
        &self,
        program: &str,
        _: Option<&str>,
        _: &RunOptions,
        look: &mut dyn FnMut(&Outcome),
    ) -> bool {
        let is_tiny = program == "tiny";
        if is_tiny {
            look(&outcome(program.into()));
        }
        is_tiny
    }

    fn submit(&self, source: String, _: RunOptions, mut watcher: Box<dyn RunWatcher>) -> Cancel {
        self.started.fetch_add(1, Ordering::SeqCst);
        let guard = (source == "hold").then(|| SayWhenDropped(self.dropped.clone()));
        let gate = self.gate.clone();
        let task = tokio::spawn(async move {
            watcher.begun();
            let opened = async || gate.acquire().await.expect("gate is never closed").forget();
            match source.as_str() {
                "hold" => {
                    let _guard = guard;
                    std::future::pending::<()>().await;
                }
                "gate" => opened().await,
                "calls" => {
                    for ended in [1, 2, 5] {
                        watcher.call_ended(ended);
                    }
                    opened().await;
                }
                _ => {}
            }
            watcher.ended(outcome(source));
        });
        Box::new(move || task.abort())
    }
}

fn outcome(text: String) -> Outcome {
    Outcome { result: Ok(RenderedValue::from_text(text)), ..Outcome::default() }
}

fn handler(script: &Script) -> Arc<Handler> {
    let surface = Surface {
        registry: Registry::of_server(Arc::new(script.clone()), Limits::default(), MoreTools::default()),
        facts: Facts::default(),
        changes: true,
        instructions: String::new(),
        ready: true,
        recorder: None,
    };
    Arc::new(Handler::new(surface).expect("handler"))
}

fn load(jobs: usize, queued: usize, queued_bytes: usize) -> GateLimits {
    GateLimits { jobs, memory_bytes: u64::MAX, queued, queued_bytes, parking: ParkingLimits::default() }
}

fn call_line(id: u32, program: &str) -> String {
    let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

struct Client {
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    gate: Arc<Semaphore>,
    dropped: mpsc::Receiver<()>,
    started: Arc<AtomicUsize>,
    facts: watch::Sender<Arc<Facts>>,
    server: JoinHandle<()>,
}

impl Client {
    /// A server that runs up to `programs` programs at once.
    fn start(programs: usize) -> Client {
        Client::start_with(programs, 10_000, false)
    }

    /// With `paused`, time advances at once whenever the server is idle.
    fn start_with(programs: usize, queued: usize, paused: bool) -> Client {
        let (server_input, input) = pipe().expect("pipe");
        let (output, server_output) = pipe().expect("pipe");
        let (sender, dropped) = mpsc::channel();
        let gate = Arc::new(Semaphore::new(0));
        let started = Arc::new(AtomicUsize::new(0));
        let script = Script { gate: Arc::clone(&gate), dropped: sender, started: Arc::clone(&started) };
        let (facts, changes) = watch::channel(Arc::default());
        let server = std::thread::spawn(move || {
            let gate = Gate::new(load(programs, queued, 1 << 20));
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(paused)
                .build()
                .expect("runtime")
                .block_on(serve(
                    handler(&script),
                    &gate,
                    1_000,
                    server_input,
                    RedactingWriter::new(server_output, Form::Json(&shapes::MCP), SecretRegistry::new()),
                    changes,
                    std::future::pending(),
                ))
                .expect("served");
        });
        Client { input: Some(input), output: BufReader::new(output), gate, dropped, started, facts, server }
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("input is open");
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).expect("server reads");
    }

    fn call(&mut self, id: u32, program: &str) {
        self.send(&call_line(id, program));
    }

    fn call_with_progress(&mut self, id: u32, program: &str, token: Value) {
        let params = json!({ "name": "lisp_eval", "arguments": { "program": program },
            "_meta": { "progressToken": token } });
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string(),
        );
    }

    fn cancel(&mut self, id: u32) {
        let params = json!({ "requestId": id });
        self.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string(),
        );
    }

    fn ping(&mut self, id: &str) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string());
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn expect_text(&mut self, id: u32, text: &str) {
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
    }

    /// Waits until everything sent before has been handled.
    fn barrier(&mut self) {
        self.ping("barrier");
        assert_eq!(self.receive()["id"], "barrier");
    }

    fn end(mut self) -> String {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).expect("rest");
        self.server.join().expect("server ends");
        rest
    }
}

#[test]
fn malformed_frames_get_their_error_and_the_server_goes_on() {
    let mut client = Client::start(2);
    let cases = [
        ("nonsense", -32700),
        ("", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"id":1,"method":"ping"}"#, -32600),
    ];
    for (line, code) in cases {
        client.send(line);
        let answer = client.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
    }
    client.send(r#"{"jsonrpc":"2.0","id":7,"method":"resources/list"}"#);
    assert_eq!(client.receive()["error"]["code"], -32601);
    client.send(r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[1]}"#);
    assert_eq!(client.receive()["error"]["code"], -32602);
    client.call(9, "fine");
    client.expect_text(9, "fine");
    assert_eq!(client.end(), "");
}

#[test]
fn an_oversize_line_is_discarded_and_answered() {
    let mut client = Client::start(2);
    client.send(&"x".repeat(1_001));
    assert_eq!(client.receive()["error"]["code"], -32700);
    client.send(&"x".repeat(1_000_000));
    assert_eq!(client.receive()["error"]["code"], -32700);
    client.barrier();
    client.end();
}

#[test]
fn an_id_in_flight_cannot_be_used_twice() {
    let mut client = Client::start(2);
    client.call(1, "gate");
    client.call(1, "second");
    let answer = client.receive();
    assert_eq!(answer["error"]["code"], -32600);
    assert_eq!(answer["error"]["message"], "Invalid Request: id 1 is already in flight");
    client.gate.add_permits(1);
    client.expect_text(1, "gate");
    client.call(1, "again");
    client.expect_text(1, "again");
    client.end();
}

#[test]
fn cancelling_drops_the_program_and_gives_no_answer() {
    let mut client = Client::start(1);
    client.call(1, "hold");
    client.call(2, "queued");
    client.cancel(2);
    client.cancel(99);
    client.cancel(1);
    client.dropped.recv().expect("the program is dropped");
    client.call(1, "the id is free");
    client.expect_text(1, "the id is free");
    assert_eq!(client.started.load(Ordering::SeqCst), 2, "the queued program never starts");
    assert_eq!(client.end(), "");
}

#[test]
fn beyond_what_may_wait_nothing_is_read_and_nothing_refused() {
    let mut client = Client::start_with(1, 2, false);
    client.call(1, "gate");
    client.call(2, "second");
    client.call(3, "third");
    client.ping("behind the full queue");
    client.call(4, "fourth");
    client.gate.add_permits(1);
    client.expect_text(1, "gate");
    let mut others: Vec<Value> = (0..4).map(|_| client.receive()["id"].clone()).collect();
    others.sort_by_key(|id| id.as_u64());
    assert_eq!(others, [json!("behind the full queue"), json!(2), json!(3), json!(4)]);
    assert_eq!(client.end(), "");
}

#[test]
fn while_there_is_room_cancellations_are_seen_before_programs_end() {
    let mut client = Client::start_with(1, 3, false);
    client.call(1, "hold");
    client.call(2, "never");
    client.call(3, "last");
    client.cancel(2);
    client.cancel(1);
    client.dropped.recv().expect("the program is dropped");
    client.expect_text(3, "last");
    assert_eq!(client.end(), "");
}

/// A connection with a transport that the test controls.
struct Held {
    connection: ClientConnection<Vec<u8>>,
    script: Script,
}

impl Held {
    fn new(load: GateLimits) -> Held {
        Held::at(&Gate::new(load))
    }

    fn at(gate: &Arc<Gate>) -> Held {
        let (dropped, _) = mpsc::channel();
        let script = Script { gate: Arc::new(Semaphore::new(0)), dropped, started: Arc::default() };
        let connection = ClientConnection::new(handler(&script), gate, 1_000, Vec::new());
        Held { connection, script }
    }

    fn call(&mut self, id: u32, program: &str) {
        self.connection.message(call_line(id, program).as_bytes());
    }

    fn started(&self) -> usize {
        self.script.started.load(Ordering::SeqCst)
    }

    async fn settle(&mut self) {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        self.connection.take_events();
    }

    fn sent(&mut self) -> String {
        String::from_utf8(std::mem::take(self.connection.outbox())).expect("text")
    }
}

#[tokio::test]
async fn without_room_a_transport_that_reads_on_is_told_busy() {
    let mut held = Held::new(load(1, 1, 1 << 20));
    for (id, program) in [(1, "gate"), (2, "queued")] {
        assert!(held.connection.has_room());
        held.call(id, program);
    }
    assert!(!held.connection.has_room());
    held.call(3, "refused");
    let answer = held.sent();
    assert!(
        answer.contains("busy: server busy: 2 concurrent calls in flight; retry the same call"),
        "{answer}"
    );
    held.script.gate.add_permits(1);
    held.settle().await;
    assert!(held.connection.has_room() && held.sent().contains("gate"));
}

#[tokio::test]
async fn what_waits_is_bounded_by_bytes_too() {
    let mut held = Held::new(load(1, 1_000, 500));
    held.call(1, "gate");
    let mut queued = 0;
    while held.connection.has_room() {
        queued += 1;
        held.call(1 + queued, &"x".repeat(100));
    }
    assert_eq!(queued, 3);
    // A cancelled request frees its bytes.
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    held.connection.message(cancel.to_string().as_bytes());
    assert!(held.connection.has_room());
}

#[tokio::test]
async fn while_answers_are_not_read_no_program_begins() {
    let mut held = Held::new(load(10, 1_000, 1 << 20));
    held.call(1, "first");
    held.connection.hold(true);
    for id in 2..20 {
        held.call(id, "later");
    }
    held.settle().await;
    assert_eq!(held.started(), 1);
    assert!(held.sent().contains("first"), "what has begun is answered");
    held.connection.hold(false);
    while !held.connection.is_idle() {
        held.settle().await;
    }
    assert_eq!(held.started(), 19);
}

/// At most as many programs are started as can begin soon: a started one cannot be held back.
#[tokio::test]
async fn few_programs_are_handed_out_ahead() {
    let mut held = Held::new(load(1_000, 1_000, 1 << 20));
    for id in 0..200 {
        held.call(id, "gate");
    }
    assert_eq!(held.started(), 64);
    while held.started() < 200 {
        held.settle().await;
    }
}

#[test]
fn at_the_end_of_input_requests_in_flight_are_answered() {
    let mut client = Client::start(1);
    client.call(1, "gate");
    client.call(2, "queued");
    client.barrier();
    drop(client.input.take());
    client.gate.add_permits(1);
    client.expect_text(1, "gate");
    client.expect_text(2, "queued");
    client.end();
}

#[test]
fn a_program_that_never_ends_is_dropped_after_the_grace_period() {
    let mut client = Client::start_with(1, 10_000, true);
    client.call(1, "hold");
    client.barrier();
    assert_eq!(client.end(), "");
}

#[test]
fn exit_stops_reading_and_shutdown_refuses_new_calls() {
    let mut client = Client::start(1);
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}"#);
    assert_eq!(client.receive(), json!({"jsonrpc": "2.0", "id": 1, "result": null}));
    client.call(2, "late");
    assert_eq!(
        client.receive()["result"]["content"][0]["text"],
        "shutting_down: server is draining after shutdown; new tool calls are rejected"
    );
    client.send(
        "{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}",
    );
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut client.output, &mut rest).expect("rest");
    assert_eq!(rest, "");
    client.server.join().expect("server ends without the end of input");
}

#[test]
fn a_flood_of_requests_is_answered_completely() {
    let mut client = Client::start(4);
    let mut writer = client.input.take().expect("input is open");
    let flood = std::thread::spawn(move || {
        for id in 0..5_000 {
            writeln!(writer, "{}", call_line(id, "x")).expect("server reads");
        }
    });
    let mut seen = vec![false; 5_000];
    for _ in 0..5_000 {
        let answer = client.receive();
        seen[answer["id"].as_u64().expect("id") as usize] = true;
    }
    flood.join().expect("written");
    assert!(seen.into_iter().all(|seen| seen));
    client.end();
}

#[test]
fn tiny_programs_are_answered_in_order_without_being_submitted() {
    let mut client = Client::start(1);
    client.call(1, "gate");
    for id in 2..200 {
        client.call(id, "tiny");
        client.expect_text(id, "tiny");
    }
    assert_eq!(client.started.load(Ordering::SeqCst), 1);
    client.gate.add_permits(1);
    client.expect_text(1, "gate");
    client.end();
}

#[test]
fn progress_tells_the_calls_that_have_ended_at_a_bounded_rate() {
    let mut client = Client::start_with(2, 10_000, true);
    client.call_with_progress(1, "calls", json!("token"));
    let mut last = 0;
    while last < 5 {
        let note = client.receive();
        let progress = note["params"]["progress"].as_u64().expect("a number");
        let calls = if progress == 1 { "call" } else { "calls" };
        assert_eq!(
            note,
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params":
                { "progressToken": "token", "progress": progress, "message": format!("{progress} upstream {calls} done") } })
        );
        assert!(progress > last, "calls that end together are one message: {note}");
        last = progress;
    }
    client.gate.add_permits(1);
    client.expect_text(1, "calls");
    // Without a token, or with an invalid one, there are no notifications.
    client.call(2, "calls");
    client.call_with_progress(3, "calls", json!({}));
    client.call_with_progress(4, "calls", json!(1.5));
    client.gate.add_permits(3);
    let mut answered: Vec<Value> = (0..3).map(|_| client.receive()["id"].clone()).collect();
    answered.sort_by_key(Value::as_u64);
    assert_eq!(answered, [2, 3, 4]);
    assert_eq!(client.end(), "");
}

#[test]
fn no_progress_is_told_after_a_cancellation() {
    let mut client = Client::start_with(2, 10_000, true);
    client.call_with_progress(1, "calls", json!(7));
    assert_eq!(client.receive()["params"]["progressToken"], 7);
    client.cancel(1);
    client.ping("cancelled");
    while client.receive()["id"] != "cancelled" {}
    assert_eq!(client.end(), "");
}

#[test]
fn a_changed_tool_list_is_told_to_who_wants_to_know() {
    let stateless = |id: u32, method: &str, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let mut client = Client::start(1);
    client.send(&stateless(
        1,
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    ));
    assert_eq!(
        client.receive(),
        json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": { "io.modelcontextprotocol/subscriptionId": 1 }, "notifications": { "toolsListChanged": true } } })
    );
    client.send(&stateless(
        2,
        "subscriptions/listen",
        json!({ "notifications": { "promptsListChanged": true } }),
    ));
    assert_eq!(client.receive()["params"]["notifications"], json!({}));
    client.send(&stateless(1, "tools/list", json!({})));
    assert_eq!(client.receive()["error"]["code"], -32600, "the id of a subscription is in flight");
    let server = |name: &str| ServerView {
        name: name.into(),
        description: String::new(),
        tools: None,
        others: String::new(),
    };
    let with = |names: &[&str]| {
        let catalog = CatalogView { servers: names.iter().copied().map(server).collect() };
        Arc::new(Facts { catalog: Arc::new(catalog), ..Facts::default() })
    };
    client.facts.send(with(&["shop"])).expect("served");
    assert_eq!(
        client.receive(),
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
            "params": { "_meta": { "io.modelcontextprotocol/subscriptionId": 1 } } })
    );
    client.send(&stateless(3, "tools/list", json!({})));
    let list = client.receive()["result"]["tools"][0]["description"].to_string();
    assert!(list.contains("- shop"), "{list}");
    // The same list again is no change. A client with a handshake is notified without a subscription.
    client.facts.send(with(&["shop"])).expect("served");
    client.cancel(1);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.barrier();
    client.facts.send(with(&[])).expect("served");
    assert_eq!(
        client.receive(),
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {} })
    );
    drop(client.input.take());
    let ended = client.receive();
    assert_eq!((&ended["id"], &ended["result"]["resultType"]), (&json!(2), &json!("complete")), "{ended}");
    assert_eq!(client.end(), "");
}
