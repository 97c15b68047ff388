//! Finds the meaning of a symbol (local, global, builtin, constant, tool, input data), and explains unknown qualified
//! names.

use super::scope::Variable;
use super::suggest::{did_you_mean, nearest};
use super::{Resolved, Resolver, foreign_names};
use crate::diagnostic::{Failed, HintBoxed, error, invalid_form};
use crate::ir::{Callee, Kind, Literal};
use crate::names::{Name, find_builtin, split_qualified};
use crate::namespace::Namespace;
use ptc_vm::builtins::{Builtin, Category};
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
    pub(crate) fn meaning(&mut self, name: Name, span: Span) -> Result<Meaning, Failed> {
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
            return Err(error(Reason::InvalidPlaceholder, span, message).hint_boxed(match text {
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
    pub(crate) fn global(
        &mut self,
        span: Span,
        name: Name,
        builtin: Option<BuiltinId>,
    ) -> Result<u16, Failed> {
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

fn unsupported_method(text: &str, span: Span) -> Failed {
    let mut methods: Vec<&str> =
        builtins::all().map(|(_, builtin)| builtin.name).filter(|name| name.starts_with('.')).collect();
    methods.sort_unstable();
    let failed = error(Reason::UnsupportedMethod, span, format!("Unsupported method '{text}'."));
    let name = &text[1..];
    failed.hint_boxed(match (foreign_names::method("obj", name), nearest(text, &methods)) {
        (Some(form), _) => format!("Write {form}."),
        (None, Some(near)) => did_you_mean(near),
        (None, None) => {
            format!(
                "Methods are those of Java's String, LocalDate, Instant and Duration, such as .substring, .plusDays \
                 and .toEpochMilli; (:{name} obj) reads a key of a map."
            )
        }
    })
}

impl Resolver<'_, '_> {
    /// The error of a qualified name that does not exist.
    #[cold]
    fn unknown_member(&self, namespace: &str, member: &str, span: Span) -> Failed {
        if self.has_enough_errors() {
            return invalid_form(span, "unknown name");
        }
        if let Some(namespace) = self.attached(namespace) {
            return no_export(namespace, member, span);
        }
        if self.defines == Some(namespace) {
            let message = format!(
                "qualified self-reference `{namespace}/{member}` is not allowed in a prelude body; call the sibling by \
                 its bare name `{member}`"
            );
            return error(Reason::QualifiedSelfReference, span, message)
                .hint_boxed(format!("Write {member}."));
        }
        let known = builtins::NAMESPACES.iter().find(|(prefix, _)| *prefix == namespace);
        let category = known.map(|(_, category)| *category);
        let hint = self.member_hint(namespace, member, category);
        let message = match category {
            _ if OTHER_NAMESPACES.contains(&namespace) || category.is_some() => {
                format!("{namespace}/{member} is not available")
            }
            None if builtins::HOST_NAMESPACES.contains(&namespace) => {
                let prefix = format!("{namespace}/");
                let known = members(|builtin| builtin.name.starts_with(&prefix));
                format!("Unknown {namespace} function: {namespace}/{member}. Available: {}", known.join(", "))
            }
            _ => format!("unknown namespace {namespace}/"),
        };
        let prefix = format!("{namespace}/");
        invalid_form(span, message).hint_boxed(hint.unwrap_or_else(|| match category {
            Some(category) => format!("{} functions: {}", label(category), member_list(category)),
            None if OTHER_NAMESPACES.contains(&namespace) => {
                format!("Known: {}.", members(|builtin| builtin.name.starts_with(&prefix)).join(", "))
            }
            None => format!("{NAMESPACE_LIST} (:{member} {namespace}) reads a key of a map."),
        }))
    }

    /// The attached namespace of this name.
    pub(crate) fn attached(&self, name: &str) -> Option<&Namespace> {
        self.externals.namespaces.iter().copied().find(|namespace| namespace.name() == name)
    }

    /// An export of an attached namespace with a similar name.
    fn export_like(&self, namespace: &str, member: &str) -> Option<String> {
        let names: Vec<&str> = self.externals.namespaces.iter().map(|known| known.name()).collect();
        let same = names.iter().find(|known| known.eq_ignore_ascii_case(namespace)).copied();
        let namespace = self.attached(same.or_else(|| nearest(namespace, &names))?)?;
        let members: Vec<&str> = namespace.exports().iter().map(|export| &*export.name).collect();
        let member =
            members.iter().find(|name| **name == member).copied().or_else(|| nearest(member, &members))?;
        Some(format!("{}/{member}", namespace.name()))
    }

    /// A hint with the probable meaning of an unknown qualified name.
    fn member_hint(&self, namespace: &str, member: &str, category: Option<Category>) -> Option<String> {
        if self.externals.servers.contains(&namespace) {
            return Some(format!(
                "Call tools with (tool/call {{:server \"{namespace}\" :tool \"{member}\" :args {{…}}}})."
            ));
        }
        let is_json = ["json", "cheshire", "JSON"].iter().any(|part| namespace.contains(part));
        if is_json {
            let is_reading = ["read", "parse", "decode", "load"].iter().any(|part| member.contains(part));
            return Some(match is_reading {
                true => "Write (json/parse-string text).".to_owned(),
                false => "Write (json/generate-string value).".to_owned(),
            });
        }
        let qualified = format!("{namespace}/{member}");
        if let Some(advice) = foreign_names::advice(&qualified).or_else(|| foreign_names::advice(member)) {
            return Some(advice.to_owned());
        }
        if let Some(meant) = self.export_like(namespace, member) {
            return Some(did_you_mean(&meant));
        }
        if let Some(builtin) = find_builtin(member) {
            return Some(format!("Write {}.", builtin.info().usage));
        }
        let near = match category {
            Some(category) => {
                let members = members(|builtin| builtin.category == category);
                nearest(member, &members).map(|near| format!("{namespace}/{near}"))
            }
            None => {
                let members = members(|builtin| builtin.category != Category::Internal);
                nearest(&qualified, &members).or_else(|| nearest(member, &members)).map(str::to_owned)
            }
        };
        near.map(|near| did_you_mean(&near))
    }
}

/// The error of a name that a namespace does not export.
fn no_export(namespace: &Namespace, member: &str, span: Span) -> Failed {
    let name = namespace.name();
    let members: Vec<&str> = namespace.exports().iter().map(|export| &*export.name).collect();
    let failed = invalid_form(
        span,
        format!(
            "{name}/{member} is not a public export of namespace {name}. Discover its public exports with (ns-publics \
             '{name}) or (apropos \"{member}\")."
        ),
    );
    failed.hint_boxed(match nearest(member, &members) {
        Some(near) => did_you_mean(&format!("{name}/{near}")),
        None => format!("{name}/ has {}.", members.join(", ")),
    })
}

/// The list of namespaces, for a name in an unknown one.
const NAMESPACE_LIST: &str =
    "Namespaces are str/, set/, walk/, json/, regex/, Math/, data/ and tool/; core functions have none.";

/// The names of builtins, sorted.
fn members(choose: impl Fn(&Builtin) -> bool) -> Vec<&'static str> {
    let mut members: Vec<&str> =
        builtins::all().filter(|(_, builtin)| choose(builtin)).map(|(_, builtin)| builtin.name).collect();
    members.sort_unstable();
    members
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
    members(|builtin| builtin.category == category).join(", ")
}
