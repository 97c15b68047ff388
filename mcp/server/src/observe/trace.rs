//! Stores a trace of each tool call as a file of JSON lines in the folder of `--trace-dir`, where it can be found by
//! request id.
//!
//! A file is written under a name with `pending`, and renamed when it is complete. The oldest files are removed
//! to bound their number.

use super::entry::{CallEntry, timestamp};
use super::payload::PayloadPolicy;
use super::writer::{RecordSink, WriteOutcome, WrittenCall};
use crate::answer::outcome::{call_fault, millis};
use crate::answer::{PlannerRound, trace_id};
use crate::redact::shapes;
use ptc_base::digest::sha256_hex;
use ptc_base::files;
use ptc_base::secrets::SecretRegistry;
use ptc_calls::outcome::CallRecord;
use ptc_calls::trace::TraceContext;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Version of the format.
const SCHEMA_VERSION: u32 = 2;

/// Number of files to write before the folder is listed again, since other processes may write there, too.
const LOOK_AGAIN: usize = 256;

/// How often another name is tried when the file exists already.
const NAMES_TRIED: u64 = 100;

/// A folder of traces.
pub struct TraceFolder {
    folder: PathBuf,
    policy: PayloadPolicy,
    secrets: SecretRegistry,
    most_files: usize,
    /// Files of the folder at its last listing, oldest first.
    known: VecDeque<PathBuf>,
    /// Files to write until the next listing.
    until_look: usize,
}

impl TraceFolder {
    /// Writes traces into this folder, which is created if necessary.
    pub fn new(
        folder: PathBuf,
        most_files: usize,
        policy: PayloadPolicy,
        secrets: SecretRegistry,
    ) -> TraceFolder {
        TraceFolder { folder, policy, secrets, most_files, known: VecDeque::new(), until_look: 0 }
    }

    /// Makes room for one more file.
    fn rotate(&mut self) -> io::Result<()> {
        if self.until_look == 0 {
            self.known = traces(&self.folder)?;
            self.until_look = LOOK_AGAIN;
        }
        self.until_look -= 1;
        while self.known.len() >= self.most_files {
            let Some(oldest) = self.known.pop_front() else { break };
            match fs::remove_file(oldest) {
                // It is fine if another process has removed it.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn write_file(&mut self, call: &WrittenCall) -> io::Result<()> {
        self.rotate()?;
        let entry = &call.call.entry;
        let text = lines(call, self.policy, &self.secrets);
        let hash = &sha256_hex(entry.request_id.as_bytes())[..8];
        let mut ended = entry.ended;
        for _ in 0..NAMES_TRIED {
            let stem = format!("{}-{hash}", stem(ended));
            let pending = self.folder.join(format!("{stem}-pending.jsonl"));
            let path = self.folder.join(format!("{stem}-{}.jsonl", entry.status()));
            // Only this process renames: the name is free until then.
            let file = match path.try_exists()? {
                true => Err(io::ErrorKind::AlreadyExists.into()),
                false => files::create_new(&pending),
            };
            let mut file = match file {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    ended += Duration::from_micros(1);
                    continue;
                }
                file => file?,
            };
            // An incomplete trace is useless.
            if let Err(error) = file.write_all(&text).and_then(|()| files::rename(&pending, &path)) {
                let _ = fs::remove_file(&pending);
                return Err(error);
            }
            self.known.push_back(path);
            return Ok(());
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl RecordSink for TraceFolder {
    fn name(&self) -> &'static str {
        "trace"
    }

    fn write(&mut self, call: &WrittenCall) -> io::Result<WriteOutcome> {
        let written = self.write_file(call);
        if written.is_err() {
            // The list of the folder may be outdated, which may be the cause.
            self.until_look = 0;
        }
        written.map(|()| WriteOutcome::Written)
    }
}

/// Time as part of a file name.
fn stem(ended: SystemTime) -> String {
    timestamp(ended).replace(':', "-")
}

/// True if a file of this name is a trace. Other files in the folder are left alone.
fn is_trace(name: &str) -> bool {
    let ends = ["-ok.jsonl", "-error.jsonl", "-pending.jsonl"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end));
    // 2026-11-23T02-20-11.123456Z-d4735e3a
    stem.and_then(|stem| stem.rsplit_once('-')).is_some_and(|(time, hash)| {
        time.as_bytes().get(10) == Some(&b'T')
            && time.ends_with('Z')
            && hash.len() == 8
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The traces of a folder, oldest first.
fn traces(folder: &Path) -> io::Result<VecDeque<PathBuf>> {
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_str().is_some_and(is_trace) {
            let modified = entry.metadata().and_then(|data| data.modified());
            found.push((modified.unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Finds the trace of a request that ended at this time, or else its newest one.
pub fn find_trace(folder: &Path, request_id: &str, ended: Option<SystemTime>) -> Option<PathBuf> {
    let part = format!("-{}-", &sha256_hex(request_id.as_bytes())[..8]);
    let begin = ended.map(stem).unwrap_or_default();
    let is_its = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&begin) && name[begin.len()..].contains(&part))
    };
    traces(folder).ok()?.into_iter().rev().find(is_its)
}

/// The lines of one trace.
fn lines(call: &WrittenCall, policy: PayloadPolicy, secrets: &SecretRegistry) -> Vec<u8> {
    let entry = &*call.call.entry;
    let mut lines = TraceLines::new(entry, secrets);
    let shown = call.call.shown(policy, secrets);
    let query = match &shown.program {
        Value::Null => shown.others.as_ref().map(Value::to_string).into(),
        Value::String(program) => program.as_str().into(),
        summary => Value::from(summary.to_string()),
    };
    let begun = entry.ended.checked_sub(entry.duration).unwrap_or(entry.ended);
    lines.add(
        "trace.start",
        begun,
        json!({
            "schema_version": SCHEMA_VERSION, "trace_kind": "mcp_call", "producer": "ptc_lisp",
            "trace_label": entry.request_id, "query": query,
        }),
    );
    lines.add(
        "ptc_lisp.call.start",
        begun,
        json!({
            "measurements": {},
            "metadata": {
                "request_id": entry.request_id, "tool_name": entry.tool, "program_bytes": shown.program_bytes,
                "context_bytes": shown.context_bytes, "signature_present": shown.has_schema,
                "protocol_version": entry.protocol, "traceparent": entry.trace.as_ref().map(TraceContext::parent),
            },
            "context": shown.context, "payload_policy": policy.name(),
        }),
    );
    if let Some(run) = &entry.run {
        // A run that ended at once was not timed.
        let ran_for = run.usage.duration.min(entry.duration);
        let ran = entry.ended.checked_sub(ran_for).unwrap_or(begun);
        match &entry.planner {
            None => {
                lines.add("ptc_runner.lisp.execute.start", ran, json!({ "measurements": {}, "metadata": {} }))
            }
            Some(planner) => {
                let about = json!({ "measurements": {}, "metadata": { "model": planner.model } });
                lines.add("ptc_lisp.agentic_task.start", ran, about);
                for (at, turn) in planner.turns.iter().enumerate() {
                    let program = call.texts.programs.get(at).and_then(Option::as_deref);
                    let program = program.map(|program| policy.text(program, secrets));
                    lines.add_turn(ran, at + 1, turn, program, call.texts.prompts.get(at));
                }
            }
        }
        let mut calls: Vec<&CallRecord> = run.calls.iter().collect();
        calls.sort_by_key(|call| call.begun);
        for call in calls {
            lines.add("ptc_lisp.upstream_call", ran + call.begun, upstream_call(call));
        }
        let stop = match entry.planner {
            None => "ptc_runner.lisp.execute.stop",
            Some(_) => "ptc_lisp.agentic_task.stop",
        };
        lines.add(
            stop,
            entry.ended,
            json!({
                "measurements": {
                    "duration": nanos(ran_for), "fuel": run.usage.fuel, "peak_bytes": run.usage.peak_bytes,
                    "upstream_calls": run.calls.len(),
                },
                "metadata": run_facts(entry, run.prelude.as_deref()),
                "duration_ms": millis(ran_for),
            }),
        );
    }
    let run = entry.run.as_ref();
    let mut stop = json!({
        "measurements": {
            "duration": nanos(entry.duration), "result_bytes": run.and_then(|run| run.result_bytes),
        },
        "metadata": {
            "request_id": entry.request_id, "tool_name": entry.tool, "status": entry.status(),
            "is_error": entry.is_error, "reason": entry.reason,
            "message": run.and_then(|run| run.message.as_deref()),
        },
        "duration_ms": millis(entry.duration),
        "result": policy.text(&call.texts.answer, secrets),
        "prints": policy.lines(&call.texts.prints, secrets),
    });
    if !call.texts.stderr.is_empty() {
        stop["stderr"] = policy.lines(&call.texts.stderr, secrets);
    }
    lines.add("ptc_lisp.call.stop", entry.ended, stop);
    lines.add("trace.stop", entry.ended, json!({ "duration_ms": millis(entry.duration) }));
    lines.text
}

/// Facts about a run other than its program: the model that planned it, and its prelude.
fn run_facts(entry: &CallEntry, prelude: Option<&Value>) -> Value {
    let mut facts = entry.planner.as_ref().map_or_else(|| json!({}), |planner| planner.as_json());
    if let Some(trace) = prelude {
        facts["prelude_trace"] = trace.clone();
    }
    facts
}

fn upstream_call(call: &CallRecord) -> Value {
    let fault = call_fault(call);
    let mut line = json!({
        "measurements": {
            "offset": nanos(call.begun), "duration": nanos(call.duration), "result_bytes": call.result_bytes,
        },
        "metadata": {
            "server": call.server, "tool": call.tool,
            "status": if fault.is_none() { "ok" } else { "error" },
            "reason": fault.map(|(reason, _)| reason), "error": fault.map(|(_, error)| error),
            "effect": call.effect.name(),
        },
        "duration_ms": millis(call.duration),
    });
    if call.cached {
        line["metadata"]["cached"] = true.into();
    }
    if let Some(ruling) = &call.ruling {
        line["metadata"]["policy"] = ruling.to_json();
    }
    line
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Builds the lines of a trace.
struct TraceLines<'s> {
    text: Vec<u8>,
    secrets: &'s SecretRegistry,
    trace_id: String,
    count: u64,
}

impl TraceLines<'_> {
    fn new<'s>(entry: &CallEntry, secrets: &'s SecretRegistry) -> TraceLines<'s> {
        // The trace id in a task's answer, which is the client's if it has sent one.
        let client = entry.trace.as_ref().map(|trace| trace.trace_id().to_owned());
        let known = client.or_else(|| entry.planner.as_ref().map(|planner| planner.trace_id.clone()));
        let trace_id = known.unwrap_or_else(trace_id);
        TraceLines { text: Vec::new(), secrets, trace_id, count: 0 }
    }

    /// Adds a request to a model, and what its reply led to.
    fn add_turn(
        &mut self,
        ran: SystemTime,
        number: usize,
        turn: &PlannerRound,
        program: Option<Value>,
        prompt: Option<&Value>,
    ) {
        let (begun, ended) = (ran + turn.begun, ran + turn.begun + turn.waited);
        let about = json!({ "turn": number, "is_retry": turn.is_retry });
        let mut asked = json!({ "measurements": {}, "metadata": about });
        if let Some(prompt) = prompt {
            asked["prompt"] = prompt.clone();
        }
        self.add("ptc_lisp.agentic_planner.start", begun, asked);
        self.add(
            "ptc_lisp.agentic_planner.stop",
            ended,
            json!({
                "measurements": {
                    "offset": nanos(turn.begun), "duration": nanos(turn.waited),
                    "prompt_bytes": turn.prompt_bytes, "completion_bytes": turn.completion_bytes,
                    "tokens": turn.tokens,
                },
                "metadata": { "turn": number, "status": turn.status }, "duration_ms": millis(turn.waited),
                "program": program,
            }),
        );
        if turn.is_rejected() {
            let about = json!({ "turn": number, "status": turn.status });
            self.add(
                "ptc_lisp.agentic_validation_reject",
                ended,
                json!({ "measurements": {}, "metadata": about }),
            );
        }
    }

    fn add(&mut self, event: &str, at: SystemTime, more: Value) {
        let mut line = Map::new();
        line.insert("event".into(), event.into());
        line.insert("timestamp".into(), timestamp(at).into());
        if let Value::Object(more) = more {
            line.extend(more);
        }
        line.insert("seq".into(), self.count.into());
        line.insert("trace_id".into(), self.trace_id.as_str().into());
        self.count += 1;
        let line = Value::from(line).to_string();
        self.text.extend_from_slice(self.secrets.scrub_json(&line, &shapes::TRACE).as_bytes());
        self.text.push(b'\n');
    }
}
