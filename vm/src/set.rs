//! Sets, which are also the keys of maps: members in the order of insertion, a hash index above a handful
//! of them, and key order on demand (maps and sets iterate and print in key order at every size,
//! decision 6).

#[cfg(test)]
mod tests;

use crate::context::{Context, Run};
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
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// Logical bytes of a node, room for four members included.
pub const SET_BYTES: usize = 104;

/// Up to this many members live in the node.
const INLINE: usize = 4;

/// Up to this many members a scan beats hashing.
pub(crate) const SCAN: usize = 16;

/// Logical bytes of the index for one member.
const INDEX_BYTES: usize = 8;

/// A set.
pub struct SetNode {
    members: SmallVec<[Value; INLINE]>,
    /// False when none of them is a keyword.
    has_keyword: bool,
    /// What small sets that nobody iterates do without.
    extra: OnceCell<Box<Extra>>,
}

#[derive(Default)]
struct Extra {
    /// (hash, position) of every member, once there are more than [`SCAN`]; never much larger than that takes.
    index: Option<HashTable<(u32, u32)>>,
    /// Made when first asked for; forgotten by updates.
    order: OnceCell<Order>,
}

/// Positions in key order.
struct Order {
    rows: Vec<u32>,
    /// The fuel that finding it takes. `None` when a member is a collection: comparing it may need orders of its
    /// own, and whether those have been paid for is found out by comparing again.
    fuel: Option<u64>,
    /// The run in which the program has paid for it; constants and values of a session are paid for in every
    /// run, so that a run costs the same whatever ran before.
    paid: Cell<Run>,
}

fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

fn is_keyword(member: &Value) -> bool {
    matches!(member, Value::Keyword(_))
}

impl SetNode {
    /// An empty set.
    pub fn empty() -> Rc<SetNode> {
        SetNode::with_capacity(0)
    }

    /// An empty set with room for this many members.
    pub fn with_capacity(capacity: usize) -> Rc<SetNode> {
        let members = SmallVec::with_capacity(capacity);
        let set = SetNode { members, has_keyword: false, extra: OnceCell::new() };
        heap::charge(set.bytes());
        Rc::new(set)
    }

    /// A set of members that are all different.
    pub(crate) fn from_distinct(cx: &Context, members: impl ExactSizeIterator<Item = Value>) -> Rc<SetNode> {
        let mut held = SmallVec::with_capacity(members.len());
        held.extend(members);
        let has_keyword = held.iter().any(is_keyword);
        let mut set = SetNode { members: held, has_keyword, extra: OnceCell::new() };
        if set.members.len() > SCAN {
            set.build_index(cx);
        }
        heap::charge(set.bytes());
        Rc::new(set)
    }

    /// The order of a small set is not counted: whether it is known must not show in the account of a map
    /// that shares its keys with others.
    #[inline]
    fn bytes(&self) -> usize {
        let spilled = if self.members.spilled() { self.members.capacity() * size_of::<Value>() } else { 0 };
        let extra = match self.extra.get() {
            Some(extra) if self.members.len() > SCAN => {
                let index = if extra.index.is_some() { self.members.capacity() * INDEX_BYTES } else { 0 };
                index + extra.order.get().map_or(0, |order| order.rows.len() * size_of::<u32>())
            }
            _ => 0,
        };
        SET_BYTES + spilled + extra
    }

    /// The index where it is worth asking. A small set is scanned, even one that was large.
    #[inline]
    fn index(&self) -> Option<&HashTable<(u32, u32)>> {
        if self.members.len() <= SCAN { None } else { self.extra.get()?.index.as_ref() }
    }

    fn forget_order(&mut self) {
        if let Some(extra) = self.extra.get_mut() {
            extra.order.take();
        }
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// No members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The members in no meaningful order; see [`SetNode::order`].
    #[inline]
    pub fn members(&self) -> &[Value] {
        &self.members
    }

    /// The member at a position that a `find` or the order gave.
    #[inline]
    pub fn member(&self, row: usize) -> &Value {
        &self.members[row]
    }

    /// Position of a keyword.
    #[inline]
    pub fn find_keyword(&self, cx: &Context, symbol: Symbol) -> Option<usize> {
        let is_same = |member: &Value| matches!(member, Value::Keyword(key) if *key == symbol);
        match self.index() {
            None => self.members.iter().position(is_same),
            Some(index) => index
                .find(spread(cx.symbols.hash(symbol)), |&(_, row)| is_same(&self.members[row as usize]))
                .map(|&(_, row)| row as usize),
        }
    }

    /// Position of a string of this text.
    pub fn find_text(&self, text: &str, hash: u32, symbol: Option<Symbol>) -> Option<usize> {
        let is_same = |member: &Value| match member {
            Value::Str(node) => match (node.symbol(), symbol) {
                (Some(key), Some(symbol)) => key == symbol,
                _ => node.hash() == hash && node.as_str() == text,
            },
            _ => false,
        };
        match self.index() {
            None => self.members.iter().position(is_same),
            Some(index) => index
                .find(spread(hash), |&(stored, row)| stored == hash && is_same(&self.members[row as usize]))
                .map(|&(_, row)| row as usize),
        }
    }

    /// Position of a string.
    #[inline]
    fn find_string(&self, node: &Rc<StringNode>) -> Option<usize> {
        let Some(index) = self.index() else {
            let is_same = |member: &Value| matches!(member, Value::Str(key) if Rc::ptr_eq(key, node));
            if let Some(row) = self.members.iter().position(is_same) {
                return Some(row);
            }
            return self.find_text(node.as_str(), node.hash(), node.symbol());
        };
        let hash = node.hash();
        let is_same = |member: &Value| match member {
            Value::Str(key) => Rc::ptr_eq(key, node) || key.as_str() == node.as_str(),
            _ => false,
        };
        index
            .find(spread(hash), |&(stored, row)| stored == hash && is_same(&self.members[row as usize]))
            .map(|&(_, row)| row as usize)
    }

    /// Position of exactly this member: numbers by type, keywords and strings apart.
    ///
    /// # Errors
    /// Comparing collections pays fuel.
    pub fn find(&self, cx: &mut Context, member: &Value) -> Result<Option<usize>> {
        match member {
            Value::Keyword(symbol) => return Ok(self.find_keyword(cx, *symbol)),
            Value::Str(node) => return Ok(self.find_string(node)),
            _ => {}
        }
        match self.index() {
            None => {
                for (row, other) in self.members.iter().enumerate() {
                    if same_key(cx, other, member)? {
                        return Ok(Some(row));
                    }
                }
                Ok(None)
            }
            Some(index) => {
                let hash = hash_value(cx, member);
                for &(stored, row) in index.iter_hash(spread(hash)) {
                    if stored == hash && same_key(cx, &self.members[row as usize], member)? {
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
                if let Some(symbol) = node.symbol() {
                    let place = cx.symbols.place(symbol);
                    if let Some(Value::Str(key)) = self.members.get(place)
                        && key.symbol() == Some(symbol)
                    {
                        return Ok(Some(place));
                    }
                }
                Ok(self.search_text(cx, node))
            }
            other => self.find(cx, other),
        }
    }

    #[inline(never)]
    fn search_text(&self, cx: &Context, node: &StringNode) -> Option<usize> {
        let (text, hash, symbol) = (node.as_str(), node.hash(), node.symbol());
        if let Some(row) = self.find_text(text, hash, symbol) {
            if let Some(symbol) = symbol {
                cx.symbols.set_place(symbol, row);
            }
            return Some(row);
        }
        let keyword = symbol.or_else(|| cx.symbols.find(text));
        if let Some(row) = keyword.and_then(|symbol| self.find_keyword(cx, symbol)) {
            return Some(row);
        }
        if !text.contains('-') {
            return None;
        }
        let text = text.replace('-', "_");
        let hash = crate::string::hash_text(&text);
        let symbol = cx.symbols.find(&text);
        self.find_text(&text, hash, symbol).or_else(|| self.find_keyword(cx, symbol?))
    }

    /// [`SetNode::find_flexible`] for a keyword: looks first where the name was found last.
    #[inline]
    pub fn find_named(&self, cx: &Context, symbol: Symbol) -> Option<usize> {
        let place = cx.symbols.place(symbol);
        let found = match self.members.get(place) {
            Some(Value::Keyword(key)) => *key == symbol,
            // The exact key would come first.
            Some(Value::Str(node)) => !self.has_keyword && node.symbol() == Some(symbol),
            _ => false,
        };
        if found { Some(place) } else { self.search_named(cx, symbol) }
    }

    #[inline(never)]
    fn search_named(&self, cx: &Context, symbol: Symbol) -> Option<usize> {
        let (text, hash) = (cx.symbols.text(symbol), cx.symbols.hash(symbol));
        let exact = if self.has_keyword { self.find_keyword(cx, symbol) } else { None };
        let found = exact.or_else(|| self.find_text(text, hash, Some(symbol)));
        match found {
            Some(row) => cx.symbols.set_place(symbol, row),
            None => return self.find_underscored(cx, symbol),
        }
        found
    }

    #[inline(never)]
    fn find_underscored(&self, cx: &Context, symbol: Symbol) -> Option<usize> {
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

    /// Adds a member: in place when nobody else holds the set.
    ///
    /// # Errors
    /// Comparing collections pays fuel.
    pub fn insert(this: Rc<SetNode>, cx: &mut Context, member: Value) -> Result<Rc<SetNode>> {
        if this.find(cx, &member)?.is_some() {
            return Ok(this);
        }
        let mut this = this;
        if let Some(set) = SetNode::exclusive(&mut this, 1) {
            set.push_new(cx, member);
        }
        Ok(this)
    }

    /// Adds a member that is known to be absent.
    pub(crate) fn push_new(&mut self, cx: &Context, member: Value) {
        let before = self.bytes();
        self.forget_order();
        let row = self.members.len();
        if let Some(index) = self.extra.get_mut().and_then(|extra| extra.index.as_mut()) {
            let hash = hash_value(cx, &member);
            index.insert_unique(spread(hash), (hash, row as u32), |&(hash, _)| spread(hash));
        }
        self.has_keyword |= is_keyword(&member);
        self.members.push(member);
        if self.members.len() > SCAN && self.index().is_none() {
            self.build_index(cx);
        }
        heap::recharge(before, self.bytes());
    }

    fn build_index(&mut self, cx: &Context) {
        let mut index = HashTable::with_capacity(self.members.len() * 2);
        for (row, member) in self.members.iter().enumerate() {
            let hash = hash_value(cx, member);
            index.insert_unique(spread(hash), (hash, row as u32), |&(hash, _)| spread(hash));
        }
        self.extra.get_or_init(Box::default);
        if let Some(extra) = self.extra.get_mut() {
            extra.index = Some(index);
        }
    }

    /// Removes a member if it is there: in place when nobody else holds the set.
    ///
    /// # Errors
    /// Comparing collections pays fuel.
    pub fn remove(this: Rc<SetNode>, cx: &mut Context, member: &Value) -> Result<Rc<SetNode>> {
        let Some(row) = this.find(cx, member)? else { return Ok(this) };
        let mut this = this;
        if let Some(set) = SetNode::exclusive(&mut this, 0) {
            set.remove_at(cx, row);
        }
        Ok(this)
    }

    /// Removes the member at a position; the last one takes its place.
    pub(crate) fn remove_at(&mut self, cx: &Context, row: usize) {
        let before = self.bytes();
        self.forget_order();
        if let Some(index) = self.extra.get_mut().and_then(|extra| extra.index.as_mut()) {
            let last = self.members.len() - 1;
            let hash = hash_value(cx, &self.members[row]);
            if let Ok(slot) = index.find_entry(spread(hash), |&(_, at)| at as usize == row) {
                slot.remove();
            }
            if last != row {
                let hash = hash_value(cx, &self.members[last]);
                if let Some(slot) = index.find_mut(spread(hash), |&(_, at)| at as usize == last) {
                    slot.1 = row as u32;
                }
            }
        }
        self.members.swap_remove(row);
        self.shrink_index();
        heap::recharge(before, self.bytes());
    }

    /// Copies have an index as large as the set's, on the account for their own members: a set that was large
    /// must not hand the room it had on to them. Done on removal, so that copies and originals stay alike.
    fn shrink_index(&mut self) {
        let len = self.members.len();
        let Some(extra) = self.extra.get_mut() else { return };
        if len <= SCAN / 2 {
            extra.index = None;
        } else if let Some(index) = &mut extra.index
            && index.capacity() > 4 * len.max(SCAN)
        {
            index.shrink_to(2 * len, |&(hash, _)| spread(hash));
        }
    }

    /// The set, replaced by a copy with room for `more` members when somebody else holds it. Never `None`.
    pub(crate) fn exclusive(this: &mut Rc<SetNode>, more: usize) -> Option<&mut SetNode> {
        if Rc::strong_count(this) > 1 {
            *this = this.copy(more);
        }
        Rc::get_mut(this)
    }

    /// A copy with room for `more` members.
    pub(crate) fn copy(&self, more: usize) -> Rc<SetNode> {
        heap::count_copy(self.len());
        let mut members = SmallVec::with_capacity(self.len() + more);
        members.extend(self.members.iter().cloned());
        let extra = OnceCell::new();
        if let Some(index) = self.extra.get().and_then(|extra| extra.index.clone()) {
            // A copy is made to be changed, which the order would not outlive.
            extra.get_or_init(|| Box::new(Extra { index: Some(index), order: OnceCell::new() }));
        }
        let copy = SetNode { members, has_keyword: self.has_keyword, extra };
        heap::charge(copy.bytes());
        Rc::new(copy)
    }

    /// Positions in key order.
    ///
    /// # Errors
    /// Comparing members pays fuel, once in a run.
    pub fn order(&self, cx: &mut Context) -> Result<&[u32]> {
        let is_paid = self.known_order().is_some_and(|order| order.paid.get() == cx.run);
        let order = self.find_order(cx, is_paid)?;
        order.paid.set(cx.run);
        Ok(&order.rows)
    }

    /// [`SetNode::order`] for a map with these keys, which has paid for it or not.
    ///
    /// # Errors
    /// Fuel.
    pub(crate) fn order_of_keys(&self, cx: &mut Context, is_paid: bool) -> Result<&[u32]> {
        Ok(&self.find_order(cx, is_paid)?.rows)
    }

    fn known_order(&self) -> Option<&Order> {
        self.extra.get()?.order.get()
    }

    fn find_order(&self, cx: &mut Context, is_paid: bool) -> Result<&Order> {
        if let Some(order) = self.known_order() {
            match order.fuel {
                _ if is_paid => {}
                Some(fuel) => cx.tick(fuel)?,
                None => drop(self.sorted(cx)?),
            }
            return Ok(order);
        }
        let before = cx.fuel.used();
        let rows = self.sorted(cx)?;
        let is_flat = !self.members.iter().any(Value::is_composite);
        let fuel = is_flat.then(|| cx.fuel.used() - before);
        if rows.len() > SCAN {
            heap::charge(rows.len() * size_of::<u32>());
        }
        let extra = self.extra.get_or_init(Box::default);
        Ok(extra.order.get_or_init(|| Order { rows, fuel, paid: Cell::default() }))
    }

    fn sorted(&self, cx: &mut Context) -> Result<Vec<u32>> {
        let mut rows: Vec<u32> = (0..self.members.len() as u32).collect();
        sort::sort_keys(cx, &mut rows, |&row| &self.members[row as usize])?;
        Ok(rows)
    }

    /// Members in key order.
    ///
    /// # Errors
    /// Comparing members pays fuel, once in a run.
    pub fn ordered<'s>(&'s self, cx: &mut Context) -> Result<impl ExactSizeIterator<Item = &'s Value>> {
        Ok(self.order(cx)?.iter().map(|&row| &self.members[row as usize]))
    }
}

impl Drop for SetNode {
    fn drop(&mut self) {
        let bytes = self.bytes();
        if self.members.len() <= 512 && !self.members.iter().any(Value::is_composite) {
            // The members go with the node.
            heap::release(bytes);
            return;
        }
        drop_children(self.members.drain(..).collect(), bytes);
    }
}
