//! Servers of each protocol era, of both, and of neither.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]

use crate::common;
use common::{call, entry, request, upstream, upstream_with};
use ptc_base::secrets::SecretRegistry;
use ptc_calls::tools::SnapshotMode;
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{SupervisedUpstream, Upstream, UpstreamFault, UpstreamState};
use serde_json::json;
use std::time::Duration;

fn live(entry: ServerEntry) -> SupervisedUpstream {
    upstream_with(entry, SnapshotMode::Live, SecretRegistry::new())
}

async fn protocol_of(fake: &SupervisedUpstream) -> String {
    fake.start().await.unwrap();
    assert_eq!(call(fake, "number", json!({})).await.unwrap()["content"][0]["text"], "42");
    fake.status().protocol.unwrap()
}

#[tokio::test]
async fn a_server_with_a_handshake_gets_one() {
    assert_eq!(protocol_of(&upstream(&[])).await, "2024-11-05");
}

#[tokio::test]
async fn a_stateless_server_needs_no_handshake() {
    let fake = upstream(&["--stateless"]);
    assert_eq!(protocol_of(&fake).await, "2026-07-28");
    assert_eq!(fake.status().server_info.as_deref(), Some("fake 10"));
    // Its changes arrive through a subscription.
    call(&fake, "grow", json!({})).await.unwrap();
    while fake.tools().unwrap().get("grown").is_none() {
        tokio::task::yield_now().await;
    }
    let short = request("hang", json!({})).within(Duration::from_millis(50));
    assert!(matches!(fake.call(short).await, Err(UpstreamFault::Timeout(_))));
    let stats = call(&fake, "stats", json!({})).await.unwrap();
    assert_eq!(stats["structuredContent"]["cancelled"][0]["reason"], "timeout");
}

#[tokio::test]
async fn a_server_that_is_deaf_to_the_probe_gets_a_handshake_all_the_same() {
    let mut deaf = entry("fake", &["--deaf"]);
    deaf.handshake_timeout = Duration::from_secs(6);
    assert_eq!(protocol_of(&live(deaf)).await, "2024-11-05");
}

#[tokio::test]
async fn a_server_that_ends_at_the_probe_is_started_again_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("starts");
    let fake = upstream(&["--strict", "--starts", file.to_str().unwrap()]);
    let starts = || std::fs::read_to_string(&file).unwrap().lines().count();
    assert_eq!(protocol_of(&fake).await, "2024-11-05");
    assert_eq!(starts(), 2);
    // The detected era is remembered.
    call(&fake, "exit", json!({"code": 0})).await.unwrap_err();
    assert_eq!(protocol_of(&fake).await, "2024-11-05");
    assert_eq!(starts(), 3);
}

#[tokio::test]
async fn without_a_common_version_the_start_fails_and_says_so() {
    let fake = upstream(&["--future"]);
    let fault = fake.start().await.unwrap_err().to_string();
    let want = "handshake failed: no common protocol version: the server speaks 2031-01-01; \
                ptc speaks 2026-07-28, 2025-11-25, ";
    assert!(fault.starts_with(want), "{fault}");
    assert_eq!(fake.status().state, UpstreamState::Failed);
    // In the answer to `initialize`, and in its refusal.
    for how in ["--speaks", "--refuses"] {
        let fake = upstream(&[how, "2031-01-01"]);
        let fault = fake.start().await.unwrap_err().to_string();
        assert!(fault.starts_with(want), "{how}: {fault}");
    }
    let fault = upstream(&["--speaks", "2026-07-28"]).start().await.unwrap_err().to_string();
    assert!(fault.contains("answered with 2026-07-28, a protocol version without initialize"), "{fault}");
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        assert_eq!(protocol_of(&upstream(&["--speaks", revision])).await, revision);
    }
}
