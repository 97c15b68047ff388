//! Parses the metadata of a definition or namespace of a prelude (a Lisp library): visibility, effect, requirements,
//! and how it is offered as a tool.

use super::declare::ReadContext;
use crate::diagnostic::{Diagnostic, Fallible, Hint, error};
use crate::form::{Form, FormKind};
use ptc_vm::Reason;
use ptc_vm::fault::nearest;

/// Where an export is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Visibility {
    /// Prompts list it.
    #[default]
    Prompt,
    /// Only searches by programs find it.
    Discoverable,
}

impl Visibility {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Visibility::Prompt => "prompt",
            Visibility::Discoverable => "discoverable",
        }
    }
}

/// What a call of an export may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExportEffect {
    /// Nothing.
    Read,
    /// Something.
    Write,
    /// Not known.
    #[default]
    Unknown,
}

impl ExportEffect {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ExportEffect::Read => "read",
            ExportEffect::Write => "write",
            ExportEffect::Unknown => "unknown",
        }
    }
}

/// The parsed metadata; empty by default.
#[derive(Clone, Debug, Default)]
pub(super) struct Metadata {
    pub(super) visibility: Option<Visibility>,
    pub(super) effect: Option<ExportEffect>,
    pub(super) requires: Vec<Box<str>>,
    pub(super) provider: Option<Box<str>>,
    pub(super) tool: Option<ToolMetadata>,
}

/// How an export is offered as a tool of its own (`:tool`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolMetadata {
    /// Its description for models; without one its documentation.
    pub description: Option<Box<str>>,
    /// JSON Schema of its arguments, as JSON text.
    pub input: Option<Box<str>>,
    /// JSON Schema of its result, as JSON text.
    pub output: Option<Box<str>>,
}

/// The keys with a meaning.
const KEYS: [&str; 5] = ["visibility", "effect", "requires", "provider-ref", "tool"];

impl Metadata {
    /// Parses a map; that of a namespace may only have a visibility.
    pub(super) fn read(
        reading: &mut ReadContext<'_, '_>,
        form: Option<&Form<'_>>,
        of_namespace: bool,
    ) -> Fallible<Metadata> {
        let mut metadata = Metadata::default();
        let Some(Form { kind: FormKind::Map(items), .. }) = form else { return Ok(metadata) };
        for pair in items.chunks_exact(2) {
            let [key_form, value] = pair else { continue };
            let Some(key) = key_form.keyword().map(|key| reading.names.text(key)) else {
                let shown = reading.shown(key_form);
                let message = format!("prelude metadata keys must be keywords, got: {shown}");
                return Err(error(Reason::InvalidMetadata, key_form.span, message)
                    .hint(format!("Write :{} …", shown.trim_matches('"'))));
            };
            match key {
                "visibility" => metadata.visibility = Some(visibility(reading, value)?),
                "effect" if !of_namespace => metadata.effect = effect(reading, value),
                "requires" if !of_namespace => metadata.requires = requires(reading, value)?,
                "provider-ref" if !of_namespace => metadata.provider = Some(provider(reading, value)?),
                "tool" if !of_namespace => metadata.tool = Some(tool(reading, value)?),
                other => reading.unknown_key(other, key_form, of_namespace),
            }
        }
        Ok(metadata)
    }
}

impl ReadContext<'_, '_> {
    fn unknown_key(&mut self, key: &str, form: &Form<'_>, of_namespace: bool) {
        let message = format!("metadata :{key} has no meaning here");
        let warning = Diagnostic::warning(Reason::InvalidMetadata, form.span, message);
        let known = if of_namespace { &KEYS[..1] } else { &KEYS[..] };
        let hyphens = key.replace('_', "-");
        self.warnings.push(match nearest(&hyphens, known.iter().copied()) {
            Some(near) => warning.hint(format!("Did you mean :{near}?")),
            None => warning.hint(format!("Keys are :{}.", known.join(", :"))),
        });
    }
}

fn visibility(reading: &ReadContext<'_, '_>, form: &Form<'_>) -> Fallible<Visibility> {
    let keyword = form.keyword().map(|keyword| reading.names.text(keyword));
    match keyword {
        Some("prompt") => Ok(Visibility::Prompt),
        Some("discoverable") => Ok(Visibility::Discoverable),
        _ => {
            let shown = match keyword {
                Some(_) => format!("`{}`", reading.shown(form)),
                None => reading.shown(form),
            };
            let message = format!("invalid visibility {shown} (expected :prompt or :discoverable)");
            Err(error(Reason::InvalidVisibility, form.span, message)
                .hint("A helper that programs should not see at all is a (defn- …)."))
        }
    }
}

/// An invalid effect is ignored.
fn effect(reading: &mut ReadContext<'_, '_>, form: &Form<'_>) -> Option<ExportEffect> {
    let text = match form.kind {
        FormKind::Keyword(name) => reading.names.text(name),
        FormKind::Str(text) => text,
        _ => "",
    };
    let known = [ExportEffect::Read, ExportEffect::Write, ExportEffect::Unknown];
    let found = known.into_iter().find(|effect| effect.name() == text);
    if found.is_none() {
        let message = format!("effect {} is unknown and says nothing", reading.shown(form));
        let warning = Diagnostic::warning(Reason::InvalidMetadata, form.span, message);
        reading.warnings.push(warning.hint("Write :read, :write or :unknown."));
    }
    found
}

fn requires(reading: &ReadContext<'_, '_>, form: &Form<'_>) -> Fallible<Vec<Box<str>>> {
    let invalid = |form: &Form<'_>, message: String| {
        error(Reason::InvalidRequires, form.span, message)
            .hint("Write {:requires [\"upstream:server/tool\" \"tool:name\"]}.")
    };
    let Some(items) = form.vector() else {
        let shown = reading.shown(form);
        return Err(invalid(form, format!("prelude :requires must be a list of strings, got: {shown}")));
    };
    let wrong: Vec<&Form<'_>> = items.iter().filter(|item| !matches!(item.kind, FormKind::Str(_))).collect();
    if let Some(first) = wrong.first() {
        let shown: Vec<String> = wrong.iter().map(|item| reading.shown(item)).collect();
        let message =
            format!("prelude :requires must be a list of strings; invalid entries: [{}]", shown.join(", "));
        return Err(invalid(first, message));
    }
    let text = |item: &Form<'_>| match item.kind {
        FormKind::Str(text) => Some(text.into()),
        _ => None,
    };
    Ok(items.iter().filter_map(text).collect())
}

fn tool(reading: &ReadContext<'_, '_>, form: &Form<'_>) -> Fallible<ToolMetadata> {
    const USAGE: &str =
        "Write {:tool {:description \"What it does.\" :input {:type \"object\" …} :output {…}}}.";
    let invalid = |span, message: String| error(Reason::InvalidMetadata, span, message).hint(USAGE);
    let mut tool = ToolMetadata::default();
    let FormKind::Map(items) = form.kind else {
        return Err(invalid(form.span, format!("prelude :tool must be a map, got: {}", reading.shown(form))));
    };
    for pair in items.chunks_exact(2) {
        let [key, value] = pair else { continue };
        let name = key.keyword().map(|key| reading.names.text(key)).unwrap_or_default();
        match (name, &value.kind) {
            ("description", FormKind::Str(text)) => tool.description = Some((*text).into()),
            ("input" | "output", FormKind::Map(_)) => {
                let mut json = String::new();
                if let Err(wrong) = write_json(reading, value, &mut json) {
                    let message = format!("a schema in :tool is plain data, got: {}", reading.shown(wrong));
                    return Err(invalid(wrong.span, message));
                }
                let place = if name == "input" { &mut tool.input } else { &mut tool.output };
                *place = Some(json.into());
            }
            _ => {
                let message =
                    format!("prelude :tool has no member {} {}", reading.shown(key), reading.shown(value));
                return Err(invalid(key.span, message));
            }
        }
    }
    Ok(tool)
}

/// Writes a literal as JSON; keywords are texts. Forms nest at most 64 levels deep, so the native stack is safe.
///
/// # Errors
/// The form that is no plain data.
fn write_json<'f, 'a>(
    reading: &ReadContext<'_, 'a>,
    form: &'f Form<'a>,
    out: &mut String,
) -> Result<(), &'f Form<'a>> {
    match &form.kind {
        FormKind::Nil => out.push_str("null"),
        FormKind::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        FormKind::Int(number) => out.push_str(&number.to_string()),
        FormKind::Float(number) if number.is_finite() => out.push_str(&format!("{number:?}")),
        FormKind::Str(text) => write_text(text, out),
        FormKind::Keyword(name) => write_text(reading.names.text(*name), out),
        FormKind::Vector(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_json(reading, item, out)?;
            }
            out.push(']');
        }
        FormKind::Map(items) => {
            out.push('{');
            for (at, pair) in items.chunks_exact(2).enumerate() {
                let [key, value] = pair else { continue };
                if !matches!(key.kind, FormKind::Str(_) | FormKind::Keyword(_)) {
                    return Err(key);
                }
                out.push_str(if at > 0 { "," } else { "" });
                write_json(reading, key, out)?;
                out.push(':');
                write_json(reading, value, out)?;
            }
            out.push('}');
        }
        _ => return Err(form),
    }
    Ok(())
}

/// Writes a text as JSON.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            char if char < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push('"');
}

fn provider(reading: &ReadContext<'_, '_>, form: &Form<'_>) -> Fallible<Box<str>> {
    match form.kind {
        FormKind::Str(text) => Ok(text.into()),
        _ => {
            let message = format!("prelude :provider-ref must be a string, got: {}", reading.shown(form));
            Err(error(Reason::InvalidMetadata, form.span, message)
                .hint("Write {:provider-ref \"upstream:server/tool\"}."))
        }
    }
}
