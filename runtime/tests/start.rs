//! The start of many servers: how many at once, when timeouts run, and what happens to those that fail.

mod attach;
use crate::common;
use common::memory::{Habit, MemoryServer};
use common::upstream_with;
use ptc_base::secrets::SecretRegistry;
use ptc_calls::tools::SnapshotMode;
use ptc_engine::{Runtime, RuntimeConfig, StartError};
use ptc_upstream::config::{ServerEntry, Startup};
use ptc_upstream::{StartPermits, Upstream, UpstreamState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

fn entry(name: &str, server: &MemoryServer, startup: Startup) -> ServerEntry {
    let mut entry = ServerEntry::custom(name, Arc::new(server.clone()));
    entry.startup = startup;
    entry
}

fn config(servers: Vec<ServerEntry>) -> RuntimeConfig {
    RuntimeConfig { servers, workers: 1, ..RuntimeConfig::default() }
}

fn states(runtime: &Runtime) -> Vec<UpstreamState> {
    runtime.servers().iter().map(|server| server.state).collect()
}

#[tokio::test(start_paused = true)]
async fn a_start_that_failed_long_ago_is_told_to_who_waits_for_it() {
    let deaf = entry("a", &MemoryServer::new(&[Habit::Unreachable]), Startup::Lenient);
    let upstream = upstream_with(deaf, SnapshotMode::Live, SecretRegistry::new());
    let mut start = std::pin::pin!(upstream.start());
    assert!(timeout(Duration::ZERO, &mut start).await.is_err(), "it is on its way");
    // The start fails and its recovery window ends before the waiting caller is polled.
    tokio::time::sleep(Duration::from_secs(300)).await;
    let told = timeout(Duration::from_secs(300), start).await;
    assert!(told.expect("it ends").is_err());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_start_runs_from_its_own_turn() {
    let deaf = MemoryServer::new(&[Habit::Unreachable]);
    let good = MemoryServer::default();
    let mut servers: Vec<ServerEntry> =
        ["a", "b", "c"].iter().map(|name| entry(name, &deaf, Startup::Lenient)).collect();
    let mut last = entry("last", &good, Startup::Lenient);
    last.handshake_timeout = Duration::from_secs(1);
    servers.push(last);
    let begun = Instant::now();
    let runtime = Runtime::start(RuntimeConfig {
        start_permits: StartPermits::new(1),
        try_again: None,
        ..config(servers)
    })
    .await
    .unwrap();
    runtime.settle().await;
    let (failed, ready) = (UpstreamState::Failed, UpstreamState::Ready);
    assert_eq!(states(&runtime), [failed, failed, failed, ready]);
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(90), "three starts of 30 s, one after the other: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn as_many_start_at_once_as_there_are_places() {
    let deaf = MemoryServer::new(&[Habit::Unreachable]);
    let names = ["a", "b", "c", "d", "e"];
    let servers = names.iter().map(|name| entry(name, &deaf, Startup::Lenient)).collect();
    let runtime = Runtime::start(RuntimeConfig {
        start_permits: StartPermits::new(2),
        try_again: None,
        ..config(servers)
    })
    .await
    .unwrap();
    let mut opened = Vec::new();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(29)).await;
        opened.push(deaf.log().len());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    runtime.settle().await;
    assert_eq!(opened, [2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_lenient_server_that_failed_is_tried_again_without_a_call() {
    let absent = MemoryServer::new(&[Habit::Absent]);
    let runtime = Runtime::start(config(vec![entry("late", &absent, Startup::Lenient)])).await.unwrap();
    runtime.settle().await;
    assert_eq!(states(&runtime), [UpstreamState::Failed]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let tries = absent.log().len();
    assert!((5..=8).contains(&tries), "pauses of 1, 2, 4, 8, 16, 32 s: {tries}");
    absent.set(Habit::Absent, false);
    let mut changes = runtime.catalog_changes();
    changes.wait_for(|catalog| catalog.server("late").unwrap().proven().is_some()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_strict_start_that_fails_is_told_and_stops_all() {
    let (absent, good) = (MemoryServer::new(&[Habit::Absent]), MemoryServer::default());
    let servers = vec![entry("bad", &absent, Startup::Strict), entry("good", &good, Startup::Strict)];
    let runtime = Runtime::launch(config(servers)).unwrap();
    assert!(!runtime.is_started());
    let Err(StartError::Upstreams(failed)) = runtime.started().await else { panic!("it started") };
    assert_eq!(failed.iter().map(|(server, _)| server.as_str()).collect::<Vec<_>>(), ["bad"]);
    assert_eq!(states(&runtime), [UpstreamState::Stopped, UpstreamState::Stopped]);
}
