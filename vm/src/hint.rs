//! What to change after a fault: tables by reason, by the type of the value that does not fit, and the
//! usage of the builtin that was called.

use crate::brief::Brief;
use crate::builtins::{Builtin, BuiltinId, Category, Implementation, Purity};
use crate::fault::Fault;
use crate::reason::Reason;

/// What a function needed when it got something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A number.
    Number,
    /// Something to go through: a list, map, set, string or nil.
    Collection,
    /// A function in call position.
    Function,
    /// What the pattern of a binding takes apart.
    Pattern,
}

/// By what was needed and the type that came instead.
const MISMATCHES: &[(Wanted, &str, &str)] = &[
    (
        Wanted::Number,
        "nil",
        "nil is often a missing key or an empty result: check the key, or give a default as in (or x 0).",
    ),
    (Wanted::Number, "string", "Make numbers of text with parse-long or parse-double; join text with str."),
    (
        Wanted::Number,
        "list",
        "Work on the items: (reduce + 0 coll) sums a list, (map inc coll) changes each.",
    ),
    (Wanted::Number, "map", "Take the number out of the map first, as in (:price m)."),
    (Wanted::Number, "keyword", "A keyword reads a key when it is called: (:price m)."),
    (Wanted::Number, "boolean", "Make a number of a boolean with (if x 1 0)."),
    (Wanted::Number, "function", "Call the function for its result, as in (f x)."),
    (Wanted::Number, "set", "Use (count s), or (reduce + 0 s) for the sum."),
    (Wanted::Number, "LocalDate", "Move a date with (.plusDays d 1); (.toEpochDay d) is its number of days."),
    (Wanted::Number, "DateTime", "Compare instants with .isBefore; (.getTime d) gives milliseconds."),
    (Wanted::Number, "Duration", "(.toMillis d) gives the milliseconds of a duration."),
    (Wanted::Collection, "number", "Use (range n) for the numbers below n, or [n] for a list of one."),
    (Wanted::Collection, "keyword", "Read the key from a map, as in (:items m); the collection comes last."),
    (Wanted::Collection, "boolean", "A predicate tests one item: filter it out with (filter pred coll)."),
    (Wanted::Collection, "function", "The function comes first and the collection last, as in (map f coll)."),
    (Wanted::Collection, "regex", "Text comes second: (re-seq #\"…\" s); for split it comes first."),
    (
        Wanted::Function,
        "nil",
        "The value in call position is nil: check what should give the function. (:k m) reads a key of a map.",
    ),
    (
        Wanted::Function,
        "number",
        "A number is no function: the function comes first, as in (+ 1 2); a list of values is written [a b].",
    ),
    (
        Wanted::Function,
        "string",
        "Read a key of a map with (get m \"key\"). A list of values is written [a b].",
    ),
    (
        Wanted::Function,
        "boolean",
        "The function comes first: (and a b). Remove the extra parentheses around a value.",
    ),
    (Wanted::Function, "LocalDate", "Call methods as (.method date)."),
    (Wanted::Function, "DateTime", "Call methods as (.method date)."),
    (Wanted::Pattern, "map", "Take a map apart with {:keys [a b]}, its entries with (for [[k v] m] …)."),
    (
        Wanted::Pattern,
        "list",
        "Take a list apart with [a b]; for each map of a list use (map (fn [{:keys [a]}] …) coll).",
    ),
    (Wanted::Pattern, "number", "Bind the value to a plain name; patterns take lists and maps apart."),
    (Wanted::Pattern, "string", "Bind the text to a plain name, or read JSON text with json/parse-string."),
    (Wanted::Pattern, "set", "Make a list of it first with (vec s)."),
];

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

/// Divisors.
pub(crate) const DIVISION: &str = "Test the divisor first, as in (if (zero? d) nil (/ n d)).";

/// The hint for a value that does not fit.
fn mismatch(wanted: Wanted, got: &str) -> Option<&'static str> {
    MISMATCHES.iter().find(|(need, word, _)| *need == wanted && *word == got).map(|(_, _, hint)| *hint)
}

impl Fault {
    /// Notes the types of the arguments and adds the hint for the first that does not fit.
    #[cold]
    #[must_use]
    pub(crate) fn mismatch(mut self: Box<Fault>, wanted: Wanted, types: &[&'static str]) -> Box<Fault> {
        let hint = types.iter().find_map(|word| mismatch(wanted, word));
        self.hints.extend(hint.map(Brief::of));
        self.types(types)
    }
}

/// Gives a fault without a hint one: the usage of the builtin that was called, else the hint of the reason.
/// `frames` is how deep the calls are.
#[cold]
pub(crate) fn complete(fault: &mut Fault, builtin: Option<BuiltinId>, frames: usize) {
    let is_limit = matches!(fault.reason, Reason::MemoryExceeded | Reason::FuelExceeded | Reason::Timeout);
    if is_limit && frames > DEEP && fault.hints.is_empty() {
        fault.hints.push(Brief::of(format_args!(
            "The recursion is {frames} calls deep: give it an end, or use loop/recur or reduce."
        )));
    }
    let info = builtin.map(BuiltinId::info);
    let callback = info.filter(|info| info.purity == Purity::Calls && fault.reason == Reason::ArityMismatch);
    if let Some(info) = callback {
        fault.hints.push(Brief::of(format_args!("{}: {}", info.usage, info.doc)));
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
        .map(|info| Brief::of(format_args!("Usage: {}", info.usage)));
    let general =
        || REASONS.iter().find(|(reason, _)| *reason == fault.reason).map(|(_, hint)| Brief::of(hint));
    fault.hints.extend(usage.or_else(general));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_in_the_table_is_a_type_and_every_pair_stands_once() {
        for (index, (wanted, word, hint)) in MISMATCHES.iter().enumerate() {
            assert_eq!(mismatch(*wanted, word), Some(*hint), "row {index} repeats an earlier one");
            assert!(hint.len() <= 110, "{hint}");
        }
    }
}
