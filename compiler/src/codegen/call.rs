//! Generates the bytecode of expressions that call functions or make closures. Calls that have neither an effect nor a
//! used result are left out. Combinators of constants, such as `(fnil inc 0)`, become constants.

use super::emitter::{Emitter, Target, take};
use crate::diagnostic::{Done, Fallible};
use crate::ir::{Callee, Function, Kind, Literal, Ref, Refs};
use ptc_vm::Span;
use ptc_vm::builtins::Purity;
use ptc_vm::bytecode::instruction::{Small, Template};
use ptc_vm::bytecode::{Args, BuiltinId, Const, Global, Instruction, Known, Window};

impl Emitter<'_, '_> {
    #[inline(never)]
    pub(super) fn call(
        &mut self,
        span: Span,
        callee: &Callee<'_>,
        arguments: Refs<'_>,
        target: Target,
    ) -> Done {
        if let Callee::Builtin(builtin) = callee {
            if target == Target::Ignore && is_droppable(*builtin, arguments.len()) {
                return arguments.iter().try_for_each(|argument| self.value(argument, Target::Ignore));
            }
            if let Some(row) = self.constant_combinator(span, *builtin, arguments)? {
                return self.literal(span, Literal::Row(row), target);
            }
            match arguments {
                [a] => return self.call1(span, *builtin, a, target),
                [a, b] => return self.call2(span, *builtin, a, b, target),
                _ => {}
            }
        }
        self.window_call(span, callee, arguments, target)
    }

    /// `(fnil inc 0)`, `(juxt :a :b)`: a combinator of constants is a constant.
    fn constant_combinator(
        &mut self,
        span: Span,
        builtin: BuiltinId,
        arguments: Refs<'_>,
    ) -> Fallible<Option<u16>> {
        let Some(kind) = builtin.info().combinator else { return Ok(None) };
        if !builtin.info().arity.accepts(arguments.len()) {
            return Ok(None);
        }
        let mut rows = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let Kind::Literal(literal) = argument.kind else { return Ok(None) };
            rows.push(self.generator.tables.literal(argument.span, literal)?);
        }
        Ok(Some(self.generator.tables.constant(span, Const::Combinator(kind, rows))?))
    }

    fn call1(&mut self, span: Span, builtin: BuiltinId, a: Ref<'_>, target: Target) -> Done {
        let saved = self.top;
        let a = self.operand(a)?;
        self.make(span, saved, target, |dst| Instruction::Call1 { builtin, a, dst })
    }

    fn call2(&mut self, span: Span, builtin: BuiltinId, a: Ref<'_>, b: Ref<'_>, target: Target) -> Done {
        let saved = self.top;
        if builtin == Known::Element.id()
            && let Kind::Literal(Literal::Int(index)) = b.kind
            && let Ok(index) = i16::try_from(index)
        {
            let (src, index) = (self.operand(a)?, Small(index));
            return self.make(span, saved, target, |dst| Instruction::Element { src, index, dst });
        }
        let (a, b) = (self.operand(a)?, self.operand(b)?);
        self.make(span, saved, target, |dst| Instruction::Call2 { builtin, a, b, dst })
    }

    /// A call through a window. The window starts at the target register if everything above it is free.
    fn window_call(&mut self, span: Span, callee: &Callee<'_>, arguments: Refs<'_>, target: Target) -> Done {
        let saved = self.top;
        let at = match target {
            Target::Fresh(register) if register + 1 == self.top => register,
            // The value in the register dies while the arguments are evaluated; only a callee would need the register
            // before that.
            Target::Into(register) if register + 1 == self.top && !matches!(callee, Callee::Value(_)) => {
                register
            }
            _ => self.register(span)?,
        };
        if let Callee::Value(callee) = callee {
            self.value(callee, Target::Fresh(at))?;
        }
        self.gather(span, arguments)?;
        self.top = saved;
        let window = Window { at, count: arguments.len() as u8 };
        self.emit(
            span,
            match callee {
                Callee::Builtin(builtin) => Instruction::CallBuiltin { builtin: *builtin, window },
                Callee::Global(global) => Instruction::CallGlobal { global: Global(*global), window },
                Callee::Value(_) => Instruction::Call { callee: Args { at, count: 1 }, window },
            },
        );
        self.finish(span, take(at), target)
    }

    #[inline(never)]
    pub(super) fn closure(
        &mut self,
        span: Span,
        function: &Function<'_>,
        captures: Refs<'_>,
        target: Target,
    ) -> Done {
        let proto = self.generator.function(function)?;
        let saved = self.top;
        let template = Template { proto, captures: self.gather(span, captures)? };
        self.make(span, saved, target, |dst| Instruction::MakeClosure { template, dst })
    }
}

/// Whether it is unobservable if the call is omitted.
fn is_droppable(builtin: BuiltinId, arguments: usize) -> bool {
    let info = builtin.info();
    info.purity == Purity::Total && info.arity.accepts(arguments)
}
