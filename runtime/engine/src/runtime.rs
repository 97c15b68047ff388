//! Defines [`Runtime`], the main interface of the engine: it starts workers and servers, runs programs, and manages the
//! servers until shutdown.

mod configured;

pub use configured::Reconfigured;

use crate::broker::{ResultCache, ToolBroker, Upstreams};
use crate::exec::commitment::Commitments;
use crate::exec::handle::Submitted;
use crate::exec::queue::{Queue, WorkerChoice};
use crate::exec::resources::SharedResources;
use crate::exec::watchdog::Watchdog;
use crate::exec::worker::Worker;
use crate::guest::lisp::prelude::Prelude;
use crate::guest::lisp::session::SessionLimits;
use crate::guest::lisp::{Lisp, fast_path};
use crate::guest::{AsyncRun, MakeGuest};
use crate::handle::{Run, RunStream};
use crate::scope::Scope;
use crate::session::Session;
use crate::startup::{self, Capacity, RuntimeConfig, StartError, Starts, Supervision};
use configured::{Configured, described};
use ptc_base::secrets::{DocumentShape, SecretRegistry};
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::host::GrantedTools;
use ptc_calls::journal::DurableRuns;
use ptc_calls::policy::{
    KnownServer, PinLock, PinMode, Policy, PolicyError, PolicyFinding, PolicyState, SharedPolicy,
};
use ptc_calls::run::limits::Limits;
use ptc_calls::run::options::RunOptions;
use ptc_calls::run::outcome::{Failure, Outcome};
use ptc_calls::run::watcher::RunWatcher;
use ptc_calls::state::ShapeMemory;
use ptc_calls::tools::{Catalog, ServerNames, ServerText, SharedCatalog, ToolList, UpstreamTool};
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{ClientFeatures, ServerRelay, UpstreamState};
use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// State of one configured server, for people.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Configured name.
    pub name: Arc<str>,
    /// Configured description.
    pub description: Option<String>,
    /// Its state.
    pub state: UpstreamState,
    /// Why it is not ready.
    pub error: Option<ServerText>,
    /// How long its last successful start took.
    pub start_duration: Option<Duration>,
    /// `name version` as the server reports them.
    pub server_info: Option<String>,
    /// Negotiated version of the protocol.
    pub protocol: Option<String>,
    /// Its tools in name order; empty while `tools_loaded` is false.
    #[doc(hidden)]
    pub tools: Vec<Arc<UpstreamTool>>,
    /// Its tools were listed.
    pub tools_loaded: bool,
    /// Problems of its tool list.
    pub notes: Vec<String>,
    /// How it is reached: its transport, and its command or address, without secrets.
    pub descriptor: serde_json::Value,
    /// When its tools were last listed.
    pub listed_at: Option<SystemTime>,
}

/// Runs programs. It is shared as an `Arc`, or by its scope ([`Runtime::base`]), which can be cloned.
///
/// Dropping it stops the programs and, in the background, the servers; [`Runtime::shutdown`] waits for both. A program that
/// is submitted after that ends as `cancelled`.
pub struct Runtime {
    /// Calls tools for its programs.
    broker: Arc<ToolBroker>,
    /// The scope of its own programs.
    base: Scope,
    inner: Arc<RuntimeInner>,
}

/// State that a runtime and its restricted views share.
struct RuntimeInner {
    /// The broker of all servers.
    broker: Arc<ToolBroker>,
    configured: Mutex<Configured>,
    supervision: Supervision,
    queue: Arc<Queue>,
    resources: Arc<SharedResources>,
    watchdog: Arc<Watchdog>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Servers that are starting.
    starting: Mutex<Starts>,
}

impl Runtime {
    /// Starts workers and servers. It must be called on a tokio runtime with I/O and time. That becomes the
    /// I/O runtime: upstream connections and timers live on it, programs do not.
    ///
    /// It returns when every strict server has started (those of a file with `upstreams`); lenient ones (`mcpServers`) go on
    /// starting in the background: [`Runtime::servers`] shows their states.
    ///
    /// # Errors
    /// A server is this very program; a strict server did not start; no thread could be started.
    pub async fn start(config: RuntimeConfig) -> Result<Runtime, StartError> {
        let runtime = Runtime::launch(config)?;
        runtime.started().await?;
        Ok(runtime)
    }

    /// [`Runtime::start`] without waiting for servers. Call [`Runtime::started`] before using the runtime.
    ///
    /// # Errors
    /// A server is this very program; no thread could be started.
    pub fn launch(mut config: RuntimeConfig) -> Result<Runtime, StartError> {
        let prelude = Prelude::joined(&take(&mut config.preludes)).map_err(StartError::Prelude)?;
        let servers = take(&mut config.servers);
        startup::check(&servers)?;
        if let Some(policy) = &config.policy {
            let names = servers.iter().map(|server| server.name.clone());
            policy.check_servers(names).map_err(StartError::Policy)?;
        }
        let tools = GrantedTools::for_programs(take(&mut config.tools), config.read_only)
            .map_err(StartError::Tool)?;
        let io = tokio::runtime::Handle::current();
        let (secrets, observer) = (config.secrets.clone(), config.observer.take());
        let catalog = SharedCatalog::new(described(&servers, &secrets));
        let supervision = Supervision::new(config);
        let config = &supervision.config;
        let mut configured = Configured { entries: BTreeMap::new(), is_guarded: false };
        let mut upstreams = Upstreams::new();
        let mut starting = Vec::new();
        configured.guard(&supervision.guardian, &servers);
        for entry in servers {
            configured.entries.insert(entry.name.clone(), entry.clone());
            let name = entry.name.clone();
            let (upstream, at_once) = supervision.supervise(entry, &catalog);
            starting.extend(at_once.map(|policy| (upstream.clone(), policy)));
            upstreams.insert(name, upstream);
        }
        let starting = Mutex::new(startup::start_all(starting, observer.as_ref()));
        let workers = match config.workers {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            workers => workers,
        };
        let queue = Arc::new(Queue::new(workers, config.load.running, io.clone(), secrets.clone()));
        let shapes = supervision.shapes.clone();
        if supervision.state.is_some() {
            tasks::spawn(TaskOwner::Process, ShapeMemory::keep_writing(Arc::downgrade(&shapes)));
        }
        let nodes = config.state.clone().filter(DurableRuns::is_shared);
        let policy = SharedPolicy::new(
            config.policy.clone(),
            config.approvals.clone(),
            PolicyState { nodes, folder: config.state_folder.as_deref() },
            secrets.clone(),
        );
        policy.set_servers(configured.fingerprints());
        let mut broker = ToolBroker::new(upstreams, catalog, secrets);
        broker.cache = config.results.map(ResultCache::new);
        (broker.seen, broker.policy) = (shapes, policy);
        broker.client = config.client.clone();
        (broker.recorder, broker.durable) = (config.record.clone(), config.state.clone());
        let broker = Arc::new(broker);
        let resources =
            Arc::new(SharedResources { io, commitments: Commitments::new(config.load.total_bytes) });
        let (watchdog, thread) = Watchdog::start(workers).map_err(StartError::Threads)?;
        let lisp = Lisp::new(broker.clone(), config.cache_bytes, prelude, tools, config.read_only);
        let niceness = config.niceness;
        let inner = Arc::new(RuntimeInner {
            broker: broker.clone(),
            configured: Mutex::new(configured),
            supervision,
            queue: queue.clone(),
            resources,
            watchdog,
            threads: Mutex::new(vec![thread]),
            starting,
        });
        // From here on dropping the runtime ends the threads that were started.
        for index in 0..workers {
            let inbox = queue.inboxes[index].clone();
            let (queue, resources, watchdog) =
                (queue.clone(), inner.resources.clone(), inner.watchdog.clone());
            let thread = std::thread::Builder::new()
                .name(format!("ptc-worker-{index}"))
                // The worker is made on its own thread, because isolates never leave theirs.
                .spawn(move || {
                    Worker::new(index, inbox, queue, resources, watchdog).with_niceness(niceness).run()
                });
            let thread = thread.map_err(StartError::Threads)?;
            inner.threads.locked().push(thread);
        }
        Ok(Runtime { broker, base: Scope::new(lisp, queue), inner })
    }

    /// A restricted view for a caller that may use only these servers. For its programs, tools and lists no
    /// other servers exist, including those that are configured later. Everything that concerns the whole
    /// runtime (starting servers, configuration, shutdown) is shared.
    #[must_use]
    #[doc(hidden)]
    pub fn restricted_to(&self, servers: ServerNames) -> Runtime {
        let base = self.base.restricted_to(servers);
        Runtime { broker: base.broker().clone(), base, inner: self.inner.clone() }
    }

    /// True for a restricted view.
    #[doc(hidden)]
    pub fn is_restricted(&self) -> bool {
        self.broker.catalog().view() != 0
    }

    /// Waits until the strict servers have started. If one of them fails, all servers are stopped.
    ///
    /// # Errors
    /// Strict servers that did not start.
    pub async fn started(&self) -> Result<(), StartError> {
        let strict = {
            let mut starting = self.inner.starting.locked();
            take(&mut starting.strict)
        };
        let failed = startup::failures(strict).await;
        if failed.is_empty() {
            return Ok(());
        }
        startup::stop_all(self.inner.broker.upstreams().values()).await;
        Err(StartError::Upstreams(failed))
    }

    /// True when all strict servers have started.
    pub fn is_started(&self) -> bool {
        self.inner.starting.locked().strict.is_empty()
    }

    /// Runs a program. It is queued at once; dropping the future cancels it with its calls in flight.
    pub fn run(&self, source: impl Into<Arc<str>>, options: RunOptions) -> Run {
        self.base.run(source, options)
    }

    /// [`Runtime::run`] that also delivers printed lines and calls as they happen.
    pub fn stream(&self, source: impl Into<Arc<str>>, options: RunOptions) -> RunStream {
        self.base.stream(source, options)
    }

    /// [`Runtime::run`] for any guest.
    #[doc(hidden)]
    pub fn run_guest(&self, limits: Limits, guest: MakeGuest) -> Run {
        Run::begin(|watcher| self.submit_guest(limits, guest, watcher))
    }

    /// [`Scope::submit`] for any guest.
    #[doc(hidden)]
    pub fn submit_guest(&self, limits: Limits, guest: MakeGuest, watcher: Box<dyn RunWatcher>) -> Submitted {
        self.base.queue.submit(WorkerChoice::Any, limits, guest, watcher, Instant::now())
    }

    /// [`Runtime::run`] for work on the I/O runtime.
    #[doc(hidden)]
    pub fn run_async(&self, limits: Limits, run: AsyncRun) -> Run {
        Run::begin(|watcher| self.submit_async(limits, run, watcher))
    }

    /// [`Scope::submit`] for work on the I/O runtime.
    #[doc(hidden)]
    pub fn submit_async(&self, limits: Limits, run: AsyncRun, watcher: Box<dyn RunWatcher>) -> Submitted {
        self.base.queue.submit_async(limits, run, watcher)
    }

    /// A new session: programs that build on each other. It ends when it is closed or dropped.
    pub fn session(&self, limits: SessionLimits) -> Session {
        self.base.session(limits)
    }

    /// [`Runtime::base`], borrowed.
    #[doc(hidden)]
    pub fn scope(&self) -> &Scope {
        &self.base
    }

    /// The scope of the whole runtime; [`Scope::with`] makes scopes with their own tools and namespaces.
    pub fn base(&self) -> Scope {
        self.base.clone()
    }

    /// The features of the client that upstreams may use.
    #[doc(hidden)]
    pub fn client(&self) -> &ClientFeatures {
        &self.inner.supervision.config.client
    }

    /// Checks that everything the prelude needs is there, as before every program.
    ///
    /// # Errors
    /// What is missing.
    pub fn check_prelude(&self) -> Result<(), Failure> {
        self.base.check()
    }

    /// The broker, which calls tools for guests.
    #[doc(hidden)]
    pub fn broker(&self) -> &Arc<ToolBroker> {
        &self.broker
    }

    /// Sets how much runs at once, for programs that begin from now on.
    #[doc(hidden)]
    pub fn set_load(&self, load: Capacity) {
        self.inner.queue.set_most_runnable(load.running);
        self.inner.resources.commitments.set_total(load.total_bytes);
    }

    /// Runs a program on the calling thread and passes its outcome to `look`, if its last run was tiny and
    /// made no host call. `None` means that it has to be submitted; then nothing has happened. The context is
    /// `context` and not that of the options, so a tiny program need not own it.
    #[doc(hidden)]
    pub fn try_run<T>(
        &self,
        source: &str,
        context: Option<&str>,
        options: &RunOptions,
        look: impl FnOnce(&Outcome) -> T,
    ) -> Option<T> {
        fast_path::try_run(&self.base.lisp, source, context, options, look)
    }

    /// Every configured server, sorted by name.
    pub fn servers(&self) -> Vec<ServerStatus> {
        let catalog = self.catalog();
        let descriptors = self.descriptors();
        self.broker
            .upstreams()
            .iter()
            .map(|(name, upstream)| {
                let status = upstream.status();
                let tools = upstream.tools();
                ServerStatus {
                    name: name.clone(),
                    description: upstream
                        .description()
                        .map(|text| self.broker.secrets().scrub(text).into_owned()),
                    state: status.state,
                    error: status.error,
                    start_duration: status.start_duration,
                    server_info: status.server_info,
                    protocol: status.protocol,
                    descriptor: descriptors.get(name).cloned().unwrap_or_default(),
                    listed_at: catalog.server(name).and_then(|server| server.listed_at),
                    tools_loaded: tools.is_some(),
                    notes: tools.iter().flat_map(|tools| tools.notes().to_vec()).collect(),
                    tools: tools.iter().flat_map(|tools: &Arc<ToolList>| tools.iter().cloned()).collect(),
                }
            })
            .collect()
    }

    /// How each server is reached, with secrets redacted.
    fn descriptors(&self) -> BTreeMap<Arc<str>, serde_json::Value> {
        let configured = self.inner.configured.locked();
        let descriptor = |entry: &ServerEntry| {
            scrubbed(entry.transport.descriptor(), &self.inner.supervision.config.secrets)
        };
        configured.entries.iter().map(|(name, entry)| (name.clone(), descriptor(entry))).collect()
    }

    /// One server, to be shared with another process whose configured server has this fingerprint.
    #[doc(hidden)]
    pub fn relay(&self, server: &str, fingerprint: u64) -> Option<ServerRelay> {
        let is_same = {
            let configured = self.inner.configured.locked();
            configured.entries.get(server).is_some_and(|entry| entry.fingerprint() == fingerprint)
        };
        Some(ServerRelay::new(self.inner.broker.upstream(server).filter(|_| is_same)?))
    }

    /// Replaces the configured servers. New and changed ones are started. Removed and replaced ones take no
    /// more calls, and end after the last call in flight. Unchanged ones go on. It does not wait for starts:
    /// a failed start is tried again if the runtime retries at all. It must be called on the tokio runtime that
    /// this one was started on.
    ///
    /// # Errors
    /// A server is this very program, or two have one name; then nothing changes.
    #[doc(hidden)]
    pub fn reconfigure(&self, servers: Vec<ServerEntry>) -> Result<Reconfigured, StartError> {
        startup::check(&servers)?;
        let mut configured = self.inner.configured.locked();
        let mut upstreams = Upstreams::clone(&self.inner.broker.upstreams());
        configured.guard(&self.inner.supervision.guardian, &servers);
        let (changes, new) = configured.replace(servers);
        if changes.removed.is_empty() && new.is_empty() {
            return Ok(changes);
        }
        for name in &changes.removed {
            upstreams.remove(name);
        }
        let catalog = self
            .inner
            .broker
            .catalog()
            .reconfigure(&changes.removed, described(&new, &self.inner.supervision.config.secrets));
        let mut starting = Vec::new();
        for entry in new {
            let name = entry.name.clone();
            let (upstream, at_once) = self.inner.supervision.supervise(entry, &catalog);
            starting.extend(at_once.map(|policy| (upstream.clone(), policy)));
            upstreams.insert(name, upstream);
        }
        // The edit is used all the same: rules of a server that is gone can wait for its return.
        let policy = self.inner.broker.policy().current();
        let unmatched = policy.map(|policy| policy.check_servers(upstreams.keys().cloned()));
        if let Some(Err(error)) = unmatched {
            tracing::warn!("the edited configuration leaves rules of the policy without effect: {error}");
        }
        // First, so that an answer about a server never counts for the one in its place.
        self.inner.broker.policy().set_servers(configured.fingerprints());
        self.inner.broker.replace_upstreams(upstreams);
        let started = startup::start_all(starting, None);
        self.inner.starting.locked().lenient.extend(started.lenient);
        Ok(changes)
    }

    /// Replaces the policy, for calls from now on.
    ///
    /// # Errors
    /// A rule names a server that is not configured, or a file is empty now; then nothing changes.
    pub fn replace_policy(&self, policy: Arc<Policy>) -> Result<(), PolicyError> {
        policy.check_servers(self.inner.broker.upstreams().keys().cloned())?;
        if let Some(before) = self.inner.broker.policy().current() {
            if let Some(emptied) = policy.emptied_since(&before) {
                return Err(emptied);
            }
            for weaker in before.weakened_by(&policy, &self.catalog()) {
                tracing::warn!("the edited policy allows more: {weaker}");
            }
        }
        self.inner.broker.policy().replace(policy);
        Ok(())
    }

    /// Replaces what tools were when they were reviewed. The lists of servers are compared with it; a frozen list stays.
    #[doc(hidden)]
    pub fn replace_pins(&self, lock: PinLock) {
        if let Some(pins) = &self.inner.supervision.config.pins {
            pins.replace(lock);
        }
    }

    /// What happens to tools that are not the pinned ones; `None`: tools are not pinned.
    #[doc(hidden)]
    pub fn pin_mode(&self) -> Option<PinMode> {
        self.inner.supervision.config.pins.as_ref().map(|pins| pins.mode())
    }

    /// Rules of the policy that can match nothing, as far as the tools of the servers are known.
    #[doc(hidden)]
    pub fn policy_findings(&self) -> Vec<PolicyFinding> {
        let servers = self.known_servers();
        self.inner.broker.policy().current().map_or_else(Vec::new, |policy| policy.findings(&servers))
    }

    /// Rules that allow a tool by its name alone, which several servers have; each as a line.
    #[doc(hidden)]
    pub fn ambiguous_rules(&self) -> Vec<String> {
        let servers = self.known_servers();
        self.inner.broker.policy().current().map_or_else(Vec::new, |policy| policy.ambiguous(&servers))
    }

    fn known_servers(&self) -> Vec<KnownServer> {
        let catalog = self.inner.broker.catalog().snapshot();
        let known = |name: &Arc<str>| KnownServer {
            name: name.clone(),
            tools: catalog.server(name).and_then(|server| server.proven().cloned()),
        };
        let upstreams = self.inner.broker.upstreams();
        upstreams.keys().map(known).collect()
    }

    /// The tools of all servers at this moment.
    #[doc(hidden)]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.broker.catalog().snapshot()
    }

    /// A receiver of every version of the catalog. When [`Catalog::surface`] has grown, descriptions that
    /// clients have are out of date.
    #[doc(hidden)]
    pub fn catalog_changes(&self) -> watch::Receiver<Arc<Catalog>> {
        self.broker.catalog().subscribe()
    }

    /// Waits until no server is starting.
    #[doc(hidden)]
    pub async fn settle(&self) {
        let background = {
            let mut starting = self.inner.starting.locked();
            starting.lenient.retain(|start| start.peek().is_none());
            starting.lenient.clone()
        };
        futures_util::future::join_all(background).await;
        // Meanwhile a program's first call may have begun another start.
        let upstreams = self.inner.broker.upstreams();
        let starting = upstreams
            .values()
            .filter(|upstream| upstream.status().state == UpstreamState::Starting)
            .map(|upstream| async move {
                let _ = upstream.start().await;
            });
        futures_util::future::join_all(starting).await;
    }

    /// The secrets of this runtime, for redacting texts.
    pub fn secrets(&self) -> &SecretRegistry {
        self.broker.secrets()
    }

    /// Ends the programs, the workers and the servers with their processes. Programs that are submitted later
    /// are not run.
    pub async fn shutdown(&self) {
        if let Some(durable) = self.broker.durable() {
            // Programs that end because this process does are not over.
            durable.close();
        }
        self.inner.stop_threads();
        startup::stop_all(self.inner.broker.upstreams().values()).await;
        self.inner.queue.async_runs.ended().await;
        let threads = take(&mut *self.inner.threads.locked());
        let (guardian, shapes) =
            (self.inner.supervision.guardian.clone(), self.inner.supervision.shapes.clone());
        // Workers end within one slice of their programs; joining them must not block the I/O runtime.
        let _ = tasks::blocking(TaskOwner::Process, move |_| {
            for thread in threads {
                let _ = thread.join();
            }
            guardian.close();
            shapes.write();
        })
        .await;
        if let Some(durable) = self.broker.durable() {
            durable.settled().await;
        }
        self.broker.spills().close();
    }
}

impl RuntimeInner {
    fn stop_threads(&self) {
        self.queue.close();
        self.queue.async_runs.stop();
        self.watchdog.stop();
    }
}

fn scrubbed(value: serde_json::Value, secrets: &SecretRegistry) -> serde_json::Value {
    let text = value.to_string();
    // Redacted JSON is still valid.
    serde_json::from_str(&secrets.scrub_json(&text, &DocumentShape::DATA)).unwrap_or_default()
}

impl Drop for RuntimeInner {
    fn drop(&mut self) {
        self.stop_threads();
    }
}
