//! Makes a supervised upstream of each configured server, starts them in parallel under their start-up
//! policies, reports failures, and stops them.
//!
//! [`StartPolicy::of_program`] compiles a program to find the servers that it may call.
//!
//! - [`config`]: the configuration of a runtime.

mod config;

pub use config::{Capacity, DEFAULT_CACHE_BYTES, DEFAULT_TRY_AGAIN, RuntimeConfig};

use crate::guest::lisp::prelude::Prelude;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use ptc_base::oauth::LoginOptions;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::policy::{PinReview, PolicyError};
use ptc_calls::state::{ListMemory, ShapeMemory, StateStore};
use ptc_calls::tools::{SharedCatalog, SnapshotMode, ToolList};
use ptc_compiler::{CompileOptions, Externals};
use ptc_upstream::config::{ServerEntry, Startup};
use ptc_upstream::{
    FailedStart, Guardian, OwnedUpstreams, SupervisedUpstream, SupervisorOptions, Upstream, UpstreamFault,
};
use ptc_vm::{Interrupt, InterruptKind};
use std::collections::BTreeSet;
use std::fmt;
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

/// Why a runtime did not start.
#[derive(Debug)]
pub enum StartError {
    /// A configured command is this very program.
    SelfAsUpstream {
        /// The server.
        server: String,
    },
    /// Two servers have one name.
    DuplicateServer {
        /// The name.
        server: String,
    },
    /// A tool of the host cannot be called by programs; the reason.
    Tool(String),
    /// Two preludes have a namespace of this name.
    Prelude(String),
    /// Strict servers that did not start, with the reason of each.
    Upstreams(Vec<(String, String)>),
    /// A rule of the policy names a server that is not configured.
    Policy(PolicyError),
    /// No thread could be started.
    Threads(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::SelfAsUpstream { server } => {
                write!(f, "upstream {server}: its command is this program itself, which is not allowed")
            }
            StartError::DuplicateServer { server } => write!(f, "upstream {server} is configured twice"),
            StartError::Tool(why) | StartError::Prelude(why) => f.write_str(why),
            StartError::Upstreams(failed) => {
                for (at, (server, error)) in failed.iter().enumerate() {
                    let newline = if at > 0 { "\n" } else { "" };
                    write!(f, "{newline}upstream {server} could not start: {error}")?;
                }
                Ok(())
            }
            StartError::Policy(error) => write!(f, "{error}"),
            StartError::Threads(error) => write!(f, "cannot start worker threads: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

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

/// How the servers of one runtime are run, including those that are configured later.
pub(crate) struct Supervision {
    pub(crate) config: RuntimeConfig,
    pub(crate) guardian: Arc<Guardian>,
    /// What is remembered between runs.
    pub(crate) state: Option<Arc<StateStore>>,
    /// The shapes of results.
    pub(crate) shapes: Arc<ShapeMemory>,
}

impl Supervision {
    pub(crate) fn new(config: RuntimeConfig) -> Supervision {
        let guardian = if config.adopts_orphans { Guardian::adopting() } else { Guardian::default() };
        let state = config.state_folder.clone().map(|folder| Arc::new(StateStore::new(folder)));
        let shapes = ShapeMemory::new(config.learned_shapes, state.clone(), config.secrets.clone());
        Supervision { config, guardian: Arc::new(guardian), state, shapes: Arc::new(shapes) }
    }

    /// A server that publishes its tools in `catalog`; and its policy, if it is to start immediately.
    pub(crate) fn supervise(
        &self,
        entry: ServerEntry,
        catalog: &SharedCatalog,
    ) -> (Arc<dyn Upstream>, Option<Startup>) {
        let config = &self.config;
        let policy = match config.startup {
            Some(policy) if !entry.startup_is_explicit => policy,
            _ => entry.startup,
        };
        let at_once = match &config.start {
            StartPolicy::All => true,
            StartPolicy::Named(names) => names.contains(&*entry.name),
            StartPolicy::Lazy => false,
        };
        let tools = entry.tools.read_only(config.read_only);
        let identity = entry.transport.identity();
        self.shapes.add_server(&entry.name, &identity);
        let memory = self.state.as_ref().map(|state| ListMemory::new(state, &entry.name, &identity));
        if let Some(listed) = memory.as_ref().and_then(ListMemory::last) {
            catalog.remember(
                &entry.name,
                ToolList::new(config.pins.reviewed(&entry.name, tools.admitted(&entry.name, listed))),
            );
        }
        let of_callers = config.logins.serves_many && entry.transport.has_login_of_callers();
        let options = SupervisorOptions {
            name: entry.name,
            description: entry.description,
            transport: entry.transport,
            handshake_timeout: entry.handshake_timeout,
            start_permits: config.start_permits.clone(),
            failed_start: match (at_once, policy, config.try_again) {
                (true, Startup::Strict, _) => FailedStart::Reported,
                (true, Startup::Lenient, _) if config.reports_starts => FailedStart::Reported,
                (true, Startup::Lenient, Some(pause)) => FailedStart::TriedAgain(pause),
                (true, Startup::Lenient, None) | (false, ..) => FailedStart::NextCall,
            },
            unresponsive_timeout: entry.unresponsive_timeout,
            guardian: self.guardian.clone(),
            mode: match config.snapshot {
                Some(mode) => mode,
                None if policy == Startup::Strict && config.start == StartPolicy::All => SnapshotMode::Frozen,
                None => SnapshotMode::Live,
            },
            list_ttl: config.list_ttl,
            policy: tools,
            pins: config.pins.clone(),
            limits: entry.limits,
            catalog: catalog.clone(),
            memory,
            secrets: config.secrets.clone(),
            client: config.client.clone(),
            logins: config.logins.clone(),
        };
        if of_callers {
            let (base, options) = (SupervisedUpstream::new(options.clone()), options);
            let make = move |owner| {
                let logins = LoginOptions { owner: Some(owner), ..options.logins.clone() };
                SupervisedUpstream::new(SupervisorOptions { logins, memory: None, ..options.clone() })
            };
            return (Arc::new(OwnedUpstreams::new(base, Box::new(make))), at_once.then_some(policy));
        }
        let upstream = Arc::new(SupervisedUpstream::new(options));
        (upstream, at_once.then_some(policy))
    }
}

/// Refuses invalid sets of servers: this very program, or two of one name.
pub(crate) fn check(servers: &[ServerEntry]) -> Result<(), StartError> {
    let mut names = std::collections::HashSet::new();
    for entry in servers {
        let server = entry.name.to_string();
        if !names.insert(&entry.name) {
            return Err(StartError::DuplicateServer { server });
        }
        if entry.is_forbidden_self() {
            return Err(StartError::SelfAsUpstream { server });
        }
    }
    Ok(())
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
