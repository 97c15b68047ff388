//! Translates threading forms, which pass a value through a series of steps, to IR: `->`, `->>`, `as->`, `cond->`,
//! `cond->>`, `some->`, `some->>` and `doto`.
//!
//! Every step binds the same slot to its value, so a chain of any length is one flat `let`.
//!
//! The order of evaluation must not change: in `(->> x (f (g)))`, that is `(f (g) x)`, the call `(g)` comes before
//! `x`. Arguments with possible effects before the threaded one are therefore evaluated first. A special form as a
//! step gets the previous steps as a form, because it may not evaluate them at all.

use super::conditional::clause;
use crate::diagnostic::{Failed, Fallible, error};
use crate::form::{Form, FormKind, Forms};
use crate::ir::{Binding, Kind, SomeChain};
use crate::names::Special;
use crate::resolve::{Bindings, Resolved, Resolver, with_advice, wrong_shape};
use ptc_vm::builtins::Purity;
use ptc_vm::{Reason, Span};
use std::cell::Cell;

fn invalid_thread(span: Span, special: Special) -> Failed {
    with_advice(error(Reason::InvalidThreadForm, span, format!("expected {}", special.usage())), special)
}

impl<'a> Resolver<'a, '_> {
    /// `->` and `->>` (`last`): `items` are the first expression and the steps.
    #[inline(never)]
    pub(crate) fn thread(&mut self, span: Span, items: Forms<'a>, last: bool, tail: bool) -> Resolved<'a> {
        let special = if last { Special::ThreadLast } else { Special::ThreadFirst };
        if items.is_empty() {
            return Err(invalid_thread(span, special));
        }
        let nested = (1..items.len()).rev().find(|&at| self.is_special_step(&items[at]));
        let (first, steps) = match nested {
            None => (&items[0], &items[1..]),
            Some(at) => {
                let before = match &items[..at] {
                    [only] => *only,
                    before => Form::new(span, FormKind::Thread { last, items: before }),
                };
                (self.step_form(&items[at], before, last), &items[at + 1..])
            }
        };
        match steps {
            [] => Ok(self.resolve(first, tail)),
            [step] => {
                let call = self.step_form(step, *first, last);
                Ok(self.resolve(call, tail))
            }
            [before @ .., end] => self.chain(span, first, before, end, last, tail),
        }
    }

    fn chain(
        &mut self,
        span: Span,
        first: &'a Form<'a>,
        before: Forms<'a>,
        end: &'a Form<'a>,
        last: bool,
        tail: bool,
    ) -> Resolved<'a> {
        let mark = self.scopes.mark();
        let mut bindings = self.list(before.len() + 1);
        // The last step's arguments come first, as in nested calls.
        let end = self.hoist(end, last, &mut bindings)?;
        let mut steps = self.list(before.len());
        for step in before.iter().rev().take_while(self.goes_on()) {
            steps.push(self.hoist(step, last, &mut bindings)?);
        }
        let value = self.resolve(first, false);
        let slot = self.bind_hidden(value, &mut bindings)?;
        let threaded = self.hidden(first.span, slot);
        for step in steps.iter().rev().take_while(self.goes_on()) {
            let call = self.step_form(step, threaded, last);
            let value = self.resolve(call, false);
            bindings.push(Binding::new(slot, value));
        }
        let call = self.step_form(end, threaded, last);
        let body = self.resolve(call, tail);
        self.scopes.release(mark);
        Ok(self.let_expr(span, bindings, body))
    }

    /// A step with only inert arguments before the threaded value; others are bound first.
    fn hoist(&mut self, step: &'a Form<'a>, last: bool, out: &mut Bindings<'a>) -> Fallible<&'a Form<'a>> {
        let FormKind::List(items) = step.kind else { return Ok(step) };
        let before = if last { items.len() } else { items.len().min(1) };
        if items[..before].iter().all(|item| self.is_inert_form(item, 4)) {
            return Ok(step);
        }
        let mut rewritten = self.list(items.len());
        rewritten.extend_from_slice(items);
        for (index, item) in items.iter().enumerate().take(before) {
            if self.is_inert_form(item, 4) {
                continue;
            }
            let value = self.resolve(item, false);
            let slot = self.bind_hidden(value, out)?;
            rewritten[index] = self.hidden(item.span, slot);
        }
        Ok(self.list_of(step.span, rewritten))
    }

    /// Whether evaluating the form has no effect but a fault. Looks only a few levels deep.
    fn is_inert_form(&mut self, form: &Form<'a>, levels: u32) -> bool {
        let Some(levels) = levels.checked_sub(1) else { return false };
        let FormKind::List(items) = form.kind else {
            return match form.kind {
                FormKind::ShortFn(_) => true,
                FormKind::Thread { .. } => false,
                _ => form.children().iter().all(|item| self.is_inert_form(item, levels)),
            };
        };
        let Some((head, rest)) = items.split_first() else { return false };
        let is_pure = match head.kind {
            FormKind::Keyword(_) => true,
            FormKind::Symbol(name) => match self.special(name) {
                Some(special) => return special == Special::Fn,
                None => self.is_pure_builtin(name),
            },
            _ => false,
        };
        is_pure && rest.iter().all(|item| self.is_inert_form(item, levels))
    }

    fn is_pure_builtin(&mut self, name: crate::names::Name) -> bool {
        let is_local = self.scopes.is_bound(name);
        !is_local
            && !self.globals.is_definable(name)
            && self
                .names
                .builtin(name)
                .is_some_and(|builtin| matches!(builtin.info().purity, Purity::Total | Purity::Pure))
    }

    /// Whether the step is a special form (as a list or as its bare name).
    fn is_special_step(&mut self, step: &Form<'a>) -> bool {
        let head = match step.kind {
            FormKind::List(items) => items.first(),
            _ => Some(step),
        };
        head.and_then(Form::symbol).is_some_and(|name| self.special(name).is_some())
    }

    /// The call of a step with the threaded value inserted.
    fn step_form(&self, step: &Form<'a>, value: Form<'a>, last: bool) -> &'a Form<'a> {
        let FormKind::List(items @ [_, ..]) = step.kind else {
            return self.list_form(step.span, &[*step, value]);
        };
        let mut all = self.list(items.len() + 1);
        let at = if last { items.len() } else { 1 };
        all.extend_from_slice(&items[..at]);
        all.push(value);
        all.extend_from_slice(&items[at..]);
        self.list_of(step.span, all)
    }

    /// `(as-> expr name step …)`.
    #[inline(never)]
    pub(crate) fn thread_as(&mut self, span: Span, rest: Forms<'a>, tail: bool) -> Resolved<'a> {
        let [first, name, steps @ ..] = rest else { return Err(invalid_thread(span, Special::ThreadAs)) };
        let place = name.span;
        let Some(name) = name.symbol() else { return Err(invalid_thread(place, Special::ThreadAs)) };
        let name = self.bindable(name, place)?;
        let value = self.resolve(first, false);
        let Some((end, before)) = steps.split_last() else { return Ok(value) };
        let mark = self.scopes.mark();
        let mut bindings = self.list(before.len() + 1);
        let slot = self.bind_name(name, value, &mut bindings)?;
        for step in before.iter().take_while(self.goes_on()) {
            let value = self.resolve(step, false);
            bindings.push(Binding::new(slot, value));
        }
        let body = self.resolve(end, tail);
        self.scopes.release(mark);
        Ok(self.let_expr(span, bindings, body))
    }

    /// `(doto expr step …)`: every step gets the same value, which is also the result.
    #[inline(never)]
    pub(crate) fn doto_form(&mut self, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let Some((first, steps)) = rest.split_first() else { return Err(wrong_shape(Special::Doto, span)) };
        let value = self.resolve(first, false);
        let mark = self.scopes.mark();
        let mut bindings = self.list(1);
        let slot = self.bind_hidden(value, &mut bindings)?;
        let threaded = self.hidden(first.span, slot);
        let mut items = self.list(steps.len() + 1);
        for step in steps.iter().take_while(self.goes_on()) {
            let call = self.step_form(step, threaded, false);
            items.push(self.resolve(call, false));
        }
        items.push(self.local(first.span, slot));
        self.scopes.release(mark);
        let body = self.expr(span, Kind::Do(items.into_bump_slice()));
        Ok(self.let_expr(span, bindings, body))
    }

    /// `cond->` and `cond->>`: a step runs when its own test holds.
    #[inline(never)]
    pub(crate) fn thread_cond(&mut self, special: Special, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let Some((first, steps)) = rest.split_first() else { return Err(invalid_thread(span, special)) };
        if steps.len() % 2 == 1 {
            return Err(invalid_thread(span, special));
        }
        let last = special == Special::CondLast;
        let value = self.resolve(first, false);
        let mark = self.scopes.mark();
        let mut bindings = self.list(steps.len() / 2 + 1);
        let slot = self.bind_hidden(value, &mut bindings)?;
        let threaded = self.hidden(first.span, slot);
        for pair in steps.chunks_exact(2).take_while(self.goes_on()) {
            let test = self.branch_test(&pair[0]);
            let call = self.step_form(&pair[1], threaded, last);
            let body = self.branch(call, false);
            let unchanged = self.local(pair[0].span, slot);
            let clauses = self.slice([clause(None, test, body)]);
            let value = self.cond(pair[1].span, clauses, Some(unchanged));
            bindings.push(Binding::new(slot, value));
        }
        let body = self.local(span, slot);
        self.scopes.release(mark);
        Ok(self.let_expr(span, bindings, body))
    }

    /// `some->` and `some->>`: stops at nil.
    #[inline(never)]
    pub(crate) fn thread_some(&mut self, special: Special, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let Some((form, steps)) = rest.split_first() else { return Err(invalid_thread(span, special)) };
        let last = special == Special::SomeLast;
        let first = self.resolve(form, false);
        if steps.is_empty() {
            return Ok(first);
        }
        let mark = self.scopes.mark();
        let slot = self.new_slot(span)?;
        let threaded = self.hidden(form.span, slot);
        let mut resolved = self.list(steps.len());
        for step in steps.iter().take_while(self.goes_on()) {
            let call = self.step_form(step, threaded, last);
            resolved.push((self.branch(call, false), Cell::default()));
        }
        self.scopes.release(mark);
        let steps = resolved.into_bump_slice();
        Ok(self.expr(span, Kind::SomeChain(self.arena.alloc(SomeChain { slot, first, steps }))))
    }
}
