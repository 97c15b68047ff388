//! Describes a name that programs can look up (function, tool, export of a library), and formats the description for
//! `doc`, `dir` and search results.

use ptc_calls::tools::text::summary;
use ptc_compiler::prelude::ExportEffect;

/// How many names the documentation of a namespace lists; also the default of `dir`.
const LISTED: usize = 50;

/// Where a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameOrigin {
    /// The language.
    Language,
    /// A namespace that the host attaches.
    Prelude,
    /// A tool of the host.
    Tool,
}

impl NameOrigin {
    /// Its word in lists and metadata.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            NameOrigin::Language => "local",
            NameOrigin::Prelude => "prelude",
            NameOrigin::Tool => "tool",
        }
    }
}

/// One name with its documentation.
#[derive(Clone, Debug)]
pub(crate) struct NameRecord {
    pub(crate) origin: NameOrigin,
    pub(crate) namespace: String,
    /// Name within the namespace.
    pub(crate) name: String,
    /// Name as programs write it.
    pub(crate) reference: String,
    /// `ptc-builtin`, `java-interop` …
    pub(crate) kind: &'static str,
    /// The kind of name, in words.
    pub(crate) section: &'static str,
    pub(crate) doc: String,
    pub(crate) signatures: Vec<String>,
    /// Programs and their results.
    pub(crate) examples: Vec<(String, String)>,
    /// Facts about an export of a prelude.
    pub(crate) export: Option<ExportFacts>,
}

/// Facts that only an export of a prelude has.
#[derive(Clone, Debug)]
pub(crate) struct ExportFacts {
    /// `None` if it takes any number of arguments, or has several arities.
    pub(crate) arity: Option<usize>,
    pub(crate) visibility: &'static str,
    pub(crate) effect: ExportEffect,
    pub(crate) provider: Option<String>,
    pub(crate) requires: Vec<String>,
}

impl NameRecord {
    /// `name - description` for a member of a namespace; for an export, how it is called.
    pub(crate) fn member_line(&self) -> String {
        match (&self.export, self.signatures.first()) {
            (Some(_), Some(signature)) => summary(signature, Some(&self.doc)),
            _ => summary(&self.name, Some(&self.doc)),
        }
    }

    /// `local: reference - description`, a line in search results.
    pub(crate) fn found_line(&self) -> String {
        format!("{}: {}", self.origin.word(), summary(&self.reference, Some(&self.doc)))
    }

    /// The result of `(doc name)`.
    pub(crate) fn documentation(&self) -> String {
        let mut text = self.reference.clone();
        let doc = match self.export {
            Some(_) => &self.doc.split_whitespace().collect::<Vec<_>>().join(" "),
            None => &self.doc,
        };
        let effect = self.export.as_ref().map(|export| export.effect).unwrap_or_default();
        let effect = if effect == ExportEffect::Unknown { "" } else { effect.name() };
        let signatures = if self.export.is_some() { "Signature" } else { "Signatures" };
        for (label, value) in [
            ("Description", doc),
            ("Kind", &self.kind.to_owned()),
            ("Namespace", &self.namespace),
            (signatures, &self.signatures.join(", ")),
            ("Effect", &effect.to_owned()),
        ] {
            if !value.is_empty() {
                text.push_str(&format!("\n{label}: {value}"));
            }
        }
        for (program, result) in &self.examples {
            text.push_str(&format!("\nExample: {program} => {result}"));
        }
        text
    }
}

/// The result of `(doc 'namespace)`: what it is for, and its names as `dir` lists them.
pub(crate) fn about_namespace(name: &str, about: Option<&str>, members: &[NameRecord]) -> String {
    let mut text = name.to_owned();
    let about = about.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    if !about.is_empty() {
        text.push_str(&format!("\nDescription: {about}"));
    }
    text.push_str(&format!("\nKind: namespace\nNames: {}", members.len()));
    for record in members.iter().take(LISTED) {
        text.push_str(&format!("\n  {}", record.member_line()));
    }
    if members.len() > LISTED {
        text.push_str(&format!("\n  … (dir '{name} {{:offset {LISTED}}}) lists the others"));
    }
    text
}
