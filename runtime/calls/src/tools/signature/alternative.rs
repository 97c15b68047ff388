//! Simplifies one alternative of a JSON Schema (as in `anyOf`) to types, members and limits, and intersects it with
//! another, so that it can be written as a short signature.

use super::types::TypeId;
use crate::schema::{member, type_of};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Limits of which the larger one is stricter.
const LEAST: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];

/// Limits of which the smaller one is stricter.
const MOST_LIMITS: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

/// Constraints of which only the first is shown.
const FIRST: [&str; 3] = ["multipleOf", "format", "pattern"];

/// A schema that a value has to match, or must not match.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Constraint<'s> {
    Is(&'s Json),
    Not(&'s Json),
}

impl<'s> Constraint<'s> {
    fn schema(self) -> &'s Json {
        match self {
            Constraint::Is(schema) | Constraint::Not(schema) => schema,
        }
    }
}

/// What a value has to match, all at once.
pub(crate) type Demand<'s> = Vec<Constraint<'s>>;

/// A member of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainMember<'s> {
    pub(crate) demand: Demand<'s>,
    pub(crate) required: bool,
    /// Its index among the members, in schema order.
    pub(super) position: usize,
    /// It must be absent.
    absent: bool,
}

/// One alternative.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plain<'s> {
    /// Allowed types; `None` for any.
    pub(crate) kinds: Option<Vec<&'s str>>,
    /// The only allowed values.
    pub(crate) values: Option<Vec<&'s Json>>,
    /// Values that are not allowed.
    pub(crate) refused: Vec<&'s Json>,
    /// Schemas that the value must not match and that cannot be expressed by members and limits.
    pub(crate) unlike: Vec<&'s Json>,
    pub(super) members: BTreeMap<&'s str, PlainMember<'s>>,
    /// Names of required members, in order.
    required: Vec<&'s str>,
    /// Other members are not allowed.
    pub(crate) closed: bool,
    /// Other members may be anything.
    pub(crate) open: bool,
    /// What other members have to match.
    pub(crate) others: Demand<'s>,
    pub(crate) items: Demand<'s>,
    /// Schemas of the first items, one each.
    pub(crate) first_items: Option<&'s [Json]>,
    pub(super) limits: BTreeMap<&'s str, Cow<'s, Json>>,
    pub(crate) default: Option<&'s Json>,
    /// Its description.
    pub(crate) about: Option<&'s str>,
    /// The types that it is an alternative of, without further constraints; the innermost first.
    pub(super) types: Vec<TypeId>,
}

impl<'s> Plain<'s> {
    /// The only allowed values, if it has such.
    pub(super) fn values(&self) -> &[&'s Json] {
        self.values.as_deref().unwrap_or_default()
    }

    /// A constraint by its JSON Schema name.
    pub(crate) fn limit(&self, name: &str) -> Option<&Json> {
        self.limits.get(name).map(|limit| &**limit)
    }

    /// Whether a value is within the limits of numbers and of the length of texts.
    fn is_within(&self, value: &Json) -> bool {
        let is_beyond = |name: &str, is_beyond: &dyn Fn(f64) -> bool| {
            self.limit(name).and_then(Json::as_f64).is_some_and(is_beyond)
        };
        match value {
            Json::Number(number) => number.as_f64().is_none_or(|number| {
                !(is_beyond("minimum", &|least| number < least)
                    || is_beyond("maximum", &|most| number > most)
                    || is_beyond("exclusiveMinimum", &|least| number <= least)
                    || is_beyond("exclusiveMaximum", &|most| number >= most)
                    || is_beyond("multipleOf", &|step| step > 0.0 && (number / step).fract() != 0.0))
            }),
            Json::String(text) => {
                let length = text.chars().count() as f64;
                !(is_beyond("minLength", &|least| length < least)
                    || is_beyond("maxLength", &|most| length > most))
            }
            _ => true,
        }
    }

    /// Its members: required ones in order, then the others by name.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'s str, &PlainMember<'s>)> {
        let member = |name: &&'s str| self.members.get_key_value(name).map(|(name, member)| (*name, member));
        let others = self.members.iter().filter(|(_, member)| !member.required && !member.absent);
        self.required.iter().filter_map(member).chain(others.map(|(name, member)| (*name, member)))
    }

    /// Names of required members.
    pub(crate) fn required(&self) -> &[&'s str] {
        &self.required
    }

    /// True when this member is required.
    pub(crate) fn requires(&self, name: &str) -> bool {
        self.members.get(name).is_some_and(|member| member.required)
    }

    /// True when some member must be absent.
    pub(crate) fn leaves_out(&self) -> bool {
        self.members.values().any(|member| member.absent)
    }

    /// The types that it accepts, as far as known.
    pub(crate) fn kinds(&self) -> Vec<&'s str> {
        let says = |names: &[&str]| names.iter().any(|name| self.limits.contains_key(name));
        match &self.kinds {
            Some(kinds) => kinds.clone(),
            None if !self.members.is_empty() || !self.others.is_empty() => vec!["object"],
            None if !self.items.is_empty() || self.first_items.is_some() => vec!["array"],
            None if says(&["minLength", "maxLength", "pattern", "format"]) => vec!["string"],
            None if says(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) => {
                vec!["number"]
            }
            None => Vec::new(),
        }
    }

    pub(super) fn require(&mut self, name: &'s str) {
        let member = self.members.entry(name).or_default();
        if !std::mem::replace(&mut member.required, true) {
            self.required.push(name);
            self.types.clear();
        }
    }

    pub(super) fn leave_out(&mut self, name: &'s str) {
        self.members.entry(name).or_default().absent = true;
        self.types.clear();
    }

    /// True when any value matches.
    fn is_any(&self) -> bool {
        self.kinds.is_none()
            && self.values.is_none()
            && self.refused.is_empty()
            && self.unlike.is_empty()
            && self.members.is_empty()
            && !self.closed
            && !self.open
            && self.others.is_empty()
            && self.items.is_empty()
            && self.first_items.is_none()
            && self.limits.is_empty()
    }

    /// The intersection of both; `None` when it is empty.
    pub(super) fn and(mut self, mut other: Plain<'s>) -> Option<Plain<'s>> {
        let types = match (self.is_any(), other.is_any()) {
            (_, true) => std::mem::take(&mut self.types),
            (true, false) => std::mem::take(&mut other.types),
            (false, false) => Vec::new(),
        };
        self.kinds = match (self.kinds, other.kinds) {
            (Some(these), Some(those)) => Some(shared_kinds(&these, &those)),
            (these, those) => these.or(those),
        };
        self.values = match (self.values, other.values) {
            (Some(these), Some(those)) => {
                Some(these.into_iter().filter(|value| those.contains(value)).collect())
            }
            (these, those) => these.or(those),
        };
        self.refused.extend(other.refused);
        self.unlike.extend(other.unlike);
        // A closed alternative has no other members than its own.
        let mut lost: Vec<&str> = Vec::new();
        if self.closed {
            lost.extend(other.members.keys().filter(|name| !self.members.contains_key(*name)));
        }
        if other.closed {
            lost.extend(self.members.keys().filter(|name| !other.members.contains_key(*name)));
        }
        let count = self.members.len();
        for (name, member) in other.members {
            let position = count + member.position;
            let own = self.members.entry(name).or_insert(PlainMember { position, ..PlainMember::default() });
            own.demand.extend(member.demand);
            own.absent |= member.absent || !can_be(&own.demand);
        }
        lost.into_iter().for_each(|name| self.leave_out(name));
        for name in other.required {
            self.require(name);
        }
        self.closed |= other.closed;
        self.open |= other.open;
        self.others.extend(other.others);
        self.items.extend(other.items);
        self.first_items = self.first_items.or(other.first_items);
        for (name, limit) in other.limits {
            let own = self.limits.entry(name).or_insert_with(|| limit.clone());
            if let (Some(these), Some(those)) = (own.as_f64(), limit.as_f64())
                && ((LEAST.contains(&name) && those > these)
                    || (MOST_LIMITS.contains(&name) && those < these))
            {
                *own = limit;
            }
        }
        self.drop_empty_ranges();
        if let Some(values) = self.values.take() {
            let kinds = self.kinds.as_deref();
            let fits = |value: &&Json| {
                !self.refused.contains(value)
                    && kinds.is_none_or(|kinds| is_of(value, kinds))
                    && self.is_within(value)
            };
            self.values = Some(values.into_iter().filter(fits).collect());
        }
        self.default = self.default.or(other.default);
        self.about = self.about.or(other.about);
        self.types = types;
        self.is_possible().then_some(self)
    }

    /// Drops types of which the limits leave no value.
    fn drop_empty_ranges(&mut self) {
        let limit = |name: &str| self.limit(name).and_then(Json::as_f64);
        let is_empty = |least: &str, most: &str| match (limit(least), limit(most)) {
            (Some(low), Some(high)) if least.starts_with("ex") || most.starts_with("ex") => low >= high,
            (Some(low), Some(high)) => low > high,
            _ => false,
        };
        let numbers = is_empty("minimum", "maximum")
            || is_empty("exclusiveMinimum", "maximum")
            || is_empty("minimum", "exclusiveMaximum")
            || is_empty("exclusiveMinimum", "exclusiveMaximum");
        let empty = [
            (numbers, "integer"),
            (numbers, "number"),
            (is_empty("minLength", "maxLength"), "string"),
            (is_empty("minItems", "maxItems"), "array"),
            (is_empty("minProperties", "maxProperties"), "object"),
        ];
        if let Some(kinds) = &mut self.kinds {
            kinds.retain(|kind| !empty.contains(&(true, kind)));
        }
    }

    fn is_possible(&self) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| !kinds.is_empty())
            && self.values.as_ref().is_none_or(|values| !values.is_empty())
            && !self.members.values().any(|member| member.required && member.absent)
    }
}

/// The types in both lists; an integer is a number.
fn shared_kinds<'s>(these: &[&'s str], those: &[&'s str]) -> Vec<&'s str> {
    let is_in = |kind: &&str, others: &[&str]| {
        others.contains(kind) || (*kind == "integer" && others.contains(&"number"))
    };
    let mut shared: Vec<&str> = these.iter().filter(|kind| is_in(kind, those)).copied().collect();
    let more: Vec<&str> =
        those.iter().filter(|kind| is_in(kind, these) && !shared.contains(*kind)).copied().collect();
    shared.extend(more);
    shared
}

fn is_of(value: &Json, kinds: &[&str]) -> bool {
    let kind = type_of(value);
    let is_whole = || value.as_f64().is_some_and(|number| number.fract() == 0.0);
    kinds.contains(&kind)
        || (kind == "integer" && kinds.contains(&"number"))
        || (kind == "number" && kinds.contains(&"integer") && is_whole())
}

/// False when the constants and enumerations of a demand leave no value.
fn can_be(demand: &Demand<'_>) -> bool {
    let mut left: Option<Vec<&Json>> = None;
    for said in demand {
        if let (Constraint::Is(_), Some(values)) = (said, listed(said.schema())) {
            left = Some(match left {
                Some(left) => left.into_iter().filter(|value| values.contains(value)).collect(),
                None => values,
            });
        }
    }
    for said in demand {
        if let (Constraint::Not(_), Some(left), Some(values)) = (said, &mut left, listed(said.schema())) {
            left.retain(|value| !values.contains(value));
        }
    }
    left.is_none_or(|left| !left.is_empty())
}

/// The values that a schema lists.
fn listed(schema: &Json) -> Option<Vec<&Json>> {
    match member(schema, "const") {
        Some(fixed) => Some(vec![fixed]),
        None => Some(member(schema, "enum")?.as_array()?.iter().collect()),
    }
}

/// The alternative that a schema's own keywords describe; `None` when no value matches.
pub(super) fn own(words: &Map<String, Json>) -> Option<Plain<'_>> {
    let mut plain = Plain {
        kinds: words.get("type").map(names).filter(|kinds| !kinds.is_empty()),
        default: words.get("default"),
        about: words.get("description").and_then(Json::as_str),
        ..Plain::default()
    };
    let properties = words.get("properties").and_then(Json::as_object).into_iter().flatten();
    for (position, (name, schema)) in properties.enumerate() {
        let member = PlainMember {
            position,
            demand: vec![Constraint::Is(schema)],
            required: false,
            absent: schema == &Json::Bool(false),
        };
        plain.members.insert(name, member);
    }
    for name in words.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
    {
        plain.require(name);
    }
    match words.get("additionalProperties") {
        // Names that match a pattern count as other members, which are not shown.
        Some(Json::Bool(false)) => plain.closed = !words.contains_key("patternProperties"),
        Some(Json::Bool(true)) => plain.open = true,
        Some(schema @ Json::Object(_)) => plain.others.push(Constraint::Is(schema)),
        _ => {}
    }
    plain.first_items =
        words.get("prefixItems").or_else(|| words.get("items")).and_then(Json::as_array).map(Vec::as_slice);
    plain.items.extend(words.get("items").filter(|items| items.is_object()).map(Constraint::Is));
    for name in LEAST.into_iter().chain(MOST_LIMITS) {
        plain.limits.extend(
            words
                .get_key_value(name)
                .filter(|(_, limit)| limit.is_number())
                .map(|(name, limit)| (name.as_str(), Cow::Borrowed(limit))),
        );
    }
    for name in FIRST {
        plain
            .limits
            .extend(words.get_key_value(name).map(|(name, limit)| (name.as_str(), Cow::Borrowed(limit))));
    }
    let listed = words.get("enum").and_then(Json::as_array).filter(|values| !values.is_empty());
    plain.values = match words.get("const") {
        Some(fixed) => Some(vec![fixed]),
        None => listed.map(|values| values.iter().collect()),
    };
    // The intersection with the default drops contradictions inside the alternative.
    plain.and(Plain::default())
}

/// The names in `type`.
pub(super) fn names(kinds: &Json) -> Vec<&str> {
    match kinds {
        Json::String(kind) => vec![kind],
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}
