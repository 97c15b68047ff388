//! Tools as an upstream lists them.

use super::policy::{Refusal, ToolPolicy};
use crate::run::outcome::Effect;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One tool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamTool {
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
    #[serde(default, deserialize_with = "null_is_default")]
    pub annotations: Annotations,
    /// What the upstream attached for programs rather than people.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Value>,
}

fn null_is_default<'de, D: Deserializer<'de>>(input: D) -> Result<Annotations, D::Error> {
    Option::<Annotations>::deserialize(input).map(Option::unwrap_or_default)
}

/// Hints of the upstream about a tool; none of them is a promise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
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
    /// Everything else that stands there, `title` included, as the upstream wrote it.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

impl Annotations {
    /// It is known to change something.
    pub(crate) fn says_changes(&self) -> bool {
        self.read_only_hint == Some(false) || self.destructive_hint == Some(true)
    }

    /// What its texts say, those inside other values left out.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.more.values().filter_map(Value::as_str)
    }
}

impl UpstreamTool {
    /// What a call may change.
    pub fn effect(&self) -> Effect {
        match (self.annotations.read_only_hint, self.annotations.destructive_hint) {
            (Some(true), Some(true)) => Effect::Unknown,
            (Some(true), _) => Effect::Read,
            (_, Some(true)) => Effect::Write,
            _ => Effect::Unknown,
        }
    }

    /// What there is to say about it: its description, else its title.
    pub fn about(&self) -> Option<&str> {
        self.description.as_deref().filter(|text| !text.trim().is_empty()).or(self.title.as_deref())
    }

    /// The member that this tool wraps its result in, because structuredContent has to be an object: `result`
    /// as FastMCP does, or by the schema the only one, or the `content` of a text.
    pub fn wraps_result_in(&self) -> Option<&'static str> {
        let schema = self.output_schema.as_ref()?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let only = properties.filter(|all| all.len() == 1);
        let only = only.and_then(|all| all.iter().next());
        if schema.get("x-fastmcp-wrap-result") == Some(&Value::Bool(true)) {
            return Some("result");
        }
        match only {
            Some((name, _)) if name == "result" => Some("result"),
            Some((name, inner)) if name == "content" && inner.get("type") == Some(&"string".into()) => {
                Some("content")
            }
            _ => None,
        }
    }

    /// Its schema says what it gives. One that promises a text does not: JSON in it arrives as data.
    pub fn declares_result(&self) -> bool {
        let Some(schema) = &self.output_schema else { return false };
        let inner = self.wraps_result_in().and_then(|name| schema.get("properties")?.get(name));
        inner.is_none_or(|inner| !is_text(inner))
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

/// A schema of texts.
pub(crate) fn is_text(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "string")
}

/// The tools that a server lists, and what is wrong with its list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// Tools that can be called.
    pub tools: Vec<UpstreamTool>,
    /// Names of tools that cannot be read.
    pub broken: Vec<Arc<str>>,
    /// What whoever cares for the server should know.
    pub notes: Vec<String>,
    /// Why the list is not complete, if it is not.
    pub cut: Option<Arc<str>>,
    /// What the server says about itself for whoever uses it.
    pub instructions: Option<Arc<str>>,
}

impl From<Vec<UpstreamTool>> for Listed {
    fn from(tools: Vec<UpstreamTool>) -> Listed {
        Listed { tools, ..Listed::default() }
    }
}

/// A tool list in name order, without the tools that the policy refuses; complete unless it was cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolList {
    tools: BTreeMap<Arc<str>, Arc<UpstreamTool>>,
    refused: BTreeMap<Arc<str>, Refusal>,
    notes: Vec<String>,
    cut: Option<Arc<str>>,
    instructions: Option<Arc<str>>,
    /// What the server may not be asked for beside its tools.
    refused_requests: BTreeMap<&'static str, Refusal>,
}

impl ToolList {
    /// The tools of `server`; of two tools with one name the first counts.
    pub fn new(server: &str, listed: impl Into<Listed>, policy: &ToolPolicy) -> ToolList {
        let Listed { tools, broken, notes, cut, instructions } = listed.into();
        let refused_requests = policy.refused_requests(server).collect();
        let mut list = ToolList { notes, cut, instructions, refused_requests, ..ToolList::default() };
        let names: Vec<&str> =
            tools.iter().map(|tool| &*tool.name).chain(broken.iter().map(|name| &**name)).collect();
        // Of a list that was cut nobody knows what it lacks.
        if list.cut.is_none() {
            list.notes.extend(policy.unmatched(server, &names));
        }
        list.refused.extend(broken.into_iter().map(|name| (name, Refusal::Broken)));
        for tool in tools {
            if let Some(refusal) = policy.refusal(server, &tool) {
                list.refused.insert(tool.name, refusal);
            } else {
                list.tools.entry(tool.name.clone()).or_insert_with(|| Arc::new(tool));
            }
        }
        list
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<UpstreamTool>> {
        self.tools.get(name)
    }

    /// Why a tool that the upstream has is not in the list.
    pub fn refusal(&self, name: &str) -> Option<Refusal> {
        self.refused.get(name).copied()
    }

    /// Names of tools that the upstream has and that may not be called.
    pub fn refused(&self) -> impl Iterator<Item = &str> {
        self.refused.keys().map(|name| &**name)
    }

    /// What is wrong with the list, for whoever cares for the server.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What the server says about itself for whoever uses it.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Why the server may not be sent this request.
    pub fn request_refusal(&self, method: &str) -> Option<Refusal> {
        self.refused_requests.get(method).copied()
    }

    /// Why it is not complete: the server has tools beyond it, which cannot be called. `None`: it is.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// Every tool, in name order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<UpstreamTool>> {
        self.tools.values()
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
