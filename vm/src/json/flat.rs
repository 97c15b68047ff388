//! Small objects of scalars whose keys are known: what programs get as context time after time. There is no stack, since
//! nothing in them is open, and their keys are compared with those that are there.
//!
//! It reads less than the decoder and never something else: whatever it leaves alone is read from its beginning by the
//! decoder, which also says what is wrong with it.

use super::decode::RecentStrings;
use super::{number, text};
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::set::SetNode;
use crate::value::string::StringNode;
use std::rc::Rc;

/// Decodes an object with exactly these keys in this order, names that need no escapes. `None`, with nothing paid, when it has
/// to be decoded in general. The value, its fuel and its memory are those of [`super::decode_text`].
///
/// # Errors
/// Limits of the program.
pub(crate) fn decode_flat(cx: &mut Context, json: &str, keys: &Rc<SetNode>) -> Result<Option<Value>> {
    if json.len() >= RecentStrings::UNSHARED {
        return Ok(None);
    }
    // Its nodes are about as large as this.
    cx.reserve(json.len() + 2 * size_of::<Value>() * keys.len() + 256)?;
    let members =
        Members { cx, text: json, at: 0, keys: keys.members().iter(), before: b'{', is_known: true };
    let map = MapNode::from_keys_if(keys.clone(), members, |mut members| {
        members.is_known && members.takes(b'}') && members.is_at_end()
    });
    let Some(map) = map else { return Ok(None) };
    cx.tick(json.len() as u64)?;
    Ok(Some(Value::Map(map)))
}

/// The values of the members of an object, read as they are asked for.
struct Members<'t, 'k> {
    cx: &'t mut Context,
    text: &'t str,
    at: usize,
    keys: std::slice::Iter<'k, Value>,
    /// What comes before the next member.
    before: u8,
    /// Everything was as expected. If not, what is given from then on is nil.
    is_known: bool,
}

impl Iterator for Members<'_, '_> {
    type Item = Value;

    #[inline]
    fn next(&mut self) -> Option<Value> {
        let key = self.keys.next()?;
        let value = if self.is_known { self.member(key) } else { None };
        self.is_known = value.is_some();
        self.before = b',';
        Some(value.unwrap_or_default())
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.keys.size_hint()
    }
}

impl ExactSizeIterator for Members<'_, '_> {}

impl Members<'_, '_> {
    #[inline]
    fn member(&mut self, key: &Value) -> Option<Value> {
        let is_next = self.takes(self.before) && self.takes_key(key) && self.takes(b':');
        if !is_next {
            return None;
        }
        self.skip_blanks();
        let bytes = self.text.as_bytes();
        match bytes.get(self.at)? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => match number::small(bytes, self.at) {
                Some((int, next)) => {
                    self.at = next;
                    Some(Value::Int(int))
                }
                None => self.number(),
            },
            _ => self.word(),
        }
    }

    #[inline]
    fn string(&mut self) -> Option<Value> {
        if let Some((text, next)) = text::short(self.text, self.at + 1) {
            self.at = next;
            return Some(Value::Str(StringNode::new(text)));
        }
        self.escaped()
    }

    #[cold]
    fn escaped(&mut self) -> Option<Value> {
        let (text, next) = text::read(self.cx, self.text, self.at + 1).ok()?;
        self.at = next;
        Some(Value::Str(StringNode::new(text.as_str())))
    }

    /// A number that is not an integer of a few digits, but takes no longer to read than one.
    #[cold]
    fn number(&mut self) -> Option<Value> {
        const MOST: usize = 18;
        let bytes = self.text.as_bytes();
        let is_of_number = |&&byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        if bytes.get(self.at..)?.iter().take_while(is_of_number).count() > MOST {
            return None;
        }
        let (value, next) = number::read(self.cx, bytes, self.at).ok()?;
        self.at = next;
        Some(value)
    }

    fn word(&mut self) -> Option<Value> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let words: [(&[u8], Value); 3] =
            [(b"null", Value::Nil), (b"true", Value::Bool(true)), (b"false", Value::Bool(false))];
        let (word, value) = words.into_iter().find(|(word, _)| rest.starts_with(word))?;
        self.at += word.len();
        Some(value)
    }

    #[inline]
    fn takes_key(&mut self, key: &Value) -> bool {
        self.skip_blanks();
        let (Some(key), Some(rest)) = (key.as_str(), self.text.as_bytes().get(self.at..)) else {
            return false;
        };
        let is_next = matches!(rest.split_first(), Some((b'"', rest))
            if rest.starts_with(key.as_bytes()) && rest.get(key.len()) == Some(&b'"'));
        self.at += key.len() + 2;
        is_next
    }

    /// Skips blanks and takes this character, if it comes next.
    #[inline]
    fn takes(&mut self, character: u8) -> bool {
        self.skip_blanks();
        let is_next = self.text.as_bytes().get(self.at) == Some(&character);
        self.at += 1;
        is_next
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_blanks();
        self.at == self.text.len()
    }

    #[inline]
    fn skip_blanks(&mut self) {
        // Every blank is below what else may stand between tokens, so one comparison says that there is none.
        while let Some(byte) = self.text.as_bytes().get(self.at)
            && *byte <= b' '
            && matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
        {
            self.at += 1;
        }
    }
}
