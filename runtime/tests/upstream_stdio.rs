//! One stdio upstream, over a real child process.
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

use crate::common;
use common::{call, entry, entry_with, is_alive, request, upstream, upstream_with};
use ptc_base::secrets::{Credential, SecretRegistry};
use ptc_calls::tools::SnapshotMode;
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{CallResult, ResultSink, StdioSpec, Upstream, UpstreamFault, UpstreamState};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn text(value: &str) -> serde_json::Value {
    json!({"content": [{"type": "text", "text": value}]})
}

#[tokio::test]
async fn starts_lists_and_calls() {
    let fake = upstream(&[]);
    assert_eq!(fake.status().state, UpstreamState::Idle);
    fake.start().await.unwrap();
    let status = fake.status();
    assert_eq!((status.state, status.server_info.as_deref()), (UpstreamState::Ready, Some("fake 9")));
    let tools = fake.tools().unwrap();
    let add = tools.get("add").unwrap();
    assert_eq!(add.required().collect::<Vec<_>>(), ["a", "b"]);
    assert!(add.has_argument("with-hyphen") && !add.has_argument("c"));
    assert_eq!(call(&fake, "echo", json!({"k": "v"})).await, Ok(text("{\"k\":\"v\"}")));
    fake.stop().await;
    assert_eq!(fake.status().state, UpstreamState::Stopped);
    assert!(matches!(call(&fake, "echo", json!({})).await, Err(UpstreamFault::Unavailable(_))));
}

#[tokio::test]
async fn many_calls_are_in_flight_at_once() {
    let fake = Arc::new(upstream(&[]));
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let fake = fake.clone();
            tokio::spawn(async move { call(&fake, "gather", json!({"n": 64})).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(text("\"together\"")));
    }
}

#[tokio::test]
async fn a_timeout_and_a_dropped_call_cancel_upstream_and_others_go_on() {
    let fake = upstream(&[]);
    fake.start().await.unwrap();
    let short = request("hang", json!({})).within(Duration::from_millis(50));
    assert_eq!(fake.call(short).await.unwrap_err(), UpstreamFault::Timeout(Duration::from_millis(50)));
    {
        let dropped = fake.call(request("hang", json!({})));
        tokio::pin!(dropped);
        assert!(futures_util::poll!(&mut dropped).is_pending());
        // Its answer comes after the previous request was written: an unwritten request would only be withdrawn.
        call(&fake, "number", json!({})).await.unwrap();
    }
    let stats = call(&fake, "stats", json!({})).await.unwrap();
    let reasons: Vec<_> = stats["structuredContent"]["cancelled"]
        .as_array()
        .unwrap()
        .iter()
        .map(|params| params["reason"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(reasons, ["timeout", "cancelled"]);
}

#[tokio::test]
async fn a_call_that_is_not_written_yet_is_taken_back() {
    let fake = upstream(&[]);
    fake.start().await.unwrap();
    {
        let dropped = fake.call(request("crash", json!({})));
        tokio::pin!(dropped);
        // The writer has not been polled.
        assert!(futures_util::poll!(&mut dropped).is_pending());
    }
    let stats = call(&fake, "stats", json!({})).await.unwrap();
    assert_eq!(stats["structuredContent"]["cancelled"], json!([]));
}

#[tokio::test]
async fn an_oversized_answer_fails_only_its_call() {
    let fake = Arc::new(upstream(&[]));
    fake.start().await.unwrap();
    let other = {
        let fake = fake.clone();
        tokio::spawn(async move { call(&fake, "delay", json!({"ms": 100})).await })
    };
    for tool in ["big", "id-last"] {
        let fault = call(&fake, tool, json!({"bytes": 5_000_000})).await.unwrap_err();
        let UpstreamFault::TooLarge { bytes, cap } = fault else { panic!("{fault}") };
        assert!(bytes > 5_000_000 && cap == 2 << 20);
        let text = fault.to_string();
        assert_eq!(text, format!("response {bytes} bytes exceeds max_upstream_response_bytes (2097152)"));
    }
    let mut roomy = request("big", json!({"bytes": 5_000_000}));
    roomy.sink = ResultSink { max_bytes: 6_000_000, store: None };
    let CallResult::Mcp(answer) = fake.call(roomy).await.unwrap() else { panic!() };
    assert!(answer.bytes().len() > 5_000_000);
    assert_eq!(other.await.unwrap(), Ok(text("\"late\"")));
}

#[tokio::test]
async fn a_call_has_its_own_cap_below_the_connection_floor() {
    let fake = upstream(&[]);
    let mut tight = request("big", json!({"bytes": 5000}));
    tight.sink = ResultSink { max_bytes: 1000, store: None };
    assert!(matches!(fake.call(tight).await, Err(UpstreamFault::TooLarge { cap: 1000, .. })));
}

#[tokio::test]
async fn noise_on_stdout_is_ignored() {
    let fake = upstream(&[]);
    assert_eq!(call(&fake, "noise", json!({})).await, Ok(text("after noise")));
}

#[tokio::test]
async fn requests_of_the_server_are_answered() {
    let fake = upstream(&[]);
    let answer = call(&fake, "ask", json!({})).await.unwrap();
    let mut replies = answer["structuredContent"]["replies"].as_array().unwrap().clone();
    replies.sort_by_key(|reply| reply["id"].to_string());
    assert_eq!(replies[0]["result"], json!({}));
    assert_eq!(replies[1]["result"], json!({"roots": []}));
    assert_eq!(replies[2]["error"]["code"], json!(-32601));
}

#[tokio::test]
async fn json_rpc_errors_are_protocol_faults() {
    let fake = upstream(&[]);
    let fault = call(&fake, "rpc-error", json!({})).await.unwrap_err();
    let UpstreamFault::Rpc(error) = fault else { panic!("{fault:?}") };
    assert_eq!(error.message, "database is down");
}

#[tokio::test]
async fn a_crash_fails_calls_in_flight_arms_recovery_and_heals() {
    let fake = Arc::new(upstream(&[]));
    fake.start().await.unwrap();
    let waiting = {
        let fake = fake.clone();
        tokio::spawn(async move { call(&fake, "hang", json!({})).await })
    };
    // The answer proves that the earlier request was written.
    call(&fake, "stats", json!({})).await.unwrap();
    let crash = call(&fake, "crash", json!({})).await.unwrap_err();
    assert_eq!(crash, UpstreamFault::Unavailable("subprocess exited (signal=6)".into()));
    assert_eq!(waiting.await.unwrap().unwrap_err(), crash);
    // Inside the window or after it: either a refusal with that reason, or a restarted server.
    loop {
        match call(&fake, "echo", json!({})).await {
            Ok(answer) => {
                assert_eq!(answer, text("{}"));
                break;
            }
            Err(UpstreamFault::Unavailable(why)) => {
                let known = why.contains("in recovery") || why.contains("subprocess exited");
                assert!(known, "{why}");
                tokio::task::yield_now().await;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(fake.status().state, UpstreamState::Ready);
}

fn with_licence(spec: &mut StdioSpec) {
    spec.variables.push(("LICENCE".into(), Credential::composed("key-12345".to_owned())));
}

#[tokio::test]
async fn a_server_that_dies_at_start_says_why() {
    let secrets = SecretRegistry::new();
    secrets.register("key-12345");
    let dying = entry_with(&["--die-at-start"], with_licence);
    let fake = upstream_with(dying, SnapshotMode::Live, secrets);
    let fault = fake.start().await.unwrap_err().to_string();
    assert!(fault.starts_with("subprocess exited (status=3)"), "{fault}");
    assert!(fault.contains("no licence key [REDACTED]"), "{fault}");
    assert_eq!(fake.status().state, UpstreamState::Failed);
    let again = fake.start().await.unwrap_err().to_string();
    assert!(again.contains("subprocess exited (status=3)"), "{again}");
}

#[tokio::test]
async fn a_missing_command_and_a_mute_server_fail_to_start() {
    let missing = upstream_with(
        ServerEntry::stdio("x", "no-such-command-anywhere".into(), vec![]),
        SnapshotMode::Live,
        SecretRegistry::new(),
    );
    let fault = missing.start().await.unwrap_err();
    assert_eq!(fault.to_string(), "command not found: no-such-command-anywhere");
    let mut mute = entry("mute", &["--mute"]);
    mute.handshake_timeout = Duration::from_millis(50);
    let fault =
        upstream_with(mute, SnapshotMode::Live, SecretRegistry::new()).start().await.unwrap_err().to_string();
    assert!(fault.starts_with("handshake timed out after 50 ms"), "{fault}");
}

#[tokio::test]
async fn tool_lists_are_paged_and_a_repeated_cursor_cuts_them() {
    let paged = upstream(&["--pages", "5"]);
    paged.start().await.unwrap();
    let tools = paged.tools().unwrap();
    assert!(tools.get("page-4").is_some() && tools.get("page-5").is_none());
    assert_eq!(tools.cut(), None);
    let looping = upstream(&["--loop-cursor"]);
    looping.start().await.unwrap();
    let tools = looping.tools().unwrap();
    assert_eq!(tools.cut(), Some("tools/list repeats a cursor"));
    assert!(!tools.is_empty() && tools.notes()[0].contains("the list is cut after"), "{:?}", tools.notes());
}

#[tokio::test]
async fn tool_descriptions_are_scrubbed() {
    let secrets = SecretRegistry::new();
    secrets.register("key-12345");
    let leaky = entry_with(&[], with_licence);
    let fake = upstream_with(leaky, SnapshotMode::Live, secrets);
    fake.start().await.unwrap();
    let tools = fake.tools().unwrap();
    assert_eq!(tools.get("leaky").unwrap().description.as_deref(), Some("key is [REDACTED]"));
}

#[tokio::test]
async fn list_changed_reloads_the_list_unless_it_is_frozen() {
    for mode in [SnapshotMode::Live, SnapshotMode::Frozen] {
        let fake = upstream_with(entry("fake", &[]), mode, SecretRegistry::new());
        fake.start().await.unwrap();
        call(&fake, "grow", json!({})).await.unwrap();
        if mode == SnapshotMode::Frozen {
            call(&fake, "stats", json!({})).await.unwrap();
            assert!(fake.tools().unwrap().get("grown").is_none());
        } else {
            while fake.tools().unwrap().get("grown").is_none() {
                tokio::task::yield_now().await;
            }
        }
    }
}

#[tokio::test]
async fn the_environment_of_a_child_is_clean() {
    let own = entry_with(&[], |spec| {
        spec.variables.push(("OWN_VARIABLE".into(), Credential::composed("1".to_owned())));
        spec.directory = Some("/".into());
    });
    let fake = upstream_with(own, SnapshotMode::Live, SecretRegistry::new());
    let answer = call(&fake, "env", json!({})).await.unwrap();
    let names: Vec<&str> = answer["structuredContent"]["names"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(names.contains(&"PATH") && names.contains(&"OWN_VARIABLE"));
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    assert_eq!(answer["structuredContent"]["cwd"], json!("/"));
}

#[tokio::test]
async fn stopping_leaves_no_orphans() {
    let folder = std::env::temp_dir().join(format!("ptc-orphan-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("pid");
    let fake = upstream(&["--grandchild", file.to_str().unwrap()]);
    let stats = call(&fake, "stats", json!({})).await.unwrap();
    let child = stats["structuredContent"]["pid"].as_u64().unwrap();
    let grandchild: u64 = std::fs::read_to_string(&file).unwrap().parse().unwrap();
    assert!(is_alive(child) && is_alive(grandchild));
    fake.stop().await;
    assert!(!is_alive(child));
    // The grandchild got SIGKILL; its exit is asynchronous.
    while is_alive(grandchild) {
        tokio::task::yield_now().await;
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn dropping_the_io_runtime_kills_the_children() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (fake, child) = runtime.block_on(async {
        let fake = upstream(&[]);
        let stats = call(&fake, "stats", json!({})).await.unwrap();
        (fake, stats["structuredContent"]["pid"].as_u64().unwrap())
    });
    drop(runtime);
    while is_alive(child) {
        std::thread::yield_now();
    }
    drop(fake);
}
