//! Parts of a run by themselves, for measurements only.

use crate::broker::CallPayload;
use crate::guest::lisp::tool_call::unwrap;
use crate::upstream::{CallResult, ResultBody, response};
use ptc_vm::{Context, Value};

/// The way of an upstream's answer to a `tools/call`, from the frame as it was read to what the program gets.
///
/// # Errors
/// A frame that is no answer; limits of the program.
pub fn answer_to_value(cx: &mut Context, frame: Vec<u8>) -> Result<Value, String> {
    let answer = response(frame).ok_or("not an answer")?;
    let unwrapped = unwrap(cx, &CallPayload::of(CallResult::Mcp(ResultBody::Inline(answer)), None))
        .map_err(|fault| fault.message)?;
    Ok(unwrapped.value)
}
