//! Builds the answers of the tool `lisp_debug` (statistics, recent calls, one call) from the recorded calls.

use super::fit::{self, Answer};
use super::question::{CallFilter, Question};
use crate::observe::CallRecorder;
use crate::observe::entry::{CallEntry, RecordedCall};
use crate::observe::payload::PayloadPolicy;
use crate::observe::stats;
use crate::observe::trace::find_trace;
use crate::tools::CallOwner;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::{Duration, SystemTime};

const TOO_LARGE: &str =
    "record exceeds --max-debug-response-bytes; set --trace-dir and read the trace file directly";

/// Answers a question in at most `room` bytes of a message.
pub(super) fn answer(recorder: &CallRecorder, owner: CallOwner, question: &Question, room: usize) -> Answer {
    let mut calls = recorder.ring.newest_first();
    calls.retain(|call| call.entry.owner == owner.0);
    match question {
        Question::Stats(which) => stats(recorder, calls, *which, room),
        Question::Recent(which, limit) => recent(recorder, calls, *which, *limit, room),
        Question::Get(id) => get(recorder, owner, &calls, id, room),
    }
}

/// The members that every answer has.
fn begun(recorder: &CallRecorder, op: &str) -> Answer {
    let mut answer = Map::new();
    answer.insert("op".into(), op.into());
    answer.insert("payload_policy".into(), recorder.policy.name().into());
    answer.insert("redaction_applied".into(), true.into());
    answer
}

/// Keeps the calls that pass the filter.
fn choose(calls: &mut Vec<RecordedCall>, which: CallFilter) {
    let since =
        which.since_seconds.and_then(|seconds| SystemTime::now().checked_sub(Duration::from_secs(seconds)));
    calls.retain(|call| {
        since.is_none_or(|since| call.entry.ended >= since) && (call.entry.is_error || !which.errors_only)
    });
}

fn stats(recorder: &CallRecorder, mut calls: Vec<RecordedCall>, which: CallFilter, room: usize) -> Answer {
    let count = calls.len();
    choose(&mut calls, which);
    let calls: Vec<&CallEntry> = calls.iter().map(|call| &*call.entry).collect();
    let mut answer = begun(recorder, "stats");
    let always = [
        ("debug_source", "ring_buffer".into()),
        ("ring_size", recorder.ring.size.into()),
        ("ring_count", count.into()),
        ("trace_dir_enabled", recorder.trace_folder.is_some().into()),
        ("window", stats::window(&calls)),
        ("by_tool", stats::by_tool(&calls)),
        ("errors", stats::errors(&calls)),
    ];
    answer.extend(always.map(|(key, value): (&str, Value)| (key.to_owned(), value)));
    let sometimes = [
        ("upstream_calls", stats::upstream_calls(&calls)),
        ("agentic", stats::agentic(&calls)),
        ("payload_reduction", stats::payload_reduction(&calls)),
    ];
    for sink in recorder.counts() {
        let counts =
            json!({ "written": sink.written, "dropped": sink.dropped, "last_error": sink.last_error });
        answer.insert(sink.name.to_owned(), counts);
    }
    answer.extend(sometimes.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    fit::stats(answer, room)
}

fn recent(
    recorder: &CallRecorder,
    mut calls: Vec<RecordedCall>,
    which: CallFilter,
    limit: usize,
    room: usize,
) -> Answer {
    choose(&mut calls, which);
    let shown = calls.iter().take(limit);
    let shown = shown.map(|call| call.as_json(recorder.policy, &recorder.secrets, false).into());
    fit::recent(begun(recorder, "recent"), shown.collect(), room)
}

fn get(recorder: &CallRecorder, owner: CallOwner, calls: &[RecordedCall], id: &str, room: usize) -> Answer {
    let found = calls.iter().find(|call| *call.entry.request_id == *id);
    // A trace does not name its owner, and other clients may have used the same request id. Only the default
    // owner gets a trace without a matching record.
    let trace = recorder.trace_folder.as_ref().filter(|_| found.is_some() || owner == CallOwner::default());
    let trace = trace.and_then(|folder| find_trace(folder, id, found.map(|call| call.entry.ended)));
    let name = trace.as_ref().and_then(|trace| trace.file_name()).map(|name| name.to_string_lossy());
    let lines = trace.as_ref().filter(|_| recorder.policy == PayloadPolicy::Full);
    let lines = lines.and_then(|trace| whole(trace, room));
    let mut answer = begun(recorder, "get");
    let mut put = |key: &str, value: Value| answer.insert(key.to_owned(), value);
    put("request_id", id.into());
    put("found", (found.is_some() || trace.is_some()).into());
    let is_inline = lines.is_some();
    match (lines, found) {
        (Some(lines), _) => {
            put("source", "trace_file".into());
            put("record", lines);
        }
        (None, Some(call)) => {
            put("source", "ring_buffer".into());
            put("record", call.as_json(recorder.policy, &recorder.secrets, true).into());
        }
        (None, None) => {
            put("source", if trace.is_some() { "trace_file" } else { "ring_buffer" }.into());
        }
    }
    if let Some(name) = name.as_ref().filter(|_| !is_inline) {
        put("note", format!("the trace of this call is {name} in --trace-dir").into());
    }
    if !fit::fits(&answer, room) {
        answer.remove("record");
        let note = match name {
            Some(name) => format!("record exceeds --max-debug-response-bytes; read {name} in --trace-dir"),
            None => TOO_LARGE.to_owned(),
        };
        answer.insert("note".into(), note.into());
        answer.insert("truncated".into(), true.into());
    }
    answer
}

/// The lines of a trace, if it has at most `most` bytes.
fn whole(trace: &Path, most: usize) -> Option<Value> {
    if trace.metadata().ok()?.len() > most as u64 {
        return None;
    }
    let text = ptc_base::files::read_text(trace).ok()?;
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).ok())
        .collect::<Option<Vec<_>>>()
        .map(Value::from)
}
