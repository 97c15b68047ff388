//! Writes the name of a JSON property as the key that a PTC-Lisp program uses for it: a keyword where possible, else a
//! string.

use super::visible::literal;

/// A property name as a program writes the key: a keyword where possible, else a string.
pub(crate) fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.*+!?<>=".contains(c);
    if !name.is_empty() && name.chars().all(plain) && !name.ends_with('.') {
        format!(":{name}")
    } else {
        literal(name)
    }
}
