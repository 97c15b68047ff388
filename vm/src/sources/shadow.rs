//! Defines `Shadow`, the record of which servers' data (sources) a value and the parts of the value depend on, so that
//! data-flow rules can decide whether a tool call may receive the value. It lies at the place of the value (a register
//! or a name), not in the value.

use super::Sources;
use crate::memory::account;
use std::rc::Rc;

/// Levels of parts that have shadows of their own.
const DEEPEST: u8 = 6;

/// Parts of one value that have shadows of their own, at all levels. Work on a shadow is bounded by it.
pub(crate) const MOST_PARTS: usize = 256;

/// The sources of a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    /// Of the value without its parts: that it is there, its kind, its size, the keys it has.
    pub(crate) own: Sources,
    /// Of its parts in addition; `None`: they have no others.
    parts: Option<Rc<Parts>>,
}

#[derive(Debug)]
struct Parts {
    known: Known,
    /// Of all parts that are not known.
    rest: Sources,
    /// Of all parts together.
    deep: Sources,
    /// Levels of parts below.
    depth: u8,
    /// Parts that have shadows of their own, at all levels.
    size: usize,
    /// Logical bytes.
    bytes: usize,
}

/// Parts that have shadows of their own.
#[derive(Debug)]
enum Known {
    /// By the names of keys. A name covers every key of this text.
    Keys(Vec<(Rc<str>, Shadow)>),
    /// The first items of a vector, or what a function has captured.
    Items(Vec<Shadow>),
}

impl Drop for Parts {
    fn drop(&mut self) {
        account::release(self.bytes);
    }
}

impl Parts {
    fn new(known: Known, rest: Sources) -> Parts {
        let start = (rest, 0, 0);
        let add = |(deep, depth, size): (Sources, u8, usize), part: &Shadow| {
            (deep.union(part.deep()), depth.max(part.depth()), size + 1 + part.size())
        };
        let (count, (deep, depth, size)) = match &known {
            Known::Keys(parts) => (parts.len(), parts.iter().map(|(_, part)| part).fold(start, add)),
            Known::Items(parts) => (parts.len(), parts.iter().fold(start, add)),
        };
        let bytes = size_of::<Parts>() + count * (size_of::<Shadow>() + size_of::<Rc<str>>());
        account::charge(bytes);
        Parts { known, rest, deep, depth: depth + 1, size, bytes }
    }
}

/// The name of a key as it is compared: programs may read `:a-b` as `"a_b"`.
pub(crate) fn key_name(text: &str) -> Rc<str> {
    if text.contains('-') { text.replace('-', "_").into() } else { text.into() }
}

impl Shadow {
    /// A value with parts that have no sources of their own.
    pub(crate) fn flat(sources: Sources) -> Shadow {
        Shadow { own: sources, parts: None }
    }

    fn with_parts(own: Sources, known: Known, rest: Sources) -> Shadow {
        let parts = Parts::new(known, rest);
        if parts.deep.is_within(own) {
            return Shadow::flat(own);
        }
        let is_large = parts.depth > DEEPEST || parts.size > MOST_PARTS;
        let parts = if is_large { Parts::new(Known::Items(Vec::new()), parts.deep) } else { parts };
        Shadow { own, parts: Some(Rc::new(parts)) }
    }

    /// A map with these entries; all others have the sources of `rest`.
    pub(crate) fn of_keys(own: Sources, entries: Vec<(Rc<str>, Shadow)>, rest: Sources) -> Shadow {
        Shadow::with_parts(own, Known::Keys(entries), rest)
    }

    /// A vector with these items; further ones have the sources of `rest`.
    pub(crate) fn of_items(own: Sources, items: Vec<Shadow>, rest: Sources) -> Shadow {
        Shadow::with_parts(own, Known::Items(items), rest)
    }

    /// A collection; of its parts only all their sources together are known.
    pub(crate) fn of_rest(own: Sources, rest: Sources) -> Shadow {
        Shadow::with_parts(own, Known::Items(Vec::new()), rest)
    }

    /// The sources of the value with all of its parts.
    pub(crate) fn deep(&self) -> Sources {
        self.parts.as_ref().map_or(self.own, |parts| parts.deep.union(self.own))
    }

    /// True if neither the value nor a part of it has a source.
    pub(crate) fn is_clear(&self) -> bool {
        self.own.is_empty() && self.parts.is_none()
    }

    fn depth(&self) -> u8 {
        self.parts.as_ref().map_or(0, |parts| parts.depth)
    }

    /// Parts that have shadows of their own, at all levels.
    pub(crate) fn size(&self) -> usize {
        self.parts.as_ref().map_or(0, |parts| parts.size)
    }

    /// The sources of parts that are not known.
    pub(crate) fn rest(&self) -> Sources {
        self.parts.as_ref().map_or(self.own, |parts| parts.rest)
    }

    /// A value that is there, or is what it is, because of these sources too.
    pub(crate) fn marked(mut self, sources: Sources) -> Shadow {
        self.own = self.own.union(sources);
        self
    }

    /// The part under a key of this name.
    pub(crate) fn key(&self, name: &str) -> Shadow {
        let found = match self.parts.as_deref() {
            None => return Shadow::flat(self.own),
            Some(Parts { known: Known::Keys(parts), rest, .. }) => {
                let found = parts.iter().find(|(known, _)| **known == *name);
                found.map_or(Shadow::flat(*rest), |(_, part)| part.clone())
            }
            Some(Parts { deep, .. }) => Shadow::flat(*deep),
        };
        found.marked(self.own)
    }

    /// True when parts under keys of this name are known.
    pub(crate) fn has_key(&self, name: &str) -> bool {
        self.keys().iter().any(|(known, _)| **known == *name)
    }

    /// The known parts by keys.
    pub(crate) fn keys(&self) -> &[(Rc<str>, Shadow)] {
        match self.parts.as_deref() {
            Some(Parts { known: Known::Keys(parts), .. }) => parts,
            _ => &[],
        }
    }

    /// The known items.
    pub(crate) fn known_items(&self) -> &[Shadow] {
        match self.parts.as_deref() {
            Some(Parts { known: Known::Items(parts), .. }) => parts,
            _ => &[],
        }
    }

    /// The item at this place.
    pub(crate) fn item(&self, index: usize) -> Shadow {
        let found = match self.parts.as_deref() {
            None => return Shadow::flat(self.own),
            Some(Parts { known: Known::Items(parts), rest, .. }) => {
                parts.get(index).cloned().unwrap_or_else(|| Shadow::flat(*rest))
            }
            Some(Parts { deep, .. }) => Shadow::flat(*deep),
        };
        found.marked(self.own)
    }

    /// Any item.
    pub(crate) fn any_item(&self) -> Shadow {
        match self.parts.as_deref() {
            Some(Parts { known: Known::Items(parts), rest, .. }) if !parts.is_empty() => {
                let first = parts[0].clone();
                let item = parts[1..].iter().fold(first, |all, part| all.join(part));
                item.marked(*rest).marked(self.own)
            }
            _ => Shadow::flat(self.deep()),
        }
    }

    /// The items of a vector of this length, if they are known one by one.
    pub(crate) fn items(&self, length: usize) -> Option<Vec<Shadow>> {
        if length > MOST_PARTS
            || !matches!(self.parts.as_deref(), None | Some(Parts { known: Known::Items(_), .. }))
        {
            return None;
        }
        Some((0..length).map(|index| self.item(index)).collect())
    }

    /// A value that is one of two.
    pub(crate) fn join(&self, other: &Shadow) -> Shadow {
        let own = self.own.union(other.own);
        match (self.parts.as_deref(), other.parts.as_deref()) {
            (None, None) => Shadow::flat(own),
            (Some(a), Some(b)) if std::ptr::eq(a, b) => Shadow { own, parts: self.parts.clone() },
            (Some(Parts { known: Known::Keys(a), .. }), Some(Parts { known: Known::Keys(b), .. }))
                if a.len() + b.len() <= MOST_PARTS =>
            {
                let mut entries: Vec<(Rc<str>, Shadow)> = Vec::with_capacity(a.len() + b.len());
                for (name, part) in a {
                    entries.push((name.clone(), part.join(&other.key(name))));
                }
                for (name, part) in b.iter().filter(|(name, _)| !self.has_key(name)) {
                    entries.push((name.clone(), part.join(&self.key(name))));
                }
                Shadow::of_keys(own, entries, self.rest().union(other.rest()))
            }
            (Some(Parts { known: Known::Items(a), .. }), Some(Parts { known: Known::Items(b), .. })) => {
                let items = (0..a.len().max(b.len())).map(|index| self.item(index).join(&other.item(index)));
                Shadow::of_items(own, items.collect(), self.rest().union(other.rest()))
            }
            _ => Shadow::flat(self.deep().union(other.deep())),
        }
    }
}
