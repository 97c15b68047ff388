//! Exports spans and metrics of calls to an OpenTelemetry collector, over OTLP/HTTP (`--otlp`).
//!
//! Spans are made on the thread that writes records, when a call has ended; nothing is measured while it runs. Only the
//! ids of its spans are given out before, because upstreams get them. Queues are bounded: what does not fit is dropped
//! and counted.
//!
//! # Layout
//!
//! - this file: `OtlpExport` gives out ids (`OtlpExport::begin`) and exports finished calls, as a [`RecordSink`].
//! - `spans`: a call's record as spans. `meters`: its figures as metrics. `names`: names of both.
//! - `sampler`: which traces are recorded. `queue`: counts of spans. `transport`: requests to the collector.
//!
//! Standard variables hold: `OTEL_EXPORTER_OTLP_*` (endpoint, headers, protocol, timeout, compression),
//! `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`, `OTEL_METRIC_EXPORT_INTERVAL`,
//! `OTEL_SDK_DISABLED`.

mod meters;
mod names;
mod queue;
mod sampler;
mod spans;
mod transport;

use super::payload::PayloadPolicy;
use super::writer::{RecordSink, SinkCounts, WriteOutcome, WrittenCall};
use meters::Meters;
use opentelemetry::InstrumentationScope;
use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SpanProcessor};
use ptc_base::digest::sha256_hex;
use ptc_base::net::Url;
use ptc_base::secrets::SecretRegistry;
use ptc_calls::trace::{RunSpan, TraceContext};
use queue::{CountedExporter, SpanCounts};
use spans::{ShownPayload, spans};
use std::env;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use transport::CollectorClient;

pub(super) use spans::CallSpans;

/// Name of the sink in reports.
pub(super) const SINK: &str = "otlp";

/// Time limit of one request, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where to export to.
#[derive(Clone, Debug)]
pub struct OtlpOptions {
    /// Address of the collector, without the path of a signal; `None` leaves it to the standard variables.
    pub endpoint: Option<String>,
}

impl OtlpOptions {
    /// The options by a flag and the standard variables; `None` if neither names a collector.
    ///
    /// # Errors
    /// The address is none of `http://` and `https://`.
    pub fn read(flag: Option<String>) -> Result<Option<OtlpOptions>, String> {
        if env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let names = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
        let is_set = names.iter().any(|name| variable(name).is_some());
        if let Some(url) = &flag
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            return Err(format!("{url} is no address of a collector, such as http://127.0.0.1:4318"));
        }
        Ok((flag.is_some() || is_set).then_some(OtlpOptions { endpoint: flag }))
    }

    /// The address of a signal.
    fn signal(&self, path: &str) -> Option<String> {
        self.endpoint.as_ref().map(|endpoint| format!("{}/v1/{path}", endpoint.trim_end_matches('/')))
    }
}

/// Gives out the ids of spans, and exports finished calls.
pub(super) struct OtlpExport {
    sampler: Sampler,
    counts: Arc<SpanCounts>,
}

/// The end of the export that is on the thread of records.
struct OtlpSink {
    scope: InstrumentationScope,
    processor: BatchSpanProcessor,
    meters: Meters,
    counts: Arc<SpanCounts>,
    policy: PayloadPolicy,
    secrets: SecretRegistry,
}

impl OtlpExport {
    /// Starts the export. Values of headers are secrets.
    ///
    /// # Errors
    /// Variables that cannot be read; an unusable address or network.
    pub(super) fn start(
        options: &OtlpOptions,
        policy: PayloadPolicy,
        secrets: &SecretRegistry,
    ) -> io::Result<(OtlpExport, Box<dyn RecordSink>)> {
        register_headers(secrets);
        let sampler = sampler::sampler(
            variable("OTEL_TRACES_SAMPLER").as_deref(),
            variable("OTEL_TRACES_SAMPLER_ARG").as_deref(),
        )
        .map_err(io::Error::other)?;
        let resource = resource();
        let counts = Arc::new(SpanCounts::new(
            variable("OTEL_BSP_MAX_QUEUE_SIZE").and_then(|size| size.trim().parse().ok()),
        ));
        let exporter = span_exporter(options)?;
        let batches = BatchConfigBuilder::default().build();
        let mut processor =
            BatchSpanProcessor::new(CountedExporter { exporter, counts: counts.clone() }, batches);
        processor.set_resource(&resource);
        let meters = Meters::start(metric_exporter(options)?, resource);
        let scope = InstrumentationScope::builder("ptc").with_version(env!("CARGO_PKG_VERSION")).build();
        let (policy, secrets) = (policy, secrets.clone());
        let sink = OtlpSink { scope, processor, meters, counts: counts.clone(), policy, secrets };
        Ok((OtlpExport { sampler, counts }, Box::new(sink)))
    }

    /// Ids for the spans of a call, and the trace that its run passes on. `None` without random numbers: then the
    /// caller's trace is passed on, and the call has no spans.
    pub(super) fn begin(&self, caller: Option<&TraceContext>) -> Option<(CallSpans, TraceContext)> {
        let trace_id = match caller {
            Some(caller) => u128::from_str_radix(caller.trace_id(), 16).ok()?,
            None => u128::from(random_u64().ok()?) << 64 | u128::from(random_u64().ok()?),
        };
        let span = caller.map(TraceContext::span);
        let parent = span.map(|(span, is_sampled)| (SpanId::from(span), is_sampled));
        let is_sampled = sampler::is_sampled(&self.sampler, TraceId::from(trace_id), parent);
        let run = RunSpan { trace_id, span_id: random_u64().ok()?, is_sampled };
        let caller_id = parent.map_or(SpanId::INVALID, |(span, _)| span);
        let spans = CallSpans { run, server: SpanId::from(random_u64().ok()?), caller: caller_id };
        Some((spans, TraceContext::of_run(run, caller)))
    }

    /// Counts of spans.
    pub(super) fn counts(&self) -> SinkCounts {
        self.counts.report()
    }
}

impl RecordSink for OtlpSink {
    fn name(&self) -> &'static str {
        SINK
    }

    fn write(&mut self, call: &WrittenCall) -> io::Result<WriteOutcome> {
        let entry = &*call.call.entry;
        self.meters.add(entry);
        let Some(ids) = entry.spans.filter(|ids| ids.run.is_sampled) else {
            return Ok(WriteOutcome::Unwanted);
        };
        let shown = self.shown(call);
        for span in spans(&self.scope, entry, ids, shown) {
            if self.counts.enter() {
                self.processor.on_end(span);
            }
        }
        Ok(WriteOutcome::Written)
    }

    fn close(&mut self, patience: Duration) {
        for closed in [self.processor.shutdown_with_timeout(patience), self.meters.close(patience)] {
            if let Err(error) = closed {
                tracing::warn!(%error, "some spans or metrics were not exported");
            }
        }
    }
}

impl OtlpSink {
    fn shown(&self, call: &WrittenCall) -> ShownPayload {
        let Some(arguments) = &call.call.arguments else { return ShownPayload::default() };
        let program = arguments.program().map(|program| sha256_hex(program.as_bytes()));
        let text = arguments.text.as_deref().filter(|_| self.policy == PayloadPolicy::Full);
        let arguments = text.map(|text| self.secrets.scrub(text).into_owned());
        ShownPayload { program, arguments }
    }
}

/// A standard variable that is set to something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// A random number that is not 0.
fn random_u64() -> Result<u64, getrandom::Error> {
    Ok(getrandom::u64()?.max(1))
}

/// Headers may hold the key of a collector. Their values are percent-encoded.
fn register_headers(secrets: &SecretRegistry) {
    for name in ["HEADERS", "TRACES_HEADERS", "METRICS_HEADERS"] {
        let text = variable(&format!("OTEL_EXPORTER_OTLP_{name}")).unwrap_or_default();
        for (_, value) in text.split(',').filter_map(|pair| pair.split_once('=')) {
            let value = decoded(value.trim());
            let _ = secrets.register(&value);
            // Of `Bearer KEY` the key alone is a secret, too.
            let _ = secrets.register(value.rsplit(' ').next().unwrap_or(&value));
        }
    }
}

/// Decodes a percent-encoded text.
fn decoded(text: &str) -> String {
    let Ok(mut url) = Url::parse("http://localhost") else { return text.to_owned() };
    // In a query a plus is a space.
    url.set_query(Some(&text.replace('+', "%2B").replace('&', "%26")));
    url.query_pairs().next().map_or_else(String::new, |(name, value)| match value.is_empty() {
        true => name.into_owned(),
        false => format!("{name}={value}"),
    })
}

/// The service. Its name and attributes are those of the standard variables.
fn resource() -> Resource {
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let own = Resource::builder();
    match variable("OTEL_SERVICE_NAME") {
        Some(_) => own.with_attribute(version).build(),
        None if variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|text| text.contains("service.name=")) => {
            own.with_attribute(version).build()
        }
        None => own.with_service_name("ptc").with_attribute(version).build(),
    }
}

/// The protocol that a variable names, or JSON.
fn protocol(signal: &str) -> Protocol {
    let names = [format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"), "OTEL_EXPORTER_OTLP_PROTOCOL".to_owned()];
    match names.iter().find_map(|name| variable(name)).as_deref() {
        Some("http/protobuf") => Protocol::HttpBinary,
        _ => Protocol::HttpJson,
    }
}

fn collector() -> io::Result<CollectorClient> {
    let timeout = variable("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|text| text.trim().parse().ok());
    CollectorClient::new(timeout.map_or(TIMEOUT, Duration::from_millis)).map_err(io::Error::other)
}

fn span_exporter(options: &OtlpOptions) -> io::Result<SpanExporter> {
    let builder = SpanExporter::builder().with_http().with_http_client(collector()?);
    let builder = builder.with_protocol(protocol("TRACES"));
    let built = match options.signal("traces") {
        Some(endpoint) => builder.with_endpoint(endpoint).build(),
        None => builder.build(),
    };
    built.map_err(unusable)
}

fn metric_exporter(options: &OtlpOptions) -> io::Result<MetricExporter> {
    let builder = MetricExporter::builder().with_http().with_http_client(collector()?);
    let builder = builder.with_protocol(protocol("METRICS"));
    let built = match options.signal("metrics") {
        Some(endpoint) => builder.with_endpoint(endpoint).build(),
        None => builder.build(),
    };
    built.map_err(unusable)
}

fn unusable(error: ExporterBuildError) -> io::Error {
    io::Error::other(format!("the export to a collector cannot start: {error}"))
}
