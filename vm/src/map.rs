//! Maps and sets: insertion-ordered entries, a hash index above a handful of them, and key order on
//! demand (maps and sets iterate and print in key order at every size, decision 6).

use crate::context::Context;
use crate::equal::same_key;
use crate::fault::Result;
use crate::hash::hash_value;
use crate::heap;
use crate::sort;
use crate::string::StringNode;
use crate::symbol::Symbol;
use crate::value::{Value, drop_children};
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::mem::take;
use std::rc::Rc;

/// Logical bytes of a map or set node, room for four entries included.
pub const TABLE_BYTES: usize = 160;

/// Up to this many entries live in the node.
const INLINE: usize = 4;

/// Up to this many entries a scan beats hashing.
const SCAN: usize = 16;

/// Logical bytes of the index for one entry.
const INDEX_BYTES: usize = 8;

/// A map.
pub type MapNode = Table<Value>;

/// A set.
pub type SetNode = Table<()>;

/// What a table holds beside its keys.
pub trait Payload: Clone {
    /// Hands the value to the work list of a dropped table.
    fn collect(self, into: &mut Vec<Value>);
    /// True when dropping it may cascade.
    fn is_composite(&self) -> bool;
}

impl Payload for Value {
    fn collect(self, into: &mut Vec<Value>) {
        into.push(self);
    }
    fn is_composite(&self) -> bool {
        Value::is_composite(self)
    }
}

impl Payload for () {
    fn collect(self, _into: &mut Vec<Value>) {}
    fn is_composite(&self) -> bool {
        false
    }
}

/// One entry.
#[derive(Clone)]
pub struct Entry<V> {
    /// The key or member.
    pub key: Value,
    /// The value; nothing for sets.
    pub value: V,
}

/// Keys with values (a map) or without (a set).
pub struct Table<V: Payload> {
    entries: SmallVec<[Entry<V>; INLINE]>,
    /// What small tables that nobody iterates do without.
    extra: OnceCell<Box<Extra>>,
}

#[derive(Clone, Default)]
struct Extra {
    /// (hash, position) of every entry, once there are more than [`SCAN`].
    index: Option<HashTable<(u32, u32)>>,
    /// Positions in key order, made when first asked for; forgotten by updates.
    order: OnceCell<Vec<u32>>,
}

fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl<V: Payload> Table<V> {
    /// An empty table.
    pub fn empty() -> Rc<Table<V>> {
        Table::with_capacity(0)
    }

    /// An empty table with room for this many entries.
    pub fn with_capacity(capacity: usize) -> Rc<Table<V>> {
        Table::of(SmallVec::with_capacity(capacity))
    }

    fn of(entries: SmallVec<[Entry<V>; INLINE]>) -> Rc<Table<V>> {
        let table = Table { entries, extra: OnceCell::new() };
        heap::charge(table.bytes());
        Rc::new(table)
    }

    #[inline]
    fn bytes(&self) -> usize {
        let spilled =
            if self.entries.spilled() { self.entries.capacity() * size_of::<Entry<V>>() } else { 0 };
        let extra = self.extra.get().map_or(0, |extra| {
            let index = if extra.index.is_some() { self.entries.capacity() * INDEX_BYTES } else { 0 };
            index + extra.order.get().map_or(0, |order| order.len() * size_of::<u32>())
        });
        TABLE_BYTES + spilled + extra
    }

    #[inline]
    fn index(&self) -> Option<&HashTable<(u32, u32)>> {
        self.extra.get()?.index.as_ref()
    }

    /// The index where it is worth asking. A small table is scanned, even one that was large: that it has no
    /// index need not be looked up at the far end of the node.
    #[inline]
    fn useful_index(&self) -> Option<&HashTable<(u32, u32)>> {
        if self.entries.len() <= SCAN { None } else { self.index() }
    }

    fn index_mut(&mut self) -> Option<&mut HashTable<(u32, u32)>> {
        self.extra.get_mut()?.index.as_mut()
    }

    fn forget_order(&mut self) {
        if let Some(extra) = self.extra.get_mut() {
            extra.order.take();
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in no meaningful order; see [`Table::ordered`].
    pub fn entries(&self) -> &[Entry<V>] {
        &self.entries
    }

    /// Position of a keyword key.
    #[inline]
    pub fn find_keyword(&self, cx: &Context, symbol: Symbol) -> Option<usize> {
        match self.useful_index() {
            None => self.entries.iter().position(|entry| matches!(entry.key, Value::Keyword(key) if key == symbol)),
            Some(index) => index
                .find(spread(cx.symbols.hash(symbol)), |&(_, row)| {
                    matches!(self.entries[row as usize].key, Value::Keyword(key) if key == symbol)
                })
                .map(|&(_, row)| row as usize),
        }
    }

    /// Position of a string key of this text.
    pub fn find_text(&self, text: &str, hash: u32, symbol: Option<Symbol>) -> Option<usize> {
        let matches = |key: &Value| match key {
            Value::Str(node) => match (node.symbol(), symbol) {
                (Some(key), Some(symbol)) => key == symbol,
                _ => node.hash() == hash && node.as_str() == text,
            },
            _ => false,
        };
        match self.useful_index() {
            None => self.entries.iter().position(|entry| matches(&entry.key)),
            Some(index) => index
                .find(spread(hash), |&(stored, row)| {
                    stored == hash && matches(&self.entries[row as usize].key)
                })
                .map(|&(_, row)| row as usize),
        }
    }

    /// Position of a string key.
    #[inline]
    fn find_string(&self, node: &Rc<StringNode>) -> Option<usize> {
        let Some(index) = self.useful_index() else {
            let is_same = |entry: &Entry<V>| matches!(&entry.key, Value::Str(key) if Rc::ptr_eq(key, node));
            if let Some(row) = self.entries.iter().position(is_same) {
                return Some(row);
            }
            return self.find_text(node.as_str(), node.hash(), node.symbol());
        };
        let hash = node.hash();
        let matches = |key: &Value| match key {
            Value::Str(key) => Rc::ptr_eq(key, node) || key.as_str() == node.as_str(),
            _ => false,
        };
        index
            .find(spread(hash), |&(stored, row)| stored == hash && matches(&self.entries[row as usize].key))
            .map(|&(_, row)| row as usize)
    }

    /// Position of exactly this key: numbers by type, keywords and strings apart.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn find(&self, cx: &mut Context, key: &Value) -> Result<Option<usize>> {
        match key {
            Value::Keyword(symbol) => return Ok(self.find_keyword(cx, *symbol)),
            Value::Str(node) => return Ok(self.find_string(node)),
            _ => {}
        }
        match self.useful_index() {
            None => {
                for (row, entry) in self.entries.iter().enumerate() {
                    if same_key(cx, &entry.key, key)? {
                        return Ok(Some(row));
                    }
                }
                Ok(None)
            }
            Some(index) => {
                let hash = hash_value(cx, key);
                for &(stored, row) in index.iter_hash(spread(hash)) {
                    if stored == hash && same_key(cx, &self.entries[row as usize].key, key)? {
                        return Ok(Some(row as usize));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Position of a key with the flexible rule of language.md 2.6: the exact key, the other of keyword
    /// and string, then the name with `-` replaced by `_`.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    #[inline]
    pub fn find_flexible(&self, cx: &mut Context, key: &Value) -> Result<Option<usize>> {
        match key {
            Value::Keyword(symbol) => Ok(self.find_named(cx, *symbol)),
            Value::Str(node) => {
                let (text, hash) = (node.as_str(), node.hash());
                let found = self.find_text(text, hash, node.symbol()).or_else(|| {
                    let symbol = node.symbol().or_else(|| cx.symbols.find(text))?;
                    self.find_keyword(cx, symbol)
                });
                if found.is_some() || !text.contains('-') {
                    return Ok(found);
                }
                let text = text.replace('-', "_");
                let hash = crate::string::hash_text(&text);
                let symbol = cx.symbols.find(&text);
                Ok(self.find_text(&text, hash, symbol).or_else(|| self.find_keyword(cx, symbol?)))
            }
            other => self.find(cx, other),
        }
    }

    /// [`Table::find_flexible`] for a keyword.
    #[inline]
    pub fn find_named(&self, cx: &Context, symbol: Symbol) -> Option<usize> {
        if self.useful_index().is_none() {
            let mut text_row = None;
            for (row, entry) in self.entries.iter().enumerate() {
                match &entry.key {
                    Value::Keyword(key) if *key == symbol => return Some(row),
                    Value::Str(node) if text_row.is_none() => {
                        let same = match node.symbol() {
                            Some(key) => key == symbol,
                            None => {
                                node.hash() == cx.symbols.hash(symbol)
                                    && node.as_str() == cx.symbols.text(symbol)
                            }
                        };
                        if same {
                            text_row = Some(row);
                        }
                    }
                    _ => {}
                }
            }
            if text_row.is_some() {
                return text_row;
            }
        } else {
            let found = self
                .find_keyword(cx, symbol)
                .or_else(|| self.find_text(cx.symbols.text(symbol), cx.symbols.hash(symbol), Some(symbol)));
            if found.is_some() {
                return found;
            }
        }
        let text = cx.symbols.text(symbol);
        if !text.contains('-') {
            return None;
        }
        let text = text.replace('-', "_");
        let symbol = cx.symbols.find(&text);
        symbol
            .and_then(|symbol| self.find_keyword(cx, symbol))
            .or_else(|| self.find_text(&text, crate::string::hash_text(&text), symbol))
    }

    /// Adds or replaces an entry (the stored key stays): in place when nobody else holds the table.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn insert(this: Rc<Table<V>>, cx: &mut Context, key: Value, value: V) -> Result<Rc<Table<V>>> {
        let mut this = Table::unique(this);
        // `unique` has just made sure that nobody else holds it.
        if let Some(table) = Rc::get_mut(&mut this) {
            match table.find(cx, &key)? {
                Some(row) => table.entries[row].value = value,
                None => table.push_new(cx, key, value),
            }
        }
        Ok(this)
    }

    /// Replaces the value at a position that a `find` gave.
    pub fn replace_at(this: Rc<Table<V>>, row: usize, value: V) -> Rc<Table<V>> {
        let mut this = Table::unique(this);
        if let Some(table) = Rc::get_mut(&mut this) {
            table.entries[row].value = value;
        }
        this
    }

    /// Adds an entry whose key is known to be absent.
    pub(crate) fn push_new(&mut self, cx: &mut Context, key: Value, value: V) {
        let before = self.bytes();
        self.forget_order();
        let row = self.entries.len();
        if let Some(index) = self.index_mut() {
            let hash = hash_value(cx, &key);
            index.insert_unique(spread(hash), (hash, row as u32), |&(hash, _)| spread(hash));
        }
        self.entries.push(Entry { key, value });
        if self.entries.len() > SCAN && self.index().is_none() {
            self.build_index(cx);
        }
        heap::recharge(before, self.bytes());
    }

    fn build_index(&mut self, cx: &mut Context) {
        let mut index = HashTable::with_capacity(self.entries.len() * 2);
        for (row, entry) in self.entries.iter().enumerate() {
            let hash = hash_value(cx, &entry.key);
            index.insert_unique(spread(hash), (hash, row as u32), |&(hash, _)| spread(hash));
        }
        self.extra.get_or_init(Box::default);
        if let Some(extra) = self.extra.get_mut() {
            extra.index = Some(index);
        }
    }

    /// Removes a key if it is there: in place when nobody else holds the table.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn remove(this: Rc<Table<V>>, cx: &mut Context, key: &Value) -> Result<Rc<Table<V>>> {
        let Some(row) = this.find(cx, key)? else { return Ok(this) };
        let mut this = Table::unique(this);
        if let Some(table) = Rc::get_mut(&mut this) {
            table.remove_at(cx, row);
        }
        Ok(this)
    }

    fn remove_at(&mut self, cx: &mut Context, row: usize) {
        let before = self.bytes();
        self.forget_order();
        if let Some(index) = self.extra.get_mut().and_then(|extra| extra.index.as_mut()) {
            let last = self.entries.len() - 1;
            let hash = hash_value(cx, &self.entries[row].key);
            if let Ok(slot) = index.find_entry(spread(hash), |&(_, at)| at as usize == row) {
                slot.remove();
            }
            if last != row {
                let hash = hash_value(cx, &self.entries[last].key);
                if let Some(slot) = index.find_mut(spread(hash), |&(_, at)| at as usize == last) {
                    slot.1 = row as u32;
                }
            }
        }
        self.entries.swap_remove(row);
        heap::recharge(before, self.bytes());
    }

    /// Takes the value at a position out, leaving a placeholder, so that an update of it can happen in
    /// place. `None` when somebody else holds the table.
    pub fn take_at(this: &mut Rc<Table<V>>, row: usize) -> Option<V>
    where
        V: Default,
    {
        Rc::get_mut(this).map(|table| std::mem::take(&mut table.entries[row].value))
    }

    /// The value at a position, to be changed in place. `None` when somebody else holds the table.
    #[inline]
    pub(crate) fn value_mut(this: &mut Rc<Table<V>>, row: usize) -> Option<&mut V> {
        Some(&mut Rc::get_mut(this)?.entries[row].value)
    }

    fn unique(this: Rc<Table<V>>) -> Rc<Table<V>> {
        let mut this = this;
        if Rc::get_mut(&mut this).is_some() {
            return this;
        }
        heap::count_copy(this.len() * 2);
        let mut entries = SmallVec::with_capacity(this.len() + 1);
        entries.extend(this.entries.iter().cloned());
        // The order goes with the copy, or the program would pay for it again.
        let copy = Table { entries, extra: this.extra.clone() };
        heap::charge(copy.bytes());
        Rc::new(copy)
    }

    /// Positions in key order.
    ///
    /// # Errors
    /// Comparing keys pays fuel.
    pub fn order(&self, cx: &mut Context) -> Result<&[u32]> {
        if let Some(order) = self.extra.get().and_then(|extra| extra.order.get()) {
            return Ok(order);
        }
        let mut rows: Vec<u32> = (0..self.entries.len() as u32).collect();
        sort::sort_keys(cx, &mut rows, |&row| &self.entries[row as usize].key)?;
        heap::charge(rows.len() * size_of::<u32>());
        Ok(self.extra.get_or_init(Box::default).order.get_or_init(|| rows))
    }

    /// Entries in key order.
    ///
    /// # Errors
    /// Comparing keys pays fuel.
    pub fn ordered<'t>(&'t self, cx: &mut Context) -> Result<impl ExactSizeIterator<Item = &'t Entry<V>>> {
        Ok(self.order(cx)?.iter().map(|&row| &self.entries[row as usize]))
    }
}

impl Table<Value> {
    /// A map of keys that are all different and values, both taken from the front of the iterators.
    pub(crate) fn from_distinct(
        cx: &mut Context,
        keys: impl Iterator<Item = Value>,
        values: impl ExactSizeIterator<Item = Value>,
    ) -> Rc<MapNode> {
        // Filled where it is going to stay: a node is large to move.
        let mut this = Rc::new(Table { entries: SmallVec::new(), extra: OnceCell::new() });
        if let Some(node) = Rc::get_mut(&mut this) {
            node.entries.reserve_exact(values.len());
            node.entries.extend(keys.zip(values).map(|(key, value)| Entry { key, value }));
            if node.entries.len() > SCAN {
                node.build_index(cx);
            }
            heap::charge(node.bytes());
        }
        this
    }

    /// A map of keys and values, alternating; the first of equal keys wins. The keys are strings.
    ///
    /// # Errors
    /// Comparing keys pays fuel.
    pub(crate) fn from_pairs(cx: &mut Context, pairs: &mut [Value]) -> Result<Rc<MapNode>> {
        let count = pairs.len() / 2;
        // Filled where it is going to stay: a node is large to move.
        let mut this = Rc::new(Table {
            entries: SmallVec::<[Entry<Value>; INLINE]>::with_capacity(count),
            extra: OnceCell::new(),
        });
        heap::charge(this.bytes());
        let Some(node) = Rc::get_mut(&mut this) else { return Ok(this) };
        for pair in pairs.chunks_exact_mut(2) {
            let [key, value] = pair else { continue };
            if count <= SCAN {
                if !node.entries.iter().any(|entry| same_text(&entry.key, key)) {
                    node.entries.push(Entry { key: take(key), value: take(value) });
                }
            } else if node.find(cx, key)?.is_none() {
                node.push_new(cx, take(key), take(value));
            }
        }
        Ok(this)
    }

    /// The value of a key, by the flexible rule.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn get(&self, cx: &mut Context, key: &Value) -> Result<Option<&Value>> {
        Ok(self.find_flexible(cx, key)?.map(|row| &self.entries[row].value))
    }
}

impl<V: Payload> Drop for Table<V> {
    fn drop(&mut self) {
        let bytes = self.bytes();
        if self.entries.len() <= 512
            && !self.entries.iter().any(|entry| entry.key.is_composite() || entry.value.is_composite())
        {
            // The entries go with the node.
            heap::release(bytes);
            return;
        }
        let mut children = Vec::with_capacity(self.entries.len() * 2);
        for entry in self.entries.drain(..) {
            children.push(entry.key);
            entry.value.collect(&mut children);
        }
        drop_children(children, bytes);
    }
}

/// Whether two strings are the same key.
fn same_text(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => match (a.symbol(), b.symbol()) {
            (Some(a), Some(b)) => a == b,
            _ => a.as_str() == b.as_str(),
        },
        _ => false,
    }
}
