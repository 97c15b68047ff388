//! Translates `letfn` to IR: local functions that can call each other, in any order.
//!
//! Values have no cycles, so two functions that need each other cannot hold each other. They are created by makers: a
//! maker gets all makers of the group and creates its function, which creates the others anew where it needs them.

use crate::diagnostic::Done;
use crate::form::{Form, FormKind, Forms, walk};
use crate::ir::MAX_SLOTS;
use crate::meter::Meter;
use crate::names::{Name, Special};
use crate::resolve::scope::Bindable;
use crate::resolve::{Bindings, Resolved, Resolver, wrong_shape};
use ptc_vm::Span;
use std::collections::{HashMap, HashSet};

/// The numbers of the names that occur as symbols in the forms.
fn mentioned(meter: &Meter<'_>, forms: &[Form<'_>], numbers: &HashMap<Name, usize>) -> HashSet<usize> {
    walk(meter, forms).filter_map(|form| numbers.get(&form.symbol()?)).copied().collect()
}

/// One function of a `letfn` as written.
struct FunctionForm<'a> {
    name: Bindable,
    form: &'a Form<'a>,
    /// The part after the name.
    rest: Forms<'a>,
}

impl<'a> Resolver<'a, '_> {
    /// `(letfn [(name [params] body …) …] body …)`.
    #[inline(never)]
    pub(crate) fn letfn_form(&mut self, span: Span, rest: Forms<'a>, tail: bool) -> Resolved<'a> {
        let Some(([written], body)) = rest.split_at_checked(1) else {
            return Err(wrong_shape(Special::Letfn, span));
        };
        let Some(forms) = written.vector() else { return Err(wrong_shape(Special::Letfn, span)) };
        let mut functions = Vec::with_capacity(forms.len());
        for form in forms {
            let FormKind::List([head, rest @ ..]) = form.kind else {
                return Err(wrong_shape(Special::Letfn, form.span));
            };
            let (Some(name), false) = (head.symbol(), rest.is_empty()) else {
                return Err(wrong_shape(Special::Letfn, form.span));
            };
            let name = self.bindable(name, head.span)?;
            functions.push(FunctionForm { name, form, rest });
        }
        if functions.len() > MAX_SLOTS / 2 {
            return Err(crate::diagnostic::too_many_locals(span));
        }
        let mark = self.scopes.mark();
        let mut bindings = self.list(functions.len());
        let bound = self.letfn_functions(functions, &mut bindings);
        let body = self.body(body, span, tail);
        self.scopes.release(mark);
        bound?;
        Ok(self.let_expr(span, bindings, body))
    }

    /// Binds the functions: each after those it mentions, while there is such an order; the rest as a group.
    fn letfn_functions(&mut self, functions: Vec<FunctionForm<'a>>, bindings: &mut Bindings<'a>) -> Done {
        let numbers: HashMap<Name, usize> =
            functions.iter().enumerate().map(|(number, function)| (function.name.name(), number)).collect();
        let needs: Vec<HashSet<usize>> =
            functions.iter().map(|function| mentioned(self.meter, function.rest, &numbers)).collect();
        let mut left: Vec<(usize, FunctionForm<'a>)> = functions.into_iter().enumerate().collect();
        let mut bound = Ok(());
        let is_ready = |left: &[(usize, FunctionForm<'a>)], one: usize| {
            left.iter().all(|(other, _)| *other == one || !needs[one].contains(other))
        };
        while let Some(at) = left.iter().position(|(number, _)| is_ready(&left, *number)) {
            let (_, function) = left.remove(at);
            bound = bound.and(self.letfn_function(&function, bindings));
        }
        let group: Vec<FunctionForm<'a>> = left.into_iter().map(|(_, function)| function).collect();
        bound.and(self.letfn_group(&group, bindings))
    }

    fn letfn_function(&mut self, function: &FunctionForm<'a>, bindings: &mut Bindings<'a>) -> Done {
        let (name, span) = (function.name, function.form.span);
        let text = self.names.text(name.name());
        let closure = self.fn_arities("letfn", span, Some(name), text, function.rest)?;
        self.bind_name(name, closure, bindings).map(|_| ())
    }

    /// Binds functions that need each other.
    fn letfn_group(&mut self, group: &[FunctionForm<'a>], bindings: &mut Bindings<'a>) -> Done {
        let makers: Vec<Bindable> = group.iter().map(|_| Bindable::fresh(self.names)).collect();
        let numbers: HashMap<Name, usize> =
            group.iter().enumerate().map(|(number, function)| (function.name.name(), number)).collect();
        for (number, function) in group.iter().enumerate() {
            let maker = self.maker(function, number, group, &makers, &numbers);
            let FormKind::List([_, rest @ ..]) = maker.kind else { continue };
            let closure = self.fn_form(function.form.span, rest)?;
            self.bind_name(makers[number], closure, bindings)?;
        }
        for (number, function) in group.iter().enumerate() {
            let made = self.made(function.form.span, number, &makers);
            let made = self.resolve(self.arena.alloc(made), false);
            self.bind_name(function.name, made, bindings)?;
        }
        Ok(())
    }

    /// `(fn [makers …] (fn name arities …))`.
    fn maker(
        &mut self,
        function: &FunctionForm<'a>,
        number: usize,
        group: &[FunctionForm<'a>],
        makers: &[Bindable],
        numbers: &HashMap<Name, usize>,
    ) -> Form<'a> {
        let span = function.form.span;
        let symbol = |name: Bindable| Form::new(span, FormKind::Symbol(name.name()));
        let single = function.rest.first().is_some_and(|first| first.vector().is_some());
        let arities: Vec<&[Form<'a>]> = match single {
            true => vec![function.rest],
            false => function.rest.iter().map(|arity| arity.children()).collect(),
        };
        let head = Form::new(span, FormKind::Symbol(self.form_name("fn")));
        let mut inner = vec![head, symbol(function.name)];
        for (at, arity) in arities.iter().enumerate() {
            let Some((parameters, body)) = arity.split_first() else {
                // Not an arity; resolving it reports that.
                inner.extend(function.rest.get(at).copied());
                continue;
            };
            let hidden = mentioned(self.meter, std::slice::from_ref(parameters), numbers);
            let mut needed: Vec<usize> = mentioned(self.meter, body, numbers).into_iter().collect();
            needed.retain(|other| *other != number && !hidden.contains(other));
            needed.sort_unstable();
            let mut pairs = Vec::with_capacity(needed.len() * 2);
            for other in needed {
                pairs.push(symbol(group[other].name));
                pairs.push(self.made(span, other, makers));
            }
            let head = Form::new(span, FormKind::Symbol(self.form_name("let")));
            let mut let_items = vec![head, self.vector_form(span, &pairs)];
            let_items.extend_from_slice(body);
            let body = *self.list_form(span, &let_items);
            match single {
                true => inner.extend([*parameters, body]),
                false => inner.push(*self.list_form(span, &[*parameters, body])),
            }
        }
        let inner = *self.list_form(span, &inner);
        let parameters: Vec<_> = makers.iter().map(|&maker| symbol(maker)).collect();
        let parameters = self.vector_form(span, &parameters);
        *self.list_form(span, &[head, parameters, inner])
    }

    /// `(maker makers …)`: creates the function of this number.
    fn made(&mut self, span: Span, number: usize, makers: &[Bindable]) -> Form<'a> {
        let symbol = |name: Bindable| Form::new(span, FormKind::Symbol(name.name()));
        let mut call = vec![symbol(makers[number])];
        call.extend(makers.iter().map(|&maker| symbol(maker)));
        *self.list_form(span, &call)
    }
}
