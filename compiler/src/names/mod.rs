//! Interns the names in source text: each symbol or keyword becomes a number, by which the compiler finds the special
//! form or builtin of that name.

mod advice;
mod index;
mod qualified;
mod special;

use crate::meter::List;
use bumpalo::Bump;
pub(crate) use index::Index;
use ptc_vm::bytecode::BuiltinId;
pub(crate) use qualified::{find_builtin, split_qualified};
pub(crate) use special::Special;
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher};

/// A fast hash, seeded so that texts cannot be chosen to collide.
pub(crate) type HashState = foldhash::fast::RandomState;

/// An interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(u32);

impl Name {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// Known facts about a name.
#[derive(Debug)]
struct Known<'a> {
    text: &'a str,
    /// The special form of that name.
    special: Option<Special>,
    /// The builtin of that name, once it was looked up.
    builtin: Cell<Option<Option<BuiltinId>>>,
}

/// All names of one compilation.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    numbers: Index,
    known: List<'a, Known<'a>>,
    hash: HashState,
}

/// The prefix of names that the compiler makes; programs cannot write them.
const MADE: char = ' ';

impl<'a> Names<'a> {
    /// No names yet, with room for those of a text.
    pub(crate) fn for_text(arena: &'a Bump, source: &str) -> Names<'a> {
        // In typical programs about one byte in ten begins a new name.
        let room = (source.len() / 10).clamp(3, 1_000);
        let known = List::with_capacity_in(room, arena);
        Names { numbers: Index::with_room(room), known, hash: HashState::default() }
    }

    pub(crate) fn intern(&mut self, text: &'a str) -> Name {
        self.intern_noting(text).0
    }

    /// The name of a text, and whether it is new.
    pub(crate) fn intern_noting(&mut self, text: &'a str) -> (Name, bool) {
        let hash = self.hash_of(text);
        let number = self.known.len();
        let Names { numbers, known, .. } = self;
        let is_it = |number: usize| known.get(number).is_some_and(|known| known.text == text);
        if let Some(number) = numbers.find_or_insert(hash, number, is_it) {
            return (Name(number as u32), false);
        }
        // The prefix marks special forms that the compiler inserts.
        let special = Special::lookup(text.strip_prefix(MADE).unwrap_or(text));
        self.known.push(Known { text, special, builtin: Cell::new(None) });
        (Name(number as u32), true)
    }

    fn hash_of(&self, text: &str) -> u64 {
        let mut hasher = self.hash.build_hasher();
        // Hashes without the terminator that separates a text from what follows it.
        hasher.write(text.as_bytes());
        hasher.finish()
    }

    /// A new name that no text has.
    pub(crate) fn fresh(&mut self) -> Name {
        let name = Name(self.known.len() as u32);
        self.known.push(Known { text: " ", special: None, builtin: Cell::new(Some(None)) });
        name
    }

    pub(crate) fn text(&self, name: Name) -> &'a str {
        self.known.get(name.0 as usize).map_or("", |known| known.text)
    }

    /// The special form with this name, which a local may hide.
    pub(crate) fn special(&self, name: Name) -> Option<Special> {
        self.known.get(name.0 as usize)?.special
    }

    /// The builtin with this name, which a local may hide.
    pub(crate) fn builtin(&self, name: Name) -> Option<BuiltinId> {
        let known = self.known.get(name.0 as usize)?;
        known.builtin.get().unwrap_or_else(|| {
            let found = find_builtin(known.text);
            known.builtin.set(Some(found));
            found
        })
    }

    /// The name of a text that the program mentions.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        let is_it = |number: usize| self.known.get(number).is_some_and(|known| known.text == text);
        self.numbers.find(self.hash_of(text), is_it).map(|number| Name(number as u32))
    }

    /// All names.
    pub(crate) fn all(&self) -> impl Iterator<Item = Name> + use<> {
        (0..self.known.len() as u32).map(Name)
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}
