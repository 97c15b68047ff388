//! What a small JSON text was like: the keys of its objects, in a tree like the text's own.

use super::decode::RecentStrings;
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::set::SetNode;
use crate::value::string::StringNode;
use std::rc::Rc;

/// Most keys of an object that is remembered, and most objects with keys of their own.
const MOST: usize = 16;

/// Objects and lists around each other: a text is read along its shape by functions that call themselves.
const DEEPEST: usize = 8;

/// What a value is like.
pub(crate) enum Shape {
    /// Neither list nor object.
    Scalar,
    /// Elements that are all like this one; there are some unless it is a scalar.
    List(Box<Shape>),
    /// These keys, names that need no escapes, and what their values are like.
    Map(Rc<SetNode>, Box<[Shape]>),
}

/// The shape of an object, and what its keys take.
pub(crate) struct ObjectShape {
    pub(super) keys: Rc<SetNode>,
    pub(super) members: Box<[Shape]>,
    /// Logical bytes of all keys in it that are on nobody else's account.
    pub(crate) bytes: usize,
}

impl ObjectShape {
    /// Texts from this length on have no shape: their strings are shared.
    const UNSHAPED: usize = RecentStrings::UNSHARED;

    /// Whether a text may have a shape.
    pub(crate) fn may_be_of(json: &str) -> bool {
        json.len() < Self::UNSHAPED
    }

    /// The shape of what has been read; `None` when it is none that comes again as it is.
    pub(crate) fn of(value: &Value) -> Option<ObjectShape> {
        let mut sets = Vec::new();
        let Shape::Map(keys, members) = Shape::of(value, &mut sets, DEEPEST)? else { return None };
        let mut seen: Vec<&Rc<StringNode>> = Vec::new();
        let mut bytes = 0;
        for set in &sets {
            bytes += set.bytes();
            for key in set.members() {
                // The table of names holds, and has paid for, those that have a symbol.
                if let Value::Str(node) = key
                    && node.symbol().is_none()
                    && !seen.iter().any(|other| Rc::ptr_eq(other, node))
                {
                    seen.push(node);
                    bytes += node.bytes();
                }
            }
        }
        Some(ObjectShape { keys, members, bytes })
    }
}

impl Shape {
    /// `sets` takes the keys that it holds, each once.
    fn of(value: &Value, sets: &mut Vec<Rc<SetNode>>, depth: usize) -> Option<Shape> {
        let inside = depth.checked_sub(1)?;
        match value {
            Value::Map(map) => {
                let keys = remembered_keys(map)?;
                if !sets.iter().any(|set| Rc::ptr_eq(set, keys)) {
                    sets.push(keys.clone());
                }
                if sets.len() > MOST {
                    return None;
                }
                let members: Option<_> =
                    map.values().iter().map(|value| Shape::of(value, sets, inside)).collect();
                Some(Shape::Map(keys.clone(), members?))
            }
            Value::Vector(items) => {
                let items = items.as_slice()?;
                let element =
                    items.first().map_or(Some(Shape::Scalar), |first| Shape::of(first, sets, inside))?;
                items.iter().all(|item| element.fits(item)).then(|| Shape::List(Box::new(element)))
            }
            _ => (!value.is_composite()).then_some(Shape::Scalar),
        }
    }

    /// The value has this shape, with the same keys in the same places of memory.
    fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Shape::Scalar, _) => !value.is_composite(),
            (Shape::List(element), Value::Vector(items)) => items.as_slice().is_some_and(|items| {
                element.may_be_absent(items.len()) && items.iter().all(|item| element.fits(item))
            }),
            (Shape::Map(keys, members), Value::Map(map)) => {
                Rc::ptr_eq(keys, map.key_set())
                    && members.iter().zip(map.values()).all(|(member, value)| member.fits(value))
            }
            _ => false,
        }
    }

    /// Whether a list of this many has them all: the keys of no element are not there.
    #[inline]
    pub(super) fn may_be_absent(&self, count: usize) -> bool {
        count > 0 || matches!(self, Shape::Scalar)
    }
}

/// The keys of a map that has had no more of them, and that stand in JSON as they are.
fn remembered_keys(map: &MapNode) -> Option<&Rc<SetNode>> {
    let keys = map.key_set();
    let is_usual = !keys.is_empty() && keys.len() <= MOST && keys.is_tight();
    (is_usual && are_plain(keys)).then_some(keys)
}

/// Texts that stand in JSON as they are.
pub(super) fn are_plain(keys: &SetNode) -> bool {
    let is_plain = |text: &str| !text.bytes().any(|byte| matches!(byte, ..0x20 | b'"' | b'\\'));
    keys.members().iter().all(|key| key.as_str().is_some_and(is_plain))
}
