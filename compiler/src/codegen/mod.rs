//! Generates register bytecode from the intermediate representation (IR) of a program.
//!
//! Registers are a stack: register 0 is the closure, then come the parameters, then locals and temporary
//! values in the order in which they are needed. A call window therefore always finds the registers above
//! it empty.

mod call;
mod control;
mod emitter;
mod expression;
mod literal;
mod loops;
mod scope;

use crate::diagnostic::{Fallible, error};
use crate::ir::Function;
use crate::ir::tables::Tables;
use crate::meter::Meter;
pub(crate) use emitter::Buffers;
use emitter::Emitter;
use ptc_vm::Reason;
use ptc_vm::bytecode::{Proto, ProtoIndex};

/// Bytes of a function in addition to its code.
const HELD_BY_FUNCTION: usize = 2 * size_of::<Proto>() + 64;

/// The shared state of all functions of a program during code generation.
pub(crate) struct Generator<'m> {
    meter: &'m Meter<'m>,
    tables: Tables<'m>,
    protos: Vec<Option<Proto>>,
    /// Buffers of finished functions, for reuse.
    buffers: Vec<Buffers>,
    /// Avoids compare-and-jump instructions, which reach 32,767 instructions; other jumps have no limit.
    far: bool,
    /// Some compare-and-jump did not reach its target.
    too_far: bool,
    /// Last uses are known; without them a local stays full until its scope ends.
    last_uses: bool,
}

/// Generates a program; its entry is function 0.
pub(crate) fn generate<'m>(
    meter: &'m Meter<'m>,
    main: &Function<'_>,
    tables: Tables<'m>,
    last_uses: bool,
    buffers: &mut Vec<Buffers>,
) -> Fallible<(Vec<Proto>, Tables<'m>)> {
    let mut generator = Generator {
        meter,
        tables,
        protos: Vec::with_capacity(4),
        buffers: std::mem::take(buffers),
        far: false,
        too_far: false,
        last_uses,
    };
    generator.function(main)?;
    if generator.too_far {
        generator.protos.clear();
        generator.far = true;
        generator.function(main)?;
    }
    *buffers = generator.buffers;
    Ok((generator.protos.into_iter().flatten().collect(), generator.tables))
}

impl Generator<'_> {
    /// Generates all arities of a function; closures refer to the first.
    fn function(&mut self, function: &Function<'_>) -> Fallible<ProtoIndex> {
        let first = self.protos.len();
        let span = function.arities.first().map(|arity| arity.span).unwrap_or_default();
        if first + function.arities.len() > usize::from(u16::MAX) {
            let message = "program has too many functions; split it";
            return Err(error(Reason::CompileMemoryExceeded, span, message));
        }
        self.meter.hold(HELD_BY_FUNCTION * function.arities.len());
        self.protos.extend(function.arities.iter().map(|_| None));
        for (index, arity) in function.arities.iter().enumerate() {
            let mut proto = Emitter::arity(self, function, arity)?;
            if index + 1 < function.arities.len() {
                proto.next_arity = Some(ProtoIndex((first + index + 1) as u16));
            }
            self.protos[first + index] = Some(proto);
        }
        Ok(ProtoIndex(first as u16))
    }
}
