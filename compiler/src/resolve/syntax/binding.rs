//! Translates the forms that bind local names to IR: `let`, and `loop` with its `recur`.

use crate::diagnostic::{Done, Fallible, Hint, error, invalid_form};
use crate::form::{Form, Forms, walk};
use crate::ir::effects::{add_reads, is_inert};
use crate::ir::{Binding, Kind, Loop, RecurArg, Ref, Slots};
use crate::names::Special;
use crate::resolve::scope::RecurTarget;
use crate::resolve::{Bindings, Resolved, Resolver, wrong_shape};
use ptc_vm::{Reason, Span};
use std::cell::Cell;

/// The pairs of a binding vector.
fn pairs<'a>(special: Special, name: &str, span: Span, rest: Forms<'a>) -> Fallible<(Forms<'a>, Forms<'a>)> {
    let Some((bindings, body)) = rest.split_first() else { return Err(wrong_shape(special, span)) };
    let Some(items) = bindings.vector() else {
        return Err(invalid_form(bindings.span, format!("{name} bindings must be a vector"))
            .hint(format!("Write ({name} [x 1] ...).")));
    };
    if items.len() % 2 == 1 {
        return Err(invalid_form(bindings.span, format!("{name} bindings require even number of forms"))
            .hint(format!(
                "Every name needs a value: ({name} [a 1 b 2] …). Nothing but pairs stands in the vector."
            )));
    }
    Ok((items, body))
}

impl<'a> Resolver<'a, '_> {
    #[inline(never)]
    pub(crate) fn let_form(&mut self, span: Span, rest: Forms<'a>, tail: bool) -> Resolved<'a> {
        let (items, body) = pairs(Special::Let, "let", span, rest)?;
        let mark = self.scopes.mark();
        let mut bindings = self.list(items.len() / 2);
        let bound = self.let_bindings(items, &mut bindings);
        let body = self.body(body, span, tail);
        self.scopes.release(mark);
        bound?;
        Ok(self.let_expr(span, bindings, body))
    }

    /// Binds one pair after the other; later values see earlier names. Continues after an error, so that a bad
    /// pattern does not make later names unbound.
    pub(crate) fn let_bindings(&mut self, items: Forms<'a>, bindings: &mut Bindings<'a>) -> Done {
        let mut first_error = Ok(());
        for pair in items.chunks_exact(2).take_while(self.goes_on()) {
            let value = self.resolve(&pair[1], false);
            let bound = self.bind_pattern(&pair[0], value, bindings);
            if bound.is_ok() && pair[0].symbol().is_some() {
                self.note_matches(value);
            }
            if bound.is_err() {
                self.bind_anyway(&pair[0]);
            }
            first_error = first_error.and(bound);
        }
        first_error
    }

    /// Binds every name in a refused pattern, so that its uses cause no further errors.
    fn bind_anyway(&mut self, pattern: &'a Form<'a>) {
        for form in walk(self.meter, std::slice::from_ref(pattern)) {
            if let Some(name) = form.symbol()
                && let Ok(name) = self.bindable(name, form.span)
                && let Some(slot) = self.scopes.function().slot()
            {
                self.scopes.bind(name, slot);
            }
        }
    }

    pub(crate) fn let_expr(&self, span: Span, bindings: Bindings<'a>, body: Ref<'a>) -> Ref<'a> {
        if bindings.is_empty() {
            return body;
        }
        self.expr(span, Kind::Let(bindings.into_bump_slice(), body))
    }

    #[inline(never)]
    pub(crate) fn loop_form(&mut self, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let (items, body) = pairs(Special::Loop, "loop", span, rest)?;
        let count = items.len() / 2;
        let mark = self.scopes.mark();
        // Destructured variables: the first values are bound and destructured outside, because later initial values
        // may use the parts; the body destructures each round's values again.
        let simple = items.iter().step_by(2).all(|pattern| pattern.symbol().is_some());
        let mut outer = self.list(0);
        let mut wholes = Vec::new();
        if !simple {
            for pair in items.chunks_exact(2) {
                let value = self.resolve(&pair[1], false);
                let slot = self.bind_hidden(value, &mut outer)?;
                wholes.push(slot);
                let whole = self.local(pair[0].span, slot);
                self.bind_pattern(&pair[0], whole, &mut outer)?;
            }
        }
        let mut variables = self.list(count);
        let mut inner = self.list(0);
        for (index, pair) in items.chunks_exact(2).enumerate() {
            let value = match wholes.get(index) {
                Some(&slot) => self.local(pair[0].span, slot),
                None => self.resolve(&pair[1], false),
            };
            let slot = self.bind_hidden(value, &mut variables)?;
            if let (true, Some(name)) = (simple, pair[0].symbol()) {
                let name = self.bindable(name, pair[0].span)?;
                self.scopes.bind(name, slot);
            }
        }
        let first = variables.first().map_or(0, |variable: &Binding<'_>| variable.slot);
        let target = RecurTarget { first, count: count as u8, used: false };
        let outer_target = self.function().recur.replace(target);
        self.function().enter_loop(count);
        let mut bound = Ok(());
        if !simple {
            for (pair, variable) in items.chunks_exact(2).zip(&variables) {
                let whole = self.local(pair[0].span, variable.slot);
                bound = bound.and(self.bind_pattern(&pair[0], whole, &mut inner));
            }
        }
        let body = self.body(body, span, true);
        let kept = self.function().leave_loop();
        let used = self.function().recur.is_some_and(|target| target.used);
        self.function().recur = outer_target;
        self.scopes.release(mark);
        bound?;
        let body = self.let_expr(span, inner, body);
        let looped = match used {
            false => self.let_expr(span, variables, body),
            true => {
                let bindings = variables.into_bump_slice();
                let (kept, unread) = (Cell::new(kept), Cell::default());
                self.expr(span, Kind::Loop(self.arena.alloc(Loop { bindings, body, kept, unread })))
            }
        };
        Ok(self.let_expr(span, outer, looped))
    }

    #[inline(never)]
    pub(crate) fn recur_form(&mut self, span: Span, rest: Forms<'a>, tail: bool) -> Resolved<'a> {
        let target = match self.function().recur.as_mut() {
            Some(target) if tail => {
                target.used = true;
                *target
            }
            _ => {
                return Err(invalid_form(span, "recur must be in tail position")
                    .hint("It jumps back to the enclosing loop or fn; nothing may use its value."));
            }
        };
        if usize::from(target.count) != rest.len() {
            let message = format!("recur expected {} argument(s), got {}", target.count, rest.len());
            return Err(error(Reason::ArityMismatch, span, message)
                .hint("Give one value for each name of the loop (or parameter), also for those that stay."));
        }
        let values = self.all(rest);
        if self.function().is_outside_loops()
            && let ([.., form], [.., value]) = (rest, values)
            && !self.is_list(form, value)
        {
            self.function().rest_may_be_nil = true;
        }
        let mut arguments = self.list(values.len());
        for (index, &value) in values.iter().enumerate() {
            arguments.push(RecurArg { slot: target.first + index as u8, value, direct: Cell::new(false) });
        }
        if arguments.iter().all(|argument| is_inert(argument.value, 4)) {
            order_arguments(&mut arguments);
        }
        Ok(self.expr(span, Kind::Recur(arguments.into_bump_slice())))
    }
}

/// Moves arguments to the front if no other argument needs the old value of their variable: in
/// `(recur (inc i) (+ acc i))` the sum comes first, so that both go directly into their variables. Only for arguments
/// without effects.
fn order_arguments(arguments: &mut [RecurArg<'_>]) {
    const MOST: usize = 16;
    if arguments.len() > MOST {
        return;
    }
    let mut reads = [Slots::EMPTY; MOST];
    for (argument, reads) in arguments.iter().zip(&mut reads) {
        add_reads(argument.value, reads);
    }
    for at in 0..arguments.len() {
        let is_needed = |index: usize| {
            let others = (at..arguments.len()).filter(|&other| other != index);
            others.map(|other| reads[other]).any(|reads| reads.has(arguments[index].slot))
        };
        if let Some(free) = (at..arguments.len()).find(|&index| !is_needed(index)) {
            arguments[at..=free].rotate_right(1);
            reads[at..=free].rotate_right(1);
        }
    }
}
