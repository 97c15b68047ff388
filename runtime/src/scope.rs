//! Places of a runtime where programs have tools and namespaces of their own.

use crate::broker::ToolBroker;
use crate::exec::dispatch::{Dispatcher, RunPlace, Submitted};
use crate::guest::lisp::Lisp;
use crate::guest::lisp::prelude::Prelude;
use crate::guest::lisp::session::SessionLimits;
use crate::handle::{Run, RunStream};
use crate::host::HostTool;
use crate::run::options::RunOptions;
use crate::run::outcome::Failure;
use crate::run::watcher::RunWatcher;
use crate::secrets::SecretRegistry;
use crate::session::{Session, SessionBusy};
use crate::startup::StartError;
use crate::tools::{Catalog, ServerNames};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A place of a runtime ([`Runtime::base`](crate::Runtime::base)): servers, workers and compiled programs are those of the
/// runtime, tools of the host and namespaces are its own. Programs of a runtime that has been shut down are not run.
#[derive(Clone)]
pub struct Scope {
    pub(crate) lisp: Arc<Lisp>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    /// Sessions that there have been in the runtime: each takes the next worker.
    sessions: Arc<AtomicUsize>,
}

impl Scope {
    pub(crate) fn new(lisp: Lisp, dispatcher: Arc<Dispatcher>) -> Scope {
        Scope { lisp: Arc::new(lisp), dispatcher, sessions: Arc::default() }
    }

    /// A place inside this one, with these tools of the host instead of its own, and these namespaces beside its own. What
    /// its own namespaces need of its own tools stays there, for them alone.
    ///
    /// # Errors
    /// A tool that programs could not call, or that has the name of another one that a namespace needs; a namespace that is
    /// there twice.
    pub fn with(&self, tools: Vec<HostTool>, preludes: &[Arc<Prelude>]) -> Result<Scope, StartError> {
        let tools = self.lisp.tools_with_inherited(tools).map_err(StartError::Tool)?;
        let lisp = self.lisp.with(preludes, tools).map_err(StartError::Prelude)?;
        Ok(Scope { lisp: Arc::new(lisp), ..self.clone() })
    }

    /// Whether programs may have a tool at all: a runtime that only reads has none that may change something.
    #[cfg(feature = "agent")]
    pub(crate) fn admits(&self, tool: &HostTool) -> bool {
        tool.is_admitted(self.lisp.is_read_only())
    }

    /// The same place without upstream servers.
    #[must_use]
    pub fn without_servers(&self) -> Scope {
        Scope { lisp: Arc::new(self.lisp.without_servers()), ..self.clone() }
    }

    /// The same place with these of its servers. Exports of its namespaces that need others are not there.
    #[must_use]
    pub fn only(&self, servers: ServerNames) -> Scope {
        Scope { lisp: Arc::new(self.lisp.only(servers)), ..self.clone() }
    }

    /// What the namespaces of this place need of servers and tools is there at this moment. Every program looks at
    /// that before it begins; whoever has other work to do first may look before.
    ///
    /// # Errors
    /// `prelude_attach_failed`: what is missing.
    pub fn check(&self) -> Result<(), Failure> {
        self.lisp.check()
    }

    /// The same workers with nothing that programs could reach.
    #[cfg(feature = "agent")]
    pub(crate) fn bare(&self) -> Scope {
        Scope { lisp: Arc::new(self.lisp.bare()), ..self.clone() }
    }

    /// Who calls tools for its programs.
    pub(crate) fn broker(&self) -> &Arc<ToolBroker> {
        self.lisp.broker()
    }

    /// There are upstream servers.
    pub fn has_servers(&self) -> bool {
        self.catalog().servers().len() > 0
    }

    /// The tools of all servers at this moment.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.lisp.broker().catalog().snapshot()
    }

    /// What programs find in the namespaces of this place, a line each.
    pub fn inventory(&self) -> String {
        self.lisp.inventory()
    }

    /// What a record of a run in this place says of its namespaces.
    #[cfg(feature = "agent")]
    pub(crate) fn prelude_trace(&self) -> Option<Arc<serde_json::Value>> {
        self.lisp.prelude_trace()
    }

    /// What must not leave the process.
    pub fn secrets(&self) -> &SecretRegistry {
        self.lisp.broker().secrets()
    }

    /// Runs a program. It is queued at once; dropping the future cancels it, calls in flight included.
    pub fn run(&self, source: impl Into<Arc<str>>, options: RunOptions) -> Run {
        Run::begin(|watcher| self.submit(source, options, watcher))
    }

    /// Runs a program as [`Scope::run`] does, and tells of its printed lines and calls as they come.
    pub fn stream(&self, source: impl Into<Arc<str>>, options: RunOptions) -> RunStream {
        RunStream::begin(|watcher| self.submit(source, options, watcher))
    }

    /// Queues a program; its watcher is told how it goes.
    pub fn submit(
        &self,
        source: impl Into<Arc<str>>,
        options: RunOptions,
        watcher: Box<dyn RunWatcher>,
    ) -> Submitted {
        let (limits, since) = (options.limits, options.since.unwrap_or_else(Instant::now));
        let guest = self.lisp.guest(source.into(), options);
        self.dispatcher.submit(RunPlace::Anywhere, limits, guest, watcher, since)
    }

    /// Lets a session go on in this place, and says when it does: programs that follow have its namespaces and tools, and
    /// functions that the session has call what is there.
    ///
    /// # Errors
    /// A program of the session is under way.
    pub fn take_over(
        &self,
        session: &Session,
        done: impl FnOnce() + Send + 'static,
    ) -> Result<(), SessionBusy> {
        session.turn()?.move_to(self.lisp.clone(), done);
        Ok(())
    }

    /// A new session: programs that build on each other. It ends when it is closed or dropped.
    pub fn session(&self, limits: SessionLimits) -> Session {
        let worker = self.sessions.fetch_add(1, Ordering::Relaxed) % self.dispatcher.queue.inboxes().len();
        Session::begin(self.lisp.clone(), self.dispatcher.clone(), worker, limits)
    }
}
