//! Lets benchmarks measure one step alone, by the code that programs use: the conversion of an upstream server's answer
//! to `tools/call` into a value.

use crate::broker::CallPayload;
use crate::guest::lisp::tool_call::{ResultForm, unwrap};
use ptc_upstream::{CallResult, response};
use ptc_vm::{Context, Value};

/// Turns a frame with an upstream's answer to `tools/call` into the value that the program gets.
///
/// # Errors
/// The frame is no answer; a limit of the program.
pub fn answer_to_value(cx: &mut Context, frame: Vec<u8>) -> Result<Value, String> {
    let answer = response(frame).ok_or("not an answer")?;
    let payload = CallPayload::of(CallResult::Mcp(answer), None);
    unwrap(cx, &payload, ResultForm::Tagged).map(|(value, _)| value).map_err(|fault| fault.message.into())
}
