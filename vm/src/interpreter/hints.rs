//! What to change after a fault that has no hint of its own: by its reason, or the usage of the builtin that was
//! called.

use crate::builtins::{Builtin, Category, Implementation, Purity};
use crate::bytecode::BuiltinId;
use crate::fault::{BoundedText, Fault, Reason};

/// What is said about a reason when nothing more exact is known.
const REASONS: &[(Reason, &str)] = &[
    (Reason::TypeError, "Look at the value with (describe x) or (type x)."),
    (Reason::ArithmeticError, "Test the numbers before, as in (if (zero? d) nil (/ n d))."),
    (Reason::ArityError, "(doc name) shows the arguments of a function."),
    (Reason::ArityMismatch, "Pass as many arguments as the function has parameters."),
    (Reason::NotCallable, "Only functions, keywords, maps, sets and vectors can stand after (."),
    (
        Reason::DestructureError,
        "[a b] takes lists apart, {:keys [a b]} maps; look at the value with (describe x).",
    ),
    (Reason::RuntimeError, "Look at the values with (describe x)."),
    (Reason::UnboundVar, "Its `def` has not run yet: move the definition before this."),
    (
        Reason::LoopLimitExceeded,
        "Check that every round comes nearer to the end; for long work use reduce or map over (range n).",
    ),
    (Reason::FuelExceeded, "Check for endless loops; otherwise process less data, or ask for more fuel."),
    (
        Reason::MemoryExceeded,
        "Keep only the fields and rows you need, or reduce step by step instead of building collections.",
    ),
    (Reason::Timeout, "Do less work, call tools in parallel with pmap, or ask for a higher time limit."),
    (Reason::Cancelled, "The caller gave up; nothing is wrong with the program."),
    (Reason::Fail, "The program itself called `fail` here: change what it tests, or return the value."),
    (Reason::UnknownTool, "Call upstream tools as (tool/call {:server \"name\" :tool \"name\" :args {…}})."),
    (Reason::PmapError, "Make the branch return a value such as {:ok false} instead of faulting."),
    (Reason::PcallsError, "Make the function return a value such as {:ok false} instead of faulting."),
    (Reason::ExecutionError, "This is a defect of ptc: write the expression in another way, and report it."),
];

/// Recursion deeper than this is named as the cause of an exceeded limit.
pub(crate) const DEEP: usize = 1_000;

/// Gives a fault without a hint one: the usage of the builtin that was called, else the hint of the reason.
/// `frames` is how deep the calls are.
#[cold]
pub(crate) fn complete(fault: &mut Fault, builtin: Option<BuiltinId>, frames: usize) {
    let is_limit = matches!(fault.reason, Reason::MemoryExceeded | Reason::FuelExceeded | Reason::Timeout);
    if is_limit && frames > DEEP && fault.hints.is_empty() {
        fault.hints.push(BoundedText::of(format_args!(
            "The recursion is {frames} calls deep: give it an end, or use loop/recur or reduce."
        )));
    }
    let info = builtin.map(BuiltinId::info);
    let callback = info.filter(|info| info.purity == Purity::Calls && fault.reason == Reason::ArityMismatch);
    if let Some(info) = callback {
        fault.hints.push(BoundedText::of(format_args!("{}: {}", info.usage, info.doc)));
    }
    if !fault.hints.is_empty() {
        return;
    }
    let is_about_a_call =
        matches!(fault.reason, Reason::TypeError | Reason::ArityError | Reason::RuntimeError);
    // The calls of tools have the names that programs write in their usage.
    let is_shown = |info: &Builtin| {
        info.category != Category::Internal || matches!(info.implementation, Implementation::Host(_))
    };
    let usage = info
        .filter(|info| is_about_a_call && is_shown(info))
        .map(|info| BoundedText::of(format_args!("Usage: {}", info.usage)));
    let general =
        || REASONS.iter().find(|(reason, _)| *reason == fault.reason).map(|(_, hint)| BoundedText::of(hint));
    fault.hints.extend(usage.or_else(general));
}
