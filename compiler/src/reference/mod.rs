//! The language reference: every function, special form, constant and host form (such as a tool call), with its
//! signature, one line of documentation and examples. `docs/language.md` and `(doc name)` are generated from these
//! entries, and a test executes every example.
//!
//! Functions come from the builtin table of the VM, special forms from `crate::names`, all other names from `others`,
//! and the examples from `examples`.

mod examples;
mod others;

use crate::names::{Special, split_qualified};
use ptc_vm::builtins::{self, Category};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// Evaluates its parts by its own rules.
    SpecialForm,
    /// A value that can be called and passed on.
    Function,
    /// A name that stands for a value.
    Constant,
    /// Reaches the host: tools, budget, input.
    HostForm,
}

impl EntryKind {
    /// The name of the kind in documentation.
    pub fn label(self) -> &'static str {
        match self {
            EntryKind::SpecialForm => "special form",
            EntryKind::Function => "function",
            EntryKind::Constant => "constant",
            EntryKind::HostForm => "host form",
        }
    }
}

/// A program and its printed result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The program.
    pub program: &'static str,
    /// Its printed result.
    pub result: &'static str,
}

/// One documented name.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Namespace as Clojure calls it: `clojure.core`, `clojure.string`, `Math`, `java`, `tool` …
    pub namespace: &'static str,
    /// The name as a program writes it, `json/parse-string` with its prefix.
    pub name: &'static str,
    /// Its kind.
    pub kind: EntryKind,
    /// Its signature; `?` marks an optional argument, `…` any number of the argument before it.
    pub signature: &'static str,
    /// One line of documentation.
    pub doc: &'static str,
    /// At least one.
    pub examples: Vec<Example>,
}

/// Every documented name, in the order of namespaces and then names.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// The entries that a reference in a program may mean: `map`, `str/join`, `clojure.set/join`, `LocalDate/parse`.
/// There are several if a plain name is in several namespaces (`join`); the one that the plain name calls comes
/// first.
pub fn find(reference: &str) -> Vec<&'static Entry> {
    let reference = reference.strip_prefix("java.time.").unwrap_or(reference);
    let by_name = |name: &str| -> Vec<&'static Entry> {
        BY_NAME.get(name).into_iter().flatten().map(|&row| &ENTRIES[row]).collect()
    };
    let whole = by_name(reference);
    if !whole.is_empty() {
        return whole;
    }
    let (Some(prefix), name) = split_qualified(reference) else { return Vec::new() };
    let Some((_, category)) = builtins::NAMESPACES.iter().find(|(known, _)| *known == prefix) else {
        return Vec::new();
    };
    let mut found = by_name(name);
    if *category != Category::Core {
        found.retain(|entry| entry.namespace == namespace(*category));
    }
    found
}

/// The namespaces that have entries, in order.
pub fn namespaces() -> Vec<&'static str> {
    let mut all: Vec<&'static str> = ENTRIES.iter().map(|entry| entry.namespace).collect();
    all.dedup();
    all
}

/// The name of a category's namespace in documentation.
fn namespace(category: Category) -> &'static str {
    match category {
        Category::Core => "clojure.core",
        Category::String => "clojure.string",
        Category::Set => "clojure.set",
        Category::Walk => "clojure.walk",
        Category::Regex => "regex",
        Category::Math => "Math",
        Category::Json => "json",
        Category::Interop => "java",
        Category::Internal => "",
    }
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut all: Vec<Entry> = Vec::new();
    let mut add = |namespace, name: &'static str, kind, signature, doc| {
        let examples = examples::find(namespace, name);
        all.push(Entry { namespace, name, kind, signature, doc, examples });
    };
    for (_, row) in builtins::all().filter(|(_, row)| row.category != Category::Internal) {
        let host = row
            .name
            .split_once('/')
            .and_then(|(prefix, _)| builtins::HOST_NAMESPACES.iter().find(|namespace| **namespace == prefix));
        if let Some(namespace) = host {
            add(namespace, row.name, EntryKind::HostForm, row.usage, row.doc);
            continue;
        }
        let namespace = namespace(row.category);
        let qualified = row.usage.strip_prefix('(').and_then(|usage| usage.split([' ', ')']).next());
        let name = match (row.category, qualified) {
            (Category::Json, Some(qualified)) => qualified,
            _ => row.name,
        };
        add(namespace, name, EntryKind::Function, row.usage, row.doc);
    }
    for special in Special::ALL.iter().filter(|special| !special.doc().is_empty()) {
        let kind = EntryKind::SpecialForm;
        add("clojure.core", special.name(), kind, special.usage(), special.doc());
    }
    for &(namespace, name, kind, signature, doc) in others::OTHERS {
        add(namespace, name, kind, signature, doc);
    }
    all.sort_by_key(|entry| (entry.namespace, entry.name));
    all
});

static BY_NAME: LazyLock<HashMap<&'static str, Vec<usize>>> = LazyLock::new(|| {
    let mut names: HashMap<&'static str, Vec<usize>> = HashMap::new();
    for (row, entry) in ENTRIES.iter().enumerate() {
        names.entry(entry.name).or_default().push(row);
    }
    for (name, rows) in &mut names {
        // The entry that the plain name calls comes first.
        let plain = builtins::lookup(None, name).map(|builtin| namespace(builtin.info().category));
        rows.sort_by_key(|&row| plain.is_some_and(|plain| ENTRIES[row].namespace != plain));
    }
    names
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_programs_write_them() {
        let first = |reference: &str| find(reference).first().map(|entry| (entry.namespace, entry.name));
        assert_eq!(first("map"), Some(("clojure.core", "map")));
        assert_eq!(first("core/map"), Some(("clojure.core", "map")));
        assert_eq!(first("str/join"), Some(("clojure.string", "join")));
        assert_eq!(first("clojure.set/join"), Some(("clojure.set", "join")));
        assert_eq!(first("join"), Some(("clojure.string", "join")));
        assert_eq!(find("join").len(), 2);
        assert_eq!(first("json/parse-string"), Some(("json", "json/parse-string")));
        assert_eq!(first("java.time.LocalDate/parse"), Some(("java", "LocalDate/parse")));
        assert_eq!(first("let").map(|(namespace, _)| namespace), Some("clojure.core"));
        assert_eq!(first("tool/call"), Some(("tool", "tool/call")));
        assert_eq!(first("str/map"), None);
        assert_eq!(first("nope"), None);
    }
}
