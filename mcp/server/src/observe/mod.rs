//! Records each tool call for operators: in memory, in metrics, in traces and logs, and for an OpenTelemetry collector.
//!
//! Recording only copies numbers and texts. They are processed when someone reads them.
//!
//! # Layout
//!
//! - this file: [`CallRecorder`] records every call; [`OpenRecord`] is a call in progress.
//! - [`entry`]: one call. [`ring`]: the most recent calls. [`stats`]: statistics over calls.
//! - [`live`]: the calls under way, for the page.
//! - [`counts`]: Prometheus counters of all calls.
//! - [`payload`]: how much of programs, contexts and answers is shown.
//! - [`writer`]: a thread that writes records to files. [`trace`]: one file for each call. [`turn_log`]: one
//!   line for each program of a session. [`otlp`]: spans and metrics for a collector.
//!
//! Invariant: a call that has begun is recorded exactly once: with its answer, or as cancelled when its
//! [`OpenRecord`] is dropped.

pub mod counts;
pub mod entry;
pub mod live;
pub mod otlp;
pub mod payload;
pub mod ring;
pub mod stats;
pub mod trace;
pub mod turn_log;
pub mod writer;

use crate::answer::{CallSummary, Content, RefusalReason, TaskSummary, ToolAnswer};
use crate::protocol::Id;
use crate::protocol::Raw;
use counts::CallCounts;
use entry::{CallArguments, CallEntry, RecordedCall, RunEntry, bounded_id, stored_calls};
use live::{LiveCalls, LiveEntry};
use otlp::{CallSpans, OtlpExport, OtlpOptions};
use payload::PayloadPolicy;
use ptc_base::secrets::{Cut, SecretRegistry};
use ptc_calls::outcome::{Outcome, Usage};
use ptc_calls::trace::TraceContext;
use ptc_calls::watcher::RunView;
use ring::CallRing;
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use trace::TraceFolder;
use turn_log::TurnLog;
use writer::{CallTexts, RecordSink, RecordWriter, SinkCounts, WrittenCall};

/// Settings for recording calls.
#[derive(Clone, Debug, Default)]
pub struct RecordOptions {
    /// Number of recent calls to hold in memory.
    pub ring_size: usize,
    /// How much records show.
    pub policy: PayloadPolicy,
    /// Folder for traces.
    pub trace_folder: Option<PathBuf>,
    /// Most traces in the folder; the oldest are removed.
    pub most_traces: usize,
    /// Folder for the log of sessions.
    pub turn_log_folder: Option<PathBuf>,
    /// Counters to update.
    pub totals: Option<CallCounts>,
    /// Export to a collector.
    pub otlp: Option<OtlpOptions>,
    /// A page shows calls: those under way have a table, and recent ones keep their answers.
    pub page: bool,
}

/// Records tool calls.
pub struct CallRecorder {
    /// The most recent calls.
    pub(crate) ring: CallRing,
    /// How much records show.
    pub(crate) policy: PayloadPolicy,
    /// The secrets to redact.
    pub(crate) secrets: SecretRegistry,
    /// The folder of traces.
    pub(crate) trace_folder: Option<PathBuf>,
    /// True if programs of sessions are logged.
    pub logs_turns: bool,
    totals: Option<CallCounts>,
    writer: Option<RecordWriter>,
    /// Records are written with their texts.
    writes_texts: bool,
    otlp: Option<OtlpExport>,
    /// The calls under way, for the page.
    pub(crate) live: Option<Arc<LiveCalls>>,
}

impl CallRecorder {
    /// Starts recording. Secrets are redacted.
    ///
    /// # Errors
    /// The writer thread, or the export to a collector, cannot be started.
    pub fn new(options: RecordOptions, secrets: SecretRegistry) -> io::Result<CallRecorder> {
        let mut sinks: Vec<Box<dyn RecordSink>> = Vec::new();
        let policy = options.policy;
        if let Some(folder) = &options.trace_folder {
            let folder = TraceFolder::new(folder.clone(), options.most_traces, policy, secrets.clone());
            sinks.push(Box::new(folder));
        }
        if let Some(folder) = &options.turn_log_folder {
            sinks.push(Box::new(TurnLog::new(folder, secrets.clone())));
        }
        let writes_texts = !sinks.is_empty();
        let mut otlp = None;
        if let Some(options) = options.otlp {
            let (export, sink) = OtlpExport::start(&options, policy, &secrets)?;
            sinks.push(sink);
            otlp = Some(export);
        }
        let writer = if sinks.is_empty() { None } else { Some(RecordWriter::start(sinks)?) };
        Ok(CallRecorder {
            ring: CallRing::new(options.ring_size),
            policy,
            secrets,
            trace_folder: options.trace_folder,
            logs_turns: options.turn_log_folder.is_some(),
            totals: options.totals,
            writer,
            writes_texts,
            otlp,
            live: options.page.then(Arc::default),
        })
    }

    /// Counts of written and dropped records.
    pub fn counts(&self) -> Vec<SinkCounts> {
        let mut counts = self.writer.as_ref().map(RecordWriter::counts).unwrap_or_default();
        // The writer counts records, the export spans.
        if let (Some(otlp), Some(count)) =
            (&self.otlp, counts.iter_mut().find(|count| count.name == otlp::SINK))
        {
            *count = otlp.counts();
        }
        counts
    }

    /// Writes the waiting records, within `patience`.
    pub fn close(&self, patience: Duration) {
        if let Some(writer) = &self.writer {
            writer.close(patience);
        }
    }

    /// Opens the record of a call.
    pub fn begin(
        self: &Arc<CallRecorder>,
        id: &Id<'_>,
        tool: &str,
        owner: u64,
        arguments: Option<Raw<'_>>,
        protocol: Option<&'static str>,
        trace: Option<TraceContext>,
    ) -> OpenRecord {
        let exported = self.otlp.as_ref().and_then(|otlp| otlp.begin(trace.as_ref()));
        let (spans, own_trace) = exported.unzip();
        let arguments = arguments.map(CallArguments::from_given);
        let request_id = bounded_id(id.as_json(), &self.secrets);
        let live = self.live.as_ref().map(|live| live.begin(&request_id, tool, owner, arguments.as_ref()));
        OpenRecord(Some(Box::new(BegunCall {
            recorder: self.clone(),
            request_id,
            tool: tool.into(),
            owner,
            arguments,
            protocol,
            trace,
            spans,
            own_trace,
            begun: Instant::now(),
            live,
        })))
    }
}

/// A call in progress. Dropping it without an answer records the call as cancelled.
pub struct OpenRecord(Option<Box<BegunCall>>);

struct BegunCall {
    recorder: Arc<CallRecorder>,
    request_id: Box<str>,
    tool: Box<str>,
    owner: u64,
    arguments: Option<CallArguments>,
    protocol: Option<&'static str>,
    /// The caller's trace.
    trace: Option<TraceContext>,
    /// Ids of the call's spans, and the trace that its run passes on, where spans are exported.
    spans: Option<CallSpans>,
    own_trace: Option<TraceContext>,
    begun: Instant,
    live: Option<LiveEntry>,
}

impl OpenRecord {
    /// The trace that the run passes on to upstreams: its own one where spans are exported, or the caller's.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.0.as_ref().and_then(|call| call.own_trace.as_ref().or(call.trace.as_ref()))
    }

    /// Lets the page look at the run of the call.
    pub fn watch(&self, run: RunView) {
        if let Some(live) = self.0.as_ref().and_then(|call| call.live.as_ref()) {
            live.watch(run);
        }
    }

    /// Records the answer.
    pub fn answered(mut self, answer: &ToolAnswer<'_>) {
        if let Some(call) = self.0.take() {
            call.end(answer.is_error, &answer.summary, Some(&answer.content));
        }
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call.end(true, &CallSummary::failed("cancelled"), None);
        }
    }
}

impl BegunCall {
    fn end(self, is_error: bool, summary: &CallSummary<'_>, content: Option<&Content<'_>>) {
        let reason = summary.reason.as_deref();
        // Nothing is recorded of a refused call's arguments, not even their size.
        let refused = [RefusalReason::ArgsError, RefusalReason::Busy, RefusalReason::UnknownTool]
            .map(RefusalReason::name);
        let arguments = self.arguments.filter(|_| !reason.is_some_and(|reason| refused.contains(&reason)));
        let entry = CallEntry {
            request_id: self.request_id,
            tool: self.tool,
            owner: self.owner,
            ended: SystemTime::now(),
            duration: self.begun.elapsed(),
            protocol: self.protocol,
            trace: self.trace,
            is_error,
            reason: reason.map(Into::into),
            run: match (summary.run, &summary.task) {
                (Some(run), _) => Some(run_entry(run, summary.result_bytes)),
                (None, Some(task)) => Some(task_entry(task, summary.result_bytes)),
                (None, None) => None,
            },
            planner: summary.task.as_ref().map(|task| Box::new(task.planner.clone())),
            spans: self.spans,
            number: self.live.as_ref().map_or(0, |live| live.call.number),
        };
        let is_known = reason != Some(RefusalReason::UnknownTool.name());
        if let Some(totals) = &self.recorder.totals {
            totals.add(&entry, is_known);
        }
        let answer = self.live.as_ref().and_then(|_| self.recorder.shown_answer(content));
        let call = RecordedCall { entry: Arc::new(entry), arguments, answer };
        if let Some(writer) = &self.recorder.writer {
            let texts =
                if self.recorder.writes_texts { texts(summary, content) } else { CallTexts::default() };
            writer.push(WrittenCall { call: call.clone(), texts, turn: summary.turn.clone() });
        }
        if is_known {
            self.recorder.ring.push(call);
        }
        // From here on the record is found in its place.
        drop(self.live);
    }
}

/// Most bytes of an answer that the page shows.
const SHOWN_ANSWER: Cut = Cut::Bytes(4_096);

impl CallRecorder {
    /// The beginning of an answer with its prints, for the page.
    fn shown_answer(&self, content: Option<&Content<'_>>) -> Option<Arc<str>> {
        if self.policy == PayloadPolicy::None {
            return None;
        }
        Some(self.secrets.excerpt(&answer_text(content), SHOWN_ANSWER).into())
    }
}

/// The answer of a call.
fn answer_text<'a>(content: Option<&'a Content<'_>>) -> Cow<'a, str> {
    match content {
        Some(Content::Text(text)) => Cow::Borrowed(&**text),
        Some(Content::Blocks(blocks) | Content::Extended { blocks, .. }) => Cow::Borrowed(blocks.get()),
        Some(Content::InputRequired { .. }) => Cow::Borrowed("input required"),
        None => Cow::Borrowed(""),
    }
}

/// The texts of a call, for sinks that write them.
fn texts(summary: &CallSummary<'_>, content: Option<&Content<'_>>) -> CallTexts {
    let answer = answer_text(content).into_owned();
    let (run, task) = (summary.run, summary.task.as_ref());
    CallTexts {
        answer,
        prints: run.map(|run| run.prints.clone()).unwrap_or_default(),
        stderr: run.map(|run| run.stderr.clone()).unwrap_or_default(),
        programs: task.map(|task| task.programs.clone()).unwrap_or_default(),
        prompts: task.map(|task| task.prompts.clone()).unwrap_or_default(),
    }
}

fn run_entry(run: &Outcome, result_bytes: Option<u64>) -> RunEntry {
    RunEntry {
        result_bytes,
        prints: (run.prints.len(), run.prints.iter().map(|line| line.len() as u64).sum()),
        usage: run.usage,
        calls: stored_calls(&run.upstream_calls),
        totals: run.call_totals,
        message: run.result.as_ref().err().map(|failure| failure.message.as_str().into()),
        prelude: run.prelude_trace.clone(),
    }
}

fn task_entry(task: &TaskSummary, result_bytes: Option<u64>) -> RunEntry {
    RunEntry {
        result_bytes,
        prints: (0, 0),
        usage: Usage {
            fuel: None,
            peak_bytes: 0,
            duration: task.duration,
            upstream_calls: u32::try_from(task.totals.count()).unwrap_or(u32::MAX),
        },
        calls: stored_calls(&task.calls),
        totals: task.totals,
        message: task.message.as_deref().map(Into::into),
        prelude: task.prelude.clone(),
    }
}
