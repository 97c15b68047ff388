//! Summarises the values at each path of keys through nested maps and vectors, for the option `:paths` of the builtin
//! `describe`.

use super::field::{Field, key_names};
use super::{Caps, MOST_ITEMS, MOST_KEYS, Name, Options, keyword_map, text_map};
use crate::context::Context;
use crate::fault::Result;
use crate::memory::List;
use crate::value::Value;
use crate::value::build::Text;
use std::collections::BTreeMap;

/// Paths that are listed separately.
const MOST_PATHS: usize = 300;
/// Values examined over all paths.
const MOST_VALUES: i64 = 10_000;
/// Levels of nested vectors that are looked through.
const MOST_NESTED: usize = 5;

/// Paths under construction. The native stack holds one call for each level of maps and vectors, and both
/// are bounded.
struct Paths<'c> {
    fields: BTreeMap<Name, Field>,
    values: i64,
    options: Options,
    caps: &'c mut Caps,
}

/// A map from each path to the summary of its values.
pub(super) fn paths(cx: &mut Context, value: &Value, options: Options, caps: &mut Caps) -> Result<Value> {
    let mut paths = Paths { fields: BTreeMap::new(), values: 0, options, caps };
    let owners = match value {
        Value::Vector(items) => {
            let scanned = items.len().min(MOST_ITEMS);
            for (owner, item) in items.iter().take(scanned).enumerate() {
                paths.collect(cx, &item, None, 0, 0, owner)?;
            }
            scanned
        }
        other => {
            paths.collect(cx, other, None, 0, 0, 0)?;
            1
        }
    };
    let mut entries = List::with_capacity(cx, paths.fields.len())?;
    for (path, field) in paths.fields {
        let (values, mut summary) = (field.values, field.finish(cx, Some(owners))?);
        let repeated = summary.iter().any(|(name, count)| {
            *name == "present" && matches!(count, Value::Int(present) if values > *present)
        });
        if repeated {
            summary.push(cx, ("value_count", Value::Int(values)))?;
        }
        let summary = keyword_map(cx, summary)?;
        entries.push(cx, (path, summary))?;
    }
    text_map(cx, entries)
}

/// The path of a key below another path.
fn path(cx: &mut Context, prefix: Option<&Name>, name: &Name) -> Result<Name> {
    let mut path = Text::new();
    if let Some(prefix) = prefix {
        let prefix = cx.read(prefix)?;
        path.push(cx, prefix)?;
        path.push(cx, ".")?;
    }
    let name = cx.read(name)?;
    path.push_escaped(cx, name, |byte| match byte {
        b'\\' => Some("\\\\"),
        b'.' => Some("\\."),
        _ => None,
    })?;
    Ok(path.into_node())
}

impl Paths<'_> {
    fn collect(
        &mut self,
        cx: &mut Context,
        value: &Value,
        prefix: Option<&Name>,
        depth: usize,
        nested: usize,
        owner: usize,
    ) -> Result<()> {
        if depth >= self.options.depth {
            return Ok(());
        }
        match value {
            Value::Map(map) => {
                let order = map.order(cx)?;
                if order.len() > MOST_KEYS {
                    self.caps.insert("max_keys");
                }
                let rows = order.iter().take(MOST_KEYS).map(|&row| row as usize);
                let keys = cx.collect(rows.clone().map(|row| map.key(row).clone()))?;
                let names = key_names(cx, &keys)?;
                for (row, name) in rows.zip(names) {
                    let path = path(cx, prefix, &name)?;
                    let child = map.value(row);
                    if self.add(cx, &path, child, owner)? {
                        self.collect(cx, child, Some(&path), depth + 1, nested, owner)?;
                    }
                }
            }
            Value::Vector(items) if prefix.is_some() && !items.is_empty() => {
                if nested >= MOST_NESTED {
                    self.caps.insert("max_depth");
                    return Ok(());
                }
                if items.len() > MOST_ITEMS {
                    self.caps.insert("max_items");
                }
                for item in items.iter().take(MOST_ITEMS) {
                    cx.tick(1)?;
                    if self.values >= MOST_VALUES {
                        break;
                    }
                    self.collect(cx, &item, prefix, depth, nested + 1, owner)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds one value; false if a limit is hit.
    fn add(&mut self, cx: &mut Context, path: &Name, value: &Value, owner: usize) -> Result<bool> {
        if self.values >= MOST_VALUES {
            self.caps.insert("max_path_values");
            return Ok(false);
        }
        // The lookup compares texts: as many as the logarithm of the number of paths.
        cx.tick(path.len() as u64)?;
        if self.fields.len() >= MOST_PATHS && !self.fields.contains_key(path) {
            self.caps.insert("max_paths");
            return Ok(false);
        }
        self.values += 1;
        let field = self.fields.entry(path.clone()).or_default();
        field.add(cx, value, owner, self.options.examples)?;
        Ok(true)
    }
}
