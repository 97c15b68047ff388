//! Defines one type for the parameters of every MCP method that the server knows, including metadata (`_meta`), so that
//! any message is parsed in one pass.

use super::borrowed::{Object, Raw, Text};
use super::message::RpcError;
use ptc_calls::trace::TraceContext;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Union of the parameters of all methods. Unknown keys are ignored.
#[derive(Debug, Default, Deserialize)]
pub struct Params<'a> {
    /// `tools/call`: the tool.
    #[serde(borrow, default)]
    pub name: Option<Text<'a>>,
    /// `tools/call`: its arguments.
    #[serde(borrow, default)]
    pub arguments: Option<Raw<'a>>,
    /// `initialize`: the version the client prefers. Raw, so that a wrong type is no error.
    #[serde(borrow, default, rename = "protocolVersion")]
    pub protocol_version: Option<Raw<'a>>,
    /// `initialize`: the client's capabilities.
    #[serde(borrow, default)]
    pub capabilities: Option<Raw<'a>>,
    /// `notifications/cancelled`: id of the request.
    #[serde(borrow, default, rename = "requestId")]
    pub request_id: Option<Raw<'a>>,
    /// `logging/setLevel`.
    #[serde(borrow, default)]
    pub level: Option<Text<'a>>,
    /// `tools/list`: where to continue. We never issue one.
    #[serde(borrow, default)]
    pub cursor: Option<Raw<'a>>,
    /// `subscriptions/listen`: wanted kinds of notifications.
    #[serde(default)]
    pub notifications: Option<Wanted>,
    /// `resources/read` and similar methods: the resource.
    #[serde(borrow, default)]
    pub uri: Option<Raw<'a>>,
    /// The client's answers to an `input_required` response (2026-07-28).
    #[serde(borrow, default, rename = "inputResponses")]
    pub input_responses: Option<Raw<'a>>,
    /// The state that such a response asked the client to send back.
    #[serde(borrow, default, rename = "requestState")]
    pub request_state: Option<Raw<'a>>,
    /// `tools/call`: the client wants a task (2025-11-25).
    #[serde(borrow, default)]
    pub task: Option<Raw<'a>>,
    /// `tasks/get` and similar methods: the task.
    #[serde(borrow, default, rename = "taskId")]
    pub task_id: Option<Raw<'a>>,
    /// Metadata, used mostly in the stateless era.
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<Meta<'a>>,
}

/// The keys of `_meta` that we use.
#[derive(Debug, Default, Deserialize)]
pub struct Meta<'a> {
    /// The protocol version of the request.
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<Text<'a>>,
    /// The client's capabilities.
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<Raw<'a>>,
    /// Level of log messages wanted for this request.
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    pub log_level: Option<Text<'a>>,
    /// Token for progress notifications, if the client wants them.
    #[serde(borrow, default, rename = "progressToken")]
    pub progress_token: Option<Raw<'a>>,
    /// W3C trace context of the request. Raw, so that a wrong type is no error.
    #[serde(borrow, default)]
    pub traceparent: Option<Raw<'a>>,
    /// State of the trace context.
    #[serde(borrow, default)]
    pub tracestate: Option<Raw<'a>>,
}

impl Meta<'_> {
    /// The trace context of the request, if it has one.
    pub fn trace(&self) -> Option<TraceContext> {
        let text = |raw: Raw<'_>| serde_json::from_str::<String>(raw.get()).ok();
        let parent = text(self.traceparent?)?;
        TraceContext::read(&parent, self.tracestate.and_then(text).as_deref())
    }
}

/// Kinds of notifications that a subscription asks for. Kinds that we never send are ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wanted {
    /// Changes of the tool list.
    pub tools_list_changed: bool,
    /// Tasks to be notified of.
    pub task_ids: Option<Vec<String>>,
}

impl<'a> Params<'a> {
    /// Reads raw parameters; absent ones are empty.
    ///
    /// # Errors
    /// Parameters of another type.
    pub fn read(raw: Option<Raw<'a>>) -> Result<Params<'a>, RpcError> {
        let Some(raw) = raw else { return Ok(Params::default()) };
        if !raw.get().starts_with('{') {
            return Err(RpcError::invalid_params("params must be an object"));
        }
        serde_json::from_str(raw.get())
            .map(|Object(params)| params)
            .map_err(|error| RpcError::invalid_params(&error.to_string()))
    }

    /// The capabilities that a client without a handshake declares in every request.
    pub fn declared_capabilities(&self) -> Option<Raw<'a>> {
        self.meta.as_ref()?.client_capabilities
    }

    /// The client's answers to what a response asked it; empty without any.
    ///
    /// # Errors
    /// They are no object of objects.
    pub fn responses(&self) -> Result<HashMap<String, Box<RawValue>>, RpcError> {
        let responses = self.input_responses.map_or("{}", Raw::get);
        let responses: Option<HashMap<String, Box<RawValue>>> = serde_json::from_str(responses).ok();
        responses
            .filter(|all| all.values().all(|response| response.get().starts_with('{')))
            .ok_or_else(|| RpcError::invalid_params("inputResponses must be an object of objects"))
    }

    /// The arguments of a call as a tree; null without any.
    pub fn arguments_value(&self) -> Value {
        self.arguments
            .as_ref()
            .and_then(|arguments| serde_json::from_str(arguments.get()).ok())
            .unwrap_or_default()
    }
}
