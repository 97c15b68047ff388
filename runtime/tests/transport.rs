//! The life of a server over a transport without process and bytes: handshake, listing, calls, changes, cancellation,
//! end and recovery belong to the supervisor, not to a transport.

use crate::common;
use common::memory::{Habit, MemoryServer};
use common::programs::{run, runtime_of, value};
use common::{call, request, upstream_listed_every, upstream_with};
use ptc_base::secrets::SecretRegistry;
use ptc_calls::outcome::{CallFault, CallStatus};
use ptc_calls::tools::SnapshotMode;
use ptc_engine::StartPolicy;
use ptc_upstream::{ResultSink, SupervisedUpstream, Upstream, UpstreamFault, UpstreamState};
use serde_json::json;
use std::time::Duration;
use tokio::time::{advance, sleep};

/// The recovery window after a first loss.
const WINDOW: Duration = Duration::from_millis(100);

fn upstream(server: &MemoryServer) -> SupervisedUpstream {
    upstream_with(server.entry(), SnapshotMode::Live, SecretRegistry::new())
}

fn unavailable(text: &str) -> UpstreamFault {
    UpstreamFault::Unavailable(text.to_owned())
}

async fn echo(upstream: &SupervisedUpstream) -> Result<(), UpstreamFault> {
    let answer = call(upstream, "echo", json!({"a": [1]})).await?;
    assert_eq!(answer["structuredContent"], json!({"a": [1]}));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn both_eras() {
    let table = [
        (&[][..], "2025-06-18", "memory 1", "Handshake(\"2025-06-18\")"),
        (&[Habit::Stateless][..], "2026-07-28", "memory 2", "Stateless(\"2026-07-28\")"),
    ];
    for (habits, protocol, info, era) in table {
        let server = MemoryServer::new(habits);
        let memory = upstream(&server);
        assert_eq!(memory.status().state, UpstreamState::Idle);
        echo(&memory).await.unwrap();
        let status = memory.status();
        assert_eq!(status.state, UpstreamState::Ready);
        assert_eq!((status.protocol.as_deref(), status.server_info.as_deref()), (Some(protocol), Some(info)));
        let tools: Vec<String> = memory.tools().unwrap().iter().map(|tool| tool.name.to_string()).collect();
        assert_eq!(tools, ["echo", "fail", "grow", "hang"], "four pages, in the order of names");
        // The subscription and the first listing may come in any order.
        let mut log = server.log();
        log.retain(|line| !line.starts_with("subscriptions/"));
        let mut want = vec!["open".to_owned(), "server/discover Stateless(\"2026-07-28\")".to_owned()];
        if habits.is_empty() {
            want.push("initialize Opening".to_owned());
            want.push(format!("notifications/initialized {era}"));
        }
        want.extend(std::iter::repeat_n(format!("tools/list {era}"), 4));
        assert_eq!(log[..want.len()], want);
        assert!(log.contains(&format!("tools/call echo {era}")), "{log:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_changes_is_listed_again_in_both_eras() {
    for habits in [&[][..], &[Habit::Stateless]] {
        let server = MemoryServer::new(habits);
        let memory = upstream(&server);
        call(&memory, "grow", json!({})).await.unwrap();
        while memory.tools().unwrap().get("grown").is_none() {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(
            server.log().iter().any(|line| line.starts_with("subscriptions/listen")),
            !habits.is_empty()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_old_is_asked_for_again() {
    for (ttl, is_grown) in [(None, false), (Some(Duration::from_secs(60)), true)] {
        let server = MemoryServer::default();
        let memory = upstream_listed_every(ttl, server.entry(), SnapshotMode::Live, SecretRegistry::new());
        memory.start().await.unwrap();
        server.grow();
        sleep(Duration::from_secs(59)).await;
        assert!(memory.tools().unwrap().get("grown").is_none());
        // The list is made on another thread.
        for _ in 0..1_000 {
            sleep(Duration::from_millis(20)).await;
            tokio::task::yield_now().await;
        }
        let lists = server.log().iter().filter(|line| line.starts_with("tools/list")).count();
        assert_eq!((memory.tools().unwrap().get("grown").is_some(), lists > 4), (is_grown, is_grown));
    }
}

#[tokio::test(start_paused = true)]
async fn faults_of_calls() {
    let memory = upstream(&MemoryServer::default());
    let fault = call(&memory, "fail", json!({})).await.unwrap_err();
    assert!(matches!(&fault, UpstreamFault::Rpc(error) if error.message == "no"), "{fault:?}");
    let mut narrow = request("echo", json!({"a": "x".repeat(100)}));
    narrow.sink = ResultSink { max_bytes: 50, store: None };
    assert!(matches!(memory.call(narrow).await, Err(UpstreamFault::TooLarge { cap: 50, .. })));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_what_is_given_up() {
    let server = MemoryServer::default();
    let memory = upstream(&server);
    memory.start().await.unwrap();
    server.log();
    let short = request("hang", json!({})).within(Duration::from_secs(5));
    let fault = memory.call(short).await.unwrap_err();
    assert_eq!(fault, UpstreamFault::Timeout(Duration::from_secs(5)));
    assert_eq!(server.log()[1], "tools/call hang timed out");
    tokio::select! {
        answer = memory.call(request("hang", json!({}))) => panic!("{answer:?}"),
        () = sleep(Duration::from_secs(1)) => {}
    }
    assert_eq!(server.log().last().unwrap(), "tools/call hang cancelled");
    // It was pinged both times.
    sleep(Duration::from_secs(100)).await;
    assert_eq!(memory.status().state, UpstreamState::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nothing_is_replaced() {
    let server = MemoryServer::new(&[Habit::Mute]);
    let memory = upstream(&server);
    for _ in 0..2 {
        let short = request("hang", json!({})).within(Duration::from_secs(5));
        memory.call(short).await.unwrap_err();
        while memory.status().state == UpstreamState::Ready {
            sleep(Duration::from_millis(10)).await;
        }
        let status = memory.status();
        assert_eq!(status.state, UpstreamState::BackingOff);
        assert!(status.error.unwrap().starts_with("stopped answering: no answer for 20000 ms"));
        sleep(2 * WINDOW).await;
        assert_eq!(server.log().last().unwrap(), "discard");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_server_comes_back_after_its_window() {
    let server = MemoryServer::default();
    let memory = upstream(&server);
    echo(&memory).await.unwrap();
    let (in_flight, ()) = tokio::join!(memory.call(request("hang", json!({}))), async {
        while !server.log().iter().any(|line| line.starts_with("tools/call hang")) {
            tokio::task::yield_now().await;
        }
        server.end("connection reset", false);
    });
    assert_eq!(in_flight.unwrap_err(), unavailable("connection reset"));
    while memory.status().state == UpstreamState::Ready {
        tokio::task::yield_now().await;
    }
    assert_eq!(memory.status().state, UpstreamState::BackingOff);
    assert_eq!(echo(&memory).await, Err(unavailable("in recovery (connection reset)")));
    advance(WINDOW).await;
    echo(&memory).await.unwrap();
    let log = server.log();
    assert_eq!(log[..2], ["discard", "open"]);
    // A server that has ended in order is restarted without delay.
    server.end("closed", true);
    while memory.status().state == UpstreamState::Ready {
        tokio::task::yield_now().await;
    }
    assert_eq!(memory.status().state, UpstreamState::Idle);
    echo(&memory).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_reached_is_tried_again_ever_more_rarely() {
    let server = MemoryServer::new(&[Habit::Absent]);
    let memory = upstream(&server);
    for window in [WINDOW, 2 * WINDOW, 4 * WINDOW] {
        assert_eq!(memory.start().await, Err(unavailable("nobody is there")));
        assert_eq!(memory.status().state, UpstreamState::Failed);
        advance(window - Duration::from_millis(1)).await;
        assert_eq!(memory.start().await, Err(unavailable("in recovery (nobody is there)")));
        advance(Duration::from_millis(1)).await;
    }
    server.set(Habit::Absent, false);
    server.set(Habit::Unreachable, true);
    assert_eq!(memory.start().await, Err(unavailable("handshake timed out after 30000 ms")));
    advance(8 * WINDOW).await;
    server.set(Habit::Unreachable, false);
    echo(&memory).await.unwrap();
    assert_eq!(server.log().iter().filter(|line| *line == "open").count(), 5);
}

#[tokio::test(start_paused = true)]
async fn one_that_ends_at_the_probe_is_greeted_otherwise() {
    let server = MemoryServer::new(&[Habit::EndsAtProbe]);
    let memory = upstream(&server);
    echo(&memory).await.unwrap();
    let log = server.log();
    assert_eq!(log[2..5], ["server/discover cancelled", "discard", "open"].map(str::to_owned));
    assert_eq!(log[5], "initialize Opening");
}

#[tokio::test(start_paused = true)]
async fn its_own_requests_are_answered() {
    let server = MemoryServer::default();
    upstream(&server).start().await.unwrap();
    assert_eq!(server.ask("ping"), json!({"jsonrpc": "2.0", "id": "q1", "result": {}}));
    assert_eq!(server.ask("roots/list")["result"], json!({"roots": []}));
    assert_eq!(server.ask("sampling/createMessage")["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn stopping_is_for_good() {
    let server = MemoryServer::default();
    let memory = upstream(&server);
    echo(&memory).await.unwrap();
    memory.stop().await;
    assert_eq!(server.log().last().unwrap(), "shut down");
    assert_eq!(memory.status().state, UpstreamState::Stopped);
    assert_eq!(echo(&memory).await, Err(unavailable("upstream is stopped")));
}

#[tokio::test]
async fn programs_cannot_tell_it_from_a_process() {
    let server = MemoryServer::default();
    let runtime = runtime_of(vec![server.entry()], StartPolicy::All, 1).await;
    let sum = "(reduce + (pmap (fn [n] (get-in (tool/call 'memory/echo {:n n}) [:value \"n\"])) (range 10)))";
    assert_eq!(value(&runtime, sum).await, "45");
    let outcome = run(&runtime, "(tool/call 'memory/fail)").await;
    let call = &outcome.upstream_calls[0];
    assert_eq!((&*call.server, &*call.tool), ("memory", "fail"));
    let CallStatus::Error { reason, .. } = call.status else { panic!("{call:?}") };
    assert_eq!(reason, CallFault::UpstreamError);
    assert_eq!(runtime.servers()[0].protocol.as_deref(), Some("2025-06-18"));
    runtime.shutdown().await;
    assert_eq!(server.log().last().unwrap(), "shut down");
}
