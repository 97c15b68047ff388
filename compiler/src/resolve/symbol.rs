//! Finds the meaning of a symbol: local, global, builtin, constant, tool or input data.

use super::scope::Variable;
use super::unknown::unsupported_method;
use super::{Resolved, Resolver};
use crate::diagnostic::{Fallible, Hint, error, invalid_form};
use crate::ir::{Callee, Kind, Literal};
use crate::names::{Name, split_qualified};
use ptc_vm::builtins::Category;
use ptc_vm::bytecode::{BuiltinId, Const, GlobalName, Known};
use ptc_vm::{Reason, Span, builtins};

/// Names of float constants.
const FLOAT_CONSTANTS: &[(&str, f64)] = &[
    ("NaN", f64::NAN),
    ("POSITIVE_INFINITY", f64::INFINITY),
    ("NEGATIVE_INFINITY", f64::NEG_INFINITY),
    ("Math/PI", std::f64::consts::PI),
    ("Math/E", std::f64::consts::E),
    ("Double/NaN", f64::NAN),
    ("Double/POSITIVE_INFINITY", f64::INFINITY),
    ("Double/NEGATIVE_INFINITY", f64::NEG_INFINITY),
];

/// The history of results: defined by the session, nil without one.
pub(in crate::resolve) const HISTORY: &[&str] = &["*1", "*2", "*3", "*e"];

/// Namespaces that are not in the builtin table.
pub(super) const OTHER_NAMESPACES: &[&str] = &[
    "data",
    "tool",
    "System",
    "Boolean",
    "Double",
    "Float",
    "Integer",
    "Long",
    "LocalDate",
    "Instant",
    "OffsetDateTime",
    "ZonedDateTime",
    "LocalDateTime",
    "Duration",
];

/// Whether the namespace is reserved, so that no host may attach another one of this name.
pub fn is_reserved_namespace(name: &str) -> bool {
    const OWN: &[&str] = &["budget", "clojure.core", "core", "mcp", "prelude", "ptc.core", "user"];
    let is_language = |&(prefix, _): &(&str, Category)| prefix == name;
    [OTHER_NAMESPACES, OWN, builtins::HOST_NAMESPACES].iter().any(|names| names.contains(&name))
        || builtins::NAMESPACES.iter().any(is_language)
}

/// The meaning of a name that is not a local.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    Local(Variable),
    Global(u16),
    Builtin(BuiltinId),
    Float(f64),
    /// History outside a session.
    Nil,
    /// `data/key`.
    Data,
    /// `tool/name`.
    Tool,
    /// Recorded as unbound.
    Unbound,
}

impl<'a> Resolver<'a, '_> {
    pub(crate) fn symbol(&mut self, name: Name, span: Span) -> Resolved<'a> {
        match self.meaning(name, span)? {
            Meaning::Local(variable) => Ok(self.variable(span, variable)),
            Meaning::Global(global) => Ok(self.expr(span, Kind::Global(global))),
            // The budget can be read with and without parentheses.
            Meaning::Builtin(builtin) if builtin.info().known == Some(Known::Budget) => {
                self.make_call(span, Callee::Builtin(builtin), &[])
            }
            Meaning::Builtin(builtin) => self.constant(span, Const::Builtin(builtin)),
            Meaning::Float(value) => self.constant(span, Const::Float(value)),
            Meaning::Nil | Meaning::Unbound => Ok(self.nil(span)),
            Meaning::Data => self.data(name, span),
            Meaning::Tool => self.tool_value(name, span),
        }
    }

    /// Whether the name may have no value yet, but some `def` of the program can give it one.
    pub(crate) fn is_late_global(&mut self, name: Name) -> bool {
        !self.scopes.is_bound(name)
            && self.globals.is_definable(name)
            && !self.globals.is_visible(name)
            && self.names.builtin(name).is_none()
    }

    /// Whether nothing gives the plain name a value.
    pub(crate) fn is_unbound(&mut self, name: Name) -> bool {
        let text = self.names.text(name);
        !self.scopes.is_bound(name)
            && !self.globals.is_definable(name)
            && self.names.builtin(name).is_none()
            && !HISTORY.contains(&text)
            && !FLOAT_CONSTANTS.iter().any(|(known, _)| *known == text)
            && split_qualified(text).0.is_none()
            && !is_placeholder(text)
            && !text.starts_with('.')
    }

    #[inline(never)]
    pub(crate) fn meaning(&mut self, name: Name, span: Span) -> Fallible<Meaning> {
        if let Some(variable) = self.scopes.lookup(name) {
            return Ok(Meaning::Local(variable));
        }
        let text = self.names.text(name);
        let builtin = self.names.builtin(name);
        if self.globals.is_definable(name)
            && (builtin.is_some()
                || self.globals.is_visible(name)
                || self.globals.is_in_own_definition(name, self.scopes.len()))
        {
            return Ok(Meaning::Global(self.global(span, name, builtin)?));
        }
        if let Some(builtin) = builtin {
            return Ok(Meaning::Builtin(builtin));
        }
        if HISTORY.contains(&text) {
            return Ok(Meaning::Nil);
        }
        if let Some((_, value)) = FLOAT_CONSTANTS.iter().find(|(known, _)| *known == text) {
            return Ok(Meaning::Float(*value));
        }
        if is_placeholder(text) {
            let message =
                format!("placeholder '{text}' can only be used inside #() anonymous function syntax");
            return Err(error(Reason::InvalidPlaceholder, span, message).hint(match text {
                "%" => "Write #(f %) or (fn [x] (f x)); the remainder is (mod a b).".to_owned(),
                _ => format!("Write #(f {text}) around it, or (fn [x] …) with names."),
            }));
        }
        if text.len() > 1 && text.starts_with('.') && !text.starts_with("..") {
            return Err(match self.has_enough_errors() {
                true => invalid_form(span, "unsupported method"),
                false => unsupported_method(text, span),
            });
        }
        match split_qualified(text) {
            (Some("data"), _) => Ok(Meaning::Data),
            (Some("tool"), _) => Ok(Meaning::Tool),
            (Some(namespace), member) => Err(self.unknown_member(namespace, member, span)),
            (None, _) => {
                self.note_unbound(name, span);
                Ok(Meaning::Unbound)
            }
        }
    }

    /// The row of a name with a definition, in its namespace.
    pub(crate) fn global(&mut self, span: Span, name: Name, builtin: Option<BuiltinId>) -> Fallible<u16> {
        if let Some(row) = self.tables.known_global(name) {
            return Ok(row);
        }
        let text = self.names.text(name);
        let global = if self.globals.is_export(name) {
            let (namespace, member) = split_qualified(text);
            let namespace = namespace.map(|namespace| self.symbol_row(namespace));
            GlobalName { namespace, symbol: self.symbol_row(member), builtin: None }
        } else {
            let namespace = self.defines.map(|namespace| self.symbol_row(namespace));
            GlobalName { namespace, symbol: self.tables.symbol(name, text), builtin }
        };
        Ok(self.tables.global(span, name, global)?)
    }

    fn data(&mut self, name: Name, span: Span) -> Resolved<'a> {
        let (_, key) = split_qualified(self.names.text(name));
        let key_name = self.names.intern(key);
        let row = self.tables.keyword(span, key_name, key)?;
        let key = self.literal(span, Literal::Row(row));
        self.internal_call(span, Known::DataEntry, &[key])
    }
}

/// `%`, `%1` …, `%&`.
pub(crate) fn is_placeholder(text: &str) -> bool {
    match text.strip_prefix('%') {
        Some("" | "&") => true,
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => false,
    }
}
