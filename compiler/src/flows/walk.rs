//! Finds, by static analysis of a program's IR, which call results, inputs, session values and literals each expression
//! may depend on, to check before a run which data may reach which tool. What an expression may depend on is called a
//! source; [`Walk`] holds the state of the analysis.

use super::budget::Nodes;
use super::node::{Key, NEVER, Node, Val};
use super::outside::{Outside, calls_of_export};
use super::plan::FlowSource;
use super::set::{Callables, SourceSet};
use super::sites::{CallKeys, Site};
use crate::ir::tables::Tables;
use crate::ir::{Binding, Callee, Expr, Function, Kind, Loop, Ref, Refs, Test, TestKind};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::ptr::from_ref;

/// Anything: the analysis does not know.
pub(super) const ANYTHING: SourceSet = SourceSet::only(0);
/// The text of the program.
pub(super) const LITERAL: SourceSet = SourceSet::only(1);

/// Keys below are of maps, and others are indexes of lists.
pub(super) const FIRST_INDEX: Key = 0x8000;

/// Items of a list that are told apart.
pub(super) const MOST_ITEMS: usize = 16;

/// Names by number.
type Numbers<K, V> = HashMap<K, V, RandomState>;

/// What is known of a function.
pub(super) struct FunctionCell<'a> {
    pub(super) function: &'a Function<'a>,
    pub(super) captures: Vec<Val<'a>>,
    /// The parameters of each arity, one after another.
    pub(super) parameters: Vec<Val<'a>>,
    /// Arities that are called.
    pub(super) called: u64,
    pub(super) result: Val<'a>,
    /// Something has used the result.
    pub(super) is_used: bool,
    /// What decides whether it is called.
    pub(super) control: SourceSet,
    /// What decides whether it calls itself again by `recur`.
    pub(super) again: SourceSet,
    /// It is to be looked at again.
    pub(super) is_dirty: bool,
    pub(super) is_active: bool,
    /// It was called while it was looked at.
    pub(super) is_recursive: bool,
}

/// What is known of a global name.
#[derive(Clone, Copy, Default)]
struct GlobalCell<'a> {
    value: Option<Val<'a>>,
    /// Something has used it.
    is_used: bool,
}

/// What is known of a loop.
pub(super) struct LoopCell<'a> {
    pub(super) variables: Vec<Val<'a>>,
    /// What decides whether it goes on.
    pub(super) control: SourceSet,
    pub(super) grew: bool,
}

/// What `recur` continues.
#[derive(Clone, Copy)]
pub(super) enum Target {
    Nothing,
    /// An arity of the current function, by the first of its parameters.
    Function {
        first: usize,
    },
    Loop {
        cell: usize,
        slot: u8,
    },
}

/// The state of the analysis.
pub(super) struct Walk<'a, 'x> {
    pub(super) nodes: Nodes<'a>,
    pub(super) tables: &'x Tables<'x>,
    outside: Outside<'x>,
    pub(super) sources: Vec<FlowSource>,
    pub(super) functions: Vec<FunctionCell<'a>>,
    numbers: Numbers<*const Function<'a>, usize>,
    globals: Vec<GlobalCell<'a>>,
    pub(super) loops: Vec<LoopCell<'a>>,
    pub(super) loop_numbers: Numbers<*const Loop<'a>, usize>,
    /// What decides whether an iteration goes on, by its collection.
    pub(super) whiles: Numbers<*const Expr<'a>, SourceSet>,
    pub(super) sites: Vec<Site<'a>>,
    /// Loops around the expression, in its function.
    pub(super) turns: usize,
    /// A function of an earlier program is called: it may define any name.
    pub(super) may_define: bool,
    pub(super) call_keys: Option<CallKeys>,
    pub(super) keys: Vec<Box<str>>,
    pub(super) rows: Vec<Option<Option<Key>>>,
    pub(super) constants: Vec<Option<Val<'a>>>,
    slots: Vec<Val<'a>>,
    base: usize,
    /// What decides whether the current expression is evaluated, within the innermost `for` or function.
    pub(super) control: SourceSet,
    /// The same, around the innermost `for`.
    pub(super) outer: SourceSet,
    /// What decided that the program has not ended before.
    exits: SourceSet,
    exits_of_functions: SourceSet,
    pub(super) current: Option<usize>,
    pub(super) target: Target,
    /// The items of each `for` around the expression.
    pub(super) collected: Vec<(Val<'a>, SourceSet)>,
    pub(super) prints: SourceSet,
    result: SourceSet,
    pub(super) definitions: Vec<u16>,
    pub(super) changed: bool,
    /// The program is too large.
    pub(super) failed: bool,
    pub(super) nesting: usize,
}

impl<'a, 'x> Walk<'a, 'x> {
    pub(super) fn new(nodes: Nodes<'a>, tables: &'x Tables<'x>, outside: Outside<'x>) -> Walk<'a, 'x> {
        Walk {
            nodes,
            tables,
            outside,
            sources: vec![FlowSource::Anything, FlowSource::Literal],
            functions: Vec::new(),
            numbers: Numbers::default(),
            globals: vec![GlobalCell::default(); tables.globals.len()],
            loops: Vec::new(),
            loop_numbers: Numbers::default(),
            whiles: Numbers::default(),
            sites: Vec::new(),
            turns: 0,
            may_define: false,
            call_keys: None,
            keys: Vec::new(),
            rows: vec![None; tables.constants.len()],
            constants: vec![None; tables.constants.len()],
            slots: Vec::new(),
            base: 0,
            control: SourceSet::EMPTY,
            outer: SourceSet::EMPTY,
            exits: SourceSet::EMPTY,
            exits_of_functions: SourceSet::EMPTY,
            current: None,
            target: Target::Nothing,
            collected: Vec::new(),
            prints: SourceSet::EMPTY,
            result: SourceSet::EMPTY,
            definitions: Vec::new(),
            changed: false,
            failed: false,
            nesting: 0,
        }
    }

    /// Looks at the program and the functions that are called once. True when something has changed.
    pub(super) fn round(&mut self, main: &'a Function<'a>) -> bool {
        self.changed = false;
        self.exits = SourceSet::EMPTY;
        self.sites.iter_mut().for_each(Site::begin_round);
        for arity in main.arities {
            let value = self.value(arity.body);
            self.result = self.result.union(value.deep);
        }
        let mut number = 0;
        while number < self.functions.len() {
            self.look_at(number);
            number += 1;
        }
        // What is still to be looked at may change what has been used.
        (self.changed || self.functions.iter().any(|cell| cell.is_dirty)) && !self.failed
    }

    pub(super) fn all_exits(&self) -> SourceSet {
        self.exits.union(self.exits_of_functions)
    }

    /// What decides whether the current expression is evaluated in its function.
    pub(super) fn decided_by(&self) -> SourceSet {
        self.control.union(self.outer)
    }

    /// The same, and that the program has not ended before.
    pub(super) fn reached_by(&self) -> SourceSet {
        self.decided_by().union(self.all_exits())
    }

    pub(super) fn result(&self) -> SourceSet {
        self.result
    }

    pub(super) fn new_node(&self, node: Node<'a>) -> Val<'a> {
        self.nodes.node(node)
    }

    pub(super) fn scalar(&self, sources: SourceSet) -> Val<'a> {
        self.new_node(Node::scalar(sources))
    }

    pub(super) fn nil(&self) -> Val<'a> {
        self.new_node(Node { is_list: true, ..Node::scalar(LITERAL) })
    }

    pub(super) fn join(&self, a: Val<'a>, b: Val<'a>) -> Val<'a> {
        self.nodes.join(a, b)
    }

    pub(super) fn marked(&self, value: Val<'a>, sources: SourceSet) -> Val<'a> {
        self.nodes.marked(value, sources)
    }

    /// A list of items like this one.
    pub(super) fn list(&self, own: SourceSet, item: Option<Val<'a>>) -> Val<'a> {
        let item = item.map(|item| self.shallow(item));
        self.new_node(Node { is_list: true, ..Node::with_parts(own, &[], item) })
    }

    /// The number of a source.
    pub(super) fn source(&mut self, source: FlowSource) -> SourceSet {
        let known = self.sources.iter().position(|known| *known == source);
        match known.map(u8::try_from) {
            Some(Ok(number)) => SourceSet::only(number),
            Some(Err(_)) => ANYTHING,
            None => self.new_source(source),
        }
    }

    /// The number of a source that is there for the first time.
    pub(super) fn new_source(&mut self, source: FlowSource) -> SourceSet {
        self.sources.push(source);
        match u8::try_from(self.sources.len() - 1) {
            Ok(number) => SourceSet::only(number),
            Err(_) => {
                self.failed = true;
                ANYTHING
            }
        }
    }

    /// What an expression may depend on.
    pub(super) fn value(&mut self, expr: Ref<'a>) -> Val<'a> {
        if !self.nodes.pay(1) {
            self.failed = true;
        }
        if self.failed {
            return &NEVER;
        }
        self.nesting += 1;
        let value = self.value_of(expr);
        self.nesting -= 1;
        value
    }

    fn value_of(&mut self, expr: Ref<'a>) -> Val<'a> {
        match &expr.kind {
            Kind::Literal(literal) => self.literal(*literal),
            Kind::Local(read) => self.slot(read.slot),
            Kind::Capture(index) => self.capture(*index),
            Kind::SelfRef => self.closure(self.current),
            Kind::Global(row) | Kind::GlobalOrNil(row) => self.global(*row),
            Kind::Call(callee, arguments) => self.call(expr, callee, arguments),
            Kind::GetKey(row, target) => {
                let target = self.value(target);
                let key = self.key_of(*row);
                self.get(target, key)
            }
            Kind::Arithmetic(_, items) | Kind::Set(items) => self.mixture(items),
            Kind::AddSmall(target, ..) => {
                let deep = self.value(target).deep;
                self.scalar(deep.union(LITERAL))
            }
            Kind::Test(test) => {
                let sources = self.test(test);
                self.scalar(sources.union(LITERAL))
            }
            Kind::Vector(items) => self.vector(items),
            Kind::Map(items) => self.map(items),
            Kind::Closure(function, captures) => self.make_closure(function, captures),
            Kind::Do(items) => items.iter().fold(&NEVER, |_, item| self.value(item)),
            Kind::Let(bindings, body) => {
                bindings.iter().for_each(|binding| self.bind_local(binding));
                self.value(body)
            }
            Kind::Cond(cond) => self.cond(cond),
            Kind::Case(case) => self.case(case),
            Kind::Logic(logic) => self.logic(logic),
            Kind::SomeChain(chain) => self.some_chain(chain),
            Kind::Loop(it) => self.loop_(it),
            Kind::Recur(arguments) => self.recur(arguments),
            Kind::Each(each) => self.each(each),
            Kind::Collect(level) => self.collect(level),
            Kind::Emit(value) => self.emit(value),
            Kind::Def { global, value, .. } => self.define(*global, value),
            Kind::DefOnce { global, value, .. } => self.define_once(*global, value),
            Kind::Exit(_, value) => self.exit(value),
        }
    }

    fn exit(&mut self, value: Ref<'a>) -> Val<'a> {
        let value = self.value(value);
        self.may_end(value.deep);
        &NEVER
    }

    /// The program may end here, with a value that depends on these sources.
    pub(super) fn may_end(&mut self, value: SourceSet) {
        let control = self.decided_by();
        self.result = self.result.union(value).union(control);
        let exits = match self.current {
            None => &mut self.exits,
            Some(_) => &mut self.exits_of_functions,
        };
        if exits.grow(control) && self.current.is_some() {
            self.look_again();
        }
    }

    pub(super) fn slot(&self, slot: u8) -> Val<'a> {
        self.slots.get(self.base + usize::from(slot)).copied().unwrap_or(&NEVER)
    }

    pub(super) fn set_slot(&mut self, slot: u8, value: Val<'a>) {
        let at = self.base + usize::from(slot);
        if at >= self.slots.len() {
            self.slots.resize(at + 1, &NEVER);
        }
        self.slots[at] = value;
    }

    /// Gives a local its value.
    pub(super) fn bind_local(&mut self, binding: &Binding<'a>) {
        let value = self.value(binding.value);
        self.set_slot(binding.slot, value);
    }

    /// Evaluates with locals of its own.
    pub(super) fn in_frame<T>(&mut self, evaluate: impl FnOnce(&mut Self) -> T) -> T {
        let (base, length) = (self.base, self.slots.len());
        self.base = length;
        let value = evaluate(self);
        self.slots.truncate(length);
        self.base = base;
        value
    }

    /// Evaluates what happens only if these sources say so.
    pub(super) fn under<T>(&mut self, sources: SourceSet, evaluate: impl FnOnce(&mut Self) -> T) -> T {
        let control = self.control;
        self.control = control.union(sources.minus(LITERAL));
        let value = evaluate(self);
        self.control = control;
        value
    }

    fn capture(&self, index: u16) -> Val<'a> {
        let current = self.current.and_then(|number| self.functions.get(number));
        current.and_then(|cell| cell.captures.get(usize::from(index))).copied().unwrap_or(&NEVER)
    }

    /// What a test depends on.
    pub(super) fn test(&mut self, test: &Test<'a>) -> SourceSet {
        let sources = match test.kind {
            TestKind::Truthy(a) | TestKind::NotNil(a) => self.value(a).own,
            TestKind::Compare { a, b, swapped, .. } => {
                let (first, second) = if swapped { (b, a) } else { (a, b) };
                self.value(first).deep.union(self.value(second).deep)
            }
        };
        sources.minus(LITERAL)
    }

    /// A value that depends on all of several others, and has none of their parts.
    fn mixture(&mut self, items: &[Ref<'a>]) -> Val<'a> {
        let mut node = Node::opaque(LITERAL, Callables::DATA);
        for item in items {
            let value = self.value(item);
            node = Node::opaque(node.deep.union(value.deep), node.deep_calls.union(value.deep_calls));
        }
        self.new_node(node)
    }

    fn vector(&mut self, items: &[Ref<'a>]) -> Val<'a> {
        let Some(mut fields) = self.nodes.fields(&[], items.len().min(MOST_ITEMS)) else { return &NEVER };
        let mut rest: Option<Val<'a>> = None;
        for (index, item) in items.iter().enumerate() {
            let value = self.value(item);
            let value = self.shallow(value);
            match items.len() <= MOST_ITEMS {
                true => fields.push((FIRST_INDEX + index as Key, value)),
                false => rest = Some(rest.map_or(value, |rest| self.join(rest, value))),
            }
        }
        let node = Node::with_parts(SourceSet::EMPTY, fields.into_bump_slice(), rest);
        self.new_node(Node { is_list: true, ..node })
    }

    fn map(&mut self, items: &[Ref<'a>]) -> Val<'a> {
        let mut map = self.new_node(Node::with_parts(LITERAL, &[], None));
        for pair in items.chunks_exact(2) {
            // In the order of evaluation: what comes later may not happen if the program ends here.
            let key = self.value(pair[0]);
            let value = self.value(pair[1]);
            map = match &pair[0].kind {
                Kind::Literal(literal) => self.with_entry(map, *literal, value),
                _ => self.with_unknown_entry(map, key, value),
            };
        }
        map
    }

    /// A closure of a function.
    pub(super) fn closure(&self, number: Option<usize>) -> Val<'a> {
        let Some(number) = number else { return &NEVER };
        let captures = &self.functions[number].captures;
        let calls = Callables::function(number);
        self.new_node(Node {
            deep: captures.iter().fold(LITERAL, |deep, captured| deep.union(captured.deep)),
            calls,
            deep_calls: captures.iter().fold(calls, |calls, captured| calls.union(captured.deep_calls)),
            ..Node::scalar(LITERAL)
        })
    }

    fn make_closure(&mut self, function: &'a Function<'a>, captures: &[Ref<'a>]) -> Val<'a> {
        let known = self.numbers.get(&from_ref(function)).copied();
        let number = known.unwrap_or_else(|| self.add_function(function, captures.len()));
        if number >= Callables::MOST {
            self.failed = true;
            return &NEVER;
        }
        for (index, captured) in captures.iter().enumerate() {
            let value = self.value(captured);
            let value = self.marked(value, self.decided_by());
            let cell = &mut self.functions[number];
            cell.is_dirty |= self.nodes.grow(&mut cell.captures[index], value);
        }
        self.closure(Some(number))
    }

    fn add_function(&mut self, function: &'a Function<'a>, captures: usize) -> usize {
        let number = self.functions.len();
        let parameters =
            function.arities.iter().map(|arity| usize::from(arity.fixed) + usize::from(arity.variadic));
        self.functions.push(FunctionCell {
            function,
            captures: vec![&NEVER; captures],
            parameters: vec![&NEVER; parameters.sum()],
            called: 0,
            result: &NEVER,
            is_used: false,
            control: SourceSet::EMPTY,
            again: SourceSet::EMPTY,
            is_dirty: true,
            is_active: false,
            is_recursive: false,
        });
        self.numbers.insert(from_ref(function), number);
        number
    }

    /// The value of a global name.
    pub(super) fn global(&mut self, row: u16) -> Val<'a> {
        let Some(global) = self.tables.globals.get(usize::from(row)) else { return &NEVER };
        let name = self.symbol(global.symbol);
        let defined = self.globals.get_mut(usize::from(row)).and_then(|cell| {
            cell.is_used = true;
            cell.value
        });
        let of_session = Callables::UNKNOWN.union(Callables::DEFINES).union(Callables::ENDS);
        let outside = match global.namespace.map(|namespace| self.symbol(namespace)) {
            Some(namespace) => {
                let source = FlowSource::Prelude(format!("{namespace}/{name}").into());
                Some((source, calls_of_export((self.outside.export)(namespace, name))))
            }
            None if (self.outside.is_session)(name) => Some((FlowSource::Session(name.into()), of_session)),
            None => None,
        };
        let outside = outside.map(|(source, calls)| (self.source(source), calls));
        let anything = (self.may_define && global.namespace.is_none()).then_some((ANYTHING, of_session));
        let builtin = global.builtin.map(|builtin| (LITERAL, super::apply::calls_of(builtin)));
        let others = [outside, anything, builtin].into_iter().flatten();
        let others = others.map(|(sources, calls)| self.new_node(Node::opaque(sources, calls)));
        defined.into_iter().chain(others).reduce(|a, b| self.join(a, b)).unwrap_or(&NEVER)
    }

    /// The text of a symbol.
    pub(super) fn symbol(&self, symbol: u32) -> &'x str {
        self.tables.symbols.get(symbol as usize).map_or("?", |symbol| symbol.as_str())
    }

    /// The name of a global as it is shown.
    pub(super) fn global_name(&self, row: u16) -> String {
        let Some(global) = self.tables.globals.get(usize::from(row)) else { return "?".to_owned() };
        let name = self.symbol(global.symbol);
        match global.namespace {
            Some(namespace) => format!("{}/{name}", self.symbol(namespace)),
            None => name.to_owned(),
        }
    }

    /// What may be the value of a global in the end.
    pub(super) fn global_sources(&self, row: u16) -> SourceSet {
        let value = self.globals.get(usize::from(row)).and_then(|cell| cell.value);
        value.map_or(SourceSet::EMPTY, |value| value.deep)
    }

    /// All that the names of the program may hold.
    pub(super) fn defined_values(&self) -> Vec<Val<'a>> {
        self.globals.iter().filter_map(|cell| cell.value).collect()
    }

    /// `defonce`: whether the name has a value decides whether the expression is evaluated.
    fn define_once(&mut self, row: u16, value: Ref<'a>) -> Val<'a> {
        let before = self.global(row).deep;
        self.under(before, |this| this.define(row, value))
    }

    fn define(&mut self, row: u16, value: Ref<'a>) -> Val<'a> {
        let value = self.value(value);
        let value = self.marked(value, self.reached_by());
        if let Some(cell) = self.globals.get(usize::from(row)).copied() {
            let joined = cell.value.map_or(value, |before| self.join(before, value));
            if cell.value.is_none_or(|before| !before.covers(&self.nodes, value)) {
                self.globals[usize::from(row)].value = Some(joined);
                if cell.is_used {
                    self.look_again();
                }
            }
            if !self.definitions.contains(&row) {
                self.definitions.push(row);
            }
        }
        self.scalar(LITERAL)
    }

    fn call(&mut self, expr: Ref<'a>, callee: &'a Callee<'a>, arguments: Refs<'a>) -> Val<'a> {
        match callee {
            Callee::Builtin(builtin) => self.call_builtin(expr, *builtin, arguments),
            Callee::Global(row) => {
                let arguments = self.values(arguments);
                let callee = self.global(*row);
                self.apply(callee, &arguments, expr.span, Some(*row))
            }
            Callee::Value(callee) => {
                let callee = self.value(callee);
                let arguments = self.values(arguments);
                self.apply(callee, &arguments, expr.span, None)
            }
        }
    }

    pub(super) fn values(&mut self, expressions: &[Ref<'a>]) -> Vec<Val<'a>> {
        expressions.iter().map(|expr| self.value(expr)).collect()
    }
}
