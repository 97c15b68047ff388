//! Entry point for benchmarks: converts an upstream server's answer to `tools/call` into a Lisp value with the same
//! code as in a run, so that this step can be measured alone.

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
