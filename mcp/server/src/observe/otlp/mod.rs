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
//! - `message`: both as messages of the protocol. `export`: the thread that sends them.
//! - `sampler`: which traces are recorded. `settings`: the standard variables.

mod export;
mod message;
mod meters;
mod names;
mod sampler;
mod settings;
mod spans;

use super::payload::PayloadPolicy;
use super::writer::{RecordSink, SinkCounts, WriteOutcome, WrittenCall};
use export::{ExportSettings, Exporter, SpanCounts};
use meters::Meters;
use ptc_base::digest::sha256_hex;
use ptc_base::secrets::SecretRegistry;
use ptc_base::sync::Locked;
use ptc_calls::trace::{RunSpan, TraceContext};
use sampler::Sampler;
use settings::{Schedule, Signal, SignalSettings};
use spans::{ShownPayload, spans};
use std::env;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) use spans::CallSpans;

/// Name of the sink in reports.
pub(super) const SINK: &str = "otlp";

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
            // It may have a password.
            return Err("this is no address of a collector, such as http://127.0.0.1:4318".to_owned());
        }
        Ok((flag.is_some() || is_set).then_some(OtlpOptions { endpoint: flag }))
    }
}

/// Gives out the ids of spans, and exports finished calls.
pub(super) struct OtlpExport {
    sampler: Sampler,
    counts: Arc<SpanCounts>,
}

/// The end of the export that is on the thread of records.
struct OtlpSink {
    exporter: Exporter,
    meters: Arc<Mutex<Meters>>,
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
        settings::register_headers(secrets);
        let signal = |signal| SignalSettings::read(signal, options).map_err(unusable);
        let settings = ExportSettings {
            resource: settings::resource(),
            traces: signal(Signal::Traces)?,
            metrics: signal(Signal::Metrics)?,
            schedule: Schedule::read(),
        };
        let (name, argument) = (variable("OTEL_TRACES_SAMPLER"), variable("OTEL_TRACES_SAMPLER_ARG"));
        let sampler = Sampler::named(name.as_deref(), argument.as_deref()).map_err(unusable)?;
        let (meters, counts) = (Arc::new(Mutex::new(Meters::new())), Arc::<SpanCounts>::default());
        let exporter = Exporter::start(settings, meters.clone(), counts.clone())?;
        let sink = OtlpSink { exporter, meters, policy, secrets: secrets.clone() };
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
        let is_sampled = self.sampler.records(trace_id, span.map(|(_, is_recorded)| is_recorded));
        let run = RunSpan { trace_id, span_id: random_u64().ok()?, is_sampled };
        let spans = CallSpans { run, server: random_u64().ok()?, caller: span.map(|(id, _)| id) };
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
        self.meters.locked().add(entry);
        let Some(ids) = entry.spans.filter(|ids| ids.run.is_sampled) else {
            return Ok(WriteOutcome::Unwanted);
        };
        let shown = self.shown(call);
        for span in spans(entry, ids, shown) {
            self.exporter.send(span);
        }
        Ok(WriteOutcome::Written)
    }

    fn close(&mut self, patience: Duration) {
        if !self.exporter.close(patience) {
            tracing::warn!("some spans or metrics were not exported");
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

fn unusable(error: String) -> io::Error {
    io::Error::other(format!("the export to a collector cannot start: {error}"))
}
