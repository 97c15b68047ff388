//! Lets programs find the functions, special forms and namespaces of the language itself with `apropos`, `dir`, `doc`
//! and similar forms.

use super::provider::Provider;
use super::record::{NameOrigin, NameRecord};
use super::search::Query;
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

/// The names of the language.
pub(crate) fn language() -> &'static dyn Provider {
    &Language
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::lisp::discovery::provider::find;

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
