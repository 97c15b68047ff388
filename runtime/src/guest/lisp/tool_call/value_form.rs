//! `tool/call!`: a result is the bare value, and a failure is a fault at the call.

use crate::broker::WorldFault;
use crate::run::outcome::CallFault;
use ptc_vm::{Fault, Reason};

/// The form in which a program gets the results of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultForm {
    /// A tagged result.
    Tagged,
    /// The value alone; a failure is a fault.
    Value,
}

/// The fault for a failed call; `called` is its `server/tool`.
pub(crate) fn value_fault(called: &str, WorldFault { reason, message }: &WorldFault) -> Box<Fault> {
    let fault = match reason {
        CallFault::ToolError => Fault::new(Reason::ToolError, format_args!("{called}: {message}")),
        CallFault::CapExhausted => {
            Fault::new(Reason::ToolCallLimitExceeded, format_args!("{called}: :cap_exhausted, {message}"))
        }
        _ => Fault::new(Reason::ToolError, format_args!("{called}: :{}, {message}", reason.name())),
    };
    fault.hint("tool/call gives {:ok false :reason … :message …} instead of ending the program.")
}
