//! Keeps a few lines of a server's output, to explain why its start failed.

use ptc_base::sync::Locked;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Most lines.
const LINES: usize = 5;

/// Lines of one stream.
#[derive(Clone, Default)]
pub(super) struct SaidLines {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl SaidLines {
    /// Adds a line, and forgets the oldest one if there are too many.
    pub(super) fn push_last(&self, line: String) {
        // A line that only underlines a part of the line before it says nothing in a list.
        if line.chars().all(|c| "^~ ".contains(c)) {
            return;
        }
        let mut lines = self.lines.locked();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Adds a line if there is room.
    pub(super) fn push_first(&self, line: impl FnOnce() -> String) {
        let mut lines = self.lines.locked();
        if lines.len() < LINES {
            lines.extend(Some(line()).filter(|line| !line.is_empty()));
        }
    }

    /// The lines joined, after the name of their stream; `None` without lines.
    pub(super) fn text(&self, stream: &str) -> Option<String> {
        let lines = self.lines.locked();
        let joined = || lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ");
        (!lines.is_empty()).then(|| format!("{stream}: {}", joined()))
    }
}
