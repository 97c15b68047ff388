//! Charges the program's work budget, by length, for each string or big integer that a builtin reads, since these may
//! be of any length.

mod find;
mod graphemes;

pub(crate) use graphemes::Graphemes;

use super::string::{SHORT_TEXT, StringNode};
use super::{BigIntNode, Store};
use crate::fault::Result;

/// Bytes of text read for a unit of fuel.
const BYTES: usize = 16;

/// 64-bit limbs of a big integer read for a unit of fuel.
const LIMBS: u64 = 8;

impl Store {
    /// The text of a string, for one pass over it.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    #[inline]
    pub fn read<'s>(&mut self, node: &'s StringNode) -> Result<&'s str> {
        self.look(node.as_str())
    }

    /// A text that did not come from [`Store::read`], or another pass over one.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    #[inline]
    pub fn look<'s>(&mut self, text: &'s str) -> Result<&'s str> {
        if text.len() >= BYTES {
            self.tick((text.len() / BYTES) as u64)?;
        }
        Ok(text)
    }

    /// Number of graphemes of a string.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    pub fn graphemes(&mut self, node: &StringNode) -> Result<usize> {
        if self.is_ascii(node)? {
            return Ok(node.len());
        }
        let mut graphemes = Graphemes::from_start(node.as_str());
        let mut count = 0;
        while let Some(grapheme) = graphemes.next(self)? {
            // Finding grapheme boundaries takes several times as long as reading.
            self.tick(grapheme.len() as u64)?;
            count += 1;
        }
        Ok(count)
    }

    /// The last grapheme of a string. Its beginning may depend on the whole text before it: the last two of many
    /// regional indicators may or may not be one flag. So growing parts of the end are examined until one suffices;
    /// everything beyond the first few bytes is paid for.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    pub fn last_grapheme<'s>(&mut self, node: &'s StringNode) -> Result<Option<&'s str>> {
        let mut graphemes = Graphemes::from_end(node.as_str());
        let last = graphemes.previous(self)?;
        self.tick(graphemes.looked() as u64)?;
        Ok(last)
    }

    /// Whether every grapheme of a string is a byte. The string caches the answer. Strings that may be shared without
    /// the program's knowledge (names, keys and constants, possibly with earlier programs) cost nothing: names are
    /// short, and constants are examined when they are linked.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    #[inline]
    pub fn is_ascii(&mut self, node: &StringNode) -> Result<bool> {
        if node.len() > SHORT_TEXT && !node.knows_ascii() {
            self.look(node.as_str())?;
        }
        Ok(node.is_ascii())
    }

    /// A big integer, for work in time linear in its length.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    pub fn limbs<'v>(&mut self, node: &'v BigIntNode) -> Result<&'v num_bigint::BigInt> {
        let integer = node.get();
        self.tick(integer.bits() / (64 * LIMBS))?;
        Ok(integer)
    }
}
