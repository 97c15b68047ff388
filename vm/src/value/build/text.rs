//! A string under construction, which grows only as far as the program's limits of memory and work allow, and counts
//! against the memory limit while it exists. A text also has a limit of its own.

use super::brief;
use crate::fault::Result;
use crate::memory::account;
use crate::value::string::StringNode;
use crate::value::{Store, Value};
use std::rc::Rc;

/// Most bytes of memory retained from one text to the next.
const KEPT: usize = 1 << 10;

/// Bytes moved between two polls.
pub(super) const LONG: usize = 256 << 10;

/// A text in parts that are moved in one step each.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (part, more) = rest.split_at(rest.floor_char_boundary(LONG));
        rest = more;
        (!part.is_empty()).then_some(part)
    })
}

/// Upper or lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Upper,
    Lower,
}

/// How much of a text is written, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimit {
    /// Bytes that are stored.
    pub bytes: usize,
    /// Bytes that are counted, though no more than `bytes` are stored.
    pub counted: usize,
    /// Base64 in strings is abbreviated to its beginning and size.
    pub brief: bool,
}

impl From<usize> for TextLimit {
    /// The full text, up to this many bytes.
    fn from(bytes: usize) -> TextLimit {
        TextLimit { bytes, counted: bytes, brief: false }
    }
}

/// A text that is being written.
///
/// Invariant: its growth is charged, and was within the limit when it was allocated.
pub(crate) struct Text {
    text: String,
    /// Logical bytes on the account: those beyond `free`.
    charged: usize,
    /// Bytes that do not belong to the program, so that reused memory does not show in its account.
    free: usize,
    limit: usize,
    /// Number of bytes that were counted but not stored. After the first of these, nothing more is stored.
    beyond: usize,
    /// Bytes after which nothing is written any more, not even counted.
    counted: usize,
    brief: bool,
    /// Bytes saved by abbreviating.
    saved: usize,
}

impl Text {
    /// An empty text of any length.
    pub(crate) fn new() -> Text {
        Text::limited(usize::MAX)
    }

    /// An empty text of at most `limit` bytes.
    pub(crate) fn limited(limit: impl Into<TextLimit>) -> Text {
        Text::with(String::new(), 0, limit.into())
    }

    fn with(text: String, free: usize, limit: TextLimit) -> Text {
        let TextLimit { bytes: limit, counted, brief } = limit;
        Text { text, charged: 0, free, limit, beyond: 0, counted: counted.max(limit), brief, saved: 0 }
    }

    /// An empty text of at most `limit` bytes, in memory of the host.
    pub(crate) fn within(memory: String, limit: TextLimit) -> Text {
        let mut text = memory;
        text.clear();
        Text::with(text, usize::MAX, limit)
    }

    /// An empty text in the memory of the last one, for texts that are mostly short.
    pub(crate) fn reuse(cx: &mut Store) -> Text {
        let text = std::mem::take(&mut cx.scratch);
        Text::with(text, KEPT, usize::MAX.into())
    }

    /// Begins with a copy of a shared string value. Copies are counted, not paid for: whether one is needed must not
    /// depend on the program.
    pub(crate) fn copy(&mut self, cx: &mut Store, text: &StringNode) -> Result<()> {
        self.make_room(cx, text.len())?;
        for part in parts(text.as_str()) {
            self.add(cx, part)?;
            // The bytes of one value count as one copied element.
            cx.copied(part.len() / size_of::<Value>())?;
        }
        Ok(())
    }

    /// The text as a string value.
    pub(crate) fn into_value(self) -> Value {
        Value::Str(self.into_node())
    }

    /// The text as a string node.
    pub(crate) fn into_node(self) -> Rc<StringNode> {
        StringNode::new(self.into_text())
    }

    /// The text as a string node; the memory is retained for the next text.
    pub(crate) fn into_string(self, cx: &mut Store) -> Rc<StringNode> {
        if self.text.capacity() > KEPT {
            return StringNode::new(self.into_text());
        }
        let node = StringNode::new(self.text.as_str());
        self.give_back(cx);
        node
    }

    /// Retains the memory for the next text.
    pub(crate) fn give_back(self, cx: &mut Store) {
        if self.text.capacity() <= KEPT {
            cx.scratch = self.into_text();
            cx.scratch.clear();
        }
    }

    /// Adds text, up to the limit. Every byte costs a unit of fuel, and memory is checked before the text grows:
    /// shared structure has few nodes and very many paths.
    #[inline]
    pub(crate) fn push(&mut self, cx: &mut Store, more: &str) -> Result<()> {
        if more.len() > LONG {
            return self.push_long(cx, more);
        }
        cx.tick(more.len() as u64)?;
        self.add(cx, more)
    }

    #[cold]
    #[inline(never)]
    fn push_long(&mut self, cx: &mut Store, more: &str) -> Result<()> {
        for part in parts(more) {
            cx.tick(part.len() as u64)?;
            self.add(cx, part)?;
        }
        Ok(())
    }

    #[inline]
    fn add(&mut self, cx: &mut Store, more: &str) -> Result<()> {
        let needed = self.text.len() + more.len();
        if needed > self.text.capacity() || needed > self.limit {
            return self.add_slow(cx, more);
        }
        self.text.push_str(more);
        Ok(())
    }

    #[cold]
    fn add_slow(&mut self, cx: &mut Store, more: &str) -> Result<()> {
        let room = if self.beyond > 0 { 0 } else { self.limit - self.text.len() };
        let (more, beyond) = match more.len() > room {
            true => more.split_at(more.floor_char_boundary(room)),
            false => (more, ""),
        };
        if !beyond.is_empty() {
            self.beyond += beyond.len();
            // From here on every call takes this path.
            self.limit = 0;
        }
        self.make_room(cx, more.len())?;
        self.text.push_str(more);
        Ok(())
    }

    /// Makes room for `more` bytes.
    ///
    /// # Errors
    /// `memory_exceeded`.
    pub(crate) fn make_room(&mut self, cx: &mut Store, more: usize) -> Result<()> {
        let needed = self.text.len().saturating_add(more);
        if needed > self.text.capacity() {
            let capacity = needed.max(self.text.capacity().saturating_mul(2)).max(32);
            // While the text moves, both copies exist.
            cx.reserve(capacity)?;
            self.text.reserve_exact(capacity - self.text.len());
            let charged = self.text.capacity().saturating_sub(self.free);
            account::recharge(self.charged, charged);
            self.charged = charged;
        }
        Ok(())
    }

    /// An empty text of any length with room for `capacity` bytes.
    ///
    /// # Errors
    /// `memory_exceeded`.
    pub(crate) fn with_capacity(cx: &mut Store, capacity: usize) -> Result<Text> {
        let mut text = Text::new();
        text.make_room(cx, capacity)?;
        Ok(text)
    }

    /// Adds a text in upper or lower case, piece by piece. Pieces end at word boundaries, except for words longer
    /// than any language has.
    pub(crate) fn push_cased(&mut self, cx: &mut Store, more: &str, case: Case) -> Result<()> {
        const LONGEST: usize = 4 << 10;
        let mut rest = more;
        while !rest.is_empty() {
            let piece = &rest[..rest.floor_char_boundary(LONGEST)];
            let end = if piece.len() == rest.len() { None } else { piece.rfind(char::is_whitespace) };
            let (piece, after) = rest.split_at(end.filter(|&end| end > 0).unwrap_or(piece.len()));
            self.push(
                cx,
                &match case {
                    Case::Upper => piece.to_uppercase(),
                    Case::Lower => piece.to_lowercase(),
                },
            )?;
            rest = after;
        }
        Ok(())
    }

    /// Adds a string with the escapes of the bytes that need one. Escaped bytes are ASCII.
    #[inline]
    pub(crate) fn push_escaped(
        &mut self,
        cx: &mut Store,
        more: &str,
        escape: impl Fn(u8) -> Option<&'static str>,
    ) -> Result<()> {
        if self.brief && more.len() >= brief::LEAST {
            return self.push_brief(cx, more, &escape);
        }
        self.push_whole(cx, more, escape)
    }

    #[cold]
    #[inline(never)]
    fn push_brief(
        &mut self,
        cx: &mut Store,
        more: &str,
        escape: &impl Fn(u8) -> Option<&'static str>,
    ) -> Result<()> {
        cx.tick(more.len() as u64 / 16)?;
        for part in brief::parts(more) {
            match part {
                brief::Part::Plain(plain) => self.push_whole(cx, plain, escape)?,
                brief::Part::Data(data) => {
                    let short = brief::shortened(data);
                    self.saved += data.len().saturating_sub(short.len());
                    self.push(cx, &short)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn push_whole(
        &mut self,
        cx: &mut Store,
        more: &str,
        escape: impl Fn(u8) -> Option<&'static str>,
    ) -> Result<()> {
        /// Bytes searched before they are paid for.
        const STEP: usize = 16 << 10;
        let (bytes, mut plain, mut at) = (more.as_bytes(), 0, 0);
        while at < bytes.len() {
            let end = more.floor_char_boundary(at + STEP);
            let found = bytes[at..end].iter().position(|&byte| escape(byte).is_some());
            at += found.unwrap_or(end - at);
            self.push(cx, &more[plain..at])?;
            plain = at;
            if let Some(escape) = found.and_then(|_| escape(bytes[at])) {
                self.push(cx, escape)?;
                at += 1;
                plain = at;
            }
            if self.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Adds a character many times.
    pub(crate) fn push_repeated(&mut self, cx: &mut Store, more: char, count: usize) -> Result<()> {
        (0..count).try_for_each(|_| self.push_char(cx, more))
    }

    /// Adds a character.
    #[inline]
    pub(crate) fn push_char(&mut self, cx: &mut Store, more: char) -> Result<()> {
        self.push(cx, more.encode_utf8(&mut [0; 4]))
    }

    /// True once nothing is written any more.
    pub(crate) fn is_full(&self) -> bool {
        self.beyond > 0 && self.written() > self.counted
    }

    /// True once something was not stored.
    pub(crate) fn is_cut(&self) -> bool {
        self.beyond > 0
    }

    /// Bytes saved by abbreviating, as far as the text was written.
    pub(crate) fn saved(&self) -> usize {
        self.saved
    }

    /// Bytes written, stored or not; one more than the counted maximum if the text is longer.
    pub(crate) fn written(&self) -> usize {
        (self.text.len() + self.beyond).min(self.counted.saturating_add(1))
    }

    /// The text so far.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The text, off the account.
    pub(crate) fn into_text(mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // Most texts are short and charged nothing.
        if self.charged > 0 {
            account::release(self.charged);
        }
    }
}

/// Adds a string to an unshared string value in place, for the cost of a copy of both.
pub(crate) fn append_node(cx: &mut Store, text: Rc<StringNode>, more: &StringNode) -> Result<Rc<StringNode>> {
    if more.len() <= LONG {
        // Even for an empty text: the node drops its cached facts, as a copy would not have them.
        cx.tick(more.len() as u64)?;
        return append(cx, text, more.as_str());
    }
    let mut text = text;
    for part in parts(more.as_str()) {
        cx.tick(part.len() as u64)?;
        text = append(cx, text, part)?;
    }
    Ok(text)
}

/// Adds text to an unshared string value in place. The text is paid for.
pub(crate) fn append(cx: &mut Store, text: Rc<StringNode>, more: &str) -> Result<Rc<StringNode>> {
    // Growing in place allocates half as much again.
    cx.reserve(text.as_str().len() / 2 + more.len())?;
    Ok(StringNode::append(text, more))
}
