//! Servers that answer calls with tasks: failures that pass, the end of the call, and what a task may say.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "tests read files as they need them")]

use crate::common;
use common::http::{Got, HttpServer, Reply, Step};
use common::remote::{name, refuse, result, spec};
use common::{request, upstream_with};
use ptc_base::secrets::SecretRegistry;
use ptc_base::spill::{SpillOptions, SpillStore, form_raw};
use ptc_base::tasks::StopFlag;
use ptc_calls::tools::SnapshotMode;
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{
    CallResult, HttpProtocol, ResultSink, ServerRequest, SupervisedUpstream, Upstream, UpstreamFault,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How a server speaks of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// 2025-11-25.
    Requested,
    /// 2026-07-28.
    Extension,
}

const FORMS: [Form; 2] = [Form::Requested, Form::Extension];

/// The text of a result.
fn content(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "resultType": "complete"})
}

/// The state of the only task, with further members.
fn state(status: &str, more: Value) -> Value {
    let mut state = json!({"taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "pollInterval": 20, "pollIntervalMs": 20, "resultType": "complete"});
    state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    state
}

/// The state of a task that has ended well.
fn done(form: Form) -> Value {
    match form {
        Form::Requested => state("completed", json!({})),
        Form::Extension => state("completed", json!({"result": content("done")})),
    }
}

/// The answer to the creation of the task.
fn created(form: Form, more: Value) -> Value {
    match form {
        Form::Requested => json!({"task": state("working", more)}),
        Form::Extension => {
            let mut task = state("working", more);
            task["resultType"] = json!("task");
            task
        }
    }
}

fn usual(form: Form, got: &Got) -> Reply {
    let answer = match (name(got).as_str(), form) {
        ("server/discover", Form::Extension) => json!({"supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "extensions": {EXTENSION: {}}}}),
        ("initialize", Form::Requested) => json!({"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}},
            "serverInfo": {"name": "tasking", "version": "1"}}),
        ("tools/list", _) => json!({"tools": [
            {"name": "work", "inputSchema": {}, "execution": {"taskSupport": "required"}}]}),
        ("tools/call work", _) => created(form, json!({})),
        ("tasks/get", _) => done(form),
        ("tasks/result", _) => content("done"),
        ("tasks/update" | "tasks/cancel", _) => json!({}),
        ("GET", _) => return Reply::new(405, &[], ""),
        (method, _) if method.starts_with("notifications/") => return Reply::new(202, &[], ""),
        _ => return refuse(404, got, -32601, "Method not found"),
    };
    Reply::json(&result(got, &answer))
}

/// Calls the tool of a server. `said` may answer each request first; it gets the method, and how many there were of it.
struct Tasking {
    http: HttpServer,
    upstream: SupervisedUpstream,
}

impl Tasking {
    async fn new(
        form: Form,
        said: impl Fn(&str, usize, &Got) -> Option<Reply> + Send + Sync + 'static,
    ) -> Tasking {
        let counts = Mutex::new(HashMap::<String, usize>::new());
        let http = HttpServer::new(move |got| {
            let method = name(got);
            let count = {
                let mut counts = counts.lock().unwrap();
                let count = counts.entry(method.clone()).or_default();
                *count += 1;
                *count
            };
            said(&method, count, got).unwrap_or_else(|| usual(form, got))
        })
        .await;
        let entry = ServerEntry::http("remote", spec(&http.url("/mcp"), HttpProtocol::Streamable));
        let upstream = upstream_with(entry, SnapshotMode::Live, SecretRegistry::new());
        Tasking { http, upstream }
    }

    async fn call(&self, request: ServerRequest) -> Result<Value, UpstreamFault> {
        let result = self.upstream.call(request).await?;
        let CallResult::Mcp(answer) = result else { panic!("{result:?}") };
        Ok(serde_json::from_slice(answer.bytes()).unwrap())
    }

    /// The text of the result, or the fault.
    async fn work(&self) -> Result<String, String> {
        let answer = self.call(request("work", json!({}))).await.map_err(|fault| fault.to_string())?;
        Ok(answer["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    }

    /// How often a method was called so far.
    fn count(&self, method: &str) -> usize {
        self.http.got().iter().filter(|got| name(got) == method).count()
    }
}

/// What goes wrong once.
type Trouble = fn(&Got) -> Reply;

const TROUBLES: [(&str, Trouble); 5] = [
    ("503", |_| Reply::new(503, &[("retry-after", "1")], "busy")),
    ("429", |_| Reply::new(429, &[("retry-after", "0")], "slow down")),
    ("reset", |_| Reply(vec![Step::Close])),
    ("half a body", |_| {
        Reply::chunked(200, &[("content-type", "application/json")]).chunk("{\"json").then(Step::Close)
    }),
    ("half an event", |_| Reply::events().chunk("data: {\"json").end()),
];

#[tokio::test]
async fn a_failure_that_passes_ends_neither_the_call_nor_the_task() {
    for form in FORMS {
        for (what, trouble) in TROUBLES {
            let server = Tasking::new(form, move |method, count, got| match (method, count) {
                ("tasks/get", 1) => Some(Reply::json(&result(got, &state("working", json!({}))))),
                ("tasks/get", 2) => Some(trouble(got)),
                ("tasks/result", 1) => Some(trouble(got)),
                _ => None,
            })
            .await;
            assert_eq!(server.work().await.as_deref(), Ok("done"), "{form:?}, {what}");
            assert_eq!(server.count("tasks/cancel"), 0, "{form:?}, {what}");
        }
    }
}

#[tokio::test]
async fn a_failure_that_stays_ends_the_call_and_the_task() {
    for form in FORMS {
        let server = Tasking::new(form, |method, _, _| {
            (method == "tasks/get").then(|| Reply::new(503, &[], "out of order"))
        })
        .await;
        let request = request("work", json!({})).within(Duration::from_secs(2));
        let fault = server.call(request).await.unwrap_err();
        assert!(fault.to_string().contains("out of order"), "{form:?}: {fault}");
        let mut got = Vec::new();
        while !got.iter().any(|got| name(got) == "tasks/cancel") {
            got.extend(server.http.got());
            tokio::task::yield_now().await;
        }
        let asked = got.iter().filter(|got| name(got) == "tasks/get").count();
        assert!((2..=8).contains(&asked), "{form:?}: {asked} times");
    }
}

/// A result that breaks off says nothing of a task that waits for input.
#[tokio::test]
async fn a_task_that_asks_is_cancelled_when_its_result_is_not_to_be_had() {
    let server = Tasking::new(Form::Requested, |method, _, got| match method {
        "tasks/get" => Some(Reply::json(&result(got, &state("input_required", json!({}))))),
        "tasks/result" => Some(Reply::new(200, &[("content-type", "text/html")], "<html>")),
        _ => None,
    })
    .await;
    assert!(server.work().await.unwrap_err().contains("text/html"));
    while server.count("tasks/cancel") == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_wants_to_be_asked_late_is_asked_before_the_call_ends() {
    for form in FORMS {
        let server = Tasking::new(form, move |method, _, got| {
            let late = json!({"pollInterval": 3_600_000, "pollIntervalMs": 3_600_000});
            (method == "tools/call work").then(|| Reply::json(&result(got, &created(form, late))))
        })
        .await;
        let request = request("work", json!({})).within(Duration::from_secs(2));
        let answer = server.call(request).await.unwrap();
        assert_eq!(answer["content"][0]["text"], "done", "{form:?}");
    }
}

/// The fault of a call to a server that gives this answer to `method`.
async fn fault(form: Form, method: &'static str, answer: Value) -> String {
    let server = Tasking::new(form, move |asked, _, got| {
        (asked == method).then(|| Reply::json(&result(got, &answer)))
    })
    .await;
    server.work().await.unwrap_err()
}

#[tokio::test]
async fn a_task_that_is_over_has_a_result_or_says_why_not() {
    let none = "completed a task without a result";
    for more in [json!({}), json!({"result": null}), json!({"result": created(Form::Extension, json!({}))})] {
        let told = fault(Form::Extension, "tasks/get", state("completed", more.clone())).await;
        assert!(told.contains(none), "{more}: {told}");
    }
    let told = fault(Form::Requested, "tasks/result", created(Form::Requested, json!({}))).await;
    assert!(told.contains(none), "{told}");
    for form in FORMS {
        let why = json!({"statusMessage": "the disk is full"});
        let told = fault(form, "tasks/get", state("cancelled", why)).await;
        assert_eq!(told, "the server has cancelled the task: the disk is full", "{form:?}");
        let told = fault(form, "tasks/get", state("completed", json!({"taskId": "t2"}))).await;
        assert!(told.contains("the state of another task"), "{form:?}: {told}");
    }
    let told =
        fault(Form::Extension, "tasks/get", state("failed", json!({"statusMessage": "no disk"}))).await;
    assert_eq!(told, "the task has failed: no disk");
}

/// The server says that the task has failed, so its result is an error, whether it says so or not.
#[tokio::test]
async fn a_task_that_has_failed_is_an_error_with_any_result() {
    for (result_of, says) in [
        (json!({"content": [{"type": "text", "text": "half"}]}), "the task has failed: no disk"),
        (json!({"content": [{"type": "text", "text": "disk full"}], "isError": true}), "disk full"),
    ] {
        let server = Tasking::new(Form::Requested, move |asked, _, got| match asked {
            "tasks/get" => {
                Some(Reply::json(&result(got, &state("failed", json!({"statusMessage": "no disk"})))))
            }
            "tasks/result" => Some(Reply::json(&result(got, &result_of))),
            _ => None,
        })
        .await;
        let (Ok(said) | Err(said)) = server.work().await;
        assert!(said.contains(says), "{says}: {said}");
    }
}

/// The result of a task has the limits of any result, and goes to a file where that is asked for.
#[tokio::test]
async fn a_large_result_of_a_task_is_one_like_any_other() {
    const MOST: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let options = SpillOptions { base: folder.path().join("spill"), most_bytes: 1 << 26 };
    let store = SpillStore::open(&options, SecretRegistry::new()).unwrap();
    for form in FORMS {
        // The second one is read with the state around it.
        for (bytes, is_large) in [(MOST / 2, false), (MOST + MOST / 2, true), (20 * MOST, true)] {
            let server = Tasking::new(form, move |method, _, got| {
                let large = content(&"x".repeat(bytes));
                let answer = match (method, form) {
                    ("tasks/get", Form::Extension) => state("completed", json!({"result": large})),
                    ("tasks/result", Form::Requested) => large,
                    _ => return None,
                };
                Some(Reply::json(&result(got, &answer)))
            })
            .await;
            let mut inline = request("work", json!({}));
            inline.sink = ResultSink { max_bytes: MOST, store: None };
            match server.call(inline).await {
                Ok(answer) => assert!(!is_large && answer["content"][0]["text"] == "x".repeat(bytes)),
                Err(UpstreamFault::TooLarge { bytes: told, cap }) => {
                    assert!(is_large && cap == MOST as u64 && told > cap, "{form:?}: {told} of {cap}");
                }
                Err(other) => panic!("{form:?}: {other:?}"),
            }
            let mut spills = request("work", json!({}));
            spills.sink = ResultSink { max_bytes: MOST, store: Some(store.clone()) };
            let answer = server.upstream.call(spills).await.unwrap();
            let Some(raw) = answer.answer().spilled() else {
                assert!(!is_large, "{form:?}: {bytes} bytes in memory");
                continue;
            };
            let (spilled, _) = form_raw(raw, true, None, &StopFlag::default()).unwrap();
            assert_eq!(std::fs::read_to_string(spilled.path()).unwrap(), "x".repeat(bytes), "{form:?}");
        }
    }
}

#[tokio::test]
async fn answers_to_questions_are_sent_until_the_server_takes_them() {
    let question = json!({"q": {"method": "elicitation/create",
        "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}});
    let server = Tasking::new(Form::Extension, move |method, count, got| match (method, count) {
        ("tasks/get", 1) => {
            let asks = state("input_required", json!({"inputRequests": question}));
            Some(Reply::json(&result(got, &asks)))
        }
        ("tasks/update", 1) => Some(Reply::new(503, &[], "")),
        _ => None,
    })
    .await;
    assert_eq!(server.work().await.as_deref(), Ok("done"));
    let got = server.http.got();
    let updates: Vec<Value> = got
        .iter()
        .filter(|got| name(got) == "tasks/update")
        .map(|got| got.json()["params"].clone())
        .collect();
    assert_eq!(updates.len(), 2);
    assert_eq!(updates[0], updates[1]);
    assert_eq!(updates[0]["inputResponses"], json!({"q": {"action": "cancel"}}));
}
