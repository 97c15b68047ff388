//! Text under construction: grows only as far as fuel, memory and its own limit allow.

use crate::context::Context;
use crate::fault::Result;
use crate::heap;
use crate::string::StringNode;
use crate::value::Value;
use std::rc::Rc;

/// Most bytes of memory kept from one text to the next.
const KEPT: usize = 1 << 10;

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

    /// An empty text of at most `limit` bytes, in the memory of another one.
    pub(crate) fn within(memory: String, limit: usize) -> Buffer {
        let mut text = memory;
        text.clear();
        Buffer { text, limit, full: false }
    }

    /// An empty text in memory that the last one left, for texts that are mostly short.
    pub(crate) fn reuse(cx: &mut Context) -> Buffer {
        Buffer { text: std::mem::take(&mut cx.scratch), limit: usize::MAX, full: false }
    }

    /// Begins with a copy of a string value that somebody else holds too. Copies are counted, not paid for:
    /// whether there is one is no matter of the program's.
    pub(crate) fn copy(&mut self, cx: &mut Context, text: &str) -> Result<()> {
        // A value's worth of bytes counts as one element copied.
        heap::count_copy(text.len() / size_of::<Value>());
        cx.reserve(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// The text as a string value; the memory is kept for the next.
    pub(crate) fn into_string(self, cx: &mut Context) -> Rc<StringNode> {
        if self.text.capacity() > KEPT {
            return StringNode::new(self.text);
        }
        let node = StringNode::new(self.text.as_str());
        self.give_back(cx);
        node
    }

    /// Keeps the memory for the next text.
    pub(crate) fn give_back(self, cx: &mut Context) {
        if self.text.capacity() <= KEPT {
            cx.scratch = self.text;
            cx.scratch.clear();
        }
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

/// Adds text to a string value that nobody else holds, in place. The text is paid for.
pub(crate) fn append(cx: &mut Context, text: Rc<StringNode>, more: &str) -> Result<Rc<StringNode>> {
    // Growing in place takes half as much again.
    cx.reserve(text.as_str().len() / 2 + more.len())?;
    Ok(StringNode::append(text, more))
}
