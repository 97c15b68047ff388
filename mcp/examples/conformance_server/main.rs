//! A server for the official MCP conformance suite, with the tools, resources and prompts that it asks for. It
//! has the handler and the listener of `ptc serve --http`, and runs no programs.
//!
//! ```sh
//! cargo run --package ptc-mcp --example conformance_server -- 127.0.0.1:7398
//! ```
//!
//! `tests/third_party/conformance_server.py` runs the suite against it; docs/conformance.md has the results.
//!
//! # Layout
//!
//! - `plain`: tools that answer. `asking`: tools that ask their client while they run (with a session).
//! - `input_required`: tools that ask in a response, and are called again (2026-07-28).
//! - `tasks`: tools that are called as tasks (the extension of 2026-07-28).
//! - `offerings`: prompts, resources, completions.

#![allow(clippy::disallowed_methods, reason = "an example that owns nothing of the product")]

mod asking;
mod input_required;
mod offerings;
mod plain;
mod tasks;

use ptc_server::console;
use ptc_server::server::http::{Access, Handlers, HttpLimits, HttpListener, HttpSettings};
use ptc_server::server::{DetachedLimits, DetachedRuns, Gate, GateLimits, Handler, ParkingLimits, Surface};
use ptc_server::tools::{Facts, Registry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7398".into());
    let limits = HttpLimits { body_bytes: 8 << 20, ..HttpLimits::default() };
    let listener = HttpListener::bind(HttpSettings {
        address: address.parse()?,
        path: "/mcp".into(),
        origins: Vec::new(),
        instance: "conformance".into(),
        metrics: None,
        page: false,
        limits,
    })
    .await?;
    console::complain(&format!("listening at {}", listener.url()));
    let (facts, changes) = watch::channel(Arc::new(Facts::default()));
    let mut registry = Registry::default();
    registry.tools.extend(plain::tools(&facts));
    registry.tools.extend(asking::tools());
    registry.tools.extend(input_required::tools()?);
    registry.tools.extend(tasks::tools());
    let surface = Surface {
        registry,
        facts: Facts::default(),
        changes: true,
        instructions: "Tools of the conformance suite of MCP.".into(),
        ready: true,
        recorder: None,
    };
    let limits_of_tasks = DetachedLimits { tasks_after: Duration::ZERO, ..DetachedLimits::default() };
    let mut handler = Handler::new(surface)?;
    handler.offerings = Some(Box::new(offerings::ConformanceOfferings));
    handler.detached = DetachedRuns::new(limits_of_tasks, None);
    let gate = Gate::new(GateLimits {
        jobs: 64,
        memory_bytes: 1 << 30,
        queued: 1_024,
        queued_bytes: 16 << 20,
        parking: ParkingLimits::default(),
    });
    listener
        .serve(Handlers::single(Arc::new(handler)), &gate, Access::open(&limits), changes, async {
            // If the signal cannot be awaited, the server ends at once.
            let _ = tokio::signal::ctrl_c().await;
        })
        .await;
    Ok(())
}
