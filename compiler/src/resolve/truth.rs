//! Warns where a condition tests whether a list is there that is always there: a rest (`& xs`) and the matches of
//! `re-seq` are `[]` without items, which is true. Clojure gives nil for both.

use super::Resolver;
use super::scope::Rest;
use crate::diagnostic::Diagnostic;
use crate::form::{Form, FormKind, Forms, form_text};
use crate::ir::{Callee, Kind, Ref, Test, as_test};
use ptc_vm::bytecode::Known;
use ptc_vm::{Reason, Span};

impl<'a> Resolver<'a, '_> {
    /// Resolves a form as a condition.
    pub(crate) fn test(&mut self, form: &'a Form<'a>) -> Test<'a> {
        let value = self.resolve(form, false);
        self.look_at_test(form, value);
        as_test(value)
    }

    /// Resolves a form as a condition that may not be reached.
    pub(crate) fn branch_test(&mut self, form: &'a Form<'a>) -> Test<'a> {
        let value = self.branch(form, false);
        self.look_at_test(form, value);
        as_test(value)
    }

    /// Warns if a tested form is always true.
    pub(crate) fn look_at_test(&mut self, form: &Form<'a>, value: Ref<'a>) {
        match (form.kind, &value.kind) {
            (FormKind::Symbol(name), _) => match self.scopes.rest(name) {
                None => {}
                Some((Rest::Part, _)) => self.warn_always_true(form.span),
                Some((Rest::Parameter, function)) => self.scopes.note_rest_test(function, form.span),
            },
            (FormKind::List([head, .., last]), Kind::Logic(logic)) if self.is_logic(head) => {
                // The operands before the last have been looked at.
                if let Some(value) = logic.items.last() {
                    self.look_at_test(last, value);
                }
            }
            _ if is_matches(value) => self.warn_always_true(form.span),
            _ => {}
        }
    }

    fn is_logic(&self, head: &Form<'a>) -> bool {
        head.symbol().is_some_and(|name| matches!(self.names.text(name), "and" | "or"))
    }

    /// Warns if `not`, `nil?` or `some?` asks whether something is there that always is.
    pub(crate) fn look_at_operator(&mut self, known: Known, forms: Forms<'a>, values: &[Ref<'a>]) {
        if let (Known::Not | Known::IsNil | Known::IsSome, [form], [value]) = (known, forms, values) {
            self.look_at_test(form, value);
        }
    }

    /// Notes that the name bound last is never nil, if this is its value.
    pub(crate) fn note_matches(&mut self, value: Ref<'a>) {
        if is_matches(value) {
            self.scopes.last_is_rest(Rest::Part);
        }
    }

    /// Whether a value is a list, never nil.
    pub(crate) fn is_list(&self, form: &Form<'a>, value: Ref<'a>) -> bool {
        match (form.kind, &value.kind) {
            (FormKind::Symbol(name), _) => self.scopes.rest(name).is_some(),
            (_, Kind::Vector(_)) => true,
            (_, Kind::Call(Callee::Builtin(builtin), _)) => *builtin == Known::Rest.id(),
            _ => false,
        }
    }

    /// Warns of the tests of a rest parameter, now that it is known whether `recur` may give it another value.
    pub(crate) fn warn_of_rest_tests(&mut self) {
        let function = self.function();
        let tests = std::mem::take(&mut function.rest_tests);
        if !function.rest_may_be_nil {
            tests.into_iter().for_each(|span| self.warn_always_true(span));
        }
    }

    #[cold]
    #[inline(never)]
    fn warn_always_true(&mut self, span: Span) {
        let text = form_text(self.source, span);
        let message = format!("{text} is never nil: without items it is [], which is true");
        let warning = Diagnostic::warning(Reason::AlwaysTrue, span, message);
        self.warn(warning.hint(format!("Write (seq {text}), which is nil without items.")));
    }
}

/// Whether a value is the list of matches of `re-seq`.
fn is_matches(value: Ref<'_>) -> bool {
    matches!(&value.kind, Kind::Call(Callee::Builtin(builtin), _) if *builtin == Known::Matches.id())
}
