//! Collects the lines of `println` within their budget.

use crate::memory::account;
use crate::memory::items;

/// Longest line that is stored.
const LONGEST_LINE: usize = 2_000;

/// Minimal charge of a line against the budget: storing an empty one takes as much memory.
const LEAST: usize = 32;

fn cost(line: &str) -> usize {
    line.len().max(LEAST)
}

/// The printed lines of a program.
#[derive(Default)]
pub struct Prints {
    lines: Vec<String>,
    bytes: usize,
    limit: usize,
    cut: bool,
}

impl Prints {
    /// No lines, and a budget in bytes for all of them.
    pub fn new(limit: usize) -> Prints {
        Prints { lines: Vec::new(), bytes: 0, limit, cut: false }
    }

    /// Adds a line; lines beyond the budget are dropped, with one line that says so.
    pub fn push(&mut self, line: &str) {
        if self.cut {
            return;
        }
        let mut kept = match line.char_indices().nth(LONGEST_LINE) {
            // The program has paid as much for writing the line as counting its characters takes.
            Some((end, _)) => format!("{}... ({LONGEST_LINE}/{} chars)", &line[..end], line.chars().count()),
            None => line.to_owned(),
        };
        if self.bytes + cost(&kept) > self.limit {
            self.cut = true;
            kept = format!("... (further output cut at {} bytes)", self.limit);
        }
        self.bytes += cost(&kept);
        account::charge(cost(&kept));
        self.lines.push(kept);
    }

    /// The lines so far.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Takes lines and budget, for a branch that collects its own.
    pub(crate) fn branch(&self) -> Prints {
        Prints::new(self.limit.saturating_sub(self.bytes))
    }

    /// Adds the lines of a finished branch.
    pub(crate) fn join(&mut self, branch: &mut Prints) {
        for line in branch.take() {
            self.push(&line);
        }
    }

    /// No lines, and the whole budget again.
    pub(crate) fn restart(&mut self) {
        drop(self.take());
        self.cut = false;
    }

    /// Takes all lines out.
    pub fn take(&mut self) -> Vec<String> {
        if self.lines.is_empty() {
            return Vec::new();
        }
        let lines = std::mem::take(&mut self.lines);
        account::release(lines.iter().map(|line| cost(line)).sum());
        self.bytes = 0;
        lines
    }
}

items!(in_steps: Option<Prints>);

impl Drop for Prints {
    fn drop(&mut self) {
        account::release(self.lines.iter().map(|line| cost(line)).sum());
    }
}
