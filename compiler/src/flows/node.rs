//! Represents a value in the data-flow analysis (a node): which data the value and each of its known parts may depend
//! on, and what may happen when it is called as a function.

use super::budget::Nodes;
use super::set::{Callables, SourceSet};

/// A value.
pub(super) type Val<'a> = &'a Node<'a>;

/// The number of a map's key, or, from `FIRST_INDEX` on, an index of a list; `parts` gives the numbers out.
pub(super) type Key = u16;

/// Levels of parts that are told apart. Deeper ones are one.
pub(super) const DEEPEST: u8 = 5;

/// Everything that is known about a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    /// Sources of the value without its parts: that it is there, its kind, its size, the keys it has.
    pub(super) own: SourceSet,
    /// Sources of the value with all of its parts.
    pub(super) deep: SourceSet,
    /// Sources of which parts it has, in addition to those of `own`: that a part is nil says less than that it is there.
    pub(super) keys: SourceSet,
    /// What a call of it may do.
    pub(super) calls: Callables,
    /// What a call of it or of a part may do.
    pub(super) deep_calls: Callables,
    /// Parts under known keys, in the order of the keys. What is found under a key is this or one of `rest`.
    pub(super) fields: &'a [(Key, Val<'a>)],
    /// All other parts.
    pub(super) rest: Rest<'a>,
    /// The constant that it is.
    pub(super) text: Text,
    /// Its functions may get their arguments at other positions than a call of it has them.
    pub(super) is_loose: bool,
    /// It is a list or nil: no map, set or text.
    pub(super) is_list: bool,
    /// Levels of parts below it.
    pub(super) depth: u8,
}

/// Parts of a value that no known key names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest<'a> {
    /// There are none.
    Nothing,
    /// They are like the value itself, about which nothing more is known. There are no fields then.
    Same,
    /// All of them together.
    Items(Val<'a>),
}

/// Whether a value is one constant of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// It has no value: the program does not get here.
    Never,
    /// A row of the constants.
    Row(u16),
    /// Something else.
    Other,
}

impl Text {
    fn join(self, other: Text) -> Text {
        match (self, other) {
            (Text::Never, text) | (text, Text::Never) => text,
            (a, b) if a == b => a,
            _ => Text::Other,
        }
    }
}

/// No value: the expression never ends normally.
pub(super) const NEVER: Node<'static> = Node {
    own: SourceSet::EMPTY,
    deep: SourceSet::EMPTY,
    keys: SourceSet::EMPTY,
    calls: Callables::NONE,
    deep_calls: Callables::NONE,
    fields: &[],
    rest: Rest::Nothing,
    text: Text::Never,
    is_loose: false,
    is_list: true,
    depth: 0,
};

impl<'a> Node<'a> {
    /// A value without parts.
    pub(super) fn scalar(sources: SourceSet) -> Node<'a> {
        Node {
            own: sources,
            deep: sources,
            calls: Callables::DATA,
            deep_calls: Callables::DATA,
            text: Text::Other,
            is_list: false,
            ..NEVER
        }
    }

    /// A value about whose parts nothing is known.
    pub(super) fn opaque(sources: SourceSet, calls: Callables) -> Node<'a> {
        let calls = calls.union(Callables::DATA);
        let is_loose = !calls.is_data();
        Node { calls, deep_calls: calls, rest: Rest::Same, is_loose, ..Node::scalar(sources) }
    }

    /// A value with these parts.
    pub(super) fn with_parts(
        own: SourceSet,
        fields: &'a [(Key, Val<'a>)],
        rest: Option<Val<'a>>,
    ) -> Node<'a> {
        let mut node = Node { fields, ..Node::scalar(own) };
        for part in fields.iter().map(|(_, part)| *part).chain(rest) {
            node.deep = node.deep.union(part.deep);
            node.deep_calls = node.deep_calls.union(part.deep_calls);
            node.depth = node.depth.max(part.depth + 1);
        }
        node.rest = rest.map_or(Rest::Nothing, Rest::Items);
        match node.depth > DEEPEST {
            true => Node::opaque(node.deep, node.deep_calls),
            false => node,
        }
    }

    /// Sources of which parts it has, and how many.
    pub(super) fn shape(&self) -> SourceSet {
        self.own.union(self.keys)
    }

    /// All of it, about which nothing more is known.
    pub(super) fn flat(&self) -> Node<'a> {
        Node::opaque(self.deep, self.deep_calls)
    }

    /// The parts that no known key names, together.
    pub(super) fn rest(&'a self) -> Option<Val<'a>> {
        match self.rest {
            Rest::Nothing => None,
            Rest::Same => Some(self),
            Rest::Items(items) => Some(items),
        }
    }

    /// The part under a known key.
    pub(super) fn field(&self, key: Key) -> Option<Val<'a>> {
        let at = self.fields.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(self.fields[at].1)
    }

    /// True when nothing of another is more than what it has.
    pub(super) fn covers(&self, nodes: &Nodes<'_>, other: &Node<'_>) -> bool {
        std::ptr::eq(std::ptr::from_ref(self).cast::<()>(), std::ptr::from_ref(other).cast::<()>())
            || (other.own.is_within(self.own)
                && other.deep.is_within(self.deep)
                && other.keys.is_within(self.keys.union(self.own))
                && self.calls.union(other.calls) == self.calls
                && self.deep_calls.union(other.deep_calls) == self.deep_calls
                && self.text.join(other.text) == self.text
                && (self.is_loose || !other.is_loose)
                && (other.is_list || !self.is_list)
                && self.parts_cover(nodes, other))
    }

    fn parts_cover(&self, nodes: &Nodes<'_>, other: &Node<'_>) -> bool {
        // What is like the value itself has been compared. Without a budget nothing counts any more.
        if matches!(self.rest, Rest::Same) || !nodes.pay(1 + other.fields.len()) {
            return true;
        }
        let rest = match (self.rest, other.rest) {
            (_, Rest::Nothing) => true,
            (Rest::Items(items), Rest::Items(others)) => items.covers(nodes, others),
            (Rest::Items(items), Rest::Same) => items.covers(nodes, other),
            _ => false,
        };
        rest && other
            .fields
            .iter()
            .all(|(key, part)| self.field(*key).is_some_and(|own| own.covers(nodes, part)))
    }
}

impl<'a> Nodes<'a> {
    /// A value that is one of two.
    pub(super) fn join(&self, a: Val<'a>, b: Val<'a>) -> Val<'a> {
        if a.covers(self, b) {
            return a;
        }
        if b.covers(self, a) {
            return b;
        }
        let own = a.own.union(b.own);
        let rest = match (a.rest(), b.rest()) {
            (Some(a), Some(b)) if matches!((a.rest, b.rest), (Rest::Same, Rest::Same)) => {
                let deep = a.deep.union(b.deep);
                Some(self.node(Node::opaque(deep, a.deep_calls.union(b.deep_calls))))
            }
            (Some(a), Some(b)) => Some(self.join(a, b)),
            (a, b) => a.or(b),
        };
        let is_opaque = matches!((a.rest, b.rest), (Rest::Same, Rest::Same));
        let node = match is_opaque {
            true => Node::opaque(own, a.calls.union(b.calls)),
            false => Node::with_parts(own, self.joined_fields(a, b), rest),
        };
        self.node(Node {
            deep: node.deep.union(a.deep).union(b.deep),
            keys: a.keys.union(b.keys),
            calls: node.calls.union(a.calls).union(b.calls),
            deep_calls: node.deep_calls.union(a.deep_calls).union(b.deep_calls),
            text: a.text.join(b.text),
            is_loose: node.is_loose || a.is_loose || b.is_loose,
            is_list: a.is_list && b.is_list,
            ..node
        })
    }

    /// Adds a value to what is known of another; true when it is more.
    pub(super) fn grow(&self, known: &mut Val<'a>, value: Val<'a>) -> bool {
        let grows = !known.covers(self, value);
        if grows {
            *known = self.join(known, value);
        }
        grows
    }

    fn joined_fields(&self, a: Val<'a>, b: Val<'a>) -> &'a [(Key, Val<'a>)] {
        if a.fields.is_empty() {
            return b.fields;
        }
        let Some(mut fields) = self.fields(a.fields, b.fields.len()) else { return a.fields };
        for (key, part) in b.fields {
            match fields.binary_search_by_key(key, |(key, _)| *key) {
                Ok(at) => fields[at].1 = self.join(fields[at].1, part),
                Err(at) => fields.insert(at, (*key, part)),
            }
        }
        fields.into_bump_slice()
    }

    /// A value that is there, or is what it is, because of these sources too.
    pub(super) fn marked(&self, value: Val<'a>, sources: SourceSet) -> Val<'a> {
        if sources.is_within(value.own) {
            return value;
        }
        self.node(Node { own: value.own.union(sources), deep: value.deep.union(sources), ..*value })
    }
}
