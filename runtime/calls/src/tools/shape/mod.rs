//! Learns the shape of a tool's results (their keys and types, never values) from results that were seen, for tools
//! without an output schema.
//!
//! A shape describes a set of values. `Shape::join` gives the shape of both sets. It is associative and
//! commutative, so results can be looked at in any order, by several processes. Shapes are bounded (`Learned`).
//!
//! - here: shapes and how they are joined. `observe`: the shape of one result. `keys`: which keys are names, and
//!   which may be data. `table`: texts that are tables. `render`: shapes as signatures.

mod keys;
mod observe;
mod render;
mod table;
#[cfg(test)]
mod tests;

pub use observe::Given;
pub(crate) use observe::observe;
pub(crate) use table::TableForm;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the results of a tool without an output schema were like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenResults {
    /// How many there were.
    pub times: u64,
    /// How long lists or texts were.
    pub size: Option<String>,
    /// Their shape, in the notation of signatures.
    pub shape: String,
}

/// Limit of the keys of a map. The keys of a larger one are data, and are not stored.
const MOST_KEYS: usize = 40;

/// Limit of levels that are looked at.
const DEEPEST: usize = 6;

/// Limit of the weight of all shapes of a tool, about 20 bytes each.
const HEAVIEST: usize = 1_024;

/// In how many results a key was. Results with the same bytes count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// In the one with this digest.
    One(u64),
    /// In several different ones.
    Several,
}

impl Evidence {
    /// What was stored had been seen in several.
    fn stored() -> Evidence {
        Evidence::Several
    }

    fn join(self, other: Evidence) -> Evidence {
        if self == other { self } else { Evidence::Several }
    }
}

/// The types of scalars that were seen, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scalars(u8);

impl Scalars {
    const NIL: Scalars = Scalars(1);
    const BOOLEAN: Scalars = Scalars(2);
    const INTEGER: Scalars = Scalars(4);
    const FLOAT: Scalars = Scalars(8);
    const STRING: Scalars = Scalars(16);

    fn contains(self, other: Scalars) -> bool {
        self.0 & other.0 == other.0
    }

    fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

/// The least and the greatest length, each as the number of bits that it takes: 0 for 0, 3 for 4 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lengths(u8, u8);

impl Lengths {
    fn of(length: usize) -> Lengths {
        let bits = u8::try_from(usize::BITS - length.leading_zeros()).unwrap_or(u8::MAX);
        Lengths(bits, bits)
    }

    fn join(self, other: Lengths) -> Lengths {
        Lengths(self.0.min(other.0), self.1.max(other.1))
    }
}

/// The shape of values. The default is that of no value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Shape {
    #[serde(rename = "s", skip_serializing_if = "Scalars::is_empty")]
    scalars: Scalars,
    #[serde(rename = "l", skip_serializing_if = "Option::is_none")]
    list: Option<Box<ListShape>>,
    #[serde(rename = "m", skip_serializing_if = "Option::is_none")]
    map: Option<Box<MapShape>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ListShape {
    #[serde(rename = "n")]
    lengths: Lengths,
    #[serde(rename = "i")]
    items: Items,
}

/// The items of lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Items {
    #[serde(rename = "o")]
    Of(Shape),
    /// They lie too deep.
    #[serde(rename = "a")]
    Any,
}

/// The members of maps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum MapShape {
    /// Nothing is known of the members yet. Joined with another shape it is that one.
    #[serde(rename = "u")]
    Unknown,
    /// Records: keys are names.
    #[serde(rename = "k")]
    Record(BTreeMap<String, Member>),
    /// Dictionaries: keys are data.
    #[serde(rename = "d")]
    Dictionary(Shape),
    /// They lie too deep.
    #[serde(rename = "a")]
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Member {
    /// Some maps do not have it.
    #[serde(rename = "q", default, skip_serializing_if = "std::ops::Not::not")]
    is_optional: bool,
    #[serde(rename = "v")]
    shape: Shape,
    #[serde(skip, default = "Evidence::stored")]
    evidence: Evidence,
}

impl Shape {
    fn scalar(scalars: Scalars) -> Shape {
        Shape { scalars, ..Shape::default() }
    }

    fn of_list(length: usize, items: Items) -> Shape {
        Shape { list: Some(Box::new(ListShape { lengths: Lengths::of(length), items })), ..Shape::default() }
    }

    fn of_map(map: MapShape) -> Shape {
        Shape { map: Some(Box::new(map)), ..Shape::default() }
    }

    /// The shape of the values of both.
    pub(crate) fn join(self, other: Shape) -> Shape {
        let list = either(self.list, other.list, |one, other| {
            let items = match (one.items, other.items) {
                (Items::Of(one), Items::Of(other)) => Items::Of(one.join(other)),
                (Items::Any, _) | (_, Items::Any) => Items::Any,
            };
            Box::new(ListShape { lengths: one.lengths.join(other.lengths), items })
        });
        let map = either(self.map, other.map, |one, other| Box::new(one.join(*other)));
        Shape { scalars: Scalars(self.scalars.0 | other.scalars.0), list, map }
    }

    /// Forgets what lies deeper than so many levels.
    fn truncate(&mut self, levels: usize) {
        if let Some(list) = &mut self.list {
            match (&mut list.items, levels) {
                (items, 0) => *items = Items::Any,
                (Items::Of(items), _) => items.truncate(levels - 1),
                (Items::Any, _) => {}
            }
        }
        if let Some(map) = &mut self.map {
            match (&mut **map, levels) {
                (map, 0) => *map = MapShape::Any,
                (MapShape::Record(members), _) => {
                    members.values_mut().for_each(|member| member.shape.truncate(levels - 1));
                }
                (MapShape::Dictionary(values), _) => values.truncate(levels - 1),
                (MapShape::Unknown | MapShape::Any, _) => {}
            }
        }
    }

    /// The size without what lies deeper than so many levels. A dictionary weighs as much as the largest record that
    /// could become part of it, so joining never makes a shape lighter: the bound does not depend on the order.
    fn weight(&self, levels: usize) -> usize {
        let below = |shape: &Shape| shape.weight(levels - 1);
        let list = self.list.as_ref().map_or(0, |list| match &list.items {
            Items::Of(items) if levels > 0 => 1 + below(items),
            Items::Of(_) | Items::Any => 1,
        });
        let map = self.map.as_deref().map_or(0, |map| match map {
            MapShape::Record(members) if levels > 0 => {
                members.values().fold(1usize, |sum, member| sum.saturating_add(1 + below(&member.shape)))
            }
            MapShape::Dictionary(values) if levels > 0 => 1 + MOST_KEYS.saturating_mul(1 + below(values)),
            MapShape::Record(_) | MapShape::Dictionary(_) | MapShape::Unknown | MapShape::Any => 1,
        });
        list.saturating_add(map).saturating_add(1)
    }

    /// Without the keys of records that were in one result only, unless they are named. Of a record with more such keys
    /// than others nothing is left: its keys may be data.
    fn keep_confirmed(&mut self, is_named: &dyn Fn(&str) -> bool) {
        if let Some(list) = &mut self.list
            && let Items::Of(items) = &mut list.items
        {
            items.keep_confirmed(is_named);
        }
        let Some(map) = self.map.as_deref_mut() else { return };
        match map {
            MapShape::Record(members) => {
                let all = members.len();
                members.retain(|name, member| member.evidence == Evidence::Several || is_named(name));
                members.values_mut().for_each(|member| member.shape.keep_confirmed(is_named));
                if 2 * members.len() < all {
                    *map = MapShape::Unknown;
                }
            }
            MapShape::Dictionary(values) => values.keep_confirmed(is_named),
            MapShape::Unknown | MapShape::Any => {}
        }
    }
}

impl MapShape {
    fn join(self, other: MapShape) -> MapShape {
        match (self, other) {
            (MapShape::Unknown, map) | (map, MapShape::Unknown) => map,
            (MapShape::Any, _) | (_, MapShape::Any) => MapShape::Any,
            (MapShape::Dictionary(one), MapShape::Dictionary(other)) => MapShape::Dictionary(one.join(other)),
            (MapShape::Dictionary(values), MapShape::Record(members))
            | (MapShape::Record(members), MapShape::Dictionary(values)) => {
                MapShape::Dictionary(all_of(members).join(values))
            }
            (MapShape::Record(mut one), MapShape::Record(other)) => {
                for (name, member) in &mut one {
                    member.is_optional |= !other.contains_key(name);
                }
                for (name, mut member) in other {
                    let joined = match one.remove(&name) {
                        None => {
                            member.is_optional = true;
                            member
                        }
                        Some(known) => Member {
                            is_optional: known.is_optional | member.is_optional,
                            shape: known.shape.join(member.shape),
                            evidence: known.evidence.join(member.evidence),
                        },
                    };
                    one.insert(name, joined);
                }
                MapShape::record(one)
            }
        }
    }

    /// A record, unless it has too many keys.
    fn record(members: BTreeMap<String, Member>) -> MapShape {
        match members.len() > MOST_KEYS {
            true => MapShape::Dictionary(all_of(members)),
            false => MapShape::Record(members),
        }
    }
}

/// The shape of the values of all members.
fn all_of(members: BTreeMap<String, Member>) -> Shape {
    members.into_values().fold(Shape::default(), |all, member| all.join(member.shape))
}

fn either<T>(one: Option<T>, other: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(join(one, other)),
        (one, other) => one.or(other),
    }
}

/// What is known about the results of a tool. Its size is bounded: of a shape that grows too heavy the deepest levels are
/// forgotten, whatever the order in which the results came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Learned {
    /// Levels that are still known.
    levels: usize,
    shape: Shape,
    /// Lengths of results that are texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Lengths>,
    /// Texts that were tables or lines of JSON, with the shape of a row.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tables: BTreeMap<TableForm, Shape>,
    /// Some texts were none of these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    other_texts: bool,
}

impl Default for Learned {
    /// What is known before the first result.
    fn default() -> Learned {
        Learned {
            levels: DEEPEST,
            shape: Shape::default(),
            text: None,
            tables: BTreeMap::new(),
            other_texts: false,
        }
    }
}

impl Learned {
    /// What is known from the results of both.
    pub(crate) fn join(mut self, other: Learned) -> Learned {
        self.levels = self.levels.min(other.levels);
        self.shape = self.shape.join(other.shape);
        self.text = either(self.text, other.text, Lengths::join);
        for (form, rows) in other.tables {
            let known = self.tables.remove(&form).unwrap_or_default();
            self.tables.insert(form, known.join(rows));
        }
        self.other_texts |= other.other_texts;
        self.bounded()
    }

    /// With no more levels than the limit of its weight allows.
    fn bounded(mut self) -> Learned {
        let shapes = || std::iter::once(&self.shape).chain(self.tables.values());
        let weight = |levels| shapes().fold(0usize, |sum, shape| sum.saturating_add(shape.weight(levels)));
        let levels = (0..=self.levels).rev().find(|&levels| weight(levels) <= HEAVIEST).unwrap_or_default();
        self.levels = levels;
        self.shape.truncate(levels);
        self.tables.values_mut().for_each(|rows| rows.truncate(levels));
        self
    }

    /// As it may be stored: without the keys that were in one result only, unless the tool itself names them. Such a
    /// key may be data, like the name of a session.
    pub(crate) fn confirmed(mut self, is_named: &dyn Fn(&str) -> bool) -> Learned {
        self.shape.keep_confirmed(is_named);
        self.tables.values_mut().for_each(|rows| rows.keep_confirmed(is_named));
        self
    }
}
