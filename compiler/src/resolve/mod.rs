//! Translates syntax trees (forms) to IR: names become slots, captures, globals and builtins; special forms become the
//! few kinds of IR expressions. All independent errors are collected.

pub(crate) mod call;
mod foreign_names;
pub(crate) mod globals;
pub(crate) mod operators;
pub(crate) mod scope;
mod shape;
pub(crate) mod suggest;
pub(crate) mod symbol;
pub(crate) mod syntax;
mod truth;
mod unknown;

use crate::diagnostic::{
    Diagnostic, Fallible, Hint, MAX_ERRORS, MAX_WARNINGS, error, invalid_form, too_many_locals,
};
use crate::externals::{Externals, ServersUsed};
use crate::form::duplicate::find_duplicate;
use crate::form::{Form, FormKind, Forms, form_text};
use crate::ir::tables::Tables;
use crate::ir::{Arity, Binding, Expr, Function, Kind, Literal, Ref, Refs, Use};
use crate::meter::{List, Meter};
use crate::names::{Name, Names};
use crate::resolve::syntax::host::Operation;
use crate::resolve::syntax::literal_call::looks_at_servers;
use bumpalo::Bump;
use globals::Globals;
use ptc_regex::PatternError;
use ptc_vm::bytecode::{Const, Known};
use ptc_vm::{Reason, Span};
use scope::{Bindable, FunctionScope, Scopes, Variable};
pub(crate) use shape::{with_advice, wrong_shape};
use std::cell::Cell;

/// The result of resolving a form.
pub(crate) type Resolved<'a> = Fallible<Ref<'a>>;

/// Names and values that a `let` binds.
pub(crate) type Bindings<'a> = List<'a, Binding<'a>>;

/// Deepest nesting of forms, including those that threading inserts. The reader allows 64.
const MAX_DEPTH: usize = 160;

/// The state of resolving one program.
pub(crate) struct Resolver<'a, 'x> {
    pub(crate) arena: &'a Bump,
    pub(crate) meter: &'x Meter<'a>,
    pub(crate) source: &'a str,
    pub(crate) names: &'x mut Names<'a>,
    pub(crate) externals: &'x Externals<'x>,
    /// The namespace of definitions; `None` for that of the user.
    pub(crate) defines: Option<&'a str>,
    /// Host operations that the text names literally, while it defines a namespace.
    pub(crate) operations: Vec<Operation<'a>>,
    /// Replaces expressions after a failure.
    nothing: Ref<'a>,
    pub(crate) tables: Tables<'x>,
    pub(crate) globals: Globals<'a>,
    pub(crate) scopes: Scopes<'a>,
    pub(crate) errors: Vec<Diagnostic>,
    /// Number of errors that are not listed.
    more_errors: usize,
    pub(crate) warnings: Vec<Diagnostic>,
    /// Unbound names in order of appearance, each with its error.
    pub(crate) unbound: Vec<(Name, Diagnostic)>,
    /// Number of unbound names that are not listed.
    more_unbound: usize,
    /// By the number of a name: it is unbound and counted.
    noted_unbound: Vec<bool>,
    /// The current form is evaluated in every run without an earlier fault.
    pub(crate) certain: bool,
    /// A `return` or `fail` may have ended the program before the current form.
    pub(crate) may_have_ended: bool,
    pub(crate) servers: ServersUsed,
    /// The program looks up servers and tools.
    pub(crate) looks_at_servers: bool,
    pub(crate) depth: usize,
}

impl<'a, 'x> Resolver<'a, 'x> {
    pub(crate) fn new(
        arena: &'a Bump,
        meter: &'x Meter<'a>,
        source: &'a str,
        names: &'x mut Names<'a>,
        externals: &'x Externals<'x>,
        forms: &[Form<'a>],
        defined: &[Name],
    ) -> Resolver<'a, 'x> {
        let globals = Globals::for_program(defined, names, externals);
        let known_names = names.len();
        let looks_at_servers = externals.catalog.is_some() && looks_at_servers(meter, forms, names);
        Resolver {
            arena,
            meter,
            source,
            names,
            externals,
            defines: None,
            operations: Vec::new(),
            nothing: arena.alloc(Expr { span: Span::default(), kind: Kind::Literal(Literal::Nil) }),
            tables: Tables::with_names(meter, known_names),
            globals,
            scopes: Scopes::new(arena, known_names),
            errors: Vec::new(),
            more_errors: 0,
            more_unbound: 0,
            noted_unbound: Vec::new(),
            warnings: Vec::new(),
            unbound: Vec::new(),
            certain: true,
            may_have_ended: false,
            servers: ServersUsed::default(),
            looks_at_servers,
            depth: 0,
        }
    }

    /// Prepares for resolving definitions of a namespace separately: all of its names are known everywhere.
    pub(crate) fn define_in(&mut self, namespace: &'a str, defined: &[Name]) {
        self.defines = Some(namespace);
        self.globals = Globals::for_namespace(defined, self.names);
    }

    /// Resolves the whole program into a function without parameters.
    pub(crate) fn program(&mut self, forms: Forms<'a>) -> &'a Function<'a> {
        let span = match forms {
            [first, .., last] => first.span.to(last.span),
            [only] => only.span,
            [] => Span::default(),
        };
        let body = self.body(forms, span, true);
        self.main(span, body)
    }

    /// A function without parameters.
    pub(crate) fn main(&mut self, span: Span, body: Ref<'a>) -> &'a Function<'a> {
        let unread = Cell::default();
        let arity = Arity { span, fixed: 0, variadic: false, parameters: "", body, has_recur: false, unread };
        let arities = self.arena.alloc_slice_fill_iter([arity]);
        self.arena.alloc(Function { name: "main", arities, captures: 0 })
    }

    /// All errors, and the number of those not listed. Unbound names come after malformed forms, which may have
    /// caused them.
    pub(crate) fn finish_errors(&mut self) -> (Vec<Diagnostic>, usize) {
        self.errors.sort_by_key(|error| error.span.start);
        let mut errors = std::mem::take(&mut self.errors);
        errors.extend(self.unbound.drain(..).map(|(_, error)| error));
        let more = self.more_errors + self.more_unbound + errors.len().saturating_sub(MAX_ERRORS);
        errors.truncate(MAX_ERRORS);
        (errors, more)
    }

    // ----- building blocks

    pub(crate) fn expr(&self, span: Span, kind: Kind<'a>) -> Ref<'a> {
        self.arena.alloc(Expr { span, kind })
    }

    pub(crate) fn literal(&self, span: Span, literal: Literal) -> Ref<'a> {
        self.expr(span, Kind::Literal(literal))
    }

    pub(crate) fn nil(&self, span: Span) -> Ref<'a> {
        self.literal(span, Literal::Nil)
    }

    pub(crate) fn slice<T>(
        &self,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    ) -> &'a [T] {
        let items = items.into_iter();
        match self.meter.reserve(items.len() * size_of::<T>()) {
            Ok(()) => self.arena.alloc_slice_fill_iter(items),
            Err(_) => &[],
        }
    }

    /// A condition for loops over parts of a text, which end when the budget is used up.
    pub(crate) fn goes_on<T>(&self) -> impl Fn(&T) -> bool + use<'a, 'x, T> {
        let meter = self.meter;
        move |_| meter.goes_on()
    }

    /// An empty list in the arena.
    pub(crate) fn list<T>(&self, room: usize) -> List<'a, T> {
        // If there is no room for them, no items will come.
        let has_room = self.meter.reserve(room * size_of::<T>()).is_ok();
        List::with_capacity_in(if has_room { room } else { 0 }, self.arena)
    }

    /// The row of a symbol that is part of a name.
    pub(crate) fn symbol_row(&mut self, text: &'a str) -> u32 {
        let name = self.names.intern(text);
        self.tables.symbol(name, text)
    }

    pub(crate) fn function(&mut self) -> &mut FunctionScope {
        self.scopes.function()
    }

    pub(crate) fn open_function(&mut self, self_name: Option<Bindable>) {
        self.scopes.open(self_name);
    }

    /// Ends the innermost function. Gives its captures, as seen from the function around it.
    pub(crate) fn close_function(&mut self, span: Span) -> Refs<'a> {
        let (arena, mut captured): (_, Refs<'a>) = (self.arena, &[]);
        self.scopes.close(|captures| {
            let read = |&variable| -> Ref<'a> { arena.alloc(Expr { span, kind: kind_of(variable) }) };
            captured = arena.alloc_slice_fill_iter(captures.iter().map(read));
        });
        captured
    }

    pub(crate) fn new_slot(&mut self, span: Span) -> Fallible<u8> {
        self.function().slot().ok_or_else(|| too_many_locals(span))
    }

    /// A name that programs cannot write, bound to a slot; as a form it reads that slot, also from inside a closure.
    pub(crate) fn hidden(&mut self, span: Span, slot: u8) -> Form<'a> {
        let name = Bindable::fresh(&mut *self.names);
        self.scopes.bind(name, slot);
        Form::new(span, FormKind::Symbol(name.name()))
    }

    /// The name of a special form that no local can hide.
    pub(crate) fn form_name(&mut self, form: &str) -> Name {
        self.names.intern(self.arena.alloc_str(&format!(" {form}")))
    }

    pub(crate) fn vector_form(&self, span: Span, items: &[Form<'a>]) -> Form<'a> {
        Form::new(span, FormKind::Vector(self.arena.alloc_slice_copy(items)))
    }

    pub(crate) fn list_form(&self, span: Span, items: &[Form<'a>]) -> &'a Form<'a> {
        let items = self.arena.alloc_slice_copy(items);
        self.arena.alloc(Form::new(span, FormKind::List(items)))
    }

    pub(crate) fn list_of(&self, span: Span, items: List<'a, Form<'a>>) -> &'a Form<'a> {
        self.arena.alloc(Form::new(span, FormKind::List(items.into_bump_slice())))
    }

    pub(crate) fn local(&mut self, span: Span, slot: u8) -> Ref<'a> {
        self.function().note_use(slot);
        self.expr(span, Kind::Local(Use { slot, last: Cell::new(false) }))
    }

    pub(crate) fn variable(&self, span: Span, variable: Variable) -> Ref<'a> {
        self.expr(span, kind_of(variable))
    }

    pub(crate) fn constant(&mut self, span: Span, constant: Const) -> Resolved<'a> {
        let row = self.tables.constant(span, constant)?;
        Ok(self.literal(span, Literal::Row(row)))
    }

    /// A call of a builtin that the program need not name.
    pub(crate) fn internal_call(&mut self, span: Span, known: Known, arguments: &[Ref<'a>]) -> Resolved<'a> {
        let arguments = self.arena.alloc_slice_copy(arguments);
        Ok(self.expr(span, Kind::Call(crate::ir::Callee::Builtin(known.id()), arguments)))
    }

    pub(crate) fn record(&mut self, failed: Diagnostic) {
        match self.has_enough_errors() {
            false => self.errors.push(failed),
            true => self.more_errors += 1,
        }
    }

    /// Further errors are only counted: suggestions for them are of no use.
    pub(crate) fn has_enough_errors(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    pub(crate) fn warn(&mut self, warning: Diagnostic) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning);
        }
    }

    /// The expression, or nil if it failed: the error is recorded and resolving continues.
    pub(crate) fn recover(&mut self, span: Span, resolved: Resolved<'a>) -> Ref<'a> {
        match resolved {
            Ok(expr) => expr,
            Err(failed) => {
                self.record(*failed);
                self.nil(span)
            }
        }
    }

    /// Resolves code that may not run: its definitions are not visible after it.
    pub(crate) fn in_branch<T>(&mut self, resolve: impl FnOnce(&mut Self) -> T) -> T {
        let (certain, visible) = (self.certain, self.globals.visible_mark());
        self.certain = false;
        let result = resolve(self);
        self.certain = certain;
        self.globals.release_visible(visible);
        result
    }

    pub(crate) fn branch(&mut self, form: &'a Form<'a>, tail: bool) -> Ref<'a> {
        self.in_branch(|this| this.resolve(form, tail))
    }

    pub(crate) fn branch_body(&mut self, forms: Forms<'a>, span: Span, tail: bool) -> Ref<'a> {
        self.in_branch(|this| this.body(forms, span, tail))
    }

    // ----- forms

    /// Resolves a form. `tail`: its value is the value of the enclosing loop or function.
    pub(crate) fn resolve(&mut self, form: &'a Form<'a>, tail: bool) -> Ref<'a> {
        if self.meter.step().is_err() {
            return self.nothing;
        }
        self.depth += 1;
        let resolved = if self.depth > MAX_DEPTH {
            let message = "nesting depth exceeds limit after threading is expanded";
            Err(error(Reason::ParseError, form.span, message).hint("Bind intermediate values with `let`."))
        } else {
            self.dispatch(form, tail)
        };
        self.depth -= 1;
        self.recover(form.span, resolved)
    }

    fn dispatch(&mut self, form: &'a Form<'a>, tail: bool) -> Resolved<'a> {
        match form.kind {
            FormKind::Nil => Ok(self.nil(form.span)),
            FormKind::Bool(value) => Ok(self.literal(form.span, Literal::Bool(value))),
            FormKind::Int(value) => Ok(self.literal(form.span, Literal::Int(value))),
            FormKind::Symbol(name) | FormKind::VarQuote(name) => self.symbol(name, form.span),
            FormKind::List(items) => self.expression(form, items, tail),
            FormKind::Thread { last, items } => self.thread(form.span, items, last, tail),
            FormKind::ShortFn(items) => self.short_function(form, items),
            FormKind::Vector(_) | FormKind::Map(_) | FormKind::Set(_) => self.collection(form),
            _ => self.atom(form),
        }
    }

    #[inline(never)]
    fn atom(&mut self, form: &Form<'a>) -> Resolved<'a> {
        let constant = match form.kind {
            _ if is_plain_constant(form) => {
                let literal = self.plain_literal(form)?;
                return Ok(self.literal(form.span, literal));
            }
            FormKind::BigInt(digits) => Const::BigInt(digits.into()),
            FormKind::Float(value) => Const::Float(value),
            FormKind::Quote(name) => Const::Symbol(self.tables.symbol(name, self.names.text(name))),
            FormKind::Regex(pattern) => {
                return self.regex(pattern, form.span);
            }
            _ => Const::Nil,
        };
        self.constant(form.span, constant)
    }

    /// A regex literal; every pattern is compiled once.
    #[cold]
    fn regex(&mut self, pattern: &str, span: Span) -> Resolved<'a> {
        if self.has_enough_errors() {
            return Err(invalid_form(span, "regex literal"));
        }
        match self.tables.pattern(span, pattern) {
            Ok(row) => Ok(self.literal(span, Literal::Row(row))),
            Err(PatternError::Stopped(diagnostic)) => Err(diagnostic.into()),
            Err(PatternError::Pattern(detail)) => {
                let detail = detail.strip_prefix("Invalid regex: ").unwrap_or(&detail);
                Err(invalid_form(span, format_args!("invalid regex literal #\"{pattern}\": {detail}"))
                    .hint(pattern_hint(detail)))
            }
        }
    }

    /// The literal of a form that [`is_plain_constant`].
    fn plain_literal(&mut self, form: &Form<'a>) -> Fallible<Literal> {
        Ok(match form.kind {
            FormKind::Bool(value) => Literal::Bool(value),
            FormKind::Int(value) => Literal::Int(value),
            FormKind::Str(text) => Literal::Row(self.tables.constant(form.span, Const::Str(text.into()))?),
            FormKind::Keyword(name) => {
                Literal::Row(self.tables.keyword(form.span, name, self.names.text(name))?)
            }
            _ => Literal::Nil,
        })
    }

    #[inline(never)]
    fn collection(&mut self, form: &'a Form<'a>) -> Resolved<'a> {
        let items = form.children();
        let duplicate = match form.kind {
            FormKind::Map(_) => find_duplicate(self.meter, items, 2).map(|key| ("key", key, "map")),
            FormKind::Set(_) => find_duplicate(self.meter, items, 1).map(|key| ("element", key, "set")),
            _ => None,
        };
        if let Some((what, key, kind)) = duplicate {
            let text = form_text(self.source, key.span);
            let message = format!("duplicate {what} {text} in {kind} literal");
            let error = Diagnostic::error(Reason::DuplicateKey, key.span, message);
            self.record(error.hint(match kind {
                "map" => "Keep one of them; (assoc m k v) or (merge a b) lets the later value win.",
                _ => "Delete it; (set coll) makes a set of a list with repetitions.",
            }));
        }
        // Constants need no expressions; one level deeper they would be refused like any form.
        if self.depth < MAX_DEPTH && items.iter().all(is_plain_constant) {
            return self.constant_collection(form, items);
        }
        let resolved = self.all(items);
        let mut rows = Vec::with_capacity(resolved.len());
        for item in resolved {
            match item.kind {
                Kind::Literal(literal) => rows.push(self.tables.literal(item.span, literal)?),
                _ => break,
            }
        }
        if rows.len() == resolved.len() {
            return self.constant(form.span, collection_of(form, rows));
        }
        let kind = match form.kind {
            FormKind::Vector(_) => Kind::Vector(resolved),
            FormKind::Map(_) => Kind::Map(resolved),
            _ => Kind::Set(resolved),
        };
        Ok(self.expr(form.span, kind))
    }

    /// A collection of forms that are [`is_plain_constant`].
    fn constant_collection(&mut self, form: &Form<'a>, items: Forms<'a>) -> Resolved<'a> {
        self.meter.work(items.len())?;
        let mut rows = Vec::with_capacity(items.len());
        for item in items {
            // Keywords and numbers, which most are, take no detour: a fiftieth of a compilation.
            rows.push(match item.kind {
                FormKind::Keyword(name) => match self.tables.known_keyword(name) {
                    Some(row) => row,
                    None => self.tables.keyword(item.span, name, self.names.text(name))?,
                },
                FormKind::Int(value) => self.tables.constant(item.span, Const::Int(value))?,
                _ => {
                    let literal = self.plain_literal(item)?;
                    self.tables.literal(item.span, literal)?
                }
            });
        }
        self.constant(form.span, collection_of(form, rows))
    }

    /// Resolves forms that are all evaluated for their value, none in tail position.
    pub(crate) fn all(&mut self, forms: Forms<'a>) -> Refs<'a> {
        let mut resolved = self.list(forms.len());
        if resolved.capacity() < forms.len() {
            return &[];
        }
        for form in forms {
            resolved.push(self.resolve(form, false));
        }
        resolved.into_bump_slice()
    }

    /// An implicit `do`.
    pub(crate) fn body(&mut self, forms: Forms<'a>, span: Span, tail: bool) -> Ref<'a> {
        match forms {
            [] => self.nil(span),
            [only] => self.resolve(only, tail),
            [before @ .., last] => {
                let mut resolved = self.list(forms.len());
                if resolved.capacity() < forms.len() {
                    return self.nothing;
                }
                for form in before {
                    resolved.push(self.resolve(form, false));
                }
                resolved.push(self.resolve(last, tail));
                self.expr(span, Kind::Do(resolved.into_bump_slice()))
            }
        }
    }

    /// A special form or a call.
    fn expression(&mut self, form: &'a Form<'a>, items: Forms<'a>, tail: bool) -> Resolved<'a> {
        let Some((head, rest)) = items.split_first() else {
            return Err(invalid_form(form.span, "Empty list is not a valid expression")
                .hint("Write [] for an empty collection."));
        };
        if let FormKind::Symbol(name) = head.kind
            && let Some(special) = self.special(name)
        {
            return self.special_form(special, form, rest, tail);
        }
        self.call(form, head, rest)
    }
}

/// An expression that reads a variable.
fn kind_of<'a>(variable: Variable) -> Kind<'a> {
    match variable {
        Variable::Local(slot) => Kind::Local(Use { slot, last: Cell::new(false) }),
        Variable::Capture(index) => Kind::Capture(index),
        Variable::SelfRef => Kind::SelfRef,
    }
}

/// What to change about a pattern, by what is wrong with it.
fn pattern_hint(detail: &str) -> &'static str {
    const HINTS: &[(&str, &str)] = &[
        (
            "Unicode property",
            "Classes are \\p{L}, \\p{Lu}, \\p{N}, \\p{P}, a script such as \\p{Greek}, and \\p{Alpha}, \\p{Alnum}, \\p{Punct} for ASCII.",
        ),
        (
            "range",
            "In [ ] a range goes from the smaller character to the larger one; a hyphen itself stands last.",
        ),
    ];
    let known = HINTS.iter().find(|(part, _)| detail.contains(part));
    known.map_or("Write a backslash before ( ) [ ] { } . * + ? | that mean themselves.", |(_, hint)| hint)
}

/// Whether a form is a common kind of constant.
fn is_plain_constant(form: &Form<'_>) -> bool {
    matches!(
        form.kind,
        FormKind::Nil | FormKind::Bool(_) | FormKind::Int(_) | FormKind::Str(_) | FormKind::Keyword(_)
    )
}

/// A form as a constant collection, given the rows of its items.
fn collection_of(form: &Form<'_>, rows: Vec<u16>) -> Const {
    match form.kind {
        FormKind::Vector(_) => Const::Vector(rows),
        FormKind::Map(_) => Const::Map(rows),
        _ => Const::Set(rows),
    }
}
