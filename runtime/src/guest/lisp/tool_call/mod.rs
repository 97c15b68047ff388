//! `tool/call` between the program and the upstreams: reading the call, encoding its arguments,
//! unwrapping the answer.
//!
//! A *programmer fault* is a defect of the program and ends it; a *world fault* is a value
//! `{:ok false :reason … :message …}`.

mod answer;
mod arguments;
mod literal;
mod parse;

pub(crate) use answer::{unwrap, world_fault};
pub(crate) use arguments::{Encoded, encode};
pub(crate) use literal::StaticCheck;
pub(crate) use parse::{ParsedCall, parse};

use crate::tools::WrongCall;
use ptc_vm::{Context, Fault, Reason, Value};

/// Longest rendering of a value inside an error message.
const SHOWN: usize = 200;

/// Longest text in bytes that a program may give for the name of a server, a tool or a function. Configurations and
/// servers have shorter ones.
pub(crate) const LONGEST_NAME: usize = 1_000;

/// A programmer fault.
fn fault(message: impl std::fmt::Display) -> Box<Fault> {
    Fault::new(Reason::RuntimeError, message)
}

/// The programmer fault that a wrong call is.
pub(crate) fn programmer_fault(wrong: WrongCall) -> Box<Fault> {
    wrong.hints.into_iter().fold(fault(wrong.message), Fault::hint)
}

/// `pr-str` of a value, short enough for a message.
pub(crate) fn shown(cx: &mut Context, value: &Value) -> Result<String, Box<Fault>> {
    let printed = ptc_vm::print::pr_str(cx, value, SHOWN)?;
    Ok(if printed.truncated { format!("{}...", printed.text) } else { printed.text })
}

#[cfg(test)]
mod tests;
