//! Implements `(tool/name …)`, with which a program calls functions that the embedding application offers as tools.
//! Arguments are named, or in the order of the schema. The result is the value itself. A failure ends the program,
//! because there is no `{:ok false …}` to test.

use super::{encode, fault, programmer_fault, shown};
use crate::broker::{CallError, CallPayload, Chosen, PayloadContent, Permit, WorldFault};
use ptc_calls::host::{GrantedTool, GrantedTools};
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::outcome::CallFault;
use ptc_calls::tools::call_messages::{not_granted, signature_hint};
use ptc_calls::tools::{HOST, UpstreamTool};
use ptc_vm::json::{DecodeFailure, decode};
use ptc_vm::value::map::MapNode;
use ptc_vm::{Context, Fault, Reason, Value};
use std::sync::Arc;

/// The tool of this name.
pub(crate) fn find<'t>(
    tools: Option<&'t Arc<GrantedTools>>,
    name: &str,
) -> Result<&'t Arc<GrantedTool>, Box<Fault>> {
    tools.and_then(|tools| tools.get(name)).ok_or_else(|| {
        let names = tools.map(|tools| tools.names_of(false)).unwrap_or_default();
        let mut fault = programmer_fault(not_granted(name, &names));
        fault.reason = Reason::UnknownTool;
        fault
    })
}

/// Encodes the arguments of a call.
pub(crate) fn encoded(
    cx: &mut Context,
    account: &RunAccount,
    permit: Permit,
    arguments: &[Value],
) -> Result<(Permit, String), Box<Fault>> {
    let tool = permit.tool().clone();
    let encoded =
        read(cx, &tool, arguments).and_then(|args| encode(cx, (HOST, &tool.name), &args, Some(&tool)));
    match encoded {
        Ok((text, notes)) => {
            notes.into_iter().for_each(|note| account.note(note));
            Ok((permit, text))
        }
        Err(mut fault) => {
            permit.withdraw();
            if fault.reason == Reason::RuntimeError {
                fault.reason = Reason::InvalidToolArgs;
            }
            Err(fault)
        }
    }
}

/// The arguments as a map. They may be absent, a map, keywords and values, or values in the order of the
/// schema's properties.
fn read(cx: &mut Context, tool: &UpstreamTool, arguments: &[Value]) -> Result<Value, Box<Fault>> {
    let is_named = arguments.len().is_multiple_of(2)
        && arguments.chunks_exact(2).all(|pair| matches!(pair[0], Value::Keyword(_)));
    match arguments {
        [] | [Value::Nil] => Ok(Value::Nil),
        [map @ Value::Map(_)] => Ok(map.clone()),
        pairs if is_named => {
            let mut map = MapNode::with_capacity(pairs.len() / 2);
            for (at, pair) in pairs.chunks_exact(2).enumerate() {
                map = MapNode::insert(map, cx, pair[0].clone(), pair[1].clone())?;
                if map.len() == at {
                    let key = shown(cx, &pair[0])?;
                    return Err(fault(format!("tool/{} got duplicate key {key}", tool.name)));
                }
            }
            Ok(Value::Map(map))
        }
        values => {
            let properties = tool.input_schema.get("properties").and_then(serde_json::Value::as_object);
            let count = properties.map_or(0, |properties| properties.len());
            if values.len() > count {
                let text = format!("tool/{} takes {count} arguments, got {}", tool.name, values.len());
                return Err(fault(text).hint(signature_hint(HOST, tool)));
            }
            let mut map = MapNode::with_capacity(values.len());
            for (name, value) in properties.into_iter().flat_map(|all| all.keys()).zip(values) {
                let key = cx.host_text(name)?;
                map = MapNode::insert(map, cx, key, value.clone())?;
            }
            Ok(Value::Map(map))
        }
    }
}

/// The result of a tool as a value; `failure` is what the ledger gets if there is none.
pub(crate) fn value(
    cx: &mut Context,
    name: &str,
    payload: &CallPayload,
    failure: &mut Option<WorldFault>,
) -> Result<Value, Box<Fault>> {
    let (reason, message) = match &payload.content {
        PayloadContent::Success { value: Chosen::Structured(place), .. } => {
            match decode(cx, payload.part(place)) {
                Ok(value) => return Ok(value),
                Err(DecodeFailure::Fault(fault)) => return Err(fault),
                Err(DecodeFailure::Invalid(why)) => {
                    (CallFault::UpstreamError, format!("its result cannot be decoded: {why}"))
                }
            }
        }
        PayloadContent::Success { .. } => return Ok(Value::Nil),
        PayloadContent::ToolError { message, .. } => (CallFault::ToolError, message.clone()),
        PayloadContent::Malformed(why) => (CallFault::UpstreamError, why.clone().into_owned()),
    };
    let fault = tool_error(name, &message);
    *failure = Some(WorldFault { reason, message });
    Err(fault)
}

/// The fault for a call that failed.
pub(crate) fn failed(name: &str, error: CallError, account: &RunAccount) -> Box<Fault> {
    match error {
        CallError::Wrong(wrong) => programmer_fault(wrong),
        CallError::World(fault) => world(name, fault),
        CallError::OverMemory { bytes } => super::over_memory(bytes, account),
    }
}

/// The fault for a call without an answer.
pub(crate) fn world(name: &str, WorldFault { reason, message }: WorldFault) -> Box<Fault> {
    match reason {
        CallFault::CapExhausted => Fault::new(
            Reason::ToolCallLimitExceeded,
            format_args!("tool/{name} was not called: the program has used up its calls"),
        ),
        _ => tool_error(name, &message),
    }
}

fn tool_error(name: &str, message: &str) -> Box<Fault> {
    Fault::new(Reason::ToolError, format_args!("Tool '{name}' failed: {message:?}"))
}
