//! Generates bytecode for expressions: it handles names, arithmetic, comparisons, `do`, `let`, `def` and early exits
//! itself, and passes all other kinds to the generators in this module's other files.
//!
//! Each family has a function of its own, so that the frame of the dispatcher stays small.

use super::emitter::{Emitter, Target, keep, take};
use super::literal::Collection;
use crate::diagnostic::{Done, Fallible};
use crate::ir::{Arithmetic, Binding, Comparison, Expr, Kind, Literal, Ref, Refs, Test, TestKind};
use ptc_vm::Span;
use ptc_vm::bytecode::instruction::{Capture, Far, Int, Key, Relation, Side, Signal, Small, Written};
use ptc_vm::bytecode::{Constant, Dst, Global, Instruction, Src};

impl Emitter<'_, '_> {
    /// Evaluates an expression for its target. Until the value is complete, only a fresh target register is changed.
    pub(super) fn value(&mut self, expr: &Expr<'_>, target: Target) -> Done {
        self.generator.meter.step()?;
        let span = expr.span;
        match &expr.kind {
            Kind::Literal(literal) => self.literal(span, *literal, target),
            Kind::Local(read) => {
                let src = Src { reg: self.slot(read.slot), last: read.last.get() };
                self.finish(span, src, target)
            }
            Kind::Capture(_) | Kind::SelfRef | Kind::Global(_) => self.load_name(expr, target),
            Kind::GlobalOrNil(global) => self.global_or_nil(span, *global, target),
            Kind::Call(callee, arguments) => self.call(span, callee, arguments, target),
            Kind::GetKey(row, source) => self.get_key(span, *row, source, target),
            Kind::Arithmetic(op, operands) => self.arithmetic(span, *op, operands, target),
            Kind::AddSmall(a, value, written) => self.add_small(span, a, (Small(*value), *written), target),
            Kind::Test(test) => self.test_value(span, test, target),
            Kind::Vector(items) => self.build(span, Collection::Vector, items, target),
            Kind::Map(items) => self.build(span, Collection::Map, items, target),
            Kind::Set(items) => self.build(span, Collection::Set, items, target),
            Kind::Closure(function, captures) => self.closure(span, function, captures, target),
            Kind::Do(items) => self.sequence(items, target),
            Kind::Let(bindings, body) => self.let_(bindings, body, target),
            Kind::Cond(cond) => self.cond(span, cond, target),
            Kind::Case(case) => self.case(span, case, target),
            Kind::Logic(logic) => self.logic(span, logic, target),
            Kind::SomeChain(chain) => self.some_chain(span, chain, target),
            Kind::Loop(loop_) => self.loop_(span, loop_, target),
            Kind::Recur(arguments) => self.recur(span, arguments),
            Kind::Each(each) => self.each(span, each, target),
            Kind::Collect(level) => self.collect(span, level, target),
            Kind::Emit(value) => self.emit_element(span, value, target),
            Kind::Def { global, var, value } => self.define(span, *global, *var, value, target),
            Kind::DefOnce { .. } => self.define_once(expr, target),
            Kind::Exit(signal, value) => self.exit(span, *signal, value),
        }
    }

    /// An operand of an instruction: a local directly, anything else in a new register.
    pub(super) fn operand(&mut self, expr: &Expr<'_>) -> Fallible<Src> {
        if let Kind::Local(read) = &expr.kind {
            return Ok(Src { reg: self.slot(read.slot), last: read.last.get() });
        }
        let register = self.register(expr.span)?;
        self.value(expr, Target::Fresh(register))?;
        Ok(take(register))
    }

    fn load_name(&mut self, expr: &Expr<'_>, target: Target) -> Done {
        self.make(expr.span, self.top, target, |dst| match expr.kind {
            Kind::Capture(index) => Instruction::LoadCapture { index: Capture(index), dst },
            Kind::Global(global) => Instruction::LoadGlobal { global: Global(global), dst },
            // Register 0 holds the running closure.
            _ => Instruction::Move { src: keep(0), dst },
        })
    }

    #[inline(never)]
    fn global_or_nil(&mut self, span: Span, global: u16, target: Target) -> Done {
        let saved = self.top;
        let dst = Dst(self.register(span)?);
        let global = Global(global);
        self.emit(span, Instruction::IsDefined { global, dst });
        let undefined = self.jump(span, Instruction::JumpIfFalse { condition: take(dst.0), to: Far(0) });
        self.emit(span, Instruction::LoadGlobal { global, dst });
        let done = self.leave(span);
        self.arrive([undefined]);
        self.emit(span, Instruction::LoadNil { dst });
        self.arrive(done);
        self.top = saved;
        self.finish(span, take(dst.0), target)
    }

    fn get_key(&mut self, span: Span, row: u16, source: Ref<'_>, target: Target) -> Done {
        let saved = self.top;
        let (src, key) = (self.operand(source)?, Key(row));
        self.make(span, saved, target, |dst| Instruction::GetKey { src, key, dst })
    }

    fn add_small(&mut self, span: Span, a: Ref<'_>, small: (Small, Written), target: Target) -> Done {
        let saved = self.top;
        let (a, (value, written)) = (self.operand(a)?, small);
        self.make(span, saved, target, |dst| Instruction::AddSmall { a, value, dst, written })
    }

    #[inline(never)]
    fn arithmetic(&mut self, span: Span, op: Arithmetic, operands: Refs<'_>, target: Target) -> Done {
        let Some((first, rest)) = operands.split_first() else { return Ok(()) };
        let saved = self.top;
        // `(* 2 x)`: the constant is on the left.
        if let [second] = rest
            && !is_constant(second)
            && let Some(left) = self.with_constant(op, first, Side::Left)?
        {
            let a = self.operand(second)?;
            return self.make(span, saved, target, |dst| left(a, dst));
        }
        let mut a = self.operand(first)?;
        for (index, operand) in rest.iter().enumerate() {
            let right = self.with_constant(op, operand, Side::Right)?;
            // Not read if the constant is in the instruction.
            let b = if right.is_some() { a } else { self.operand(operand)? };
            self.top = saved;
            let dst = Dst(match index + 1 == rest.len() {
                true => self.destination(span, target)?,
                false => self.register(span)?,
            });
            let instruction = match (right, op) {
                (Some(right), _) => right(a, dst),
                (None, Arithmetic::Add) => Instruction::Add { a, b, dst },
                (None, Arithmetic::Subtract) => Instruction::Subtract { a, b, dst },
                (None, Arithmetic::Multiply) => Instruction::Multiply { a, b, dst },
                (None, Arithmetic::Modulo) => Instruction::Modulo { a, b, dst },
                (None, Arithmetic::Quotient) => Instruction::Quotient { a, b, dst },
                (None, Arithmetic::Remainder) => Instruction::Remainder { a, b, dst },
            };
            self.emit(span, instruction);
            a = take(dst.0);
        }
        self.finish(span, a, target)
    }

    /// A condition as a boolean value.
    #[inline(never)]
    pub(super) fn test_value(&mut self, span: Span, test: &Test<'_>, target: Target) -> Done {
        let saved = self.top;
        if let Some((relation, a, literal)) = self.literal_comparison(test) {
            let constant = Constant(self.generator.tables.literal(span, literal)?);
            let a = self.operand(a)?;
            self.top = saved;
            let dst = Dst(self.destination(span, target)?);
            self.emit(span, Instruction::CompareConst { relation, a, constant, dst });
            if test.negated && relation != Relation::NotEqual {
                self.emit(span, Instruction::Not { a: take(dst.0), dst });
            }
            return self.finish(span, take(dst.0), target);
        }
        let (kind, a, b) = self.test_operands(span, test)?;
        // The instruction for "is not nil" is a comparison with nil.
        let negated = test.negated ^ matches!(test.kind, TestKind::NotNil(_));
        self.top = saved;
        let dst = Dst(self.destination(span, target)?);
        let instruction = match kind {
            None => Instruction::Not { a, dst },
            Some(Comparison::Equal) => Instruction::Equal { a, b, dst },
            Some(Comparison::Less) => Instruction::Less { a, b, dst },
            Some(Comparison::LessEqual) => Instruction::LessEqual { a, b, dst },
        };
        self.emit(span, instruction);
        // Negating truth itself is already a `not`.
        if negated != kind.is_none() {
            self.emit(span, Instruction::Not { a: take(dst.0), dst });
        }
        self.finish(span, take(dst.0), target)
    }

    /// The instruction for an operator and a constant operand, if there is one. An integer that fits is in the
    /// instruction, anything else in the constant table.
    fn with_constant(
        &mut self,
        op: Arithmetic,
        operand: &Expr<'_>,
        side: Side,
    ) -> Fallible<Option<impl Fn(Src, Dst) -> Instruction + use<>>> {
        let Kind::Literal(literal @ (Literal::Int(_) | Literal::Row(_))) = operand.kind else {
            return Ok(None);
        };
        let either_side = matches!(op, Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply);
        if side == Side::Left && !either_side {
            return Ok(None);
        }
        let (int, small) = match literal {
            Literal::Int(int) => (Int::new(int), i16::try_from(int).ok().map(Small)),
            _ => (None, None),
        };
        let constant = match (op, int, small) {
            (Arithmetic::Multiply, _, Some(_))
            | (Arithmetic::Modulo | Arithmetic::Quotient | Arithmetic::Remainder, Some(_), _) => Constant(0),
            _ => Constant(self.generator.tables.literal(operand.span, literal)?),
        };
        Ok(Some(move |a, dst| match (op, int, small) {
            (Arithmetic::Multiply, _, Some(value)) => Instruction::MultiplyInt { a, value, dst, side },
            (Arithmetic::Modulo, Some(value), _) => Instruction::ModuloInt { a, value, dst },
            (Arithmetic::Quotient, Some(value), _) => Instruction::QuotientInt { a, value, dst },
            (Arithmetic::Remainder, Some(value), _) => Instruction::RemainderInt { a, value, dst },
            (Arithmetic::Add, ..) => Instruction::AddConst { a, constant, dst, side },
            (Arithmetic::Subtract, ..) => Instruction::SubtractConst { a, constant, dst, side },
            (Arithmetic::Multiply, ..) => Instruction::MultiplyConst { a, constant, dst, side },
            (Arithmetic::Modulo, ..) => Instruction::ModuloConst { a, constant, dst },
            (Arithmetic::Quotient, ..) => Instruction::QuotientConst { a, constant, dst },
            (Arithmetic::Remainder, ..) => Instruction::RemainderConst { a, constant, dst },
        }))
    }

    /// A comparison of one operand with a literal that fits an instruction or the constant table. A negated equality
    /// becomes the opposite relation; any other negation is left to the caller.
    pub(super) fn literal_comparison<'e>(&self, test: &Test<'e>) -> Option<(Relation, Ref<'e>, Literal)> {
        let TestKind::Compare { op, a, b, .. } = test.kind else { return None };
        let relation = match op {
            Comparison::Equal if test.negated => Relation::NotEqual,
            Comparison::Equal => Relation::Equal,
            Comparison::Less => Relation::Less,
            Comparison::LessEqual => Relation::LessEqual,
        };
        match (&a.kind, &b.kind) {
            (_, Kind::Literal(literal @ (Literal::Int(_) | Literal::Row(_)))) => {
                Some((relation, a, *literal))
            }
            (Kind::Literal(literal @ (Literal::Int(_) | Literal::Row(_))), _) => {
                Some((relation.mirrored(), b, *literal))
            }
            _ => None,
        }
    }

    /// The operands of a condition, as those of a comparison instruction (`None` for truth itself).
    fn test_operands(&mut self, span: Span, test: &Test<'_>) -> Fallible<(Option<Comparison>, Src, Src)> {
        Ok(match test.kind {
            TestKind::Truthy(a) => {
                let a = self.operand(a)?;
                (None, a, a)
            }
            TestKind::NotNil(a) => {
                let a = self.operand(a)?;
                let register = self.register(span)?;
                self.load(span, Literal::Nil, register)?;
                (Some(Comparison::Equal), a, take(register))
            }
            TestKind::Compare { op, a, b, swapped } => {
                let (a, b) = self.compare_operands(a, b, swapped)?;
                (Some(op), a, b)
            }
        })
    }

    pub(super) fn compare_operands(&mut self, a: Ref<'_>, b: Ref<'_>, swapped: bool) -> Fallible<(Src, Src)> {
        Ok(match swapped {
            false => (self.operand(a)?, self.operand(b)?),
            true => {
                let b = self.operand(b)?;
                (self.operand(a)?, b)
            }
        })
    }

    fn sequence(&mut self, items: Refs<'_>, target: Target) -> Done {
        let Some((last, before)) = items.split_last() else { return Ok(()) };
        for item in before {
            self.value(item, Target::Ignore)?;
        }
        self.value(last, target)
    }

    fn let_(&mut self, bindings: &[Binding<'_>], body: Ref<'_>, target: Target) -> Done {
        let (saved, scope) = (self.top, self.open_scope());
        let mut bound = None;
        for binding in bindings {
            self.bind(binding, &mut bound)?;
        }
        self.value(body, target)?;
        self.close_scope(body.span, scope);
        self.top = saved;
        Ok(())
    }

    /// Binds one value; `bound` is the last slot that got a register, which may be bound again.
    pub(super) fn bind(&mut self, binding: &Binding<'_>, bound: &mut Option<u8>) -> Done {
        if binding.dead.get() {
            return self.value(binding.value, Target::Ignore);
        }
        if *bound == Some(binding.slot) {
            return self.replace(self.slot(binding.slot), binding.value);
        }
        let register = match &binding.value.kind {
            // Another name for a value that nothing else reads: it stays in its register. Not inside a loop, where
            // the register belongs to a variable that `recur` writes.
            Kind::Local(read) if read.last.get() && self.heads.is_empty() => self.slot(read.slot),
            _ => {
                let register = self.register(binding.value.span)?;
                self.value(binding.value, Target::Fresh(register))?;
                register
            }
        };
        self.set_slot(binding.slot, register);
        self.pin(register);
        *bound = Some(binding.slot);
        Ok(())
    }

    fn define(&mut self, span: Span, global: u16, var: u16, value: Ref<'_>, target: Target) -> Done {
        let saved = self.top;
        let src = self.operand(value)?;
        self.top = saved;
        self.emit(span, Instruction::StoreGlobal { global: Global(global), src });
        self.literal(span, Literal::Row(var), target)
    }

    #[inline(never)]
    fn define_once(&mut self, expr: &Expr<'_>, target: Target) -> Done {
        let span = expr.span;
        let Kind::DefOnce { global, var, value, dying } = &expr.kind else { return Ok(()) };
        let saved = self.top;
        let known = self.register(span)?;
        self.top = saved;
        self.emit(span, Instruction::IsDefined { global: Global(*global), dst: Dst(known) });
        let skip = self.jump(span, Instruction::JumpIfTrue { condition: take(known), to: Far(0) });
        let src = self.operand(value)?;
        self.top = saved;
        self.emit(span, Instruction::StoreGlobal { global: Global(*global), src });
        let done = if dying.get().is_empty() { None } else { self.leave(span) };
        self.arrive([skip]);
        self.drop_slots(span, dying.get());
        self.arrive(done);
        self.literal(span, Literal::Row(*var), target)
    }

    fn exit(&mut self, span: Span, signal: Signal, value: Ref<'_>) -> Done {
        let saved = self.top;
        let src = self.operand(value)?;
        let src = self.owned(span, src)?;
        self.top = saved;
        self.emit(span, Instruction::Exit { signal, src });
        Ok(())
    }
}

fn is_constant(expr: &Expr<'_>) -> bool {
    matches!(expr.kind, Kind::Literal(Literal::Int(_) | Literal::Row(_)))
}
