//! Keeps records of the programs and model conversations (agents) that have ended, which later programs read through
//! the namespace `log/`.
//!
//! A [`TurnHistory`] holds turns of sessions and of agents. The application fills it as they run, or reads it
//! from a turn log ([`TurnHistory::load`]: the files that `ptc serve --turn-log-dir` writes).
//! [`introspection`] gives a namespace over it and the tools that only this namespace can call. Programs get
//! pages, so a program holds what it has asked for and never the whole. All of it is data; none of it is an
//! instruction.
//!
//! # Layout
//! - this file: turns, and how they are recorded; `tools`: the namespace

mod tools;

pub use tools::introspection;

use ptc_base::digest::hex;
use ptc_base::sync::Locked;
use ptc_calls::run::outcome::{CallRecord, CallStatus, Failure, Outcome};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Limit of all turns, in bytes of JSON; the oldest are dropped.
const MOST_BYTES: usize = 64 << 20;

/// Limit of one turn, in bytes; a longer one is not recorded.
const LONGEST_TURN: usize = 4 << 20;

/// Recorded turns, oldest first. It is safe to use from many threads at once.
#[derive(Default)]
pub struct TurnHistory {
    kept: Mutex<HistoryState>,
}

#[derive(Default)]
struct HistoryState {
    turns: VecDeque<(Arc<LogEntry>, usize)>,
    bytes: usize,
    /// By name of a run: how many runs there were, and how many of them succeeded.
    runs: HashMap<String, (u64, u64)>,
}

/// One recorded turn: a program and its result.
pub(crate) struct LogEntry {
    /// The session or the agent's run.
    id: String,
    /// What ran it: `session`, `agent`.
    driver: String,
    committed: bool,
    is_error: bool,
    /// What programs see of the turn.
    shown: Value,
}

/// A turn of an agent, as programs see it.
#[derive(Clone, Debug)]
pub struct AgentRound<'t> {
    /// Number of the turn, from 1.
    pub number: u32,
    /// True unless its program succeeded.
    pub is_error: bool,
    /// Time that the program ran.
    pub program_time: Duration,
    /// The program.
    pub program: Option<&'t str>,
    /// What the model got as feedback, or the answer.
    pub feedback: &'t str,
    /// Lines that the program printed.
    pub prints: &'t [String],
    /// The calls of the program, as JSON.
    pub calls: Value,
}

impl TurnHistory {
    /// An empty history.
    pub fn new() -> TurnHistory {
        TurnHistory::default()
    }

    /// Reads a turn log: a file, or all `*-turns.jsonl` of a folder in the order of their names.
    ///
    /// # Errors
    /// The file cannot be read, is no turn log, or is larger than the limit (64 MiB): a part of it would look
    /// like all of it.
    pub fn load(path: &Path) -> Result<TurnHistory, String> {
        let about = |path: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let mut files: Vec<PathBuf> = Vec::new();
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|error| about(path, &error))?;
            let paths = entries.map_while(Result::ok).map(|entry| entry.path());
            files.extend(paths.filter(|path| path.to_string_lossy().ends_with("-turns.jsonl")));
            files.sort();
        } else {
            files.push(path.to_owned());
        }
        let (history, mut bytes) = (TurnHistory::new(), 0);
        for path in &files {
            let file = ptc_base::files::open(path).map_err(|error| about(path, &error))?;
            let mut lines = BufReader::new(file.take((MOST_BYTES - bytes) as u64 + 1));
            for number in 1.. {
                let mut line = Vec::new();
                match lines.read_until(b'\n', &mut line).map_err(|error| about(path, &error))? {
                    0 => break,
                    read => bytes += read,
                }
                if bytes > MOST_BYTES {
                    return Err(about(path, &format_args!("more than {} MiB of turns", MOST_BYTES >> 20)));
                }
                // The last line may be incomplete while it is written.
                let is_whole = line.ends_with(b"\n");
                match serde_json::from_slice(&line) {
                    Ok(Value::Object(record)) => history.add_record(&record),
                    _ if !is_whole || line.trim_ascii().is_empty() => {}
                    _ => return Err(about(path, &format_args!("line {number} is no JSON object"))),
                }
            }
        }
        Ok(history)
    }

    /// Adds a line of a turn log; lines that are no turn are skipped.
    pub fn add_record(&self, record: &Map<String, Value>) {
        let text = |name: &str| record.get(name).and_then(Value::as_str);
        if text("event") != Some("turn") {
            return;
        }
        let data = |name: &str| record.get("data").and_then(|data| data.get(name)).cloned();
        let top = |name: &str| record.get(name).cloned().unwrap_or_default();
        let shown = json!({
            "turn": top("turn"), "attempt": top("attempt"), "committed": top("committed"), "status": top("status"),
            "duration_ms": top("duration_ms"), "program": data("program"), "result_preview": data("result_preview"),
            "prints": data("prints").unwrap_or_else(|| json!([])),
            "tool_calls": data("tool_calls").unwrap_or_else(|| json!([])), "fail": data("fail"),
        });
        self.add(LogEntry {
            id: text("session_id").or(text("agent_id")).unwrap_or_default().to_owned(),
            driver: text("driver").unwrap_or("session").to_owned(),
            committed: record.get("committed") == Some(&Value::Bool(true)),
            is_error: text("status") == Some("error"),
            shown,
        });
    }

    /// Adds a program and its result as the next turn of `id`, which names a session or a conversation.
    pub fn add_run(&self, id: &str, program: &str, outcome: &Outcome) {
        let is_ok = outcome.result.is_ok();
        let (attempt, turn) = {
            let mut kept = self.kept.locked();
            let (attempts, turns) = kept.runs.entry(id.to_owned()).or_default();
            *attempts += 1;
            *turns += u64::from(is_ok);
            (*attempts, *turns)
        };
        let fail = |failure: &Failure| json!({ "reason": failure.reason.raw(), "message": failure.message });
        let shown = json!({
            "turn": turn, "attempt": attempt, "committed": is_ok, "status": if is_ok { "ok" } else { "error" },
            "duration_ms": millis(outcome.usage.duration), "program": program,
            "result_preview": outcome.result.as_ref().ok().map(|value| &value.text), "prints": outcome.prints,
            "tool_calls": outcome.upstream_calls.iter().map(call).collect::<Value>(),
            "fail": outcome.result.as_ref().err().map(fail),
        });
        let (id, driver) = (id.to_owned(), "session".to_owned());
        self.add(LogEntry { id, driver, committed: is_ok, is_error: !is_ok, shown });
    }

    /// Adds a turn of an agent's run under this name.
    #[doc(hidden)]
    pub fn add_agent_round(&self, id: &str, turn: &AgentRound<'_>) {
        let AgentRound { number, is_error, program_time, program, feedback, prints, calls } = turn;
        self.add(LogEntry {
            id: id.to_owned(),
            driver: "agent".to_owned(),
            committed: !is_error,
            is_error: *is_error,
            shown: json!({
                "turn": number, "attempt": number, "committed": !is_error,
                "status": if *is_error { "error" } else { "ok" },
                "duration_ms": millis(*program_time),
                "program": program, "result_preview": feedback, "prints": prints,
                "tool_calls": calls, "fail": is_error.then(|| json!({ "message": feedback })),
            }),
        });
    }

    fn add(&self, turn: LogEntry) {
        let bytes = turn.shown.to_string().len() + turn.id.len();
        if bytes > LONGEST_TURN {
            return;
        }
        let mut kept = self.kept.locked();
        kept.bytes += bytes;
        kept.turns.push_back((Arc::new(turn), bytes));
        while kept.bytes > MOST_BYTES
            && let Some((_, bytes)) = kept.turns.pop_front()
        {
            kept.bytes -= bytes;
        }
    }

    /// The turns of one session, or of all.
    fn turns(&self, id: Option<&str>) -> Vec<Arc<LogEntry>> {
        let kept = self.kept.locked();
        let turns = kept.turns.iter().map(|(turn, _)| turn);
        turns.filter(|turn| id.is_none_or(|id| turn.id == id)).cloned().collect()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A call in the format of turn logs.
fn call(call: &CallRecord) -> Value {
    let reason = match &call.status {
        CallStatus::Ok => None,
        CallStatus::Error { reason, .. } => Some(reason.name()),
    };
    let mut line = json!({
        "server": call.server, "tool": call.tool, "effect": call.effect.name(), "duration_ms": millis(call.duration),
        "args_hash": call.arguments_hash.as_ref().map(|hash| hex(hash)), "outcome": if reason.is_none() { "ok" } else { "error" },
        "reason": reason,
    });
    if call.cached {
        line["cached"] = true.into();
    }
    if let Some(ruling) = &call.ruling {
        line["policy"] = ruling.to_json();
    }
    line
}
