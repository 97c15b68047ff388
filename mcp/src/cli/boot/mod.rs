//! Starts the runtime (engine, workers, connections to servers) that a command needs, with the servers from the
//! command's flags and configuration file. The flags are [`UpstreamFlags`], in `flags`.

mod flags;

use super::background::client::attach;
use super::policy::flags::refused;
use crate::demo::Sample;
use flags::StartupFlag;
pub use flags::{LoadError, UpstreamFlags};
use ptc_base::files;
use ptc_calls::tools::{SnapshotMode, qualified_name};
use ptc_engine::{
    DEFAULT_TRY_AGAIN, Prelude, Runtime, RuntimeConfig, StartError, StartPolicy, StartProgress,
};
use ptc_python::functions::FunctionTable;
use ptc_server::console::progress::ProgressLine;
use ptc_server::console::{Abort, Exit};
use ptc_server::redact;
use ptc_upstream::ClientFeatures;
use ptc_upstream::config::{ScriptSettings, ServerEntry, Startup};
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The servers that a command needs, and how it treats one that does not start.
#[derive(Clone, Copy, Debug)]
pub enum Need<'a> {
    /// All servers, under their own policies.
    All,
    /// All servers. The command shows their states, so none has to start.
    State,
    /// [`Need::State`], always with servers that this process starts itself.
    Check,
    /// This server. The command shows its state, so it does not have to start.
    StateOf(&'a str),
    /// The servers that this program names.
    Program(&'a str),
    /// The servers with functions that this script names.
    Script(&'a str),
    /// Each server at its first call.
    OnDemand,
    /// Each server when its tools are needed, unless flags make all servers mandatory.
    Interactive,
}

/// A started runtime.
pub struct Booted {
    /// The runtime.
    pub runtime: Arc<Runtime>,
    /// Whether there is a configuration file or a server.
    pub has_upstreams: bool,
    /// Settings of scripts in the configuration.
    pub execution: ScriptSettings,
}

/// Reads the configuration and starts the runtime; 0 workers means one a core. Waits for lenient servers too,
/// so that the first answer shows every tool.
pub async fn boot(flags: &UpstreamFlags, need: Need<'_>, workers: usize) -> Result<Booted, Abort> {
    boot_with(flags, None, need, workers).await
}

/// [`boot`] with a prelude.
pub async fn boot_with(
    flags: &UpstreamFlags,
    prelude: Option<Arc<Prelude>>,
    need: Need<'_>,
    workers: usize,
) -> Result<Booted, Abort> {
    let BootSettings { mut config, has_upstreams, execution } = configuration(flags, prelude, need, workers)?;
    if !matches!(need, Need::Check) {
        attach(&mut config.servers);
    }
    let runtime = Arc::new(start_runtime(config).await?);
    Ok(Booted { runtime, has_upstreams, execution })
}

/// Reads the configuration and begins to start all servers under their own policies. [`Launched::started`]
/// waits for the mandatory ones; the others are retried until they start. Workers have this niceness.
pub fn launch(flags: &UpstreamFlags, prelude: Option<Arc<Prelude>>, niceness: u8) -> Result<Launched, Abort> {
    let BootSettings { mut config, has_upstreams, execution } = configuration(flags, prelude, Need::All, 0)?;
    config.niceness = niceness;
    config.try_again = Some(DEFAULT_TRY_AGAIN);
    config.client = ClientFeatures::expected();
    let (progress, _) = watch_starts(&mut config);
    let runtime = Arc::new(Runtime::launch(config).map_err(abort)?);
    Ok(Launched { booted: Booted { runtime, has_upstreams, execution }, progress })
}

/// A runtime that begins to start all servers, and retries those that do not start. Must be called on a tokio runtime.
pub fn keep(flags: &UpstreamFlags) -> Result<Runtime, Abort> {
    let BootSettings { mut config, .. } = configuration(flags, None, Need::Check, 1)?;
    (config.try_again, config.reports_starts) = (Some(DEFAULT_TRY_AGAIN), false);
    Runtime::launch(config).map_err(abort)
}

/// A runtime with servers that are starting.
pub struct Launched {
    /// The runtime.
    pub booted: Booted,
    progress: Arc<ProgressLine>,
}

impl Launched {
    /// Waits for the mandatory servers.
    pub async fn started(&self) -> Result<(), Abort> {
        let started = self.booted.runtime.started().await;
        self.progress.finish();
        started.map_err(abort)
    }
}

/// The runtime's configuration, made from flags and files.
struct BootSettings {
    config: RuntimeConfig,
    has_upstreams: bool,
    execution: ScriptSettings,
}

fn configuration(
    flags: &UpstreamFlags,
    prelude: Option<Arc<Prelude>>,
    need: Need<'_>,
    workers: usize,
) -> Result<BootSettings, Abort> {
    let files = flags.files();
    let (mut servers, execution) = flags.entries(&files)?;
    let has_upstreams = !files.is_empty() || !servers.is_empty();
    if matches!(need, Need::State | Need::Check | Need::StateOf(_)) {
        for server in &mut servers {
            server.startup = Startup::Lenient;
            server.startup_is_explicit = true;
        }
    }
    let start = start_policy(flags, need, &servers, prelude.as_deref());
    let startup = flags.startup.map(Startup::from);
    let snapshot = flags.snapshot()?;
    let (start, startup) = match snapshot {
        // A frozen tool list must be complete.
        Some(SnapshotMode::Frozen) => (StartPolicy::All, startup.or(Some(Startup::Strict))),
        Some(SnapshotMode::Live) if matches!(need, Need::All) => (StartPolicy::Lazy, startup),
        Some(SnapshotMode::Live) | None => (start, startup),
    };
    let start = match (start, need) {
        (StartPolicy::Lazy, Need::All | Need::Interactive) => with_documents(&mut servers),
        (start, _) => start,
    };
    let config = RuntimeConfig {
        servers,
        startup,
        start,
        try_again: None,
        reports_starts: matches!(need, Need::State | Need::Check | Need::StateOf(_)),
        snapshot,
        list_ttl: flags.list_ttl()?,
        results: flags.results()?,
        read_only: flags.read_only()?,
        policy: flags.policy.load()?,
        approvals: flags.policy.approvals()?,
        pins: flags.policy.pins(&files)?,
        workers,
        preludes: prelude.into_iter().collect(),
        secrets: redact::secrets().clone(),
        state_folder: files::state_folder(),
        logins: flags.logins.options()?,
        learned_shapes: flags.learned_shapes()?,
        record: flags.recorder.clone(),
        state: flags.state.clone(),
        adopts_orphans: true,
        ..RuntimeConfig::default()
    };
    Ok(BootSettings { config, has_upstreams, execution })
}

/// The servers that have to be started for a need.
fn start_policy(
    flags: &UpstreamFlags,
    need: Need<'_>,
    servers: &[ServerEntry],
    prelude: Option<&Prelude>,
) -> StartPolicy {
    match need {
        Need::All | Need::State | Need::Check => StartPolicy::All,
        Need::Interactive | Need::OnDemand | Need::Script(_) | Need::Program(_)
            if flags.startup == Some(StartupFlag::Strict) =>
        {
            StartPolicy::All
        }
        Need::OnDemand | Need::Interactive => StartPolicy::Lazy,
        Need::StateOf(server) => StartPolicy::Named([server.to_owned()].into()),
        Need::Script(code) => {
            let names = servers.iter().map(|server| server.name.to_string());
            StartPolicy::Named(names.filter(|name| code.contains(&qualified_name(name, ""))).collect())
        }
        // Without servers nothing starts anyway.
        Need::Program(_) if servers.is_empty() => StartPolicy::Lazy,
        Need::Program(source) => StartPolicy::of_program(source, prelude),
    }
}

/// Makes the servers of documents mandatory, and returns a policy that starts only these.
///
/// The document of a plain service is read at once, whatever the policy of other servers. A document that
/// cannot be used is an error unless its entry says otherwise.
fn with_documents(servers: &mut [ServerEntry]) -> StartPolicy {
    let mut names = BTreeSet::new();
    for server in servers.iter_mut().filter(|server| server.transport.is_document()) {
        if !server.startup_is_explicit {
            (server.startup, server.startup_is_explicit) = (Startup::Strict, true);
        }
        names.insert(server.name.to_string());
    }
    if names.is_empty() { StartPolicy::Lazy } else { StartPolicy::Named(names) }
}

/// Starts servers that are not configured.
pub async fn boot_servers(servers: Vec<ServerEntry>, prelude: Option<Arc<Prelude>>) -> Result<Booted, Abort> {
    let runtime = start_runtime(RuntimeConfig {
        servers,
        preludes: prelude.into_iter().collect(),
        ..RuntimeConfig::default()
    })
    .await?;
    Ok(Booted { runtime: Arc::new(runtime), has_upstreams: true, execution: ScriptSettings::default() })
}

/// Starts the sample servers of the demo.
pub async fn boot_demo(samples: &[Sample]) -> Result<Booted, Abort> {
    let servers = samples
        .iter()
        .map(|sample| {
            ServerEntry::own_binary(sample.name(), sample.description(), &["demo-server", sample.name()])
        })
        .collect::<Result<Vec<_>, _>>()?;
    boot_servers(servers, None).await
}

/// Starts a runtime and all its servers, with a progress line.
pub async fn start_runtime(mut config: RuntimeConfig) -> Result<Runtime, Abort> {
    let (progress, settled) = watch_starts(&mut config);
    let started = Runtime::start(config).await;
    if started.is_ok() {
        // The observer gets a report of each server, so this also covers servers that have not begun yet.
        let _ = settled.await;
    }
    progress.finish();
    started.map_err(abort)
}

/// Makes a progress line for the servers that are to start. The receiver resolves when the last one has
/// settled.
fn watch_starts(config: &mut RuntimeConfig) -> (Arc<ProgressLine>, oneshot::Receiver<()>) {
    let names = config
        .servers
        .iter()
        .filter(|server| match &config.start {
            StartPolicy::All => true,
            StartPolicy::Named(names) => names.contains(&*server.name),
            StartPolicy::Lazy => false,
        })
        .map(|server| server.name.to_string())
        .collect();
    let (progress, settled) = ProgressLine::starting(names);
    let progress = Arc::new(progress);
    let shown = Arc::clone(&progress);
    config.observer = Some(Arc::new(move |event| match event.progress {
        StartProgress::Starting => {}
        StartProgress::Ready { .. } | StartProgress::Failed { .. } => shown.settled(&event.server),
    }));
    (progress, settled)
}

pub(super) fn abort(error: StartError) -> Abort {
    let exit = match &error {
        StartError::Upstreams(_) => Exit::Upstream,
        StartError::Threads(_) => Exit::Io,
        StartError::SelfAsUpstream { .. }
        | StartError::DuplicateServer { .. }
        | StartError::Tool(_)
        | StartError::Policy(_)
        | StartError::Prelude(_) => Exit::Usage,
    };
    match error {
        StartError::Policy(error) => refused(&error),
        error => Abort { exit, message: error.to_string() },
    }
}

impl Booted {
    /// Waits until two tools of the starting servers map to the same function of scripts, and returns the
    /// error. Never resolves once all have started, because a later change of a server must not end this
    /// process.
    pub async fn clash(&self) -> Abort {
        let table = FunctionTable::default();
        let clash = || {
            table
                .for_catalog(&self.runtime.catalog())
                .clashes()
                .first()
                .map(|clash| Abort::usage(clash.to_string()))
        };
        let mut changes = self.runtime.catalog_changes();
        let mut started = pin!(self.runtime.settle());
        let mut is_starting = true;
        while is_starting {
            if let Some(abort) = clash() {
                return abort;
            }
            tokio::select! {
                () = &mut started => is_starting = false,
                changed = changes.changed() => is_starting = changed.is_ok(),
            }
        }
        match clash() {
            Some(abort) => abort,
            None => std::future::pending().await,
        }
    }
}
