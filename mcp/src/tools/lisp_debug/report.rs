//! The answers.

use super::fit::{self, Answer};
use super::question::{Question, Which};
use crate::observe::CallRecorder;
use crate::observe::entry::{CallEntry, RecordedCall};
use crate::observe::stats;
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};

const TOO_LARGE: &str =
    "record exceeds --max-debug-response-bytes; set --trace-dir and read the trace file directly";

/// Answers a question, in so many bytes of a message.
pub(super) fn answer(recorder: &CallRecorder, question: &Question, room: usize) -> Answer {
    match question {
        Question::Stats(which) => stats(recorder, *which, room),
        Question::Recent(which, limit) => recent(recorder, *which, *limit, room),
        Question::Get(id) => get(recorder, id, room),
    }
}

/// What every answer has.
fn begun(recorder: &CallRecorder, op: &str) -> Answer {
    let mut answer = Map::new();
    answer.insert("op".into(), op.into());
    answer.insert("payload_policy".into(), recorder.policy().name().into());
    answer.insert("redaction_applied".into(), true.into());
    answer
}

/// Leaves those that are meant.
fn choose(calls: &mut Vec<RecordedCall>, which: Which) {
    let since =
        which.since_seconds.and_then(|seconds| SystemTime::now().checked_sub(Duration::from_secs(seconds)));
    calls.retain(|call| {
        since.is_none_or(|since| call.entry.ended >= since) && (call.entry.is_error || !which.errors_only)
    });
}

fn stats(recorder: &CallRecorder, which: Which, room: usize) -> Answer {
    let mut calls = recorder.ring().newest_first();
    let count = calls.len();
    choose(&mut calls, which);
    let calls: Vec<&CallEntry> = calls.iter().map(|call| &*call.entry).collect();
    let mut answer = begun(recorder, "stats");
    let always = [
        ("debug_source", "ring_buffer".into()),
        ("ring_size", recorder.ring().size().into()),
        ("ring_count", count.into()),
        ("trace_dir_enabled", false.into()),
        ("window", stats::window(&calls)),
        ("by_tool", stats::by_tool(&calls)),
        ("errors", stats::errors(&calls)),
    ];
    answer.extend(always.map(|(key, value): (&str, Value)| (key.to_owned(), value)));
    let sometimes = [
        ("upstream_calls", stats::upstream_calls(&calls)),
        ("payload_reduction", stats::payload_reduction(&calls)),
    ];
    answer.extend(sometimes.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    fit::stats(answer, room)
}

fn recent(recorder: &CallRecorder, which: Which, limit: usize, room: usize) -> Answer {
    let mut calls = recorder.ring().newest_first();
    choose(&mut calls, which);
    let shown = calls.iter().take(limit);
    let shown = shown.map(|call| call.as_json(recorder.policy(), recorder.secrets(), false).into());
    fit::recent(begun(recorder, "recent"), shown.collect(), room)
}

fn get(recorder: &CallRecorder, id: &str, room: usize) -> Answer {
    let calls = recorder.ring().newest_first();
    let found = calls.iter().find(|call| *call.entry.request_id == *id);
    let mut answer = begun(recorder, "get");
    answer.insert("request_id".into(), id.into());
    answer.insert("found".into(), found.is_some().into());
    answer.insert("source".into(), "ring_buffer".into());
    if let Some(call) = found {
        let record = call.as_json(recorder.policy(), recorder.secrets(), true);
        answer.insert("record".into(), record.into());
    }
    if !fit::fits(&answer, room) {
        answer.remove("record");
        answer.insert("note".into(), json!(TOO_LARGE));
        answer.insert("truncated".into(), true.into());
    }
    answer
}
