//! Determines from bytecode which effects a library definition may have, for the data-flow analysis: calling the host,
//! ending the program, printing, or making lazy sequences and memoized functions. The functions in these values run
//! later, outside of the call that made them.

use crate::flows::is_deferring;
use crate::namespace::ExportEffects;
use ptc_vm::builtins::{Builtin, Implementation, Purity};
use ptc_vm::bytecode::instruction::{Instruction, Reference};
use ptc_vm::bytecode::{CombinatorKind, Const, Known, Program};

/// What the code of a definition may do, without what it calls.
pub(super) fn effects_of(program: &Program) -> ExportEffects {
    let constants = program.constants.iter().map(of_constant);
    let globals =
        program.globals.iter().filter_map(|global| global.builtin).map(|id| of_builtin(id.info(), None));
    let code = program.protos.iter().flat_map(|proto| proto.code.iter()).map(of_instruction);
    constants.chain(globals).chain(code).fold(ExportEffects::default(), ExportEffects::union)
}

fn of_constant(constant: &Const) -> ExportEffects {
    match constant {
        Const::Builtin(builtin) => of_builtin(builtin.info(), None),
        Const::Tool(_) => ExportEffects { may_call: true, ..ExportEffects::default() },
        Const::Combinator(kind, _) => {
            let may_defer = matches!(kind, CombinatorKind::Memoize | CombinatorKind::Endless(_));
            ExportEffects { may_defer, ..ExportEffects::default() }
        }
        _ => ExportEffects::default(),
    }
}

fn of_instruction(instruction: &Instruction) -> ExportEffects {
    let count = match *instruction {
        Instruction::Exit { .. } => return ExportEffects { may_end: true, ..ExportEffects::default() },
        Instruction::Call1 { .. } => 1,
        Instruction::Call2 { .. } => 2,
        Instruction::CallBuiltin { window, .. } => usize::from(window.count),
        _ => return ExportEffects::default(),
    };
    match instruction.reference() {
        Some(Reference::Builtin(builtin)) => of_builtin(builtin.info(), Some(count)),
        _ => ExportEffects::ANY,
    }
}

/// `count`: the number of arguments, if it is known.
fn of_builtin(info: &Builtin, count: Option<usize>) -> ExportEffects {
    let may_call =
        matches!(info.implementation, Implementation::Host(_)) || info.known == Some(Known::DataEntry);
    let may_print = !may_call && info.purity == Purity::Effect;
    ExportEffects { may_call, may_end: false, may_print, may_defer: is_deferring(info, count) }
}
