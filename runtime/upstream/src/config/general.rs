//! Reads the settings of a configuration file that belong to no single server: allow and block lists of tools, and
//! limits of Python scripts. These are `"tools": {"allow": […]}` or `{"block": […]}`, which an entry may have as well,
//! and `"execution": {…}`.

use super::ConfigError;
use super::location::Document;
use ptc_calls::policy::{NameRule, ToolPattern};
use serde_json::{Map, Value};
use std::time::Duration;

/// A list of tool names.
pub(super) fn tool_names(value: &Value) -> Option<Vec<ToolPattern>> {
    value.as_array()?.iter().map(|name| name.as_str().map(ToolPattern::new)).collect()
}

/// Reads a rule; an empty object has none. An error names the key below `tools` that it is about.
pub(super) fn rule(value: &Value) -> Result<Option<NameRule>, (Option<&'static str>, String)> {
    let Value::Object(lists) = value else {
        return Err((None, "tools must be an object with allow or block".to_owned()));
    };
    let patterns = |key: &'static str| -> Result<Option<Vec<ToolPattern>>, (Option<&'static str>, String)> {
        let Some(value) = lists.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
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

/// The key of the file.
pub(super) const EXECUTION: &str = "execution";

const TIMEOUT: &str = "timeout_seconds";
const OUTPUT: &str = "max_output_bytes";

/// Settings of the file for scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptSettings {
    /// Time limit of one script.
    pub timeout: Option<Duration>,
    /// Output limit of one script.
    pub max_output_bytes: Option<u64>,
}

impl ScriptSettings {
    /// These settings, completed by those of an earlier file.
    #[must_use]
    pub fn or(self, before: ScriptSettings) -> ScriptSettings {
        ScriptSettings {
            timeout: self.timeout.or(before.timeout),
            max_output_bytes: self.max_output_bytes.or(before.max_output_bytes),
        }
    }

    pub(super) fn read(
        root: &Map<String, Value>,
        document: &Document<'_>,
        warnings: &mut Vec<ConfigError>,
    ) -> Result<ScriptSettings, ConfigError> {
        let settings = match root.get(EXECUTION) {
            // A YAML key without a value.
            None | Some(Value::Null) => return Ok(ScriptSettings::default()),
            Some(Value::Object(settings)) => settings,
            Some(_) => {
                let message = format!("{EXECUTION} must be an object with {TIMEOUT} and {OUTPUT}");
                return Err(document.error(&[EXECUTION], message));
            }
        };
        let positive = |key: &str| match settings.get(key) {
            None => Ok(None),
            Some(value) => match value.as_u64().filter(|&number| number > 0) {
                Some(number) => Ok(Some(number)),
                None => Err(document
                    .error(&[EXECUTION, key], format!("{EXECUTION}.{key} must be a positive whole number"))),
            },
        };
        let unknown = settings.keys().filter(|key| ![TIMEOUT, OUTPUT].contains(&key.as_str()));
        warnings.extend(
            unknown
                .map(|key| document.error(&[EXECUTION, key], format!("unknown key \"{EXECUTION}.{key}\""))),
        );
        Ok(ScriptSettings {
            timeout: positive(TIMEOUT)?.map(Duration::from_secs),
            max_output_bytes: positive(OUTPUT)?,
        })
    }
}
