//! An entry of `tools/list`, and what it may depend on.

use super::catalog::{CatalogStyle, CatalogView};
use crate::answer::caps::Profile;
use crate::protocol::Era;
use ptc_runtime::Prelude;
use ptc_runtime::tools::ServerNames;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// What definitions may depend on. Whenever one of them changes, the list is made again and clients are told.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Configured servers.
    pub catalog: CatalogView,
    /// How much of it is listed.
    pub catalog_style: CatalogStyle,
    /// Upstream calls that one program may make.
    pub max_calls: u64,
    /// Milliseconds that one program may take.
    pub timeout_ms: u64,
    /// Response profile.
    pub profile: Profile,
    /// Only tools that change nothing exist upstream.
    pub read_only: bool,
    /// What is attached to programs.
    pub prelude: Option<Arc<Prelude>>,
    /// What there is depends on who asks, so nobody else may be shown it.
    pub is_private: bool,
    /// The era of the list.
    pub era: Era,
}

impl Facts {
    /// What there is to know for who may use these servers only.
    #[must_use]
    pub fn only(mut self, servers: &ServerNames) -> Facts {
        self.catalog.servers.retain(|server| servers.contains(&server.name));
        self.prelude = self.prelude.map(|prelude| Arc::new(prelude.only(servers)));
        self
    }

    /// What programs are told of the prelude that is attached to them.
    pub(super) fn inventory(&self) -> Option<String> {
        self.prelude.as_ref()?.inventory()
    }
}

/// An entry of `tools/list`, without its name.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// For people.
    pub title: String,
    /// For models.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// What a call may do.
    pub annotations: ToolAnnotations,
    /// JSON Schema of `structuredContent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// What a call may do, as MCP names it.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only_hint: bool,
    /// It may destroy something.
    pub destructive_hint: bool,
    /// Doing it twice is doing it once.
    pub idempotent_hint: bool,
    /// It reaches things beyond this server.
    pub open_world_hint: bool,
}

/// The schema of what a profile shows of a run as data.
pub fn output_schema(profile: Profile) -> Option<Value> {
    let ok = |required: &[&str]| {
        json!({
            "type": "object",
            "properties": { "status": { "const": "ok" }, "result": { "type": "string" } },
            "required": required,
        })
    };
    let error = |required: &[&str]| {
        json!({
            "type": "object",
            "properties": {
                "status": { "const": "error" }, "reason": { "type": "string" },
                "error_kind": { "type": "string" }, "message": { "type": "string" },
            },
            "required": required,
        })
    };
    let (ok, error) = match profile {
        Profile::Slim => return None,
        Profile::Structured => (ok(&["status"]), error(&["status", "reason", "message"])),
        Profile::Debug => (
            ok(&["status", "prints", "feedback", "truncated"]),
            error(&["status", "reason", "message", "feedback"]),
        ),
    };
    Some(json!({ "type": "object", "oneOf": [ok, error] }))
}
