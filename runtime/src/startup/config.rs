//! How to start a runtime.

use super::{Observer, StartPolicy};
use crate::broker::ResultCaching;
use crate::config::{ServerEntry, Startup};
use crate::guest::lisp::prelude::Prelude;
use crate::host::HostTool;
use crate::secrets::SecretRegistry;
use crate::tools::SnapshotMode;
use crate::upstream::{ClientFeatures, StartPlaces};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of compiled programs kept by default.
pub const DEFAULT_CACHE_BYTES: usize = 32 << 20;

/// The pause before a server that did not start is tried again.
pub const DEFAULT_TRY_AGAIN: Duration = Duration::from_secs(1);

/// How much runs at once, in the whole runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Programs that take turns; one more begins only when it has waited for some milliseconds. Programs that wait
    /// for upstream servers do not count.
    pub running: usize,
    /// Memory that all programs may hold together: when it is used up, one of them goes on to its end while the
    /// others wait.
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
    pub servers: Vec<ServerEntry>,
    /// Policy for all entries that do not say `required` themselves.
    pub startup: Option<Startup>,
    /// Which servers start at once.
    pub start: StartPolicy,
    /// How many servers may be starting at one moment; the others wait for their turn.
    pub places: StartPlaces,
    /// The pause before a lenient server that did not start is tried again without a call; it doubles with every
    /// failure. `None` leaves it to calls.
    pub try_again: Option<Duration>,
    /// How long tool lists are good for; `None` freezes those of strict servers when all servers start at
    /// once.
    pub snapshot: Option<SnapshotMode>,
    /// The age at which live tool lists are asked for again, though their servers say nothing of a change; `None`: then
    /// only.
    pub list_ttl: Option<Duration>,
    /// Results of tools that are annotated as read-only and idempotent are kept for equal calls of the same owner
    /// (`CallingClient::owner`; calls without a client are of one); `None`: no results are kept.
    pub results: Option<ResultCaching>,
    /// Only tools annotated as read-only exist for programs, those of the application included. What it has marked as
    /// private is not for programs, and is its own affair.
    pub read_only: bool,
    /// Isolate workers; 0 means one a core.
    pub workers: usize,
    /// How much less than others workers want a core that they have to share (the niceness of their threads, on Linux). A
    /// server whose clients wait for other threads of this process gives them a few steps: they are on the core at once then,
    /// and not at the next tick of the system's clock.
    pub niceness: u8,
    /// How much runs at once.
    pub load: Capacity,
    /// Bytes of compiled programs to keep; 0 turns the cache off.
    pub cache_bytes: usize,
    /// Namespaces that every program can call into.
    pub preludes: Vec<Arc<Prelude>>,
    /// Functions of the application that every program can call as `(tool/name …)`.
    pub tools: Vec<HostTool>,
    /// Secrets that the configuration resolved.
    pub secrets: SecretRegistry,
    /// Whom servers may ask through us.
    pub client: ClientFeatures,
    /// Told about servers as they start.
    pub observer: Option<Observer>,
    /// This process has no children but those of this runtime: what its servers leave behind becomes its own, and
    /// is ended and reaped (Linux). Children that there are already are left alone.
    pub adopts_orphans: bool,
}

impl Default for RuntimeConfig {
    fn default() -> RuntimeConfig {
        RuntimeConfig {
            servers: Vec::new(),
            startup: None,
            start: StartPolicy::All,
            places: StartPlaces::default(),
            try_again: Some(DEFAULT_TRY_AGAIN),
            snapshot: None,
            list_ttl: None,
            results: None,
            read_only: false,
            workers: 0,
            niceness: 0,
            load: Capacity::default(),
            cache_bytes: DEFAULT_CACHE_BYTES,
            preludes: Vec::new(),
            tools: Vec::new(),
            secrets: SecretRegistry::new(),
            client: ClientFeatures::default(),
            observer: None,
            adopts_orphans: false,
        }
    }
}
