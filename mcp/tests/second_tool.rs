//! Tests with a tool other than `lisp_eval`: what it takes to add one, and how the server runs it.

use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::watcher::RunWatcher;
use ptc_server::answer::Content;
use ptc_server::protocol::params::Params;
use ptc_server::protocol::{Era, Id};
use ptc_server::server::{
    ClientConnection, Gate, GateLimits, Handler, Outbox, ParkingLimits, Route, Surface,
};
use ptc_server::tools::lisp_eval::Evaluator;
use ptc_server::tools::registry::MoreTools;
use ptc_server::tools::{
    Begun, CallContext, Cancel, Definition, Facts, Job, Registry, Reporter, Responder, Tool, ToolAnnotations,
    ToolAnswer,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

// The tool: from here …

/// Running calls of `wait`, by their number.
type Waiting = Arc<Mutex<BTreeMap<u64, Box<dyn Reporter>>>>;

/// Waits until the test answers; declares as many bytes of memory as its argument says.
struct Wait(Waiting);

fn said(blocks: Value, is_error: bool) -> ToolAnswer<'static> {
    let content = Content::Blocks(to_raw_value(&blocks).expect("JSON"));
    ToolAnswer { is_error, ..ToolAnswer::new(content) }
}

impl Tool for Wait {
    fn name(&self) -> &str {
        "wait"
    }

    fn definition(&self, facts: &Facts) -> Definition {
        let word = if facts.era == Era::Stateless { "stateless" } else { "handshake" };
        Definition {
            title: "Wait".into(),
            description: format!("{} servers, {word}", facts.catalog.servers.len()),
            input_schema: json!({ "type": "object", "required": ["number"] }),
            annotations: ToolAnnotations {
                read_only_hint: true,
                destructive_hint: false,
                idempotent_hint: true,
                open_world_hint: false,
            },
            output_schema: None,
        }
    }

    fn begin(&self, params: &Params<'_>, _: &CallContext, reply: Responder<'_>) -> Begun {
        let arguments = params.arguments_value();
        let Some(number) = arguments["number"].as_u64() else {
            return reply.with(&said(json!([{ "type": "text", "text": "`number` is required" }]), true));
        };
        let waiting = self.0.clone();
        Begun::Run(Job::new(arguments["bytes"].as_u64().unwrap_or(0), move |mut reporter| -> Cancel {
            reporter.begun();
            waiting.lock().expect("whole").insert(number, reporter);
            Box::new(move || drop(waiting.lock().expect("whole").remove(&number)))
        }))
    }
}

// … to here.

/// An evaluator that must not be used.
struct Nothing;

impl Evaluator for Nothing {
    fn submit(&self, program: String, _: RunOptions, _: Box<dyn RunWatcher>) -> Cancel {
        panic!("nobody asked for {program}")
    }
}

/// Collects messages with the request of each, as a transport with one stream for each request does.
#[derive(Default)]
struct Streams(Vec<(Option<String>, Value)>);

impl Outbox for Streams {
    fn write(&mut self, to: Route<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut message = Vec::new();
        write(&mut message);
        let stream = match to {
            Route::Request(id) => Some(Id::as_json(id).to_owned()),
            Route::Connection => None,
        };
        self.0.push((stream, serde_json::from_slice(&message).expect("JSON")));
    }
}

type Client = ClientConnection<Streams>;

/// A process with several connections.
fn process<const CLIENTS: usize>(jobs: usize, memory_bytes: u64) -> (Waiting, [Client; CLIENTS]) {
    let waiting = Waiting::default();
    let lisp = Registry::of_server(Arc::new(Nothing), Limits::default(), MoreTools::default());
    let surface = Surface {
        registry: lisp.with(Wait(waiting.clone())),
        facts: Facts::default(),
        changes: false,
        instructions: String::new(),
        ready: true,
        recorder: None,
    };
    let handler = Arc::new(Handler::new(surface).expect("handler"));
    let gate = Gate::new(GateLimits {
        jobs,
        memory_bytes,
        queued: 2,
        queued_bytes: 1 << 20,
        parking: ParkingLimits::default(),
    });
    let client = || ClientConnection::new(handler.clone(), &gate, 1 << 20, Streams::default());
    (waiting, std::array::from_fn(|_| client()))
}

fn send(client: &mut Client, id: u64, method: &str, params: Value) {
    let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    client.message(line.to_string().as_bytes());
}

fn wait(client: &mut Client, number: u64, bytes: u64) {
    let arguments = json!({ "number": number, "bytes": bytes });
    send(client, number, "tools/call", json!({ "name": "wait", "arguments": arguments }));
}

fn cancel(client: &mut Client, id: u64) {
    let line =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    client.message(line.to_string().as_bytes());
}

/// The sent messages; checks that each went to the stream of its request.
fn sent(client: &mut Client) -> Vec<Value> {
    client.take_events();
    let sent = std::mem::take(&mut client.outbox().0);
    let check = |(stream, message): (Option<String>, Value)| {
        assert_eq!(stream, Some(message["id"].to_string()));
        message
    };
    sent.into_iter().map(check).collect()
}

fn started(waiting: &Waiting) -> Vec<u64> {
    waiting.lock().expect("whole").keys().copied().collect()
}

fn answer(waiting: &Waiting, number: u64) {
    let reporter = waiting.lock().expect("whole").remove(&number).expect("started");
    let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
    reporter.ended(&said(json!([image]), false));
}

#[test]
fn it_is_listed_by_era_and_called_by_name() {
    let (waiting, [mut client]) = process(1, 0);
    send(&mut client, 1, "tools/list", json!({}));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    send(&mut client, 2, "tools/list", json!({ "_meta": meta }));
    let lists = sent(&mut client);
    for (list, word) in lists.iter().zip(["handshake", "stateless"]) {
        let tools = &list["result"]["tools"];
        assert_eq!((&tools[0]["name"], &tools[1]["name"]), (&json!("lisp_eval"), &json!("wait")));
        assert_eq!(tools[1]["description"], format!("0 servers, {word}"));
        assert_eq!(tools[1]["annotations"]["readOnlyHint"], true);
    }
    wait(&mut client, 3, 0);
    answer(&waiting, 3);
    assert_eq!(
        sent(&mut client),
        [json!({ "jsonrpc": "2.0", "id": 3, "result": { "isError": false,
            "content": [{ "type": "image", "data": "AA==", "mimeType": "image/png" }] } })]
    );
    send(&mut client, 4, "tools/call", json!({ "name": "wait" }));
    assert_eq!(sent(&mut client)[0]["result"]["content"][0]["text"], "`number` is required");
    send(&mut client, 5, "tools/call", json!({ "name": "weight" }));
    assert_eq!(
        sent(&mut client)[0]["result"]["content"][0]["text"],
        "unknown_tool: unknown tool: weight; there is: lisp_eval, wait"
    );
}

#[test]
fn a_cancelled_call_is_stopped_and_not_answered() {
    let (waiting, [mut client]) = process(1, 0);
    wait(&mut client, 1, 0);
    wait(&mut client, 2, 0);
    cancel(&mut client, 1);
    assert_eq!(started(&waiting), [] as [u64; 0], "its place is given away when the mailbox is read");
    assert_eq!(sent(&mut client), [] as [Value; 0]);
    assert_eq!(started(&waiting), [2]);
    // A tool that drops its reporter without an answer has a defect; its client gets an error.
    waiting.lock().expect("whole").clear();
    assert_eq!(sent(&mut client)[0]["error"]["code"], -32603);
    assert!(client.is_idle());
}

#[test]
fn one_gate_admits_from_all_connections_in_turn() {
    let (waiting, [mut first, mut second]) = process(1, 0);
    wait(&mut first, 1, 0);
    wait(&mut first, 2, 0);
    wait(&mut first, 3, 0);
    assert!(!first.has_room(), "two wait, which is all that may");
    assert!(second.has_room(), "but nobody is shut out by others");
    wait(&mut second, 4, 0);
    assert!(!second.has_room());
    wait(&mut second, 5, 0);
    assert_eq!(
        sent(&mut second)[0]["result"]["content"][0]["text"],
        "busy: server busy: 1 concurrent calls in flight; retry the same call"
    );
    let mut order = Vec::new();
    for _ in 0..4 {
        let running = started(&waiting);
        assert_eq!(running.len(), 1, "one place for both connections");
        answer(&waiting, running[0]);
        order.extend(running);
        for client in [&mut first, &mut second] {
            sent(client);
        }
    }
    assert_eq!(order, [1, 4, 2, 3], "connections take turns");
}

#[test]
fn jobs_are_admitted_by_what_they_weigh() {
    let (waiting, [mut first, mut second]) = process(10, 100);
    wait(&mut first, 1, 60);
    wait(&mut second, 2, 60);
    wait(&mut first, 3, 0);
    assert_eq!(started(&waiting), [1, 3], "what weighs nothing need not wait for memory");
    wait(&mut first, 4, 30);
    assert_eq!(started(&waiting), [1, 3], "what weighs something does not pass what waits for memory");
    answer(&waiting, 1);
    for client in [&mut first, &mut second] {
        sent(client);
    }
    assert_eq!(started(&waiting), [2, 3, 4]);
    answer(&waiting, 2);
    answer(&waiting, 4);
    wait(&mut first, 5, 1_000);
    assert_eq!(started(&waiting), [3, 5], "one may always run");
}

#[test]
fn a_connection_that_is_gone_leaves_its_places_to_others() {
    let (waiting, [mut first, mut second]) = process(1, 0);
    wait(&mut first, 1, 0);
    wait(&mut first, 2, 0);
    wait(&mut second, 3, 0);
    drop(first);
    sent(&mut second);
    assert_eq!(started(&waiting), [3]);
    // So does a connection that goes before it handles its admission.
    let (waiting, [mut first, mut second]) = process(1, 0);
    wait(&mut first, 1, 0);
    wait(&mut second, 2, 0);
    wait(&mut first, 3, 0);
    answer(&waiting, 1);
    drop(second);
    sent(&mut first);
    assert_eq!(started(&waiting), [3]);
}
