//! Settings of the server over HTTP: addresses, paths and limits.

use super::guard::Origin;
use super::page::PATH;
use crate::observe::counts::CallCounts;
use ptc_calls::limit_table;
use std::net::SocketAddr;
use std::time::Duration;

limit_table! {
    /// Limits of a server over HTTP.
    HttpLimits;
    /// How long a client may take to send the head of a request, its body, or to read on.
    request_timeout_ms: Millis = 15_000, "http-request-timeout", "408, or the connection ends";
    /// How long a connection stays on which nothing is asked.
    keep_alive_ms: Millis = 120_000, "http-keep-alive", "the connection ends";
    /// Connections at once.
    connections: Positive = 16_384, "http-max-connections", "waits";
    /// Those of one address, which is not this machine's.
    connections_per_address: Positive = 1_024, "http-max-connections-per-address", "the connection ends";
    /// How long requests in flight may take when the server is to end.
    grace_ms: Millis = 10_000, "http-shutdown-grace", "cancelled";
    /// Longest body of a request; 0: as --max-frame-bytes.
    body_bytes: Bytes = 0, "http-max-body-bytes", "413";
    /// Bytes of the bodies of all requests that are being read or handled.
    all_bodies_bytes: Bytes = 256 << 20, "http-max-bodies-bytes", "503";
    /// How long a session of the handshake era lives at most.
    session_ttl_ms: Millis = 3_600_000, "http-session-ttl", "404";
    /// How long one lives in which nothing is asked.
    session_idle_ms: Millis = 900_000, "http-session-idle-timeout", "404";
    /// Sessions of the handshake era.
    sessions: Positive = 256, "http-max-sessions", "503";
    /// Those of one token.
    sessions_per_owner: Positive = 32, "http-max-sessions-per-owner", "429";
    /// Programs of one token that run at once; more of them wait.
    jobs_per_owner: Positive = 64, "http-max-in-flight-per-owner", "waits";
    /// Requests of one token that wait for that.
    queued_per_owner: Positive = 1_024, "http-max-queued-per-owner", "busy";
    /// Wrong tokens of one address within the window before it is refused for a while.
    auth_failures: Positive = 5, "http-auth-rate-limit-max-failures", "429";
    /// How long wrong tokens are remembered.
    auth_window_ms: Millis = 60_000, "http-auth-rate-limit-window", "429";
    /// How long an address is refused.
    auth_block_ms: Millis = 60_000, "http-auth-rate-limit-block", "429";
}

/// Settings of a server over HTTP.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// The MCP path, with its slash.
    pub path: String,
    /// Allowed origins of web pages. If there are none, a server on a loopback address allows local origins,
    /// and any other allows none.
    pub origins: Vec<Origin>,
    /// Name of the server in logs and in `/ready`.
    pub instance: String,
    /// Settings of `/metrics`, if it is on.
    pub metrics: Option<MetricsSettings>,
    /// A page for people is at `/ui`.
    pub page: bool,
    /// The limits.
    pub limits: HttpLimits,
}

/// Settings of `/metrics`.
#[derive(Clone, Debug)]
pub struct MetricsSettings {
    /// The path, with its slash.
    pub path: String,
    /// Counts of recorded calls.
    pub calls: CallCounts,
}

/// Paths of the health checks.
pub(super) const HEALTH: &str = "/health";
pub(super) const READY: &str = "/ready";

impl HttpSettings {
    /// True when only this machine can reach it.
    pub fn is_local(&self) -> bool {
        self.address.ip().is_loopback()
    }

    /// True when two paths are equal, or one is of the page.
    pub fn has_path_twice(&self) -> bool {
        let metrics = self.metrics.as_ref().map(|metrics| &*metrics.path);
        let is_of_page =
            |path: &str| path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if self.page && (is_of_page(&self.path) || metrics.is_some_and(is_of_page)) {
            return true;
        }
        [Some(HEALTH), Some(READY), metrics].contains(&Some(&*self.path))
            || [Some(HEALTH), Some(READY)].contains(&metrics)
    }

    pub(super) fn keep_alive(&self) -> Duration {
        Duration::from_millis(self.limits.keep_alive_ms)
    }

    pub(super) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.limits.request_timeout_ms)
    }

    pub(super) fn body_bytes(&self) -> usize {
        usize::try_from(self.limits.body_bytes).unwrap_or(usize::MAX)
    }
}
