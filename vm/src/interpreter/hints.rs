//! Gives an error without a specific hint a general one: the usage of the called builtin, or advice for this kind of
//! error.

use crate::builtins::{Builtin, Category, Implementation, Purity};
use crate::bytecode::BuiltinId;
use crate::fault::{BoundedText, Fault, Reason};

/// Recursion deeper than this is named as the cause of an exceeded limit.
pub(crate) const DEEP: usize = 1_000;

/// Gives a fault without a hint one: the usage of the called builtin, else the hint of the reason. `frames` is the
/// depth of calls.
#[cold]
pub(crate) fn complete(fault: &mut Fault, builtin: Option<BuiltinId>, frames: usize) {
    let is_limit = matches!(fault.reason, Reason::MemoryExceeded | Reason::FuelExceeded | Reason::Timeout);
    if is_limit && frames > DEEP && fault.hints.is_empty() {
        fault.hints.push(BoundedText::new(format_args!(
            "The recursion is {frames} calls deep: give it an end, or use loop/recur or reduce."
        )));
    }
    let info = builtin.map(BuiltinId::info);
    let callback = info.filter(|info| info.purity == Purity::Calls && fault.reason == Reason::ArityMismatch);
    if let Some(info) = callback {
        fault.hints.push(BoundedText::new(format_args!("{}: {}", info.usage, info.doc)));
    }
    if !fault.hints.is_empty() {
        return;
    }
    let is_about_a_call =
        matches!(fault.reason, Reason::TypeError | Reason::ArityError | Reason::RuntimeError);
    // The usage of tool call forms shows the names that programs write.
    let is_shown = |info: &Builtin| {
        info.category != Category::Internal || matches!(info.implementation, Implementation::Host(_))
    };
    let usage = info
        .filter(|info| is_about_a_call && is_shown(info))
        .map(|info| BoundedText::new(format_args!("Usage: {}", info.usage)));
    fault.hints.push(usage.unwrap_or_else(|| BoundedText::new(fault.reason.hint())));
}
