//! The configuration, with defaults, that an application starts a runtime with: servers, policy, tools, preludes (Lisp
//! libraries), caches and capacity.

use super::{Observer, StartPolicy};
use crate::broker::ResultCaching;
use crate::guest::lisp::prelude::Prelude;
use ptc_base::oauth::LoginOptions;
use ptc_base::secrets::SecretRegistry;
use ptc_calls::host::HostTool;
use ptc_calls::journal::{DurableRuns, Recorder};
use ptc_calls::policy::{ApprovalSettings, Pins, Policy};
use ptc_calls::state::LearnedShapes;
use ptc_calls::tools::SnapshotMode;
use ptc_upstream::config::{ServerEntry, Startup};
use ptc_upstream::{ClientFeatures, StartPermits};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Default size of the cache of compiled programs.
pub const DEFAULT_CACHE_BYTES: usize = 16 << 20;

/// Default pause before a failed start of a server is retried.
pub const DEFAULT_TRY_AGAIN: Duration = Duration::from_secs(1);

/// How much may run at once in the whole runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Programs that run at once; beyond that, another one begins only when it has waited for some
    /// milliseconds. Programs that wait for upstreams do not count.
    pub running: usize,
    /// Memory that all programs may hold together. When it is used up, one program goes on to its end while
    /// the others wait.
    pub total_bytes: u64,
}

impl Default for Capacity {
    fn default() -> Capacity {
        const FEWEST: usize = 8;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Capacity { running: (2 * cores).max(FEWEST), total_bytes: u64::MAX }
    }
}

/// How to start a runtime.
#[derive(Clone)]
pub struct RuntimeConfig {
    /// Upstream servers.
    #[doc(hidden)]
    pub servers: Vec<ServerEntry>,
    /// Policy for all entries without `required`.
    #[doc(hidden)]
    pub startup: Option<Startup>,
    /// Which servers start immediately.
    #[doc(hidden)]
    pub start: StartPolicy,
    /// How many servers may be starting at once; others wait.
    #[doc(hidden)]
    pub start_permits: StartPermits,
    /// The pause before a failed start of a lenient server is retried without a call; it doubles with every
    /// failure. `None`: only calls retry.
    pub try_again: Option<Duration>,
    /// The application reports servers that did not start, so the log does not.
    #[doc(hidden)]
    pub reports_starts: bool,
    /// How long tool lists are valid; `None` freezes those of strict servers when all servers start at once.
    #[doc(hidden)]
    pub snapshot: Option<SnapshotMode>,
    /// The age at which live tool lists are fetched again without a notification. `None`: only after a
    /// notification.
    pub list_ttl: Option<Duration>,
    /// Caches results of tools that are annotated as read-only and idempotent, for equal calls of the same
    /// owner (`CallingClient::owner`; calls without a client share one owner). `None`: no results are cached.
    #[doc(hidden)]
    pub results: Option<ResultCaching>,
    /// Programs have only tools that are annotated as read-only, including those of the application. The
    /// application's private tools are exempt, since programs cannot call them.
    pub read_only: bool,
    /// Which calls may be made. `None`: all.
    pub policy: Option<Arc<Policy>>,
    /// Who approves calls that the policy asks about, next to the client.
    #[doc(hidden)]
    pub approvals: ApprovalSettings,
    /// Tools as they were reviewed. `None`: tools are not compared.
    #[doc(hidden)]
    pub pins: Option<Arc<Pins>>,
    /// Isolate workers; 0 means one per core.
    pub workers: usize,
    /// Niceness of the workers' threads (Linux): how far they yield a core to other threads. A few steps are
    /// right when clients wait for other threads of this process: those threads then get the core at once, and
    /// not at the next tick of the system's clock.
    #[doc(hidden)]
    pub niceness: u8,
    /// How much runs at once.
    #[doc(hidden)]
    pub load: Capacity,
    /// Size of the cache of compiled programs; 0 turns it off.
    pub cache_bytes: usize,
    /// Namespaces that every program can call into.
    pub preludes: Vec<Arc<Prelude>>,
    /// Functions of the application that every program can call as `(tool/name …)`.
    pub tools: Vec<HostTool>,
    /// The folder in which facts about servers are remembered for the next run, such as their tool lists. `None`:
    /// nothing is remembered.
    pub state_folder: Option<PathBuf>,
    /// Logins at servers: where they are stored.
    #[doc(hidden)]
    pub logins: LoginOptions,
    /// How far shapes of results are remembered.
    #[doc(hidden)]
    pub learned_shapes: LearnedShapes,
    /// Secrets that the configuration resolved.
    pub secrets: SecretRegistry,
    /// The features of the client that upstreams may use.
    #[doc(hidden)]
    pub client: ClientFeatures,
    /// Is notified of servers as they start.
    #[doc(hidden)]
    pub observer: Option<Observer>,
    /// Records every run in a folder.
    #[doc(hidden)]
    pub record: Option<Recorder>,
    /// Stores runs that change something, so that they outlive this process.
    #[doc(hidden)]
    pub state: Option<DurableRuns>,
    /// This process has no children except those of this runtime. Then processes that its servers leave
    /// behind are reparented to it, ended and reaped (Linux). Existing children are left alone.
    pub adopts_orphans: bool,
}

impl Default for RuntimeConfig {
    fn default() -> RuntimeConfig {
        RuntimeConfig {
            servers: Vec::new(),
            startup: None,
            start: StartPolicy::All,
            start_permits: StartPermits::default(),
            try_again: Some(DEFAULT_TRY_AGAIN),
            reports_starts: false,
            snapshot: None,
            list_ttl: None,
            results: None,
            read_only: false,
            policy: None,
            approvals: ApprovalSettings::default(),
            pins: None,
            workers: 0,
            niceness: 0,
            load: Capacity::default(),
            cache_bytes: DEFAULT_CACHE_BYTES,
            preludes: Vec::new(),
            tools: Vec::new(),
            state_folder: None,
            logins: LoginOptions::default(),
            learned_shapes: LearnedShapes::Kept,
            secrets: SecretRegistry::new(),
            client: ClientFeatures::default(),
            observer: None,
            record: None,
            state: None,
            adopts_orphans: false,
        }
    }
}
