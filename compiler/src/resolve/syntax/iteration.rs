//! Translates the iteration forms `for`, `doseq` and `dotimes` to IR.

use crate::diagnostic::{Done, Fallible, Hint, error, invalid_form};
use crate::form::{Form, FormKind, Forms, form_text};
use crate::ir::{Each, EachStep, Kind, Ref};
use crate::names::Special;
use crate::resolve::suggest::nearest;
use crate::resolve::{Bindings, Resolved, Resolver, with_advice, wrong_shape};
use ptc_vm::bytecode::Known;
use ptc_vm::{Reason, Span};
use std::cell::Cell;

/// Most collections in one form. Each level needs registers, and native stack during compilation.
const MAX_LEVELS: usize = 16;

/// A whole `for`, `doseq` or `dotimes`.
#[derive(Clone, Copy)]
struct Iteration<'a> {
    special: Special,
    span: Span,
    body: Forms<'a>,
}

/// The expansion of `:while` over a collection that may be endless.
struct WhileItems<'a> {
    bindings: Bindings<'a>,
    /// Reads whether the collection was endless.
    flag: Form<'a>,
    or: Form<'a>,
    items: Ref<'a>,
}

impl<'a> Resolver<'a, '_> {
    #[inline(never)]
    pub(crate) fn iteration_form(&mut self, special: Special, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let (items, body) = match rest {
            [bindings, body @ ..] if bindings.vector().is_some() => (bindings.children(), body),
            _ => return Err(wrong_shape(special, span)),
        };
        if special == Special::For && body.is_empty() {
            return Err(wrong_shape(special, span));
        }
        if items.is_empty() {
            let message = format!("{} needs at least one binding", special.name());
            return Err(with_advice(invalid_form(span, message), special));
        }
        if items.len() % 2 == 1 {
            let message = format!("{} bindings require even number of forms", special.name());
            return Err(with_advice(invalid_form(span, message), special));
        }
        let mark = self.scopes.mark();
        let recur = self.function().recur.take();
        let level = self.level(Iteration { special, span, body }, items, 1);
        self.function().recur = recur;
        self.scopes.release(mark);
        let level = level?;
        Ok(match special {
            Special::For => self.expr(span, Kind::Collect(level)),
            _ => level,
        })
    }

    fn level(&mut self, whole: Iteration<'a>, items: Forms<'a>, number: usize) -> Resolved<'a> {
        let Iteration { special, span, .. } = whole;
        let [pattern, collection, rest @ ..] = items else { return Err(wrong_shape(special, span)) };
        if number > MAX_LEVELS {
            let message = format!("{} has more than {MAX_LEVELS} collections; split it", special.name());
            return Err(error(Reason::CompileMemoryExceeded, span, message));
        }
        if let Some(modifier) = pattern.keyword() {
            let text = self.names.text(modifier);
            let message = format!("{} :{text} must follow a binding", special.name());
            return Err(with_advice(invalid_form(pattern.span, message), special));
        }
        self.check_collection(special, pattern, collection)?;
        let collection = match number {
            1 => self.resolve(collection, false),
            _ => self.branch(collection, false),
        };
        match rest {
            [keyword, test, more @ ..] if self.makes_endless_sequences() && self.is_while(keyword) => {
                let bounded = self.while_items(span, pattern, collection, test)?;
                let test = self.list_form(test.span, &[bounded.or, bounded.flag, *test]);
                let rest = self.arena.alloc_slice_copy(&[&[*keyword, *test], more].concat());
                let each = self.over(whole, pattern, bounded.items, rest, number)?;
                Ok(self.let_expr(span, bounded.bindings, each))
            }
            _ => self.over(whole, pattern, collection, rest, number),
        }
    }

    fn is_while(&self, form: &Form<'a>) -> bool {
        form.keyword().is_some_and(|keyword| self.names.text(keyword) == "while")
    }

    /// `x coll :while test` over a collection that may be endless: an endless one is cut where the test first fails,
    /// and the test is not repeated; any other stays unchanged.
    fn while_items(
        &mut self,
        span: Span,
        pattern: &'a Form<'a>,
        collection: Ref<'a>,
        test: &'a Form<'a>,
    ) -> Fallible<WhileItems<'a>> {
        let mut bindings = self.list(4);
        let source = self.bind_hidden(collection, &mut bindings)?;
        let asked = self.local(span, source);
        let is_endless = self.internal_call(span, Known::IsEndless, &[asked])?;
        let flag = self.bind_hidden(is_endless, &mut bindings)?;
        let flag = self.hidden(span, flag);
        let parameters = self.vector_form(pattern.span, &[*pattern]);
        let function = self.arena.alloc_slice_copy(&[parameters, *test]);
        let function = self.fn_form(test.span, function)?;
        let source = self.local(span, source);
        let items = self.internal_call(collection.span, Known::WhileItems, &[function, source])?;
        let or = Form::new(span, FormKind::Symbol(self.form_name("or")));
        Ok(WhileItems { bindings, flag, or, items })
    }

    /// `(dotimes [i n] body …)`: `doseq` over the first n integers.
    #[inline(never)]
    pub(crate) fn dotimes_form(&mut self, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let [Form { kind: FormKind::Vector([pattern, count]), .. }, body @ ..] = rest else {
            return Err(wrong_shape(Special::Dotimes, span));
        };
        if pattern.symbol().is_none() {
            return Err(wrong_shape(Special::Dotimes, span));
        }
        let whole = Iteration { special: Special::Doseq, span, body };
        let mark = self.scopes.mark();
        let recur = self.function().recur.take();
        let count = self.resolve(count, false);
        let each = self
            .internal_call(span, Known::Times, &[count])
            .and_then(|numbers| self.over(whole, pattern, numbers, &[], 1));
        self.function().recur = recur;
        self.scopes.release(mark);
        each
    }

    /// Iteration over one resolved collection.
    fn over(
        &mut self,
        whole: Iteration<'a>,
        pattern: &'a Form<'a>,
        collection: Ref<'a>,
        rest: Forms<'a>,
        number: usize,
    ) -> Resolved<'a> {
        let slot = self.new_slot(whole.span)?;
        self.function().enter_loop(1);
        let body = self.in_branch(|this| this.level_body(whole, pattern, slot, rest, number));
        let kept = Cell::new(self.function().leave_loop());
        let (steps, body) = body?;
        let (unread, dying) = (Cell::default(), Cell::default());
        let each = self.arena.alloc(Each { collection, slot, steps, body, kept, unread, dying });
        Ok(self.expr(whole.span, Kind::Each(each)))
    }

    fn level_body(
        &mut self,
        whole: Iteration<'a>,
        pattern: &'a Form<'a>,
        slot: u8,
        items: Forms<'a>,
        number: usize,
    ) -> Fallible<(&'a [EachStep<'a>], Ref<'a>)> {
        let Iteration { special, span, body } = whole;
        let mut steps = Vec::new();
        match pattern.symbol() {
            Some(name) => {
                let name = self.bindable(name, pattern.span)?;
                self.scopes.bind(name, slot);
            }
            None => {
                let element = self.local(pattern.span, slot);
                let mut bindings = self.list(4);
                self.bind_pattern(pattern, element, &mut bindings)?;
                push_bindings(bindings, &mut steps);
            }
        }
        let mut rest = items;
        while let [modifier, value, more @ ..] = rest
            && let Some(keyword) = modifier.keyword()
        {
            rest = more;
            match self.names.text(keyword) {
                "when" => steps.push(EachStep::When(self.test(value), Cell::default())),
                "while" => steps.push(EachStep::While(self.test(value), Cell::default())),
                "let" => match value.vector() {
                    Some(pairs) if pairs.len() % 2 == 0 => {
                        let mut bindings = self.list(4);
                        self.let_bindings(pairs, &mut bindings)?;
                        push_bindings(bindings, &mut steps);
                    }
                    _ => {
                        let message = format!("{} :let needs a vector of pairs", special.name());
                        return Err(invalid_form(value.span, message)
                            .hint("For example (for [x coll :let [y (inc x)]] y)."));
                    }
                },
                other => {
                    let message = format!("unknown {} modifier :{other}", special.name());
                    let near = nearest(other, &["when", "while", "let"]);
                    return Err(invalid_form(modifier.span, message).hint(match near {
                        Some(near) => format!("Did you mean `:{near}`?"),
                        None => "Known are :when, :while and :let.".to_owned(),
                    }));
                }
            }
        }
        let body = match (rest.is_empty(), special) {
            (false, _) => self.level(whole, rest, number + 1)?,
            (true, Special::For) => {
                let value = self.body(body, span, false);
                self.expr(value.span, Kind::Emit(value))
            }
            (true, _) => self.body(body, span, false),
        };
        Ok((self.slice(steps), body))
    }

    fn check_collection(&self, special: Special, pattern: &Form<'a>, form: &Form<'a>) -> Done {
        let is_collection = !matches!(
            form.kind,
            FormKind::Int(_)
                | FormKind::BigInt(_)
                | FormKind::Float(_)
                | FormKind::Keyword(_)
                | FormKind::Bool(_)
        );
        if is_collection {
            return Ok(());
        }
        let text = |form: &Form<'_>| form_text(self.source, form.span);
        let (name, kind, pattern, got) = (special.name(), form.kind_name(), text(pattern), text(form));
        let message = format!("{name} binding '{pattern}' expected a collection, got: {got} ({kind})");
        Err(error(Reason::InvalidArity, form.span, message).hint(match form.kind {
            FormKind::Int(_) | FormKind::BigInt(_) | FormKind::Float(_) => {
                format!("Write (range {got}) for the numbers below it.")
            }
            _ => "Give a collection, as in (for [x (:items m)] x).".to_owned(),
        }))
    }
}

fn push_bindings<'a>(bindings: Bindings<'a>, steps: &mut Vec<EachStep<'a>>) {
    steps.extend(bindings.into_iter().map(EachStep::Bind));
}
