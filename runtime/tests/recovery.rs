//! The state of a server that is gone, and of one that has come back.

use crate::common;
use common::entry;
use common::programs::{run, runtime_of, value};
use ptc_calls::outcome::{CallFault, CallStatus};
use ptc_calls::tools::SnapshotMode;
use ptc_engine::{Runtime, RuntimeConfig, StartPolicy};
use ptc_upstream::UpstreamState;
use ptc_upstream::config::{ServerEntry, Startup};

fn lenient(name: &str, arguments: &[&str]) -> ServerEntry {
    let mut entry = entry(name, arguments);
    entry.startup = Startup::Lenient;
    entry
}

const RETRY: &str = "(:ok (tool/call {:server \"fake\" :tool \"number\"}))";

async fn until_it_answers(runtime: &Runtime) {
    while value(runtime, RETRY).await != "true" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_list_of_a_crashed_server_describes_but_proves_nothing() {
    let runtime = runtime_of(vec![lenient("fake", &[])], StartPolicy::All, 1).await;
    runtime.settle().await;
    let before = runtime.catalog();
    assert!(before.server("fake").unwrap().proven().is_some());
    assert_eq!(value(&runtime, "(map :state (tool/servers))").await, "[\"ready\"]");

    let crash = run(&runtime, "(tool/call 'fake/crash)").await;
    let CallStatus::Error { reason, .. } = crash.upstream_calls[0].status else { panic!("{crash:?}") };
    assert_eq!(reason, CallFault::UpstreamUnavailable);
    while runtime.servers()[0].state == UpstreamState::Ready {
        tokio::task::yield_now().await;
    }
    let down = runtime.catalog();
    let entry = down.server("fake").unwrap();
    assert!(entry.proven().is_none() && entry.tools.is_some());
    assert!(down.version() > before.version() && down.surface() == before.surface());
    let told = value(&runtime, "(map (juxt :state :error :catalog_loaded) (tool/servers))").await;
    assert_eq!(told, "[[\"backing off\" \"subprocess exited (signal=6)\" false]]");

    until_it_answers(&runtime).await;
    let after = runtime.catalog();
    assert!(after.server("fake").unwrap().proven().is_some());
    assert!(after.version() > down.version() && after.surface() == before.surface());
}

#[tokio::test]
async fn a_frozen_list_outlives_the_process_it_came_from() {
    let config = RuntimeConfig {
        servers: vec![lenient("fake", &[])],
        snapshot: Some(SnapshotMode::Frozen),
        workers: 1,
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::start(config).await.unwrap();
    runtime.settle().await;
    let before = runtime.catalog();
    run(&runtime, "(tool/call 'fake/grow) (tool/call 'fake/crash)").await;
    until_it_answers(&runtime).await;
    let after = runtime.catalog();
    assert_eq!(after.version(), before.version());
    assert!(after.server("fake").unwrap().proven().is_some() && after.tool("fake", "grown").is_none());
}

#[tokio::test]
async fn a_change_of_tools_is_told_once_it_is_known() {
    let runtime = runtime_of(vec![lenient("fake", &[])], StartPolicy::All, 1).await;
    runtime.settle().await;
    let mut changes = runtime.catalog_changes();
    let surface = changes.borrow_and_update().surface();
    run(&runtime, "(tool/call 'fake/grow)").await;
    let changed = changes.wait_for(|catalog| catalog.surface() > surface).await.unwrap();
    assert!(changed.tool("fake", "grown").is_some());
    drop(changed);
    assert_eq!(value(&runtime, "(:ok (tool/call {:server \"fake\" :tool \"grown\"}))").await, "false");
}

#[tokio::test]
async fn a_server_that_fails_at_start_up_does_not_hold_up_the_others() {
    let servers =
        vec![lenient("dying", &["--die-at-start"]), lenient("fake", &[]), lenient("mute", &["--mute"])];
    let runtime = runtime_of(servers, StartPolicy::All, 1).await;
    // The start of the mute server has not timed out yet.
    until_it_answers(&runtime).await;
    let states: Vec<(String, UpstreamState)> =
        runtime.servers().iter().map(|server| (server.name.to_string(), server.state)).collect();
    assert_eq!(states[1], ("fake".to_owned(), UpstreamState::Ready));
    assert_eq!(states[2], ("mute".to_owned(), UpstreamState::Starting));
}
