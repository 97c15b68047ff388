//! Gathers statistics on one field of maps (a key, or a path of keys) for the builtin `describe`: types, range,
//! distinct values and examples. `Fields` does so for all fields, by key.

use super::{Caps, MOST_KEYS, Name, Options, Summary, Types, histogram, keyword_map, text_map, type_name};
use crate::builtins::numbers::convert::parse_double;
use crate::context::Context;
use crate::fault::Result;
use crate::memory::{List, items};
use crate::print::{write_int, write_readable};
use crate::value::Value;
use crate::value::build::Text;
use crate::value::map::MapNode;
use crate::value::relation::equal::same_key;
use crate::value::relation::order;
use crate::value::set::SetNode;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;
use unicode_segmentation::UnicodeSegmentation;

/// Characters of one example.
const EXAMPLE_CHARS: usize = 120;
/// Bytes of one example: a single grapheme may be of any length.
const EXAMPLE_BYTES: usize = 4_096;
/// Distinct values that are counted.
const MOST_DISTINCT: usize = 50;
/// Longest text that may count as a number.
const NUMBER_CHARS: usize = 64;

/// Statistics of the values of a field.
#[derive(Default)]
pub(super) struct Field {
    types: Types,
    examples: List<Value>,
    /// Whether some value has a length; `non_empty` counts those with items.
    countable: bool,
    non_empty: i64,
    /// Smallest and largest number, numbers in text included.
    range: Option<(Value, Value)>,
    distinct: Option<Rc<SetNode>>,
    distinct_capped: bool,
    /// Number of owners that have the field. Values come owner by owner.
    present: i64,
    last_owner: Option<usize>,
    pub(super) values: i64,
}

items!(in_steps: (Value, Field));

impl Field {
    /// Takes one value in.
    pub(super) fn add(
        &mut self,
        cx: &mut Context,
        value: &Value,
        owner: usize,
        most_examples: usize,
    ) -> Result<()> {
        cx.tick(1)?;
        self.values += 1;
        if self.last_owner != Some(owner) {
            self.last_owner = Some(owner);
            self.present += 1;
        }
        *self.types.entry(type_name(value)).or_default() += 1;
        if let Some(empty) = value.has_no_items() {
            self.countable = true;
            self.non_empty += i64::from(!empty);
        }
        self.add_number(cx, value)?;
        self.add_distinct(cx, value)?;
        if self.examples.len() < most_examples {
            let example = example(cx, value)?;
            for known in self.examples.iter() {
                if same_key(cx, known, &example)? {
                    return Ok(());
                }
            }
            self.examples.push(cx, example)?;
        }
        Ok(())
    }

    fn add_number(&mut self, cx: &mut Context, value: &Value) -> Result<()> {
        let number = match value {
            Value::Int(_) | Value::BigInt(_) => value.clone(),
            Value::Float(float) if float.is_finite() => value.clone(),
            Value::Str(text) if text.len() <= NUMBER_CHARS => match parse_double(cx, &mut [value.clone()])? {
                Value::Float(float) if float.is_finite() => Value::Float(float),
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.range = Some(match self.range.take() {
            None => (number.clone(), number),
            Some((least, most)) => {
                let less = order::compare(cx, &number, &least)? == Ordering::Less;
                let more = order::compare(cx, &number, &most)? == Ordering::Greater;
                (if less { number.clone() } else { least }, if more { number } else { most })
            }
        });
        Ok(())
    }

    fn add_distinct(&mut self, cx: &mut Context, value: &Value) -> Result<()> {
        if self.distinct_capped || !(is_scalar(value) || matches!(value, Value::Str(_))) {
            return Ok(());
        }
        let seen = self.distinct.take().unwrap_or_else(SetNode::empty);
        let new = seen.find(cx, value)?.is_none();
        self.distinct_capped = new && seen.len() == MOST_DISTINCT;
        self.distinct =
            Some(if new && !self.distinct_capped { SetNode::insert(seen, cx, value.clone())? } else { seen });
        Ok(())
    }

    /// The entries of the summary; given the number of owners, also how many have the field.
    pub(super) fn finish(self, cx: &mut Context, owners: Option<usize>) -> Result<Summary> {
        let types = histogram(cx, &self.types)?;
        let mut summary = Summary::from_array([("types", types), ("examples", self.examples.into_value())]);
        if self.countable {
            summary.push(cx, ("non_empty", Value::Int(self.non_empty)))?;
        }
        if let Some((least, most)) = self.range {
            let range = keyword_map(cx, Summary::from_array([("min", least), ("max", most)]))?;
            summary.push(cx, ("range", range))?;
        }
        if let Some(distinct) = self.distinct {
            summary.push(cx, ("distinct_count", Value::Int(distinct.len() as i64)))?;
        }
        if self.distinct_capped {
            summary.push(cx, ("distinct_capped", Value::Bool(true)))?;
        }
        if let Some(owners) = owners {
            let share = self.present as f64 / owners.max(1) as f64;
            summary.push(cx, ("present", Value::Int(self.present)))?;
            summary.push(cx, ("pct", Value::Float((share * 1_000.0).round() / 10.0)))?;
        }
        Ok(summary)
    }
}

/// The fields of one map, or of all maps of a collection, by key.
#[derive(Default)]
pub(super) struct Fields {
    key_types: Types,
    /// The number of each key in `fields`.
    numbers: Option<Rc<MapNode>>,
    fields: List<(Value, Field)>,
}

impl Fields {
    /// Takes the entries of one map in.
    pub(super) fn add_entries(
        &mut self,
        cx: &mut Context,
        map: &MapNode,
        owner: usize,
        options: Options,
        caps: &mut Caps,
    ) -> Result<()> {
        if map.len() > MOST_KEYS {
            caps.insert("max_keys");
        }
        for &row in map.order(cx)?.iter().take(MOST_KEYS) {
            let entry = map.entry(row as usize);
            let numbers = self.numbers.get_or_insert_with(MapNode::empty);
            let number = match numbers.find(cx, entry.key)?.map(|row| numbers.value(row)) {
                Some(Value::Int(number)) => *number as usize,
                _ if self.fields.len() < MOST_KEYS => {
                    let number = Value::Int(self.fields.len() as i64);
                    let numbers = self.numbers.take().unwrap_or_else(MapNode::empty);
                    self.numbers = Some(MapNode::insert(numbers, cx, entry.key.clone(), number)?);
                    self.fields.push(cx, (entry.key.clone(), Field::default()))?;
                    self.fields.len() - 1
                }
                _ => {
                    caps.insert("max_keys");
                    continue;
                }
            };
            *self.key_types.entry(type_name(entry.key)).or_default() += 1;
            if let Some((_, field)) = self.fields.get_mut(number) {
                field.add(cx, entry.value, owner, options.examples)?;
            }
        }
        Ok(())
    }

    /// Adds the types of the keys, and a map from the text of each key to the summary of its field.
    pub(super) fn finish(self, cx: &mut Context, owners: Option<usize>, to: &mut Summary) -> Result<()> {
        let key_types = histogram(cx, &self.key_types)?;
        to.push(cx, ("key_types", key_types))?;
        let keys = cx.collect(self.fields.iter().map(|(key, _)| key.clone()))?;
        let names = key_names(cx, &keys)?;
        let mut entries = List::with_capacity(cx, names.len())?;
        for (name, (_, field)) in names.into_iter().zip(self.fields) {
            let summary = field.finish(cx, owners)?;
            let summary = keyword_map(cx, summary)?;
            entries.push(cx, (name, summary))?;
        }
        let keys = text_map(cx, entries)?;
        to.push(cx, ("keys", keys))
    }
}

/// The text of each key. Keys with the same text are distinguished by their type and, if that is not enough, by a
/// number.
pub(super) fn key_names(cx: &mut Context, keys: &[Value]) -> Result<List<Name>> {
    let mut texts = List::with_capacity(cx, keys.len())?;
    for key in keys {
        let text = match example(cx, key)? {
            Value::Str(text) => text,
            other => {
                let mut text = Text::limited(EXAMPLE_CHARS);
                write_readable(cx, &mut text, &other)?;
                text.into_node()
            }
        };
        texts.push(cx, text)?;
    }
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for text in texts.iter() {
        *count.entry(cx.read(text)?).or_default() += 1;
    }
    let mut used: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut names = List::with_capacity(cx, keys.len())?;
    for (key, text) in keys.iter().zip(texts.iter()) {
        let (kind, own) = (type_name(key), cx.read(text)?);
        if count.get(own) == Some(&1) {
            names.push(cx, text.clone())?;
            continue;
        }
        let number = used.entry((kind, own)).or_default();
        *number += 1;
        let mut name = Text::new();
        for part in [kind, ":", own] {
            name.push(cx, part)?;
        }
        if *number > 1 {
            name.push(cx, "#")?;
            write_int(cx, &mut name, *number as i64)?;
        }
        names.push(cx, name.into_node())?;
    }
    Ok(names)
}

/// True for values of bounded size that mean what they show; texts are of any size.
fn is_scalar(value: &Value) -> bool {
    matches!(
        value,
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::BigInt(_) | Value::Float(_) | Value::Keyword(_)
    )
}

/// A value as an example: scalars unchanged, collections as text, both of bounded length.
pub(super) fn example(cx: &mut Context, value: &Value) -> Result<Value> {
    match value {
        Value::Str(node) => {
            if node.len() <= EXAMPLE_CHARS {
                return Ok(value.clone());
            }
            let (text, chars) = (cx.read(node)?, cx.graphemes(node)?);
            if chars <= EXAMPLE_CHARS && text.len() <= EXAMPLE_BYTES {
                return Ok(value.clone());
            }
            let start = &text[..text.floor_char_boundary(EXAMPLE_BYTES)];
            let end = start.grapheme_indices(true).nth(EXAMPLE_CHARS).map_or(start.len(), |(at, _)| at);
            let mut shown = Text::new();
            shown.push(cx, &start[..end])?;
            shown.push(cx, "...(")?;
            write_int(cx, &mut shown, chars as i64)?;
            shown.push(cx, " chars)")?;
            Ok(shown.into_value())
        }
        scalar if is_scalar(scalar) => Ok(scalar.clone()),
        other => {
            let mut printed = Text::limited(EXAMPLE_CHARS);
            write_readable(cx, &mut printed, other)?;
            let mut shown = Text::new();
            shown.push(cx, printed.as_str())?;
            shown.push(cx, if printed.is_cut() { "..." } else { "" })?;
            Ok(shown.into_value())
        }
    }
}
