//! Describes a session as plain data that every thread can read: its limits, its usage, and previews of the values in
//! it.

use ptc_base::secrets::CleanText;
use ptc_base::spill::OwnedSpills;
use ptc_base::sync::Locked;
use ptc_calls::run::account::session_number;
use ptc_calls::run::outcome::{CallRecord, CallStatus};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock};

ptc_calls::limit_table! {
    /// How much a session may store between its programs. Bytes of a binding or of a result are those of its
    /// printed form; memory is in logical bytes, equal on every machine.
    SessionLimits;
    /// Logical bytes that a session keeps.
    memory_bytes: Bytes = 1 << 20, "max-session-memory-bytes", "session_limit_exceeded";
    /// Bytes of one binding of a session, printed.
    binding_bytes: Bytes = 256 << 10, "max-session-binding-bytes", "session_limit_exceeded";
    /// Bindings of a session.
    bindings: Count = 200, "max-session-bindings", "session_limit_exceeded";
    /// Bytes of a result, printed, that *1 and its kin hold; of a larger one they hold a description.
    history_entry_bytes: Bytes = 64 << 10, "max-session-history-entry-bytes", "a description instead";
    /// Printed lines that a session keeps, the last ones.
    print_entries: Count = 50, "max-session-print-entries", "older ones go";
    /// Bytes of these.
    print_bytes: Bytes = 64 << 10, "max-session-print-bytes", "older ones go";
    /// Upstream calls that a session remembers, the last ones.
    call_entries: Count = 50, "max-session-upstream-call-entries", "older ones go";
    /// Bytes of these.
    call_bytes: Bytes = 128 << 10, "max-session-upstream-call-bytes", "older ones go";
    /// Characters of a preview of what a session keeps.
    preview_chars: Count = 512, "max-session-preview-chars", "cut";
}

/// A stored name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionBinding {
    /// Bytes of its printed form.
    pub bytes: u64,
    /// The beginning of its printed form.
    pub preview: CleanText,
}

/// A stored result, or the description that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Bytes of its printed form.
    pub bytes: u64,
    /// The beginning of its printed form.
    pub preview: CleanText,
}

/// Size of a printed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintedSize {
    /// Bytes that were counted.
    pub bytes: u64,
    /// The form is longer than that.
    pub is_more: bool,
}

impl fmt::Display for PrintedSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_more { "more than " } else { "" };
        write!(f, "{more}{}", self.bytes)
    }
}

/// A result that was too large to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitNote {
    /// Its size.
    pub size: PrintedSize,
    /// The limit.
    pub most: u64,
}

/// Everything that a session stores, as text.
#[derive(Clone, Debug, Default)]
pub struct SessionContents {
    /// Programs that were committed.
    pub turn: u64,
    /// Programs that were begun.
    pub attempts: u64,
    /// Names, sorted.
    pub bindings: BTreeMap<String, SessionBinding>,
    /// Results, newest first.
    pub history: VecDeque<HistoryEntry>,
    /// Logical bytes of everything stored.
    pub memory_bytes: u64,
    /// Printed lines, oldest first.
    pub prints: VecDeque<CleanText>,
    /// Upstream calls of committed programs, oldest first.
    pub calls: VecDeque<CallRecord>,
    /// Names that the last program has defined or redefined; empty when it was not committed.
    pub changed: Vec<String>,
    /// The last program was committed.
    pub committed: bool,
    /// The last result was too large.
    pub note: Option<CommitNote>,
}

/// How much a session stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionUsage {
    /// Logical bytes of everything stored.
    pub memory_bytes: u64,
    /// Names.
    pub bindings: u64,
    /// Results.
    pub history: u64,
    /// Bytes of their printed form.
    pub history_bytes: u64,
    /// Printed lines.
    pub prints: u64,
    /// Bytes of the printed lines.
    pub print_bytes: u64,
    /// Upstream calls.
    pub calls: u64,
    /// Bytes of the upstream calls.
    pub call_bytes: u64,
}

impl SessionContents {
    /// The usage of the session.
    pub fn usage(&self) -> SessionUsage {
        SessionUsage {
            memory_bytes: self.memory_bytes,
            bindings: self.bindings.len() as u64,
            history: self.history.len() as u64,
            history_bytes: self.history.iter().map(|entry| entry.bytes).sum(),
            prints: self.prints.len() as u64,
            print_bytes: self.prints.iter().map(|line| line.len() as u64).sum(),
            calls: self.calls.len() as u64,
            call_bytes: self.calls.iter().map(call_bytes).sum(),
        }
    }

    /// Drops the oldest lines and calls beyond the limits.
    pub(crate) fn trim(&mut self, limits: &SessionLimits) {
        let mut bytes: u64 = self.prints.iter().map(|line| line.len() as u64).sum();
        while self.prints.len() as u64 > limits.print_entries || bytes > limits.print_bytes {
            let Some(line) = self.prints.pop_front() else { break };
            bytes -= line.len() as u64;
        }
        let mut bytes: u64 = self.calls.iter().map(call_bytes).sum();
        while self.calls.len() as u64 > limits.call_entries || bytes > limits.call_bytes {
            let Some(call) = self.calls.pop_front() else { break };
            bytes -= call_bytes(&call);
        }
    }
}

/// Size of a call's record: its names, its error, and an allowance for its numbers.
fn call_bytes(call: &CallRecord) -> u64 {
    const NUMBERS: usize = 128;
    let error = match &call.status {
        CallStatus::Ok => 0,
        CallStatus::Error { error, .. } => error.len(),
    };
    (call.server.len() + call.tool.len() + error + NUMBERS) as u64
}

/// Why a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// It was closed.
    Closed,
    /// It reached its maximum age.
    Expired,
    /// It was idle for too long.
    Idle,
}

impl SessionEnd {
    /// The reason in words, after "it".
    pub fn words(self) -> &'static str {
        match self {
            SessionEnd::Closed => "was closed",
            SessionEnd::Expired => "has reached the end of its lifetime (ttl)",
            SessionEnd::Idle => "was idle for too long",
        }
    }
}

/// A session as other threads see it.
pub(crate) struct SessionState {
    /// Unique among the sessions of the process.
    pub(crate) id: u64,
    pub(crate) limits: SessionLimits,
    contents: Mutex<SessionContents>,
    /// Spilled results of its programs.
    spills: Mutex<OwnedSpills>,
    end: OnceLock<SessionEnd>,
}

impl SessionState {
    pub(crate) fn new(limits: SessionLimits) -> SessionState {
        SessionState {
            id: session_number(),
            limits,
            contents: Mutex::default(),
            spills: Mutex::default(),
            end: OnceLock::new(),
        }
    }

    pub(crate) fn contents(&self) -> MutexGuard<'_, SessionContents> {
        self.contents.locked()
    }

    pub(crate) fn spills(&self) -> MutexGuard<'_, OwnedSpills> {
        self.spills.locked()
    }

    /// Closes it. Its isolate is freed when the current run ends, its spilled results at once. True when it
    /// was closed before.
    pub(crate) fn close(&self, why: SessionEnd) -> bool {
        *self.spills() = OwnedSpills::default();
        self.end.set(why).is_err()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.end().is_some()
    }

    /// Why it has ended.
    pub(crate) fn end(&self) -> Option<SessionEnd> {
        self.end.get().copied()
    }
}
