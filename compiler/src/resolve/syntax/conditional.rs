//! Resolves the conditional forms: `if`, `when`, `cond`, `condp`, `case`, `and`, `or`, and forms that bind the tested
//! value, such as `if-let`.

use crate::diagnostic::{Fallible, Hint, error, invalid_form};
use crate::form::{Form, FormKind, Forms};
use crate::ir::{
    Binding, Case, CaseClause, Clause, Cond, Kind, Literal, Logic, Ref, Test, TestKind, as_test,
};
use crate::names::{Name, Special};
use crate::resolve::{Resolved, Resolver, with_advice, wrong_shape};
use ptc_vm::bytecode::{Const, Known};
use ptc_vm::{Reason, Span};
use std::cell::Cell;
use std::slice::from_ref;

pub(super) fn clause<'a>(binding: Option<Binding<'a>>, test: Test<'a>, body: Ref<'a>) -> Clause<'a> {
    Clause { binding, test, body, dying_body: Cell::default(), dying_next: Cell::default() }
}

impl<'a> Resolver<'a, '_> {
    pub(super) fn cond(&self, span: Span, clauses: &'a [Clause<'a>], otherwise: Option<Ref<'a>>) -> Ref<'a> {
        self.expr(span, Kind::Cond(self.arena.alloc(Cond { clauses, otherwise, dying: Cell::default() })))
    }

    /// A conditional with one clause; a negated test swaps its branches if both exist.
    fn choose(&self, span: Span, test: Test<'a>, then: Ref<'a>, otherwise: Option<Ref<'a>>) -> Ref<'a> {
        match otherwise {
            Some(otherwise) if test.negated => {
                let test = Test { negated: false, ..test };
                self.cond(span, self.slice([clause(None, test, otherwise)]), Some(then))
            }
            _ => self.cond(span, self.slice([clause(None, test, then)]), otherwise),
        }
    }

    #[inline(never)]
    pub(crate) fn if_form(
        &mut self,
        special: Special,
        span: Span,
        rest: Forms<'a>,
        tail: bool,
    ) -> Resolved<'a> {
        let (test, then, otherwise) = match rest {
            [test, then] => (test, then, None),
            [test, then, otherwise] => (test, then, Some(otherwise)),
            _ => {
                let is_word = |form: &&Form<'_>| {
                    form.symbol()
                        .is_some_and(|name| matches!(self.names.text(name), "else" | "then" | "elif"))
                };
                let word = rest.iter().find(is_word).and_then(Form::symbol);
                let failed = error(Reason::InvalidArity, span, format!("expected {}", special.usage()));
                return Err(match word {
                    Some(word) => failed.hint(format!("Leave `{}` out.", self.names.text(word))),
                    None => with_advice(failed, special),
                });
            }
        };
        let mut test = self.test(test);
        test.negated ^= special == Special::IfNot;
        let then = self.branch(then, tail);
        let otherwise = otherwise.map(|form| self.branch(form, tail));
        Ok(self.choose(span, test, then, otherwise))
    }

    #[inline(never)]
    pub(crate) fn when_form(
        &mut self,
        special: Special,
        span: Span,
        rest: Forms<'a>,
        tail: bool,
    ) -> Resolved<'a> {
        let Some((test, body)) = rest.split_first() else { return Err(wrong_shape(special, span)) };
        let mut test = self.test(test);
        test.negated ^= special == Special::WhenNot;
        let body = self.branch_body(body, span, tail);
        Ok(self.choose(span, test, body, None))
    }

    /// The name and the expression of `[name expr]`.
    fn single_binding(
        &self,
        special: Special,
        span: Span,
        form: Option<&'a Form<'a>>,
    ) -> Fallible<(&'a Form<'a>, &'a Form<'a>)> {
        let Some(items) = form.and_then(|form| form.vector()) else { return Err(wrong_shape(special, span)) };
        match items {
            [pattern, value] => Ok((pattern, value)),
            _ => {
                let message = format!("binding vector must have exactly 2 forms, got {}", items.len());
                Err(invalid_form(span, message).hint(format!("expected {}", special.usage())))
            }
        }
    }

    /// A body that sees the value of a slot through a pattern, which is destructured after the test.
    fn bound_body(
        &mut self,
        pattern: &'a Form<'a>,
        slot: u8,
        span: Span,
        body: Forms<'a>,
        tail: bool,
    ) -> Resolved<'a> {
        if let Some(name) = pattern.symbol() {
            let name = self.bindable(name, pattern.span)?;
            self.scopes.bind(name, slot);
            return Ok(self.branch_body(body, span, tail));
        }
        self.in_branch(|this| {
            let mut bindings = this.list(4);
            let value = this.local(pattern.span, slot);
            this.bind_pattern(pattern, value, &mut bindings)?;
            let body = this.body(body, span, tail);
            Ok(this.let_expr(span, bindings, body))
        })
    }

    fn bound_test(&mut self, special: Special, span: Span, slot: u8) -> Test<'a> {
        let local = self.local(span, slot);
        let kind = match special {
            Special::IfSome | Special::WhenSome => TestKind::NotNil(local),
            _ => TestKind::Truthy(local),
        };
        Test { negated: false, kind }
    }

    /// `if-let`, `when-let`, `if-some` and `when-some`.
    #[inline(never)]
    pub(crate) fn test_binding_form(
        &mut self,
        special: Special,
        span: Span,
        rest: Forms<'a>,
        tail: bool,
    ) -> Resolved<'a> {
        let (body, otherwise) = match (special, rest) {
            (Special::WhenLet | Special::WhenSome, _) => (rest.get(1..).unwrap_or_default(), None),
            (_, [_, then]) => (from_ref(then), None),
            (_, [_, then, otherwise]) => (from_ref(then), Some(otherwise)),
            _ => return Err(wrong_shape(special, span)),
        };
        let (pattern, value) = self.single_binding(special, span, rest.first())?;
        let tested = value;
        let value = self.resolve(tested, false);
        self.look_at_test(tested, value);
        let mark = self.scopes.mark();
        let slot = self.new_slot(span)?;
        let test = self.bound_test(special, value.span, slot);
        let then = self.bound_body(pattern, slot, span, body, tail)?;
        // The name is not in scope in the other branch, but its slot stays allocated until the test is over.
        self.scopes.hide(mark);
        let otherwise = otherwise.map(|form| self.branch(form, tail));
        self.scopes.release(mark);
        let clause = clause(Some(Binding::new(slot, value)), test, then);
        Ok(self.cond(span, self.slice([clause]), otherwise))
    }

    /// `(when-first [x coll] body …)`: `(seq coll)` once.
    #[inline(never)]
    pub(crate) fn when_first_form(&mut self, span: Span, rest: Forms<'a>, tail: bool) -> Resolved<'a> {
        let (pattern, value) = self.single_binding(Special::WhenFirst, span, rest.first())?;
        let collection = self.resolve(value, false);
        let value = self.internal_call(value.span, Known::Seq, &[collection])?;
        let mark = self.scopes.mark();
        let slot = self.new_slot(span)?;
        let test = self.bound_test(Special::WhenSome, span, slot);
        let (vector, zero) = (self.local(span, slot), self.literal(span, Literal::Int(0)));
        let first = self.internal_call(span, Known::Element, &[vector, zero])?;
        let mut bindings = self.list(4);
        self.bind_pattern(pattern, first, &mut bindings)?;
        let body = self.branch_body(&rest[1..], span, tail);
        let body = self.let_expr(span, bindings, body);
        self.scopes.release(mark);
        let clause = clause(Some(Binding::new(slot, value)), test, body);
        Ok(self.cond(span, self.slice([clause]), None))
    }

    #[inline(never)]
    pub(crate) fn cond_form(&mut self, span: Span, rest: Forms<'a>, tail: bool) -> Resolved<'a> {
        if rest.len() % 2 == 1 {
            let message = "cond requires even number of test/result forms";
            return Err(error(Reason::InvalidCondForm, span, message)
                .hint("The default is written as a pair: :else result."));
        }
        let mut clauses = self.list(rest.len() / 2);
        let mut otherwise = None;
        for pair in rest.chunks_exact(2).take_while(self.goes_on()) {
            if otherwise.is_some() {
                self.branch(&pair[0], false);
                self.branch(&pair[1], tail);
                continue;
            }
            if matches!(pair[0].kind, FormKind::Keyword(_) | FormKind::Bool(true)) {
                otherwise = Some(self.branch(&pair[1], tail));
                continue;
            }
            let test = match clauses.is_empty() {
                true => self.test(&pair[0]),
                false => self.branch_test(&pair[0]),
            };
            let body = self.branch(&pair[1], tail);
            clauses.push(clause(None, test, body));
        }
        Ok(match (clauses.is_empty(), otherwise) {
            (true, Some(otherwise)) => otherwise,
            (true, None) => self.nil(span),
            (false, otherwise) => self.cond(span, clauses.into_bump_slice(), otherwise),
        })
    }

    /// `(condp pred expr test result … default?)`: tests are `(pred test expr)`.
    #[inline(never)]
    pub(crate) fn condp_form(&mut self, span: Span, rest: Forms<'a>, tail: bool) -> Resolved<'a> {
        let [predicate, subject, clauses @ ..] = rest else { return Err(wrong_shape(Special::Condp, span)) };
        if clauses.is_empty() {
            return Err(wrong_shape(Special::Condp, span));
        }
        let mark = self.scopes.mark();
        let mut bindings = self.list(4);
        let predicate = match predicate.symbol() {
            Some(_) => *predicate,
            None => {
                let value = self.resolve(predicate, false);
                let slot = self.bind_hidden(value, &mut bindings)?;
                self.hidden(predicate.span, slot)
            }
        };
        let value = self.resolve(subject, false);
        let slot = self.bind_hidden(value, &mut bindings)?;
        let subject = self.hidden(subject.span, slot);
        let (mut resolved, mut rest) = (self.list(clauses.len() / 2), clauses);
        let otherwise = loop {
            match rest {
                _ if !self.meter.goes_on() => break None,
                [] => break None,
                [default] => break Some(self.branch(default, tail)),
                [test, arrow, function, more @ ..]
                    if arrow.keyword().is_some_and(|name| self.names.text(name) == ">>") =>
                {
                    resolved.push(self.condp_arrow(predicate, test, subject, function, tail)?);
                    rest = more;
                }
                [test, body, more @ ..] => {
                    let call = self.list_form(test.span, &[predicate, *test, subject]);
                    let test = as_test(self.branch(call, false));
                    let body = self.branch(body, tail);
                    resolved.push(clause(None, test, body));
                    rest = more;
                }
            }
        };
        let cond = match resolved.is_empty() {
            true => otherwise.unwrap_or_else(|| self.nil(span)),
            false => self.cond(span, resolved.into_bump_slice(), otherwise),
        };
        self.scopes.release(mark);
        Ok(self.let_expr(span, bindings, cond))
    }

    /// `test :>> function`: the function gets the value of the test.
    fn condp_arrow(
        &mut self,
        predicate: Form<'a>,
        test: &'a Form<'a>,
        subject: Form<'a>,
        function: &'a Form<'a>,
        tail: bool,
    ) -> Fallible<Clause<'a>> {
        let call = self.list_form(test.span, &[predicate, *test, subject]);
        let value = self.branch(call, false);
        let mark = self.scopes.mark();
        let slot = self.new_slot(test.span)?;
        let passed = self.hidden(test.span, slot);
        let tested = self.bound_test(Special::IfLet, test.span, slot);
        let call = self.list_form(function.span, &[*function, passed]);
        let body = self.branch(call, tail);
        self.scopes.release(mark);
        Ok(clause(Some(Binding::new(slot, value)), tested, body))
    }

    #[inline(never)]
    pub(crate) fn case_form(&mut self, span: Span, rest: Forms<'a>, tail: bool) -> Resolved<'a> {
        let Some((subject, rest)) = rest.split_first() else { return Err(wrong_shape(Special::Case, span)) };
        let subject = self.resolve(subject, false);
        let mut clauses = self.list(rest.len() / 2);
        let pairs = rest.chunks_exact(2);
        let default = pairs.remainder().first();
        for pair in pairs.take_while(self.goes_on()) {
            let constants = match pair[0].kind {
                FormKind::List(group) => {
                    let mut constants = Vec::with_capacity(group.len());
                    for form in group {
                        constants.push(self.case_constant(form)?);
                    }
                    constants
                }
                _ => vec![self.case_constant(&pair[0])?],
            };
            let body = self.branch(&pair[1], tail);
            // `()` matches nothing; its body is still checked.
            if !constants.is_empty() {
                let constants = self.slice(constants);
                clauses.push(CaseClause { constants, body, dying: Cell::default() });
            }
        }
        let otherwise = default.map(|form| self.branch(form, tail));
        let clauses = clauses.into_bump_slice();
        let case = self.arena.alloc(Case { subject, clauses, otherwise, dying: Cell::default() });
        Ok(self.expr(span, Kind::Case(case)))
    }

    fn case_constant(&mut self, form: &Form<'a>) -> Fallible<Literal> {
        let constant = match form.kind {
            FormKind::Nil => return Ok(Literal::Nil),
            FormKind::Bool(value) => return Ok(Literal::Bool(value)),
            FormKind::Int(value) => return Ok(Literal::Int(value)),
            FormKind::BigInt(digits) => Const::BigInt(digits.into()),
            FormKind::Float(value) => Const::Float(value),
            FormKind::Str(text) => Const::Str(text.into()),
            FormKind::Keyword(name) => Const::Keyword(self.tables.symbol(name, self.names.text(name))),
            FormKind::Quote(name) => Const::Symbol(self.tables.symbol(name, self.names.text(name))),
            _ => {
                let kind = form.kind_name();
                let message = format!(
                    "case constants must be keywords, strings, numbers, booleans or nil, got a {kind}"
                );
                return Err(invalid_form(form.span, message)
                    .hint("Use `cond` with (= x ...) to compare with computed values."));
            }
        };
        Ok(Literal::Row(self.tables.constant(form.span, constant)?))
    }

    #[inline(never)]
    pub(crate) fn logic_form(
        &mut self,
        special: Special,
        span: Span,
        rest: Forms<'a>,
        tail: bool,
    ) -> Resolved<'a> {
        let is_or = special == Special::Or;
        let mut items = self.list(rest.len());
        for (index, form) in rest.iter().enumerate().take_while(self.goes_on()) {
            let tail = tail && index + 1 == rest.len();
            let item = match form.symbol() {
                Some(name) if is_or => self.or_name(name, form.span)?,
                _ if index == 0 => self.resolve(form, tail),
                _ => self.branch(form, tail),
            };
            if index + 1 < rest.len() {
                self.look_at_test(form, item);
            }
            items.push(item);
        }
        Ok(match items.as_slice() {
            [] if is_or => self.nil(span),
            [] => self.literal(span, Literal::Bool(true)),
            [only] => only,
            _ => {
                let dying = self.slice((1..items.len()).map(|_| Cell::default()));
                let items = items.into_bump_slice();
                self.expr(span, Kind::Logic(self.arena.alloc(Logic { is_or, items, dying })))
            }
        })
    }

    /// A bare name in `or` counts as nil while nothing has defined it: `(or not-yet-defined 5)`.
    fn or_name(&mut self, name: Name, span: Span) -> Resolved<'a> {
        if self.is_late_global(name) {
            let global = self.global(span, name, None)?;
            return Ok(self.expr(span, Kind::GlobalOrNil(global)));
        }
        match self.is_unbound(name) {
            true => Ok(self.nil(span)),
            false => self.symbol(name, span),
        }
    }
}
