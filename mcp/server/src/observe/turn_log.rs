//! Writes the turn log, from which operators and later programs see what was done in sessions: one JSON line for each
//! program, with source text, outcome, tool calls and changed definitions. A turn is one program of a session (values
//! that last from one program to the next); each server process writes one file (`--turn-log-dir`).

use super::entry::timestamp;
use super::writer::{RecordSink, WriteOutcome, WrittenCall};
use crate::answer::SessionEntry;
use crate::answer::outcome::{call_fault, millis};
use crate::redact::shapes;
use ptc_base::digest::hex;
use ptc_base::files;
use ptc_base::secrets::{CleanText, Cut, SecretRegistry};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::SystemTime;

/// Longest text in a line, and most items of a collection. Beyond that only the size is logged.
const LONGEST_TEXT: usize = 64 << 10;
const MOST_ITEMS: usize = 100;

/// Most characters of a result.
const RESULT_CHARS: usize = 4_096;

/// The log file.
pub struct TurnLog {
    path: PathBuf,
    secrets: SecretRegistry,
    file: Option<File>,
}

impl TurnLog {
    /// A log for this server in a folder. The file is created with the first line.
    pub fn new(folder: &std::path::Path, secrets: SecretRegistry) -> TurnLog {
        let mut random = [0; 4];
        // Without random numbers the process id is unique at any time.
        if getrandom::fill(&mut random).is_err() {
            random = std::process::id().to_be_bytes();
        }
        let random = hex(&random);
        let time = timestamp(SystemTime::now());
        let time: String = time.chars().filter(|c| !"-:".contains(*c)).collect();
        let basic = time.split('.').next().unwrap_or_default();
        TurnLog { path: folder.join(format!("{basic}Z-{random}-turns.jsonl")), secrets, file: None }
    }

    /// The file. It is opened again when it was removed: otherwise lines would be lost.
    fn file(&mut self) -> io::Result<&mut File> {
        if self.file.as_ref().is_some_and(is_gone) {
            self.file = None;
        }
        match &mut self.file {
            Some(file) => Ok(file),
            none => {
                let file = files::open_to_append(&self.path)?;
                Ok(none.insert(file))
            }
        }
    }
}

fn is_gone(file: &File) -> bool {
    file.metadata().is_ok_and(|data| data.nlink() == 0)
}

impl RecordSink for TurnLog {
    fn name(&self) -> &'static str {
        "turn_log"
    }

    fn write(&mut self, call: &WrittenCall) -> io::Result<WriteOutcome> {
        let Some(turn) = &call.turn else { return Ok(WriteOutcome::Unwanted) };
        let line = line(call, turn, &self.secrets).to_string();
        let line = self.secrets.scrub_json(&line, &shapes::TRACE).into_owned() + "\n";
        let file = self.file()?;
        let before = file.metadata()?.len();
        // A partial line would corrupt the next one, so it is removed.
        file.write_all(line.as_bytes()).inspect_err(|_| {
            let _ = file.set_len(before);
        })?;
        Ok(WriteOutcome::Written)
    }
}

fn line(call: &WrittenCall, turn: &SessionEntry, secrets: &SecretRegistry) -> Value {
    let entry = &*call.call.entry;
    let clean = |text: &str| bounded(&secrets.clean(text));
    let calls = entry.calls().iter().take(MOST_ITEMS).map(|call| {
        let mut line = json!({
            "server": call.server, "tool": call.tool, "args_hash": call.arguments_hash.map(|hash| hex(&hash)),
            "duration_ms": millis(call.duration),
            "outcome": if call_fault(call).is_none() { "ok" } else { "error" },
        });
        if call.cached {
            line["cached"] = true.into();
        }
        if let Some(ruling) = &call.ruling {
            line["policy"] = ruling.to_json();
        }
        line
    });
    let changed = turn.changed.iter().take(MOST_ITEMS);
    let values = changed.clone().map(|(name, preview)| (name.clone(), clean(preview))).collect();
    let diff = json!({
        "changed_keys": changed.map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        "values": Value::Object(values),
    });
    let reason = match entry.reason.as_deref() {
        Some("validation_error") => Some("validation_failed"),
        reason => reason,
    };
    let message = || entry.run.as_ref().and_then(|run| run.message.as_deref()).map(clean);
    let result = (!entry.is_error).then(|| secrets.excerpt(&call.texts.answer, Cut::Chars(RESULT_CHARS)));
    json!({
        "schema_version": 2, "event": "turn", "timestamp": timestamp(entry.ended),
        "trace_kind": "mcp.turn_log", "producer": "ptc_runner_mcp", "driver": "session",
        "session_id": turn.session_id, "agent_id": null, "agent_name": null,
        "turn": turn.turn, "attempt": turn.attempt, "committed": turn.committed,
        "status": entry.status(), "duration_ms": millis(entry.duration),
        "input_tokens": null, "output_tokens": null, "total_tokens": null,
        "data": {
            "program": clean(&turn.program), "raw_response": null, "result_preview": result,
            "prints": call.texts.prints.iter().take(MOST_ITEMS).map(|line| clean(line)).collect::<Vec<_>>(),
            "memory_diff": turn.committed.then_some(diff),
            "tool_calls": calls.collect::<Vec<_>>(),
            "limits_hit": turn.limits_hit,
            "preludes": entry.run.iter().filter_map(|run| run.prelude.as_deref()).map(provenance).collect::<Vec<_>>(),
            "fail": reason.map(|reason| json!({ "reason": reason, "message": message() })),
            "turn_type": null,
        },
    })
}

/// The prelude of a program. The components of a prelude with a single source add nothing.
fn provenance(trace: &Value) -> Value {
    let mut said =
        json!({ "source_hash": trace["source_hash"], "namespaces": trace["protected_namespaces"] });
    if trace["components"].as_array().is_some_and(|components| components.len() > 1) {
        said["components"] = trace["components"].clone();
    }
    said
}

fn bounded(text: &CleanText) -> Value {
    match text.len() > LONGEST_TEXT {
        true => json!({ "<bytes>": text.len(), "preview": text.first(Cut::Chars(256)) }),
        false => (**text).into(),
    }
}
