//! Defines the flags of upstream servers, reads the configuration with them, and starts the runtime of a command.

use super::background::client::attach;
use super::flags::files::FileFlags;
use super::flags::limits::parser;
use super::flags::variables;
use super::login::LoginFlags;
use super::policy::flags::{PolicyFlags, refused};
use crate::demo::Sample;
use ptc_base::files;
use ptc_base::secrets::{Credential, names};
use ptc_calls::journal::{DurableRuns, Recorder};
use ptc_calls::limits::Unit;
use ptc_calls::state::LearnedShapes;
use ptc_calls::tools::{SnapshotMode, qualified_name};
use ptc_engine::broker::ResultCaching;
use ptc_engine::{
    DEFAULT_TRY_AGAIN, Prelude, Runtime, RuntimeConfig, StartError, StartPolicy, StartProgress,
};
use ptc_python::functions::FunctionTable;
use ptc_server::console::exit::{Abort, Exit};
use ptc_server::console::progress::ProgressLine;
use ptc_server::redact;
use ptc_upstream::ClientFeatures;
use ptc_upstream::config::{self, Config, ConfigError, ScriptSettings, ServerEntry, Startup};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Flags of every command that may call upstream servers.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct UpstreamFlags {
    /// File that names the upstream MCP servers, JSON or YAML (`upstreams`, `mcpServers` as hosts write it, or a list
    /// `servers`); may be given several times
    #[arg(long, value_name = "FILE")]
    upstreams_config: Vec<PathBuf>,
    /// Start this command as the server `server`, without a configuration file; may be given several times (`server2`
    /// …), and with a name (`fs=npx …`)
    #[arg(long, value_name = "[NAME=]COMMAND")]
    stdio: Vec<String>,
    /// What a server that does not start means, for all servers that do not say `required` themselves:
    /// strict ends start-up, lenient goes on without it [default: strict for `upstreams`, lenient for
    /// `mcpServers`]
    #[arg(long, value_name = "POLICY", value_enum, hide_possible_values = true)]
    startup: Option<StartupFlag>,
    /// How long the start of one server may take, its tool list included, if its entry does not say
    /// `handshake_timeout_ms` [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parser(Unit::Millis))]
    handshake_timeout: Option<u64>,
    /// How long tool lists are good for: frozen starts and lists all servers first and keeps the lists,
    /// live lists when a tool is needed and follows every change [default: servers that must start are
    /// frozen, the others live]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    catalog_snapshot_mode: Option<SnapshotFlag>,
    /// The age at which a live tool list is asked for again, though its server says nothing of a change; 0 means never
    /// [default: 0]
    #[arg(long, value_name = "TIME", value_parser = parser(Unit::Millis))]
    tool_list_ttl: Option<u64>,
    /// How long results are kept of tools that their servers annotate as read-only and idempotent: equal calls of the
    /// same owner are answered with them; 0 means not at all [default: 0]
    #[arg(long, value_name = "TIME", value_parser = parser(Unit::Millis))]
    tool_cache_ttl: Option<u64>,
    /// Bytes of all results that are kept for --tool-cache-ttl; the oldest go [default: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = parser(Unit::Bytes))]
    tool_cache_bytes: Option<u64>,
    /// How long the shapes of results (keys and types, no values) of tools without an output schema are remembered, which
    /// `doc` shows: kept for later runs too, in ~/.local/state/ptc, run in this process alone, off not at all
    /// [default: kept]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    learn_shapes: Option<ShapesFlag>,
    /// Logins at servers.
    #[command(flatten)]
    pub logins: LoginFlags,
    /// Only tools that their servers annotate as read-only exist
    #[arg(long)]
    aggregator_read_only: bool,
    /// What may be called.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// Files that callers may name.
    #[command(flatten)]
    pub files: FileFlags,
    /// Records runs, for commands that have `--record`.
    #[arg(skip)]
    pub recorder: Option<Recorder>,
    /// Stores runs, for commands that have `--state`.
    #[arg(skip)]
    pub state: Option<DurableRuns>,
}

/// `--catalog-snapshot-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SnapshotFlag {
    Frozen,
    Live,
}

impl From<SnapshotFlag> for SnapshotMode {
    fn from(flag: SnapshotFlag) -> SnapshotMode {
        match flag {
            SnapshotFlag::Frozen => SnapshotMode::Frozen,
            SnapshotFlag::Live => SnapshotMode::Live,
        }
    }
}

/// `--learn-shapes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ShapesFlag {
    Kept,
    Run,
    Off,
}

impl From<ShapesFlag> for LearnedShapes {
    fn from(flag: ShapesFlag) -> LearnedShapes {
        match flag {
            ShapesFlag::Kept => LearnedShapes::Kept,
            ShapesFlag::Run => LearnedShapes::Run,
            ShapesFlag::Off => LearnedShapes::Off,
        }
    }
}

impl UpstreamFlags {
    /// Whether only read-only tools are available.
    pub fn read_only(&self) -> Result<bool, Abort> {
        variables::switch(self.aggregator_read_only, "aggregator-read-only")
    }

    fn list_ttl(&self) -> Result<Option<Duration>, Abort> {
        let ttl = variables::given_or_read(self.tool_list_ttl, "tool-list-ttl", parser(Unit::Millis))?;
        Ok(ttl.filter(|&ttl| ttl > 0).map(Duration::from_millis))
    }

    fn results(&self) -> Result<Option<ResultCaching>, Abort> {
        let ttl = variables::given_or_read(self.tool_cache_ttl, "tool-cache-ttl", parser(Unit::Millis))?;
        let bytes = variables::given_or_read(self.tool_cache_bytes, "tool-cache-bytes", parser(Unit::Bytes))?;
        let max_bytes =
            bytes.map_or(ResultCaching::DEFAULT_BYTES, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let ttl = ttl.filter(|&ttl| ttl > 0).map(Duration::from_millis);
        Ok(ttl.map(|ttl| ResultCaching { ttl, max_bytes }))
    }

    fn learned_shapes(&self) -> Result<LearnedShapes, Abort> {
        let flag = variables::given_or_read(self.learn_shapes, "learn-shapes", variables::word)?;
        Ok(flag.map(LearnedShapes::from).unwrap_or_default())
    }

    pub(super) fn snapshot(&self) -> Result<Option<SnapshotMode>, Abort> {
        let flag = self.catalog_snapshot_mode;
        let flag = variables::given_or_read(flag, "catalog-snapshot-mode", variables::word)?;
        Ok(flag.map(SnapshotMode::from))
    }
}

impl UpstreamFlags {
    /// The configuration files in use.
    pub fn files(&self) -> Vec<PathBuf> {
        // A command on the command line replaces the default file.
        if !self.stdio.is_empty() && self.upstreams_config.is_empty() {
            return Vec::new();
        }
        config::find(&self.upstreams_config)
    }

    /// Whether the command line names servers.
    pub fn names_servers(&self) -> bool {
        !(self.upstreams_config.is_empty() && self.stdio.is_empty())
    }

    /// Whether these files name mandatory servers. Errors in the files are reported where they are loaded for
    /// use.
    pub(super) fn is_strict(&self, files: &[PathBuf]) -> bool {
        match self.startup {
            Some(StartupFlag::Strict) => true,
            Some(StartupFlag::Lenient) => false,
            None => {
                let configs = self.load(files).unwrap_or_default();
                configs.iter().any(|config| config.shape.startup() == Startup::Strict)
            }
        }
    }

    /// The servers of `--stdio`.
    fn commands(&self) -> Result<Vec<ServerEntry>, Abort> {
        let is_name = |name: &&str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let entry = |(at, text): (usize, &String)| {
            let named = text.split_once('=').filter(|(name, _)| is_name(name));
            let number = if at == 0 { String::new() } else { (at + 1).to_string() };
            let (name, line) = match named {
                Some((name, line)) => (name.to_owned(), line),
                None => (format!("server{number}"), text.as_str()),
            };
            let mut words = shlex::split(line).unwrap_or_default().into_iter();
            let program = words.next().ok_or_else(|| Abort::usage("--stdio: expected a command"))?;
            let arguments: Vec<String> = words.collect();
            let borrowed: Vec<&str> = arguments.iter().map(String::as_str).collect();
            for secret in names::in_arguments(&borrowed) {
                let _ = redact::secrets().register(&secret);
            }
            Ok(ServerEntry::stdio(&name, program, arguments))
        };
        self.stdio.iter().enumerate().map(entry).collect()
    }

    /// All servers of these files and of the flags, and the settings of scripts. Warnings about the files go
    /// to the log.
    pub(super) fn entries(&self, files: &[PathBuf]) -> Result<(Vec<ServerEntry>, ScriptSettings), Abort> {
        let mut servers = self.commands()?;
        servers.extend(self.files.server()?);
        let mut execution = ScriptSettings::default();
        for config in self.load(files)? {
            for warning in &config.warnings {
                tracing::warn!("{warning}");
            }
            servers.extend(config.servers);
            execution = config.execution.or(execution);
        }
        Ok((servers, execution))
    }

    /// Finds a credential in the files by its name.
    pub fn credential(&self, name: &str) -> Result<Credential, Abort> {
        let configs = self.load(&self.files())?;
        let mut credentials = BTreeMap::new();
        configs.into_iter().for_each(|config| credentials.extend(config.credentials));
        credentials.remove(name).ok_or_else(|| {
            let known: Vec<&str> = credentials.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
            Abort::usage(format!("there is no credential {name:?} in the configuration: {known}"))
        })
    }

    /// What to do about a server that did not start with this error.
    pub fn remedy(&self, server: &str, error: &str) -> Option<String> {
        let configs = self.load(&self.files()).unwrap_or_default();
        let mut configured = configs.iter().flat_map(|config| &config.servers);
        let started = self.commands().unwrap_or_default();
        let named = |entry: &&ServerEntry| *entry.name == *server;
        let entry = configured.find(named).or_else(|| started.iter().find(named))?;
        let remedy = entry.transport.remedy(error);
        let lines: Vec<&str> = remedy.lines().map(str::trim).collect();
        (!remedy.is_empty()).then(|| lines.join("\n  "))
    }

    /// Loads these files. Servers without a timeout of their own get that of the flag.
    pub fn load(&self, files: &[PathBuf]) -> Result<Vec<Config>, LoadError> {
        let (given, parse) = (self.handshake_timeout, parser(Unit::Millis));
        let patience =
            variables::given_or_read(given, "handshake-timeout", parse).map_err(LoadError::Flag)?;
        let mut configs = Config::load_all(files, redact::secrets()).map_err(LoadError::File)?;
        let servers = configs.iter_mut().flat_map(|config| &mut config.servers);
        for server in servers.filter(|server| !server.handshake_is_explicit) {
            server.handshake_timeout = patience.map_or(server.handshake_timeout, Duration::from_millis);
        }
        Ok(configs)
    }
}

/// Why the configuration cannot be loaded.
pub enum LoadError {
    /// A flag or its environment variable is wrong.
    Flag(Abort),
    /// A file is wrong.
    File(ConfigError),
}

impl From<LoadError> for Abort {
    fn from(error: LoadError) -> Abort {
        match error {
            LoadError::Flag(abort) => abort,
            LoadError::File(error) => Abort::usage(error.to_string()),
        }
    }
}

/// `--startup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum StartupFlag {
    Strict,
    Lenient,
}

impl From<StartupFlag> for Startup {
    fn from(flag: StartupFlag) -> Startup {
        match flag {
            StartupFlag::Strict => Startup::Strict,
            StartupFlag::Lenient => Startup::Lenient,
        }
    }
}

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
    let start = match need {
        Need::All | Need::State | Need::Check => StartPolicy::All,
        Need::Interactive | Need::Script(_) if flags.startup == Some(StartupFlag::Strict) => StartPolicy::All,
        Need::OnDemand | Need::Interactive => StartPolicy::Lazy,
        Need::StateOf(server) => StartPolicy::Named([server.to_owned()].into()),
        Need::Script(code) => {
            let names = servers.iter().map(|server| server.name.to_string());
            StartPolicy::Named(names.filter(|name| code.contains(&qualified_name(name, ""))).collect())
        }
        // Without servers nothing starts anyway.
        Need::Program(_) if servers.is_empty() => StartPolicy::Lazy,
        Need::Program(source) => StartPolicy::of_program(source, prelude.as_deref()),
    };
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
