//! Translates function calls to IR, and checks their number of arguments where the called function is known.

use super::symbol::{Meaning, is_placeholder};
use super::{Resolved, Resolver, foreign_names};
use crate::diagnostic::{Diagnostic, Done, Hint, Severity, error};
use crate::form::{Form, FormKind, Forms};
use crate::ir::{Callee, Function, Kind, Literal, Refs};
use crate::names::{Name, split_qualified};
use crate::namespace::CallArity;
use ptc_vm::builtins::Implementation;
use ptc_vm::bytecode::{BuiltinId, Const, Known};
use ptc_vm::{Reason, Span};

/// More arguments are passed through `apply`, so that call windows stay small.
const MAX_WINDOW: usize = 64;

/// Calls that take more arguments in Clojure, by their usage here, and what to write instead.
const OTHER_ARGUMENTS: &[(&str, &str)] = &[
    (
        "(json/parse-string text)",
        "Write (json/parse-string text) alone: keywords find the string keys, as in (:name row).",
    ),
    ("(json/generate-string value)", "Write (json/generate-string value) alone."),
];

impl<'a> Resolver<'a, '_> {
    #[inline(never)]
    pub(crate) fn call(&mut self, form: &'a Form<'a>, head: &'a Form<'a>, rest: Forms<'a>) -> Resolved<'a> {
        match head.kind {
            FormKind::Symbol(name) => self.call_symbol(form, name, head.span, rest),
            FormKind::Keyword(name) => self.call_keyword(form, name, rest),
            _ => {
                let callee = self.resolve(head, false);
                let arguments = self.all(rest);
                if let Kind::Closure(function, _) = callee.kind {
                    self.check_closure(function.arity(), "function", Some(function), form.span, rest.len())?;
                }
                self.make_call(form.span, Callee::Value(callee), arguments)
            }
        }
    }

    fn call_symbol(&mut self, form: &'a Form<'a>, name: Name, head: Span, rest: Forms<'a>) -> Resolved<'a> {
        let span = form.span;
        match self.meaning(name, head)? {
            Meaning::Global(global) if self.globals.is_constant(name) => {
                let text = self.names.text(name);
                if rest.is_empty() {
                    return Ok(self.expr(span, Kind::Global(global)));
                }
                let message = format!("{text} is a constant and takes no arguments");
                Err(error(Reason::ArityMismatch, span, message).hint(format!("Write {text} alone.")))
            }
            Meaning::Global(global) => {
                let text = self.names.text(name);
                if let Some(arity) = self.globals.arity(name)
                    && self.globals.is_defined_once(name)
                {
                    let function = self.globals.function(name);
                    match self.globals.is_export(name) {
                        true => self.check_export(arity, text, span, rest.len())?,
                        false => self.check_closure(arity, text, function, span, rest.len())?,
                    }
                }
                let arguments = self.all(rest);
                self.may_have_ended |= self.globals.is_from_session(name);
                self.make_call(span, Callee::Global(global), arguments)
            }
            Meaning::Builtin(builtin) => self.call_builtin(span, builtin, rest),
            Meaning::Tool => self.tool_call(span, name, head, rest),
            Meaning::Unbound => {
                if !foreign_names::is_syntax(self.names.text(name)) {
                    self.all(rest);
                }
                Ok(self.nil(span))
            }
            meaning @ (Meaning::Local(_) | Meaning::Nil | Meaning::Float(_) | Meaning::Data) => {
                let callee = match meaning {
                    Meaning::Local(variable) => self.variable(head, variable),
                    _ => self.symbol(name, head)?,
                };
                let arguments = self.all(rest);
                self.make_call(span, Callee::Value(callee), arguments)
            }
        }
    }

    fn call_builtin(&mut self, span: Span, builtin: BuiltinId, rest: Forms<'a>) -> Resolved<'a> {
        let info = builtin.info();
        let rest = self.quote_reference(builtin, rest);
        if let Some(usage) = info.form
            && rest.len() < usize::from(info.arity.min)
        {
            return Err(error(Reason::InvalidArity, span, format!("expected {usage}"))
                .hint(format!("{}: {}", info.usage, info.doc)));
        }
        if !info.arity.accepts(rest.len()) {
            let message = format!("arity error: {}", info.arity.message(info.name, info.usage, rest.len()));
            let mut diagnostic =
                Diagnostic::error(Reason::ArityError, span, message).hint(format!("Usage: {}", info.usage));
            if let Some((_, advice)) = OTHER_ARGUMENTS.iter().find(|(usage, _)| *usage == info.usage) {
                diagnostic = diagnostic.hint(advice);
            }
            self.report_call(diagnostic)?;
        }
        if let (Some(Known::Take), [count, range]) = (info.known, rest)
            && let Some([start, end, step]) = self.constant_range(range)
        {
            let [count, start, end, step] = [count, start, end, step].map(|form| self.resolve(form, false));
            return self.internal_call(span, Known::TakeRange, &[count, start, end, step]);
        }
        // In programs that make endless sequences, `first` and its relatives may have to call functions to find the
        // item; in others they stay plain builtins.
        if let Some(twin) = info.endless
            && self.makes_endless_sequences()
        {
            let arguments = self.all(rest);
            return self.make_call(span, Callee::Builtin(twin.id()), arguments);
        }
        let arguments = self.all(rest);
        if let Some(known) = info.known {
            self.look_at_operator(known, rest, arguments);
            if let Some(operator) = self.operator(known, span, arguments) {
                return Ok(operator);
            }
        }
        self.make_call(span, Callee::Builtin(builtin), arguments)
    }

    /// `(doc map)` means `(doc 'map)`: forms that look up names take a bare name that is not a variable of the
    /// program as a quoted symbol.
    fn quote_reference(&self, builtin: BuiltinId, rest: Forms<'a>) -> Forms<'a> {
        let Implementation::Host(function) = builtin.info().implementation else { return rest };
        let [first, others @ ..] = rest else { return rest };
        let Some(name) = first.symbol().filter(|_| function.takes_reference()) else { return rest };
        let text = self.names.text(name);
        let is_variable = self.scopes.is_bound(name)
            || (self.globals.is_definable(name) && !self.globals.is_export(name))
            || text.starts_with("data/")
            || is_placeholder(text);
        if is_variable {
            return rest;
        }
        let mut quoted = self.list(rest.len());
        quoted.push(Form::new(first.span, FormKind::Quote(name)));
        quoted.extend_from_slice(others);
        quoted.into_bump_slice()
    }

    /// Whether the program names a function that makes endless sequences.
    pub(crate) fn makes_endless_sequences(&self) -> bool {
        const MAKERS: [Known; 4] = [Known::Iterate, Known::Repeat, Known::Cycle, Known::Repeatedly];
        MAKERS.iter().any(|maker| self.names.find(maker.name()).is_some())
            // Only without arguments; most programs that name it pass some.
            || (self.names.find(Known::Range.name()).is_some() && self.source.contains("(range)"))
    }

    /// The arguments of `(range start end 0)`: only inside `take` may the step be 0.
    fn constant_range(&mut self, form: &'a Form<'a>) -> Option<[&'a Form<'a>; 3]> {
        let FormKind::List([head, start, end, step]) = &form.kind else { return None };
        if !matches!(step.kind, FormKind::Int(0) | FormKind::Float(0.0)) {
            return None;
        }
        match self.meaning(head.symbol()?, head.span) {
            Ok(Meaning::Builtin(builtin)) if builtin.info().known == Some(Known::Range) => {
                Some([start, end, step])
            }
            _ => None,
        }
    }

    /// Reports a call that will fail: as an error if it certainly runs, else as a warning.
    fn report_call(&mut self, diagnostic: Diagnostic) -> Done {
        if self.certain && !self.may_have_ended {
            return Err(Box::new(diagnostic));
        }
        self.warn(Diagnostic { severity: Severity::Warning, ..diagnostic });
        Ok(())
    }

    /// The same for an export of a namespace; the message names its documented parameters.
    #[cold]
    fn check_export(&mut self, arity: CallArity, text: &str, span: Span, got: usize) -> Done {
        if arity.accepts(got) {
            return Ok(());
        }
        let message = format!("{text} expects {} argument(s), got {got}", arity.words());
        let (namespace, member) = split_qualified(text);
        let export = namespace.and_then(|namespace| self.attached(namespace)?.export(member));
        let usage: Vec<String> = export.map(|export| export.usages(text)).unwrap_or_default();
        let hint = format!("Write {}.", usage.join(" or "));
        self.report_call(Diagnostic::error(Reason::ArityMismatch, span, message).hint(hint))
    }

    fn check_closure(
        &mut self,
        arity: CallArity,
        name: &str,
        function: Option<&Function<'_>>,
        span: Span,
        got: usize,
    ) -> Done {
        if arity.accepts(got) {
            return Ok(());
        }
        let expected = arity.words();
        let message = format!("{name} expected {expected} argument(s), got {got}");
        let hint = match function {
            Some(function) => format!("Its parameters are {}.", function.parameters()),
            None => format!("Call it with {expected} argument(s)."),
        };
        self.report_call(Diagnostic::error(Reason::ArityMismatch, span, message).hint(hint))
    }

    fn call_keyword(&mut self, form: &'a Form<'a>, name: Name, rest: Forms<'a>) -> Resolved<'a> {
        let span = form.span;
        let row = self.tables.keyword(span, name, self.names.text(name))?;
        match rest {
            [target] => {
                let target = self.resolve(target, false);
                Ok(self.expr(span, Kind::GetKey(row, target)))
            }
            [target, default] => {
                let target = self.resolve(target, false);
                let default = self.resolve(default, false);
                let key = self.literal(span, Literal::Row(row));
                self.internal_call(span, Known::LookUp, &[target, key, default])
            }
            _ => {
                let text = self.names.text(name);
                let message = format!("keyword :{text} expects 1 or 2 argument(s), got {}", rest.len());
                Err(error(Reason::InvalidKeywordCall, span, message).hint(format!("Write (:{text} map).")))
            }
        }
    }

    pub(crate) fn make_call(&mut self, span: Span, callee: Callee<'a>, arguments: Refs<'a>) -> Resolved<'a> {
        if arguments.len() <= MAX_WINDOW {
            return Ok(self.expr(span, Kind::Call(callee, arguments)));
        }
        let callee = match callee {
            Callee::Builtin(builtin) => self.constant(span, Const::Builtin(builtin))?,
            Callee::Global(global) => self.expr(span, Kind::Global(global)),
            Callee::Value(callee) => callee,
        };
        let vector = self.expr(span, Kind::Vector(arguments));
        let arguments = self.slice([callee, vector]);
        Ok(self.expr(span, Kind::Call(Callee::Builtin(Known::Apply.id()), arguments)))
    }
}

impl Function<'_> {
    /// The parameters of every arity, as the source writes them.
    pub(crate) fn parameters(&self) -> String {
        let each: Vec<String> = self.arities.iter().map(|arity| format!("[{}]", arity.parameters)).collect();
        each.join(" or ")
    }

    /// The range of argument counts that some arity accepts.
    pub(crate) fn arity(&self) -> CallArity {
        let min = self.arities.iter().map(|arity| usize::from(arity.fixed)).min().unwrap_or(0);
        let max = match self.arities.iter().any(|arity| arity.variadic) {
            true => None,
            false => self.arities.iter().map(|arity| usize::from(arity.fixed)).max(),
        };
        CallArity { min, max }
    }
}
