//! Example of limits and failures: a tool with shared state, a program that makes too many calls of it, and what the
//! application reads of the outcome.
//!
//! `cargo run -p ptc-runtime --example limits`
#![allow(clippy::disallowed_macros, reason = "an example prints")]

use ptc_runtime::{HostTool, RunOptions, Runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Next {
    step: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let total = Arc::new(AtomicU64::new(0));
    let shared = total.clone();
    let next = HostTool::new("next", move |Next { step }: Next| {
        let total = shared.clone();
        async move {
            if step > 100 {
                return Err(format!("{step} is too large"));
            }
            Ok(total.fetch_add(step, Ordering::Relaxed) + step)
        }
    });
    let runtime = Runtime::builder().tool(next).start().await?;
    for program in ["(mapv tool/next [1 2 3])", "(mapv tool/next [1 2 3 4])", "(tool/next 101)"] {
        let mut options = RunOptions::typed();
        options.limits.timeout_ms = 2_000;
        options.limits.max_upstream_calls = 3;
        let outcome = runtime.run(program, options).await;
        match &outcome.result {
            Ok(answer) => print!("{}", answer.text),
            Err(failure) => print!("{}: {}", failure.reason.raw(), failure.message),
        }
        println!(" ({} calls)", outcome.usage.upstream_calls);
    }
    runtime.shutdown().await;
    Ok(())
}
