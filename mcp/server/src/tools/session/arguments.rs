//! Reads the arguments of session tools, and defines why their calls fail (`SessionFault`). Messages never repeat a
//! client's value.

use crate::protocol::Raw;
use serde_json::{Map, Value};

/// Why a call of a session tool failed.
#[derive(Clone, Debug)]
pub struct SessionFault {
    /// The reason on the wire.
    pub reason: SessionReason,
    /// The message.
    pub message: String,
    /// The session, where its id helps.
    pub session_id: Option<String>,
}

/// The reasons of session tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionReason {
    /// The arguments are wrong.
    Arguments,
    /// No session had this id.
    NotFound,
    /// The session has ended.
    Closed,
    /// A program is running in it.
    Busy,
    /// A quota of sessions is used up.
    TooMany,
    /// The state of the server does not hold it.
    Unavailable,
}

impl SessionReason {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            SessionReason::Arguments => "session_args_error",
            SessionReason::NotFound => "session_not_found",
            SessionReason::Closed => "session_closed",
            SessionReason::Busy => "session_busy",
            SessionReason::TooMany => "session_limit_exceeded",
            SessionReason::Unavailable => "state_unavailable",
        }
    }
}

impl SessionFault {
    /// Makes a fault with this reason and message.
    pub fn new(reason: SessionReason, message: impl Into<String>) -> SessionFault {
        SessionFault { reason, message: message.into(), session_id: None }
    }

    /// Makes a fault about wrong arguments.
    pub fn arguments(message: impl Into<String>) -> SessionFault {
        SessionFault::new(SessionReason::Arguments, message)
    }

    /// Makes a fault about a session with a running program.
    pub fn busy(id: &str) -> SessionFault {
        let fault = SessionFault::new(SessionReason::Busy, "an eval is already running for this session");
        SessionFault { session_id: Some(id.to_owned()), ..fault }
    }
}

/// The members of an arguments object.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Reads the arguments.
    pub fn read(arguments: Option<Raw<'_>>) -> Result<Fields, SessionFault> {
        match serde_json::from_str(arguments.map_or("{}", Raw::get)) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(Value::Null) => Ok(Fields(Map::new())),
            Ok(_) | Err(_) => Err(SessionFault::arguments("arguments must be an object")),
        }
    }

    /// Whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that no other arguments exist.
    pub fn only(&self, tool: &str, known: &[&str]) -> Result<(), SessionFault> {
        match self.0.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(SessionFault::arguments(format!("unexpected {tool} argument: {key}"))),
            None => Ok(()),
        }
    }

    /// A string argument.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// A whole number of at least one.
    pub fn whole(&self, key: &str) -> Option<u64> {
        self.0.get(key).and_then(Value::as_u64).filter(|number| *number > 0)
    }

    /// Any value, including null.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// A list of strings.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<String>>, SessionFault> {
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
    pub fn session_id(&self) -> Result<&str, SessionFault> {
        self.text("session_id")
            .filter(|id| !id.is_empty())
            .ok_or_else(|| SessionFault::arguments("session_id must be a non-empty string"))
    }
}
