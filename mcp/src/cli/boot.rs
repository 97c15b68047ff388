//! Flags of upstream servers, configuration lookup, and the start of the runtime.

use super::flags::variables;
use crate::console::exit::{Abort, Exit};
use crate::console::progress::ProgressLine;
use crate::demo::Sample;
use crate::edge;
use crate::tools::catalog::CatalogView;
use clap::ValueEnum;
use ptc_compiler::{CompileOptions, Externals};
use ptc_runtime::config::{self, Config, ServerEntry, Startup};
use ptc_runtime::tools::SnapshotMode;
use ptc_runtime::{Runtime, RuntimeConfig, StartError, StartPolicy, StartProgress};
use ptc_vm::{Interrupt, InterruptKind};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Flags of every command that may call upstream servers.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct UpstreamFlags {
    /// File that names the upstream MCP servers (`upstreams`, or `mcpServers` as hosts write it); may be
    /// given several times
    #[arg(long, value_name = "FILE")]
    upstreams_config: Vec<PathBuf>,
    /// What a server that does not start means, for all servers that do not say `required` themselves:
    /// strict ends start-up, lenient goes on without it [default: strict for `upstreams`, lenient for
    /// `mcpServers`]
    #[arg(long, value_name = "POLICY", value_enum, hide_possible_values = true)]
    startup: Option<StartupFlag>,
    /// How long tool lists are good for: frozen starts and lists all servers first and keeps the lists,
    /// live lists when a tool is needed and follows every change [default: servers that must start are
    /// frozen, the others live]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    catalog_snapshot_mode: Option<SnapshotFlag>,
    /// Only tools that their servers annotate as read-only exist
    #[arg(long)]
    aggregator_read_only: bool,
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

impl UpstreamFlags {
    /// True when only read-only tools exist.
    pub fn read_only(&self) -> Result<bool, Abort> {
        let variable = || variables::read("aggregator-read-only", variables::boolean);
        Ok(self.aggregator_read_only || variable()?.unwrap_or(false))
    }

    fn snapshot(&self) -> Result<Option<SnapshotMode>, Abort> {
        let flag = match self.catalog_snapshot_mode {
            Some(flag) => Some(flag),
            None => variables::read("catalog-snapshot-mode", |text| SnapshotFlag::from_str(text, true))?,
        };
        Ok(flag.map(SnapshotMode::from))
    }
}

impl UpstreamFlags {
    /// The files that were named.
    pub fn files(&self) -> &[PathBuf] {
        &self.upstreams_config
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

/// Which servers a command needs, and what it does when one of them does not start.
#[derive(Clone, Copy, Debug)]
pub enum Need<'a> {
    /// All, under their own policies.
    All,
    /// All, under their own policies; those that may be missing start in the background.
    Serve,
    /// All, whatever happens to each: their state is what is asked for.
    State,
    /// Those that this program names.
    Program(&'a str),
    /// Each with its first call.
    OnDemand,
}

/// A started runtime.
pub struct Booted {
    /// The runtime.
    pub runtime: Arc<Runtime>,
    /// True with a configuration file, also when it names no server.
    pub has_upstreams: bool,
}

/// Reads the configuration and starts the runtime; 0 workers are one a core.
pub async fn boot(flags: &UpstreamFlags, need: Need<'_>, workers: usize) -> Result<Booted, Abort> {
    let files = config::find(&flags.upstreams_config);
    let has_upstreams = !files.is_empty();
    let mut servers = Vec::new();
    let configs =
        Config::load_all(&files, edge::secrets()).map_err(|error| Abort::usage(error.to_string()))?;
    for config in configs {
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        servers.extend(config.servers);
    }
    if matches!(need, Need::State) {
        for server in &mut servers {
            server.startup = Startup::Lenient;
            server.startup_is_explicit = true;
        }
    }
    let start = match need {
        Need::All | Need::Serve | Need::State => StartPolicy::All,
        Need::OnDemand => StartPolicy::Lazy,
        // Without servers nothing starts anyway.
        Need::Program(_) if servers.is_empty() => StartPolicy::Lazy,
        Need::Program(source) => named_by(source),
    };
    let startup = flags.startup.map(Startup::from);
    let snapshot = flags.snapshot()?;
    let (start, startup) = match snapshot {
        // A list that is kept for good must be complete.
        Some(SnapshotMode::Frozen) => (StartPolicy::All, startup.or(Some(Startup::Strict))),
        Some(SnapshotMode::Live) if matches!(need, Need::All | Need::Serve) => (StartPolicy::Lazy, startup),
        Some(SnapshotMode::Live) | None => (start, startup),
    };
    let config = RuntimeConfig {
        servers,
        startup,
        start,
        snapshot,
        read_only: flags.read_only()?,
        workers,
        secrets: edge::secrets().clone(),
        adopts_orphans: true,
        ..RuntimeConfig::default()
    };
    let runtime = launch(config, !matches!(need, Need::Serve)).await?;
    Ok(Booted { runtime: Arc::new(runtime), has_upstreams })
}

/// Starts the sample servers of the demo.
pub async fn boot_demo(samples: &[Sample]) -> Result<Booted, Abort> {
    let servers = samples
        .iter()
        .map(|sample| {
            ServerEntry::own_binary(sample.name(), sample.description(), &["demo-server", sample.name()])
        })
        .collect::<Result<Vec<_>, _>>()?;
    let runtime = start_runtime(RuntimeConfig { servers, ..RuntimeConfig::default() }).await?;
    Ok(Booted { runtime: Arc::new(runtime), has_upstreams: true })
}

/// How long a program is looked at to find out which servers it names.
const LOOK: Duration = Duration::from_secs(1);

/// A program that does not compile needs no server; its run says what is wrong with it.
fn named_by(source: &str) -> StartPolicy {
    let interrupt = Interrupt::default();
    let mut options = CompileOptions::default();
    options.budget.interrupt = Some(interrupt.clone());
    let compiled = std::thread::scope(|scope| {
        let clock = scope.spawn(|| {
            std::thread::park_timeout(LOOK);
            interrupt.set(InterruptKind::Deadline);
        });
        let compiled = ptc_compiler::compile(source, &Externals::default(), &options);
        clock.thread().unpark();
        compiled
    });
    match compiled {
        Ok(compiled) if compiled.servers.dynamic => StartPolicy::All,
        Ok(compiled) => StartPolicy::Named(compiled.servers.named),
        Err(_) => StartPolicy::Lazy,
    }
}

/// Starts a runtime and all its servers, with a progress line.
pub async fn start_runtime(config: RuntimeConfig) -> Result<Runtime, Abort> {
    launch(config, true).await
}

/// Starts a runtime. Strict servers have started when this returns; lenient ones are waited for as well if
/// `waits`, and tell of their failures in the log otherwise.
async fn launch(mut config: RuntimeConfig, waits: bool) -> Result<Runtime, Abort> {
    let is_lenient = |server: &ServerEntry| match config.startup {
        Some(policy) if !server.startup_is_explicit => policy == Startup::Lenient,
        _ => server.startup == Startup::Lenient,
    };
    let lenient: BTreeSet<String> = config
        .servers
        .iter()
        .filter(|server| is_lenient(server))
        .map(|server| server.name.to_string())
        .collect();
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
        StartProgress::Ready { .. } => shown.settled(&event.server),
        StartProgress::Failed { error } => {
            shown.settled(&event.server);
            if lenient.contains(&event.server) {
                tracing::error!(server = %event.server, %error, "upstream could not start");
            }
        }
    }));
    let started = Runtime::start(config).await;
    if started.is_ok() && waits {
        // Lenient servers are waited for as well, so that the first answer shows every tool there is.
        // The observer hears of each, so there is no moment when one has not begun yet.
        let _ = settled.await;
    }
    progress.finish();
    started.map_err(|error| {
        let exit = match error {
            StartError::Upstreams(_) => Exit::Upstream,
            StartError::Threads(_) => Exit::Io,
            StartError::SelfAsUpstream { .. } | StartError::DuplicateServer { .. } => Exit::Usage,
        };
        Abort { exit, message: error.to_string() }
    })
}

impl Booted {
    /// True with at least one server.
    pub fn has_servers(&self) -> bool {
        !self.runtime.servers().is_empty()
    }

    /// What the description of `lisp_eval` lists.
    pub fn catalog(&self) -> CatalogView {
        CatalogView::of(&self.runtime.catalog())
    }
}
