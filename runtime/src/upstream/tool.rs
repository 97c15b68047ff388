//! Tools as an upstream lists them.

use crate::outcome::Effect;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// One tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Name as the upstream lists it.
    pub name: Arc<str>,
    /// Human-readable name.
    #[serde(default)]
    pub title: Option<String>,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// JSON Schema of its structured result.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// What it may do.
    #[serde(default)]
    pub annotations: Annotations,
}

/// Hints of the upstream about a tool; none of them is a promise.
#[derive(Clone, Debug, Default, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    /// Changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeating it changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Reaches beyond the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl Tool {
    /// What a call may change.
    pub fn effect(&self) -> Effect {
        match (self.annotations.read_only_hint, self.annotations.destructive_hint) {
            (Some(true), _) => Effect::Read,
            (_, Some(true)) => Effect::Write,
            _ => Effect::Unknown,
        }
    }

    /// Names of the required top-level arguments, in schema order.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.input_schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    /// True when the schema has a top-level argument of exactly this name.
    pub fn has_argument(&self, name: &str) -> bool {
        self.input_schema.get("properties").and_then(|properties| properties.get(name)).is_some()
    }
}

/// A complete tool list, in the upstream's order.
#[derive(Debug, Default)]
pub struct ToolList {
    tools: Vec<Arc<Tool>>,
    by_name: HashMap<Arc<str>, usize>,
}

impl ToolList {
    /// Indexes a list; of two tools with one name the first counts.
    pub fn new(tools: Vec<Tool>) -> ToolList {
        let mut list = ToolList::default();
        for tool in tools {
            if !list.by_name.contains_key(&tool.name) {
                list.by_name.insert(tool.name.clone(), list.tools.len());
                list.tools.push(Arc::new(tool));
            }
        }
        list
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).and_then(|&at| self.tools.get(at))
    }

    /// Every tool.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// True when the upstream has none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}
