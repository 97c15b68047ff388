//! Text under construction: grows only as far as fuel, memory and its own limit allow.

use crate::context::Context;
use crate::fault::Result;
use crate::heap;
use crate::string::StringNode;
use crate::value::Value;
use std::rc::Rc;

/// A text that is being written.
pub(crate) struct Buffer {
    text: String,
    limit: usize,
    full: bool,
}

impl Buffer {
    /// An empty text of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Buffer {
        Buffer { text: String::new(), limit, full: false }
    }

    /// Adds text, up to the limit. Every byte costs a unit of fuel, and memory is checked before the text
    /// grows: shared structure has few nodes and very many paths.
    #[inline]
    pub(crate) fn push(&mut self, cx: &mut Context, more: &str) -> Result<()> {
        cx.tick(more.len() as u64)?;
        let needed = self.text.len() + more.len();
        if needed > self.text.capacity() || needed > self.limit {
            return self.push_slow(cx, more);
        }
        self.text.push_str(more);
        Ok(())
    }

    #[cold]
    fn push_slow(&mut self, cx: &mut Context, more: &str) -> Result<()> {
        let room = self.limit - self.text.len();
        let more = if more.len() > room {
            self.full = true;
            &more[..more.floor_char_boundary(room)]
        } else {
            more
        };
        let needed = self.text.len() + more.len();
        if needed > self.text.capacity() {
            let capacity = needed.max(self.text.capacity().saturating_mul(2)).max(32);
            cx.reserve(capacity)?;
            self.text.reserve_exact(capacity - self.text.len());
        }
        self.text.push_str(more);
        Ok(())
    }

    /// True once text was refused.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// The text so far.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Adds text to a string value: in place when nobody else holds it.
pub(crate) fn append(cx: &mut Context, text: Rc<StringNode>, more: &str) -> Result<Rc<StringNode>> {
    cx.tick(more.len() as u64)?;
    let length = text.as_str().len();
    if Rc::strong_count(&text) > 1 {
        // A value's worth of bytes counts as one element copied.
        heap::count_copy(length / size_of::<Value>());
        cx.reserve(length + more.len())?;
    } else {
        // Growing in place takes half as much again.
        cx.reserve(length / 2 + more.len())?;
    }
    Ok(StringNode::append(text, more))
}
