//! OpenTelemetry metrics of finished calls: durations of tool calls and upstream calls, fuel, and bytes of payloads.
//! Labels are names of tools and servers, and reasons, so there are few series.

use super::names::{CLIENT_DURATION, DURATION_BOUNDS, ERROR, METHOD, SERVER_DURATION, TOOL, UPSTREAM};
use crate::answer::RefusalReason;
use crate::observe::entry::CallEntry;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, MeterProvider};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use ptc_calls::outcome::CallStatus;
use std::time::Duration;

/// The instruments.
pub(super) struct Meters {
    provider: SdkMeterProvider,
    server: Histogram<f64>,
    client: Histogram<f64>,
    fuel: Counter<u64>,
    payload_in: Counter<u64>,
    payload_out: Counter<u64>,
}

impl Meters {
    /// Instruments whose values are exported at intervals (`OTEL_METRIC_EXPORT_INTERVAL`).
    pub(super) fn start(exporter: MetricExporter, resource: Resource) -> Meters {
        let reader = PeriodicReader::builder(exporter).build();
        let provider = SdkMeterProvider::builder().with_resource(resource).with_reader(reader).build();
        let meter = provider.meter("ptc");
        let duration = |name: &'static str, text: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(text);
            histogram.with_boundaries(DURATION_BOUNDS.to_vec()).build()
        };
        let counter = |name: &'static str, unit: &'static str, text: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(text).build()
        };
        Meters {
            server: duration(SERVER_DURATION, "Duration of tool calls that the server answers"),
            client: duration(CLIENT_DURATION, "Duration of calls that programs make"),
            fuel: counter("ptc.fuel", "{unit}", "Fuel of programs"),
            payload_in: counter("ptc.payload.in", "By", "Bytes that came from upstreams"),
            payload_out: counter("ptc.payload.out", "By", "Bytes of answers"),
            provider,
        }
    }

    /// Adds the figures of a finished call.
    pub(super) fn add(&self, call: &CallEntry) {
        // Clients choose these names.
        let is_known = call.reason.as_deref() != Some(RefusalReason::UnknownTool.name());
        let tool = if is_known { call.tool.to_string() } else { String::new() };
        let mut labels = vec![KeyValue::new(METHOD, "tools/call"), KeyValue::new(TOOL, tool)];
        if call.is_error {
            let reason = call.reason.as_deref().unwrap_or("tool_error").to_owned();
            labels.push(KeyValue::new(ERROR, reason));
        }
        self.server.record(call.duration.as_secs_f64(), &labels);
        let Some(run) = &call.run else { return };
        self.fuel.add(run.usage.fuel.unwrap_or_default(), &[]);
        self.payload_in.add(run.totals.bytes(), &[]);
        self.payload_out.add(run.result_bytes.unwrap_or_default(), &[]);
        for call in &run.calls {
            let mut labels = vec![
                KeyValue::new(METHOD, "tools/call"),
                KeyValue::new(TOOL, call.tool.to_string()),
                KeyValue::new(UPSTREAM, call.server.to_string()),
            ];
            if let CallStatus::Error { reason, .. } = &call.status {
                labels.push(KeyValue::new(ERROR, reason.name()));
            }
            self.client.record(call.duration.as_secs_f64(), &labels);
        }
    }

    /// Exports the last values.
    pub(super) fn close(&self, patience: Duration) -> OTelSdkResult {
        self.provider.shutdown_with_timeout(patience)
    }
}
