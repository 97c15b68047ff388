//! A test mode of the code generator: frees locals at the end of their scope instead of right after their last use, to
//! show that the early freeing does not change what a program does.

use super::emitter::{Emitter, Target, take};
use crate::diagnostic::Done;
use crate::ir::{Ref, Slots};
use ptc_vm::Span;
use ptc_vm::bytecode::{Dst, Instruction, Last};

impl Emitter<'_, '_> {
    /// The start of a scope in the list of pinned registers.
    pub(super) fn open_scope(&self) -> usize {
        self.pinned.len()
    }

    /// Pins the register of a local until its scope is closed.
    pub(super) fn pin(&mut self, register: u8) {
        if !self.generator.last_uses {
            self.pinned.push(register);
        }
    }

    /// Drops the locals of a scope, unless its end is unreachable.
    pub(super) fn close_scope(&mut self, span: Span, scope: usize) {
        if !self.generator.last_uses {
            let ended = self.pinned.split_off(scope);
            if self.is_reachable() {
                self.drop_registers(span, &ended);
            }
        }
    }

    /// Drops registers pinned since then, on a jump that leaves their scopes.
    pub(super) fn drop_pinned_from(&mut self, span: Span, from: usize) {
        if !self.generator.last_uses {
            let left = self.pinned[from..].to_vec();
            self.drop_registers(span, &left);
        }
    }

    fn drop_registers(&mut self, span: Span, registers: &[u8]) {
        for &register in registers.iter().rev() {
            self.emit(span, Instruction::Drop { src: Last(register) });
        }
    }

    /// Locals that die on an edge that leaves their scope.
    pub(super) fn leaving(&self, slots: &[u8]) -> Slots {
        let mut dying = Slots::EMPTY;
        if !self.generator.last_uses {
            slots.iter().for_each(|&slot| dying.insert(slot));
        }
        dying
    }

    /// Evaluates a value for a register that holds an older one until then.
    pub(super) fn replace(&mut self, register: u8, value: Ref<'_>) -> Done {
        if self.generator.last_uses {
            return self.value(value, Target::Into(register));
        }
        let (span, saved) = (value.span, self.top);
        let fresh = self.register(span)?;
        self.value(value, Target::Fresh(fresh))?;
        self.top = saved;
        self.emit(span, Instruction::Drop { src: Last(register) });
        self.emit(span, Instruction::Move { src: take(fresh), dst: Dst(register) });
        Ok(())
    }
}
