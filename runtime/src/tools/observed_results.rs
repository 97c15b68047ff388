//! Records the shapes of results of tools that do not declare them. Only shapes are stored, no values.

use super::schema::key;
use crate::sync::Locked;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

/// Size limit of a result that is examined.
const LARGEST: usize = 64 << 10;

/// Limit of remembered tools per server.
const MOST_TOOLS: usize = 2_000;

/// Limit of examined items of a list.
const ITEMS: usize = 20;

/// Limit of members of a map; the keys of a larger one are data.
const MEMBERS: usize = 30;

/// Limit of examined levels.
const DEEPEST: usize = 5;

/// Size limit of a shape, in bytes.
const LONGEST: usize = 2_000;

/// The last known shapes, by server and tool.
#[derive(Default)]
pub(crate) struct ObservedResults {
    by_server: Mutex<HashMap<String, HashMap<Arc<str>, Seen>>>,
}

struct Seen {
    results: u64,
    shape: Arc<str>,
}

impl ObservedResults {
    /// Records a result of a tool, JSON text or plain text. Reading takes time, so only the first, second,
    /// fourth … result is examined.
    pub(crate) fn note(
        &self,
        server: &str,
        tool: &Arc<str>,
        bytes: usize,
        read: impl FnOnce() -> Option<Json>,
    ) {
        if bytes > LARGEST {
            return;
        }
        let mut by_server = self.lock();
        let known = by_server.get_mut(server);
        let results = match known {
            Some(tools) if tools.len() >= MOST_TOOLS && !tools.contains_key(tool) => return,
            Some(tools) => tools.get_mut(tool).map_or(1, |seen| {
                seen.results += 1;
                seen.results
            }),
            None => 1,
        };
        drop(by_server);
        if results.is_power_of_two() {
            let shape: Arc<str> = read().map_or_else(|| "a text".into(), |json| shape(&json).into());
            self.lock().entry(server.to_owned()).or_default().insert(tool.clone(), Seen { results, shape });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashMap<Arc<str>, Seen>>> {
        self.by_server.locked()
    }

    /// The last known shape of a tool's results.
    pub(crate) fn shape(&self, server: &str, tool: &str) -> Option<Arc<str>> {
        Some(self.lock().get(server)?.get(tool)?.shape.clone())
    }
}

/// The shape of a value, in the syntax of signatures.
fn shape(json: &Json) -> String {
    let mut text = String::new();
    for levels in (1..=DEEPEST).rev() {
        text = common_shape(&[json], levels);
        if text.len() <= LONGEST {
            break;
        }
    }
    text
}

/// The common shape of values: alternatives of types, and the members of all maps in one.
fn common_shape(values: &[&Json], levels: usize) -> String {
    let mut kinds: Vec<String> = Vec::new();
    let (mut maps, mut items, mut lists) = (Vec::new(), Vec::new(), 0);
    for value in values {
        let kind = match value {
            Json::Object(map) => {
                maps.push(map);
                continue;
            }
            Json::Array(list) => {
                lists += 1;
                items.extend(list.iter().take(ITEMS));
                continue;
            }
            Json::Null => "nil",
            Json::Bool(_) => "boolean",
            Json::Number(number) if number.is_f64() => "number",
            Json::Number(_) => "integer",
            Json::String(_) => "string",
        };
        if !kinds.iter().any(|known| known == kind) {
            kinds.push(kind.to_owned());
        }
    }
    if lists > 0 {
        kinds.push(match (levels, items.is_empty()) {
            (0, _) => "array".to_owned(),
            (_, true) => "[]".to_owned(),
            (_, false) => format!("[{}]", common_shape(&items, levels - 1)),
        });
    }
    if !maps.is_empty() {
        let mut members: BTreeMap<&str, Vec<&Json>> = BTreeMap::new();
        for (name, value) in maps.iter().flat_map(|map| map.iter()) {
            members.entry(name).or_default().push(value);
        }
        kinds.push(if levels == 0 {
            "object".to_owned()
        } else if members.len() > MEMBERS {
            let all: Vec<&Json> = members.into_values().flatten().take(ITEMS).collect();
            format!("{{* {}}}", common_shape(&all, levels - 1))
        } else {
            let members: Vec<String> = members
                .iter()
                .map(|(name, values)| {
                    let mark = if values.len() < maps.len() { "?" } else { "" };
                    format!("{} {}{mark}", key(name), common_shape(values, levels - 1))
                })
                .collect();
            format!("{{{}}}", members.join(" "))
        });
    }
    kinds.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shapes_hold_no_values() {
        let rows =
            json!({"rows": [{"id": 1, "tags": ["a"]}, {"id": "x", "size": 1.5, "tags": []}], "next": null});
        assert_eq!(shape(&rows), "{:next nil :rows [{:id integer|string :size number? :tags [string]}]}");
        let keyed: serde_json::Map<_, _> = (0..50).map(|n| (format!("user-{n}"), json!({"n": n}))).collect();
        assert_eq!(shape(&keyed.into()), "{* {:n integer}}");
        assert_eq!((shape(&json!([])), shape(&json!("secret"))), ("[]".into(), "string".into()));
    }

    #[test]
    fn later_results_are_looked_at_ever_more_rarely() {
        let (seen, tool) = (ObservedResults::default(), Arc::from("t"));
        let looked: Vec<u64> = (1..=9)
            .filter(|n| {
                let mut looked = false;
                seen.note("s", &tool, 10, || {
                    looked = true;
                    Some(json!([n]))
                });
                looked
            })
            .collect();
        assert_eq!((looked, seen.shape("s", "t").as_deref()), (vec![1, 2, 4, 8], Some("[integer]")));
        seen.note("s", &Arc::from("large"), LARGEST + 1, || unreachable!());
        assert_eq!(seen.shape("s", "large"), None);
    }
}
