//! Parses the arguments of the session tools (`lisp_session_…`), and reports those that are unknown or of the wrong
//! type. Messages of faults never repeat a client's value.

use super::fault::SessionFault;
use crate::protocol::Raw;
use serde_json::{Map, Value};

/// The members of an arguments object.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads the arguments.
    pub(super) fn read(arguments: Option<Raw<'_>>) -> Result<Fields, SessionFault> {
        match serde_json::from_str(arguments.map_or("{}", Raw::get)) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(Value::Null) => Ok(Fields(Map::new())),
            Ok(_) | Err(_) => Err(SessionFault::arguments("arguments must be an object")),
        }
    }

    /// Whether there are no arguments.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that no other arguments exist.
    pub(super) fn only(&self, tool: &str, known: &[&str]) -> Result<(), SessionFault> {
        match self.0.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(SessionFault::arguments(format!("unexpected {tool} argument: {key}"))),
            None => Ok(()),
        }
    }

    /// A string argument.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// A whole number of at least one.
    pub(super) fn whole(&self, key: &str) -> Option<u64> {
        self.0.get(key).and_then(Value::as_u64).filter(|number| *number > 0)
    }

    /// Any value, including null.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// A list of strings.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, SessionFault> {
        let Some(value) = self.0.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let wrong = || SessionFault::arguments(format!("{key} must be an array of strings"));
        let items = value.as_array().ok_or_else(wrong)?;
        items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// The session's id.
    pub(super) fn session_id(&self) -> Result<&str, SessionFault> {
        self.text("session_id")
            .filter(|id| !id.is_empty())
            .ok_or_else(|| SessionFault::arguments("session_id must be a non-empty string"))
    }
}
