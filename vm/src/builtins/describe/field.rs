//! One field of a summary: all values that one key, or one path, has.

use super::{Caps, MOST_KEYS, Options, Types, histogram, keyword_map, text_map, type_name};
use crate::builtins::convert::parse_double;
use crate::context::Context;
use crate::equal::same_key;
use crate::fault::Result;
use crate::map::MapNode;
use crate::order;
use crate::set::SetNode;
use crate::value::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;
use unicode_segmentation::UnicodeSegmentation;

/// Characters of one example.
const EXAMPLE_CHARS: usize = 120;
/// Different values that are counted.
const MOST_DISTINCT: usize = 50;
/// Longest text that may count as a number.
const NUMBER_CHARS: usize = 64;

/// What is known about the values of a field.
#[derive(Default)]
pub(super) struct Field {
    types: Types,
    examples: Vec<Value>,
    /// Some value has a length; how many are not empty.
    countable: bool,
    non_empty: i64,
    /// Smallest and largest number, numbers in text included.
    range: Option<(Value, Value)>,
    distinct: Option<Rc<SetNode>>,
    distinct_capped: bool,
    /// Owners that have the field. Values come owner by owner.
    present: i64,
    last_owner: Option<usize>,
    pub(super) values: i64,
}

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
        let empty = match value {
            Value::Str(text) => Some(text.as_str().is_empty()),
            Value::Vector(vector) => Some(vector.is_empty()),
            Value::Map(map) => Some(map.is_empty()),
            Value::Set(set) => Some(set.is_empty()),
            _ => None,
        };
        if let Some(empty) = empty {
            self.countable = true;
            self.non_empty += i64::from(!empty);
        }
        self.add_number(cx, value)?;
        self.add_distinct(cx, value)?;
        if self.examples.len() < most_examples {
            let example = example(cx, value)?;
            for known in &self.examples {
                if same_key(cx, known, &example)? {
                    return Ok(());
                }
            }
            self.examples.push(example);
        }
        Ok(())
    }

    fn add_number(&mut self, cx: &mut Context, value: &Value) -> Result<()> {
        let number = match value {
            Value::Int(_) | Value::BigInt(_) => value.clone(),
            Value::Float(float) if float.is_finite() => value.clone(),
            Value::Str(text) if text.as_str().len() <= NUMBER_CHARS => {
                match parse_double(cx, &mut [value.clone()])? {
                    Value::Float(float) if float.is_finite() => Value::Float(float),
                    _ => return Ok(()),
                }
            }
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
        let scalar = matches!(
            value,
            Value::Nil
                | Value::Bool(_)
                | Value::Int(_)
                | Value::BigInt(_)
                | Value::Float(_)
                | Value::Keyword(_)
                | Value::Str(_)
        );
        if !scalar || self.distinct_capped {
            return Ok(());
        }
        let seen = self.distinct.take().unwrap_or_else(SetNode::empty);
        let new = seen.find(cx, value)?.is_none();
        self.distinct_capped = new && seen.len() == MOST_DISTINCT;
        self.distinct =
            Some(if new && !self.distinct_capped { SetNode::insert(seen, cx, value.clone())? } else { seen });
        Ok(())
    }

    /// The entries of the summary; with the number of owners, also how many have the field.
    pub(super) fn finish(
        self,
        cx: &mut Context,
        owners: Option<usize>,
    ) -> Result<Vec<(&'static str, Value)>> {
        let mut summary =
            vec![("types", histogram(cx, &self.types)?), ("examples", Value::vector(self.examples))];
        if self.countable {
            summary.push(("non_empty", Value::Int(self.non_empty)));
        }
        if let Some((least, most)) = self.range {
            summary.push(("range", keyword_map(cx, vec![("min", least), ("max", most)])?));
        }
        if let Some(distinct) = self.distinct {
            summary.push(("distinct_count", Value::Int(distinct.len() as i64)));
        }
        if self.distinct_capped {
            summary.push(("distinct_capped", Value::Bool(true)));
        }
        if let Some(owners) = owners {
            let share = self.present as f64 / owners.max(1) as f64;
            summary.push(("present", Value::Int(self.present)));
            summary.push(("pct", Value::Float((share * 1_000.0).round() / 10.0)));
        }
        Ok(summary)
    }
}

/// The fields of one map, or of all maps of a collection, by key.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) key_types: Types,
    /// The number of each key in `fields`.
    numbers: Option<Rc<MapNode>>,
    fields: Vec<(Value, Field)>,
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
            let numbers = self.numbers.take().unwrap_or_else(MapNode::empty);
            let number = match numbers.find(cx, entry.key)?.map(|row| numbers.value(row)) {
                Some(Value::Int(number)) => Some(*number as usize),
                _ => None,
            };
            let number = match number {
                Some(number) => {
                    self.numbers = Some(numbers);
                    number
                }
                None if self.fields.len() < MOST_KEYS => {
                    let number = Value::Int(self.fields.len() as i64);
                    self.numbers = Some(MapNode::insert(numbers, cx, entry.key.clone(), number)?);
                    self.fields.push((entry.key.clone(), Field::default()));
                    self.fields.len() - 1
                }
                None => {
                    self.numbers = Some(numbers);
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

    /// A map from the text of each key to the summary of its field.
    pub(super) fn finish(self, cx: &mut Context, owners: Option<usize>) -> Result<Value> {
        let keys: Vec<Value> = self.fields.iter().map(|(key, _)| key.clone()).collect();
        let names = key_names(cx, &keys)?;
        let mut entries = Vec::with_capacity(names.len());
        for (name, (_, field)) in names.into_iter().zip(self.fields) {
            let summary = field.finish(cx, owners)?;
            entries.push((name, keyword_map(cx, summary)?));
        }
        text_map(cx, entries)
    }
}

/// The text of each key. Keys with the same text are told apart by their type, and by a number if that
/// does not do.
pub(super) fn key_names(cx: &mut Context, keys: &[Value]) -> Result<Vec<String>> {
    let mut texts = Vec::with_capacity(keys.len());
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for key in keys {
        let text = match example(cx, key)? {
            Value::Str(text) => text.as_str().to_owned(),
            other => crate::print::pr_str(cx, &other, EXAMPLE_CHARS)?.text,
        };
        *count.entry(text.clone()).or_default() += 1;
        texts.push(text);
    }
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    Ok(keys
        .iter()
        .zip(texts)
        .map(|(key, text)| {
            if count.get(&text) == Some(&1) {
                return text;
            }
            let name = format!("{}:{text}", type_name(key));
            let number = used.entry(name.clone()).or_default();
            *number += 1;
            if *number == 1 { name } else { format!("{name}#{number}") }
        })
        .collect())
}

/// A value as an example: scalars as they are, collections as text, both of bounded length.
pub(super) fn example(cx: &mut Context, value: &Value) -> Result<Value> {
    match value {
        Value::Str(node) => {
            let text = node.as_str();
            if text.len() <= EXAMPLE_CHARS {
                return Ok(value.clone());
            }
            cx.tick(text.len() as u64)?;
            let chars = node.graphemes();
            if chars <= EXAMPLE_CHARS {
                return Ok(value.clone());
            }
            let start: String = text.graphemes(true).take(EXAMPLE_CHARS).collect();
            Ok(Value::string(&format!("{start}...({chars} chars)")))
        }
        Value::Nil
        | Value::Bool(_)
        | Value::Int(_)
        | Value::BigInt(_)
        | Value::Float(_)
        | Value::Keyword(_) => Ok(value.clone()),
        other => {
            let printed = crate::print::pr_str(cx, other, EXAMPLE_CHARS)?;
            let more = if printed.truncated { "..." } else { "" };
            Ok(Value::string(&format!("{}{more}", printed.text)))
        }
    }
}
