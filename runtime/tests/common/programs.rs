//! Runs programs in tests.

use super::entry;
use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_calls::outcome::{Failure, Outcome};
use ptc_engine::{Runtime, RuntimeConfig, StartPolicy};
use ptc_upstream::config::ServerEntry;

/// A runtime with these servers.
pub(crate) async fn runtime_of(servers: Vec<ServerEntry>, start: StartPolicy, workers: usize) -> Runtime {
    let config = RuntimeConfig { servers, start, workers, ..RuntimeConfig::default() };
    Runtime::start(config).await.unwrap()
}

/// A runtime with one worker and one fake server named `fake`, already started.
pub(crate) async fn runtime() -> Runtime {
    runtime_of(vec![entry("fake", &[])], StartPolicy::All, 1).await
}

/// Generous limits, so that a slow machine does not matter.
pub(crate) fn options() -> RunOptions {
    RunOptions { limits: Limits { timeout_ms: 60_000, ..Limits::with_upstreams() }, ..RunOptions::default() }
}

pub(crate) async fn run(runtime: &Runtime, source: &str) -> Outcome {
    runtime.run(source, options()).await
}

/// `pr-str` of the answer.
pub(crate) async fn value(runtime: &Runtime, source: &str) -> String {
    let outcome = run(runtime, source).await;
    outcome.result.unwrap_or_else(|failure| panic!("{}", failure.compact())).text
}

pub(crate) async fn failure(runtime: &Runtime, source: &str) -> Failure {
    match run(runtime, source).await.result {
        Ok(answer) => panic!("no failure but {}", answer.text),
        Err(failure) => failure,
    }
}
