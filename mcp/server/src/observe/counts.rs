//! Prometheus metrics of tool calls: counts and durations, fuel, bytes, upstream calls, policy decisions, and calls
//! that wait for approval.

use super::entry::CallEntry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use ptc_calls::outcome::CallStatus;
use ptc_calls::policy::SharedPolicy;
use std::sync::{Arc, OnceLock};

/// Two labels: what is counted, and how it ended.
type Labels = [(&'static str, String); 2];
type Counts = Family<Labels, Counter>;
type Times = Family<[(&'static str, String); 1], Histogram, fn() -> Histogram>;

/// Counters of tool calls and of what their runs did. Labels are names of tools and servers, and reasons, so
/// there are few.
#[derive(Clone, Debug)]
pub struct CallCounts {
    calls: Counts,
    seconds: Times,
    fuel: Counter,
    result_bytes: Counter,
    upstream_calls: Counts,
    upstream_bytes: Counter,
    upstream_seconds: Times,
    decisions: Family<[(&'static str, String); 1], Counter>,
    waiting: Gauge,
    /// The policy in effect, once there is a runtime.
    policy: Arc<OnceLock<SharedPolicy>>,
}

fn times() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 4.0, 10))
}

impl Default for CallCounts {
    fn default() -> CallCounts {
        CallCounts {
            calls: Family::default(),
            seconds: Family::new_with_constructor(times),
            fuel: Counter::default(),
            result_bytes: Counter::default(),
            upstream_calls: Family::default(),
            upstream_bytes: Counter::default(),
            upstream_seconds: Family::new_with_constructor(times),
            decisions: Family::default(),
            waiting: Gauge::default(),
            policy: Arc::default(),
        }
    }
}

impl CallCounts {
    /// Registers the counters for output.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("calls", "Calls of tools, by tool and reason", self.calls.clone());
        registry.register("call_seconds", "From a request to its answer, by tool", self.seconds.clone());
        registry.register("fuel", "Fuel of programs", self.fuel.clone());
        registry.register("result_bytes", "Bytes of results", self.result_bytes.clone());
        let upstream = "Calls of upstream tools, by server and reason";
        registry.register("upstream_calls", upstream, self.upstream_calls.clone());
        registry.register("upstream_result_bytes", "Bytes of their results", self.upstream_bytes.clone());
        let seconds = "From sending to answer, by server";
        registry.register("upstream_call_seconds", seconds, self.upstream_seconds.clone());
        registry.register("policy_decisions", "Decisions about calls, by verdict", self.decisions.clone());
        registry.register("approvals_waiting", "Calls that wait for a person", self.waiting.clone());
    }

    /// The policy whose questions are counted.
    pub fn watch(&self, policy: SharedPolicy) {
        let _ = self.policy.set(policy);
    }

    /// Sets the gauges to their values at this moment.
    pub fn refresh(&self) {
        let waiting = self.policy.get().map_or(0, SharedPolicy::waiting);
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    /// Counts a finished call. Unknown names of tools are counted together.
    pub(super) fn add(&self, call: &CallEntry, is_known: bool) {
        let tool = if is_known { &*call.tool } else { "" };
        let reason = call.reason.as_deref().unwrap_or(call.status());
        self.calls.get_or_create(&[("tool", tool.into()), ("reason", reason.into())]).inc();
        self.seconds.get_or_create(&[("tool", tool.into())]).observe(call.duration.as_secs_f64());
        let Some(run) = &call.run else { return };
        self.fuel.inc_by(run.usage.fuel.unwrap_or_default());
        self.result_bytes.inc_by(run.result_bytes.unwrap_or_default());
        for call in &run.calls {
            let reason = match &call.status {
                CallStatus::Error { reason, .. } => reason.name(),
                _ => "ok",
            };
            self.upstream_calls
                .get_or_create(&[("server", call.server.to_string()), ("reason", reason.into())])
                .inc();
            if let Some(ruling) = &call.ruling {
                self.decisions.get_or_create(&[("verdict", ruling.verdict.name().into())]).inc();
            }
            self.upstream_bytes.inc_by(call.result_bytes.unwrap_or_default());
            self.upstream_seconds
                .get_or_create(&[("server", call.server.to_string())])
                .observe(call.duration.as_secs_f64());
        }
    }
}
