//! Reads the trace file of a recorded tool call, or the newest one of a folder, into the data from which `ptc trace`
//! draws a diagram.

use super::trace::{Trace, TraceCall, TracePayload, prelude_line};
use crate::console::Abort;
use serde_json::Value;
use std::path::{Path, PathBuf};

impl TracePayload {
    fn parse(value: &Value) -> TracePayload {
        match value {
            Value::Null => TracePayload::Nothing,
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                // A summary of a program, recorded as text.
                Ok(summary) if summary.get("sha256").is_some() => TracePayload::parse(&summary),
                _ => TracePayload::Whole(text.clone()),
            },
            value => match (value.get("sha256"), value["bytes"].as_u64()) {
                (Some(_), Some(bytes)) => {
                    let preview = value["preview"].as_str().unwrap_or_default();
                    match preview.len() as u64 == bytes {
                        true => TracePayload::Whole(preview.to_owned()),
                        false => TracePayload::Part(preview.to_owned(), bytes),
                    }
                }
                _ => TracePayload::Whole(format!("{value:#}")),
            },
        }
    }
}

impl Trace {
    /// Reads a file, or the newest trace of a folder.
    ///
    /// # Errors
    /// No such file, or a file that is no trace.
    pub fn read(path: &Path) -> Result<Trace, Abort> {
        let unreadable = |error: std::io::Error| Abort::usage(format!("{}: {error}", path.display()));
        let path = match path.is_dir() {
            true => newest(path).map_err(unreadable)?,
            false => path.to_owned(),
        };
        let text = ptc_base::files::read_text(&path)
            .map_err(|error| Abort::usage(format!("{}: {error}", path.display())))?;
        let mut trace = Trace {
            file: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            ..Trace::default()
        };
        let mut is_trace = false;
        for (at, line) in text.lines().enumerate() {
            let event: Value = serde_json::from_str(line)
                .map_err(|error| Abort::usage(format!("{}, line {}: {error}", path.display(), at + 1)))?;
            is_trace |= event["event"] == "trace.start" && event["trace_kind"] == "mcp_call";
            trace.take(&event);
        }
        if !is_trace {
            let message =
                format!("{}: no trace of a call (ptc serve --trace-dir writes such files)", path.display());
            return Err(Abort::usage(message));
        }
        Ok(trace)
    }

    fn take(&mut self, event: &Value) {
        let (measured, metadata) = (&event["measurements"], &event["metadata"]);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let micros = |value: &Value| value.as_u64().unwrap_or(0) / 1_000;
        match event["event"].as_str().unwrap_or_default() {
            "trace.start" => {
                self.program = TracePayload::parse(&event["query"]);
                self.begun = text(&event["timestamp"]).unwrap_or_default();
            }
            "ptc_lisp.call.start" => {
                self.request_id = text(&metadata["request_id"]).unwrap_or_default();
                self.tool = text(&metadata["tool_name"]).unwrap_or_default();
                self.context = TracePayload::parse(&event["context"]);
            }
            "ptc_lisp.upstream_call" => {
                let name = |key: &str| metadata[key].as_str().unwrap_or("?");
                let call = TraceCall {
                    name: format!("{}/{}", name("server"), name("tool")),
                    begun: micros(&measured["offset"]),
                    micros: micros(&measured["duration"]),
                    bytes: measured["result_bytes"].as_u64(),
                    fault: text(&metadata["reason"])
                        .map(|reason| (reason, text(&metadata["error"]).unwrap_or_default())),
                };
                self.run.get_or_insert_default().calls.push(call);
            }
            "ptc_runner.lisp.execute.stop" | "ptc_lisp.agentic_task.stop" => {
                let run = self.run.get_or_insert_default();
                run.micros = micros(&measured["duration"]);
                run.fuel = measured["fuel"].as_u64();
                run.peak_bytes = measured["peak_bytes"].as_u64();
                run.prelude =
                    Some(&metadata["prelude_trace"]).filter(|trace| !trace.is_null()).map(prelude_line);
            }
            "ptc_lisp.call.stop" => {
                self.micros = micros(&measured["duration"]);
                self.answer_bytes = measured["result_bytes"].as_u64();
                self.is_error = metadata["is_error"] == true;
                (self.reason, self.message) = (text(&metadata["reason"]), text(&metadata["message"]));
                self.answer = TracePayload::parse(&event["result"]);
                let lines = event["prints"].as_array().or_else(|| event["prints"]["items"].as_array());
                // An answer for models contains the prints.
                let is_shown = self.answer.text().is_some_and(|answer| answer.contains("<prints>\n"));
                self.prints = lines.into_iter().flatten().filter(|_| !is_shown).filter_map(text).collect();
                if let Some(run) = &mut self.run {
                    run.begun = self.micros.saturating_sub(run.micros);
                }
            }
            _ => {}
        }
    }
}

/// The newest trace of a folder.
fn newest(folder: &Path) -> std::io::Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links and folders of such a name are no traces.
        let is_named = name.ends_with("-ok.jsonl") || name.ends_with("-error.jsonl");
        if let Some(file) = entry.metadata().ok().filter(|file| is_named && file.is_file()) {
            found.push((file.modified()?, entry.path()));
        }
    }
    let none = || std::io::Error::other("there is no trace in this folder");
    found.into_iter().max().map(|(_, path)| path).ok_or_else(none)
}
