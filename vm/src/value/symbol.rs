//! Interns the names that a program uses (keywords, symbols, map keys) as numbers, so that comparing two names compares
//! two numbers. A keyword is a symbol; a string key of the same text caches its symbol, so `(:name row)` on a JSON row
//! compares two numbers.

use crate::bytecode::LONGEST_NAME;
use crate::memory::account;
use crate::value::index::{Entry, Index};
use crate::value::relation::text_hash::hash_text;
use crate::value::string::{SHORT_TEXT, StringNode};
use std::cell::Cell;
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

/// Longest text that is interned on the fly.
pub const LONGEST_DYNAMIC: usize = 32;

/// Most names interned on the fly by one isolate.
pub const MOST_DYNAMIC: usize = 4_096;

/// Logical bytes of a table entry in addition to its string node.
const ENTRY_BYTES: usize = 24;

/// The number of names of earlier runs.
#[derive(Clone, Copy, Debug, Default)]
struct Committed {
    rows: usize,
    dynamic: usize,
}

/// A name, and whether it came from data.
struct Name {
    node: Rc<StringNode>,
    is_dynamic: bool,
}

/// The names of an isolate, by number.
///
/// Invariant: a number that a value, a program or a slot holds has its name; a string with a symbol is the node of
/// that name.
#[derive(Default)]
pub struct Symbols {
    /// `None` for free numbers.
    names: Vec<Option<Name>>,
    /// The last position of each name among the keys of a map. Only a guess: rows of data have the same keys.
    last_positions: Vec<Cell<u32>>,
    /// `None` without names.
    index: Option<Index>,
    dynamic: usize,
    /// Free numbers, the lowest last: numbers depend only on committed names and on the names of the run.
    free: Vec<u32>,
    /// Free numbers that the run has assigned, in that order.
    reused: Vec<u32>,
    committed: Committed,
    /// Keys from data stay strings without a symbol.
    pub(crate) plain_keys: bool,
}

fn node(names: &[Option<Name>], row: usize) -> &Rc<StringNode> {
    // Numbers are freed only if nothing holds them.
    &names[row].as_ref().expect("a number that is held has its name").node
}

impl Symbols {
    /// The symbol of a text that the program or the host names.
    pub fn intern(&mut self, text: &str) -> Symbol {
        let hash = hash_text(text);
        match self.find_hashed(text, hash) {
            Some(symbol) => symbol,
            None => self.insert(text, hash, false),
        }
    }

    /// The symbol of a text from data, unless it is too long or there are too many names.
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
        Some(self.insert(text, hash, true))
    }

    /// The symbol of a key from data, which is equivalent to a string with the same text, only faster.
    pub fn intern_key(&mut self, text: &str) -> Option<Symbol> {
        if self.plain_keys { None } else { self.intern_dynamic(text) }
    }

    /// The symbol of a key from data, if the text has one.
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
            |_, row| Ok::<_, Infallible>(node(&self.names, row).as_str() == text),
            |_, row| Ok(node(&self.names, row).as_str().cmp(text)),
        );
        found.map(|row| Symbol(row as u32))
    }

    fn insert(&mut self, text: &str, hash: u32, is_dynamic: bool) -> Symbol {
        let row = match self.free.pop() {
            Some(row) => {
                self.reused.push(row);
                row as usize
            }
            None => {
                self.names.push(None);
                self.last_positions.push(Cell::default());
                self.names.len() - 1
            }
        };
        let symbol = Symbol(row as u32);
        let named = StringNode::new(text);
        named.set_symbol(symbol);
        account::charge(ENTRY_BYTES);
        self.last_positions[row].set(0);
        let has_room = self.add_to_index(text, Entry::new(hash, symbol.0));
        self.names[row] = Some(Name { node: named, is_dynamic });
        if !has_room {
            self.sort_index();
        }
        symbol
    }

    /// False if names collide too often.
    fn add_to_index(&mut self, text: &str, entry: Entry) -> bool {
        let (names, index) = (&self.names, self.index.get_or_insert_with(|| Index::with_room(0)));
        let order = |_: &mut (), row: usize| Ok::<_, Infallible>(node(names, row).as_str().cmp(text));
        let Ok(inserted) = index.insert(&mut (), entry, order);
        inserted.is_ok()
    }

    /// Commits the names of the run.
    pub(crate) fn commit(&mut self) {
        self.committed = Committed { rows: self.names.len(), dynamic: self.dynamic };
        self.reused.clear();
    }

    /// Removes the names of the run, which no value has any more.
    pub(crate) fn roll_back(&mut self) {
        self.dynamic = self.committed.dynamic;
        while self.names.len() > self.committed.rows {
            self.forget(self.names.len() - 1);
            self.names.pop();
        }
        self.last_positions.truncate(self.committed.rows);
        while let Some(row) = self.reused.pop() {
            self.forget(row as usize);
            self.free.push(row);
        }
    }

    fn forget(&mut self, row: usize) {
        let names = &self.names;
        let last = node(names, row);
        let gone = Entry::new(last.hash(), row as u32);
        let order =
            |_: &mut (), row: usize| Ok::<_, Infallible>(node(names, row).as_str().cmp(last.as_str()));
        if let Some(index) = &mut self.index {
            let Ok(()) = index.remove(&mut (), gone, None, order, order);
        }
        self.names[row] = None;
        account::release(ENTRY_BYTES);
    }

    /// The number of rows, free ones included.
    pub(crate) fn rows(&self) -> usize {
        self.names.len()
    }

    /// The names that nothing holds: unreachable, and without a string that has their node.
    fn unheld(&self, is_reached: impl Fn(Symbol) -> bool) -> impl Iterator<Item = (usize, &Name)> {
        let named = self.names.iter().enumerate().filter_map(|(row, name)| Some((row, name.as_ref()?)));
        named.filter(move |(row, name)| Rc::strong_count(&name.node) == 1 && !is_reached(Symbol(*row as u32)))
    }

    /// Logical bytes of the names that nothing holds.
    pub(crate) fn unheld_bytes(&self, is_reached: impl Fn(Symbol) -> bool) -> u64 {
        self.unheld(is_reached).map(|(_, name)| (ENTRY_BYTES + name.node.bytes()) as u64).sum()
    }

    /// Removes the names that nothing holds, between two runs. Their numbers are reused.
    pub(crate) fn sweep(&mut self, is_reached: impl Fn(Symbol) -> bool) {
        let gone: Vec<usize> = self.unheld(is_reached).map(|(row, _)| row).collect();
        if gone.is_empty() {
            return;
        }
        account::release(gone.len() * ENTRY_BYTES);
        gone.into_iter().for_each(|row| self.names[row] = None);
        while self.names.last().is_some_and(Option::is_none) {
            self.names.pop();
        }
        self.names.shrink_to_fit();
        self.last_positions.truncate(self.names.len());
        let rows = (0..self.names.len() as u32).rev();
        self.free = rows.filter(|&row| self.names[row as usize].is_none()).collect();
        self.dynamic = self.names.iter().flatten().filter(|name| name.is_dynamic).count();
        self.commit();
        self.index_all();
    }

    /// Builds the index of all names.
    fn index_all(&mut self) {
        let count = self.names.iter().flatten().count();
        self.index = (count > 0).then(|| Index::with_room(count));
        for row in 0..self.names.len() {
            let Some(Name { node, .. }) = &self.names[row] else { continue };
            let (node, hash) = (node.clone(), node.hash());
            if !self.add_to_index(node.as_str(), Entry::new(hash, row as u32)) {
                return self.sort_index();
            }
        }
    }

    /// Switches to a sorted index, since names collide too often.
    #[cold]
    fn sort_index(&mut self) {
        let named = self.names.iter().enumerate();
        let mut entries: Vec<Entry> = named
            .filter_map(|(row, name)| Some(Entry::new(name.as_ref()?.node.hash(), row as u32)))
            .collect();
        let text = |entry: &Entry| node(&self.names, entry.row()).as_str();
        entries.sort_by(|a, b| a.hash().cmp(&b.hash()).then_with(|| text(a).cmp(text(b))));
        self.index = Some(Index::sorted(&entries));
    }

    /// The text of a symbol.
    pub fn text(&self, symbol: Symbol) -> &str {
        self.string(symbol).as_str()
    }

    /// The interned string of a symbol.
    pub fn string(&self, symbol: Symbol) -> &Rc<StringNode> {
        node(&self.names, symbol.0 as usize)
    }

    /// The last position of the name among the keys of a map.
    #[inline]
    pub(crate) fn last_position(&self, symbol: Symbol) -> usize {
        self.last_positions.get(symbol.0 as usize).map_or(0, |position| position.get() as usize)
    }

    /// Stores the position of the name.
    pub(crate) fn set_last_position(&self, symbol: Symbol, position: usize) {
        if let Some(last) = self.last_positions.get(symbol.0 as usize) {
            last.set(position as u32);
        }
    }

    /// The hash of a symbol's text.
    pub fn hash(&self, symbol: Symbol) -> u32 {
        self.string(symbol).hash()
    }
}

impl Drop for Symbols {
    fn drop(&mut self) {
        account::release(self.names.iter().flatten().count() * ENTRY_BYTES);
    }
}
