//! Finds a substring in a string by searching window by window, and charges fuel (budget of work) for each window, so
//! that a long search stops at the program's limit.

use super::BYTES;
use crate::fault::Result;
use crate::value::Store;
use crate::value::string::StringNode;

/// Length of a window: windows overlap, so they are at least twice as long as the sought text.
fn window(part: &str) -> usize {
    const LEAST: usize = 64 << 10;
    part.len().saturating_mul(2).max(LEAST)
}

impl Store {
    /// The first position of `part` at byte `from` or later.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    pub(crate) fn find_first(&mut self, node: &StringNode, from: usize, part: &str) -> Result<Option<usize>> {
        let finder = memchr::memmem::Finder::new(part);
        let text = node.as_str().as_bytes();
        let mut from = from;
        loop {
            // A window overlaps the next one by the length of the sought text less a byte.
            let end = from.saturating_add(window(part)).min(text.len());
            let found = finder.find(&text[from..end]);
            let seen = found.map_or(end - from, |at| at + part.len());
            self.tick((seen / BYTES) as u64)?;
            match found {
                Some(at) => return Ok(Some(from + at)),
                None if end == text.len() => return Ok(None),
                None => from = end + 1 - part.len().max(1),
            }
        }
    }

    /// The last position of `part` that ends before byte `end`.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    pub(crate) fn find_last(&mut self, node: &StringNode, end: usize, part: &str) -> Result<Option<usize>> {
        let finder = memchr::memmem::FinderRev::new(part);
        let text = node.as_str().as_bytes();
        let mut end = end;
        loop {
            let from = end.saturating_sub(window(part));
            let found = finder.rfind(&text[from..end]);
            let seen = found.map_or(end - from, |at| end - from - at);
            self.tick((seen / BYTES) as u64)?;
            match found {
                Some(at) => return Ok(Some(from + at)),
                None if from == 0 => return Ok(None),
                None => end = from + part.len().max(1) - 1,
            }
        }
    }
}
