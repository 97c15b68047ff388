//! Parses the forms of a prelude (a Lisp library that is loaded before a program) into namespaces and definitions.

use super::PreludeNamespace;
use super::metadata::{Metadata, Visibility};
use crate::diagnostic::{Diagnostic, Failed, Fallible, Hint, error};
use crate::form::{Form, FormKind, Forms, form_text};
use crate::meter::Meter;
use crate::names::{Name, Names};
use crate::namespace::CallArity;
use crate::resolve::symbol::is_reserved_namespace;
use ptc_vm::{Reason, Span};
use std::collections::HashMap;

/// The declarations of a text.
pub(super) struct Declarations<'a> {
    pub(super) namespaces: Vec<DeclaredNamespace>,
    /// In the order of the text.
    pub(super) definitions: Vec<Declared<'a>>,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
}

/// `(ns name "doc" {meta})`, and where its exports are listed.
pub(super) type DeclaredNamespace = (PreludeNamespace, Visibility);

/// A definition as written.
pub(super) struct Declared<'a> {
    /// The number of its namespace.
    pub(super) namespace: usize,
    pub(super) name: Name,
    pub(super) text: &'a str,
    pub(super) doc: Option<&'a str>,
    pub(super) metadata: Metadata,
    pub(super) is_private: bool,
    pub(super) body: DeclaredBody<'a>,
    pub(super) span: Span,
    /// Numbers of arguments; `None` for a constant.
    pub(super) arity: Option<CallArity>,
    /// The parameters of each arity, as `x y`; a destructured one is named by its number.
    pub(super) parameters: Vec<Box<str>>,
}

/// The part after name, text and metadata.
#[derive(Clone, Copy)]
pub(super) enum DeclaredBody<'a> {
    /// `[params] body …`, or such a list for each arity.
    Function(Forms<'a>),
    /// A value.
    Constant(&'a Form<'a>),
}

/// The context in which forms are read.
pub(super) struct ReadContext<'r, 'a> {
    pub(super) source: &'a str,
    pub(super) names: &'r Names<'a>,
    /// A namespace that may be declared although it is reserved.
    allowed: Option<&'r str>,
    pub(super) warnings: Vec<Diagnostic>,
}

impl<'a> ReadContext<'_, 'a> {
    /// The text of a form, cut.
    pub(super) fn shown(&self, form: &Form<'_>) -> String {
        form_text(self.source, form.span).to_string()
    }

    pub(super) fn symbol(&self, form: &Form<'a>) -> Option<&'a str> {
        form.symbol().map(|name| self.names.text(name))
    }
}

/// Reads the top-level forms.
pub(super) fn declare<'a>(
    meter: &Meter<'_>,
    source: &'a str,
    names: &Names<'a>,
    forms: Forms<'a>,
    allowed: Option<&str>,
) -> Declarations<'a> {
    let mut reading = ReadContext { source, names, allowed, warnings: Vec::new() };
    let (mut namespaces, mut definitions, mut errors) = (Vec::new(), Vec::<Declared<'a>>::new(), Vec::new());
    let mut seen: HashMap<(usize, Name), Span> = HashMap::new();
    // After a refused declaration the namespace of definitions is unknown: further errors are not reported.
    let mut is_lost = false;
    for form in forms {
        if meter.step().is_err() {
            break;
        }
        let declared = match head_of(names, form) {
            Some(("ns", rest)) => match namespace(&mut reading, form, rest, &namespaces) {
                Ok(declared) => {
                    namespaces.push(declared);
                    is_lost = false;
                    continue;
                }
                Err(failed) => {
                    is_lost = true;
                    Err(failed)
                }
            },
            Some(("defn", rest)) => function(&mut reading, form, rest, false),
            Some(("defn-", rest)) => function(&mut reading, form, rest, true),
            Some(("def", rest)) => constant(&reading, form, rest),
            _ => Err(unsupported(&reading, form)),
        };
        match declared {
            Ok(_) if is_lost => {}
            Ok(declared) if namespaces.is_empty() => {
                let message = format!("definition `{}` appears before any (ns ...) directive", declared.text);
                errors.push(without_namespace(form.span, &message));
            }
            Ok(mut declared) => {
                declared.namespace = namespaces.len() - 1;
                match seen.insert((declared.namespace, declared.name), form.span) {
                    None => definitions.push(declared),
                    Some(first) => {
                        errors.push(*twice(&reading, &namespaces[declared.namespace].0, &declared, first));
                    }
                }
            }
            Err(failed) => errors.push(*failed),
        }
    }
    if namespaces.is_empty() && errors.is_empty() {
        errors.push(without_namespace(Span::default(), "prelude declares no namespace"));
    }
    Declarations { namespaces, definitions, errors, warnings: reading.warnings }
}

fn without_namespace(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error(Reason::MissingNamespace, span, message)
        .hint("Begin the file with (ns name \"what it is for\").")
}

/// The name at the head of a list, and the rest.
pub(super) fn head_of<'a>(names: &Names<'a>, form: &Form<'a>) -> Option<(&'a str, Forms<'a>)> {
    let FormKind::List([head, rest @ ..]) = form.kind else { return None };
    Some((names.text(head.symbol()?), rest))
}

fn unsupported(reading: &ReadContext<'_, '_>, form: &Form<'_>) -> Failed {
    let message = format!("unsupported top-level prelude form: {}", reading.shown(form));
    error(Reason::CompileError, form.span, message).hint(
        "At the top level stand (ns …), (defn …), (defn- …) and (def …); what else is to be done belongs into a function.",
    )
}

fn twice(
    reading: &ReadContext<'_, '_>,
    namespace: &PreludeNamespace,
    declared: &Declared<'_>,
    first: Span,
) -> Failed {
    let (line, _) = crate::diagnostic::line_column(reading.source, first.start);
    let message = format!(
        "duplicate prelude definition ref `{}/{}` (names must be unique within a namespace)",
        namespace.name, declared.text
    );
    error(Reason::DuplicateRef, declared.span, message).hint(format!(
        "The first one is on line {line}; a function of several arities is one (defn f ([a] …) ([a b] …))."
    ))
}

/// `(ns name "doc"? {meta}?)`.
fn namespace<'a>(
    reading: &mut ReadContext<'_, 'a>,
    form: &Form<'a>,
    rest: Forms<'a>,
    earlier: &[DeclaredNamespace],
) -> Fallible<DeclaredNamespace> {
    const USAGE: &str =
        "Write (ns crm \"What it is for.\" {:visibility :prompt}); text and map may be left out.";
    let invalid = |span, message: String| error(Reason::InvalidNamespace, span, message).hint(USAGE);
    let Some((name_form, rest)) = rest.split_first() else {
        return Err(invalid(form.span, "(ns ...) requires a namespace name".to_owned()));
    };
    let Some(name) = reading.symbol(name_form).filter(|name| !name.contains('/')) else {
        let shown = reading.shown(name_form);
        return Err(invalid(name_form.span, format!("namespace name must be a symbol, got: {shown}")));
    };
    if is_reserved_namespace(name) && reading.allowed != Some(name) {
        let message = format!("prelude cannot declare reserved namespace `{name}`");
        return Err(error(Reason::ReservedNamespace, name_form.span, message).hint(format!(
            "{name} belongs to the language or to the host: choose another name, such as my-{name}."
        )));
    }
    if earlier.iter().any(|(namespace, _)| *namespace.name == *name) {
        let message = format!(
            "namespace '{name}' is declared more than once; declare each prelude namespace exactly once"
        );
        return Err(error(Reason::InvalidNamespace, form.span, message)
            .hint("Move its definitions behind the first declaration."));
    }
    let (doc, metadata, []) = documented(rest) else {
        let shown = reading.shown(form);
        return Err(invalid(form.span, format!("malformed (ns ...) directive: {shown}")));
    };
    let metadata = Metadata::read(reading, metadata, true)?;
    let namespace = PreludeNamespace { name: name.into(), doc: doc.map(Into::into), span: form.span };
    Ok((namespace, metadata.visibility.unwrap_or(Visibility::Prompt)))
}

/// The text and the map behind a name, which may be left out, and the rest.
fn documented<'a>(rest: Forms<'a>) -> (Option<&'a str>, Option<&'a Form<'a>>, Forms<'a>) {
    let (doc, rest) = match rest {
        [Form { kind: FormKind::Str(doc), .. }, rest @ ..] => (Some(*doc), rest),
        _ => (None, rest),
    };
    match rest {
        [metadata, rest @ ..] if matches!(metadata.kind, FormKind::Map(_)) => (doc, Some(metadata), rest),
        _ => (doc, None, rest),
    }
}

/// The name of a definition.
fn name_of<'a>(reading: &ReadContext<'_, 'a>, form: &Form<'a>) -> Fallible<(Name, &'a str)> {
    let name = form.symbol().map(|name| (name, reading.names.text(name)));
    match name {
        Some((name, text)) if !text.contains('/') || text == "/" => Ok((name, text)),
        _ => {
            let message = format!("definition name must be a symbol, got: {}", reading.shown(form));
            Err(error(Reason::InvalidSignature, form.span, message)
                .hint("Write the name alone: its namespace is the one declared before it."))
        }
    }
}

/// `(defn name "doc"? {meta}? [params] body …)`.
fn function<'a>(
    reading: &mut ReadContext<'_, 'a>,
    form: &Form<'a>,
    rest: Forms<'a>,
    is_private: bool,
) -> Fallible<Declared<'a>> {
    const USAGE: &str =
        "Write (defn name \"What it does.\" {:effect :read} [params] body …); text and map may be left out.";
    let invalid = |span, message: String| error(Reason::InvalidSignature, span, message).hint(USAGE);
    let Some((name_form, rest)) = rest.split_first() else {
        return Err(invalid(form.span, format!("malformed defn in prelude: {}", reading.shown(form))));
    };
    let (name, text) = name_of(reading, name_form)?;
    let (doc, metadata, rest) = documented(rest);
    let Some(first) = rest.first() else {
        return Err(invalid(form.span, format!("malformed defn in prelude: {}", reading.shown(form))));
    };
    let is_list =
        |form: &Form<'_>| matches!(form.kind, FormKind::List([first, ..]) if first.vector().is_some());
    if first.vector().is_none() && !rest.iter().all(is_list) {
        let wrong =
            if is_list(first) { rest.iter().find(|form| !is_list(form)).unwrap_or(first) } else { first };
        return Err(invalid(
            wrong.span,
            format!("expected a [params] vector, got: {}", reading.shown(wrong)),
        ));
    }
    let metadata = Metadata::read(reading, metadata, false)?;
    if let (None, [_, Form { kind: FormKind::Str(_), span }, _, ..]) = (doc, rest) {
        let warning =
            Diagnostic::error(Reason::InvalidSignature, *span, "the text behind the parameters says nothing");
        reading
            .warnings
            .push(warning.hint(format!("Documentation stands before them: (defn {text} \"…\" [params] …).")));
    }
    Ok(Declared {
        namespace: 0,
        name,
        text,
        doc,
        metadata,
        is_private,
        body: DeclaredBody::Function(rest),
        span: form.span,
        arity: Some(arity_of(reading.names, rest)),
        parameters: parameters(reading.names, rest),
    })
}

/// `(def name "doc"? value)`.
fn constant<'a>(reading: &ReadContext<'_, 'a>, form: &Form<'a>, rest: Forms<'a>) -> Fallible<Declared<'a>> {
    let (name, doc, value) = match rest {
        [name, value] => (name, None, value),
        [name, Form { kind: FormKind::Str(doc), .. }, value] => (name, Some(*doc), value),
        _ => {
            let message = format!("malformed def in prelude: {}", reading.shown(form));
            return Err(error(Reason::InvalidSignature, form.span, message)
                .hint("Write (def name value) or (def name \"what it is\" value)."));
        }
    };
    let (name, text) = name_of(reading, name)?;
    Ok(Declared {
        namespace: 0,
        name,
        text,
        doc,
        metadata: Metadata::default(),
        is_private: false,
        body: DeclaredBody::Constant(value),
        span: form.span,
        arity: None,
        parameters: Vec::new(),
    })
}

/// The lists of parameters of a function.
fn lists<'a>(parts: Forms<'a>) -> impl Iterator<Item = Forms<'a>> {
    let alone = parts.first().and_then(Form::vector);
    let each = parts.iter().filter_map(|form| form.children().first().and_then(Form::vector));
    alone.into_iter().chain(each.take(if alone.is_some() { 0 } else { usize::MAX }))
}

fn arity_of(names: &Names<'_>, parts: &[Form<'_>]) -> CallArity {
    let mut whole = CallArity { min: usize::MAX, max: Some(0) };
    for list in lists(parts) {
        let rest = list.iter().position(|form| form.symbol().is_some_and(|name| names.text(name) == "&"));
        let fixed = rest.unwrap_or(list.len());
        whole.min = whole.min.min(fixed);
        whole.max = if rest.is_some() { None } else { whole.max.map(|max| max.max(fixed)) };
    }
    whole
}

/// The parameters of each arity, as `x y`; a destructured one is named by its number.
fn parameters(names: &Names<'_>, parts: &[Form<'_>]) -> Vec<Box<str>> {
    let shown = |(at, form): (usize, &Form<'_>)| match form.symbol() {
        Some(name) => names.text(name).to_owned(),
        None => format!("arg{}", at + 1),
    };
    lists(parts)
        .map(|list| list.iter().enumerate().map(shown).collect::<Vec<_>>().join(" ").into_boxed_str())
        .collect()
}
