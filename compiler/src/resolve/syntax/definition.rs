//! Translates `def`, `defonce` and `defn` to IR, and refuses names that a program cannot define.

use crate::diagnostic::{Fallible, Hint, error, invalid_form};
use crate::form::{Form, FormKind, Forms, form_text};
use crate::ir::{Kind, Ref};
use crate::names::{Name, Special, split_qualified};
use crate::resolve::symbol::HISTORY;
use crate::resolve::{Resolved, Resolver, with_advice, wrong_shape};
use ptc_vm::bytecode::Const;
use ptc_vm::{Reason, Span};
use std::cell::Cell;

impl<'a> Resolver<'a, '_> {
    #[inline(never)]
    pub(crate) fn def_form(&mut self, special: Special, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let (name, value) = match rest {
            [name, value] => (name, value),
            [name, doc, value] if matches!(doc.kind, FormKind::Str(_)) => (name, value),
            [form] if form.symbol().is_some() => {
                let (usage, text) = (special.usage(), form_text(self.source, form.span));
                let message = format!("expected {usage}, got ({} {text}) without value", special.name());
                return Err(with_advice(error(Reason::InvalidArity, span, message), special));
            }
            _ => return Err(wrong_shape(special, span)),
        };
        let name = self.defined_name(name)?;
        self.globals.begin_definition(name, self.scopes.len());
        let value = match special {
            Special::DefOnce => self.branch(value, false),
            _ => self.resolve(value, false),
        };
        self.globals.end_definition();
        self.define(special, span, name, value)
    }

    #[inline(never)]
    pub(crate) fn defn_form(&mut self, special: Special, span: Span, rest: Forms<'a>) -> Resolved<'a> {
        let Some((name_form, rest)) = rest.split_first() else {
            return Err(wrong_shape(Special::Defn, span));
        };
        let name = self.defined_name(name_form)?;
        let rest = match rest {
            [doc, rest @ ..] if matches!(doc.kind, FormKind::Str(_)) => rest,
            _ => rest,
        };
        // Metadata of Clojure is ignored here.
        let rest = match rest {
            [attributes, rest @ ..] if matches!(attributes.kind, FormKind::Map(_)) && !rest.is_empty() => {
                rest
            }
            _ => rest,
        };
        if rest.is_empty() {
            return Err(wrong_shape(Special::Defn, span));
        }
        self.globals.begin_definition(name, self.scopes.len());
        let text = self.names.text(name);
        let closure = self.fn_arities("defn", span, None, text, rest);
        self.globals.end_definition();
        // A failed definition still makes its name known, so that one mistake is reported once.
        let closure = self.recover(span, closure);
        self.define(special, span, name, closure)
    }

    fn define(&mut self, special: Special, span: Span, name: Name, value: Ref<'a>) -> Resolved<'a> {
        if let Kind::Closure(function, _) = value.kind {
            self.globals.set_function(name, function);
        }
        self.globals.make_visible(name);
        let text = self.names.text(name);
        let global = self.global(span, name, self.names.builtin(name))?;
        let symbol = self.tables.symbol(name, text);
        let var = self.tables.constant(span, Const::Var(symbol))?;
        let kind = match special {
            Special::DefOnce => {
                Kind::DefOnce { global, var, value, dying: self.arena.alloc(Cell::default()) }
            }
            _ => Kind::Def { global, var, value },
        };
        Ok(self.expr(span, kind))
    }

    /// The function of a namespace's definition: `[params] body …`, or one such list for each arity.
    pub(crate) fn exported_function(&mut self, name: Name, span: Span, parts: Forms<'a>) -> Ref<'a> {
        let text = self.names.text(name);
        let closure = self.fn_arities("defn", span, None, text, parts);
        self.recover(span, closure)
    }

    fn defined_name(&self, form: &Form<'a>) -> Fallible<Name> {
        let Some(name) = form.symbol() else {
            let message = format!("the name of a definition must be a symbol, got a {}", form.kind_name());
            return Err(invalid_form(form.span, message)
                .hint("For example (def total 5) or (defn total [x] …); `let` takes patterns apart."));
        };
        let text = self.names.text(name);
        if HISTORY.contains(&text) {
            let message =
                format!("cannot define {text}: it is the result of an earlier program of the session");
            return Err(invalid_form(form.span, message)
                .hint(format!("Define a name of your own, as in (def earlier {text}).")));
        }
        if self.defines.is_some() {
            let message =
                format!("a prelude holds no state: {text} cannot be defined inside of a definition");
            return Err(invalid_form(form.span, message)
                .hint(format!("Bind it with (let [{text} …] …), or define it at the top level.")));
        }
        let (Some(qualifier), member) = split_qualified(text) else { return Ok(name) };
        if let Some(namespace) = self.attached(qualifier) {
            let name = namespace.name();
            let message = match namespace.export(member) {
                Some(_) => format!(
                    "cannot redefine {text}: it is a public export of the protected namespace {name} and cannot be \
                     redefined by user code."
                ),
                None => format!(
                    "cannot define {text}: {name} is a protected namespace whose names cannot be redefined by user \
                     code."
                ),
            };
            return Err(invalid_form(form.span, message)
                .hint(format!("Define a name of your own: (def {member} …) does not touch {name}/.")));
        }
        let message = format!(
            "qualified definitions are not supported: cannot define {text}. Define unqualified names in the user \
             namespace instead."
        );
        Err(invalid_form(form.span, message).hint(format!("Write {member} alone.")))
    }
}
