//! OpenTelemetry metrics of finished calls: durations of tool calls and upstream calls, fuel, and bytes of payloads.
//! Values are cumulative: they count from the start of the process.
//!
//! Labels are names of tools and servers, and reasons, so there are few series; beyond [`MOST_SERIES`] of a histogram the
//! others are one series.

use super::message::{self, Message, attribute};
use super::names::{CLIENT_DURATION, DURATION_BOUNDS, ERROR, METHOD, SERVER_DURATION, TOOL, UPSTREAM};
use super::spans::unix_nanos;
use crate::answer::RefusalReason;
use crate::observe::entry::CallEntry;
use ptc_calls::outcome::CallStatus;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// Most series of a histogram, as in the SDKs of OpenTelemetry.
const MOST_SERIES: usize = 2_000;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// Names and values of labels.
type Labels = Vec<(&'static str, String)>;

/// The instruments.
#[derive(Debug)]
pub(super) struct Meters {
    begun: SystemTime,
    server: Histogram,
    client: Histogram,
    fuel: u64,
    payload_in: u64,
    payload_out: u64,
}

/// Durations by labels.
#[derive(Debug, Default)]
struct Histogram(BTreeMap<Labels, Durations>);

/// The durations of one series, in seconds.
#[derive(Debug, Default)]
struct Durations {
    sum: f64,
    least: f64,
    most: f64,
    /// Counts by bucket; the last one is above all bounds.
    buckets: [u64; DURATION_BOUNDS.len() + 1],
}

impl Meters {
    /// Instruments without values.
    pub(super) fn new() -> Meters {
        let (server, client) = (Histogram::default(), Histogram::default());
        Meters { begun: SystemTime::now(), server, client, fuel: 0, payload_in: 0, payload_out: 0 }
    }

    /// Adds the figures of a finished call.
    pub(super) fn add(&mut self, call: &CallEntry) {
        // Clients choose these names.
        let is_known = call.reason.as_deref() != Some(RefusalReason::UnknownTool.name());
        let tool = if is_known { call.tool.to_string() } else { String::new() };
        let mut labels = vec![(METHOD, "tools/call".to_owned()), (TOOL, tool)];
        if call.is_error {
            labels.push((ERROR, call.reason.as_deref().unwrap_or("tool_error").to_owned()));
        }
        self.server.record(labels, call.duration);
        let Some(run) = &call.run else { return };
        self.fuel = self.fuel.saturating_add(run.usage.fuel.unwrap_or_default());
        self.payload_in = self.payload_in.saturating_add(run.totals.bytes());
        self.payload_out = self.payload_out.saturating_add(run.result_bytes.unwrap_or_default());
        for call in &run.calls {
            let mut labels = vec![
                (METHOD, "tools/call".to_owned()),
                (TOOL, call.tool.to_string()),
                (UPSTREAM, call.server.to_string()),
            ];
            if let CallStatus::Error { reason, .. } = &call.status {
                labels.push((ERROR, reason.name().to_owned()));
            }
            self.client.record(labels, call.duration);
        }
    }

    /// The body of a request with all values (`ExportMetricsServiceRequest`); `None` before the first call.
    pub(super) fn request(&self, resource: &Message) -> Option<Message> {
        if self.server.0.is_empty() {
            return None;
        }
        let times = Times { begun: unix_nanos(self.begun), now: unix_nanos(SystemTime::now()) };
        let metrics = vec![
            self.server.message(SERVER_DURATION, "Duration of tool calls that the server answers", times),
            self.client.message(CLIENT_DURATION, "Duration of calls that programs make", times),
            sum("ptc.fuel", "{unit}", "Fuel of programs", self.fuel, times),
            sum("ptc.payload.in", "By", "Bytes that came from upstreams", self.payload_in, times),
            sum("ptc.payload.out", "By", "Bytes of answers", self.payload_out, times),
        ];
        Some(message::request(["resourceMetrics", "scopeMetrics", "metrics"], resource, metrics))
    }
}

/// Start and end of what values count, in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Times {
    begun: u64,
    now: u64,
}

impl Histogram {
    fn record(&mut self, labels: Labels, duration: Duration) {
        let is_full = self.0.len() >= MOST_SERIES && !self.0.contains_key(&labels);
        let labels = if is_full { vec![("otel.metric.overflow", "true".to_owned())] } else { labels };
        self.0.entry(labels).or_default().add(duration.as_secs_f64());
    }

    fn message(&self, name: &str, description: &str, times: Times) -> Message {
        let points = self.0.iter().map(|(labels, durations)| durations.point(labels, times)).collect();
        let histogram = Message::default().messages(1, "dataPoints", points).small(
            2,
            "aggregationTemporality",
            CUMULATIVE,
        );
        metric(name, description, "s").message(9, "histogram", histogram)
    }
}

impl Durations {
    fn add(&mut self, seconds: f64) {
        let is_first = self.count() == 0;
        self.sum += seconds;
        self.least = if is_first { seconds } else { self.least.min(seconds) };
        self.most = self.most.max(seconds);
        // A bucket has its upper bound.
        self.buckets[DURATION_BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
    }

    fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// `HistogramDataPoint`.
    fn point(&self, labels: &Labels, times: Times) -> Message {
        let attributes = labels.iter().map(|(key, value)| attribute(key, value.as_str())).collect();
        Message::default()
            .fixed(2, "startTimeUnixNano", times.begun)
            .fixed(3, "timeUnixNano", times.now)
            .fixed(4, "count", self.count())
            .double(5, "sum", self.sum)
            .fixeds(6, "bucketCounts", self.buckets.to_vec())
            .doubles(7, "explicitBounds", DURATION_BOUNDS.to_vec())
            .messages(9, "attributes", attributes)
            .double(11, "min", self.least)
            .double(12, "max", self.most)
    }
}

fn metric(name: &str, description: &str, unit: &str) -> Message {
    Message::default().text(1, "name", name.to_owned()).text(2, "description", description.to_owned()).text(
        3,
        "unit",
        unit.to_owned(),
    )
}

/// A counter without labels (`Sum`).
fn sum(name: &str, unit: &str, description: &str, value: u64, times: Times) -> Message {
    let point = Message::default()
        .fixed(2, "startTimeUnixNano", times.begun)
        .fixed(3, "timeUnixNano", times.now)
        .fixed(6, "asInt", value.min(i64::MAX.cast_unsigned()));
    let sum = Message::default()
        .messages(1, "dataPoints", vec![point])
        .small(2, "aggregationTemporality", CUMULATIVE)
        .bool(3, "isMonotonic", true);
    metric(name, description, unit).message(7, "sum", sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::otlp::message::Encoding;
    use serde_json::Value;

    #[test]
    fn durations_are_in_the_bucket_whose_upper_bound_they_reach_and_further_series_are_one() {
        let mut histogram = Histogram::default();
        for millis in [10, 11, 400_000] {
            histogram.record(vec![("a", "b".to_owned())], Duration::from_millis(millis));
        }
        for name in 0..MOST_SERIES + 5 {
            histogram.record(vec![("n", name.to_string())], Duration::ZERO);
        }
        let message = histogram.message("d", "", Times { begun: 1, now: 2 });
        let json: Value = serde_json::from_slice(&message.encoded(Encoding::Json)).unwrap();
        let points = json["histogram"]["dataPoints"].as_array().unwrap();
        let first = &points[0];
        assert_eq!(
            (&first["count"], &first["min"], &first["max"]),
            (&"3".into(), &0.01.into(), &400.0.into())
        );
        let counts: Vec<&str> =
            first["bucketCounts"].as_array().unwrap().iter().map(|count| count.as_str().unwrap()).collect();
        assert_eq!(counts.len(), DURATION_BOUNDS.len() + 1);
        assert_eq!((counts[0], counts[1], counts[14]), ("1", "1", "1"));
        assert_eq!(points.len(), MOST_SERIES + 1);
        let rest =
            points.iter().find(|point| point["attributes"][0]["key"] == "otel.metric.overflow").unwrap();
        assert_eq!(rest["count"], "6");
    }
}
