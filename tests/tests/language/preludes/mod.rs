//! Tests of preludes: namespaces that a host provides, from their text to what a program gets.
//!
//! - `compile`: invalid texts; `attach`: what preludes require of a host
//! - `calls`: programs that call into a prelude; `discovery`: programs that look for exports
//! - `linked`: calls between programs and preludes, in all directions; `isolates`: one prelude in several isolates
//! - `promises`: how faults, records, lists and commands show preludes
//! - `model`: random preludes, compared with the same definitions in a program
//! - `served`: preludes as files of the command line; `command`: `ptc prelude`
//! - `store`: versions of preludes; `mentions`: preludes in records and descriptions
//! - `guide`: the guide, block by block

mod attach;
mod calls;
mod command;
mod compile;
mod discovery;
mod guide;
mod isolates;
mod linked;
mod mentions;
mod model;
mod promises;
mod served;
mod store;

use ptc_calls::options::RunOptions;
use ptc_calls::outcome::Outcome;
use ptc_engine::{Prelude, Runtime, RuntimeConfig, StartPolicy};
use std::sync::Arc;

/// The prelude of the guide.
const CRM: &str = include_str!("../../../preludes/crm.clj");

fn prelude(text: &str) -> Arc<Prelude> {
    Arc::new(Prelude::compile("p.clj", text).unwrap_or_else(|error| panic!("{text}\n{error:?}")))
}

/// A runtime without servers that attaches this prelude to its programs.
async fn runtime(text: &str) -> Runtime {
    let preludes = vec![prelude(text)];
    let config = RuntimeConfig { preludes, start: StartPolicy::Lazy, workers: 1, ..RuntimeConfig::default() };
    Runtime::start(config).await.expect("no servers")
}

async fn run(runtime: &Runtime, source: &str) -> Outcome {
    runtime.run(source, RunOptions::default()).await
}

async fn value(runtime: &Runtime, source: &str) -> String {
    run(runtime, source).await.result.unwrap_or_else(|failure| panic!("{source}: {failure:?}")).text
}

/// The reason and the message of a program that fails.
async fn failure(runtime: &Runtime, source: &str) -> (&'static str, String) {
    let failure = run(runtime, source).await.result.expect_err(source);
    (failure.reason.raw(), failure.message)
}
