//! Models maps, lists and constants in the data-flow analysis, so that each entry of a collection keeps dependencies of
//! its own.

use super::budget::MOST_FIELDS;
use super::node::{DEEPEST, Key, NEVER, Node, Rest, Text, Val};
use super::set::{Callables, SourceSet};
use super::walk::{FIRST_INDEX, LITERAL, MOST_ITEMS, Walk};
use crate::ir::Literal;
use crate::ir::tables::Tables;
use ptc_vm::bytecode::Const;
use std::borrow::Cow;

/// Names of keys that are distinguished.
const MOST_KEYS: usize = 1_000;

impl<'a, 'x> Walk<'a, 'x> {
    /// A map with another entry under a constant key.
    pub(super) fn with_entry(&mut self, map: Val<'a>, key: Literal, value: Val<'a>) -> Val<'a> {
        match self.literal_key(key) {
            Some(key) => self.with_field(map, key, value),
            None => {
                let key = self.literal(key);
                self.with_unknown_entry(map, key, value)
            }
        }
    }

    /// A map with another entry, whose key is computed.
    pub(super) fn with_unknown_entry(&mut self, map: Val<'a>, key: Val<'a>, value: Val<'a>) -> Val<'a> {
        let part = self.new_node(key.flat());
        let part = self.join(part, value);
        let part = self.shallow(part);
        let rest = map.rest().map_or(part, |rest| self.join(rest, part));
        let own = map.own.union(key.deep);
        self.rebuilt(map, own, map.fields, Some(rest))
    }

    pub(super) fn with_field(&mut self, map: Val<'a>, key: Key, value: Val<'a>) -> Val<'a> {
        let is_new = map.field(key).is_none();
        if is_new && map.fields.len() >= MOST_FIELDS {
            let key = self.scalar(LITERAL);
            return self.with_unknown_entry(map, key, value);
        }
        let value = self.shallow(value);
        let Some(mut fields) = self.nodes.fields(map.fields, usize::from(is_new)) else { return &NEVER };
        match fields.binary_search_by_key(&key, |(key, _)| *key) {
            // The value before may be found no more, but spellings of keys are not distinguished.
            Ok(at) => fields[at].1 = self.join(fields[at].1, value),
            Err(at) => fields.insert(at, (key, value)),
        }
        self.rebuilt(map, map.own, fields.into_bump_slice(), map.rest())
    }

    /// A value that may be a part of another one, whose other parts stay apart then.
    pub(super) fn shallow(&self, value: Val<'a>) -> Val<'a> {
        if value.depth < DEEPEST { value } else { self.new_node(value.flat()) }
    }

    /// A collection of the same kind with other parts.
    pub(super) fn rebuilt(
        &self,
        from: Val<'a>,
        own: SourceSet,
        fields: &'a [(Key, Val<'a>)],
        rest: Option<Val<'a>>,
    ) -> Val<'a> {
        let node = Node::with_parts(own, fields, rest);
        self.new_node(Node {
            deep: node.deep.union(own).union(from.keys),
            keys: from.keys,
            calls: node.calls.union(from.calls),
            deep_calls: node.deep_calls.union(from.calls),
            is_loose: node.is_loose || from.is_loose,
            is_list: from.is_list,
            ..node
        })
    }

    /// What a key finds; `None`: the key is not known.
    pub(super) fn get(&self, value: Val<'a>, key: Option<Key>) -> Val<'a> {
        let is_place = |key: Key| key >= FIRST_INDEX && !value.is_list;
        let Some(key) = key.filter(|key| !is_place(*key)) else { return self.new_node(value.flat()) };
        let found = match (value.field(key), value.rest()) {
            (Some(field), Some(rest)) => self.join(field, rest),
            (Some(found), None) | (None, Some(found)) => found,
            // Characters of a text, or nothing.
            (None, None) => self.nil(),
        };
        self.marked(found, value.own)
    }

    /// Any item of a collection.
    pub(super) fn item(&self, value: Val<'a>) -> Val<'a> {
        if let Rest::Same = value.rest {
            return value;
        }
        if value.fields.iter().any(|(key, _)| *key < FIRST_INDEX)
            || !value.is_list && !value.fields.is_empty()
        {
            return self.new_node(value.flat());
        }
        let parts = value.fields.iter().map(|(_, part)| *part).chain(value.rest());
        let item = parts.reduce(|a, b| self.join(a, b)).unwrap_or_else(|| self.nil());
        // An item of a map that has computed keys alone is a pair.
        let item = if value.is_list { item } else { self.new_node(item.flat()) };
        self.marked(item, value.own)
    }

    pub(super) fn literal(&mut self, literal: Literal) -> Val<'a> {
        match literal {
            Literal::Nil => self.nil(),
            Literal::Bool(_) | Literal::Int(_) => self.scalar(LITERAL),
            Literal::Row(row) => self.constant(row),
        }
    }

    /// The value of a row of the constants.
    pub(super) fn constant(&mut self, row: u16) -> Val<'a> {
        if let Some(Some(known)) = self.constants.get(usize::from(row)) {
            return known;
        }
        let scalar = Node { text: Text::Row(row), ..Node::scalar(LITERAL) };
        let tables = self.tables;
        let node = match tables.constants.get(usize::from(row)) {
            Some(Const::Vector(items)) => {
                let parts = items.iter().map(|item| self.constant(*item)).collect::<Vec<_>>();
                let rest = parts.into_iter().reduce(|a, b| self.join(a, b));
                Node { is_list: true, ..Node::with_parts(LITERAL, &[], rest) }
            }
            Some(Const::Map(items)) => {
                let mut map = self.new_node(Node::with_parts(LITERAL, &[], None));
                for pair in items.chunks_exact(2) {
                    let value = self.constant(pair[1]);
                    map = self.with_entry(map, Literal::Row(pair[0]), value);
                }
                *map
            }
            Some(Const::Set(items)) | Some(Const::Combinator(_, items)) => {
                let calls = items
                    .iter()
                    .fold(Callables::DATA, |calls, item| calls.union(self.constant(*item).deep_calls));
                Node::opaque(LITERAL, calls)
            }
            Some(Const::Builtin(builtin)) => Node::opaque(LITERAL, super::apply::calls_of(*builtin)),
            Some(Const::Tool(_)) => Node::opaque(LITERAL, Callables::HOST),
            _ => scalar,
        };
        let node = self.new_node(node);
        if let Some(cached) = self.constants.get_mut(usize::from(row)) {
            *cached = Some(node);
        }
        node
    }

    /// The text of a constant that is a text or a name.
    pub(super) fn constant_text(&self, row: u16) -> Option<&'x str> {
        let tables: &'x Tables<'x> = self.tables;
        match tables.constants.get(usize::from(row))? {
            Const::Str(text) => Some(text),
            Const::Keyword(symbol) | Const::Symbol(symbol) => Some(self.symbol(*symbol)),
            _ => None,
        }
    }

    /// The key that a constant is.
    pub(super) fn literal_key(&mut self, literal: Literal) -> Option<Key> {
        match literal {
            Literal::Row(row) => self.key_of(row),
            Literal::Int(index) if (0..MOST_ITEMS as i64).contains(&index) => {
                Some(FIRST_INDEX + index as Key)
            }
            _ => None,
        }
    }

    /// The key that a row of the constants is. A keyword and a text with the same name are one key, and so are names
    /// that differ in `-` and `_`: programs may read one as the other.
    pub(super) fn key_of(&mut self, row: u16) -> Option<Key> {
        if let Some(Some(known)) = self.rows.get(usize::from(row)) {
            return *known;
        }
        let constant = self.tables.constants.get(usize::from(row))?;
        let key = match constant {
            Const::Str(_) | Const::Keyword(_) => self.constant_text(row).and_then(|text| self.key(text)),
            _ => None,
        };
        self.rows[usize::from(row)] = Some(key);
        key
    }

    /// The key of a name.
    pub(super) fn key(&mut self, text: &str) -> Option<Key> {
        let text = match text.contains('-') {
            true => Cow::Owned(text.replace('-', "_")),
            false => Cow::Borrowed(text),
        };
        // Further names are like computed ones.
        let at = self.keys.iter().position(|known| **known == *text).or_else(|| {
            (self.keys.len() < MOST_KEYS).then(|| self.keys.push((&*text).into()))?;
            Some(self.keys.len() - 1)
        });
        at.and_then(|at| Key::try_from(at).ok())
    }

    /// The name of a key; `None` for an index.
    pub(super) fn key_text(&self, key: Key) -> Option<&str> {
        self.keys.get(usize::from(key)).map(|text| &**text)
    }
}
