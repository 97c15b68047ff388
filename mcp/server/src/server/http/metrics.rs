//! Collects the metrics of the HTTP server for Prometheus: requests and their durations, tool calls, connections,
//! sessions, queued calls and memory.

use super::HttpServer;
use crate::observe::counts::CallCounts;
use crate::server::gate::Gate;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

/// Metrics of a server over HTTP.
#[derive(Debug)]
pub(super) struct HttpCounts {
    registry: Registry,
    requests: Family<[(&'static str, String); 2], Counter>,
    seconds: Histogram,
    in_flight: Gauge,
    connections: Gauge,
    sessions: Gauge,
    queued: Gauge,
    resident: Gauge,
    calls: CallCounts,
}

impl HttpCounts {
    /// Metrics with all counters at zero.
    pub(super) fn new(calls: &CallCounts) -> HttpCounts {
        let mut registry = Registry::with_prefix("ptc");
        calls.register(&mut registry);
        let requests = Family::<[(&'static str, String); 2], Counter>::default();
        let seconds = Histogram::new(exponential_buckets(0.0001, 4.0, 10));
        let mut gauge = |name: &str, help: &str| {
            let gauge: Gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let in_flight = gauge("http_requests_in_flight", "Requests without an answer yet");
        let connections = gauge("http_connections", "Open connections");
        let sessions = gauge("http_sessions", "Sessions of the handshake era");
        let queued = gauge("queued_calls", "Calls that wait to begin");
        let resident = gauge("resident_memory_bytes", "Resident memory of the process");
        registry.register("http_requests", "Requests, by method and status", requests.clone());
        registry.register("http_request_seconds", "Until an answer begins", seconds.clone());
        HttpCounts {
            registry,
            requests,
            seconds,
            in_flight,
            connections,
            sessions,
            queued,
            resident,
            calls: calls.clone(),
        }
    }

    /// Counts a response when its head is ready.
    pub(super) fn answered(&self, method: &str, status: u16, time: Duration) {
        // A client can send any method, and each label value is stored for ever.
        let method = if ["POST", "GET", "DELETE"].contains(&method) { method } else { "other" };
        self.requests.get_or_create(&[("method", method.into()), ("status", status.to_string())]).inc();
        self.seconds.observe(time.as_secs_f64());
    }

    /// Encodes all metrics as text.
    pub(super) fn text(&self, server: &HttpServer, gate: &Gate) -> String {
        let whole = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.calls.refresh();
        self.in_flight.set(whole(server.in_flight()));
        self.connections.set(whole(server.connections()));
        self.sessions.set(whole(server.sessions.count()));
        self.queued.set(whole(gate.queued()));
        self.resident.set(resident_bytes());
        let mut text = String::new();
        // Writing to memory cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Resident memory; 0 where the system does not report it.
fn resident_bytes() -> i64 {
    let pages = ptc_base::files::read_text("/proc/self/statm".as_ref())
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse::<i64>().ok());
    let page = i64::try_from(rustix::param::page_size()).unwrap_or_default();
    pages.unwrap_or_default() * page
}
