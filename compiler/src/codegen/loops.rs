//! Generates bytecode for the loops of the language: `loop` with `recur`, `for` and `doseq`.

use super::emitter::{Emitter, RecurHead, Target, take};
use crate::diagnostic::{Done, error};
use crate::ir::{Each, EachStep, Literal, Loop, RecurArg, Ref};
use ptc_vm::bytecode::instruction::{Cursor, Far, Small};
use ptc_vm::bytecode::{Args, Dst, Instruction, Known, Last, Pinned};
use ptc_vm::{Reason, Span};

impl Emitter<'_, '_> {
    #[inline(never)]
    pub(super) fn loop_(&mut self, span: Span, loop_: &Loop<'_>, target: Target) -> Done {
        let (saved, scope) = (self.top, self.open_scope());
        for binding in loop_.bindings {
            let register = self.register(span)?;
            self.value(binding.value, Target::Fresh(register))?;
            self.set_slot(binding.slot, register);
            self.pin(register);
        }
        let counter = self.register(span)?;
        self.emit(span, Instruction::LoadInt { value: Small(0), dst: Dst(counter) });
        let (label, is_tail) = (self.label(), target == Target::Return);
        if is_tail {
            self.pinned.push(counter);
        }
        self.heads.push(RecurHead { label, counter, inside: self.pinned.len() });
        self.drop_slots(span, loop_.unread.get());
        self.value(loop_.body, target)?;
        self.heads.pop();
        if is_tail {
            self.pinned.pop();
        } else if self.is_reachable() {
            self.emit(span, Instruction::Drop { src: Last(counter) });
        }
        self.close_scope(span, scope);
        self.top = saved;
        Ok(())
    }

    /// Values go to temporary registers, unless their variable is already dead; then all are moved to their
    /// variables.
    #[inline(never)]
    pub(super) fn recur(&mut self, span: Span, arguments: &[RecurArg<'_>]) -> Done {
        let Some(head) = self.heads.last().copied() else {
            return Err(error(Reason::CompileError, span, "internal: recur without a loop"));
        };
        let saved = self.top;
        let mut moves = Vec::new();
        for argument in arguments {
            let variable = self.slot(argument.slot);
            if argument.direct.get() {
                self.value(argument.value, Target::Into(variable))?;
            } else {
                let register = self.register(span)?;
                self.value(argument.value, Target::Fresh(register))?;
                moves.push((register, variable));
            }
        }
        self.drop_pinned_from(span, head.inside);
        for (from, to) in moves {
            if !self.generator.last_uses {
                self.emit(span, Instruction::Drop { src: Last(to) });
            }
            self.emit(span, Instruction::Move { src: take(from), dst: Dst(to) });
        }
        self.top = saved;
        self.count_loop(span, head.label);
        let jump = Instruction::LoopBack { counter: Pinned(head.counter), to: Far(0) };
        let patch = self.jump(span, jump);
        self.patch_to(patch, head.label);
        Ok(())
    }

    #[inline(never)]
    pub(super) fn each(&mut self, span: Span, each: &Each<'_>, target: Target) -> Done {
        let (saved, scope) = (self.top, self.open_scope());
        let (vector, index, element) = (self.register(span)?, self.register(span)?, self.register(span)?);
        let place = each.collection.span;
        // `Next` needs the vector and the index in adjacent registers; the element follows them.
        self.top = index;
        let a = self.operand(each.collection)?;
        self.top = element + 1;
        self.emit(place, Instruction::Call1 { builtin: Known::Items.id(), a, dst: Dst(vector) });
        self.emit(span, Instruction::LoadInt { value: Small(0), dst: Dst(index) });
        let head = self.label();
        let end = self.jump(span, Instruction::Next { seq: Cursor(vector), dst: Dst(element), to: Far(0) });
        self.set_slot(each.slot, element);
        self.pin(element);
        let mut bound = vec![each.slot];
        if each.unread.get() {
            self.emit(span, Instruction::Drop { src: Last(element) });
        }
        let (mut skips, mut stops) = (Vec::new(), Vec::new());
        for step in each.steps {
            let (test, dying, edges) = match step {
                EachStep::Bind(binding) => {
                    self.bind(binding, &mut None)?;
                    bound.push(binding.slot);
                    continue;
                }
                EachStep::When(test, dying) => (test, dying, &mut skips),
                EachStep::While(test, dying) => (test, dying, &mut stops),
            };
            let before = edges.len();
            self.test_jump(span, test, edges)?;
            let dying = dying.get().union(self.leaving(&bound));
            for edge in &mut edges[before..] {
                edge.dying = edge.dying.union(dying);
            }
        }
        self.value(each.body, Target::Ignore)?;
        self.close_scope(span, scope);
        self.arrive_edges(span, skips);
        if let Some(patch) = self.leave(span) {
            self.patch_to(patch, head);
        }
        self.arrive_edges(span, stops);
        self.arrive([end]);
        self.drop_slots(span, each.dying.get());
        self.emit(span, Instruction::Drop { src: Last(vector) });
        self.emit(span, Instruction::Drop { src: Last(index) });
        self.top = saved;
        self.literal(span, Literal::Nil, target)
    }

    /// `for`: the innermost body appends to a vector.
    #[inline(never)]
    pub(super) fn collect(&mut self, span: Span, level: Ref<'_>, target: Target) -> Done {
        let saved = self.top;
        let register = self.fresh(span, target)?;
        let items = Args { at: register, count: 0 };
        self.emit(span, Instruction::MakeVector { items, dst: Dst(register) });
        self.collectors.push(register);
        self.value(level, Target::Ignore)?;
        self.collectors.pop();
        self.top = saved;
        self.finish(span, take(register), target)
    }

    pub(super) fn emit_element(&mut self, span: Span, value: Ref<'_>, target: Target) -> Done {
        let Some(&collector) = self.collectors.last() else {
            return Err(error(Reason::CompileError, span, "internal: nothing collects"));
        };
        let saved = self.top;
        let b = self.operand(value)?;
        self.top = saved;
        self.emit(
            span,
            Instruction::Call2 { builtin: Known::Conj.id(), a: take(collector), b, dst: Dst(collector) },
        );
        self.literal(span, Literal::Nil, target)
    }
}
