//! Data-flow analysis of function calls: finds which data the results may depend on, for functions of the program,
//! builtins that are passed as values, and unknown functions.

use super::node::{Key, NEVER, Node, Text, Val};
use super::plan::FlowCallKind;
use super::set::{Callables, SourceSet};
use super::walk::{ANYTHING, LITERAL, Target, Walk};
use crate::ir::Function;
use ptc_vm::Span;
use ptc_vm::builtins::{Builtin, HostFunction, Implementation, Purity};
use ptc_vm::bytecode::{BuiltinId, Const};

/// What leaves the program.
const OUTSIDE: Callables = Callables::UNKNOWN.union(Callables::HOST).union(Callables::READS);

/// A function is looked at where it is called if expressions do not nest deeper than this there, else after the
/// program.
const EAGER: usize = 24;

/// True when a builtin, called with this many arguments, makes something that calls functions when it is read or called
/// later.
pub(crate) fn is_deferring(info: &Builtin, count: Option<usize>) -> bool {
    let is = |without_end: usize| count.is_none_or(|count| count == without_end);
    match info.name {
        "memoize" | "iterate" | "cycle" => true,
        "repeat" | "repeatedly" => is(1),
        "range" => is(0),
        _ => false,
    }
}

/// What a call of a builtin as a value may do.
pub(super) fn calls_of(builtin: BuiltinId) -> Callables {
    let info = builtin.info();
    match info.implementation {
        Implementation::Host(function) => match function {
            HostFunction::ToolCall
            | HostFunction::ToolCallValue
            | HostFunction::Tool
            | HostFunction::Ask(_) => Callables::HOST,
            HostFunction::Servers
            | HostFunction::Discover(_)
            | HostFunction::Now
            | HostFunction::Budget
            | HostFunction::Look(_) => Callables::READS,
        },
        _ if is_deferring(info, None) => Callables::ELSEWHERE,
        Implementation::Direct(_) | Implementation::Callback(_) => match info.purity {
            Purity::Effect => Callables::PRINTS,
            _ => Callables::DATA,
        },
    }
}

impl<'a> Walk<'a, '_> {
    /// A call of a value. `name`: the global that holds it.
    pub(super) fn apply(
        &mut self,
        callee: Val<'a>,
        arguments: &[Val<'a>],
        span: Span,
        name: Option<u16>,
    ) -> Val<'a> {
        let value = self.under(callee.own, |this| {
            if let (Some(key), [target]) = (this.keyword(callee), arguments) {
                return this.get(target, Some(key));
            }
            if callee.is_loose {
                return this.unknown_use(&[arguments, &[callee]].concat(), span, name);
            }
            let mut value: Val<'a> = &NEVER;
            if callee.calls.has(Callables::DATA) {
                // A map gives a part of itself, a builtin may call the functions that it gets.
                let used = this.unknown_use(arguments, span, name);
                value = this.merged(&[used, callee], SourceSet::EMPTY);
            } else if callee.calls.has(OUTSIDE) {
                let all = this.merged(arguments, callee.deep);
                value = this.outside_call(callee.calls, all, span, name);
            }
            for number in callee.calls.functions() {
                this.bind(number, arguments);
                this.look_at_now(number);
                let result = this.use_result(number);
                value = this.join(value, result);
            }
            value
        });
        self.marked(value, callee.own.minus(LITERAL))
    }

    /// The key that a constant keyword reads when it is called.
    fn keyword(&mut self, callee: Val<'a>) -> Option<Key> {
        let Text::Row(row) = callee.text else { return None };
        match self.tables.constants.get(usize::from(row))? {
            Const::Keyword(_) => self.key_of(row),
            _ => None,
        }
    }

    /// Several values as one.
    pub(super) fn merged(&self, values: &[Val<'a>], sources: SourceSet) -> Val<'a> {
        let start = (sources, Callables::DATA);
        let (sources, calls) = values.iter().fold(start, |(sources, calls), value| {
            (sources.union(value.deep), calls.union(value.deep_calls))
        });
        self.new_node(Node::opaque(sources, calls))
    }

    /// The result of something that may read its arguments, and call the functions in them with whatever it has.
    pub(super) fn unknown_use(&mut self, arguments: &[Val<'a>], span: Span, name: Option<u16>) -> Val<'a> {
        let mut all = self.merged(arguments, SourceSet::EMPTY);
        if all.deep_calls.is_data() {
            return all;
        }
        loop {
            let before = all;
            let calls = all.deep_calls;
            let sources = match calls.has(Callables::ELSEWHERE) {
                true => all.deep.union(ANYTHING),
                false => all.deep,
            };
            for number in calls.functions() {
                self.under(sources, |this| {
                    this.bind_all(number, all);
                    this.look_at_now(number);
                });
                let result = self.use_result(number);
                all = self.merged(&[all, result], SourceSet::EMPTY);
            }
            let outside = self.under(sources, |this| this.outside_call(calls, all, span, name));
            all = self.merged(&[all, outside], SourceSet::EMPTY);
            if before.covers(&self.nodes, all) || self.failed {
                return all;
            }
        }
    }

    /// A call of what may be a tool or unknown.
    fn outside_call(&mut self, calls: Callables, all: Val<'a>, span: Span, name: Option<u16>) -> Val<'a> {
        let mut value: Val<'a> = &NEVER;
        if calls.has(Callables::PRINTS) {
            self.print(all);
        }
        if calls.has(Callables::HOST) {
            value = self.computed_site(span, FlowCallKind::Tool, None, all);
        }
        if calls.has(Callables::READS) {
            let anything = self.new_node(Node::opaque(ANYTHING, Callables::DATA));
            value = self.merged(&[value, all, anything], SourceSet::EMPTY);
        }
        if calls.has(Callables::UNKNOWN) {
            let name = name.map(|row| self.global_name(row));
            let result = self.computed_site(span, FlowCallKind::Function, name, all);
            let calls = Callables::UNKNOWN.union(calls.both(Callables::DEFINES.union(Callables::ENDS)));
            let anything = self.new_node(Node::opaque(ANYTHING, calls));
            value = self.merged(&[value, result, anything], SourceSet::EMPTY);
            self.under(ANYTHING, |this| this.unknown_effects(calls, all));
        }
        value
    }

    /// What a function of unknown text may do, apart from calls: print, end the program, define names and call
    /// what other names hold.
    fn unknown_effects(&mut self, calls: Callables, all: Val<'a>) {
        self.print(all);
        if calls.has(Callables::ENDS) {
            self.may_end(all.deep);
        }
        if !calls.has(Callables::DEFINES) {
            return;
        }
        if !self.may_define {
            self.may_define = true;
            self.look_again();
        }
        let anything = self.new_node(Node::opaque(ANYTHING, calls));
        let all = self.merged(&[all, anything], ANYTHING);
        for value in self.defined_values() {
            for number in value.deep_calls.functions() {
                self.bind_all(number, all);
                self.look_at_now(number);
            }
        }
    }

    /// Notes a print.
    pub(super) fn print(&mut self, value: Val<'a>) {
        self.prints = self.prints.union(value.deep).union(self.reached_by());
    }

    /// Binds the arguments of a call to the parameters of the arities that accept them.
    fn bind(&mut self, number: usize, arguments: &[Val<'a>]) {
        let function: &'a Function<'a> = self.functions[number].function;
        let mut first = 0;
        for (index, arity) in function.arities.iter().enumerate() {
            let fixed = usize::from(arity.fixed);
            let accepts = if arity.variadic { arguments.len() >= fixed } else { arguments.len() == fixed };
            if accepts {
                self.mark_called(number, index);
                for (at, value) in arguments.iter().take(fixed).enumerate() {
                    self.grow_parameter_of(number, first + at, value);
                }
                if arity.variadic {
                    let more = arguments[fixed..].iter().copied().reduce(|a, b| self.join(a, b));
                    let rest = self.list(LITERAL, more);
                    self.grow_parameter_of(number, first + fixed, rest);
                }
            }
            first += fixed + usize::from(arity.variadic);
        }
        self.add_control(number);
    }

    /// Binds every parameter to one value, and to lists of it.
    fn bind_all(&mut self, number: usize, value: Val<'a>) {
        for index in 0..self.functions[number].function.arities.len() {
            self.mark_called(number, index);
        }
        for at in 0..self.functions[number].parameters.len() {
            self.grow_parameter_of(number, at, value);
        }
        self.add_control(number);
    }

    fn mark_called(&mut self, number: usize, arity: usize) {
        let cell = &mut self.functions[number];
        let bit = 1 << arity.min(63);
        if cell.called & bit == 0 {
            cell.called |= bit;
            cell.is_dirty = true;
        }
    }

    fn add_control(&mut self, number: usize) {
        let control = self.reached_by();
        let cell = &mut self.functions[number];
        cell.is_dirty |= cell.control.grow(control);
    }

    pub(super) fn grow_parameter(&mut self, at: usize, value: Val<'a>) {
        if let Some(number) = self.current {
            self.grow_parameter_of(number, at, value);
        }
    }

    fn grow_parameter_of(&mut self, number: usize, at: usize, value: Val<'a>) {
        let cell = &mut self.functions[number];
        if let Some(known) = cell.parameters.get_mut(at) {
            cell.is_dirty |= self.nodes.grow(known, value);
        }
    }

    fn use_result(&mut self, number: usize) -> Val<'a> {
        let cell = &mut self.functions[number];
        cell.is_used = true;
        cell.result
    }

    fn look_at_now(&mut self, number: usize) {
        if self.nesting < EAGER {
            self.look_at(number);
        }
    }

    /// Looks at the bodies of a function, if more is known of what it is given.
    pub(super) fn look_at(&mut self, number: usize) {
        let cell = &mut self.functions[number];
        cell.is_recursive |= cell.is_active;
        if !cell.is_dirty || cell.is_active || self.failed {
            return;
        }
        (cell.is_dirty, cell.is_active) = (false, true);
        let function: &'a Function<'a> = cell.function;
        let nesting = self.nesting;
        let current = self.current.replace(number);
        let (target, control) = (self.target, self.control);
        let (outer, turns) = (std::mem::take(&mut self.outer), std::mem::take(&mut self.turns));
        let collected = std::mem::take(&mut self.collected);
        let mut first = 0;
        for (index, arity) in function.arities.iter().enumerate() {
            let count = usize::from(arity.fixed) + usize::from(arity.variadic);
            if self.functions[number].called >> index.min(63) & 1 == 1 {
                self.target = Target::Function { first };
                let cell = &self.functions[number];
                self.control = cell.control.union(cell.again);
                let parameters = cell.parameters[first..first + count].to_vec();
                let again = cell.again;
                let value = self.in_frame(|this| {
                    for (slot, parameter) in parameters.into_iter().enumerate() {
                        this.set_slot(slot as u8, parameter);
                    }
                    this.value(arity.body)
                });
                let value = self.marked(value, again);
                self.grow_result(number, value);
            }
            first += count;
        }
        (self.target, self.control, self.current) = (target, control, current);
        (self.outer, self.turns) = (outer, turns);
        self.collected = collected;
        self.nesting = nesting;
        self.functions[number].is_active = false;
    }

    fn grow_result(&mut self, number: usize, value: Val<'a>) {
        let cell = &mut self.functions[number];
        // Those that used it before have to be looked at again.
        if self.nodes.grow(&mut cell.result, value) && cell.is_used {
            let is_dirty = cell.is_dirty || cell.is_recursive;
            self.look_again();
            self.functions[number].is_dirty = is_dirty;
        }
    }

    /// Looks at all functions again: something that they may read has changed.
    pub(super) fn look_again(&mut self) {
        self.changed = true;
        for cell in &mut self.functions {
            cell.is_dirty = true;
        }
    }
}
