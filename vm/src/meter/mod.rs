//! Metering: how builtins and machines allocate, and how they look at values whose size nobody has bounded.
//!
//! Architecture invariant: in `builtins` and `native` there is no other way. The collections and strings of the
//! standard library, and direct looks into text and big integers, are disallowed there (`vm/clippy.toml`), so what is
//! written there pays by construction:
//! - [`List`], `Text` and [`Arguments`] grow only as far as the memory limit allows and are on the account while they exist;
//! - [`Context::read`] and [`Context::limbs`] pay for a leaf's length before they show it: whatever
//!   is done with it once, from end to end, is paid for then;
//! - [`Context::tick`] pays for everything else, by the element. It looks at deadline and cancellation, too.

mod arguments;
mod copy;
mod find;
mod list;
mod text;

use crate::context::Context;
use crate::fault::{Fault, Result};
use crate::heap;
use crate::string::{SHORT_TEXT, StringNode};
use crate::value::{BigIntNode, Value};
pub use arguments::Arguments;
pub(crate) use copy::STEP;
pub use list::List;
pub(crate) use text::{Case, Text, append, append_node};
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// Bytes of text looked at for a unit of fuel.
const BYTES: usize = 16;

/// Limbs of 64 bits of a big integer looked at for a unit of fuel.
const LIMBS: u64 = 8;

impl Context {
    /// Pays fuel for work that has been done or is about to be: one unit for an element visited or a byte
    /// produced.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    #[inline]
    pub fn tick(&mut self, units: u64) -> Result<()> {
        self.fuel.pay(units)
    }

    /// Checks that a bulk operation may allocate `bytes`; call it before allocating.
    ///
    /// # Errors
    /// `memory_exceeded`.
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        match heap::would_exceed(bytes as u64) {
            None => Ok(()),
            Some((needed, limit)) => Err(Fault::memory(needed, limit)),
        }
    }

    /// Runs `work` while bytes that no value holds count against the limit. They are no part of the program's
    /// peak: what is rendered of its result is its host's wish.
    pub fn holding<T>(&mut self, bytes: usize, work: impl FnOnce(&mut Context) -> T) -> T {
        heap::hold(bytes);
        let done = work(self);
        heap::release(bytes);
        done
    }

    /// [`Context::reserve`] for a vector of `items` values.
    ///
    /// # Errors
    /// `memory_exceeded`.
    pub fn reserve_items(&mut self, items: usize) -> Result<()> {
        self.reserve(items.saturating_mul(size_of::<Value>()))
    }

    /// The items in a list; each costs a unit of fuel.
    ///
    /// # Errors
    /// Fuel and memory.
    pub fn collect<T>(&mut self, items: impl IntoIterator<Item = T>) -> Result<List<T>> {
        let mut list = List::default();
        list.extend(self, items)?;
        Ok(list)
    }

    /// A string value of this text, which is copied and paid for.
    ///
    /// # Errors
    /// Fuel and memory.
    #[inline]
    pub fn copy_text(&mut self, text: &str) -> Result<Value> {
        self.tick(text.len() as u64)?;
        self.reserve(text.len())?;
        Ok(Value::string(text))
    }

    /// A string value of a text of the host's, which is paid for as what is looked at: it was there before.
    ///
    /// # Errors
    /// Fuel and memory.
    pub fn host_text(&mut self, text: &str) -> Result<Value> {
        self.look(text)?;
        self.reserve(text.len())?;
        Ok(Value::string(text))
    }

    /// The text of a string, to be looked at once from end to end.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    #[inline]
    pub fn read<'s>(&mut self, node: &'s StringNode) -> Result<&'s str> {
        self.look(node.as_str())
    }

    /// A text that was come by without [`Context::read`], or one that is looked at again.
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
        let mut count = 0;
        for grapheme in node.as_str().graphemes(true) {
            // Finding where graphemes end takes several times as long as reading.
            self.tick(grapheme.len() as u64)?;
            count += 1;
        }
        Ok(count)
    }

    /// The last grapheme of a string. Where it begins may depend on all that is before it: whether the last two of
    /// many regional indicators are one flag. So more and more of the end is looked at, until that is enough.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    pub fn last_grapheme<'s>(&mut self, node: &'s StringNode) -> Result<Option<&'s str>> {
        /// Bytes that are looked at first, for nothing.
        const FIRST: usize = 256;
        let text = node.as_str();
        let mut window = FIRST;
        loop {
            let from = text.floor_char_boundary(text.len().saturating_sub(window));
            let mut cursor = GraphemeCursor::new(text.len(), text.len(), true);
            if let Ok(start) = cursor.prev_boundary(&text[from..], from) {
                return Ok(start.map(|start| &text[start..]));
            }
            if from == 0 {
                return Ok(None);
            }
            window = window.saturating_mul(2);
            self.tick(window as u64)?;
        }
    }

    /// Whether every grapheme of a string is a byte. The string remembers it. What may be shared behind the program's
    /// back (names, keys, constants, and through these whatever ran before) costs nothing: names are short, and
    /// constants are looked at when they are linked.
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

    /// A big integer, to be worked on in time linear in its length.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    pub fn limbs<'v>(&mut self, node: &'v BigIntNode) -> Result<&'v num_bigint::BigInt> {
        let integer = node.get();
        self.tick(integer.bits() / (64 * LIMBS))?;
        Ok(integer)
    }
}
