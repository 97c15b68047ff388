//! What the flags of `ptc serve` say, read before anything starts.

use super::ServeArgs;
use crate::answer::caps::Profile;
use crate::cli::flags::http::HttpPlan;
use crate::cli::flags::server::ServerLimits;
use crate::cli::flags::variables;
use crate::cli::reload::ConfigReload;
use crate::console::exit::Abort;
use crate::server::{Gate, GateLimits, ParkingLimits};
use crate::tools::catalog::CatalogStyle;
use ptc_runtime::Capacity;
use std::sync::Arc;
use std::time::Duration;

/// Most requests that wait to begin before reading pauses, and most bytes of them.
const QUEUED: usize = 8_192;
const QUEUED_BYTES: usize = 16 << 20;

/// The settings that more than one step needs.
pub(super) struct Settings {
    pub(super) profile: Profile,
    pub(super) catalog_style: CatalogStyle,
    pub(super) read_only: bool,
    pub(super) config_reload: Option<ConfigReload>,
    limits: ServerLimits,
}

impl Settings {
    /// Reads the flags. The second part is the HTTP server, if there is to be one.
    pub(super) fn read(args: &ServeArgs) -> Result<(Settings, Option<HttpPlan>), Abort> {
        let profile = variables::given_or_read(args.response_profile, "response-profile", variables::word)?;
        let limits: ServerLimits = args.server.limits(false)?;
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

    /// Bytes that programs may hold together, and script processes as many again.
    pub(super) fn total_bytes(&self) -> u64 {
        self.limits.total_bytes
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
