//! Tools of the conformance server that answer: at once, after a while, or with an error.

use ptc_server::answer::{Content, ToolAnswer};
use ptc_server::protocol::RpcError;
use ptc_server::protocol::log_level::LogLevel;
use ptc_server::protocol::notify::LogMessage;
use ptc_server::protocol::params::Params;
use ptc_server::tools::{Begun, CallContext, Definition, Facts, Job, Responder, Tool, ToolAnnotations};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// A red pixel, and a short silence.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

/// Longer than the shortest interval between progress notifications.
const PAUSE: Duration = Duration::from_millis(150);

/// Definition of a tool without side effects.
pub(crate) fn definition(description: &str, input_schema: Value) -> Definition {
    Definition {
        title: description.into(),
        description: description.into(),
        input_schema,
        annotations: ToolAnnotations {
            read_only_hint: true,
            destructive_hint: false,
            idempotent_hint: true,
            open_world_hint: false,
        },
        output_schema: None,
    }
}

/// A schema with these required string arguments.
pub(crate) fn texts(names: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    json!({ "type": "object", "properties": properties, "required": names })
}

/// An answer of these blocks.
pub(crate) fn blocks(blocks: &Value, is_error: bool) -> ToolAnswer<'static> {
    // Serializing a tree cannot fail.
    let blocks = to_raw_value(blocks).unwrap_or_else(|_| RawValue::NULL.to_owned());
    ToolAnswer { is_error, ..ToolAnswer::new(Content::Blocks(blocks)) }
}

/// An answer with one text block.
pub(crate) fn text(text: &str) -> ToolAnswer<'static> {
    blocks(&json!([{ "type": "text", "text": text }]), false)
}

/// Behaviour of a tool.
enum Behaviour {
    /// Answers with these blocks.
    Say(Value),
    /// Fails with this message.
    Fail(&'static str),
    /// Answers later, with progress notifications.
    Work,
    /// Answers, with log notifications.
    Log,
    /// Requires these capabilities of its client.
    Need(Value),
    /// Changes the tool list.
    Change(watch::Sender<Arc<Facts>>),
}

struct PlainTool {
    name: &'static str,
    description: &'static str,
    schema: Value,
    deed: Behaviour,
}

/// All such tools. `facts` are the facts that the tool list depends on.
pub(crate) fn tools(facts: &watch::Sender<Arc<Facts>>) -> impl Iterator<Item = Box<dyn Tool>> {
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let resource = |uri: &str, kind: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } });
    let said = |text: &str| json!({ "type": "text", "text": text });
    let embedded =
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.");
    let mixed =
        resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
    let tool =
        |name, description, deed| PlainTool { name, description, schema: json!({ "type": "object" }), deed };
    [
        tool(
            "test_simple_text",
            "One text",
            Behaviour::Say(json!([said("This is a simple text response for testing.")])),
        ),
        tool("test_image_content", "An image", Behaviour::Say(json!([image.clone()]))),
        tool(
            "test_audio_content",
            "A sound",
            Behaviour::Say(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }])),
        ),
        tool("test_embedded_resource", "A resource within the answer", Behaviour::Say(json!([embedded]))),
        tool(
            "test_multiple_content_types",
            "A text, an image and a resource",
            Behaviour::Say(json!([said("Multiple content types test:"), image, mixed])),
        ),
        tool(
            "test_error_handling",
            "Always fails",
            Behaviour::Fail("This tool intentionally returns an error for testing"),
        ),
        tool("test_tool_with_progress", "Tells of its progress", Behaviour::Work),
        tool("test_tool_with_logging", "Logs what it does", Behaviour::Log),
        tool("test_logging_tool", "Logs what it does", Behaviour::Log),
        tool(
            "test_missing_capability",
            "Needs a client that samples",
            Behaviour::Need(json!({ "sampling": {} })),
        ),
        tool("test_trigger_tool_change", "Makes the tool list another one", Behaviour::Change(facts.clone())),
        PlainTool {
            name: "json_schema_2020_12_tool",
            description: "Arguments with every word of JSON Schema",
            schema: json_schema(),
            deed: Behaviour::Say(json!([said("accepted")])),
        },
    ]
    .into_iter()
    .map(|tool| Box::new(tool) as Box<dyn Tool>)
}

fn json_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef", "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

impl Tool for PlainTool {
    fn name(&self) -> &str {
        self.name
    }

    fn definition(&self, facts: &Facts) -> Definition {
        let definition = definition(self.description, self.schema.clone());
        match self.deed {
            // The only fact that changes here.
            Behaviour::Change(_) => Definition {
                description: format!("{}; changes so far: {}", self.description, facts.max_calls),
                ..definition
            },
            _ => definition,
        }
    }

    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun {
        let declared: Value = params
            .declared_capabilities()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        match &self.deed {
            Behaviour::Need(needed)
                if needed
                    .as_object()
                    .is_some_and(|needed| needed.keys().any(|key| declared[key].is_null())) =>
            {
                Begun::Refused(Box::new(RpcError::missing_capability(needed.clone())))
            }
            Behaviour::Say(said) => reply.with(&blocks(said, false)),
            Behaviour::Fail(why) => reply.with(&blocks(&json!([{ "type": "text", "text": why }]), true)),
            Behaviour::Need(_) => reply.with(&text("everything needed is there")),
            Behaviour::Log => {
                let steps = ["Tool execution started", "Tool processing data", "Tool execution completed"];
                let wanted = call.log.is_some_and(|least| LogLevel::Info >= least);
                let log = |step: &str| LogMessage {
                    level: LogLevel::Info,
                    logger: "conformance",
                    data: step.into(),
                };
                let log = steps.into_iter().filter(|_| wanted).map(log).collect();
                reply.with(&ToolAnswer { log, ..text("done, and logged") })
            }
            Behaviour::Change(facts) => {
                static CHANGES: AtomicU64 = AtomicU64::new(1);
                let max_calls = CHANGES.fetch_add(1, Ordering::Relaxed);
                facts.send_replace(Arc::new(Facts { max_calls, ..Facts::default() }));
                reply.with(&text("the tool list is another one"))
            }
            Behaviour::Work => Begun::Run(Job::new(0, |mut reporter| {
                reporter.begun();
                let working = tokio::spawn(async move {
                    for done in [1, 50, 100] {
                        reporter.progress(done, "part");
                        tokio::time::sleep(PAUSE).await;
                    }
                    reporter.ended(&text("all parts are done"));
                });
                Box::new(move || working.abort())
            })),
        }
    }
}
