//! Remote servers with the HTTP+SSE transport that preceded Streamable HTTP.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common;
use common::http::{Got, HttpServer, Reply, Step};
use common::remote::{event, name, result, spec, tool};
use common::{call, request, upstream_with};
use futures_util::FutureExt;
use futures_util::future::join_all;
use ptc_base::secrets::SecretRegistry;
use ptc_calls::tools::SnapshotMode;
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{HttpProtocol, ResultSink, SupervisedUpstream, Upstream, UpstreamFault, UpstreamState};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// Sends the next bytes of the stream; `None` ends it.
type Words = mpsc::UnboundedSender<Option<Vec<u8>>>;

/// The server: one stream at a time.
struct SseServer {
    http: HttpServer,
    words: Arc<Mutex<Option<Words>>>,
}

impl SseServer {
    /// `endpoint` is the URL that the stream announces; `answer` may replace the answer to a message.
    async fn new(
        endpoint: &'static str,
        answer: impl Fn(&Got) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> SseServer {
        let words = Arc::<Mutex<Option<Words>>>::default();
        let current = words.clone();
        let http = HttpServer::new(move |got| {
            if got.method == "GET" && got.path == "/sse" {
                let (say, said) = mpsc::unbounded_channel();
                *current.lock().unwrap() = Some(say);
                return stream(endpoint, said);
            }
            if got.method != "POST" || got.path != "/messages?s=1" {
                return Reply::new(405, &[], "");
            }
            let text = answer(got).or_else(|| usual(got));
            if let (Some(text), Some(say)) = (text, &*current.lock().unwrap()) {
                let _ = say.send(Some(text));
            }
            Reply::new(202, &[], "Accepted")
        })
        .await;
        SseServer { http, words }
    }

    fn entry(&self, protocol: HttpProtocol) -> ServerEntry {
        ServerEntry::http("remote", spec(&self.http.url("/sse"), protocol))
    }

    /// Ends the stream.
    fn end(&self) {
        self.words.lock().unwrap().take().unwrap().send(None).unwrap();
    }

    fn say(&self, text: String) {
        self.words.lock().unwrap().as_ref().unwrap().send(Some(text.into_bytes())).unwrap();
    }
}

/// An answer that sends the bytes of the channel.
fn stream(endpoint: &str, said: mpsc::UnboundedReceiver<Option<Vec<u8>>>) -> Reply {
    let first = Reply::events().chunk(format!("event: endpoint\ndata: {endpoint}\n\n"));
    first.then(Step::Said(said))
}

fn usual(got: &Got) -> Option<Vec<u8>> {
    let message = got.json();
    let answer = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "sse", "version": "1"},
        }),
        "tools/list" => {
            let tools = ["echo", "hang", "large"].map(|name| json!({"name": name}));
            json!({"tools": tools})
        }
        "tools/call" if tool(got).as_deref() == Some("hang") => return None,
        "tools/call" => json!({"content": [], "structuredContent": message["params"]["arguments"]}),
        "ping" => json!({}),
        _ => return None,
    };
    Some(event(&result(got, &answer)).into_bytes())
}

fn upstream(entry: ServerEntry) -> SupervisedUpstream {
    upstream_with(entry, SnapshotMode::Live, SecretRegistry::new())
}

async fn echo(upstream: &SupervisedUpstream, n: u32) {
    let answer = call(upstream, "echo", json!({"n": n})).await.unwrap();
    assert_eq!(answer["structuredContent"]["n"], n);
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn it_is_spoken_where_it_is_named_and_found_where_it_is_not() {
    for protocol in [HttpProtocol::Sse, HttpProtocol::Either] {
        let server = SseServer::new("/messages?s=1", |_| None).await;
        let remote = upstream(server.entry(protocol));
        join_all((0..20).map(|n| echo(&remote, n))).await;
        assert_eq!(remote.status().protocol.as_deref(), Some("2024-11-05"));
        let posted: Vec<String> =
            server.http.got().iter().filter(|got| got.path != "/sse").map(name).collect();
        assert_eq!(posted[..3], ["initialize", "notifications/initialized", "tools/list"]);
        assert_eq!(posted.len(), 23);
        server.say(event(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})));
        server.say(event(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping"})));
        let mut log = Vec::new();
        until(|| {
            log.extend(server.http.got().iter().map(name));
            log.contains(&"tools/list".to_owned()) && log.contains(&"answer".to_owned())
        })
        .await;
    }
    let server = SseServer::new("/messages?s=1", |_| None).await;
    let fault = upstream(server.entry(HttpProtocol::Streamable)).start().await.unwrap_err();
    assert!(fault.to_string().contains("http 405"), "{fault}");
}

#[tokio::test]
async fn an_endpoint_elsewhere_is_sent_nothing() {
    let server = SseServer::new("http://127.0.0.1:1/messages", |_| None).await;
    let fault = upstream(server.entry(HttpProtocol::Sse)).start().await.unwrap_err();
    assert!(fault.to_string().contains("another origin (http://127.0.0.1:1)"), "{fault}");
}

#[tokio::test]
async fn a_stream_that_ends_is_opened_again_by_the_next_call() {
    let server = SseServer::new("/messages?s=1", |_| None).await;
    let remote = upstream(server.entry(HttpProtocol::Sse));
    echo(&remote, 1).await;
    server.end();
    until(|| remote.status().state == UpstreamState::Idle).await;
    echo(&remote, 2).await;
    // With a call in flight it counts as a crash.
    let (fault, ()) = tokio::join!(call(&remote, "hang", json!({})), async {
        until(|| server.http.got().iter().any(|got| tool(got).as_deref() == Some("hang"))).await;
        server.end();
    });
    let fault = fault.unwrap_err();
    assert_eq!(fault, UpstreamFault::Unavailable("the stream of events has ended".to_owned()));
    until(|| remote.status().state == UpstreamState::BackingOff).await;
    tokio::time::sleep(Duration::from_millis(120)).await;
    echo(&remote, 3).await;
}

#[tokio::test]
async fn caps_deadlines_and_cancellation() {
    let server = SseServer::new("/messages?s=1", |got| {
        (tool(got)? == "large").then(|| {
            let answer = json!({"content": [], "structuredContent": "x".repeat(2 << 20)});
            event(&result(got, &answer)).into_bytes()
        })
    })
    .await;
    let remote = upstream(server.entry(HttpProtocol::Sse));
    for cap in [1_000, 1 << 20] {
        let mut large = request("large", json!({}));
        large.sink = ResultSink { max_bytes: cap, store: None };
        let (fault, ()) = tokio::join!(remote.call(large), echo(&remote, 5));
        let fault = fault.unwrap_err();
        assert!(matches!(fault, UpstreamFault::TooLarge { cap: c, .. } if c == cap as u64), "{fault}");
    }
    let short = request("hang", json!({})).within(Duration::from_millis(50));
    let fault = remote.call(short).await.unwrap_err();
    assert!(matches!(fault, UpstreamFault::Timeout(_)), "{fault}");
    assert!(call(&remote, "hang", json!({})).now_or_never().is_none());
    let mut reasons: Vec<Value> = Vec::new();
    until(|| {
        let got = server.http.got();
        let notices = got.iter().map(Got::json).filter(|m| m["method"] == "notifications/cancelled");
        reasons.extend(notices.map(|notice| notice["params"]["reason"].clone()));
        !reasons.is_empty()
    })
    .await;
    assert_eq!(reasons[0], "timeout");
    echo(&remote, 6).await;
}
