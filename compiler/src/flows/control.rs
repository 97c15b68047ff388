//! Data-flow analysis of conditionals and loops, for rules about which data may reach a tool call: finds inputs and
//! call results that may reach the result, or decide the branch or number of rounds.

use super::node::{NEVER, Val};
use super::set::SourceSet;
use super::walk::{LITERAL, LoopCell, Target, Walk};
use crate::ir::{Case, Cond, Each, EachStep, Logic, Loop, RecurArg, Ref, SomeChain};
use std::ptr::from_ref;

/// Looks at the body of a loop before its variables become one value each.
const MOST_LOOKS: usize = 6;

impl<'a> Walk<'a, '_> {
    #[inline(never)]
    pub(super) fn cond(&mut self, cond: &'a Cond<'a>) -> Val<'a> {
        let before = self.control;
        let (mut sources, mut value): (SourceSet, Val<'a>) = (SourceSet::EMPTY, &NEVER);
        for clause in cond.clauses {
            if let Some(binding) = &clause.binding {
                self.bind_local(binding);
            }
            sources = sources.union(self.test(&clause.test));
            self.control = before.union(sources);
            let body = self.value(clause.body);
            value = self.join(value, body);
        }
        let otherwise = match cond.otherwise {
            Some(otherwise) => self.value(otherwise),
            None => self.nil(),
        };
        self.control = before;
        let value = self.join(value, otherwise);
        self.marked(value, sources)
    }

    #[inline(never)]
    pub(super) fn case(&mut self, case: &'a Case<'a>) -> Val<'a> {
        let sources = self.value(case.subject).deep;
        let value = self.under(sources, |this| {
            let first = match case.otherwise {
                Some(otherwise) => this.value(otherwise),
                None => &NEVER,
            };
            case.clauses.iter().fold(first, |value, clause| {
                let body = this.value(clause.body);
                this.join(value, body)
            })
        });
        self.marked(value, sources)
    }

    #[inline(never)]
    pub(super) fn logic(&mut self, logic: &'a Logic<'a>) -> Val<'a> {
        let before = self.control;
        let (mut sources, mut value): (SourceSet, Val<'a>) = (SourceSet::EMPTY, &NEVER);
        for item in logic.items {
            self.control = before.union(sources.minus(LITERAL));
            let item = self.value(item);
            sources = sources.union(item.own);
            value = self.join(value, item);
        }
        self.control = before;
        self.marked(value, sources)
    }

    #[inline(never)]
    pub(super) fn some_chain(&mut self, chain: &'a SomeChain<'a>) -> Val<'a> {
        let before = self.control;
        let mut value = self.value(chain.first);
        let mut sources = value.own;
        self.set_slot(chain.slot, value);
        for (step, _) in chain.steps {
            self.control = before.union(sources.minus(LITERAL));
            value = self.value(step);
            sources = sources.union(value.own);
            self.set_slot(chain.slot, value);
        }
        self.control = before;
        let nil = self.nil();
        let value = self.join(value, nil);
        self.marked(value, sources)
    }

    #[inline(never)]
    pub(super) fn loop_(&mut self, it: &'a Loop<'a>) -> Val<'a> {
        let number = match self.loop_numbers.get(&from_ref(it)) {
            Some(number) => *number,
            None => {
                let variables = vec![&NEVER as Val<'a>; it.bindings.len()];
                self.loops.push(LoopCell { variables, control: SourceSet::EMPTY, grew: false });
                self.loop_numbers.insert(from_ref(it), self.loops.len() - 1);
                self.loops.len() - 1
            }
        };
        for (index, binding) in it.bindings.iter().enumerate() {
            let value = self.value(binding.value);
            self.set_slot(binding.slot, value);
            self.grow_variable(number, index, value);
        }
        let slot = it.bindings.first().map_or(0, |binding| binding.slot);
        let target = std::mem::replace(&mut self.target, Target::Loop { cell: number, slot });
        let mut value: Val<'a> = &NEVER;
        for look in 0.. {
            self.loops[number].grew = false;
            let exits = self.all_exits();
            for (index, binding) in it.bindings.iter().enumerate() {
                if look >= MOST_LOOKS {
                    let flat = self.new_node(self.loops[number].variables[index].flat());
                    self.loops[number].variables[index] = flat;
                }
                self.set_slot(binding.slot, self.loops[number].variables[index]);
            }
            let control = self.loops[number].control;
            self.turns += 1;
            let found = self.under(control, |this| this.value(it.body));
            self.turns -= 1;
            value = self.join(value, found);
            // What may end the program decides about the next turn.
            let is_stable = !self.loops[number].grew && self.all_exits() == exits;
            if is_stable || self.failed {
                break;
            }
        }
        self.target = target;
        self.marked(value, self.loops[number].control)
    }

    fn grow_variable(&mut self, number: usize, index: usize, value: Val<'a>) {
        let cell = &mut self.loops[number];
        if let Some(known) = cell.variables.get_mut(index) {
            cell.grew |= self.nodes.grow(known, value);
        }
    }

    #[inline(never)]
    pub(super) fn recur(&mut self, arguments: &'a [RecurArg<'a>]) -> Val<'a> {
        let control = self.control;
        for argument in arguments {
            let value = self.value(argument.value);
            let value = self.marked(value, control);
            match self.target {
                Target::Loop { cell, slot } => {
                    self.grow_variable(cell, usize::from(argument.slot.wrapping_sub(slot)), value);
                }
                Target::Function { first } => self.grow_parameter(first + usize::from(argument.slot), value),
                Target::Nothing => {}
            }
        }
        match (self.target, self.current) {
            (Target::Loop { cell, .. }, _) => {
                let cell = &mut self.loops[cell];
                cell.grew |= cell.control.grow(control);
            }
            (Target::Function { .. }, Some(number)) => {
                let cell = &mut self.functions[number];
                cell.is_dirty |= cell.again.grow(control);
            }
            _ => {}
        }
        &NEVER
    }

    #[inline(never)]
    pub(super) fn each(&mut self, each: &'a Each<'a>) -> Val<'a> {
        let collection = self.value(each.collection);
        loop {
            let exits = self.all_exits();
            self.turns += 1;
            self.each_item(each, collection);
            self.turns -= 1;
            // What may end the program decides about the next item.
            if self.all_exits() == exits || self.failed {
                return self.nil();
            }
        }
    }

    fn each_item(&mut self, each: &'a Each<'a>, collection: Val<'a>) {
        let item = self.item(collection);
        self.set_slot(each.slot, item);
        let place = from_ref(each.collection);
        let (before, again) = (self.control, self.whiles.get(&place).copied().unwrap_or_default());
        self.control = before.union(collection.shape().minus(LITERAL)).union(again);
        for step in each.steps {
            match step {
                EachStep::Bind(binding) => self.bind_local(binding),
                EachStep::When(test, _) | EachStep::While(test, _) => {
                    let sources = self.test(test);
                    self.control = self.control.union(sources);
                }
            }
            // A test that failed for one item decides about those after it.
            if matches!(step, EachStep::While(..)) && self.whiles.entry(place).or_default().grow(self.control)
            {
                self.look_again();
            }
        }
        self.value(each.body);
        self.control = before;
    }

    #[inline(never)]
    pub(super) fn collect(&mut self, level: Ref<'a>) -> Val<'a> {
        // What decides about the whole is no part of the list: its function may be called elsewhere too.
        let (control, outer) = (self.control, self.outer);
        (self.control, self.outer) = (SourceSet::EMPTY, self.decided_by());
        self.collected.push((&NEVER, SourceSet::EMPTY));
        self.value(level);
        let (item, own) = self.collected.pop().unwrap_or((&NEVER, SourceSet::EMPTY));
        (self.control, self.outer) = (control, outer);
        self.list(own, Some(item))
    }

    #[inline(never)]
    pub(super) fn emit(&mut self, value: Ref<'a>) -> Val<'a> {
        let value = self.value(value);
        if let Some((item, sources)) = self.collected.last().copied() {
            let joined = (self.join(item, value), sources.union(self.control));
            if let Some(last) = self.collected.last_mut() {
                *last = joined;
            }
        }
        self.nil()
    }
}
