//! What a symbol means as a value.

use super::scope::{self, Place};
use super::{Failed, Resolved, Resolver, error, invalid_form};
use crate::ir::{Callee, Kind, Literal};
use crate::names::{Name, split_qualified};
use ptc_vm::builtins::{self, BuiltinId, Category};
use ptc_vm::bytecode::Const;
use ptc_vm::{Reason, Span};

/// Names that are numbers.
const FLOAT_CONSTANTS: &[(&str, f64)] = &[
    ("NaN", f64::NAN),
    ("POSITIVE_INFINITY", f64::INFINITY),
    ("NEGATIVE_INFINITY", f64::NEG_INFINITY),
    ("Double/NaN", f64::NAN),
    ("Double/POSITIVE_INFINITY", f64::INFINITY),
    ("Double/NEGATIVE_INFINITY", f64::NEG_INFINITY),
];

/// Turn history: defined by the session, nil without one.
const HISTORY: &[&str] = &["*1", "*2", "*3"];

/// Namespaces that are not in the builtin table.
const OTHER_NAMESPACES: &[&str] = &[
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
    "Duration",
];

/// What a name that is not a local means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    Local(Place),
    Global(u16),
    Builtin(BuiltinId),
    Float(f64),
    /// Turn history outside a session.
    Nil,
    /// `data/key`.
    Data,
    /// `tool/name`.
    Tool,
    /// Recorded as unbound.
    Unbound,
}

/// The builtin of a name as it is written, qualified or not.
pub(crate) fn find_builtin(text: &str) -> Option<BuiltinId> {
    let text = text.strip_prefix("java.time.").unwrap_or(text);
    let plain = || builtins::lookup(None, text);
    match split_qualified(text) {
        (None, _) => plain(),
        (Some(namespace), name) => builtins::lookup(Some(namespace), name).or_else(plain),
    }
}

impl<'a> Resolver<'a, '_> {
    pub(crate) fn symbol(&mut self, name: Name, span: Span) -> Resolved<'a> {
        match self.meaning(name, span)? {
            Meaning::Local(place) => Ok(self.place(span, place)),
            Meaning::Global(global) => Ok(self.expr(span, Kind::Global(global))),
            // The budget is read with and without parentheses.
            Meaning::Builtin(builtin) if builtin.info().name == "budget/remaining" => {
                self.make_call(span, Callee::Builtin(builtin), &[])
            }
            Meaning::Builtin(builtin) => self.constant(span, Const::Builtin(builtin)),
            Meaning::Float(value) => self.constant(span, Const::Float(value)),
            Meaning::Nil | Meaning::Unbound => Ok(self.nil(span)),
            Meaning::Data => self.data(name, span),
            Meaning::Tool => self.tool_value(name, span),
        }
    }

    /// The name has no value here for sure, but some `def` of the program can give it one.
    pub(crate) fn is_late_global(&mut self, name: Name) -> bool {
        scope::lookup(&mut self.functions, name).is_none()
            && self.globals.is_definable(name)
            && !self.globals.is_visible(name)
            && find_builtin(self.names.text(name)).is_none()
    }

    /// Nothing anywhere gives the plain name a value.
    pub(crate) fn is_unbound(&mut self, name: Name) -> bool {
        let text = self.names.text(name);
        scope::lookup(&mut self.functions, name).is_none()
            && !self.globals.is_definable(name)
            && find_builtin(text).is_none()
            && !HISTORY.contains(&text)
            && !FLOAT_CONSTANTS.iter().any(|(known, _)| *known == text)
            && split_qualified(text).0.is_none()
            && !is_placeholder(text)
            && !text.starts_with('.')
    }

    #[inline(never)]
    pub(crate) fn meaning(&mut self, name: Name, span: Span) -> Result<Meaning, Failed> {
        if let Some(place) = scope::lookup(&mut self.functions, name) {
            return Ok(Meaning::Local(place));
        }
        let text = self.names.text(name);
        let builtin = find_builtin(text);
        if self.globals.is_definable(name)
            && (builtin.is_some()
                || self.globals.is_visible(name)
                || self.globals.is_in_own_definition(name, self.functions.len()))
        {
            return Ok(Meaning::Global(self.tables.global(span, text, builtin)?));
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
            return Err(error(Reason::InvalidPlaceholder, span, message));
        }
        if text.len() > 1 && text.starts_with('.') && !text.starts_with("..") {
            return Err(unsupported_method(text, span));
        }
        match split_qualified(text) {
            (Some("data"), _) => Ok(Meaning::Data),
            (Some("tool"), _) => Ok(Meaning::Tool),
            (Some(namespace), member) => Err(unknown_member(namespace, member, span)),
            (None, _) => {
                self.note_unbound(name, span);
                Ok(Meaning::Unbound)
            }
        }
    }

    fn data(&mut self, name: Name, span: Span) -> Resolved<'a> {
        let (_, key) = split_qualified(self.names.text(name));
        let row = self.tables.keyword(span, key)?;
        let key = self.literal(span, Literal::Row(row));
        self.internal_call(span, "%data", &[key])
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

fn unsupported_method(text: &str, span: Span) -> Failed {
    let mut methods: Vec<&str> =
        builtins::all().map(|(_, builtin)| builtin.name).filter(|name| name.starts_with('.')).collect();
    methods.sort_unstable();
    let message = format!(
        "Unsupported method '{text}'. Supported interop methods: {}. Use (.method obj) syntax.",
        methods.join(", ")
    );
    error(Reason::UnsupportedMethod, span, message)
}

/// The error of a qualified name that does not exist.
fn unknown_member(namespace: &str, member: &str, span: Span) -> Failed {
    if let Some((_, category)) = builtins::NAMESPACES.iter().find(|(prefix, _)| *prefix == namespace) {
        return invalid_form(
            span,
            format!("{member} is not available. {} functions: {}", label(*category), member_list(*category)),
        );
    }
    if namespace == "budget" {
        return invalid_form(
            span,
            format!("Unknown budget function: budget/{member}. Available: budget/remaining"),
        );
    }
    if OTHER_NAMESPACES.contains(&namespace) {
        let prefix = format!("{namespace}/");
        let mut members: Vec<&str> = builtins::all()
            .map(|(_, builtin)| builtin.name)
            .filter(|name| name.starts_with(&prefix))
            .collect();
        members.sort_unstable();
        return invalid_form(
            span,
            format!("{prefix}{member} is not available. Known: {}", members.join(", ")),
        );
    }
    let mut prefixes: Vec<&str> = builtins::NAMESPACES.iter().map(|(prefix, _)| *prefix).collect();
    prefixes.extend(OTHER_NAMESPACES);
    prefixes.sort_unstable();
    let list: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}/")).collect();
    invalid_form(
        span,
        format!(
            "unknown namespace {namespace}/. Available namespaces: {}. For JSON parsing use json/parse-string (not \
             cheshire.core/...).",
            list.join(", ")
        ),
    )
}

fn label(category: Category) -> &'static str {
    match category {
        Category::Core => "Core",
        Category::String => "String",
        Category::Set => "Set",
        Category::Walk => "Walk",
        Category::Regex => "Regex",
        Category::Math => "Math",
        Category::Json => "JSON",
        Category::Interop => "Interop",
        Category::Internal => "Internal",
    }
}

fn member_list(category: Category) -> String {
    let mut members: Vec<&str> = builtins::all()
        .filter(|(_, builtin)| builtin.category == category)
        .map(|(_, builtin)| builtin.name)
        .collect();
    members.sort_unstable();
    members.join(", ")
}
