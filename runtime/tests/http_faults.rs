//! The effect of misbehaving remote servers on a call and on the next one: one table, for every style of server.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common;
use common::http::{Got, HttpServer, Reply, Step, free_port};
use common::remote::{RemoteServer, Style, event, name, result, spec, tool};
use common::{call, request, upstream_with};
use ptc_base::secrets::SecretRegistry;
use ptc_calls::tools::SnapshotMode;
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{HttpProtocol, ResultSink, SupervisedUpstream, Upstream, UpstreamFault};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The reason that a program sees.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sees {
    Unavailable,
    Error,
    Timeout,
    TooLarge,
}

struct Fault {
    name: &'static str,
    reply: fn(&Got) -> Reply,
    sees: Sees,
    /// Part of the message.
    says: &'static str,
}

const fn fault(name: &'static str, reply: fn(&Got) -> Reply, sees: Sees, says: &'static str) -> Fault {
    Fault { name, reply, sees, says }
}

const JSON: (&str, &str) = ("content-type", "application/json");
const CAP: usize = 1 << 20;

fn answer(got: &Got) -> Value {
    result(got, &json!({"content": [], "structuredContent": {"a": 1}}))
}

fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Reply {
    Reply::new(status, headers, body)
}

const FAULTS: &[Fault] = &[
    fault("hang before headers", |_| Reply(vec![Step::Hang]), Sees::Timeout, "no answer within"),
    fault(
        "interim answers without end",
        |_| Reply(vec![Step::Forever(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".to_vec())]),
        Sees::Timeout,
        "no answer within",
    ),
    fault(
        "headers without end",
        |_| Reply(vec![Step::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), Step::Forever(b"a: b\r\n".to_vec())]),
        Sees::Error,
        "not understood: ",
    ),
    fault(
        "hang in the body",
        |_| Reply::chunked(200, &[JSON]).chunk("{\"jsonrpc\":").then(Step::Hang),
        Sees::Timeout,
        "no answer within",
    ),
    fault(
        "hang in a stream",
        |_| Reply::events().chunk("data: {\"json").then(Step::Hang),
        Sees::Timeout,
        "no answer within",
    ),
    fault(
        "half an event",
        |_| Reply::events().chunk("data: {\"jsonrpc\":\"2.0\",\"id").end(),
        Sees::Unavailable,
        "ended before",
    ),
    fault(
        "a stream without an answer",
        |_| Reply::events().chunk(": ok\n\n").end(),
        Sees::Unavailable,
        "ended before",
    ),
    fault(
        "a connection closed before headers",
        |_| Reply(vec![Step::Close]),
        Sees::Unavailable,
        "connection lost: ",
    ),
    fault(
        "reset in the body",
        |_| Reply::chunked(200, &[JSON]).chunk("{\"jsonrpc\":").then(Step::Close),
        Sees::Unavailable,
        "connection lost: ",
    ),
    fault(
        "reset in a stream",
        |_| Reply::events().chunk("data: {\"jsonrpc\":").then(Step::Close),
        Sees::Unavailable,
        "connection lost: ",
    ),
    fault(
        "a body of 100 MB",
        |_| {
            let head =
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 104857600\r\n\r\n";
            Reply(vec![Step::Send(head.to_vec()), Step::Forever(vec![b'1'; 1 << 16])])
        },
        Sees::TooLarge,
        "exceeds",
    ),
    fault(
        "an endless event",
        |_| Reply::events().chunk("data: ").then(Step::Forever(common::http::chunk(vec![b'x'; 1 << 16]))),
        Sees::TooLarge,
        "exceeds",
    ),
    fault(
        "endless events",
        |_| {
            let told = event(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}));
            Reply::events().then(Step::Forever(common::http::chunk(told)))
        },
        Sees::Timeout,
        "no answer within",
    ),
    fault(
        "a gzip bomb",
        |_| {
            // One stored block of zeros, repeated: the limit counts decompressed bytes.
            let mut block = vec![0, 0xff, 0xff, 0, 0];
            block.resize(5 + 0xffff, 0);
            let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
            let reply = Reply::chunked(200, &[JSON, ("content-encoding", "gzip")]).chunk(header);
            reply.then(Step::Forever(common::http::chunk(block)))
        },
        Sees::TooLarge,
        "exceeds",
    ),
    fault(
        "something else than gzip",
        |_| status(200, &[JSON, ("content-encoding", "gzip")], "{}"),
        Sees::Error,
        "not understood: ",
    ),
    fault(
        "another content type",
        |_| status(200, &[("content-type", "text/html")], "<html>"),
        Sees::Error,
        "http 200 OK with text/html, which is neither JSON nor a stream of events",
    ),
    fault("something else than JSON", |_| status(200, &[JSON], "hello"), Sees::Error, "without an answer"),
    fault(
        "an answer to nobody",
        |_| status(202, &[], ""),
        Sees::Error,
        "http 202 Accepted without an answer",
    ),
    fault(
        "another's answer",
        |_| status(200, &[JSON], "{\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{}}"),
        Sees::Error,
        "without an answer",
    ),
    fault(
        "401",
        |_| {
            let wants = "Bearer realm=\"mcp\", error=\"invalid_token\", error_description=\"it has expired\"";
            status(401, &[("www-authenticate", wants)], "who?")
        },
        Sees::Unavailable,
        "http 401 Unauthorized: who?; the server asks for Bearer (realm \"mcp\", error \"invalid_token\", \
            because \"it has expired\")",
    ),
    fault(
        "403",
        |_| status(403, &[("www-authenticate", "Bearer scope=\"files:write\"")], ""),
        Sees::Unavailable,
        "http 403 Forbidden; the server asks for Bearer (scope \"files:write\")",
    ),
    fault(
        "409",
        |_| status(409, &[("content-type", "text/plain")], "busy"),
        Sees::Error,
        "http 409 Conflict: busy",
    ),
    fault(
        "429",
        |_| status(429, &[("retry-after", "7")], ""),
        Sees::Unavailable,
        "http 429 Too Many Requests; Retry-After: 7 s",
    ),
    fault(
        "500",
        |_| status(500, &[("content-type", "text/plain")], "boom"),
        Sees::Unavailable,
        "http 500 Internal Server Error: boom",
    ),
    fault(
        "503",
        |_| status(503, &[("retry-after", "Fri, 01 Jan 2027 00:00:00 GMT")], ""),
        Sees::Unavailable,
        "http 503 Service Unavailable; Retry-After: Fri, 01 Jan 2027 00:00:00 GMT",
    ),
    fault(
        "an error with its status",
        |got| {
            let error = json!({"jsonrpc": "2.0", "id": got.json()["id"], "error": {"code": -32602, "message": "bad"}});
            status(400, &[JSON], &error.to_string())
        },
        Sees::Error,
        "bad",
    ),
    fault(
        "redirected to another origin",
        |_| status(307, &[("location", "http://127.0.0.1:1/elsewhere")], ""),
        Sees::Error,
        "another origin, which is sent nothing",
    ),
    fault(
        "garbage between chunks",
        |_| Reply::chunked(200, &[JSON]).chunk("{}").then(Step::Send(b"zz\r\n".to_vec())),
        Sees::Error,
        "not understood: ",
    ),
    fault(
        "no HTTP at all",
        |_| Reply(vec![Step::Send(b"220 mail.example.org ESMTP\r\n".to_vec())]),
        Sees::Error,
        "not understood: ",
    ),
];

fn seen(fault: &UpstreamFault) -> Sees {
    match fault {
        UpstreamFault::Unavailable(_) | UpstreamFault::Transient { .. } => Sees::Unavailable,
        UpstreamFault::Rpc(_) | UpstreamFault::Protocol(_) => Sees::Error,
        UpstreamFault::Timeout(_) => Sees::Timeout,
        UpstreamFault::TooLarge { .. } => Sees::TooLarge,
        UpstreamFault::Starting { .. } | UpstreamFault::LoginRequired(_) | UpstreamFault::ScopeDenied(_) => {
            unreachable!("nothing waits for a start or a login here")
        }
    }
}

fn upstream(entry: ServerEntry) -> SupervisedUpstream {
    upstream_with(entry, SnapshotMode::Live, SecretRegistry::new())
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn every_fault_is_told_and_the_next_call_works() {
    for style in Style::ALL {
        for Fault { name: what, reply, sees, says } in FAULTS {
            let reply = *reply;
            let server =
                RemoteServer::new(style, move |got| (tool(got)? == "fault").then(|| reply(got))).await;
            let remote = upstream(server.entry());
            let mut meets = request("fault", json!({}));
            meets.sink = ResultSink { max_bytes: CAP, store: None };
            if *sees == Sees::Timeout {
                meets = meets.within(Duration::from_millis(300));
            }
            let fault = remote.call(meets).await.unwrap_err();
            assert_eq!(seen(&fault), *sees, "{style:?}, {what}: {fault}");
            assert!(fault.to_string().contains(says), "{style:?}, {what}: {fault}");
            if let UpstreamFault::TooLarge { bytes, cap } = fault {
                assert!(cap == CAP as u64 && bytes > cap && bytes < 2 * cap, "{what}: {bytes} of {cap}");
            }
            let answer = call(&remote, "echo", json!({"after": what})).await;
            assert_eq!(answer.unwrap()["structuredContent"]["after"], *what, "{style:?}");
            // Every handshake ends with a listing, and nothing is sent twice.
            let got = server.http.got();
            let listings = got.iter().filter(|got| name(got) == "tools/list").count();
            let sent = got.iter().filter(|got| tool(got).is_some_and(|tool| tool == "fault")).count();
            assert_eq!((listings, sent), (1, 1), "{style:?}, {what}");
        }
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_says_why() {
    let unsafe_server = HttpServer::new(|_| status(200, &[], "")).await;
    let locked = HttpServer::new(|_| status(401, &[("www-authenticate", "Bearer")], "")).await;
    let empty = HttpServer::new(|_| status(404, &[("content-type", "text/html")], "<html>no")).await;
    let down = HttpServer::new(|_| status(502, &[("content-type", "text/html")], "<html>no")).await;
    let cases = [
        (format!("http://127.0.0.1:{}/mcp", free_port().await), "connection refused: ", "start the server"),
        ("http://nobody.invalid/mcp".to_owned(), "host not found: ", "check the host name"),
        (unsafe_server.url("/mcp").replace("http:", "https:"), "TLS: ", "ca_file"),
        (locked.url("/mcp"), "http 401 Unauthorized; the server asks for Bearer", "add a token"),
        (empty.url("/mcp"), "http 404 Not Found", "check the path"),
        (down.url("/mcp"), "http 502 Bad Gateway", "check that an MCP server answers at"),
    ];
    for (url, says, advice) in cases {
        let entry = ServerEntry::http("remote", spec(&url, HttpProtocol::Streamable));
        let remedy = entry.transport.clone();
        let remote = upstream(entry);
        let fault = remote.start().await.unwrap_err();
        assert_eq!(seen(&fault), Sees::Unavailable, "{fault}");
        assert!(fault.to_string().contains(says), "{fault}");
        assert!(remedy.remedy(&fault.to_string()).contains(advice), "{}", remedy.remedy(&fault.to_string()));
    }
}

/// The effect of a proxy on a server that is reached only through it.
#[tokio::test]
async fn a_server_behind_a_proxy() {
    let server = RemoteServer::new(Style::Sessions, |got| {
        assert!(got.path == "http://far.invalid/mcp", "{}", got.path);
        None
    })
    .await;
    let behind = |proxy: String| {
        let mut far = spec("http://far.invalid/mcp", HttpProtocol::Streamable);
        far.client.proxy = Some(proxy.parse().unwrap());
        upstream(ServerEntry::http("remote", far))
    };
    let remote = behind(server.http.url("/"));
    assert_eq!(call(&remote, "echo", json!({"a": 1})).await.unwrap()["structuredContent"]["a"], 1);
    let asking = HttpServer::new(|_| status(407, &[("proxy-authenticate", "Basic")], "who?")).await;
    let broken = HttpServer::new(|_| status(502, &[], "no route")).await;
    let mute = HttpServer::new(|_| Reply(vec![Step::Close])).await;
    let absent = format!("http://127.0.0.1:{}/", free_port().await);
    for (proxy, says) in [
        (asking.url("/"), "http 407 Proxy Authentication Required: who?"),
        (broken.url("/"), "http 502 Bad Gateway: no route"),
        (mute.url("/"), "connection lost: "),
        (absent, "(far.invalid:80, through the proxy 127.0.0.1:"),
    ] {
        let fault = behind(proxy).start().await.unwrap_err();
        assert!(seen(&fault) == Sees::Unavailable && fault.to_string().contains(says), "{says}: {fault}");
    }
}

#[tokio::test]
async fn a_server_that_goes_away_is_found_again() {
    let is_down = Arc::new(AtomicBool::new(false));
    let down = is_down.clone();
    // Behind a gateway: the port stays open while the server is gone.
    let server = RemoteServer::new(Style::Sessions, move |_| {
        down.load(Ordering::Relaxed).then(|| status(502, &[], "bad gateway"))
    })
    .await;
    let remote = upstream(server.entry());
    call(&remote, "echo", json!({})).await.unwrap();
    is_down.store(true, Ordering::Relaxed);
    let fault = call(&remote, "echo", json!({})).await.unwrap_err();
    assert!(fault.to_string().contains("http 502 Bad Gateway: bad gateway"), "{fault}");
    server.forget();
    is_down.store(false, Ordering::Relaxed);
    call(&remote, "echo", json!({})).await.unwrap();
    assert_eq!(server.log().iter().filter(|name| *name == "initialize").count(), 2);
}

#[tokio::test]
async fn an_answer_in_time_is_worth_more_than_a_slow_error() {
    // A notification before the answer, and a server request that is answered meanwhile.
    let server = RemoteServer::new(Style::Events, |got| {
        (tool(got)? == "fault").then(|| {
            let asks = event(&json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}));
            let told = event(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}));
            Reply::events().chunk(asks).chunk(told).chunk(event(&answer(got))).end()
        })
    })
    .await;
    let remote = upstream(server.entry());
    assert_eq!(call(&remote, "fault", json!({})).await.unwrap()["structuredContent"]["a"], 1);
    let mut got = Vec::new();
    until(|| {
        got.extend(server.http.got());
        got.iter().any(|got| name(got) == "answer")
    })
    .await;
    let reply = got.iter().find(|got| name(got) == "answer").unwrap().json();
    assert_eq!(reply, json!({"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}));
}
