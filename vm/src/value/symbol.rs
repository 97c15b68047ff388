//! Symbols: interned names of an isolate. A keyword is a symbol; a string key of the same text knows
//! its symbol, so `(:name row)` on a JSON row compares two numbers.

use crate::bytecode::LONGEST_NAME;
use crate::value::index::{Entry, Index};
use crate::value::string::{SHORT_TEXT, StringNode, hash_text};
use std::cell::Cell;
use std::cmp::Ordering;
use std::convert::Infallible;
use std::rc::Rc;

/// An interned name of one isolate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol(u32);

impl Symbol {
    pub(crate) const fn from_index(index: u32) -> Symbol {
        Symbol(index)
    }

    /// Position in the table of its isolate.
    pub const fn index(self) -> u32 {
        self.0
    }
}

const _: () = assert!(LONGEST_NAME <= SHORT_TEXT, "names are compared in bounded time");

/// Longest text that is interned on the fly (decision 16).
pub const LONGEST_DYNAMIC: usize = 32;

/// Most names interned on the fly by one isolate (decision 16).
pub const MOST_DYNAMIC: usize = 4_096;

/// Logical bytes of a table entry beside its string node.
const ENTRY_BYTES: usize = 24;

/// How many names there were at some moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SymbolsMark {
    len: usize,
    dynamic: usize,
}

/// The names of an isolate.
#[derive(Default)]
pub struct Symbols {
    entries: Vec<Rc<StringNode>>,
    /// Where each name was found last among the keys of a map. Only a guess: rows of data have the same keys.
    places: Vec<Cell<u32>>,
    /// None when there are no names.
    index: Option<Index>,
    dynamic: usize,
    /// Keys met in data stay strings without a symbol.
    pub(crate) plain_keys: bool,
}

impl Symbols {
    /// The symbol of a text that the program or the host names.
    pub fn intern(&mut self, text: &str) -> Symbol {
        let hash = hash_text(text);
        match self.find_hashed(text, hash) {
            Some(symbol) => symbol,
            None => self.insert(text, hash),
        }
    }

    /// The symbol of a text met in data, unless it is too long or there are too many.
    pub fn intern_dynamic(&mut self, text: &str) -> Option<Symbol> {
        if text.len() > LONGEST_DYNAMIC {
            return None;
        }
        let hash = hash_text(text);
        if let Some(symbol) = self.find_hashed(text, hash) {
            return Some(symbol);
        }
        if self.dynamic >= MOST_DYNAMIC {
            return None;
        }
        self.dynamic += 1;
        Some(self.insert(text, hash))
    }

    /// The symbol of a key met in data, which is only faster than a string with the same text.
    pub fn intern_key(&mut self, text: &str) -> Option<Symbol> {
        if self.plain_keys { None } else { self.intern_dynamic(text) }
    }

    /// The symbol of a key met in data, if the text has one.
    pub(crate) fn find_key(&self, text: &str) -> Option<Symbol> {
        if self.plain_keys { None } else { self.find(text) }
    }

    /// The symbol of a text, if it has one.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.find_hashed(text, hash_text(text))
    }

    fn find_hashed(&self, text: &str, hash: u32) -> Option<Symbol> {
        if text.len() > LONGEST_NAME {
            return None;
        }
        let Ok(found) = self.index.as_ref()?.find(
            &mut (),
            hash,
            |_, row| Ok::<_, Infallible>(self.entries[row].as_str() == text),
            |_, row| Ok(self.entries[row].as_str().cmp(text)),
        );
        found.map(|row| Symbol(row as u32))
    }

    fn insert(&mut self, text: &str, hash: u32) -> Symbol {
        let symbol = Symbol(self.entries.len() as u32);
        let node = StringNode::new(text);
        node.set_symbol(symbol);
        crate::memory::account::charge(ENTRY_BYTES);
        let index = self.index.get_or_insert_with(|| Index::with_room(0));
        let order = |_: &mut (), row: usize| Ok::<Ordering, Infallible>(self.entries[row].as_str().cmp(text));
        let Ok(inserted) = index.insert(&mut (), Entry::new(hash, symbol.0), order);
        self.entries.push(node);
        self.places.push(Cell::default());
        if inserted.is_err() {
            self.sort_index();
        }
        symbol
    }

    /// How many there are.
    pub(crate) fn mark(&self) -> SymbolsMark {
        SymbolsMark { len: self.entries.len(), dynamic: self.dynamic }
    }

    /// Forgets the names since the mark, which no value has any more.
    pub(crate) fn forget_since(&mut self, mark: SymbolsMark) {
        self.dynamic = mark.dynamic;
        while self.entries.len() > mark.len {
            let row = self.entries.len() - 1;
            let (entries, last) = (&self.entries, &self.entries[row]);
            let gone = Entry::new(last.hash(), row as u32);
            let order =
                |_: &mut (), row: usize| Ok::<_, Infallible>(entries[row].as_str().cmp(last.as_str()));
            if let Some(index) = &mut self.index {
                let Ok(()) = index.remove(&mut (), gone, None, order, order);
            }
            self.entries.pop();
            crate::memory::account::release(ENTRY_BYTES);
        }
        self.places.truncate(mark.len);
    }

    /// Goes on with a sorted index: names collide too often.
    #[cold]
    fn sort_index(&mut self) {
        let entry = |(row, node): (usize, &Rc<StringNode>)| Entry::new(node.hash(), row as u32);
        let mut entries: Vec<Entry> = self.entries.iter().enumerate().map(entry).collect();
        let text = |entry: &Entry| self.entries[entry.row()].as_str();
        entries.sort_by(|a, b| a.hash().cmp(&b.hash()).then_with(|| text(a).cmp(text(b))));
        self.index = Some(Index::sorted(&entries));
    }

    /// The text of a symbol.
    pub fn text(&self, symbol: Symbol) -> &str {
        self.entries[symbol.0 as usize].as_str()
    }

    /// The interned string of a symbol.
    pub fn string(&self, symbol: Symbol) -> &Rc<StringNode> {
        &self.entries[symbol.0 as usize]
    }

    /// Where the name was found last among the keys of a map.
    #[inline]
    pub(crate) fn place(&self, symbol: Symbol) -> usize {
        self.places.get(symbol.0 as usize).map_or(0, |place| place.get() as usize)
    }

    /// Notes where the name was found.
    pub(crate) fn set_place(&self, symbol: Symbol, place: usize) {
        if let Some(last) = self.places.get(symbol.0 as usize) {
            last.set(place as u32);
        }
    }

    /// The hash of a symbol's text.
    pub fn hash(&self, symbol: Symbol) -> u32 {
        self.entries[symbol.0 as usize].hash()
    }
}

impl Drop for Symbols {
    fn drop(&mut self) {
        crate::memory::account::release(self.entries.len() * ENTRY_BYTES);
    }
}
