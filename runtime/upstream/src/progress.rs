//! Reports the progress of running calls: finds the call that a server's progress notification belongs to, and passes a
//! short, redacted text to the call's listener.

use crate::jsonrpc::message::ProgressNote;
use ptc_base::secrets::{Cut, SecretRegistry, shortened};
use ptc_base::sync::Locked;
use ptc_calls::run::client::{ProgressListener, ToolStep};
use ptc_calls::tools::visible::visible_line;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of a server's message that are read. More than [`SHOWN`] needs, so that a secret is found as a whole.
const READ: Cut = Cut::Bytes(4 << 10);

/// Length limit of the message in a step.
const SHOWN: Cut = Cut::Chars(200);

/// Names a call to the server that reports its progress; unique within a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProgressToken(u64);

impl fmt::Display for ProgressToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// A call whose progress is wanted.
#[derive(Clone)]
pub(super) struct CallProgress {
    pub(super) listener: Arc<dyn ProgressListener>,
    /// The tool, the prompt or the address of the resource.
    pub(super) subject: Arc<str>,
    /// Redacted in what the server reports.
    pub(super) secrets: SecretRegistry,
}

/// The calls of one connection whose progress is wanted.
#[derive(Default)]
pub(super) struct FollowedCalls {
    calls: Mutex<HashMap<u64, CallProgress>>,
    last: AtomicU64,
}

impl FollowedCalls {
    /// Registers a call until the result is dropped.
    pub(super) fn enter(self: &Arc<Self>, call: CallProgress) -> FollowedCall {
        let token = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.calls.locked().insert(token, call);
        FollowedCall { all: self.clone(), token }
    }

    /// Delivers a step to the listener of its call. A call that has ended has none.
    pub(super) fn deliver(&self, server: &Arc<str>, note: &ProgressNote) {
        let Some(call) = self.calls.locked().get(&note.token).cloned() else { return };
        let CallProgress { listener, subject, secrets } = call;
        let (message, progress, total) = (message(note, &secrets), note.progress, note.total);
        let text = text(note, message.as_deref());
        listener.stepped(ToolStep { server: server.clone(), subject, text, progress, total, message });
    }
}

/// A call that the server may report progress of.
pub(super) struct FollowedCall {
    all: Arc<FollowedCalls>,
    token: u64,
}

impl FollowedCall {
    /// Its token, for the request.
    pub(super) fn token(&self) -> ProgressToken {
        ProgressToken(self.token)
    }
}

impl Drop for FollowedCall {
    fn drop(&mut self) {
        self.all.calls.locked().remove(&self.token);
    }
}

/// The server's message as one short line without secrets.
fn message(note: &ProgressNote, secrets: &SecretRegistry) -> Option<String> {
    let message = note.message.as_deref().filter(|message| !message.trim().is_empty())?;
    let message = shortened(message.trim(), READ);
    Some(shortened(&visible_line(&secrets.scrub_cut(&message)), SHOWN).into_owned())
}

/// A step as text: `3 of 10: Reading`.
fn text(note: &ProgressNote, message: Option<&str>) -> String {
    let mut text = match (note.progress, note.total) {
        (Some(done), Some(total)) => format!("{} of {}", number(done), number(total)),
        (Some(done), None) => number(done),
        (None, _) => "working".to_owned(),
    };
    if let Some(message) = message {
        text.push_str(": ");
        text.push_str(message);
    }
    text
}

/// A number in as few characters as it needs. Very large and small ones have an exponent.
fn number(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        1e-6..1e15 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_one_short_clean_line() {
        let secrets = SecretRegistry::default();
        let table = [
            (Some(3.0), Some(10.0), Some("Reading"), "3 of 10: Reading"),
            (Some(0.5), None, None, "0.5"),
            (Some(1e300), None, Some(" "), "1e300"),
            (None, Some(1.0), Some("a\nb\u{1b}[2J"), "working: a\\u000ab\\u001b[2J"),
        ];
        for (progress, total, message, want) in table {
            let note = ProgressNote { token: 1, progress, total, message: message.map(str::to_owned) };
            assert_eq!(text(&note, super::message(&note, &secrets).as_deref()), want);
        }
        let long =
            ProgressNote { token: 1, progress: Some(1.0), total: None, message: Some("x".repeat(1 << 20)) };
        assert!(super::message(&long, &secrets).unwrap().chars().count() < 210);
    }
}
