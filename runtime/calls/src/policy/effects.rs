//! Classifies what a call may change (read, write, destructive), by the annotations of its tool if its server is
//! trusted.

use crate::tools::{Annotations, CallTarget, UpstreamTool};
use ptc_base::named_enum;
use serde::Deserialize;

named_enum! {
    /// What a tool may change.
    #[derive(PartialOrd, Ord, Hash, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ToolEffect {
        /// It changes nothing.
        Read = "read",
        /// It adds, and destroys nothing.
        Write = "write",
        /// It may destroy or replace something, or its effect is not known.
        Destructive = "destructive",
    }
}

impl ToolEffect {
    /// The effect that annotations declare, with the defaults of the MCP specification (2025-11-25, `ToolAnnotations`):
    /// not read-only, destructive. Contradictory annotations count as destructive.
    pub(super) fn declared(annotations: &Annotations) -> ToolEffect {
        match (annotations.read_only_hint, annotations.destructive_hint) {
            (Some(true), None | Some(false)) => ToolEffect::Read,
            (_, Some(false)) => ToolEffect::Write,
            _ => ToolEffect::Destructive,
        }
    }

    /// The effect of a call. Annotations count only for trusted servers. Lists, resources and prompts are read by
    /// definition.
    pub(super) fn of_call(target: &CallTarget, tool: &UpstreamTool, is_trusted: bool) -> ToolEffect {
        match target {
            CallTarget::Tool(_) if is_trusted => ToolEffect::declared(&tool.annotations),
            CallTarget::Tool(_) => ToolEffect::Destructive,
            CallTarget::List(_)
            | CallTarget::Resource(_)
            | CallTarget::Prompt(_)
            | CallTarget::Protocol(_)
            | CallTarget::Task(..) => ToolEffect::Read,
        }
    }
}
