//! Determines whether an expression is free of effects, and which local variables it reads, for optimisations that
//! evaluate it earlier or later than written.

use super::{Callee, Kind, Ref, Slots};
use ptc_vm::builtins::Purity;

/// Whether evaluating it has no effect but a fault, at any time. Looks only a few levels deep.
pub(crate) fn is_inert(expr: Ref<'_>, levels: u32) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return false };
    match expr.kind {
        Kind::Literal(_)
        | Kind::Local(_)
        | Kind::Capture(_)
        | Kind::SelfRef
        | Kind::Global(_)
        | Kind::Closure(..) => true,
        Kind::Call(Callee::Builtin(builtin), arguments) => {
            matches!(builtin.info().purity, Purity::Total | Purity::Pure)
                && arguments.iter().all(|argument| is_inert(argument, levels))
        }
        Kind::Arithmetic(_, items) | Kind::Vector(items) | Kind::Map(items) | Kind::Set(items) => {
            items.iter().all(|item| is_inert(item, levels))
        }
        Kind::GetKey(_, target) | Kind::AddSmall(target, ..) => is_inert(target, levels),
        _ => false,
    }
}

/// Adds the locals that an inert expression reads.
pub(crate) fn add_reads(expr: Ref<'_>, reads: &mut Slots) {
    match &expr.kind {
        Kind::Local(read) => reads.insert(read.slot),
        Kind::Call(_, items)
        | Kind::Arithmetic(_, items)
        | Kind::Vector(items)
        | Kind::Map(items)
        | Kind::Set(items)
        | Kind::Closure(_, items) => items.iter().for_each(|item| add_reads(item, reads)),
        Kind::GetKey(_, target) | Kind::AddSmall(target, ..) => add_reads(target, reads),
        _ => {}
    }
}
