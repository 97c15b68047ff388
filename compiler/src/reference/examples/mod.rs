//! Looks up the example programs, with their printed results, that the language reference shows for a function, special
//! form or other name. Every documented name has at least one.

mod core;
mod forms;
mod other;
mod text;

use super::Example;

/// The examples of one namespace: name, program, result.
type Table = &'static [(&'static str, &'static str, &'static str)];

const TABLES: &[(&str, Table)] = &[
    ("clojure.core", core::CORE),
    ("clojure.core", forms::FORMS),
    ("tool", forms::TOOL),
    ("budget", forms::BUDGET),
    ("data", forms::DATA),
    ("prompt", forms::PROMPT),
    ("resource", forms::RESOURCE),
    ("spill", forms::SPILL),
    ("clojure.string", text::STRING),
    ("regex", text::REGEX),
    ("json", text::JSON),
    ("clojure.set", other::SET),
    ("clojure.walk", other::WALK),
    ("Math", other::MATH),
    ("java", other::JAVA),
];

/// The examples of a name.
pub(super) fn find(namespace: &str, name: &str) -> Vec<Example> {
    let rows = TABLES.iter().filter(|(known, _)| *known == namespace).flat_map(|(_, table)| *table);
    let found = rows.filter(|(known, _, _)| *known == name);
    found.map(|&(_, program, result)| Example { program, result }).collect()
}

#[cfg(test)]
mod tests {
    use super::TABLES;
    use crate::reference::entries;

    #[test]
    fn every_example_belongs_to_a_name() {
        let known = |namespace: &str, name: &str| {
            entries().iter().any(|entry| entry.namespace == namespace && entry.name == name)
        };
        for (namespace, table) in TABLES {
            for (name, _, _) in *table {
                assert!(known(namespace, name), "{namespace} has no {name}");
            }
        }
    }

    #[test]
    fn every_name_has_signature_documentation_and_example() {
        for entry in entries() {
            assert!(!entry.signature.is_empty() && !entry.doc.is_empty(), "{}", entry.name);
            assert!(!entry.examples.is_empty(), "no example for {} of {}", entry.name, entry.namespace);
        }
    }
}
