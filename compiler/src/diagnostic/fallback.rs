//! Hints for errors of the compiler that bring none of their own.

use ptc_vm::Reason;

/// By reason.
const HINTS: &[(Reason, &str)] = &[
    (Reason::ProgramTooLarge, "Pass the data as context and read it with data/key."),
    (Reason::ParseError, "Check brackets and quotes at this place."),
    (Reason::InvalidArity, "Give the form the parts it expects."),
    (Reason::ArityError, "(doc name) shows the arguments of a function."),
    (Reason::ArityMismatch, "Pass as many arguments as the function has parameters."),
    (Reason::InvalidCondForm, "Tests and results stand in pairs; the default is :else result."),
    (Reason::InvalidThreadForm, "The value comes first, then the steps: (->> coll (map inc))."),
    (Reason::UnsupportedPattern, "Patterns are a name, [a b & rest] and {:keys [a b]}."),
    (Reason::DuplicateKey, "Keep one of them; (assoc m k v) or (merge a b) lets the later value win."),
    (Reason::CompileMemoryExceeded, "Split it into functions with `defn`, or pass data as context."),
    (
        Reason::CompileTimeout,
        "Make the program shorter: pass data as context, and write a function for what is repeated.",
    ),
    (Reason::Cancelled, "The caller gave up; nothing is wrong with the program."),
    (Reason::UnknownTool, "(tool/servers) lists the servers."),
    (Reason::CompileError, "This is a defect of ptc: write the program in another way, and report it."),
];

/// The hint of a reason.
pub(super) fn hint(reason: Reason) -> &'static str {
    let row = HINTS.iter().find(|(known, _)| *known == reason);
    row.map_or("Write the form as its documentation shows it: (doc name).", |(_, hint)| *hint)
}
