//! Describes, for data-flow analysis, the names that a program uses but does not define: definitions of earlier
//! programs of the session, and exports of preludes (Lisp libraries).

use super::set::Callables;
use crate::namespace::ExportEffects;

/// What is known of names that the program does not define.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'x> {
    /// An earlier program of the session has defined this name.
    pub(crate) is_session: &'x dyn Fn(&str) -> bool,
    /// What a call of an export of a namespace may do.
    pub(crate) export: &'x dyn Fn(&str, &str) -> ExportEffects,
}

/// What a call of an export of a prelude may do.
pub(super) fn calls_of_export(effects: ExportEffects) -> Callables {
    let mut calls = Callables::DATA;
    if effects.may_print {
        calls = calls.union(Callables::PRINTS);
    }
    if effects.may_end {
        calls = calls.union(Callables::ENDS);
    }
    // What ends the program has no other mark, and neither has what calls functions elsewhere.
    match effects.may_call || effects.may_end || effects.may_defer {
        true => calls.union(Callables::UNKNOWN),
        false => calls,
    }
}
