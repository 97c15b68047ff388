//! Blocks a client's IP address for some time after too many requests with wrong access tokens.

use super::{Access, AccessDenied};
use ptc_base::sync::Locked;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Most addresses with failed attempts that are remembered. Further ones are not blocked.
const MOST_ADDRESSES: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Failures {
    addresses: HashMap<IpAddr, Attempts>,
}

#[derive(Debug)]
struct Attempts {
    begun: Instant,
    count: u64,
    refused_until: Option<Instant>,
}

impl Access {
    /// Refuses a request: for this reason, or because its address is blocked.
    pub(super) fn refused_or<T>(&self, from: IpAddr, refused: AccessDenied) -> Result<T, AccessDenied> {
        let wait = if self.counts_failures { self.failures.locked().refused(from) } else { None };
        Err(wait.map_or(refused, AccessDenied::TooMany))
    }

    /// Counts a wrong token from this address.
    pub(super) fn count(&self, from: IpAddr) {
        if !self.counts_failures {
            return;
        }
        let now = Instant::now();
        let [window, block] =
            [self.limits.auth_window_ms, self.limits.auth_block_ms].map(Duration::from_millis);
        let mut failures = self.failures.locked();
        if failures.addresses.len() >= MOST_ADDRESSES && !failures.addresses.contains_key(&from) {
            failures.addresses.retain(|_, attempts| attempts.matters(now, window));
            if failures.addresses.len() >= MOST_ADDRESSES {
                return;
            }
        }
        let attempts =
            failures.addresses.entry(from).or_insert(Attempts { begun: now, count: 0, refused_until: None });
        if !attempts.matters(now, window) {
            *attempts = Attempts { begun: now, count: 0, refused_until: None };
        }
        attempts.count += 1;
        if attempts.count >= self.limits.auth_failures && attempts.refused_until.is_none() {
            attempts.refused_until = Some(now + block);
            tracing::warn!(address = %from, "too many wrong tokens: refused for a while");
        }
    }
}

impl Attempts {
    fn matters(&self, now: Instant, window: Duration) -> bool {
        match self.refused_until {
            Some(until) => now < until,
            None => now < self.begun + window,
        }
    }
}

impl Failures {
    /// How long an address is still blocked.
    fn refused(&self, from: IpAddr) -> Option<Duration> {
        let until = self.addresses.get(&from)?.refused_until?;
        until.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }
}
