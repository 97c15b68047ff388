//! Translates the special forms (`let`, `if`, `fn` and others) to IR, one module for each family.

pub(crate) mod binding;
pub(crate) mod conditional;
pub(crate) mod definition;
pub(crate) mod function;
pub(crate) mod host;
pub(crate) mod iteration;
pub(crate) mod letfn;
pub(crate) mod literal_call;
pub(crate) mod pattern;
pub(crate) mod quote;
pub(crate) mod threading;

use super::{Resolved, Resolver};
use crate::diagnostic::{Hint, invalid_form};
use crate::form::{Form, Forms};
use crate::names::{Name, Special};

impl<'a> Resolver<'a, '_> {
    /// The special form that a name in call position means here.
    pub(crate) fn special(&mut self, name: Name) -> Option<Special> {
        let special = self.names.special(name)?;
        if special.can_be_shadowed() && self.scopes.is_bound(name) {
            return None;
        }
        Some(special)
    }

    pub(super) fn special_form(
        &mut self,
        special: Special,
        form: &'a Form<'a>,
        rest: Forms<'a>,
        tail: bool,
    ) -> Resolved<'a> {
        let span = form.span;
        match special {
            Special::Let => self.let_form(span, rest, tail),
            Special::Loop => self.loop_form(span, rest),
            Special::Recur => self.recur_form(span, rest, tail),
            Special::Do => Ok(self.body(rest, span, tail)),
            Special::Comment => Ok(self.nil(span)),
            Special::Quote => self.quote_form(span, rest),
            Special::Fn => self.fn_form(span, rest),
            Special::Def | Special::DefOnce => self.def_form(special, span, rest),
            Special::Defn | Special::DefnPrivate => self.defn_form(special, span, rest),
            Special::If | Special::IfNot => self.if_form(special, span, rest, tail),
            Special::When | Special::WhenNot => self.when_form(special, span, rest, tail),
            Special::IfLet | Special::IfSome | Special::WhenLet | Special::WhenSome => {
                self.test_binding_form(special, span, rest, tail)
            }
            Special::WhenFirst => self.when_first_form(span, rest, tail),
            Special::Cond => self.cond_form(span, rest, tail),
            Special::Case => self.case_form(span, rest, tail),
            Special::Condp => self.condp_form(span, rest, tail),
            Special::And | Special::Or => self.logic_form(special, span, rest, tail),
            Special::ThreadFirst => self.thread(span, rest, false, tail),
            Special::ThreadLast => self.thread(span, rest, true, tail),
            Special::ThreadAs => self.thread_as(span, rest, tail),
            Special::CondFirst | Special::CondLast => self.thread_cond(special, span, rest),
            Special::SomeFirst | Special::SomeLast => self.thread_some(special, span, rest),
            Special::For | Special::Doseq => self.iteration_form(special, span, rest),
            Special::Dotimes => self.dotimes_form(span, rest),
            Special::Doto => self.doto_form(span, rest),
            Special::Letfn => self.letfn_form(span, rest, tail),
            Special::Task => self.task_form(span, rest),
            Special::StepDone | Special::TaskReset => self.journal_form(special, span, rest),
            Special::Return | Special::Fail => self.exit_form(special, span, rest),
            Special::Dot => {
                Err(invalid_form(span, "(. obj method) syntax is not supported. Use (.method obj) instead.")
                    .hint("For example (.toUpperCase s), or the function itself: (str/upper-case s)."))
            }
        }
    }
}
