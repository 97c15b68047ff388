//! What a server writes to stderr: one log record a line, and the last lines for error messages.

use super::line::{LineReader, ReadLine};
use crate::secrets::SecretRegistry;
use crate::upstream::transport::throttle::{Throttle, Throttled};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::process::ChildStderr;

/// Longest line that is logged in full.
const LINE: usize = 4096;

/// Lines remembered for error messages.
const KEPT: usize = 5;

/// The last lines a server wrote.
#[derive(Clone, Default)]
pub(super) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl StderrTail {
    fn push(&self, line: String) {
        // A line that only underlines a part of the line before it says nothing in a list.
        if line.chars().all(|c| "^~ ".contains(c)) {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The last lines joined, or nothing.
    pub(super) fn text(&self) -> Option<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        (!lines.is_empty()).then(|| lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | "))
    }
}

/// Logs stderr until it ends.
pub(super) async fn log_lines(
    name: Arc<str>,
    stderr: ChildStderr,
    secrets: SecretRegistry,
    tail: StderrTail,
) {
    let mut reader = LineReader::new(stderr);
    let mut flood = Throttle::default();
    while let Ok(Some(line)) = reader.next(|| LINE, || None).await {
        let text = match &line {
            ReadLine::Whole(bytes) => secrets.scrub(String::from_utf8_lossy(bytes).trim_end()).into_owned(),
            // What is after its head is not known, and may be the rest of a secret.
            ReadLine::Oversize(oversize) => {
                let head = String::from_utf8_lossy(&oversize.head);
                // Neither is the character that was cut.
                secrets.scrub_cut(head.trim_end_matches('\u{fffd}').trim_end()).into_owned()
            }
        };
        if text.is_empty() {
            continue;
        }
        match flood.admit(Instant::now()) {
            Throttled::Pass { suppressed: 0 } => tracing::info!(upstream = %name, "{text}"),
            Throttled::Pass { suppressed } => tracing::info!(upstream = %name, suppressed, "{text}"),
            Throttled::Suppress => {}
        }
        tail.push(text);
    }
}
