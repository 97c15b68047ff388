//! Defines an entry of the MCP response `tools/list`: title, description, schemas and effects of a tool. [`Facts`] are
//! what entries depend on, such as servers and limits.

use super::catalog::{CatalogStyle, CatalogView};
use crate::answer::caps::Profile;
use crate::protocol::Era;
use ptc_calls::tools::ServerNames;
use ptc_engine::{ExportHints, Prelude};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Facts that definitions depend on. When one changes, the list is made again and clients are notified.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Configured servers.
    pub catalog: Arc<CatalogView>,
    /// Limits of the catalog text in descriptions.
    pub catalog_style: CatalogStyle,
    /// Upstream calls that one program may make.
    pub max_calls: u64,
    /// Milliseconds that one program may take.
    pub timeout_ms: u64,
    /// Response profile.
    pub profile: Profile,
    /// Whether only read-only upstream tools are available.
    pub read_only: bool,
    /// The prelude that is attached to programs.
    pub prelude: Option<Arc<Prelude>>,
    /// What calls of exports that are tools may do, by their references.
    pub hints: Arc<BTreeMap<String, ExportHints>>,
    /// Whether the list depends on the client, so that caches must not share it.
    pub is_private: bool,
    /// The protocol era of the list.
    pub era: Era,
}

impl Facts {
    /// The facts for a client that may use only these servers.
    #[must_use]
    pub fn only(mut self, servers: &ServerNames) -> Facts {
        let admitted = self.catalog.servers.iter().filter(|server| servers.contains(&server.name));
        self.catalog = Arc::new(CatalogView { servers: admitted.cloned().collect() });
        self.prelude = self.prelude.map(|prelude| Arc::new(prelude.restricted_to(servers)));
        self
    }

    /// The description of the attached prelude for models.
    pub(super) fn inventory(&self) -> Option<String> {
        self.prelude.as_ref()?.inventory()
    }
}

/// An entry of `tools/list`, without its name.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Title for people.
    pub title: String,
    /// Description for models.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// Effects that a call may have.
    pub annotations: ToolAnnotations,
    /// JSON Schema of `structuredContent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// Effects that a call may have, under MCP's names.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only_hint: bool,
    /// It may destroy something.
    pub destructive_hint: bool,
    /// A repeated call has no further effect.
    pub idempotent_hint: bool,
    /// It reaches systems outside this server.
    pub open_world_hint: bool,
}

impl ToolAnnotations {
    /// Those of a tool that calls tools of servers, which all may only read or not.
    pub const fn of_calls(read_only_hint: bool) -> ToolAnnotations {
        let destructive_hint = !read_only_hint;
        ToolAnnotations { read_only_hint, destructive_hint, idempotent_hint: false, open_world_hint: true }
    }
}

/// The JSON Schema of the structured result in this profile.
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
