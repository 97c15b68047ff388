//! Defines the command-line flags for upstream MCP servers (which ones, how they start, how long results are cached),
//! and reads the servers from these flags and from the configuration files.

use crate::cli::flags::files::FileFlags;
use crate::cli::flags::limits::parser;
use crate::cli::flags::variables;
use crate::cli::login::LoginFlags;
use crate::cli::policy::flags::PolicyFlags;
use ptc_base::secrets::{Credential, names};
use ptc_calls::journal::{DurableRuns, Recorder};
use ptc_calls::limits::Unit;
use ptc_calls::state::LearnedShapes;
use ptc_calls::tools::SnapshotMode;
use ptc_engine::broker::ResultCaching;
use ptc_server::console::Abort;
use ptc_server::redact;
use ptc_upstream::config::{self, Config, ConfigError, ScriptSettings, ServerEntry, Startup};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

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
    pub(super) startup: Option<StartupFlag>,
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
    /// The command shows warnings about the files itself, so that they are not logged.
    #[arg(skip)]
    pub shows_warnings: bool,
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

/// `--startup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum StartupFlag {
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

impl UpstreamFlags {
    /// Whether only read-only tools are available.
    pub fn read_only(&self) -> Result<bool, Abort> {
        variables::switch(self.aggregator_read_only, "aggregator-read-only")
    }

    pub(super) fn list_ttl(&self) -> Result<Option<Duration>, Abort> {
        let ttl = variables::given_or_read(self.tool_list_ttl, "tool-list-ttl", parser(Unit::Millis))?;
        Ok(ttl.filter(|&ttl| ttl > 0).map(Duration::from_millis))
    }

    pub(super) fn results(&self) -> Result<Option<ResultCaching>, Abort> {
        let ttl = variables::given_or_read(self.tool_cache_ttl, "tool-cache-ttl", parser(Unit::Millis))?;
        let bytes = variables::given_or_read(self.tool_cache_bytes, "tool-cache-bytes", parser(Unit::Bytes))?;
        let max_bytes =
            bytes.map_or(ResultCaching::DEFAULT_BYTES, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let ttl = ttl.filter(|&ttl| ttl > 0).map(Duration::from_millis);
        Ok(ttl.map(|ttl| ResultCaching { ttl, max_bytes }))
    }

    pub(super) fn learned_shapes(&self) -> Result<LearnedShapes, Abort> {
        let flag = variables::given_or_read(self.learn_shapes, "learn-shapes", variables::word)?;
        Ok(flag.map(LearnedShapes::from).unwrap_or_default())
    }

    pub(in crate::cli) fn snapshot(&self) -> Result<Option<SnapshotMode>, Abort> {
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

    /// The configuration files, also the default one while it does not exist.
    pub(in crate::cli) fn expected_files(&self) -> Vec<PathBuf> {
        match self.files() {
            files if files.is_empty() && self.stdio.is_empty() => {
                config::default_file().into_iter().collect()
            }
            files => files,
        }
    }

    /// Whether the command line names servers.
    pub fn names_servers(&self) -> bool {
        !(self.upstreams_config.is_empty() && self.stdio.is_empty())
    }

    /// Whether these files name mandatory servers. Errors in the files are reported where they are loaded for
    /// use.
    pub(in crate::cli) fn is_strict(&self, files: &[PathBuf]) -> bool {
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
    pub(in crate::cli) fn entries(
        &self,
        files: &[PathBuf],
    ) -> Result<(Vec<ServerEntry>, ScriptSettings), Abort> {
        let mut servers = self.commands()?;
        servers.extend(self.files.server()?);
        let mut execution = ScriptSettings::default();
        for config in self.load(files)? {
            for warning in config.warnings.iter().filter(|_| !self.shows_warnings) {
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
