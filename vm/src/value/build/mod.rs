//! Builds strings, vectors and argument lists for builtin functions, and charges memory and fuel (budget of work)
//! before each allocation, so that no value exceeds the program's limits.
//!
//! Architecture invariant: `builtins` and `native` can allocate and read in no other way. The collections and strings
//! of the standard library, and direct access to text and big integers, are disallowed there (`vm/clippy.toml`), so
//! code there pays by construction:
//! - [`List`](crate::memory::List), `Text` and [`Arguments`] grow only as far as the memory limit allows and are on
//!   the account while they exist;
//! - [`Store::read`] and [`Store::limbs`] pay for a leaf's length before they show it: one pass over it is paid for
//!   then;
//! - `Graphemes` walks a text in steps, since one grapheme may be all of it;
//! - the remains of a list or of [`Arguments`] are freed in steps, like those of collections
//!   ([`Item`](crate::memory::Item));
//! - [`Meter::tick`](crate::memory::Meter::tick) pays for everything else, by the element, and checks deadline and
//!   cancellation.
//!
//! Exceptions: the modules below this one, and `print`, `json`, `arith`, the relations of values and the crate
//! `ptc_regex` pay or poll explicitly. One payment is one poll: a text paid for by [`Store::read`] is read in one go.
//! docs/design/memory-and-fuel.md lists the remaining single steps.

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
    /// A string value with a copy of this text, which is paid for.
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

    /// A string value of an existing text of the host, paid for as text that is read.
    ///
    /// # Errors
    /// Fuel and memory.
    pub fn host_text(&mut self, text: &str) -> Result<Value> {
        self.look(text)?;
        self.reserve(text.len())?;
        Ok(Value::string(text))
    }
}
