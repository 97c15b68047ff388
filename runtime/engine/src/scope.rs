//! Defines [`Scope`], which runs programs and sessions on a shared runtime with its own choice of what they can call:
//! other application tools, additional Lisp namespaces, or fewer servers.

use crate::broker::ToolBroker;
use crate::exec::handle::Submitted;
use crate::exec::queue::{Queue, WorkerChoice};
use crate::guest::lisp::Lisp;
use crate::guest::lisp::driver::Execution;
use crate::guest::lisp::prelude::Prelude;
use crate::guest::lisp::session::SessionLimits;
use crate::handle::{Run, RunStream};
use crate::session::{Session, SessionBusy};
use crate::startup::StartError;
use ptc_base::secrets::SecretRegistry;
use ptc_calls::host::HostTool;
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::Failure;
use ptc_calls::run::watcher::RunWatcher;
use ptc_calls::tools::{Catalog, ServerNames};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A scope of a runtime ([`Runtime::base`](crate::Runtime::base)). It shares servers, workers and compiled
/// programs with the runtime and has its own tools of the host and namespaces. After the runtime's shutdown
/// its programs are not run.
#[derive(Clone)]
pub struct Scope {
    pub(crate) lisp: Arc<Lisp>,
    pub(crate) queue: Arc<Queue>,
    /// Number of sessions that the runtime has had: each takes the next worker.
    sessions: Arc<AtomicUsize>,
}

impl Scope {
    pub(crate) fn new(lisp: Lisp, queue: Arc<Queue>) -> Scope {
        Scope { lisp: Arc::new(lisp), queue, sessions: Arc::default() }
    }

    /// A scope inside this one. These tools replace its tools, and these namespaces are added to its own.
    /// Tools that its own namespaces need remain, for them alone.
    ///
    /// # Errors
    /// A tool that programs could not call, or that has the name of one that a namespace needs; two
    /// namespaces of one name.
    pub fn with(&self, tools: Vec<HostTool>, preludes: &[Arc<Prelude>]) -> Result<Scope, StartError> {
        let tools = self.lisp.tools_with_inherited(tools).map_err(StartError::Tool)?;
        let lisp = self.lisp.with(preludes, tools).map_err(StartError::Prelude)?;
        Ok(Scope { lisp: Arc::new(lisp), ..self.clone() })
    }

    /// Whether programs may have this tool: a read-only runtime admits only tools that read.
    #[doc(hidden)]
    pub fn admits(&self, tool: &HostTool) -> bool {
        tool.is_admitted(self.lisp.read_only)
    }

    /// The same scope without upstream servers.
    #[must_use]
    pub fn without_servers(&self) -> Scope {
        Scope { lisp: Arc::new(self.lisp.without_servers()), ..self.clone() }
    }

    /// The same scope with only these servers. Exports of its namespaces that need others are removed.
    #[must_use]
    #[doc(hidden)]
    pub fn restricted_to(&self, servers: ServerNames) -> Scope {
        Scope { lisp: Arc::new(self.lisp.restricted_to(servers)), ..self.clone() }
    }

    /// Checks that the namespaces of this scope have what they need at this moment. Every program checks that
    /// before it begins; call this to find out before other work.
    ///
    /// # Errors
    /// `prelude_attach_failed`: what is missing.
    pub fn check(&self) -> Result<(), Failure> {
        self.lisp.check()
    }

    /// The same workers with nothing that programs could call.
    #[doc(hidden)]
    pub fn bare(&self) -> Scope {
        Scope { lisp: Arc::new(self.lisp.bare()), ..self.clone() }
    }

    /// The broker, which calls tools for its programs.
    pub(crate) fn broker(&self) -> &Arc<ToolBroker> {
        self.lisp.broker()
    }

    /// True when it has upstream servers.
    #[doc(hidden)]
    pub fn has_servers(&self) -> bool {
        self.catalog().servers().len() > 0
    }

    /// The tools of all servers at this moment.
    #[doc(hidden)]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.lisp.broker().catalog().snapshot()
    }

    /// The exports of its namespaces, a line each, for prompts.
    #[doc(hidden)]
    pub fn inventory(&self) -> String {
        self.lisp.inventory()
    }

    /// Facts about its namespaces for records of runs.
    pub fn prelude_trace(&self) -> Option<Arc<serde_json::Value>> {
        self.lisp.prelude_trace()
    }

    /// The secrets that texts are redacted of.
    pub fn secrets(&self) -> &SecretRegistry {
        self.lisp.broker().secrets()
    }

    /// Runs a program. It is queued at once; dropping the future cancels it with its calls in flight.
    pub fn run(&self, source: impl Into<Arc<str>>, options: RunOptions) -> Run {
        Run::begin(|watcher| self.submit(source, options, watcher))
    }

    /// [`Scope::run`] that also delivers printed lines and calls as they happen.
    pub fn stream(&self, source: impl Into<Arc<str>>, options: RunOptions) -> RunStream {
        RunStream::begin(|watcher| self.submit(source, options, watcher))
    }

    /// Queues a program; its watcher is notified of its progress.
    #[doc(hidden)]
    pub fn submit(
        &self,
        source: impl Into<Arc<str>>,
        options: RunOptions,
        watcher: Box<dyn RunWatcher>,
    ) -> Submitted {
        let (limits, since) = (options.limits, options.since.unwrap_or_else(Instant::now));
        let (lisp, source) = (self.lisp.clone(), source.into());
        let make = Box::new(move |account, port, preemption| {
            Execution::begin(lisp, source, options, None, account, port, preemption)
        });
        self.queue.submit(WorkerChoice::Any, limits, make, watcher, since)
    }

    /// Moves a session to this scope, and calls `done` afterwards. Later programs have its namespaces and
    /// tools, and functions of the session call what is there.
    ///
    /// # Errors
    /// A program of the session is running.
    #[doc(hidden)]
    pub fn take_over(
        &self,
        session: &Session,
        done: impl FnOnce() + Send + 'static,
    ) -> Result<(), SessionBusy> {
        session.acquire()?.move_to(self.lisp.clone(), done);
        Ok(())
    }

    /// A new session: programs that build on each other. It ends when it is closed or dropped.
    pub fn session(&self, limits: SessionLimits) -> Session {
        let worker = self.sessions.fetch_add(1, Ordering::Relaxed) % self.queue.inboxes.len();
        Session::begin(self.lisp.clone(), self.queue.clone(), worker, limits)
    }
}
