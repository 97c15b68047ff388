//! How values are built within limits.
//!
//! Metering: how builtins and machines allocate, and how they look at values whose size nobody has bounded.
//!
//! Architecture invariant: in `builtins` and `native` there is no other way. The collections and strings of the
//! standard library, and direct looks into text and big integers, are disallowed there (`vm/clippy.toml`), so what is
//! written there pays by construction:
//! - [`List`](crate::memory::List), `Text` and [`Arguments`] grow only as far as the memory limit allows and are on the account while they exist;
//! - [`Store::read`] and [`Store::limbs`] pay for a leaf's length before they show it: whatever
//!   is done with it once, from end to end, is paid for then;
//! - `Graphemes` goes through a text in steps: one grapheme may be all of it;
//! - what a list or [`Arguments`] leave is freed in steps, as what collections leave is ([`Item`](crate::memory::Item));
//! - [`Meter::tick`](crate::memory::Meter::tick) pays for everything else, by the element. It looks at deadline and cancellation, too.
//!
//! What is not so by construction: the rooms that this is built on, and `print`, `json`, `regex`, `arith` and the
//! relations of values, pay or poll by hand. And one payment is one poll: a text that was paid for by [`Store::read`]
//! is looked at in one go. docs/design/memory-and-fuel.md lists what still is one step.

mod arguments;
mod brief;
mod list;
mod text;

pub use arguments::Arguments;
pub use brief::brief;
pub use text::TextLimit;
pub(crate) use text::{Case, Text, append, append_node};

use crate::fault::Result;
use crate::value::{Store, Value};

impl Store {
    /// A string value of this text, which is copied and paid for.
    ///
    /// # Errors
    /// Fuel and memory.
    #[inline]
    pub fn copy_text(&mut self, text: &str) -> Result<Value> {
        if text.len() > text::LONG {
            let mut copy = Text::with_capacity(self, text.len())?;
            copy.push(self, text)?;
            return Ok(copy.into_value());
        }
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
}
