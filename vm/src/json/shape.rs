//! The shape of a small JSON text: the keys of its objects, in a tree of the same structure.

use super::decode::RecentStrings;
use crate::value::Value;
use crate::value::map::MapNode;
use crate::value::set::SetNode;
use crate::value::string::StringNode;
use std::rc::Rc;

/// Most keys of a remembered object, and most objects with distinct keys.
const MOST: usize = 16;

/// Deepest nesting of a shape; texts are read along it recursively.
const DEEPEST: usize = 8;

/// The shape of a value.
pub(crate) enum Shape {
    /// Neither list nor object.
    Scalar,
    /// A list of elements with this shape; it is empty only if the shape is a scalar.
    List(Box<Shape>),
    /// An object with these keys, which need no escapes, and the shapes of its values.
    Map(Rc<SetNode>, Box<[Shape]>),
}

/// The shape of an object, and the size of its keys.
pub(crate) struct ObjectShape {
    pub(super) keys: Rc<SetNode>,
    pub(super) members: Box<[Shape]>,
    /// Logical bytes of its keys, without those charged to another account.
    pub(crate) bytes: usize,
}

impl ObjectShape {
    /// Texts from this length on have no shape, since their strings are shared.
    const UNSHAPED: usize = RecentStrings::UNSHARED;

    /// Whether a text may have a shape.
    pub(crate) fn may_have_shape(json: &str) -> bool {
        json.len() < Self::UNSHAPED
    }

    /// The shape of a decoded value; `None` if it is not worth remembering.
    pub(crate) fn from_value(value: &Value) -> Option<ObjectShape> {
        let mut sets = Vec::new();
        let Shape::Map(keys, members) = Shape::from_value(value, &mut sets, DEEPEST)? else { return None };
        let mut seen: Vec<&Rc<StringNode>> = Vec::new();
        let mut bytes = 0;
        for set in &sets {
            bytes += set.bytes();
            for key in set.members() {
                // The symbol table holds, and has paid for, names with a symbol.
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
    /// Adds each set of keys once to `sets`.
    fn from_value(value: &Value, sets: &mut Vec<Rc<SetNode>>, depth: usize) -> Option<Shape> {
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
                    map.values().iter().map(|value| Shape::from_value(value, sets, inside)).collect();
                Some(Shape::Map(keys.clone(), members?))
            }
            Value::Vector(items) => {
                let items = items.as_slice()?;
                let element = items
                    .first()
                    .map_or(Some(Shape::Scalar), |first| Shape::from_value(first, sets, inside))?;
                items.iter().all(|item| element.fits(item)).then(|| Shape::List(Box::new(element)))
            }
            _ => (!value.is_composite()).then_some(Shape::Scalar),
        }
    }

    /// Whether the value has this shape, with the very same key nodes.
    fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Shape::Scalar, _) => !value.is_composite(),
            (Shape::List(element), Value::Vector(items)) => items.as_slice().is_some_and(|items| {
                element.may_have_length(items.len()) && items.iter().all(|item| element.fits(item))
            }),
            (Shape::Map(keys, members), Value::Map(map)) => {
                Rc::ptr_eq(keys, map.key_set())
                    && members.iter().zip(map.values()).all(|(member, value)| member.fits(value))
            }
            _ => false,
        }
    }

    /// Whether a list with elements of this shape may have `count` of them: an empty list has no element keys, so it fits
    /// scalars only.
    #[inline]
    pub(super) fn may_have_length(&self, count: usize) -> bool {
        count > 0 || matches!(self, Shape::Scalar)
    }
}

/// The keys of a map that never had more of them and need no escapes.
fn remembered_keys(map: &MapNode) -> Option<&Rc<SetNode>> {
    let keys = map.key_set();
    let is_usual = !keys.is_empty() && keys.len() <= MOST && keys.is_tight();
    (is_usual && are_plain(keys)).then_some(keys)
}

/// Whether all keys are texts without escapes.
pub(super) fn are_plain(keys: &SetNode) -> bool {
    let is_plain = |text: &str| !text.bytes().any(|byte| matches!(byte, ..0x20 | b'"' | b'\\'));
    keys.members().iter().all(|key| key.as_str().is_some_and(is_plain))
}
