//! `"tools": {"allow": […]}` or `{"block": […]}`, for one server or for all of them.

use crate::tools::{NameRule, ToolPattern};
use serde_json::Value;

/// A list of tool names.
pub(super) fn tool_names(value: &Value) -> Option<Vec<ToolPattern>> {
    value.as_array()?.iter().map(|name| name.as_str().map(ToolPattern::new)).collect()
}

/// Reads a rule; an empty object has none. An error comes with the key below `tools` that it is about.
pub(super) fn rule(value: &Value) -> Result<Option<NameRule>, (Option<&'static str>, String)> {
    let Value::Object(lists) = value else {
        return Err((None, "tools must be an object with allow or block".to_owned()));
    };
    let patterns = |key: &'static str| -> Result<Option<Vec<ToolPattern>>, (Option<&'static str>, String)> {
        let Some(value) = lists.get(key) else { return Ok(None) };
        match tool_names(value) {
            Some(names) => Ok(Some(names)),
            None => Err((Some(key), format!("tools.{key} must be a list of tool names"))),
        }
    };
    match (patterns("allow")?, patterns("block")?) {
        (Some(_), Some(_)) => {
            Err((Some("block"), "tools.allow and tools.block exclude each other".to_owned()))
        }
        (Some(allowed), None) => Ok(Some(NameRule::Allow(allowed))),
        (None, Some(blocked)) => Ok(Some(NameRule::Block(blocked))),
        (None, None) => Ok(None),
    }
}
