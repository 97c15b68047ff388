//! Looks up names that need no upstream in their sources (`Provider`), among them the language itself, and writes the
//! documentation of a name. Providers are asked in order: preludes, tools of the host, the language; the first that
//! knows a name wins.

use super::search::Query;
use ptc_calls::tools::text::summary;
use ptc_compiler::prelude::ExportEffect;
use ptc_compiler::reference::{self, Entry, EntryKind};

/// A namespace under its names in programs and in Clojure, and what it holds.
struct Namespace {
    name: &'static str,
    /// Other names of it.
    aliases: &'static [&'static str],
    /// Prefix of its members in programs; empty when the plain name suffices.
    prefix: &'static str,
    /// Namespaces of the language reference that belong to it.
    holds: &'static [&'static str],
    /// A Java class or another group that `all-ns` does not list.
    is_class: bool,
}

const fn namespace(
    name: &'static str,
    aliases: &'static [&'static str],
    prefix: &'static str,
    holds: &'static [&'static str],
) -> Namespace {
    Namespace { name, aliases, prefix, holds, is_class: false }
}

/// The namespaces of the language, in name order.
const NAMESPACES: &[Namespace] = &[
    Namespace { is_class: true, ..namespace("Math", &[], "Math/", &["Math"]) },
    namespace("clojure.core", &["core", "user"], "", &["clojure.core", "regex"]),
    namespace("clojure.set", &["set"], "set/", &["clojure.set"]),
    namespace("clojure.string", &["str", "string"], "str/", &["clojure.string"]),
    namespace("clojure.walk", &["walk"], "walk/", &["clojure.walk"]),
    Namespace { is_class: true, ..namespace("data", &[], "", &["data"]) },
    Namespace { is_class: true, ..namespace("java", &[], "", &["java"]) },
    namespace("json", &[], "", &["json"]),
    Namespace { is_class: true, ..namespace("tool", &[], "", &["tool"]) },
];

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

/// A source of names.
pub(crate) trait Provider: Sync {
    /// Namespaces that `all-ns` lists.
    fn namespaces(&self) -> Vec<String>;

    /// The full name of a namespace or class, if it has that.
    fn namespace(&self, name: &str) -> Option<String>;

    /// The members of a namespace or class, in name order.
    fn members(&self, namespace: &str) -> Option<Vec<NameRecord>>;

    /// The documentation of a namespace.
    fn about(&self, _namespace: &str) -> Option<String> {
        None
    }

    /// The names that a reference can mean, the likeliest first.
    fn find(&self, reference: &str) -> Vec<NameRecord>;

    /// Every name with a positive score.
    fn search(&self, query: &Query) -> Vec<(u32, NameRecord)>;

    /// Every reference, for suggestions.
    fn references(&self) -> Vec<String>;

    /// The definition of a reference, with notes about it.
    fn source(&self, _reference: &str) -> Option<String> {
        None
    }
}

/// The names of the language.
pub(crate) fn language() -> &'static dyn Provider {
    &Language
}

/// The answer of the first provider that has one.
pub(crate) fn first<T>(providers: &[&dyn Provider], ask: impl Fn(&dyn Provider) -> Option<T>) -> Option<T> {
    providers.iter().find_map(|provider| ask(*provider))
}

/// The records that a reference can mean, from the first provider that knows it.
pub(crate) fn find(providers: &[&dyn Provider], reference: &str) -> Vec<NameRecord> {
    let found = |provider: &dyn Provider| Some(provider.find(reference)).filter(|found| !found.is_empty());
    first(providers, found).unwrap_or_default()
}

/// Functions, special forms and constants of the language.
struct Language;

impl Provider for Language {
    fn namespaces(&self) -> Vec<String> {
        NAMESPACES.iter().filter(|row| !row.is_class).map(|row| row.name.to_owned()).collect()
    }

    fn namespace(&self, name: &str) -> Option<String> {
        match row_of(name) {
            Some(row) => Some(row.name.to_owned()),
            None => self.members(name).map(|_| name.to_owned()),
        }
    }

    fn members(&self, namespace: &str) -> Option<Vec<NameRecord>> {
        let entries = reference::entries().iter();
        let mut members: Vec<NameRecord> = match row_of(namespace) {
            Some(row) => entries.filter(|entry| row.holds.contains(&entry.namespace)).map(record).collect(),
            None => {
                // Members of a class are written `Class/member`.
                let class = namespace.strip_prefix("java.time.").unwrap_or(namespace);
                let prefix = format!("{class}/");
                entries.filter(|entry| entry.name.starts_with(&prefix)).map(record).collect()
            }
        };
        members.sort_by(|a, b| a.reference.cmp(&b.reference));
        (!members.is_empty()).then_some(members)
    }

    fn find(&self, reference: &str) -> Vec<NameRecord> {
        reference::find(reference).into_iter().map(record).collect()
    }

    fn search(&self, query: &Query) -> Vec<(u32, NameRecord)> {
        let score =
            |entry: &'static Entry| query.score(std::iter::once(entry.name), std::iter::once(entry.doc));
        let scored = reference::entries().iter().map(|entry| (score(entry), entry));
        scored.filter(|(score, _)| *score > 0).map(|(score, entry)| (score, record(entry))).collect()
    }

    fn references(&self) -> Vec<String> {
        reference::entries().iter().map(|entry| record(entry).reference).collect()
    }
}

fn row_of(namespace: &str) -> Option<&'static Namespace> {
    NAMESPACES.iter().find(|row| row.name == namespace || row.aliases.contains(&namespace))
}

fn record(entry: &'static Entry) -> NameRecord {
    let row = NAMESPACES.iter().find(|row| row.holds.contains(&entry.namespace));
    let prefix = row.map_or("", |row| row.prefix);
    let is_interop = matches!(entry.namespace, "java" | "Math");
    NameRecord {
        origin: NameOrigin::Language,
        namespace: row.map_or(entry.namespace, |row| row.name).to_owned(),
        name: entry
            .name
            .rsplit_once('/')
            .map_or(entry.name, |(_, name)| if name.is_empty() { entry.name } else { name })
            .to_owned(),
        reference: if entry.name.starts_with(prefix) {
            entry.name.to_owned()
        } else {
            format!("{prefix}{}", entry.name)
        },
        kind: match entry.kind {
            _ if is_interop => "java-interop",
            EntryKind::SpecialForm => "special-form",
            EntryKind::HostForm => "host-form",
            EntryKind::Function | EntryKind::Constant => "ptc-builtin",
        },
        section: entry.kind.label(),
        doc: entry.doc.to_owned(),
        signatures: signatures(entry.signature),
        examples: entry
            .examples
            .iter()
            .map(|example| (example.program.to_owned(), example.result.to_owned()))
            .collect(),
        export: None,
    }
}

/// Splits `(f a), (f a b)`.
fn signatures(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = text.split("), (").map(str::to_owned).collect();
    let last = parts.len() - 1;
    for (at, part) in parts.iter_mut().enumerate() {
        if at > 0 {
            part.insert(0, '(');
        }
        if at < last {
            part.push(')');
        }
    }
    parts
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_reference_is_a_member_of_its_namespace() {
        for entry in reference::entries() {
            let made = record(entry);
            let members = Language.members(&made.namespace).unwrap_or_default();
            assert!(members.iter().any(|member| member.reference == made.reference), "{made:?}");
        }
    }

    #[test]
    fn every_reference_finds_its_own_record() {
        for entry in reference::entries() {
            let made = record(entry);
            let found = find(&[language()], &made.reference);
            assert!(found.iter().any(|found| found.reference == made.reference), "{made:?}");
            assert!(!made.name.is_empty() && !made.doc.is_empty() && !made.signatures.is_empty(), "{made:?}");
        }
    }

    #[test]
    fn namespaces_are_those_of_clojure() {
        let all = ["clojure.core", "clojure.set", "clojure.string", "clojure.walk", "json"];
        assert_eq!(Language.namespaces(), all);
        assert_eq!(Language.namespace("str").as_deref(), Some("clojure.string"));
        assert_eq!(Language.namespace("fs"), None);
        assert!(
            Language
                .members("Math")
                .is_some_and(|members| members.iter().any(|member| member.name == "sqrt"))
        );
        assert!(Language.members("LocalDate").is_some());
    }

    #[test]
    fn several_signatures_are_told_apart() {
        assert_eq!(signatures("(f a)"), ["(f a)"]);
        assert_eq!(signatures("(f a), (f a b)"), ["(f a)", "(f a b)"]);
    }
}
