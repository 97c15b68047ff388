//! Starts upstream servers in parallel when a runtime starts: all of them, none, or, if the runtime is made for one
//! program, the servers that this program may call. The other servers start with their first call. A server that fails
//! to start keeps the runtime from starting only if the configuration requires that server.
//!
//! [`StartPolicy::of_program`] compiles a program to find the servers that it may call.
//!
//! - [`config`]: the configuration of a runtime. [`supervision`]: a supervised upstream of each configured server.
//! - [`error`]: why a runtime did not start.

mod config;
mod error;
mod supervision;

pub use config::{Capacity, DEFAULT_CACHE_BYTES, DEFAULT_TRY_AGAIN, RuntimeConfig};
pub use error::StartError;
pub(crate) use supervision::{Supervision, check};

use crate::guest::lisp::prelude::Prelude;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use ptc_base::tasks::{self, TaskOwner};
use ptc_compiler::{CompileOptions, Externals};
use ptc_upstream::config::Startup;
use ptc_upstream::{Upstream, UpstreamFault};
use ptc_vm::{Interrupt, InterruptKind};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Something that happened to a server during start-up.
#[derive(Clone, Debug)]
pub struct StartEvent {
    /// Configured name.
    pub server: String,
    /// The event.
    pub progress: StartProgress,
}

/// The kinds of events.
#[derive(Clone, Debug)]
pub enum StartProgress {
    /// Its start began.
    Starting,
    /// It takes calls.
    Ready {
        /// How long the start took.
        duration: Duration,
        /// How many tools it has.
        tools: usize,
    },
    /// It could not start.
    Failed {
        /// The reason.
        error: String,
    },
}

/// Is notified of servers as they start.
pub type Observer = Arc<dyn Fn(StartEvent) + Send + Sync>;

/// Which servers start immediately; the others start with their first call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StartPolicy {
    /// All.
    #[default]
    All,
    /// Those a program names.
    Named(BTreeSet<String>),
    /// None.
    Lazy,
}

/// Time limit for finding the servers that a program names.
const LOOK: Duration = Duration::from_secs(1);

impl StartPolicy {
    /// The servers that a program may call. A program that does not compile needs none: its run reports the
    /// errors.
    #[must_use]
    pub fn of_program(source: &str, prelude: Option<&Prelude>) -> StartPolicy {
        let interrupt = Interrupt::default();
        let mut options = CompileOptions::default();
        options.budget.interrupt = Some(interrupt.clone());
        let namespaces: Vec<_> = prelude.iter().flat_map(|prelude| prelude.namespaces()).collect();
        let externals = Externals { namespaces: &namespaces, ..Externals::default() };
        let compiled = std::thread::scope(|scope| {
            let clock = scope.spawn(|| {
                std::thread::park_timeout(LOOK);
                interrupt.set(InterruptKind::Deadline);
            });
            let compiled = ptc_compiler::compile(source, &externals, &options);
            clock.thread().unpark();
            compiled
        });
        let Ok(compiled) = compiled else { return StartPolicy::Lazy };
        let mut servers = compiled.servers;
        if let Some(through) = prelude.map(|prelude| prelude.servers(&compiled.program)) {
            servers.dynamic |= through.dynamic;
            servers.named.extend(through.named);
        }
        match servers.dynamic {
            true => StartPolicy::All,
            false => StartPolicy::Named(servers.named),
        }
    }
}

/// A start in the background.
pub(crate) type Starting = tokio::task::JoinHandle<Result<(), UpstreamFault>>;

/// The end of a start, for any number of waiters.
pub(crate) type Settled = Shared<BoxFuture<'static, ()>>;

/// Starts in the background.
#[derive(Default)]
pub(crate) struct Starts {
    /// Servers that have to start.
    pub(crate) strict: Vec<(String, Starting)>,
    /// Servers that may be missing. Each resolves when its first start has succeeded or failed.
    pub(crate) lenient: Vec<Settled>,
}

/// Starts servers, limited by their [`StartPermits`](ptc_upstream::StartPermits).
pub(crate) fn start_all(servers: Vec<(Arc<dyn Upstream>, Startup)>, observer: Option<&Observer>) -> Starts {
    let mut starts = Starts::default();
    for (upstream, policy) in servers {
        let name = upstream.name().to_string();
        let task = tasks::spawn(TaskOwner::Connection, start_one(upstream, observer.cloned()));
        match policy {
            Startup::Strict => starts.strict.push((name, task)),
            Startup::Lenient => starts.lenient.push(task.map(drop).boxed().shared()),
        }
    }
    starts
}

/// Waits for all of them; returns those that failed, with the reasons.
pub(crate) async fn failures(strict: Vec<(String, Starting)>) -> Vec<(String, String)> {
    let mut failed = Vec::new();
    for (server, task) in strict {
        match task.await {
            // A server that waits for a login has not failed: it says so to each call.
            Ok(Ok(()) | Err(UpstreamFault::LoginRequired(_))) => {}
            Ok(Err(fault)) => failed.push((server, fault.to_string())),
            Err(error) => failed.push((server, error.to_string())),
        }
    }
    failed
}

async fn start_one(upstream: Arc<dyn Upstream>, observer: Option<Observer>) -> Result<(), UpstreamFault> {
    let tell = |progress: StartProgress| {
        if let Some(observer) = &observer {
            observer(StartEvent { server: upstream.name().to_string(), progress });
        }
    };
    let begun = Instant::now();
    tell(StartProgress::Starting);
    let started = upstream.start().await;
    tell(match &started {
        Ok(()) => StartProgress::Ready {
            duration: begun.elapsed(),
            tools: upstream.tools().map_or(0, |tools| tools.len()),
        },
        Err(fault) => StartProgress::Failed { error: fault.to_string() },
    });
    started
}

/// Stops servers in parallel.
pub(crate) async fn stop_all(upstreams: impl Iterator<Item = &Arc<dyn Upstream>>) {
    futures_util::future::join_all(upstreams.map(|upstream| upstream.stop())).await;
}
