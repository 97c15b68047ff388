//! Translates function definitions to IR: `fn`, `#()`, and the function parts of `defn` and `letfn`.

use crate::diagnostic::{Done, Failed, Fallible, Hint, invalid_form, too_many_locals};
use crate::form::{Form, FormKind, Forms, walk};
use crate::ir::{Arity, Function, Kind, MAX_SLOTS};
use crate::meter::List;
use crate::names::Special;
use crate::resolve::scope::{Bindable, RecurTarget, Rest};
use crate::resolve::{Resolved, Resolver, wrong_shape};
use ptc_vm::Span;
use std::cell::Cell;
use std::fmt::Write as _;

/// Highest number of a `#()` placeholder.
pub const MAX_PLACEHOLDER: usize = 20;

/// One arity as written.
#[derive(Clone, Copy)]
struct ArityForm<'a> {
    span: Span,
    parameters: Forms<'a>,
    body: Forms<'a>,
}

impl<'a> Resolver<'a, '_> {
    #[inline(never)]
    pub(crate) fn fn_form(&mut self, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let (name, rest) = match rest {
            [form, rest @ ..] if let Some(name) = form.symbol() => {
                (Some(self.bindable(name, form.span)?), rest)
            }
            _ => (None, rest),
        };
        if rest.is_empty() {
            return Err(wrong_shape(Special::Fn, span));
        }
        let text = name.map_or("", |name| self.names.text(name.name()));
        self.fn_arities("fn", span, name, text, rest)
    }

    /// A function from `[params] body …` or from one `([params] body …)` for each arity.
    pub(crate) fn fn_arities(
        &mut self,
        form_name: &str,
        span: Span,
        self_name: Option<Bindable>,
        name: &'a str,
        rest: Forms<'a>,
    ) -> Resolved<'a> {
        let mut written = self.list(rest.len());
        match rest {
            [first, body @ ..] if first.vector().is_some() => {
                written.push(ArityForm { span, parameters: first.children(), body });
            }
            _ => {
                for form in rest {
                    match form.kind {
                        FormKind::List([Form { kind: FormKind::Vector(parameters), .. }, body @ ..]) => {
                            written.push(ArityForm { span: form.span, parameters, body });
                        }
                        _ => return Err(not_parameters(form_name, form)),
                    }
                }
            }
        }
        self.open_function(self_name);
        let mut arities = self.list(written.len());
        let mut failure = None;
        for one in &written {
            self.scopes.next_arity();
            match self.in_branch(|this| this.resolve_arity(one, &written)) {
                Ok(arity) => arities.push(arity),
                Err(failed) => failure = failure.or(Some(failed)),
            }
        }
        self.closure(span, name, arities, failure)
    }

    /// Ends the innermost function. Gives the expression that creates it.
    fn closure(
        &mut self,
        span: Span,
        name: &'a str,
        arities: List<'a, Arity<'a>>,
        failure: Option<Failed>,
    ) -> Resolved<'a> {
        let captures = self.close_function(span);
        if let Some(failed) = failure {
            return Err(failed);
        }
        check_arities(&arities, span)?;
        let arities = arities.into_bump_slice();
        let function = self.arena.alloc(Function { name, arities, captures: captures.len() as u16 });
        Ok(self.expr(span, Kind::Closure(function, captures)))
    }

    /// The fixed parameters of an arity, and its rest.
    fn split_parameters(&self, written: &ArityForm<'a>) -> Fallible<(Forms<'a>, Option<&'a Form<'a>>)> {
        let ampersand = written
            .parameters
            .iter()
            .position(|form| form.symbol().is_some_and(|name| self.names.text(name) == "&"));
        let Some(at) = ampersand else { return Ok((written.parameters, None)) };
        match &written.parameters[at + 1..] {
            [rest] => Ok((&written.parameters[..at], Some(rest))),
            _ => Err(invalid_form(written.span, "exactly one parameter must follow & in a parameter list")
                .hint("For example (fn [a & more] …).")),
        }
    }

    /// Resolves one of `all` arities.
    fn resolve_arity(&mut self, written: &ArityForm<'a>, all: &[ArityForm<'a>]) -> Fallible<Arity<'a>> {
        let (fixed, rest) = self.split_parameters(written)?;
        if fixed.len() >= MAX_SLOTS / 2 {
            return Err(too_many_locals(written.span));
        }
        let mut text = bumpalo::collections::String::new_in(self.arena);
        let mut patterns = self.list(0);
        for (form, is_rest) in fixed.iter().map(|form| (form, false)).chain(rest.map(|form| (form, true))) {
            let slot = self.new_slot(form.span)?;
            text.push_str(if text.is_empty() { "" } else { " " });
            text.push_str(if is_rest { "& " } else { "" });
            let shown = match form.symbol() {
                Some(name) => {
                    let bound = self.bindable(name, form.span)?;
                    self.scopes.bind(bound, slot);
                    if is_rest {
                        self.scopes.last_is_rest(Rest::Parameter);
                    }
                    self.names.text(name)
                }
                None => {
                    patterns.push((form, slot, is_rest));
                    "_"
                }
            };
            text.push_str(shown);
        }
        let count = fixed.len() + usize::from(rest.is_some());
        self.function().recur = Some(RecurTarget { first: 0, count: count as u8, used: false });
        let mut bindings = self.list(4);
        for (form, slot, is_rest) in patterns {
            let value = self.local(form.span, slot);
            match is_rest {
                true => self.bind_rest(form, value, &mut bindings)?,
                false => self.bind_pattern(form, value, &mut bindings)?,
            }
        }
        let body = self.body(written.body, written.span, true);
        let body = self.let_expr(written.span, bindings, body);
        let has_recur = self.function().recur.is_some_and(|target| target.used);
        // Calls without arguments for the rest are those of another arity: Clojure's rest is never nil here either.
        let has_items = !has_recur && all.iter().any(|other| other.parameters.len() == fixed.len());
        if !has_items {
            self.warn_of_rest_tests();
        }
        Ok(Arity {
            span: written.span,
            fixed: fixed.len() as u8,
            variadic: rest.is_some(),
            parameters: text.into_bump_str(),
            body,
            has_recur,
            unread: Cell::default(),
        })
    }

    /// `#( … )`. Only this function binds the placeholder names, so they capture nothing.
    #[inline(never)]
    pub(crate) fn short_function(&mut self, form: &'a Form<'a>, items: Forms<'a>) -> Resolved<'a> {
        let placeholders = self.placeholders(items)?;
        self.open_function(None);
        let arity = self.in_branch(|this| this.short_arity(form, items, &placeholders));
        let mut arities = self.list(1);
        let failure = arity.map(|arity| arities.push(arity)).err();
        self.closure(form.span, "", arities, failure)
    }

    fn short_arity(
        &mut self,
        form: &'a Form<'a>,
        items: Forms<'a>,
        placeholders: &[(Bindable, usize)],
    ) -> Fallible<Arity<'a>> {
        let highest = placeholders.iter().map(|(_, number)| *number).max().unwrap_or(0);
        let uses_rest = placeholders.iter().any(|(_, number)| *number == 0);
        for index in 1..=highest {
            let slot = self.new_slot(form.span)?;
            for (name, _) in placeholders.iter().filter(|(_, number)| *number == index) {
                self.scopes.bind(*name, slot);
            }
        }
        if uses_rest {
            let slot = self.new_slot(form.span)?;
            for (name, _) in placeholders.iter().filter(|(_, number)| *number == 0) {
                self.scopes.bind(*name, slot);
                self.scopes.last_is_rest(Rest::Parameter);
            }
        }
        let count = highest + usize::from(uses_rest);
        self.function().recur = Some(RecurTarget { first: 0, count: count as u8, used: false });
        let body = match items {
            [] => self.nil(form.span),
            // A single literal, or a lone placeholder, is the value itself.
            [only] if self.is_value_body(only) => self.resolve(only, true),
            _ => {
                let call = self.list_form(form.span, items);
                self.resolve(call, true)
            }
        };
        self.warn_of_rest_tests();
        let has_recur = self.function().recur.is_some_and(|target| target.used);
        Ok(Arity {
            span: form.span,
            fixed: highest as u8,
            variadic: uses_rest,
            parameters: self.short_parameters(highest, uses_rest),
            body,
            has_recur,
            unread: Cell::default(),
        })
    }

    /// The parameters of a short function, as they are shown.
    fn short_parameters(&self, highest: usize, uses_rest: bool) -> &'a str {
        match (highest, uses_rest) {
            (0, false) => "",
            (1, false) => "p1",
            (2, false) => "p1 p2",
            _ => {
                let mut shown = bumpalo::collections::String::new_in(self.arena);
                for index in 1..=highest {
                    let _ = write!(shown, "{}p{index}", if index > 1 { " " } else { "" });
                }
                if uses_rest {
                    shown.push_str(if highest > 0 { " & rest" } else { "& rest" });
                }
                shown.into_bump_str()
            }
        }
    }

    fn is_value_body(&self, form: &Form<'_>) -> bool {
        match form.kind {
            FormKind::Symbol(name) => crate::resolve::symbol::is_placeholder(self.names.text(name)),
            FormKind::List(_) => false,
            _ => true,
        }
    }

    /// The placeholders in the body of a short function, with their numbers (0 for the rest, `%&`).
    fn placeholders(&self, items: Forms<'a>) -> Fallible<Vec<(Bindable, usize)>> {
        let mut found = Vec::new();
        for form in walk(self.meter, items) {
            if matches!(form.kind, FormKind::ShortFn(_)) {
                return Err(invalid_form(form.span, "Nested #() anonymous functions are not allowed")
                    .hint("Write the inner one as (fn [x] ...)."));
            }
            let Some(name) = form.symbol() else { continue };
            let number = match self.names.text(name).strip_prefix('%') {
                Some("") => 1,
                Some("&") => 0,
                Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                    match digits.parse::<usize>() {
                        Ok(number) if (1..=MAX_PLACEHOLDER).contains(&number) => number,
                        _ => {
                            let message =
                                format!("placeholder %{digits} is not between %1 and %{MAX_PLACEHOLDER}");
                            return Err(
                                invalid_form(form.span, message).hint("Write (fn [a b] …) with names.")
                            );
                        }
                    }
                }
                _ => continue,
            };
            found.push((self.bindable(name, form.span)?, number));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

fn not_parameters(form_name: &str, form: &Form<'_>) -> Failed {
    invalid_form(form.span, format!("{form_name} parameters must be a vector, got a {}", form.kind_name()))
        .hint(format!(
            "expected {}",
            Special::lookup(form_name).map_or("(fn [params] body ...)", Special::usage)
        ))
}

/// Arities of one function must differ, and a variadic one must come after all that it could shadow.
fn check_arities(arities: &[Arity<'_>], span: Span) -> Done {
    let variadic = arities.iter().filter(|arity| arity.variadic).count();
    if variadic > 1 {
        return Err(invalid_form(span, "only one arity of a function may be variadic")
            .hint("Only the arity with most parameters ends in & rest."));
    }
    for (index, arity) in arities.iter().enumerate() {
        for other in &arities[index + 1..] {
            let clash = match (arity.variadic, other.variadic) {
                (true, _) => other.fixed > arity.fixed,
                (_, true) => arity.fixed > other.fixed,
                _ => arity.fixed == other.fixed,
            };
            if clash {
                let message = "two arities of the function accept the same arguments";
                return Err(invalid_form(other.span, message)
                    .hint("Give each arity another number of parameters; choose by value with `cond`."));
            }
        }
    }
    Ok(())
}
