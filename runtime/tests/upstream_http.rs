//! Remote MCP servers: both eras, sessions, streams, cancellation.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common;
use common::http::{Authority, Got, Reply, Step};
use common::remote::{RemoteServer, Style, event, lost_session, name, refuse, result, tool};
use common::{call, request, upstream_with};
use futures_util::future::{BoxFuture, FutureExt, join_all};
use ptc_base::secrets::{Credential, SecretRegistry};
use ptc_calls::tools::SnapshotMode;
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{SupervisedUpstream, Upstream, UpstreamFault, UpstreamState};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};

fn upstream(entry: ServerEntry) -> SupervisedUpstream {
    upstream_with(entry, SnapshotMode::Live, SecretRegistry::new())
}

async fn echo(upstream: &SupervisedUpstream) {
    let answer = call(upstream, "echo", json!({"a": [1]})).await.unwrap();
    assert_eq!(answer["structuredContent"], json!({"a": [1]}));
}

/// Waits for a condition that becomes true by itself.
async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn every_era_is_found_and_spoken() {
    for style in Style::ALL {
        let server = RemoteServer::new(style, |_| None).await;
        let mut spec = server.spec();
        let token = Credential::secret("Bearer tok-123456", &SecretRegistry::new()).0;
        spec.headers.secret("authorization", &token).unwrap();
        let remote = upstream(ServerEntry::http("remote", spec));
        echo(&remote).await;
        let status = remote.status();
        let (protocol, greeting) = match style {
            Style::Stateless => ("2026-07-28", &["server/discover"][..]),
            _ => ("2025-06-18", &["server/discover", "initialize", "notifications/initialized"][..]),
        };
        assert_eq!((status.state, status.protocol.as_deref()), (UpstreamState::Ready, Some(protocol)));
        remote.stop().await;
        let got = server.http.got();
        assert!(got.iter().all(|got| got.header("authorization") == Some("Bearer tok-123456")));
        let log: Vec<String> = got.iter().map(name).filter(|name| name != "GET").collect();
        assert_eq!(log[..greeting.len()], *greeting, "{style:?}");
        let rest = &log[greeting.len()..];
        match style {
            Style::Stateless => assert_eq!(rest, ["tools/list", "tools/call echo"]),
            _ => assert_eq!(rest, ["tools/list", "tools/call echo", "DELETE"]),
        }
    }
}

#[tokio::test]
async fn over_tls_and_with_connections_used_again() {
    for style in Style::ALL {
        let authority = Authority::new(false);
        let server = RemoteServer::tls(style, &authority).await;
        let mut spec = server.spec();
        spec.client.tls.ca_file = Some(authority.file("ca.pem"));
        let remote = upstream(ServerEntry::http("remote", spec));
        for _ in 0..5 {
            echo(&remote).await;
        }
        let got = server.http.got();
        // One more connection for the stream of server messages, opened while the tools are listed.
        assert!(got.iter().all(|got| got.connection < 2), "{style:?}");
    }
}

#[tokio::test]
async fn one_new_session_for_all_who_lost_it_and_each_call_once() {
    for style in [Style::Sessions, Style::Events] {
        let server = RemoteServer::new(style, |_| None).await;
        let remote = upstream(server.entry());
        echo(&remote).await;
        server.forget();
        server.http.got();
        let calls = (0..50).map(|n| {
            let remote = &remote;
            async move {
                let answer = call(remote, "echo", json!({"n": n})).await.unwrap();
                assert_eq!(answer["structuredContent"]["n"], n);
            }
        });
        join_all(calls).await;
        let got = server.http.got();
        let count = |what: &str| got.iter().filter(|got| name(got) == what).count();
        assert_eq!((count("initialize"), count("notifications/initialized")), (1, 1));
        let on = |session: &str| {
            got.iter()
                .filter(|got| tool(got).is_some() && got.header("mcp-session-id") == Some(session))
                .count()
        };
        assert_eq!(on("session-2"), 50, "each was executed once");
        assert_eq!(remote.status().state, UpstreamState::Ready);
    }
}

/// After 404 there is a new session, unless it answers the call and does not speak of sessions. A call is made again only
/// if the body is not its answer.
#[tokio::test]
async fn a_refusal_that_answers_the_call_is_not_followed_by_the_same_call() {
    const JSON: (&str, &str) = ("content-type", "application/json");
    let cut = |got: &Got| {
        let id = &got.json()["id"];
        format!("{{\"id\":{id},\"error\":{{\"code\":1,\"message\":\"{}\"}}}}", "x".repeat(20 << 10))
    };
    // Status, what is said, and how often the call is made, in how many sessions.
    type Said = Box<dyn Fn(&Got) -> Reply + Send + Sync>;
    let not_initialized = |_: &Got| {
        let error = json!({"code": -32000, "message": "Bad Request: Server not initialized"});
        Reply::new(400, &[JSON], json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string())
    };
    let other_server = |_: &Got| {
        let text = "search index not initialized; 3 of 5 rows written";
        Reply::new(400, &[JSON], json!({ "error": text }).to_string())
    };
    let said: [(Said, usize, usize); 12] = [
        (Box::new(other_server), 1, 1),
        // The SDK for TypeScript after a restart of the server.
        (Box::new(not_initialized), 2, 2),
        (Box::new(|got| refuse(404, got, -32601, "Session not found")), 1, 2),
        (Box::new(|got| refuse(404, got, -32000, "the session of your user 17 does not exist")), 1, 2),
        (Box::new(move |got| Reply::new(404, &[JSON], cut(got))), 1, 1),
        (Box::new(|got| refuse(404, got, -32601, "Not found")), 1, 1),
        (Box::new(|got| refuse(400, got, -32000, "the session of your user 17 does not exist")), 1, 1),
        (Box::new(|_| Reply::new(400, &[("content-type", "text/html")], "<html>no session")), 1, 1),
        (Box::new(|_| lost_session(404)), 2, 2),
        (Box::new(|_| lost_session(400)), 2, 2),
        (Box::new(|_| Reply::new(404, &[], "gone")), 2, 2),
        (Box::new(|_| Reply::new(400, &[("content-type", "text/plain")], "unknown")), 1, 1),
    ];
    for (at, (said, calls, sessions)) in said.into_iter().enumerate() {
        let server =
            RemoteServer::new(Style::Sessions, move |got| (tool(got)? == "fault").then(|| said(got))).await;
        let remote = upstream(server.entry());
        echo(&remote).await;
        let fault = call(&remote, "fault", json!({})).await.unwrap_err();
        assert!(matches!(fault, UpstreamFault::Rpc(_)), "{at}: {fault:?}");
        echo(&remote).await;
        let got = server.http.got();
        let count = |what: &str| got.iter().filter(|got| name(got) == what).count();
        assert_eq!((count("tools/call fault"), count("initialize")), (calls, sessions), "{at}");
        let last = got.iter().rfind(|got| tool(got).is_some()).unwrap();
        assert_eq!(last.header("mcp-session-id"), Some(&*format!("session-{sessions}")), "{at}");
    }
}

/// The session is lost because the server has started again: its tools may be others.
#[tokio::test]
async fn a_tool_that_has_changed_with_the_session_is_not_called() {
    let text = Arc::new(Mutex::new("reads"));
    let listed = text.clone();
    let server = RemoteServer::new(Style::Sessions, move |got| {
        (got.json()["method"] == "tools/list").then(|| {
            let tools = ["echo", "other"]
                .map(|name| json!({"name": name, "description": *listed.lock().unwrap(), "inputSchema": {}}));
            Reply::json(&result(got, &json!({"tools": tools})))
        })
    })
    .await;
    let remote = upstream(server.entry());
    echo(&remote).await;
    server.forget();
    echo(&remote).await;
    server.forget();
    *text.lock().unwrap() = "reads and sends";
    server.http.got();
    let fault = call(&remote, "echo", json!({})).await.unwrap_err();
    assert!(
        fault.to_string().contains("echo is not there any more as it was: echo was not called"),
        "{fault}"
    );
    let got = server.http.got();
    let calls = got.iter().filter(|got| tool(got).is_some());
    assert!(calls.map(|got| got.header("mcp-session-id")).all(|session| session == Some("session-2")));
    echo(&remote).await;
}

/// The server ends the stream after the whole answer, and does not go on with it elsewhere.
#[tokio::test]
async fn an_answer_without_its_last_blank_line_is_taken_where_the_stream_does_not_go_on() {
    let server = RemoteServer::new(Style::Events, |got| {
        (tool(got)? == "slow").then(|| {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
            let answer = result(got, &json!({"content": [], "structuredContent": {"n": 1}}));
            let events = format!("retry: 1\nid: 1\ndata: {note}\n\nid: 2\ndata: {answer}\n");
            Reply::events().chunk(events).end()
        })
    })
    .await;
    let remote = upstream(server.entry());
    let answer = call(&remote, "slow", json!({})).await.unwrap();
    assert_eq!(answer["structuredContent"]["n"], 1);
}

/// Without the list of the new session, it is not known what the tool is.
#[tokio::test]
async fn a_tool_is_not_called_if_the_tools_of_the_new_session_cannot_be_listed() {
    let fails = Arc::new(AtomicUsize::new(0));
    let failing = fails.clone();
    let server = RemoteServer::new(Style::Sessions, move |got| {
        let is_list = got.json()["method"] == "tools/list" && failing.load(Ordering::Relaxed) > 0;
        is_list.then(|| refuse(200, got, -32000, "the index is gone"))
    })
    .await;
    let remote = upstream(server.entry());
    echo(&remote).await;
    server.forget();
    fails.store(1, Ordering::Relaxed);
    for _ in 0..2 {
        let fault = call(&remote, "echo", json!({})).await.unwrap_err();
        assert!(fault.to_string().contains("the index is gone): echo was not called"), "{fault}");
    }
    fails.store(0, Ordering::Relaxed);
    echo(&remote).await;
}

/// What a busy server says to `initialize` counts, unless that says nothing.
#[tokio::test]
async fn a_busy_server_that_refuses_initialize_says_why() {
    let server = RemoteServer::new(Style::Sessions, |got| match got.json()["method"].as_str()? {
        "server/discover" => Some(Reply::new(503, &[], "busy")),
        "initialize" => Some(refuse(200, got, -32000, "the licence has expired")),
        _ => None,
    })
    .await;
    let fault = call(&upstream(server.entry()), "echo", json!({})).await.unwrap_err();
    assert!(fault.to_string().contains("the licence has expired"), "{fault}");
}

/// A busy server may be of either era: what it said is the reason, if it does not know `initialize`.
#[tokio::test]
async fn a_server_that_is_busy_at_the_first_question_says_so() {
    let server = RemoteServer::new(Style::Stateless, |got| {
        let is_first = got.json()["method"] == "server/discover";
        is_first.then(|| Reply::new(503, &[("content-type", "text/plain")], "come back later"))
    })
    .await;
    let fault = call(&upstream(server.entry()), "echo", json!({})).await.unwrap_err();
    assert!(fault.to_string().contains("come back later"), "{fault}");
}

#[tokio::test]
async fn a_call_that_is_refused_with_401_ends_no_other_one() {
    let (arrived, mut has_arrived) = mpsc::unbounded_channel();
    let (refused, is_refused) = oneshot::channel::<()>();
    let is_refused = Mutex::new(Some(is_refused));
    let server = RemoteServer::new(Style::Sessions, move |got| match tool(got)?.as_str() {
        "slow" => {
            arrived.send(()).unwrap();
            let is_refused = is_refused.lock().unwrap().take().unwrap();
            let wait = Step::Until(Box::pin(async move { is_refused.await.unwrap() }));
            let answer = result(got, &json!({"content": [], "structuredContent": {"n": 1}}));
            Some(Reply([vec![wait], Reply::json(&answer).0].into_iter().flatten().collect()))
        }
        "fault" => Some(Reply::new(401, &[], "")),
        _ => None,
    })
    .await;
    let remote = upstream(server.entry());
    let one = async {
        has_arrived.recv().await.unwrap();
        let fault = call(&remote, "fault", json!({})).await.unwrap_err();
        assert!(matches!(fault, UpstreamFault::Unavailable(_)), "{fault:?}");
        echo(&remote).await;
        refused.send(()).unwrap();
    };
    let (answer, ()) = tokio::join!(call(&remote, "slow", json!({})), one);
    assert_eq!(answer.unwrap()["structuredContent"]["n"], 1);
    assert_eq!(remote.status().state, UpstreamState::Ready);
}

#[tokio::test]
async fn a_session_that_cannot_be_had_again_is_a_crash() {
    let calls = AtomicUsize::new(0);
    let gone = RemoteServer::new(Style::Sessions, move |got| {
        let is_again = name(got) == "initialize" && calls.fetch_add(1, Ordering::Relaxed) == 1;
        is_again.then(|| Reply::new(500, &[], "out of order"))
    })
    .await;
    let remote = upstream(gone.entry());
    echo(&remote).await;
    gone.forget();
    let fault = call(&remote, "echo", json!({})).await.unwrap_err();
    let UpstreamFault::Unavailable(why) = fault else { panic!("{fault:?}") };
    assert!(why.contains("session lost") && why.contains("http 500"), "{why}");
    until(|| remote.status().state == UpstreamState::BackingOff).await;
    tokio::time::sleep(Duration::from_millis(120)).await;
    echo(&remote).await;
}

/// A server with a stream of server messages. The channel holds its replies to the next requests for that stream.
async fn talker(first: &'static str) -> (RemoteServer, mpsc::UnboundedSender<Reply>) {
    let (say, said) = mpsc::unbounded_channel();
    let said = std::sync::Mutex::new(said);
    let server = RemoteServer::new(Style::Sessions, move |got| {
        if got.method != "GET" {
            return None;
        }
        Some(
            said.lock().unwrap().try_recv().unwrap_or_else(|_| Reply::events().chunk(first).then(Step::Hang)),
        )
    })
    .await;
    (server, say)
}

#[tokio::test]
async fn changes_are_heard_and_a_broken_stream_goes_on_where_it_ended() {
    let changed = event(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let ping = event(&json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"}));
    let (server, say) = talker(": nothing\n\n").await;
    let text = format!("id: e1\nretry: 10\ndata:\n\n{ping}");
    say.send(Reply::events().chunk(text).end()).unwrap();
    say.send(Reply::events().chunk(&changed).then(Step::Hang)).unwrap();
    let remote = upstream(server.entry());
    remote.start().await.unwrap();
    let mut got = Vec::new();
    let is = |got: &[Got], what: &str| got.iter().filter(|got| name(got) == what).count();
    until(|| {
        got.extend(server.http.got());
        is(&got, "tools/list") == 2 && is(&got, "answer") == 1
    })
    .await;
    let streams: Vec<_> = got.iter().filter(|got| got.method == "GET").collect();
    assert_eq!(streams.iter().map(|got| got.header("last-event-id")).collect::<Vec<_>>(), [None, Some("e1")]);
    assert!(streams.iter().all(|got| got.header("mcp-session-id") == Some("session-1")));
    let answer = got.iter().find(|got| name(got) == "answer").unwrap();
    assert_eq!(answer.json(), json!({"jsonrpc": "2.0", "id": "p1", "result": {}}));
}

#[tokio::test]
async fn an_answer_goes_on_in_another_stream() {
    let server = RemoteServer::new(Style::Events, |got| {
        let resumed = got.header("last-event-id").map(str::to_owned);
        match (tool(got).as_deref(), resumed.as_deref()) {
            (Some("slow"), _) => {
                let id = got.json()["id"].clone();
                let first = Reply::events().chunk(format!("id: {id}\nretry: 5\ndata:\n\n"));
                Some(if id.as_u64().unwrap() % 2 == 0 { first.end() } else { first.then(Step::Close) })
            }
            (_, Some(id)) => {
                let answer =
                    json!({"jsonrpc": "2.0", "id": id.parse::<u64>().unwrap(), "result": {"late": id}});
                Some(Reply::events().chunk(event(&answer)).end())
            }
            _ => None,
        }
    })
    .await;
    let remote = upstream(server.entry());
    for _ in 0..2 {
        assert!(call(&remote, "slow", json!({})).await.unwrap()["late"].is_string());
    }
}

/// The stream ends in order, but in the middle of an event. The server sends that event again after the id before it.
#[tokio::test]
async fn an_event_that_was_cut_is_not_the_answer() {
    let server = RemoteServer::new(Style::Events, |got| {
        let answer = |id: &Value| {
            json!({"jsonrpc": "2.0", "id": id, "result": {"content": [], "from": got.header("last-event-id")}})
        };
        let cut = |id: &Value| {
            let whole = event(&answer(id));
            format!("id: {id}-2\n{}", &whole[..whole.len() - 5])
        };
        match (tool(got).as_deref(), got.header("last-event-id")) {
            (Some("slow"), _) => {
                let id = &got.json()["id"];
                let text = format!("id: {id}-1\nretry: 5\ndata:\n\n{}", cut(id));
                Some(Reply::events().chunk(text).end())
            }
            (Some("whole"), _) => {
                let whole = event(&answer(&got.json()["id"]));
                Some(Reply::events().chunk(whole.trim_end().to_owned() + "\n").end())
            }
            (Some("fault"), _) => Some(Reply::events().chunk(cut(&got.json()["id"])).end()),
            (_, Some(from)) => {
                let id: u64 = from.split('-').next().unwrap().parse().unwrap();
                Some(Reply::events().chunk(event(&answer(&json!(id)))).end())
            }
            _ => None,
        }
    })
    .await;
    let remote = upstream(server.entry());
    let answer = call(&remote, "slow", json!({})).await.unwrap();
    assert!(answer["from"].as_str().unwrap().ends_with("-1"), "{answer}");
    // Without the id of a complete event it cannot go on; an event that lacks its blank line only is taken.
    let fault = call(&remote, "fault", json!({})).await.unwrap_err();
    assert!(fault.to_string().contains("ended before the answer"), "{fault}");
    assert!(call(&remote, "whole", json!({})).await.unwrap()["from"].is_null());
}

#[tokio::test]
async fn what_nobody_wants_any_more_is_cancelled() {
    for style in Style::ALL {
        let (begun, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell_begun, tell_gone) = (begun.clone(), gone.clone());
        let server = RemoteServer::new(style, move |got| {
            (tool(got).as_deref() == Some("slow")).then(|| {
                tell_begun.notify_one();
                let gone = Gone(tell_gone.clone());
                let waits: BoxFuture<'static, ()> = async move {
                    let _gone = gone;
                    std::future::pending().await
                }
                .boxed();
                Reply::events().chunk(": working\n\n").then(Step::Until(waits))
            })
        })
        .await;
        let remote = upstream(server.entry());
        tokio::select! {
            _ = call(&remote, "slow", json!({})) => panic!("nobody answers"),
            () = begun.notified() => {}
        }
        gone.notified().await;
        let short = request("slow", json!({})).within(Duration::from_millis(50));
        let fault = remote.call(short).await.unwrap_err();
        assert!(matches!(fault, UpstreamFault::Timeout(_)), "{fault:?}");
        gone.notified().await;
        let mut notices = Vec::new();
        let want = if style == Style::Stateless { 0 } else { 2 };
        until(|| {
            let got = server.http.got();
            notices.extend(got.iter().map(Got::json).filter(|m| m["method"] == "notifications/cancelled"));
            notices.len() == want
        })
        .await;
        let mut reasons: Vec<&Value> = notices.iter().map(|notice| &notice["params"]["reason"]).collect();
        reasons.sort_by_key(|reason| reason.to_string());
        if want > 0 {
            assert_eq!(reasons, ["cancelled", "timeout"]);
        }
        echo(&remote).await;
    }
}

/// Notifies when the client has disconnected.
struct Gone(Arc<Notify>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn arguments_are_mirrored_and_tools_that_cannot_be_are_left_out() {
    let server = RemoteServer::new(Style::Stateless, |got| {
        (name(got) == "tools/list").then(|| {
            let marked = |name: &str| json!({"properties": {"where": {"type": "string", "x-mcp-header": name}}});
            let tools = json!({"tools": [
                {"name": "sql é", "inputSchema": marked("Region")}, {"name": "bad", "inputSchema": marked("a b")},
            ]});
            Reply::json(&result(got, &tools))
        })
        .or_else(|| tool(got).map(|_| {
            assert_eq!(got.header("mcp-name"), Some("=?base64?c3FsIMOp?="));
            let headers = json!({"region": got.header("mcp-param-region")});
            Reply::json(&result(got, &json!({"content": [], "structuredContent": headers})))
        }))
    })
    .await;
    let remote = upstream(server.entry());
    let answer = call(&remote, "sql é", json!({"where": "eu-1"})).await.unwrap();
    assert_eq!(answer["structuredContent"]["region"], "eu-1");
    let answer = call(&remote, "sql é", json!({})).await.unwrap();
    assert_eq!(answer["structuredContent"]["region"], Value::Null);
    assert!(remote.tools().unwrap().get("bad").is_none());
}

/// The client stores only bounded names, since it repeats them in each request.
#[tokio::test]
async fn names_of_sessions_and_revisions_are_bounded() {
    let greets = |session: String, revision: String| {
        RemoteServer::new(Style::Sessions, move |got| {
            let says = |value: Value| {
                let headers = [("content-type", "application/json"), ("mcp-session-id", session.as_str())];
                Some(Reply::new(200, &headers, result(got, &value).to_string()))
            };
            match got.json()["method"].as_str()? {
                "server/discover" => Some(Reply::json(&json!({
                    "jsonrpc": "2.0", "id": got.json()["id"], "error": {"code": -32601, "message": "no"}
                }))),
                "initialize" => says(json!({"protocolVersion": revision, "capabilities": {}})),
                "tools/list" => says(json!({"tools": [{"name": "said", "inputSchema": {"type": "object"}}]})),
                "tools/call" => says(json!({"content": [], "structuredContent": {
                    "session": got.header("mcp-session-id")}})),
                _ => Some(Reply::new(202, &[], "")),
            }
        })
    };
    for (length, is_kept) in [(4_096, true), (4_097, false)] {
        let server = greets("s".repeat(length), "2025-06-18".to_owned()).await;
        let answer = call(&upstream(server.entry()), "said", json!({})).await.unwrap();
        assert_eq!(answer["structuredContent"]["session"].is_string(), is_kept, "{length}");
    }
    let server = greets("s".to_owned(), "x".repeat(1_000)).await;
    let fault = upstream(server.entry()).start().await.unwrap_err().to_string();
    assert!(fault.contains("a protocolVersion of 1000 bytes"), "{fault}");
}
