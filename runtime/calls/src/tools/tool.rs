//! Represents the tool list of a server: the name, schemas and effect hints of each tool, and the tools that may not be
//! called, with the reason.

use super::offers::Offers;
use crate::run::outcome::Effect;
use ptc_base::secrets::REDACTED;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A tool.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamTool {
    /// Name as the upstream lists it.
    pub name: Arc<str>,
    /// Human-readable name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What it may do.
    #[serde(default, deserialize_with = "null_is_default")]
    pub annotations: Annotations,
    /// Metadata for programs rather than people.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// Whether its calls may be tasks (2025-11-25).
    #[serde(
        default,
        rename = "execution",
        deserialize_with = "task_support",
        skip_serializing_if = "TaskSupport::is_forbidden"
    )]
    pub tasks: TaskSupport,
}

/// Whether calls of a tool may be tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "taskSupport")]
pub enum TaskSupport {
    /// They may not.
    #[default]
    Forbidden,
    /// They may.
    Optional,
    /// They have to be.
    Required,
}

impl TaskSupport {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_forbidden(&self) -> bool {
        *self == TaskSupport::Forbidden
    }
}

/// Anything that says neither yes nor that it has to be means no.
fn task_support<'de, D: Deserializer<'de>>(input: D) -> Result<TaskSupport, D::Error> {
    let execution = Value::deserialize(input)?;
    Ok(match execution["taskSupport"].as_str() {
        Some("optional") => TaskSupport::Optional,
        Some("required") => TaskSupport::Required,
        _ => TaskSupport::Forbidden,
    })
}

fn null_is_default<'de, D: Deserializer<'de>>(input: D) -> Result<Annotations, D::Error> {
    Option::<Annotations>::deserialize(input).map(Option::unwrap_or_default)
}

/// The member of `_meta` in which `ptc` states facts about the tools that it makes itself, of OpenAPI services. MCP
/// servers cannot state them.
pub const OWN_FACTS: &str = "_ptc";

/// The fact that names the arguments of a tool that are secrets of its configuration. Callers do not see it.
pub const HIDDEN_ARGUMENTS: &str = "hiddenArgs";

/// Hints of the upstream about a tool. They are not reliable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
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
    /// All other members, `title` included, as the upstream wrote them.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

impl Annotations {
    /// True if it claims to change something.
    pub fn says_changes(&self) -> bool {
        self.read_only_hint == Some(false) || self.destructive_hint == Some(true)
    }

    /// Its texts, except those nested in other values.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.more.values().filter_map(Value::as_str)
    }
}

impl UpstreamTool {
    /// True if two tools are the same to their callers. Metadata may change with each start of a server.
    pub fn is_same_to_callers(self: &Arc<UpstreamTool>, other: &Arc<UpstreamTool>) -> bool {
        let known = |tool: &UpstreamTool| UpstreamTool { title: None, meta: None, ..tool.clone() };
        Arc::ptr_eq(self, other) || known(self) == known(other)
    }

    /// The effect of a call.
    pub fn effect(&self) -> Effect {
        match (self.annotations.read_only_hint, self.annotations.destructive_hint) {
            (Some(true), Some(true)) => Effect::Unknown,
            (Some(true), _) => Effect::Read,
            (_, Some(true)) => Effect::Write,
            _ => Effect::Unknown,
        }
    }

    /// The arguments that are sent with each call that does not give them: `default_args` of an OpenAPI service.
    pub fn default_arguments(&self) -> Option<&Map<String, Value>> {
        let defaults = self.meta.as_ref()?.get(OWN_FACTS)?.get("defaultArgs")?.as_object()?;
        Some(defaults).filter(|defaults| !defaults.is_empty())
    }

    /// Names of arguments that are sent with each call and have secrets as values, which are not in the list.
    pub fn hidden_arguments(&self) -> Vec<&str> {
        let facts = self.meta.as_ref().and_then(|meta| meta.get(OWN_FACTS));
        let hidden = facts.and_then(|facts| facts.get(HIDDEN_ARGUMENTS)?.as_array());
        let hidden = hidden.into_iter().flatten().filter_map(Value::as_str);
        let redacted = self.default_arguments().into_iter().flatten();
        let redacted = redacted.filter(|(_, value)| value.to_string().contains(REDACTED));
        hidden.chain(redacted.map(|(name, _)| name.as_str())).collect()
    }

    /// Its description, else its title.
    pub fn about(&self) -> Option<&str> {
        self.description.as_deref().filter(|text| !text.trim().is_empty()).or(self.title.as_deref())
    }

    /// The member that this tool wraps its result in, because structuredContent has to be an object: `result`
    /// as FastMCP does, or the only member of the schema, or the `content` of a text.
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

    /// The schema of the value that programs get, with the definitions that it refers to.
    pub fn result_schema(&self) -> Option<Cow<'_, Value>> {
        let schema = self.output_schema.as_ref()?;
        let name = self.wraps_result_in();
        let Some((name, inner)) = name.and_then(|name| Some((name, schema.get("properties")?.get(name)?)))
        else {
            return Some(Cow::Borrowed(schema));
        };
        let mut inner = inner.clone();
        let old = format!("#/properties/{name}");
        rebase(&mut inner, &old);
        for definitions in ["$defs", "definitions"] {
            if let (Some(known), Value::Object(members)) = (schema.get(definitions), &mut inner) {
                let mut known = known.clone();
                rebase(&mut known, &old);
                members.entry(definitions).or_insert(known);
            }
        }
        Some(Cow::Owned(inner))
    }

    /// True if the schema describes the result. A schema of a plain text does not: JSON in the text arrives
    /// as data.
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

/// Makes references into the place `old` point to the start of the document. JSON nests 128 levels at most.
fn rebase(schema: &mut Value, old: &str) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(rest) = reference.strip_prefix(old)
                && (rest.is_empty() || rest.starts_with('/'))
            {
                *reference = format!("#{rest}");
            }
            members.values_mut().for_each(|value| rebase(value, old));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, old)),
        _ => {}
    }
}

/// True for a schema of texts.
pub(crate) fn is_text(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "string")
}

/// Why a tool may not be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Refusal {
    /// An allow list does not name it.
    NotAllowed,
    /// A block list names it.
    Blocked,
    /// Only tools annotated as read-only may be called, and this one is not.
    NotReadOnly,
    /// The server's listing of the tool is malformed.
    Broken,
    /// It is not the tool that was pinned.
    Changed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NotAllowed => "it is not among the tools.allow of the configuration",
            Refusal::Blocked => "tools.block of the configuration names it",
            Refusal::NotReadOnly => {
                "only read-only tools may be called, and it is not annotated with readOnlyHint"
            }
            Refusal::Changed => "it is not as it was pinned; `ptc pin` shows what has changed",
            Refusal::Broken => "the server lists it in a way that cannot be read; `ptc doctor` says how",
        })
    }
}

/// A server's tools, and problems of its list.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Listed {
    /// Tools that can be called.
    pub tools: Vec<UpstreamTool>,
    /// Names of tools that may not be called.
    pub refused: Vec<(Arc<str>, Refusal)>,
    /// Requests, other than tool calls, that the server may not be sent.
    #[serde(skip)]
    pub refused_requests: BTreeMap<&'static str, Refusal>,
    /// Notes to the operator.
    pub notes: Vec<String>,
    /// Why the list is incomplete, if it is.
    pub cut: Option<Arc<str>>,
    /// The server's text about itself.
    pub instructions: Option<Arc<str>>,
    /// Resources and prompts.
    pub offers: Offers,
    /// Where the server is, as `ptc.lock` names it.
    pub origin: Option<Arc<str>>,
}

impl From<Vec<UpstreamTool>> for Listed {
    fn from(tools: Vec<UpstreamTool>) -> Listed {
        Listed { tools, ..Listed::default() }
    }
}

/// A tool list in name order, without the tools that may not be called; complete unless it was cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolList {
    tools: BTreeMap<Arc<str>, Arc<UpstreamTool>>,
    refused: BTreeMap<Arc<str>, Refusal>,
    notes: Vec<String>,
    cut: Option<Arc<str>>,
    instructions: Option<Arc<str>>,
    offers: Offers,
    origin: Option<Arc<str>>,
    /// Requests, other than tool calls, that the server may not be sent.
    refused_requests: BTreeMap<&'static str, Refusal>,
}

impl ToolList {
    /// A list of these tools; of two tools with one name the first counts.
    pub fn new(listed: impl Into<Listed>) -> ToolList {
        let Listed { tools: listed, refused, notes, cut, instructions, mut offers, origin, refused_requests } =
            listed.into();
        offers.retain(|kind| !refused_requests.contains_key(kind.parts().0));
        let refused = refused.into_iter().collect();
        let mut tools = BTreeMap::new();
        for tool in listed {
            tools.entry(tool.name.clone()).or_insert_with(|| Arc::new(tool));
        }
        ToolList { tools, refused, notes, cut, instructions, offers, origin, refused_requests }
    }

    /// The tools and texts of the list, for a comparison.
    pub fn listed(&self) -> Listed {
        Listed {
            tools: self.tools.values().map(|tool| UpstreamTool::clone(tool)).collect(),
            instructions: self.instructions.clone(),
            offers: self.offers.clone(),
            origin: self.origin.clone(),
            ..Listed::default()
        }
    }

    /// Everything that [`ToolList::new`] needs to make the same list.
    pub fn whole(&self) -> Listed {
        Listed {
            refused: self.refused.iter().map(|(name, refusal)| (name.clone(), *refusal)).collect(),
            refused_requests: self.refused_requests.clone(),
            notes: self.notes.clone(),
            cut: self.cut.clone(),
            ..self.listed()
        }
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<UpstreamTool>> {
        self.tools.get(name)
    }

    /// Why a tool of the upstream is not in the list.
    pub fn refusal(&self, name: &str) -> Option<Refusal> {
        self.refused.get(name).copied()
    }

    /// Names of tools that the upstream has and that may not be called.
    pub fn refused(&self) -> impl Iterator<Item = &str> {
        self.refused.keys().map(|name| &**name)
    }

    /// Notes to the operator about the list.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The server's text about itself.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Its resources and prompts.
    pub fn offers(&self) -> &Offers {
        &self.offers
    }

    /// Why the server may not be sent this request.
    pub fn request_refusal(&self, method: &str) -> Option<Refusal> {
        self.refused_requests.get(method).copied()
    }

    /// Why it is incomplete: further tools of the server cannot be called. `None`: it is complete.
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
