//! Collects the lines that a program prints with `println`, up to a limit in bytes.

use crate::memory::account;
use crate::memory::items;

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
    /// Bytes that found no room.
    dropped: usize,
}

impl Prints {
    /// No lines, and a budget in bytes for all of them.
    pub fn new(limit: usize) -> Prints {
        Prints { lines: Vec::new(), bytes: 0, limit, dropped: 0 }
    }

    /// Adds a line. What the budget has no room for is dropped and counted.
    pub fn push(&mut self, line: &str) {
        if self.dropped > 0 {
            self.dropped = self.dropped.saturating_add(line.len() + 1);
            return;
        }
        let room = self.limit.saturating_sub(self.bytes);
        let kept = if cost(line) > room { &line[..line.floor_char_boundary(room)] } else { line };
        self.dropped = line.len() - kept.len();
        if cost(kept) > room {
            self.dropped = line.len() + 1;
            return;
        }
        self.bytes += cost(kept);
        account::charge(cost(kept));
        self.lines.push(kept.to_owned());
    }

    /// Says how much was dropped; `None` when everything is there.
    pub fn remark(&self) -> Option<String> {
        (self.dropped > 0).then(|| {
            format!(
                "prints end after {} bytes (--max-print-bytes), {} more bytes were cut: return it as the value",
                self.limit, self.dropped
            )
        })
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
        let dropped = branch.dropped;
        for line in branch.take() {
            self.push(&line);
        }
        self.dropped = self.dropped.saturating_add(dropped);
    }

    /// No lines, and the whole budget again.
    pub(crate) fn restart(&mut self) {
        drop(self.take());
        self.dropped = 0;
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
