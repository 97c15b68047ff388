//! Remembers the keys of recently parsed JSON objects, so that the maps of rows with the same keys share one set of
//! keys.

use crate::context::Context;
use crate::fault::Result;
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::set::SetNode;
use crate::value::string::StringNode;
use std::mem::take;
use std::rc::Rc;

/// Number of remembered key lists, a power of two; a new one replaces the one in its slot.
const SLOTS: usize = 64;

/// Largest number of keys and values of an object with remembered keys: a new object is compared with them in one
/// step.
const LARGEST: usize = 4_096;

/// Key lists, by their length and their first and last key.
#[derive(Default)]
pub(super) struct KnownKeys(Vec<Option<Rc<SetNode>>>);

impl KnownKeys {
    /// The map of keys and values, alternating; the last of equal keys wins. The keys are strings.
    ///
    /// # Errors
    /// Comparing keys pays fuel.
    pub(super) fn map(&mut self, cx: &mut Context, pairs: &mut [Value]) -> Result<Rc<MapNode>> {
        let Some(slot) = slot(pairs) else { return MapNode::from_pairs(cx, pairs) };
        if let Some(Some(keys)) = self.0.get(slot)
            && are_keys_of(keys, pairs)
        {
            return Ok(MapNode::from_keys(keys.clone(), values_of(pairs)));
        }
        let map = MapNode::from_pairs(cx, pairs)?;
        if map.len() == pairs.len() / 2 {
            if self.0.is_empty() {
                self.0.resize(SLOTS, None);
            }
            self.0[slot] = Some(map.key_set().clone());
        }
        Ok(map)
    }
}

/// Keys of the row before in a small text, by nesting depth.
#[derive(Default)]
pub(super) struct Siblings(Vec<Option<Rc<SetNode>>>);

impl Siblings {
    /// The key at a position.
    #[inline]
    pub(super) fn key(&self, depth: usize, at: usize) -> Option<&Rc<StringNode>> {
        match self.0.get(depth)?.as_ref()?.members().get(at)? {
            Value::Str(node) => Some(node),
            _ => None,
        }
    }

    /// [`KnownKeys::map`] of a row at this depth.
    ///
    /// # Errors
    /// Comparing keys pays fuel.
    pub(super) fn map(&mut self, cx: &mut Context, depth: usize, pairs: &mut [Value]) -> Result<Rc<MapNode>> {
        if let Some(Some(keys)) = self.0.get(depth)
            && are_keys_of(keys, pairs)
        {
            return Ok(MapNode::from_keys(keys.clone(), values_of(pairs)));
        }
        let map = MapNode::from_pairs(cx, pairs)?;
        // Only a key without escapes can be recognised by its bytes.
        if are_plain(map.key_set()) {
            if self.0.len() <= depth {
                self.0.resize(depth + 1, None);
            }
            self.0[depth] = Some(map.key_set().clone());
        }
        Ok(map)
    }
}

fn values_of(pairs: &mut [Value]) -> impl ExactSizeIterator<Item = Value> {
    pairs.iter_mut().skip(1).step_by(2).map(take)
}

/// The slot of these keys; `None` if the first or last is not an interned name. It does not depend on addresses:
/// whether maps share keys shows in the memory account, which must be the same in every run.
fn slot(pairs: &[Value]) -> Option<usize> {
    if pairs.len() > LARGEST {
        return None;
    }
    let symbol = |key: &Value| match key {
        Value::Str(node) => node.symbol().map(|symbol| symbol.index() as usize),
        _ => None,
    };
    let (first, last) = (symbol(pairs.first()?)?, symbol(pairs.iter().nth_back(1)?)?);
    Some(first.wrapping_mul(5).wrapping_add(last.wrapping_mul(3)).wrapping_add(pairs.len() / 2) % SLOTS)
}

/// Whether the keys are the same nodes in the same order.
fn are_keys_of(keys: &SetNode, pairs: &[Value]) -> bool {
    let same = |(key, pair): (&Value, &[Value])| match (key, pair.first()) {
        (Value::Str(key), Some(Value::Str(other))) => Rc::ptr_eq(key, other),
        _ => false,
    };
    keys.len() * 2 == pairs.len() && keys.members().iter().zip(pairs.chunks_exact(2)).all(same)
}

/// Whether all keys are texts without escapes.
fn are_plain(keys: &SetNode) -> bool {
    let is_plain = |text: &str| !text.bytes().any(|byte| matches!(byte, ..0x20 | b'"' | b'\\'));
    keys.members().iter().all(|key| key.as_str().is_some_and(is_plain))
}
