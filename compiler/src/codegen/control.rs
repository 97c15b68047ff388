//! Generates bytecode, with jumps, for the conditional forms: `if`, `cond`, `case`, `and`, `or` and `some->`.
//!
//! A jump out of a test carries the locals that die on its edge; if there are any, it goes through a few drops of its
//! own.

use super::emitter::{Emitter, Patch, Target, keep, take};
use crate::diagnostic::{Done, Fallible};
use crate::ir::{
    Case, CaseClause, Comparison, Cond, Kind, Literal, Logic, Ref, Slots, SomeChain, Test, TestKind, as_test,
};
use ptc_vm::Span;
use ptc_vm::bytecode::instruction::{AgainstInt, Far, Near, Relation};
use ptc_vm::bytecode::{Constant, Dst, Instruction, Last, Src};

/// A jump out of a test.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) patch: Patch,
    pub(super) dying: Slots,
}

const FAR: Far = Far(0);
const NEAR: Near = Near(0);

impl Emitter<'_, '_> {
    #[inline(never)]
    pub(super) fn cond(&mut self, span: Span, cond: &Cond<'_>, target: Target) -> Done {
        let saved = self.top;
        let mut ends = Vec::new();
        for (index, clause) in cond.clauses.iter().enumerate() {
            let scope = self.open_scope();
            let mut edges = Vec::new();
            if let Some(binding) = &clause.binding {
                self.bind(binding, &mut None)?;
                self.test_jump(span, &clause.test, &mut edges)?;
                let dying = self.leaving(&[binding.slot]);
                edges.iter_mut().for_each(|edge| edge.dying = edge.dying.union(dying));
            } else {
                self.test_jump(span, &clause.test, &mut edges)?;
            }
            self.drop_slots(span, clause.dying_body.get());
            self.value(clause.body, target)?;
            self.close_scope(span, scope);
            let is_last = index + 1 == cond.clauses.len();
            let nothing_follows = is_last
                && cond.otherwise.is_none()
                && target == Target::Ignore
                && cond.dying.get().is_empty();
            if !nothing_follows {
                ends.extend(self.leave(span));
            }
            self.arrive_edges(span, edges);
            self.drop_slots(span, if is_last { cond.dying.get() } else { clause.dying_next.get() });
            self.top = saved;
        }
        self.value_or_nil(span, cond.otherwise, target)?;
        self.arrive(ends);
        Ok(())
    }

    fn value_or_nil(&mut self, span: Span, value: Option<Ref<'_>>, target: Target) -> Done {
        match value {
            Some(value) => self.value(value, target),
            None => self.literal(span, Literal::Nil, target),
        }
    }

    /// Jumps if the test is false; continues if it is true.
    pub(super) fn test_jump(&mut self, span: Span, test: &Test<'_>, out: &mut Vec<Edge>) -> Done {
        if let TestKind::Truthy(expr) = test.kind
            && let Kind::Logic(logic) = &expr.kind
        {
            return self.logic_jump(span, logic, test.negated, out);
        }
        let saved = self.top;
        let patch = self.simple_jump(span, test)?;
        self.top = saved;
        out.push(Edge { patch, dying: Slots::EMPTY });
        Ok(())
    }

    /// `and` and `or` as a test: every item jumps separately.
    #[inline(never)]
    fn logic_jump(&mut self, span: Span, logic: &Logic<'_>, negated: bool, out: &mut Vec<Edge>) -> Done {
        let item_test = |index: usize| -> Option<Test<'_>> {
            let mut test = as_test(logic.items.get(index)?);
            test.negated ^= negated;
            Some(test)
        };
        let is_and = logic.is_or == negated;
        let mut passed: Vec<Edge> = Vec::new();
        for (index, dying) in logic.dying.iter().enumerate() {
            let Some(mut test) = item_test(index) else { break };
            test.negated ^= !is_and;
            let edges = if is_and { &mut *out } else { &mut passed };
            let before = edges.len();
            self.test_jump(span, &test, edges)?;
            for edge in &mut edges[before..] {
                edge.dying = edge.dying.union(dying.get());
            }
        }
        if let Some(test) = item_test(logic.dying.len()) {
            self.test_jump(span, &test, out)?;
        }
        self.arrive_edges(span, passed);
        Ok(())
    }

    /// Makes edges arrive here, each through its drops.
    pub(super) fn arrive_edges(&mut self, span: Span, edges: Vec<Edge>) {
        if edges.iter().all(|edge| edge.dying.is_empty()) {
            return self.arrive(edges.into_iter().map(|edge| edge.patch));
        }
        let (direct, through): (Vec<Edge>, Vec<Edge>) =
            edges.into_iter().partition(|edge| edge.dying.is_empty());
        if !through.is_empty() {
            let mut ends: Vec<Patch> = self.leave(span).into_iter().collect();
            let last = through.len() - 1;
            for (index, edge) in through.into_iter().enumerate() {
                self.arrive([edge.patch]);
                self.drop_slots(span, edge.dying);
                if index < last {
                    ends.extend(self.leave(span));
                }
            }
            self.arrive(ends);
        }
        self.arrive(direct.into_iter().map(|edge| edge.patch));
    }

    /// One test without `and` and `or`.
    fn simple_jump(&mut self, span: Span, test: &Test<'_>) -> Fallible<Patch> {
        let far = self.generator.far;
        if let Some(comparison) = self.literal_comparison(test)
            && !far
            && (!test.negated || comparison.0 == Relation::NotEqual)
        {
            return self.literal_jump(span, comparison);
        }
        let instruction = match (test.kind, test.negated) {
            (TestKind::Truthy(a), false) => Instruction::JumpIfFalse { condition: self.operand(a)?, to: FAR },
            (TestKind::Truthy(a), true) => Instruction::JumpIfTrue { condition: self.operand(a)?, to: FAR },
            (TestKind::NotNil(a), false) => Instruction::JumpIfNil { condition: self.operand(a)?, to: FAR },
            (TestKind::NotNil(a), true) => {
                let condition = self.operand(a)?;
                let is_nil = self.jump(span, Instruction::JumpIfNil { condition, to: FAR });
                let not_nil = self.jump(span, Instruction::Jump { to: FAR });
                self.arrive([is_nil]);
                return Ok(not_nil);
            }
            (TestKind::Compare { op, a, b, swapped }, false) if !far => {
                let (a, b) = self.compare_operands(a, b, swapped)?;
                match op {
                    Comparison::Equal => Instruction::JumpUnlessEqual { a, b, to: NEAR },
                    Comparison::Less => Instruction::JumpUnlessLess { a, b, to: NEAR },
                    Comparison::LessEqual => Instruction::JumpUnlessLessEqual { a, b, to: NEAR },
                }
            }
            (kind, negated) => {
                let register = self.register(span)?;
                self.test_value(span, &Test { negated: false, kind }, Target::Fresh(register))?;
                let condition = take(register);
                match negated {
                    false => Instruction::JumpIfFalse { condition, to: FAR },
                    true => Instruction::JumpIfTrue { condition, to: FAR },
                }
            }
        };
        Ok(self.jump(span, instruction))
    }

    /// A jump unless a comparison with a literal holds.
    fn literal_jump(
        &mut self,
        span: Span,
        (relation, a, literal): (Relation, Ref<'_>, Literal),
    ) -> Fallible<Patch> {
        let a = self.operand(a)?;
        let to = NEAR;
        let instruction = match (against_int(a, literal), relation) {
            (Some(a), Relation::Equal) => Instruction::JumpUnlessEqualInt { a, to },
            (Some(a), Relation::NotEqual) => Instruction::JumpUnlessNotEqualInt { a, to },
            (Some(a), Relation::Less) => Instruction::JumpUnlessLessInt { a, to },
            (Some(a), Relation::LessEqual) => Instruction::JumpUnlessLessEqualInt { a, to },
            (Some(a), Relation::Greater) => Instruction::JumpUnlessGreaterInt { a, to },
            (Some(a), Relation::GreaterEqual) => Instruction::JumpUnlessGreaterEqualInt { a, to },
            (None, _) => {
                let constant = Constant(self.generator.tables.literal(span, literal)?);
                Instruction::JumpUnlessConst { relation, a, constant, to }
            }
        };
        Ok(self.jump(span, instruction))
    }

    /// `and` and `or` as a value: the register holds the deciding item.
    #[inline(never)]
    pub(super) fn logic(&mut self, span: Span, logic: &Logic<'_>, target: Target) -> Done {
        let Some((last, before)) = logic.items.split_last() else { return Ok(()) };
        let saved = self.top;
        let register = self.fresh(span, target)?;
        let condition = keep(register);
        let mut decided = Vec::new();
        for (item, dying) in before.iter().zip(logic.dying) {
            self.value(item, Target::Fresh(register))?;
            let if_true = Instruction::JumpIfTrue { condition, to: FAR };
            let if_false = Instruction::JumpIfFalse { condition, to: FAR };
            let (if_decided, if_open) = if logic.is_or { (if_true, if_false) } else { (if_false, if_true) };
            if dying.get().is_empty() {
                decided.push(self.jump(item.span, if_decided));
            } else {
                let open = self.jump(item.span, if_open);
                self.drop_slots(item.span, dying.get());
                decided.extend(self.leave(item.span));
                self.arrive([open]);
            }
            self.emit(item.span, Instruction::Drop { src: Last(register) });
        }
        match target {
            // The last item may be a `recur`, or end the function itself.
            Target::Return => self.value(last, Target::Return)?,
            _ => self.value(last, Target::Fresh(register))?,
        }
        self.arrive(decided);
        self.top = saved;
        self.finish(span, take(register), target)
    }

    #[inline(never)]
    pub(super) fn some_chain(&mut self, span: Span, chain: &SomeChain<'_>, target: Target) -> Done {
        let saved = self.top;
        let register = self.fresh(span, target)?;
        self.value(chain.first, Target::Fresh(register))?;
        self.set_slot(chain.slot, register);
        let mut stops = Vec::with_capacity(chain.steps.len());
        for (step, dying) in chain.steps {
            let mut dying = dying.get();
            let is_unread = dying.has(chain.slot);
            dying.remove(chain.slot);
            let patch = self.jump(step.span, Instruction::JumpIfNil { condition: keep(register), to: FAR });
            stops.push(Edge { patch, dying });
            if is_unread {
                self.emit(step.span, Instruction::Drop { src: Last(register) });
            }
            self.replace(register, step)?;
        }
        self.arrive_edges(span, stops);
        self.top = saved;
        self.finish(span, take(register), target)
    }

    #[inline(never)]
    pub(super) fn case(&mut self, span: Span, case: &Case<'_>, target: Target) -> Done {
        let saved = self.top;
        let subject = self.operand(case.subject)?;
        let mut ends = Vec::new();
        for clause in case.clauses {
            let next = self.case_jump(span, subject.reg, clause)?;
            self.case_entry(span, subject, clause.dying.get());
            self.value(clause.body, target)?;
            ends.extend(self.leave(span));
            self.arrive(next);
        }
        self.case_entry(span, subject, case.dying.get());
        self.value_or_nil(span, case.otherwise, target)?;
        self.arrive(ends);
        self.top = saved;
        Ok(())
    }

    /// The subject stays full while clauses are tried, and dies on the edge to each body.
    fn case_entry(&mut self, span: Span, subject: Src, dying: Slots) {
        if subject.last {
            self.emit(span, Instruction::Drop { src: Last(subject.reg) });
        }
        self.drop_slots(span, dying);
    }

    fn case_jump(&mut self, span: Span, subject: u8, clause: &CaseClause<'_>) -> Fallible<Option<Patch>> {
        let Some((last, before)) = clause.constants.split_last() else { return Ok(None) };
        let (a, saved) = (keep(subject), self.top);
        let register = self.register(span)?;
        let (b, dst) = (take(register), Dst(register));
        self.top = saved;
        let mut hits = Vec::new();
        for constant in before {
            self.load(span, *constant, register)?;
            self.emit(span, Instruction::Equal { a, b, dst });
            hits.push(self.jump(span, Instruction::JumpIfTrue { condition: b, to: FAR }));
        }
        let miss = match (against_int(a, *last), self.generator.far) {
            (Some(a), false) => self.jump(span, Instruction::JumpUnlessEqualInt { a, to: NEAR }),
            (None, false) => {
                self.load(span, *last, register)?;
                self.jump(span, Instruction::JumpUnlessEqual { a, b, to: NEAR })
            }
            (_, true) => {
                self.load(span, *last, register)?;
                self.emit(span, Instruction::Equal { a, b, dst });
                self.jump(span, Instruction::JumpIfFalse { condition: b, to: FAR })
            }
        };
        self.arrive(hits);
        Ok(Some(miss))
    }
}

/// The operand and the literal, if that is an integer that fits into the instruction.
fn against_int(a: Src, literal: Literal) -> Option<AgainstInt> {
    match literal {
        Literal::Int(value) => AgainstInt::new(a, value),
        _ => None,
    }
}
