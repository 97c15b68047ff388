//! Makes the OpenTelemetry spans of a finished tool call from its record.
//!
//! A call of a tool is a SERVER span. Below it is the run of its program (`ptc.run`), below that a CLIENT span for each
//! upstream call. The time that a call waited for a person's approval is a span `ptc.wait` below it.

use super::names as key;
use super::names::{METHOD, OPERATION, TOOL};
use crate::observe::entry::{CallEntry, RunEntry};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, Key, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use ptc_calls::outcome::{CallRecord, CallStatus, PolicyRuling};
use ptc_calls::trace::RunSpan;
use std::borrow::Cow;
use std::time::{Duration, SystemTime};

/// Most characters of a failure's text.
const MESSAGE_CHARS: usize = 256;

/// Ids of the spans of a call, which are given out before it begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::observe) struct CallSpans {
    /// The span of the run, and the trace.
    pub(super) run: RunSpan,
    /// The SERVER span.
    pub(super) server: SpanId,
    /// The span of the caller; invalid without one.
    pub(super) caller: SpanId,
}

/// What is shown of a call's arguments.
#[derive(Debug, Default)]
pub(super) struct ShownPayload {
    /// SHA-256 of the program.
    pub(super) program: Option<String>,
    /// All arguments, where payloads are recorded in full.
    pub(super) arguments: Option<String>,
}

/// The spans of a call, the outermost first.
pub(super) fn spans(
    scope: &InstrumentationScope,
    call: &CallEntry,
    ids: CallSpans,
    shown: ShownPayload,
) -> Vec<SpanData> {
    let base = SpanFactory { scope, trace: TraceId::from(ids.run.trace_id) };
    let begun = call.ended.checked_sub(call.duration).unwrap_or(call.ended);
    let mut server =
        base.span(SpanKind::Server, format!("tools/call {}", call.tool).into(), ids.server, ids.caller);
    (server.start_time, server.end_time) = (begun, call.ended);
    server.parent_span_is_remote = ids.caller != SpanId::INVALID;
    server.attributes = tool_attributes(&call.tool);
    server.attributes.push(KeyValue::new(key::REQUEST_ID, call.request_id.to_string()));
    server.attributes.extend(call.protocol.map(|protocol| KeyValue::new(key::PROTOCOL, protocol)));
    server.attributes.extend(shown.arguments.map(|arguments| KeyValue::new(key::ARGUMENTS, arguments)));
    if call.is_error {
        let reason = call.reason.as_deref().unwrap_or("tool_error").to_owned();
        let message = call.run.as_ref().and_then(|run| run.message.as_deref()).unwrap_or_default();
        server.status = failed(message);
        server.attributes.push(KeyValue::new(key::ERROR, reason));
    }
    let mut spans = vec![server];
    if let Some(run) = &call.run {
        base.add_run(&mut spans, call, run, ids, shown.program);
    }
    spans
}

/// What all spans of a call share.
struct SpanFactory<'s> {
    scope: &'s InstrumentationScope,
    trace: TraceId,
}

impl SpanFactory<'_> {
    fn span(&self, kind: SpanKind, name: Cow<'static, str>, id: SpanId, parent: SpanId) -> SpanData {
        SpanData {
            span_context: SpanContext::new(self.trace, id, TraceFlags::SAMPLED, false, TraceState::NONE),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: kind,
            name,
            start_time: SystemTime::UNIX_EPOCH,
            end_time: SystemTime::UNIX_EPOCH,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        }
    }

    fn add_run(
        &self,
        spans: &mut Vec<SpanData>,
        call: &CallEntry,
        run: &RunEntry,
        ids: CallSpans,
        program: Option<String>,
    ) {
        let id = SpanId::from(ids.run.span_id);
        let mut span = self.span(SpanKind::Internal, "ptc.run".into(), id, ids.server);
        // A run that ended at once was not timed.
        let begun = call.ended.checked_sub(run.usage.duration.min(call.duration)).unwrap_or(call.ended);
        (span.start_time, span.end_time) = (begun, call.ended);
        let without = run.totals.count().saturating_sub(run.calls.len() as u64);
        span.attributes = [
            run.usage.fuel.map(|fuel| number(key::FUEL, fuel)),
            Some(number(key::PEAK_BYTES, run.usage.peak_bytes)),
            Some(number(key::PAYLOAD_IN, run.totals.bytes())),
            run.result_bytes.map(|bytes| number(key::PAYLOAD_OUT, bytes)),
            program.map(|sha256| KeyValue::new(key::PROGRAM, sha256)),
            (without > 0).then(|| number(key::CALLS_WITHOUT_SPAN, without)),
        ]
        .into_iter()
        .flatten()
        .collect();
        spans.push(span);
        spans.extend(run.calls.iter().flat_map(|call| self.call(begun, call, ids.run)));
    }

    /// The CLIENT span of an upstream call, and that of its wait for a person.
    fn call(&self, run_begun: SystemTime, call: &CallRecord, run: RunSpan) -> Vec<SpanData> {
        // A refused call never had a number, nor a span that an upstream knows.
        let id = SpanId::from(
            call.number.map_or_else(|| super::random_u64().unwrap_or(1), |number| run.call(number)),
        );
        let name = format!("tools/call {}", call.tool).into();
        let mut span = self.span(SpanKind::Client, name, id, SpanId::from(run.span_id));
        let begun = run_begun + call.begun;
        (span.start_time, span.end_time) = (begun, begun + call.duration);
        span.attributes = tool_attributes(&call.tool);
        span.attributes.push(KeyValue::new(key::UPSTREAM, call.server.to_string()));
        span.attributes.push(KeyValue::new(key::EFFECT, call.effect.name()));
        if call.cached {
            span.attributes.push(KeyValue::new(key::CACHED, true));
        }
        if let CallStatus::Error { reason, error } = &call.status {
            span.status = failed(error);
            span.attributes.push(KeyValue::new(key::ERROR, reason.name()));
        }
        let mut spans = Vec::new();
        if let Some(ruling) = &call.ruling {
            span.attributes.push(KeyValue::new(key::RULE, ruling.rule.to_string()));
            span.attributes.push(KeyValue::new(key::VERDICT, ruling.verdict.name()));
            spans.extend(self.wait(begun, ruling, id));
        }
        spans.insert(0, span);
        spans
    }

    fn wait(&self, begun: SystemTime, ruling: &PolicyRuling, call: SpanId) -> Option<SpanData> {
        let id = SpanId::from(super::random_u64().ok()?);
        (ruling.waited > Duration::ZERO).then(|| {
            let mut span = self.span(SpanKind::Internal, "ptc.wait".into(), id, call);
            (span.start_time, span.end_time) = (begun, begun + ruling.waited);
            span.attributes = vec![KeyValue::new(key::RULE, ruling.rule.to_string())];
            span
        })
    }
}

fn tool_attributes(tool: &str) -> Vec<KeyValue> {
    vec![
        KeyValue::new(METHOD, "tools/call"),
        KeyValue::new(OPERATION, "execute_tool"),
        KeyValue::new(TOOL, tool.to_owned()),
    ]
}

fn number(key: Key, number: u64) -> KeyValue {
    KeyValue::new(key, Value::I64(i64::try_from(number).unwrap_or(i64::MAX)))
}

/// The status of a span that failed. Its text was redacted with the record.
fn failed(message: &str) -> Status {
    Status::error(message.chars().take(MESSAGE_CHARS).collect::<String>())
}
