//! Names of the source text, interned: symbols and keywords are compared by number.

/// A map of names and constants: its hash is quick and seeded, so that texts cannot be chosen to collide.
pub(crate) type NameMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// An interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(u32);

impl Name {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// All names of one compilation.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    numbers: NameMap<&'a str, Name>,
    texts: Vec<&'a str>,
}

impl<'a> Names<'a> {
    pub(crate) fn intern(&mut self, text: &'a str) -> Name {
        if let Some(&name) = self.numbers.get(text) {
            return name;
        }
        let name = Name(self.texts.len() as u32);
        self.texts.push(text);
        self.numbers.insert(text, name);
        name
    }

    pub(crate) fn text(&self, name: Name) -> &'a str {
        self.texts.get(name.0 as usize).copied().unwrap_or("")
    }

    /// The name of a text that the program mentions.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        self.numbers.get(text).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// Splits `namespace/name` at the first slash that has text on both sides.
pub(crate) fn split_qualified(text: &str) -> (Option<&str>, &str) {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => (Some(namespace), name),
        _ => (None, text),
    }
}
