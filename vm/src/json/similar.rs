//! Decodes small objects of a known shape, which programs get as context repeatedly: keys are only compared with the
//! remembered ones.
//!
//! It accepts less than the decoder, and never gives another result. Text that it does not accept is decoded from the
//! beginning by the decoder, which also reports errors.

use super::shape::{ObjectShape, Shape};
use super::{number, text};
use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::set::SetNode;
use crate::value::string::StringNode;
use crate::value::vector::VectorNode;
use std::rc::Rc;

/// Logical bytes to reserve for a byte of text: more than its value takes and more than the decoder reserves on the
/// way. If this room is available, the decoder would have had enough as well.
const ROOM: usize = 64;

/// Decodes an object of this shape, with the keys in this order. `None`, with nothing paid, if the general decoder
/// must do it. The value, its fuel and its memory equal those of [`super::decode_text`], without the keys.
///
/// # Errors
/// Limits of the program.
pub(crate) fn decode_similar(cx: &mut Context, json: &str, shape: &ObjectShape) -> Result<Option<Value>> {
    if !ObjectShape::may_have_shape(json) || cx.reserve(ROOM * json.len() + 1_024).is_err() {
        return Ok(None);
    }
    let mut reader = Reader { cx, text: json, at: 0 };
    let Some(value) = reader.whole(shape) else { return Ok(None) };
    cx.tick(json.len() as u64)?;
    Ok(Some(value))
}

struct Reader<'t> {
    cx: &'t mut Context,
    text: &'t str,
    at: usize,
}

/// An iterator over the values of an object's members, parsed on demand.
struct Members<'r, 't, 'k> {
    reader: &'r mut Reader<'t>,
    keys: std::slice::Iter<'k, Value>,
    shapes: std::slice::Iter<'k, Shape>,
    /// The character before the next member.
    before: u8,
    /// Everything fitted the shape so far. Otherwise all further values are nil.
    is_known: bool,
}

impl Iterator for Members<'_, '_, '_> {
    type Item = Value;

    #[inline]
    fn next(&mut self) -> Option<Value> {
        let (key, shape) = (self.keys.next()?, self.shapes.next()?);
        let value = if self.is_known { self.reader.member(self.before, key, shape) } else { None };
        self.is_known = value.is_some();
        self.before = b',';
        Some(value.unwrap_or_default())
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.keys.size_hint()
    }
}

impl ExactSizeIterator for Members<'_, '_, '_> {}

impl Reader<'_> {
    #[inline]
    fn whole(&mut self, shape: &ObjectShape) -> Option<Value> {
        let map = self.object(&shape.keys, &shape.members)?;
        self.skip_blanks();
        (self.at == self.text.len()).then_some(map)
    }

    #[inline]
    fn object(&mut self, keys: &Rc<SetNode>, shapes: &[Shape]) -> Option<Value> {
        let (keys_of, shapes) = (keys.members().iter(), shapes.iter());
        let members = Members { reader: self, keys: keys_of, shapes, before: b'{', is_known: true };
        MapNode::from_keys_if(keys.clone(), members, |members| members.is_known && members.reader.takes(b'}'))
            .map(Value::Map)
    }

    #[inline]
    fn member(&mut self, before: u8, key: &Value, shape: &Shape) -> Option<Value> {
        let is_next = self.takes(before) && self.takes_key(key) && self.takes(b':');
        if is_next { self.value(shape) } else { None }
    }

    #[inline]
    fn value(&mut self, shape: &Shape) -> Option<Value> {
        match shape {
            Shape::Scalar => self.scalar(),
            Shape::List(element) => self.list(element),
            Shape::Map(keys, members) => self.inner_object(keys, members),
        }
    }

    #[inline(never)]
    fn inner_object(&mut self, keys: &Rc<SetNode>, members: &[Shape]) -> Option<Value> {
        self.object(keys, members)
    }

    #[inline(never)]
    fn list(&mut self, element: &Shape) -> Option<Value> {
        if !self.takes(b'[') {
            return None;
        }
        let mut items = self.cx.take_stack();
        let is_whole = self.elements(element, &mut items);
        let list = (is_whole && element.may_have_length(items.len())).then(|| {
            // It has exactly its size, like every decoded collection.
            let mut held = Vec::with_capacity(items.len());
            held.append(&mut items);
            Value::Vector(VectorNode::new(held))
        });
        items.clear();
        self.cx.keep_stack(items);
        list
    }

    fn elements(&mut self, element: &Shape, items: &mut Vec<Value>) -> bool {
        self.skip_blanks();
        if self.text.as_bytes().get(self.at) == Some(&b']') {
            return self.takes(b']');
        }
        while let Some(item) = self.value(element) {
            items.push(item);
            self.skip_blanks();
            let byte = self.text.as_bytes().get(self.at);
            self.at += 1;
            match byte {
                Some(b',') => {}
                byte => return byte == Some(&b']'),
            }
        }
        false
    }

    #[inline]
    fn scalar(&mut self) -> Option<Value> {
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

    /// A number other than a short integer that can be parsed as quickly.
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

    /// Skips blanks and this character, if it comes next.
    #[inline]
    fn takes(&mut self, character: u8) -> bool {
        self.skip_blanks();
        let is_next = self.text.as_bytes().get(self.at) == Some(&character);
        self.at += 1;
        is_next
    }

    #[inline]
    fn skip_blanks(&mut self) {
        // Every blank is below all other characters between tokens, so one comparison detects it.
        while let Some(byte) = self.text.as_bytes().get(self.at)
            && *byte <= b' '
            && matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
        {
            self.at += 1;
        }
    }
}
