//! Resolves the names of local variables to slots and captured variables, in the nested scopes of functions and loops.
//! It also gives out the slots, and notes the outer locals that a loop reads.

use crate::ir::{MAX_SLOTS, Slots};
use crate::meter::List;
use crate::names::{HashState, Name, Names, split_qualified};
use bumpalo::Bump;
use ptc_vm::Span;
use std::collections::HashMap;

/// A name that may become a local. Every local needs one, so no form can bind a qualified name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bindable(Name);

impl Bindable {
    /// `None` for a qualified name.
    pub(crate) fn new(names: &Names<'_>, name: Name) -> Option<Bindable> {
        split_qualified(names.text(name)).0.is_none().then_some(Bindable(name))
    }

    /// A name that programs cannot write.
    pub(crate) fn fresh(names: &mut Names<'_>) -> Bindable {
        Bindable(names.fresh())
    }

    /// The name.
    pub(crate) fn name(self) -> Name {
        self.0
    }
}

/// The meaning of a name in the current function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Variable {
    Local(u8),
    Capture(u16),
    SelfRef,
}

/// The target of `recur`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecurTarget {
    /// First variable; they are consecutive.
    pub(crate) first: u8,
    pub(crate) count: u8,
    pub(crate) used: bool,
}

/// Most captures that are searched linearly.
const FEW: usize = 16;

/// One function while its body is resolved.
#[derive(Debug, Default)]
pub(crate) struct FunctionScope {
    depth: usize,
    /// Start of its names in `Scopes::bound`, without its own name.
    base: usize,
    /// Enclosing loops: the first slot of each, and the outer slots that its body reads.
    loops: Vec<(usize, Slots)>,
    pub(crate) captures: Vec<Variable>,
    /// The index of the captures, once there are many.
    rows: Option<HashMap<Variable, u16, HashState>>,
    pub(crate) recur: Option<RecurTarget>,
    /// Tests of the truth of its rest parameter.
    pub(crate) rest_tests: Vec<Span>,
    /// A `recur` may give nil as its rest parameter.
    pub(crate) rest_may_be_nil: bool,
}

/// A state to restore when a scope ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    names: usize,
    depth: usize,
}

impl FunctionScope {
    /// A new slot, or `None` if the function has too many locals in scope.
    pub(crate) fn slot(&mut self) -> Option<u8> {
        if self.depth >= MAX_SLOTS {
            return None;
        }
        self.depth += 1;
        Some((self.depth - 1) as u8)
    }

    /// Enters a loop with the last `variables` slots as its variables.
    pub(crate) fn enter_loop(&mut self, variables: usize) {
        self.loops.push((self.depth - variables.min(self.depth), Slots::EMPTY));
    }

    /// The outer slots that the loop body read.
    pub(crate) fn leave_loop(&mut self) -> Slots {
        self.loops.pop().map_or(Slots::EMPTY, |(_, used)| used)
    }

    /// No loop encloses the current form.
    pub(crate) fn is_outside_loops(&self) -> bool {
        self.loops.is_empty()
    }

    /// Notes a read of a slot for every loop that it is outside of.
    pub(crate) fn note_use(&mut self, slot: u8) {
        for (first, used) in self.loops.iter_mut().rev() {
            if usize::from(slot) >= *first {
                break;
            }
            used.insert(slot);
        }
    }

    fn capture(&mut self, variable: Variable) -> Variable {
        let known = match self.captures.len() > FEW {
            false => self.captures.iter().position(|known| *known == variable).map(|row| row as u16),
            true => self.rows.as_ref().and_then(|rows| rows.get(&variable).copied()),
        };
        let row = known.unwrap_or_else(|| {
            self.captures.push(variable);
            let row = self.captures.len() - 1;
            if row == FEW {
                let rows = self.captures.iter().enumerate().map(|(row, &variable)| (variable, row as u16));
                self.rows = Some(rows.collect());
            } else if let Some(rows) = &mut self.rows {
                rows.insert(variable, row as u16);
            }
            row as u16
        });
        Variable::Capture(row)
    }

    /// Forgets one arity; captures stay.
    fn clear(&mut self) {
        self.depth = 0;
        self.loops.clear();
        self.recur = None;
        self.rest_tests.clear();
        self.rest_may_be_nil = false;
    }
}

/// A name in scope that stands after `&`: its value is a list, never nil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The parameter of a function, to which `recur` may give another value.
    Parameter,
    /// Part of a pattern.
    Part,
}

/// A name in scope.
#[derive(Debug)]
struct Bound {
    name: Name,
    /// Its function, counted from the outermost, and its variable there.
    function: u32,
    variable: Variable,
    /// The hidden binding of the same name, counted from 1; 0 for none.
    hidden: u32,
    rest: Option<Rest>,
}

/// The functions around the current form, and their bound names. Look-ups take constant time.
#[derive(Debug)]
pub(crate) struct Scopes<'a> {
    functions: List<'a, FunctionScope>,
    /// Scopes of finished functions, for reuse.
    spare: Vec<FunctionScope>,
    /// All names in scope, outer functions first.
    bound: List<'a, Bound>,
    /// By the number of a name: its innermost binding, counted from 1; 0 for none.
    innermost: List<'a, u32>,
}

impl<'a> Scopes<'a> {
    /// The program itself, as the outermost function.
    pub(crate) fn new(arena: &'a Bump, names: usize) -> Scopes<'a> {
        Scopes {
            functions: bumpalo::vec![in arena; FunctionScope::default()],
            spare: Vec::new(),
            bound: List::new_in(arena),
            innermost: bumpalo::vec![in arena; 0; names],
        }
    }

    /// The number of functions around the current form.
    pub(crate) fn len(&self) -> usize {
        self.functions.len()
    }

    /// The innermost function.
    pub(crate) fn function(&mut self) -> &mut FunctionScope {
        // The program itself is the outermost function and never leaves the stack.
        let last = self.functions.len() - 1;
        &mut self.functions[last]
    }

    pub(crate) fn open(&mut self, self_name: Option<Bindable>) {
        let scope = self.spare.pop().unwrap_or_default();
        self.functions.push(scope);
        if let Some(name) = self_name {
            self.push(name.0, Variable::SelfRef);
        }
        self.function().base = self.bound.len();
    }

    /// Ends the innermost function. Gives its captures, as variables of the function around it.
    pub(crate) fn close(&mut self, captures: impl FnOnce(&[Variable])) {
        let Some(mut scope) = self.functions.pop() else { return };
        let closed = self.functions.len() as u32;
        while self.bound.last().is_some_and(|bound| bound.function == closed) {
            self.pop();
        }
        captures(&scope.captures);
        scope.clear();
        scope.captures.clear();
        scope.rows = None;
        self.spare.push(scope);
    }

    /// Drops the locals of one arity; captures stay.
    pub(crate) fn next_arity(&mut self) {
        let function = self.function();
        function.clear();
        let base = function.base;
        self.truncate(base);
    }

    pub(crate) fn mark(&mut self) -> Mark {
        Mark { names: self.bound.len(), depth: self.function().depth }
    }

    pub(crate) fn release(&mut self, mark: Mark) {
        self.truncate(mark.names);
        self.function().depth = mark.depth;
    }

    /// Hides the names bound since the mark, but keeps their slots allocated.
    pub(crate) fn hide(&mut self, mark: Mark) {
        self.truncate(mark.names);
    }

    pub(crate) fn bind(&mut self, name: Bindable, slot: u8) {
        self.push(name.0, Variable::Local(slot));
    }

    fn push(&mut self, name: Name, variable: Variable) {
        let number = name.number() as usize;
        if number >= self.innermost.len() {
            self.innermost.resize(number + 1, 0);
        }
        let function = self.functions.len() as u32 - 1;
        let hidden = self.innermost[number];
        self.bound.push(Bound { name, function, variable, hidden, rest: None });
        self.innermost[number] = self.bound.len() as u32;
    }

    /// The name bound last stands after `&`.
    pub(crate) fn last_is_rest(&mut self, rest: Rest) {
        if let Some(bound) = self.bound.last_mut() {
            bound.rest = Some(rest);
        }
    }

    /// Whether a name stands after `&`, and the function that binds it.
    pub(crate) fn rest(&self, name: Name) -> Option<(Rest, u32)> {
        let bound = self.find(name)?;
        Some((bound.rest?, bound.function))
    }

    /// Notes a test of the rest parameter of a function.
    pub(crate) fn note_rest_test(&mut self, function: u32, span: Span) {
        if let Some(function) = self.functions.get_mut(function as usize) {
            function.rest_tests.push(span);
        }
    }

    fn pop(&mut self) {
        if let Some(bound) = self.bound.pop() {
            self.innermost[bound.name.number() as usize] = bound.hidden;
        }
    }

    fn truncate(&mut self, names: usize) {
        while self.bound.len() > names {
            self.pop();
        }
    }

    fn find(&self, name: Name) -> Option<&Bound> {
        let at = *self.innermost.get(name.number() as usize)?;
        self.bound.get((at as usize).checked_sub(1)?)
    }

    /// Whether the name is a local of any function.
    pub(crate) fn is_bound(&self, name: Name) -> bool {
        self.find(name).is_some()
    }

    /// The meaning of a name in the innermost function; it is captured through all functions in between.
    pub(crate) fn lookup(&mut self, name: Name) -> Option<Variable> {
        let &Bound { function, mut variable, .. } = self.find(name)?;
        let level = function as usize;
        if let Variable::Local(slot) = variable {
            self.functions[level].note_use(slot);
        }
        for function in &mut self.functions[level + 1..] {
            variable = function.capture(variable);
        }
        Some(variable)
    }

    /// The names in scope.
    pub(crate) fn names(&self) -> impl Iterator<Item = Name> {
        self.bound.iter().map(|bound| bound.name)
    }
}
