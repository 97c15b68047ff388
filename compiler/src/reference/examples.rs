//! One example or more for every documented name.

use super::Example;

/// The examples of one namespace: name, program, result.
type Table = &'static [(&'static str, &'static str, &'static str)];

const TABLES: &[(&str, Table)] = &[];

/// The examples of a name.
pub(super) fn of(namespace: &str, name: &str) -> Vec<Example> {
    let rows = TABLES.iter().filter(|(known, _)| *known == namespace).flat_map(|(_, table)| *table);
    let found = rows.filter(|(known, _, _)| *known == name);
    found.map(|&(_, program, result)| Example { program, result }).collect()
}
