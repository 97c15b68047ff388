//! Makes the OpenTelemetry spans of a finished tool call from its record.
//!
//! A call of a tool is a SERVER span. Below it is the run of its program (`ptc.run`), below that a CLIENT span for each
//! upstream call. The time that a call waited for a person's approval is a span `ptc.wait` below it.

use super::message::{Message, attribute};
use super::names as key;
use super::names::{METHOD, OPERATION, TOOL};
use crate::observe::entry::{CallEntry, RunEntry};
use ptc_calls::outcome::{CallRecord, CallStatus, PolicyRuling};
use ptc_calls::trace::RunSpan;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most characters of a failure's text.
const MESSAGE_CHARS: usize = 256;

/// Ids of the spans of a call, which are given out before it begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::observe) struct CallSpans {
    /// The span of the run, and the trace.
    pub(super) run: RunSpan,
    /// The SERVER span; not 0.
    pub(super) server: u64,
    /// The span of the caller.
    pub(super) caller: Option<u64>,
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
pub(super) fn spans(call: &CallEntry, ids: CallSpans, shown: ShownPayload) -> Vec<Message> {
    let begun = call.ended.checked_sub(call.duration).unwrap_or(call.ended);
    let mut server = Span::new(SpanKind::Server, format!("tools/call {}", call.tool), ids.server, ids.caller);
    (server.begun, server.ended) = (begun, call.ended);
    server.attributes = tool_attributes(&call.tool);
    server.attributes.push(attribute(key::REQUEST_ID, &*call.request_id));
    server.attributes.extend(call.protocol.map(|protocol| attribute(key::PROTOCOL, protocol)));
    server.attributes.extend(shown.arguments.map(|arguments| attribute(key::ARGUMENTS, arguments)));
    if call.is_error {
        let message = call.run.as_ref().and_then(|run| run.message.as_deref()).unwrap_or_default();
        server.fail(message, call.reason.as_deref().unwrap_or("tool_error"));
    }
    let mut spans = vec![server];
    if let Some(run) = &call.run {
        add_run(&mut spans, call, run, ids, shown.program);
    }
    spans.into_iter().map(|span| span.message(ids.run.trace_id)).collect()
}

/// Roles of a span, by their numbers in the protocol.
#[derive(Clone, Copy)]
enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// A span of a trace.
struct Span {
    kind: SpanKind,
    name: String,
    id: u64,
    parent: Option<u64>,
    begun: SystemTime,
    ended: SystemTime,
    attributes: Vec<Message>,
    /// The text of its failure.
    failure: Option<String>,
}

impl Span {
    fn new(kind: SpanKind, name: String, id: u64, parent: Option<u64>) -> Span {
        let (begun, ended) = (UNIX_EPOCH, UNIX_EPOCH);
        Span { kind, name, id, parent, begun, ended, attributes: Vec::new(), failure: None }
    }

    /// Marks it as failed. The text was redacted with the record.
    fn fail(&mut self, message: &str, reason: &str) {
        self.failure = Some(message.chars().take(MESSAGE_CHARS).collect());
        self.attributes.push(attribute(key::ERROR, reason));
    }

    fn message(self, trace: u128) -> Message {
        let id = |id: u64| id.to_be_bytes().to_vec();
        let mut span =
            Message::default().id(1, "traceId", trace.to_be_bytes().to_vec()).id(2, "spanId", id(self.id));
        if let Some(parent) = self.parent {
            span = span.id(4, "parentSpanId", id(parent));
        }
        span = span
            .text(5, "name", self.name)
            .small(6, "kind", self.kind as u32)
            .fixed(7, "startTimeUnixNano", unix_nanos(self.begun))
            .fixed(8, "endTimeUnixNano", unix_nanos(self.ended))
            .messages(9, "attributes", self.attributes);
        let status = match self.failure {
            // `STATUS_CODE_ERROR`.
            Some(text) => Message::default().text(2, "message", text).small(3, "code", 2),
            None => Message::default(),
        };
        // The flag of the trace, which is recorded.
        span.message(15, "status", status).fixed32(16, "flags", 1)
    }
}

/// Nanoseconds since 1970; 0 before.
pub(super) fn unix_nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn add_run(spans: &mut Vec<Span>, call: &CallEntry, run: &RunEntry, ids: CallSpans, program: Option<String>) {
    let mut span = Span::new(SpanKind::Internal, "ptc.run".to_owned(), ids.run.span_id, Some(ids.server));
    // A run that ended at once was not timed.
    let begun = call.ended.checked_sub(run.usage.duration.min(call.duration)).unwrap_or(call.ended);
    (span.begun, span.ended) = (begun, call.ended);
    let without = run.totals.count().saturating_sub(run.calls.len() as u64);
    span.attributes = [
        run.usage.fuel.map(|fuel| attribute(key::FUEL, fuel)),
        Some(attribute(key::PEAK_BYTES, run.usage.peak_bytes)),
        Some(attribute(key::PAYLOAD_IN, run.totals.bytes())),
        run.result_bytes.map(|bytes| attribute(key::PAYLOAD_OUT, bytes)),
        program.map(|sha256| attribute(key::PROGRAM, sha256)),
        (without > 0).then(|| attribute(key::CALLS_WITHOUT_SPAN, without)),
    ]
    .into_iter()
    .flatten()
    .collect();
    spans.push(span);
    for call in &run.calls {
        add_call(spans, begun, call, ids.run);
    }
}

/// Adds the CLIENT span of an upstream call, and that of its wait for a person.
fn add_call(spans: &mut Vec<Span>, run_begun: SystemTime, call: &CallRecord, run: RunSpan) {
    // A refused call never had a number, nor a span that an upstream knows.
    let id = call.number.map_or_else(|| super::random_u64().unwrap_or(1), |number| run.call(number));
    let mut span = Span::new(SpanKind::Client, format!("tools/call {}", call.tool), id, Some(run.span_id));
    let begun = run_begun + call.begun;
    (span.begun, span.ended) = (begun, begun + call.duration);
    span.attributes = tool_attributes(&call.tool);
    span.attributes.push(attribute(key::UPSTREAM, &*call.server));
    span.attributes.push(attribute(key::EFFECT, call.effect.name()));
    if call.cached {
        span.attributes.push(attribute(key::CACHED, true));
    }
    if let CallStatus::Error { reason, error } = &call.status {
        span.fail(error, reason.name());
    }
    let mut wait = None;
    if let Some(ruling) = &call.ruling {
        span.attributes.push(attribute(key::RULE, &*ruling.rule));
        span.attributes.push(attribute(key::VERDICT, ruling.verdict.name()));
        wait = wait_span(begun, ruling, id);
    }
    spans.push(span);
    spans.extend(wait);
}

fn wait_span(begun: SystemTime, ruling: &PolicyRuling, call: u64) -> Option<Span> {
    if ruling.waited == Duration::ZERO {
        return None;
    }
    let id = super::random_u64().ok()?;
    let mut span = Span::new(SpanKind::Internal, "ptc.wait".to_owned(), id, Some(call));
    (span.begun, span.ended) = (begun, begun + ruling.waited);
    span.attributes = vec![attribute(key::RULE, &*ruling.rule)];
    Some(span)
}

fn tool_attributes(tool: &str) -> Vec<Message> {
    vec![attribute(METHOD, "tools/call"), attribute(OPERATION, "execute_tool"), attribute(TOOL, tool)]
}
