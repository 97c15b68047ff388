//! Computes from the command-line flags those settings of `ptc serve` that several startup steps need: detail of
//! answers, read-only mode, reload of the configuration, and limits of load. Other flags are read by the one step of
//! the start that needs them.

use super::ServeArgs;
use crate::cli::flags::http::HttpPlan;
use crate::cli::flags::server::ServerLimits;
use crate::cli::flags::variables;
use crate::cli::reload::ConfigReload;
use ptc_engine::Capacity;
use ptc_server::answer::caps::Profile;
use ptc_server::console::Abort;
use ptc_server::server::{DetachedLimits, Gate, GateLimits, ParkingLimits};
use ptc_server::tools::catalog::CatalogStyle;
use std::sync::Arc;
use std::time::Duration;

/// Most requests that wait to begin before reading pauses, and most bytes of them.
const QUEUED: usize = 8_192;
const QUEUED_BYTES: usize = 16 << 20;

/// How long a stored run waits for a person.
const DURABLE_PARKED_MS: u64 = 7 * 24 * 3_600_000;

/// The settings that more than one step needs.
pub(super) struct Settings {
    pub(super) profile: Profile,
    pub(super) catalog_style: CatalogStyle,
    pub(super) read_only: bool,
    pub(super) config_reload: Option<ConfigReload>,
    pub(super) limits: ServerLimits,
}

impl Settings {
    /// Reads the flags. The second part is the HTTP server, if there is to be one.
    pub(super) fn read(args: &ServeArgs) -> Result<(Settings, Option<HttpPlan>), Abort> {
        let profile = variables::given_or_read(args.response_profile, "response-profile", variables::word)?;
        let mut limits: ServerLimits = args.server.limits(false)?;
        if args.state.location()?.is_some() && !args.server.is_given("max-parked-time")? {
            limits.parked_ms = DURABLE_PARKED_MS;
        }
        let read_only = args.upstreams.read_only()?;
        let catalog_style = args.catalog.style()?;
        let http = args.http.plan(limits.frame_bytes.max(1))?;
        let config_reload = variables::given_or_read(args.config_reload, "config-reload", variables::word)?;
        let profile = profile.unwrap_or_default();
        Ok((Settings { profile, catalog_style, read_only, config_reload, limits }, http))
    }

    /// The longest message on standard input.
    pub(super) fn longest(&self) -> usize {
        whole(self.limits.frame_bytes.max(1))
    }

    /// Calls that go on without their requests.
    pub(super) fn detached(&self, timeout_ms: u64, knows_clients: bool) -> DetachedLimits {
        let ServerLimits { tasks, detach_ms, parked_ms, .. } = self.limits;
        let after = Some(Duration::from_millis(detach_ms)).filter(|after| !after.is_zero());
        let ttl = Duration::from_millis(parked_ms.saturating_add(timeout_ms));
        let default = DetachedLimits::default();
        let tasks_after = after.unwrap_or(default.tasks_after);
        DetachedLimits { most: whole(tasks), ttl, tasks_after, runs_after: after, knows_clients }
    }

    /// How much the runtime runs at once.
    pub(super) fn capacity(&self) -> Capacity {
        Capacity { running: whole(self.limits.running), total_bytes: self.limits.total_bytes }
    }

    /// The queue of calls.
    pub(super) fn gate(&self) -> Arc<Gate> {
        let limits = &self.limits;
        let (most, timeout) = (whole(limits.parked), Duration::from_millis(limits.parked_ms));
        Gate::new(GateLimits {
            jobs: whole(limits.running).saturating_add(whole(limits.suspended)),
            memory_bytes: limits.total_bytes,
            queued: QUEUED,
            queued_bytes: QUEUED_BYTES,
            parking: ParkingLimits { most, timeout },
        })
    }
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
