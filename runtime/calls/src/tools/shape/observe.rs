//! Derives the shape of one result from its JSON or text: keys, types and lengths, never values.

use super::keys::is_name;
use super::table::table;
use super::{Evidence, Items, Learned, Lengths, MOST_KEYS, MapShape, Member, Scalars, Shape};
use ptc_base::secrets::SecretRegistry;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Limit of examined items of a list, and of examined members of a dictionary.
const ITEMS: usize = 64;

/// Limit of examined values of one result.
const VALUES: usize = 10_000;

/// Number of records with the same keys in one map that make it a dictionary: `{"ann" {…} "bob" {…} "eve" {…}}`.
const ALIKE: usize = 3;

/// A result as it came.
pub enum Given<'g> {
    /// JSON text.
    Json(&'g [u8]),
    /// Text.
    Text(&'g str),
    /// A text that counts as data if it is JSON.
    JsonOrText(&'g str),
}

impl Given<'_> {
    /// What it proves of its keys: that they were in this result.
    fn evidence(&self) -> Evidence {
        let bytes = match self {
            Given::Json(json) => json,
            Given::Text(text) | Given::JsonOrText(text) => text.as_bytes(),
        };
        let mut digest = DefaultHasher::new();
        bytes.hash(&mut digest);
        Evidence::One(digest.finish())
    }
}

/// What one result shows. A secret that is the key of a map makes that map a dictionary, and is not stored.
pub(crate) fn observe(given: &Given<'_>, secrets: &SecretRegistry) -> Learned {
    let look = Look { secrets, evidence: given.evidence(), left: Cell::new(VALUES) };
    let data = |shape| Learned { shape, ..Learned::default() }.bounded();
    let read = match given {
        Given::Json(json) => Some(look.json(json).unwrap_or_default()),
        Given::JsonOrText(text) => look.json(text.as_bytes()),
        Given::Text(_) => None,
    };
    match (read, given) {
        (Some(shape), _) => data(shape),
        (None, Given::Json(_)) => data(Shape::default()),
        (None, Given::Text(text) | Given::JsonOrText(text)) => {
            let known = Learned {
                shape: Shape::scalar(Scalars::STRING),
                text: Some(Lengths::of(text.len())),
                ..Learned::default()
            };
            match table(text, &look) {
                Some((form, rows)) => Learned { tables: [(form, rows)].into(), ..known }.bounded(),
                None => Learned { other_texts: true, ..known },
            }
        }
    }
}

/// How a result is looked at.
pub(super) struct Look<'s> {
    secrets: &'s SecretRegistry,
    pub(super) evidence: Evidence,
    /// Values that may still be examined.
    left: Cell<usize>,
}

impl Look<'_> {
    /// The shape of a JSON text; `None` if it is none.
    pub(super) fn json(&self, json: &[u8]) -> Option<Shape> {
        let mut reader = serde_json::Deserializer::from_slice(json);
        let shape = Value { look: self, levels: super::DEEPEST }.deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(shape)
    }

    /// The shape of a map with these members, each of which some maps may lack.
    pub(super) fn map(&self, members: BTreeMap<String, Shape>) -> MapShape {
        let is_known = |name: &String| is_name(name) && self.secrets.scrub(name) == name.as_str();
        if members.keys().all(is_known) && !are_alike(&members) {
            let member =
                |(name, shape)| (name, Member { is_optional: false, shape, evidence: self.evidence });
            return MapShape::record(members.into_iter().map(member).collect());
        }
        MapShape::Dictionary(members.into_values().fold(Shape::default(), Shape::join))
    }
}

/// True for several records with the same keys: their names are data.
fn are_alike(members: &BTreeMap<String, Shape>) -> bool {
    let keys = |shape: &Shape| match shape.map.as_deref() {
        Some(MapShape::Record(members)) if !members.is_empty() => {
            Some(members.keys().cloned().collect::<Vec<_>>())
        }
        _ => None,
    };
    let mut all = members.values().map(keys);
    let Some(Some(first)) = all.next() else { return false };
    members.len() >= ALIKE && all.all(|keys| keys.as_ref() == Some(&first))
}

/// A value that is `levels` above the deepest level.
#[derive(Clone, Copy)]
struct Value<'l> {
    look: &'l Look<'l>,
    levels: usize,
}

impl Value<'_> {
    /// Takes one value from the budget; false when it is used up.
    fn take(&self) -> bool {
        let left = self.look.left.get();
        self.look.left.set(left.saturating_sub(1));
        left > 0
    }

    fn below(self) -> Self {
        Value { levels: self.levels - 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Shape;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Shape, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Shape;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Shape, E> {
        Ok(Shape::scalar(Scalars::NIL))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::scalar(Scalars::BOOLEAN))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::scalar(Scalars::INTEGER))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::scalar(Scalars::INTEGER))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::scalar(Scalars::FLOAT))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::scalar(Scalars::STRING))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
        let (mut length, mut items) = (0, Shape::default());
        while self.levels > 0 && length < ITEMS && self.take() {
            match list.next_element_seed(self.below())? {
                Some(item) => items = items.join(item),
                None => return Ok(Shape::of_list(length, Items::Of(items))),
            }
            length += 1;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            length += 1;
        }
        let items = if self.levels > 0 { Items::Of(items) } else { Items::Any };
        Ok(Shape::of_list(length, items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let (mut members, mut more) = (BTreeMap::<String, Shape>::new(), false);
        while self.levels > 0
            && members.len() < ITEMS.max(MOST_KEYS + 1)
            && self.take()
            && let Some(name) = map.next_key::<String>()?
        {
            let shape = map.next_value_seed(self.below())?;
            // Of two members with one name the last one counts.
            members.insert(name, shape);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            more = true;
        }
        Ok(Shape::of_map(match (self.levels, more) {
            (0, _) => MapShape::Any,
            (_, true) if members.len() > MOST_KEYS => {
                MapShape::Dictionary(members.into_values().fold(Shape::default(), Shape::join))
            }
            _ => self.look.map(members),
        }))
    }
}
