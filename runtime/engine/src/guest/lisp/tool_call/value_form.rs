//! Implements the form `tool/call!`, which calls a tool and returns the bare value or ends the program with a fault,
//! where `tool/call` returns a map with the value or the error.

use crate::broker::WorldFault;
use ptc_calls::run::outcome::CallFault;
use ptc_calls::tools::visible::visible_line;
use ptc_vm::{Fault, Reason};

/// The form in which a program gets the results of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultForm {
    /// A tagged result.
    Tagged,
    /// The value alone; a failure is a fault.
    Value,
}

/// The fault for a failed call; `called` is its `server/tool`, `most` the number of calls that the program may make.
pub(crate) fn value_fault(
    called: &str,
    WorldFault { reason, message }: &WorldFault,
    most: u64,
) -> Box<Fault> {
    // Texts of servers must not begin a line of the answer, nor move a cursor.
    let (called, message) = (visible_line(called), visible_line(message));
    let fault = match reason {
        CallFault::ToolError => Fault::new(Reason::ToolError, format_args!("{called}: {message}")),
        CallFault::CapExhausted => {
            let cap = reason.name();
            // A limit of the server is named in the message.
            let why = match message.strip_prefix(cap).and_then(|rest| rest.strip_prefix(": ")) {
                Some(why) => why.to_owned(),
                None => format!("a program may make {most} tool calls (--max-upstream-calls)"),
            };
            let fault = Fault::new(Reason::ToolCallLimitExceeded, format_args!("{called}: :{cap}, {why}"));
            return fault.hint("Ask a tool for many items at once.");
        }
        _ => Fault::new(Reason::ToolError, format_args!("{called}: :{}, {message}", reason.name())),
    };
    fault.hint("tool/call gives {:ok false :reason … :message …} instead of ending the program.")
}
