//! Calls that go on without their requests: tasks of both forms, and runs of `lisp_run`.
//!
//! A script replaces the evaluator, and time advances whenever nothing else happens.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tasks of a test end with it, and a broken one is loud"
)]

use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{Failure, Outcome, RenderedValue};
use ptc_calls::watcher::RunWatcher;
use ptc_server::server::{
    ClientConnection, DetachedLimits, DetachedRuns, Gate, GateLimits, Handler, ParkingLimits, Surface,
};
use ptc_server::tools::lisp_eval::Evaluator;
use ptc_server::tools::lisp_run::LispRun;
use ptc_server::tools::registry::MoreTools;
use ptc_server::tools::{Cancel, Facts, Registry};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// `gate` ends when a test opens the gate; `ask` ends with the answers to two questions; `fail` fails; `tiny` ends at once.
#[derive(Clone)]
struct Script {
    gate: Arc<Semaphore>,
    /// Programs that were stopped.
    stopped: Arc<AtomicUsize>,
}

struct CountStop(Arc<AtomicUsize>);

impl Drop for CountStop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
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
        if program == "tiny" {
            look(&outcome("tiny"));
        }
        program == "tiny"
    }

    fn submit(&self, source: String, options: RunOptions, mut watcher: Box<dyn RunWatcher>) -> Cancel {
        let (gate, stop) = (self.gate.clone(), CountStop(self.stopped.clone()));
        let task = tokio::spawn(async move {
            watcher.begun();
            let mut ended = outcome(&source);
            match source.as_str() {
                "gate" => gate.acquire().await.expect("the gate is never closed").forget(),
                "fail" => ended.result = Err(Failure::defect("it fails")),
                "ask" => {
                    let asked = options.client.and_then(|client| client.asked).expect("a client");
                    let form = |text: &str| {
                        let schema = json!({ "type": "object", "properties": {} });
                        let params = json!({ "message": text, "requestedSchema": schema });
                        asked.clone().ask("elicitation/create", params.to_string())
                    };
                    let (one, two) = tokio::join!(form("one?"), form("two?"));
                    let said = |answer: Result<String, _>| answer.unwrap_or_else(|_| "refused".into());
                    ended = outcome(&format!("{} {}", said(one), said(two)));
                }
                _ => {}
            }
            std::mem::forget(stop);
            watcher.ended(ended);
        });
        Box::new(move || task.abort())
    }
}

fn outcome(text: &str) -> Outcome {
    Outcome { result: Ok(RenderedValue::from_text(text.into())), ..Outcome::default() }
}

struct Client {
    connection: ClientConnection<Vec<u8>>,
    received: VecDeque<Value>,
    script: Script,
    next: u64,
}

/// The capabilities of a client that knows the extension.
fn extension() -> Value {
    json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

impl Client {
    fn new(limits: DetachedLimits) -> Client {
        let script = Script { gate: Arc::new(Semaphore::new(0)), stopped: Arc::default() };
        let detached = DetachedRuns::new(limits, None);
        let runs = limits.runs_after.is_some().then(|| LispRun::new(detached.clone()));
        let more = MoreTools { runs, ..MoreTools::default() };
        let surface = Surface {
            registry: Registry::of_server(Arc::new(script.clone()), Limits::default(), more),
            facts: Facts::default(),
            changes: false,
            instructions: String::new(),
            ready: true,
            recorder: None,
        };
        let mut handler = Handler::new(surface).unwrap();
        handler.detached = detached;
        let handler = Arc::new(handler);
        let parking = ParkingLimits::default();
        let limits =
            GateLimits { jobs: 64, memory_bytes: u64::MAX, queued: 64, queued_bytes: 1 << 20, parking };
        let connection =
            ClientConnection::new(handler, &Gate::new(limits), 1 << 20, Vec::new()).single_client();
        Client { connection, received: VecDeque::new(), script, next: 0 }
    }

    /// A client of this revision with a handshake.
    async fn shaken(version: &str, limits: DetachedLimits) -> (Client, Value) {
        let mut client = Client::new(limits);
        let params = json!({ "protocolVersion": version, "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "t", "version": "1" } });
        let hello = client.request("initialize", params).await;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        (client, hello["result"]["capabilities"].clone())
    }

    fn send(&mut self, message: &Value) {
        self.connection.text(&message.to_string());
    }

    /// The next message.
    async fn receive(&mut self) -> Value {
        loop {
            let lines = std::mem::take(self.connection.outbox());
            let lines = std::str::from_utf8(&lines).unwrap().lines();
            self.received.extend(lines.map(|line| serde_json::from_str::<Value>(line).unwrap()));
            if let Some(message) = self.received.pop_front() {
                return message;
            }
            let (mailbox, report) = (self.connection.mailbox(), self.connection.next_report());
            let report_at = report.unwrap_or_else(tokio::time::Instant::now);
            tokio::select! {
                () = mailbox.arrival() => {}
                () = tokio::time::sleep_until(report_at), if report.is_some() => self.connection.report_progress(),
                () = tokio::time::sleep(Duration::from_secs(86_400)) => panic!("nothing comes"),
            }
            self.connection.take_events();
        }
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        self.next
    }

    /// The answer to a request. Other messages stay.
    async fn answer(&mut self, id: u64) -> Value {
        let mut others = VecDeque::new();
        let answer = loop {
            let message = self.receive().await;
            if message["id"] == id && message["method"].is_null() {
                break message;
            }
            others.push_back(message);
        };
        others.append(&mut self.received);
        self.received = others;
        answer
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id).await
    }

    /// A request of 2026-07-28.
    async fn stateless(&mut self, method: &str, mut params: Value, capabilities: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        self.request(method, params).await
    }

    async fn extended(&mut self, method: &str, params: Value) -> Value {
        self.stateless(method, params, extension()).await
    }

    /// Begins a task of 2025-11-25; its id.
    async fn task(&mut self, program: &str) -> String {
        let answer = self.request("tools/call", call(program, Some(json!({})))).await;
        let task = &answer["result"]["task"];
        assert_eq!(task["status"], "working", "{answer}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    /// A call that becomes a task of the extension; its id.
    async fn extension_task(&mut self, program: &str) -> String {
        let answer = self.extended("tools/call", call(program, None)).await;
        let task = &answer["result"];
        assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{answer}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    async fn status(&mut self, id: &str) -> Value {
        self.request("tasks/get", json!({ "taskId": id })).await["result"]["status"].clone()
    }

    fn stopped(&self) -> usize {
        self.script.stopped.load(Ordering::SeqCst)
    }
}

fn call(program: &str, task: Option<Value>) -> Value {
    let mut params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
    if let Some(task) = task {
        params["task"] = task;
    }
    params
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

#[tokio::test(start_paused = true)]
async fn a_client_of_2025_11_25_asks_for_a_task_and_fetches_its_result() {
    let (mut client, capabilities) = Client::shaken("2025-11-25", DetachedLimits::default()).await;
    assert_eq!(
        capabilities["tasks"],
        json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
    );
    let list = client.request("tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["execution"], json!({ "taskSupport": "optional" }));
    let answer = client.request("tools/call", call("gate", Some(json!({ "ttl": 60_000.0 })))).await;
    let task = answer["result"]["task"].clone();
    assert_eq!((&task["ttl"], &task["pollInterval"]), (&json!(60_000), &json!(1_000)), "{answer}");
    assert_eq!(answer["result"].as_object().unwrap().len(), 1);
    let id = task["taskId"].as_str().unwrap().to_owned();
    assert!(id.len() >= 32 && task["createdAt"].as_str().unwrap().ends_with('Z'));
    let named = json!({ "taskId": id });
    assert_eq!(client.status(&id).await, "working");
    let listed = client.request("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], id.as_str());
    assert!(listed["result"].get("nextCursor").is_none());
    let waiting = client.begin("tasks/result", named.clone());
    client.script.gate.add_permits(1);
    let result = client.answer(waiting).await;
    assert_eq!(text(&result["result"]), "gate");
    assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"], named);
    let noted = client.receive().await;
    assert_eq!(
        (&noted["method"], &noted["params"]["status"], &noted["params"]["taskId"]),
        (&json!("notifications/tasks/status"), &json!("completed"), &json!(id))
    );
    // Again, as long as the task is there.
    assert_eq!(text(&client.request("tasks/result", named.clone()).await["result"]), "gate");
    assert_eq!(code(&client.request("tasks/cancel", named.clone()).await), -32602);
    assert_eq!(client.status(&id).await, "completed");
    assert_eq!(code(&client.request("tasks/update", named).await), -32601);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for wrong in [json!({ "taskId": "nothing" }), json!({ "taskId": 7 }), json!({})] {
            assert_eq!(code(&client.request(method, wrong).await), -32602);
        }
    }
    assert_eq!(code(&client.request("tasks/list", json!({ "cursor": "x" })).await), -32602);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_notified_of_the_end_of_a_task_that_it_does_not_wait_for() {
    let (mut client, _) = Client::shaken("2025-11-25", DetachedLimits::default()).await;
    let id = client.task("gate").await;
    client.script.gate.add_permits(1);
    let noted = client.receive().await;
    assert_eq!(
        (&noted["method"], &noted["params"]["status"], &noted["params"]["taskId"]),
        (&json!("notifications/tasks/status"), &json!("completed"), &json!(id))
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_of_2025_11_25_fails_with_its_call_and_stays_cancelled() {
    let (mut client, _) = Client::shaken("2025-11-25", DetachedLimits::default()).await;
    let failed = client.task("fail").await;
    let result = client.request("tasks/result", json!({ "taskId": failed })).await;
    assert_eq!(result["result"]["isError"], true);
    let state = client.request("tasks/get", json!({ "taskId": failed })).await;
    assert_eq!(state["result"]["status"], "failed");
    assert!(state["result"]["statusMessage"].as_str().unwrap().contains("it fails"), "{state}");
    let tiny = client.task("tiny").await;
    assert_eq!(text(&client.request("tasks/result", json!({ "taskId": tiny })).await["result"]), "tiny");
    let held = client.task("gate").await;
    let waiting = client.begin("tasks/result", json!({ "taskId": held }));
    let cancelled = client.request("tasks/cancel", json!({ "taskId": held })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert_eq!(client.answer(waiting).await["result"]["isError"], true);
    tokio::task::yield_now().await;
    assert_eq!(client.stopped(), 1);
    assert_eq!(client.status(&held).await, "cancelled");
    assert_eq!(code(&client.request("tasks/cancel", json!({ "taskId": held })).await), -32602);
    for wrong in [json!({ "ttl": "long" }), json!({ "ttl": -1 }), json!([]), json!(7)] {
        assert_eq!(code(&client.request("tools/call", call("gate", Some(wrong))).await), -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_of_an_earlier_revision_has_no_tasks() {
    let (mut client, capabilities) = Client::shaken("2025-06-18", DetachedLimits::default()).await;
    assert!(capabilities.get("tasks").is_none() && capabilities.get("extensions").is_none());
    // It is called as if it had not asked for one.
    let answer = client.request("tools/call", call("other", Some(json!({})))).await;
    assert_eq!(text(&answer["result"]), "other");
    assert_eq!(code(&client.request("tasks/list", json!({})).await), -32601);
}

#[tokio::test(start_paused = true)]
async fn a_task_asks_while_its_result_is_waited_for() {
    let (mut client, _) = Client::shaken("2025-11-25", DetachedLimits::default()).await;
    let id = client.task("ask").await;
    while client.status(&id).await != "input_required" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let waiting = client.begin("tasks/result", json!({ "taskId": id }));
    let mut asked = Vec::new();
    while asked.len() < 2 {
        let message = client.receive().await;
        if message["method"] == "elicitation/create" {
            let related = &message["params"]["_meta"]["io.modelcontextprotocol/related-task"];
            assert_eq!(related["taskId"], id.as_str(), "{message}");
            asked.push(message["id"].clone());
        }
    }
    for id in asked {
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } }));
    }
    let result = client.answer(waiting).await;
    assert_eq!(text(&result["result"]), r#"{"action":"decline"} {"action":"decline"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_long_call_becomes_a_task_of_the_extension() {
    let mut client = Client::new(DetachedLimits::default());
    let discovered = client.stateless("server/discover", json!({}), json!({})).await;
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(capabilities["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    assert!(capabilities.get("tasks").is_none());
    let list = client.extended("tools/list", json!({})).await;
    assert!(list["result"]["tools"][0].get("execution").is_none());
    // A short call is none, and the parameter of the other form means nothing.
    let short = client.extended("tools/call", call("other", Some(json!({ "ttl": 1 })))).await;
    assert_eq!((&short["result"]["resultType"], text(&short["result"])), (&json!("complete"), "other"));
    let id = client.extension_task("gate").await;
    let named = json!({ "taskId": id });
    let state = client.extended("tasks/get", named.clone()).await["result"].clone();
    assert_eq!((&state["status"], &state["resultType"]), (&json!("working"), &json!("complete")));
    assert!(state["ttlMs"].is_u64() && state["pollIntervalMs"].is_u64() && state.get("ttl").is_none());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = client.stateless(method, named.clone(), json!({ "elicitation": {} })).await;
        assert_eq!(code(&refused), -32021);
        assert_eq!(
            refused["error"]["data"]["requiredCapabilities"]["extensions"],
            json!({ "io.modelcontextprotocol/tasks": {} })
        );
        let unknown = json!({ "taskId": "nothing", "inputResponses": {} });
        assert_eq!(code(&client.extended(method, unknown).await), -32602);
    }
    for gone in ["tasks/result", "tasks/list"] {
        assert_eq!(code(&client.extended(gone, named.clone()).await), -32601);
    }
    client.script.gate.add_permits(1);
    let ended = loop {
        let state = client.extended("tasks/get", named.clone()).await["result"].clone();
        if state["status"] != "working" {
            break state;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((&ended["status"], text(&ended["result"])), (&json!("completed"), "gate"));
    assert!(ended["result"].get("_meta").is_none() && ended.get("pollIntervalMs").is_none());
    // The end can have come before the request to cancel.
    let acknowledged = client.extended("tasks/cancel", named).await["result"].clone();
    let mut members: Vec<&String> = acknowledged.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["_meta", "resultType"]);
    // A client that does not know tasks waits.
    let id = client.begin("tools/call", {
        let mut params = call("gate", None);
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} });
        params
    });
    tokio::time::sleep(Duration::from_secs(60)).await;
    client.script.gate.add_permits(1);
    assert_eq!(text(&client.answer(id).await["result"]), "gate");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_extension_has_its_questions_in_its_state() {
    let limits = DetachedLimits { tasks_after: Duration::ZERO, ..DetachedLimits::default() };
    let mut client = Client::new(limits);
    let id = client.extension_task("ask").await;
    let named = json!({ "taskId": id });
    let mut state = Value::Null;
    while state["inputRequests"].as_object().is_none_or(|asked| asked.len() < 2) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        state = client.extended("tasks/get", named.clone()).await["result"].clone();
    }
    assert_eq!(state["status"], "input_required");
    let names: Vec<String> = state["inputRequests"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(state["inputRequests"][&names[0]]["method"], "elicitation/create");
    let update = |responses: Value| json!({ "taskId": id, "inputResponses": responses });
    for wrong in [json!([]), json!({ (&names[0]): 7 })] {
        assert_eq!(code(&client.extended("tasks/update", update(wrong)).await), -32602);
    }
    let accept = json!({ "action": "accept", "content": {} });
    let some = update(json!({ (&names[0]): accept, "nothing": accept }));
    assert!(client.extended("tasks/update", some.clone()).await["result"].get("status").is_none());
    let state = client.extended("tasks/get", named.clone()).await["result"].clone();
    assert_eq!(state["status"], "input_required");
    assert_eq!(state["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), [&names[1]]);
    // An answer counts once.
    client.extended("tasks/update", some).await;
    client.extended("tasks/update", update(json!({ (&names[1]): { "action": "decline" } }))).await;
    let mut state = Value::Null;
    while state["status"] != "completed" {
        tokio::time::sleep(Duration::from_millis(10)).await;
        state = client.extended("tasks/get", named.clone()).await["result"].clone();
    }
    assert!(text(&state["result"]).contains("accept") && text(&state["result"]).contains("decline"));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_follows_its_tasks() {
    let mut client = Client::new(DetachedLimits::default());
    let (one, other) = (client.extension_task("gate").await, client.extension_task("gate").await);
    let wanted = json!({ "notifications": { "taskIds": [one, "nothing", one] } });
    let refused = client.stateless("subscriptions/listen", wanted.clone(), json!({})).await;
    assert_eq!(code(&refused), -32021);
    let mut params = wanted;
    params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": extension() });
    let subscription = client.begin("subscriptions/listen", params);
    let acknowledged = client.receive().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([one]));
    let state = client.receive().await;
    assert_eq!(
        (&state["method"], &state["params"]["status"]),
        (&json!("notifications/tasks"), &json!("working"))
    );
    client.script.gate.add_permits(2);
    let state = client.receive().await;
    assert_eq!(state["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], subscription);
    assert_eq!((&state["params"]["taskId"], &state["params"]["status"]), (&json!(one), &json!("completed")));
    assert_eq!(text(&state["params"]["result"]), "gate");
    let state = client.extended("tasks/get", json!({ "taskId": other })).await;
    assert_eq!(state["result"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_with_its_time_and_others_do_not() {
    let (mut client, _) = Client::shaken("2025-11-25", DetachedLimits::default()).await;
    let answer = client.request("tools/call", call("gate", Some(json!({ "ttl": 5_000 })))).await;
    let short = answer["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    // More than the server allows.
    let answer = client.request("tools/call", call("gate", Some(json!({ "ttl": u64::MAX })))).await;
    assert_eq!(answer["result"]["task"]["ttl"], 600_000);
    let long = answer["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let gone = client.request("tasks/get", json!({ "taskId": short })).await;
    assert_eq!(code(&gone), -32602);
    assert!(gone["error"]["message"].as_str().unwrap().ends_with("Task has expired"), "{gone}");
    assert_eq!((client.stopped(), client.status(&long).await), (1, json!("working")));
    let listed = client.request("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn there_are_as_many_tasks_as_may_be_and_they_are_listed_in_pages() {
    let limits = DetachedLimits { most: 250, ..DetachedLimits::default() };
    let (mut client, _) = Client::shaken("2025-11-25", limits).await;
    let mut ids = Vec::new();
    for _ in 0..250 {
        ids.push(client.task("tiny").await);
    }
    let refused = client.request("tools/call", call("tiny", Some(json!({})))).await;
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("busy"), "{refused}");
    let refused = client.request("tools/call", call("gate", Some(json!({})))).await;
    assert!(text(&refused["result"]).contains("busy"), "{refused}");
    let (mut listed, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.request("tasks/list", params).await["result"].clone();
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 100);
        listed.extend(tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        if page["nextCursor"].is_null() {
            break;
        }
        params = json!({ "cursor": page["nextCursor"] });
    }
    assert_eq!(listed, ids);
}

#[tokio::test(start_paused = true)]
async fn other_clients_go_on_with_lisp_run() {
    let limits = DetachedLimits { runs_after: Some(Duration::from_secs(25)), ..DetachedLimits::default() };
    let (mut client, _) = Client::shaken("2025-06-18", limits).await;
    let run = |id: &str, action: &str| json!({ "name": "lisp_run", "arguments": { "run_id": id, "action": action, "wait_ms": 1_000 } });
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = client.request("tools/call", call("gate", None)).await;
        let said = text(&answer["result"]).to_owned();
        let id =
            said.lines().find_map(|line| line.strip_prefix("run_id: ")).unwrap_or_else(|| panic!("{said}"));
        ids.push(id.to_owned());
    }
    for action in ["get", "wait"] {
        let answer = client.request("tools/call", run(&ids[0], action)).await;
        assert!(text(&answer["result"]).starts_with("the program still runs"), "{answer}");
    }
    client.script.gate.add_permits(1);
    for action in ["wait", "get", "cancel", "wait"] {
        let answer = client.request("tools/call", run(&ids[0], action)).await;
        assert_eq!((text(&answer["result"]), &answer["result"]["isError"]), ("gate", &json!(false)));
    }
    let waiting = client.begin("tools/call", run(&ids[1], "wait"));
    let cancelled = client.request("tools/call", run(&ids[1], "cancel")).await;
    assert_eq!(cancelled["result"]["isError"], true, "{cancelled}");
    assert_eq!(client.answer(waiting).await["result"]["isError"], true);
    tokio::task::yield_now().await;
    assert_eq!(client.stopped(), 1);
    for wrong in [run("nothing", "get"), run(&ids[0], "look"), json!({ "name": "lisp_run" })] {
        assert_eq!(client.request("tools/call", wrong).await["result"]["isError"], true);
    }
}
