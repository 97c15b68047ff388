//! Implements the Lisp forms that call tools, resources and prompts of servers (`tool/call` and others): checks the
//! call, encodes arguments, converts the result.
//!
//! A *programmer fault* is a defect of the program and ends it. A *world fault* is a value `{:ok false
//! :reason … :message …}`. For tools of the host (`granted`) and for `tool/call!` it ends the program, too.

mod answer;
mod arguments;
pub(crate) mod granted;
mod literal;
mod parse;
mod request;
mod value_form;

pub(crate) use answer::{kept, unwrap, world_fault};
pub(crate) use arguments::encode;
pub(crate) use literal::StaticCheck;
pub(crate) use parse::{ParsedCall, parse};
pub(crate) use value_form::{ResultForm, value_fault};

use ptc_calls::run::account::RunAccount;
use ptc_calls::tools::WrongCall;
use ptc_vm::{Context, Fault, Reason, Value};

/// Length limit of a value inside an error message.
const SHOWN: usize = 200;

/// Length limit, in bytes, of the name of a server, a tool or a function. Configurations and servers have
/// shorter ones.
pub(crate) const LONGEST_NAME: usize = 1_000;

/// A programmer fault.
fn fault(message: impl std::fmt::Display) -> Box<Fault> {
    Fault::new(Reason::RuntimeError, message)
}

/// The programmer fault for a wrong call.
pub(crate) fn programmer_fault(wrong: WrongCall) -> Box<Fault> {
    wrong.hints.into_iter().fold(fault(wrong.message), Fault::hint)
}

/// The fault about an answer for which the results that wait leave no memory.
pub(crate) fn over_memory(bytes: u64, account: &RunAccount) -> Box<Fault> {
    let limit = account.limits().memory_bytes;
    let message = format!(
        "memory limit exceeded: upstream results of {bytes} more bytes wait for the program, the limit is {limit} bytes"
    );
    Fault::new(Reason::MemoryExceeded, message)
}

/// `pr-str` of a value, short enough for a message.
pub(crate) fn shown(cx: &mut Context, value: &Value) -> Result<String, Box<Fault>> {
    let printed = ptc_vm::print::pr_str(cx, value, SHOWN)?;
    Ok(if printed.truncated { format!("{}...", printed.text) } else { printed.text })
}

#[cfg(test)]
mod tests;
