//! Collects the lines that a program prints with `println`, up to a limit in bytes.

use crate::memory::account;
use crate::memory::items;

/// Minimal charge of a line against the memory: storing an empty one takes as much.
const LEAST: usize = 32;

/// Lines that are kept under any limit.
const LINES: usize = 1 << 15;

/// Bytes of memory that a line is charged.
fn cost(line: &str) -> usize {
    line.len().max(LEAST)
}

/// The printed lines of a program.
#[derive(Default)]
pub struct Prints {
    lines: Vec<String>,
    /// Bytes of the lines.
    bytes: usize,
    limit: usize,
    /// Bytes that found no room.
    dropped: usize,
    /// The lines were too many, not too long.
    is_full: bool,
}

impl Prints {
    /// No lines, and a budget in bytes for all of them.
    pub fn new(limit: usize) -> Prints {
        Prints { lines: Vec::new(), bytes: 0, limit, dropped: 0, is_full: false }
    }

    /// Most lines, so that millions of short ones take no more memory than long ones.
    fn most_lines(&self) -> usize {
        LINES.max(self.limit / LEAST)
    }

    /// Adds a line. What the budget has no room for is dropped and counted.
    pub fn push(&mut self, line: &str) {
        self.is_full |= self.dropped == 0 && self.lines.len() >= self.most_lines();
        if self.dropped > 0 || self.is_full {
            self.dropped = self.dropped.saturating_add(line.len() + 1);
            return;
        }
        let room = self.limit.saturating_sub(self.bytes);
        let kept = &line[..line.floor_char_boundary(room)];
        if room == 0 || kept.is_empty() && !line.is_empty() {
            self.dropped = line.len() + 1;
            return;
        }
        self.dropped = line.len() - kept.len();
        self.bytes += kept.len();
        account::charge(cost(kept));
        self.lines.push(kept.to_owned());
    }

    /// Says how much was dropped; `None` when everything is there.
    pub fn remark(&self) -> Option<String> {
        (self.dropped > 0).then(|| {
            let end = match self.is_full {
                true => format!("{} lines", self.most_lines()),
                false => format!("{} bytes", self.limit),
            };
            format!(
                "prints end after {end} (--max-print-bytes), {} more bytes were cut: return it as the value",
                self.dropped
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
        let (dropped, is_full) = (branch.dropped, branch.is_full);
        for line in branch.take() {
            self.push(&line);
        }
        self.is_full |= is_full && self.dropped == 0;
        self.dropped = self.dropped.saturating_add(dropped);
    }

    /// No lines, and the whole budget again.
    pub(crate) fn restart(&mut self) {
        drop(self.take());
        (self.dropped, self.is_full) = (0, false);
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
