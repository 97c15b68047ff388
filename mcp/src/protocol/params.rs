//! The parameters of every method we know, read with the message that they are in.

use super::json::{Json, Malformed, Members, Reader};
use super::message::RpcError;
use super::version::{META_CAPABILITIES, META_LOG_LEVEL, META_VERSION};
use serde_json::Value;
use std::borrow::Cow;

/// Union of the parameters of all methods. Unknown keys are ignored.
#[derive(Clone, Debug, Default)]
pub struct Params<'a> {
    /// `tools/call`: the tool.
    pub name: Option<Cow<'a, str>>,
    /// `tools/call`: its arguments.
    pub arguments: Option<Json<'a>>,
    /// `initialize`: the version the client prefers. As it is, so that a wrong type is no error.
    pub protocol_version: Option<Json<'a>>,
    /// `notifications/cancelled`: which request.
    pub request_id: Option<Json<'a>>,
    /// `logging/setLevel`.
    pub level: Option<Cow<'a, str>>,
    /// `tools/list`: where to go on. We never hand one out.
    pub cursor: Option<Json<'a>>,
    /// `subscriptions/listen`: hear of changes of the tool list. Kinds that we never send are ignored.
    pub tools_list_changed: bool,
    /// Metadata; of the stateless era most of all.
    pub meta: Option<Meta<'a>>,
}

/// The keys of `_meta` that matter to us.
#[derive(Clone, Debug, Default)]
pub struct Meta<'a> {
    /// The request's revision.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The client's capabilities.
    pub client_capabilities: Option<Json<'a>>,
    /// Log messages wanted for this request.
    pub log_level: Option<Cow<'a, str>>,
    /// Wish to hear of progress.
    pub progress_token: Option<Json<'a>>,
}

const NAMES: [&str; 8] =
    ["name", "arguments", "_meta", "protocolVersion", "requestId", "level", "cursor", "notifications"];
const META: usize = 2;
const META_NAMES: [&str; 4] = [META_VERSION, META_CAPABILITIES, META_LOG_LEVEL, "progressToken"];

impl<'a> Params<'a> {
    /// Reads parameters; wrong ones are no fault of the text that they are in.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Result<Params<'a>, RpcError>, Malformed> {
        if reader.peek() != Some(b'{') {
            let value = reader.value()?;
            let wrong = || RpcError::invalid_params("params must be an object");
            return Ok(if value.is_null() { Ok(Params::default()) } else { Err(wrong()) });
        }
        let mut meta = Ok(None);
        let members = reader.members(&NAMES, |reader, place| match place {
            META if reader.peek() == Some(b'{') => {
                let (read, text) = Meta::read(reader)?;
                meta = read.map(Some);
                Ok(text)
            }
            _ => reader.value(),
        })?;
        Ok(meta.and_then(|meta| Params::of(&members, meta)))
    }

    fn of(members: &Members<'a, 8>, meta: Option<Meta<'a>>) -> Result<Params<'a>, RpcError> {
        once(members)?;
        let [name, arguments, raw_meta, protocol_version, request_id, level, cursor, notifications] =
            members.values.map(|value| value.filter(|value| !value.is_null()));
        if raw_meta.is_some() && meta.is_none() {
            return Err(RpcError::invalid_params("`_meta` must be an object"));
        }
        Ok(Params {
            name: text("name", name)?,
            arguments,
            protocol_version,
            request_id,
            level: text("level", level)?,
            cursor,
            tools_list_changed: notifications.map_or(Ok(false), wants_tools)?,
            meta,
        })
    }

    /// The arguments of a call as a tree; null without any.
    pub fn arguments_value(&self) -> Value {
        self.arguments.and_then(|arguments| arguments.decode().ok()).unwrap_or_default()
    }
}

impl<'a> Meta<'a> {
    /// Reads an object, and gives its text too.
    fn read(reader: &mut Reader<'a>) -> Result<(Result<Meta<'a>, RpcError>, Json<'a>), Malformed> {
        let mut whole = reader.clone();
        let members = reader.members(&META_NAMES, |reader, _| reader.value())?;
        let text = whole.until(reader)?;
        Ok((Meta::of(&members), text))
    }

    fn of(members: &Members<'a, 4>) -> Result<Meta<'a>, RpcError> {
        once(members)?;
        let [version, client_capabilities, log_level, progress_token] =
            members.values.map(|value| value.filter(|value| !value.is_null()));
        Ok(Meta {
            protocol_version: text(META_VERSION, version)?,
            client_capabilities,
            log_level: text(META_LOG_LEVEL, log_level)?,
            progress_token,
        })
    }
}

fn once<const N: usize>(members: &Members<'_, N>) -> Result<(), RpcError> {
    match members.twice {
        Some(name) => Err(RpcError::invalid_params(&format!("duplicate field `{name}`"))),
        None => Ok(()),
    }
}

fn text<'a>(name: &str, value: Option<Json<'a>>) -> Result<Option<Cow<'a, str>>, RpcError> {
    let Some(value) = value else { return Ok(None) };
    match value.string() {
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(error)) => Err(RpcError::invalid_params(&format!("`{name}`: {error}"))),
        None => {
            let message = format!("`{name}` must be a string, got {}", value.type_name());
            Err(RpcError::invalid_params(&message))
        }
    }
}

fn wants_tools(notifications: Json<'_>) -> Result<bool, RpcError> {
    let wrong = |_| RpcError::invalid_params("`notifications` must be an object of booleans");
    let wanted: serde_json::Map<String, Value> =
        notifications.decode().map_err(|_| Malformed).map_err(wrong)?;
    match wanted.get("toolsListChanged") {
        None => Ok(false),
        Some(Value::Bool(wanted)) => Ok(*wanted),
        Some(_) => Err(wrong(Malformed)),
    }
}
