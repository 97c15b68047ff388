//! Plain JSON services with an OpenAPI document: the mapping of operations, arguments and answers, and the life of
//! such a server.
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]
#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

mod requests;
mod secrets;

use crate::common;
use common::http::{Got, HttpServer, Reply, Step};
use common::programs::{failure, run, runtime_of, value};
use common::upstream_with;
use ptc_base::secrets::SecretRegistry;
use ptc_calls::outcome::{CallFault, CallStatus};
use ptc_calls::tools::SnapshotMode;
use ptc_engine::{Runtime, RuntimeConfig, StartPolicy};
use ptc_upstream::config::{Config, ServerEntry};
use ptc_upstream::{Upstream, UpstreamState};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A document with these paths.
fn document(paths: Value) -> Value {
    json!({ "openapi": "3.0.3", "info": { "title": "Traces", "version": "1" }, "paths": paths,
        "components": { "schemas": {
            "Trace": { "type": "object", "required": ["id"], "properties": {
                "id": { "type": "string" }, "parent": { "$ref": "#/components/schemas/Trace" },
                "cost": { "type": "number", "nullable": true } } } },
            "parameters": { "limit": { "name": "page_size", "in": "query", "schema": { "type": "integer", "default": 20 } } } } })
}

/// An operation that gives JSON.
fn operation(id: &str, more: Value) -> Value {
    let mut operation = json!({ "operationId": id, "responses": { "200": { "description": "ok", "content": {
        "application/json": { "schema": { "type": "array", "items": { "$ref": "#/components/schemas/Trace" } } } } } } });
    operation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    operation
}

fn parameter(name: &str, place: &str, more: Value) -> Value {
    let mut parameter =
        json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } });
    parameter.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    parameter
}

fn traces() -> Value {
    let status = parameter(
        "status",
        "query",
        json!({ "schema": { "type": "array", "items": { "enum": ["ok", "bad"] } } }),
    );
    let deep = parameter("range", "query", json!({ "style": "deepObject", "schema": { "type": "object" } }));
    document(json!({
        "/traces": { "get": operation("list_traces", json!({ "summary": "Lists traces.",
            "parameters": [{ "$ref": "#/components/parameters/limit" }, status, deep] })) },
        "/traces/{trace_id}": {
            "parameters": [parameter("trace_id", "path", json!({}))],
            "get": operation("getTrace", json!({ "parameters": [parameter("verbose", "query", json!({ "schema": { "type": "boolean" } }))] })),
            "delete": { "operationId": "dropTrace", "responses": { "204": { "description": "gone" } } },
            "put": operation("putTrace", json!({ "requestBody": { "required": true, "content": {
                "application/json": { "schema": { "$ref": "#/components/schemas/Trace" } } } } })),
        },
    }))
}

/// A configuration in a temporary folder.
struct Service {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Service {
    /// The configuration of an entry with these members in addition to the common ones.
    fn new(base_url: &str, document: &Value, members: Value) -> Service {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("schema.json"), document.to_string()).unwrap();
        let mut entry = json!({ "transport": "openapi", "base_url": base_url, "schema_file": "schema.json",
            "allow_insecure_http": true, "allow_insecure_auth": true });
        entry.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        entry.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let config = json!({ "credentials": { "key": { "source": "literal", "value": "s3cret-of-traces" } },
            "upstreams": { "obs": entry } });
        let path = folder.path().join("upstreams.json");
        std::fs::write(&path, config.to_string()).unwrap();
        Service { _folder: folder, path }
    }

    fn entry(&self, secrets: &SecretRegistry) -> ServerEntry {
        Config::load(&self.path, secrets).unwrap_or_else(|error| panic!("{error}")).servers.remove(0)
    }

    async fn runtime(&self) -> Runtime {
        runtime_of(vec![self.entry(&SecretRegistry::new())], StartPolicy::All, 1).await
    }

    /// The error with which the service fails to start.
    async fn refusal(&self) -> String {
        let upstream =
            upstream_with(self.entry(&SecretRegistry::new()), SnapshotMode::Live, SecretRegistry::new());
        upstream.start().await.unwrap_err().to_string()
    }
}

const INCLUDE: [&str; 2] = ["list_traces", "getTrace"];

fn included() -> Value {
    json!({ "include_operations": INCLUDE })
}

/// Answers with the request that it got.
fn echo(got: &Got) -> Reply {
    Reply::json(&json!([{ "id": got.path, "key": got.header("x-key"), "tenant": got.header("x-tenant"),
        "method": got.method, "body": got.json(), "accept": got.header("accept") }]))
}

#[tokio::test]
async fn operations_are_tools_like_any_other() {
    let server = HttpServer::new(echo).await;
    let members = json!({ "include_operations": INCLUDE, "static_headers": { "X-Tenant": "t${X}" },
        "auth": [{ "scheme": "custom_header", "header": "X-Key", "binding": "key" }],
        "operation_overrides": { "list_traces": { "default_args": { "page_size": 5 } } } });
    let runtime = Service::new(&server.url("/api/"), &traces(), members).runtime().await;
    let cases = [
        ("(tool/call {:server \"obs\" :tool \"list-traces\"})", "/api/traces?page_size=5"),
        (
            "(tool/call {:server \"obs\" :tool \"list-traces\" :args {:page-size 7 :status [\"ok\" \"bad\"]}})",
            "/api/traces?page_size=7&status=ok&status=bad",
        ),
        (
            "(tool/call {:server \"obs\" :tool \"list-traces\" :args {:page_size nil :range {:from 1}}})",
            "/api/traces?page_size=5&range%5Bfrom%5D=1",
        ),
        ("(tool/call 'obs/get-trace {:trace_id \"a/b\" :verbose true})", "/api/traces/a%2Fb?verbose=true"),
    ];
    for (call, path) in cases {
        let row =
            value(&runtime, &format!("(let [r {call}] [(:ok r) (:value_kind r) (first (:value r))])")).await;
        for part in ["true :json", path, "s3cret", "t${X}", "GET", "application/json"] {
            // A program's values are not redacted; text that leaves the process is.
            let part = if part == "s3cret" { "\"key\" \"" } else { part };
            assert!(row.contains(part), "{part} in {row}");
        }
    }
    assert!(server.got().iter().all(|got| got.header("x-key") == Some("s3cret-of-traces")));
    let doc = value(&runtime, "(doc 'obs/get-trace)").await;
    let outcome = run(&runtime, "(doc 'obs/get-trace)").await;
    let doc = format!("{doc}{}", outcome.prints.join("\n"));
    assert!(
        doc.contains(":trace_id string :verbose boolean?")
            && doc.contains("Result<[Trace]>")
            && doc.contains("Trace = {:id string"),
        "{doc}"
    );
    let meta = value(&runtime, "(let [m (meta 'obs/get-trace)] [(get-in m [\"_ptc\" \"operationId\"]) (get m \"kind\") (get m \"effect\")])").await;
    assert_eq!(meta, r#"["getTrace" "openapi-tool" "read"]"#);
    let listed = value(&runtime, "(dir 'obs)").await;
    assert!(
        listed.contains("list-traces {") && listed.contains(" - Lists traces") && !listed.contains("drop"),
        "{listed}"
    );
    runtime.shutdown().await;
}

#[tokio::test]
async fn wrong_calls_are_told_before_anything_is_sent() {
    let server = HttpServer::new(echo).await;
    let runtime = Service::new(&server.url(""), &traces(), included()).runtime().await;
    let cases = [
        ("(tool/call {:server \"obs\" :tool \"get-trace\" :args {}})", "trace_id"),
        ("(tool/call {:server \"obs\" :tool \"get-trace\" :args {:trace_id \"a\" :verbos true}})", "verbos"),
        ("(tool/call {:server \"obs\" :tool \"list-traces\" :args {:page_size \"5\"}})", "integer"),
        ("(tool/call {:server \"obs\" :tool \"list-traces\" :args {:status [\"odd\"]}})", "one of"),
        ("(tool/call {:server \"obs\" :tool \"drop-trace\" :args {:trace_id \"a\"}})", "drop-trace"),
    ];
    for (program, told) in cases {
        let failure = failure(&runtime, program).await.compact();
        assert!(failure.contains(told), "{program}: {failure}");
    }
    for dots in ["..", ".", ""] {
        let fault = value(
            &runtime,
            &format!("(let [r (tool/call 'obs/get-trace {{:trace_id {dots:?}}})] [(:ok r) (:reason r)])"),
        )
        .await;
        assert_eq!(fault, "[false :upstream_error]", "{dots}");
    }
    assert!(server.got().is_empty());
    runtime.shutdown().await;
}

/// Status, body and headers of an answer; the beginning of the result, and a part of it.
type AnswerCase = (u16, &'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);

#[tokio::test]
async fn what_answers_mean() {
    let cases: Vec<AnswerCase> = vec![
        (
            200,
            "{\"a\": 1}",
            &[("content-type", "application/json; charset=utf-8")],
            "[true :json",
            "{\"a\" 1}",
        ),
        (200, "[1]", &[("content-type", "application/problem+json")], "[true :json", "[1]"),
        (200, "7", &[], "[true :json", "7"),
        (204, "", &[], "[true :none", "nil"),
        (200, "", &[("content-type", "text/plain")], "[true :none", "nil"),
        (200, "<p>", &[("content-type", "text/html")], "[false :upstream_error", "text/html, not JSON"),
        (
            200,
            "{\"a\":",
            &[("content-type", "application/json")],
            "[false :upstream_error",
            "cannot be decoded",
        ),
        (
            400,
            "{\"detail\": \"no such day\", \"n\": 1}",
            &[("content-type", "application/json")],
            "[false :tool_error",
            "no such day",
        ),
        (404, "gone", &[], "[false :tool_error", "http 404 Not Found: gone"),
        (
            401,
            "",
            &[("www-authenticate", "Bearer realm=\\\"x\\\"")],
            "[false :upstream_unavailable",
            "it asks for Bearer",
        ),
        (403, "no", &[], "[false :tool_error", "403"),
        (403, "no", &[("www-authenticate", "Bearer")], "[false :upstream_unavailable", "it asks for Bearer"),
        (429, "slow", &[("retry-after", "17")], "[false :upstream_unavailable", "Retry-After: 17"),
        (500, "{\"message\": \"boom\"}", &[], "[false :upstream_error", "boom"),
        (503, "", &[("retry-after", "3")], "[false :upstream_unavailable", "Retry-After: 3"),
    ];
    for (status, body, headers, kind, text) in cases {
        let (body, headers) = (body.to_owned(), headers.to_vec());
        let headers: Vec<(String, String)> =
            headers.iter().map(|(k, v)| ((*k).to_owned(), v.replace("\\\"", "\""))).collect();
        let server = HttpServer::new(move |_| {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            Reply::new(status, &headers, &body)
        })
        .await;
        let runtime = Service::new(&server.url(""), &traces(), included()).runtime().await;
        let program = "(let [r (tool/call 'obs/list-traces {})] [(:ok r) (or (:reason r) (:value_kind r)) (:value r) (:message r)])";
        let answer = value(&runtime, program).await;
        assert!(answer.starts_with(kind) && answer.contains(text), "{status}: {answer}");
        runtime.shutdown().await;
    }
}

#[tokio::test]
async fn a_failed_operation_gives_its_json() {
    let server = HttpServer::new(|_| {
        Reply::new(422, &[("content-type", "application/json")], "{\"detail\": [{\"loc\": 1}]}")
    })
    .await;
    let runtime = Service::new(&server.url(""), &traces(), included()).runtime().await;
    let outcome = run(&runtime, "(tool/call 'obs/list-traces {})").await;
    let text = outcome.result.unwrap().text;
    assert!(text.contains(":reason :tool_error") && text.contains("{\"detail\" [{\"loc\" 1}]}"), "{text}");
    let CallStatus::Error { reason, .. } = outcome.upstream_calls[0].status else { panic!() };
    assert_eq!(reason, CallFault::ToolError);
    runtime.shutdown().await;
}

#[tokio::test]
async fn caps_time_and_cancellation_are_those_of_any_server() {
    let server = HttpServer::new(|got| match got.path.as_str() {
        "/traces/large" => Reply::json(&json!("x".repeat(10_000))),
        "/traces/endless" => Reply::chunked(200, &[("content-type", "application/json")])
            .then(Step::Forever(common::http::chunk("[1, "))),
        "/traces/slow" => {
            Reply::chunked(200, &[("content-type", "application/json")]).chunk("[").then(Step::Hang)
        }
        "/traces/dead" => Reply(vec![Step::Hang]),
        "/traces/lost" => Reply::chunked(200, &[]).chunk("[").then(Step::Close),
        _ => Reply::json(&json!([])),
    })
    .await;
    let members = json!({ "include_operations": INCLUDE, "max_response_bytes": 1_000, "request_timeout_ms": 300,
        "unresponsive_timeout_ms": 30_000, "max_calls_per_program": 5 });
    let runtime = Service::new(&server.url(""), &traces(), members).runtime().await;
    let cases = [
        ("large", ":response_too_large"),
        ("endless", ":response_too_large"),
        ("slow", ":timeout"),
        ("dead", ":timeout"),
        ("lost", ":upstream_unavailable"),
    ];
    for (id, reason) in cases {
        let answer =
            value(&runtime, &format!("(:reason (tool/call 'obs/get-trace {{:trace_id {id:?}}}))")).await;
        assert_eq!(answer, reason, "{id}");
    }
    let many =
        value(&runtime, "(frequencies (pmap (fn [_] (:reason (tool/call 'obs/list-traces {}))) (range 7)))")
            .await;
    assert_eq!(many, "{nil 5 :cap_exhausted 2}");
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_service_that_stops_answering_is_given_up_and_found_again() {
    let hangs = Arc::new(AtomicBool::new(true));
    let habit = hangs.clone();
    let server = HttpServer::new(move |_| match habit.load(Ordering::Relaxed) {
        true => Reply(vec![Step::Hang]),
        false => Reply::json(&json!([])),
    })
    .await;
    let members =
        json!({ "include_operations": INCLUDE, "request_timeout_ms": 100, "unresponsive_timeout_ms": 100 });
    let service = Service::new(&server.url(""), &traces(), members);
    let upstream =
        upstream_with(service.entry(&SecretRegistry::new()), SnapshotMode::Live, SecretRegistry::new());
    upstream.start().await.unwrap();
    let call = common::request("list-traces", json!({})).within(std::time::Duration::from_millis(100));
    assert!(upstream.call(call).await.unwrap_err().to_string().contains("no answer within"));
    while upstream.status().state == UpstreamState::Ready {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(upstream.status().error.unwrap().contains("stopped answering"));
    hangs.store(false, Ordering::Relaxed);
    while upstream.call(common::request("list-traces", json!({}))).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(upstream.status().protocol.as_deref(), Some("OpenAPI 3.0"));
    assert_eq!(upstream.status().server_info.as_deref(), Some("Traces 1"));
    upstream.stop().await;
    let stopped = upstream.call(common::request("list-traces", json!({}))).await.unwrap_err();
    assert!(stopped.to_string().contains("stopped"));
}

#[tokio::test]
async fn a_document_may_come_from_an_address_with_the_same_headers() {
    let server = HttpServer::new(|got| match (got.path.as_str(), got.header("authorization")) {
        ("/openapi.yaml?v=1", Some("Bearer s3cret-of-traces")) => {
            Reply::new(200, &[("content-type", "text/yaml")], "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      operationId: getA\n      responses:\n        default: {content: {application/json: {}}}\n")
        }
        ("/openapi.yaml?v=1", _) => Reply::new(401, &[("www-authenticate", "Bearer")], ""),
        _ => echo(got),
    })
    .await;
    let url = server.url("/openapi.yaml?v=1");
    let auth = json!([{ "scheme": "bearer", "binding": "key" }]);
    let members = |auth: &Value, more: Value| {
        let mut members =
            json!({ "schema_file": null, "schema_url": url, "include_operations": ["getA"], "auth": auth });
        members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        members
    };
    let runtime = Service::new(&server.url(""), &json!({}), members(&auth, json!({}))).runtime().await;
    assert_eq!(value(&runtime, "(get-in (tool/call 'obs/get-a {}) [:value 0 \"id\"])").await, "\"/a\"");
    runtime.shutdown().await;
    let refused = Service::new(&server.url(""), &json!({}), members(&json!([]), json!({}))).refusal().await;
    assert!(
        refused.contains("schema_url returned http 401") && refused.contains("it asks for Bearer"),
        "{refused}"
    );
    let refused =
        Service::new(&server.url(""), &json!({}), members(&auth, json!({ "schema_max_bytes": 50 })))
            .refusal()
            .await;
    assert!(refused.contains("more than 50 bytes") && refused.contains("schema_max_bytes"), "{refused}");
}

#[tokio::test]
async fn what_cannot_be_called_rightly_is_refused_by_name() {
    let get = |more: Value| json!({ "/a": { "get": operation("a", more) } });
    let responses = |responses: Value| get(json!({ "responses": responses }));
    let cases = [
        (json!({}), "OpenAPI include_operations not found: a"),
        (json!({ "/a": { "get": operation("ab-c", json!({})) } }), "OpenAPI include_operations not found: a"),
        (
            json!({ "/a": { "get": operation("a", json!({})) }, "/b": { "get": operation("a", json!({})) } }),
            "OpenAPI operation a is there twice, at /a and at /b",
        ),
        (
            json!({ "/a": { "post": operation("a", json!({})) } }),
            "uses unsupported method POST; v1 supports GET only",
        ),
        (json!({ "/a": { "head": operation("a", json!({})) } }), "uses unsupported method HEAD"),
        (get(json!({ "requestBody": { "content": {} } })), "OpenAPI operation a has a request body"),
        (
            get(json!({ "parameters": [parameter("X-Trace", "header", json!({}))] })),
            "OpenAPI operation a has unsupported header parameter X-Trace",
        ),
        (
            get(json!({ "parameters": [parameter("sid", "cookie", json!({}))] })),
            "has unsupported cookie parameter sid",
        ),
        (
            get(json!({ "parameters": [parameter("q", "query", json!({ "style": "simple" }))] })),
            "has parameter q of unsupported style simple",
        ),
        (get(json!({ "parameters": [{ "$ref": "other.yaml#/p" }] })), "leads to another document"),
        (
            get(json!({ "parameters": [{ "name": "q", "in": "query", "content": { "text/csv": {} } }] })),
            "has parameter q of a media type that is not JSON",
        ),
        (
            json!({ "/a/{id}": { "get": operation("a", json!({})) } }),
            "path template is missing declared path parameter(s): id",
        ),
        (
            get(json!({ "parameters": [parameter("id", "path", json!({}))] })),
            "has path parameter id, which its path /a does not have",
        ),
        (
            json!({ "/a/{q}": { "get": operation("a", json!({ "parameters": [parameter("q", "path", json!({})), parameter("q", "query", json!({}))] })) } }),
            "has two parameters q",
        ),
        (responses(json!({ "404": {} })), "has no 2xx response"),
        (
            responses(json!({ "200": { "content": { "text/csv": {} } } })),
            "has no JSON 2xx response; v1 supports JSON responses only, and it gives text/csv",
        ),
        (
            get(json!({ "servers": [{ "url": "https://elsewhere.example/" }] })),
            "is served at https://elsewhere.example/, which is another origin",
        ),
        (get(json!({ "parameters": 5 })), "OpenAPI operation a as it is written cannot be read"),
    ];
    for (paths, told) in cases {
        let service = Service::new(
            "https://traces.example",
            &document(paths.clone()),
            json!({ "include_operations": ["a"] }),
        );
        let refusal = service.refusal().await;
        assert!(refusal.contains(told), "{paths}: {refusal}");
    }
    let names = document(
        json!({ "/a": { "get": operation("listAll", json!({})) }, "/b": { "get": operation("list_all", json!({})) } }),
    );
    let both = json!({ "include_operations": ["listAll", "list_all", "nope"] });
    let refusal = Service::new("https://traces.example", &names, both).refusal().await;
    assert!(
        refusal.contains("collision after normalization: listAll and list_all are both list-all")
            && refusal.contains("not found: nope"),
        "{refusal}"
    );
    let defaults = json!({ "include_operations": ["listAll"], "operation_overrides": { "listAll": { "default_args": { "x": 1 } } } });
    let refusal = Service::new("https://traces.example", &names, defaults).refusal().await;
    assert!(refusal.contains("has no argument x, which default_args names"), "{refusal}");
}

#[tokio::test]
async fn names_may_be_told_and_harmless_oddities_are_taken() {
    let paths = json!({ "/a": { "get": operation("listAll", json!({ "deprecated": true, "parameters": [parameter("Accept", "header", json!({}))] })) },
        "/b": { "get": operation("list_all", json!({ "responses": { "204": {}, "200": {} } })) }, "/c": { "get": { "responses": { "2XX": { "content": { "*/*": {} } } } } } });
    let members = json!({ "include_operations": ["listAll", "list_all", "GET /c"],
        "operation_overrides": { "list_all": { "name": "listOthers", "description": "Others." } } });
    let server = HttpServer::new(echo).await;
    let runtime = Service::new(&server.url(""), &document(paths), members).runtime().await;
    let listed = value(&runtime, "(dir 'obs)").await;
    assert!(
        ["\"get-c {}", "\"list-all {}", "\"list-others {} - Others"].iter().all(|name| listed.contains(name)),
        "{listed}"
    );
    runtime.shutdown().await;
}

#[tokio::test]
async fn operations_with_effects_are_named_one_by_one() {
    let server = HttpServer::new(|got| match got.method.as_str() {
        "DELETE" => Reply::new(204, &[], ""),
        _ => echo(got),
    })
    .await;
    let members = json!({ "include_operations": ["getTrace"], "allow_operations_with_effects": ["putTrace", "dropTrace"] });
    let service = Service::new(&server.url(""), &traces(), members);
    let runtime = service.runtime().await;
    let program = "[(get-in (tool/call 'obs/put-trace {:trace_id \"a\" :body {:id \"x\" :cost nil}}) [:value 0 \"body\"])
        (:value_kind (tool/call 'obs/drop-trace {:trace_id \"a\"}))]";
    let outcome = run(&runtime, program).await;
    assert_eq!(outcome.result.unwrap().text, "[{\"cost\" nil \"id\" \"x\"} :none]");
    assert!(
        failure(&runtime, "(tool/call 'obs/put-trace {:trace_id \"a\"})").await.compact().contains("body")
    );
    assert!(
        failure(&runtime, "(tool/call 'obs/put-trace {:trace_id \"a\" :body {:cost \"x\"}})")
            .await
            .compact()
            .contains("cost")
    );
    assert_eq!(
        value(
            &runtime,
            "(map (fn [t] (get (meta t) \"effect\")) ['obs/get-trace 'obs/put-trace 'obs/drop-trace])"
        )
        .await,
        "[\"read\" \"write\" \"write\"]"
    );
    let methods: Vec<String> = server.got().into_iter().map(|got| got.method).collect();
    assert_eq!(methods, ["PUT", "DELETE"]);
    runtime.shutdown().await;
    let servers = vec![service.entry(&SecretRegistry::new())];
    let config = RuntimeConfig { servers, read_only: true, workers: 1, ..RuntimeConfig::default() };
    let runtime = Runtime::start(config).await.unwrap();
    let refused = failure(&runtime, "(tool/call 'obs/drop-trace {:trace_id \"a\"})").await.compact();
    assert!(refused.contains("read-only"), "{refused}");
    runtime.shutdown().await;
}
