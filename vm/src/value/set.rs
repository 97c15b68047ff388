//! The set type of the language, which also holds the keys of maps: members in the order of insertion, with a hash
//! index for more than a few, and a sorted order on demand. Maps and sets iterate and print in key order at every size.
//! `find` has the lookups.

mod find;
#[cfg(test)]
mod tests;

use crate::fault::Result;
use crate::memory::{Run, account};
use crate::value::garbage::drop_children;
use crate::value::index::{Entry, Index};
use crate::value::relation::hash::hash_value;
use crate::value::relation::order::compare_keys;
use crate::value::relation::sort;
use crate::value::{Store, Value};
use smallvec::SmallVec;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// Logical bytes of a node with room for four members.
pub const SET_BYTES: usize = 104;

/// Most members that are stored in the node.
const INLINE: usize = 4;

/// Number of members up to which a scan beats hashing.
pub(crate) const SCAN: usize = 16;

/// Logical bytes of index and order for one member. The order is charged whether it is known or not: computing it
/// must not show in the account, which is restored when a run is rolled back.
const INDEX_BYTES: usize = 8 + size_of::<u32>();

/// A set.
pub struct SetNode {
    members: SmallVec<[Value; INLINE]>,
    /// False if no member is a keyword.
    has_keyword: bool,
    /// False if no member is a string.
    has_text: bool,
    /// State that small sets which are never iterated do without.
    extra: OnceCell<Box<Extra>>,
}

#[derive(Default)]
struct Extra {
    /// The position of every member, once there are more than [`SCAN`]; never much larger than needed.
    index: Option<Index>,
    /// Computed on demand; dropped by updates.
    order: OnceCell<Order>,
}

/// Positions in key order.
struct Order {
    rows: Vec<u32>,
    /// The fuel for computing it. `None` if a member is a collection: comparing it may need orders of its own, and
    /// whether these were paid for is found out by comparing again.
    fuel: Option<u64>,
    /// The run in which the program has paid for it. Constants and values of a session are paid for in every run, so
    /// that a run costs the same whatever ran before.
    paid: Cell<Run>,
}

fn is_keyword(member: &Value) -> bool {
    matches!(member, Value::Keyword(_))
}

fn is_text(member: &Value) -> bool {
    matches!(member, Value::Str(_))
}

impl SetNode {
    /// An empty set.
    pub fn empty() -> Rc<SetNode> {
        SetNode::with_capacity(0)
    }

    /// An empty set with room for this many members.
    pub fn with_capacity(capacity: usize) -> Rc<SetNode> {
        let members = SmallVec::with_capacity(capacity);
        let set = SetNode { members, has_keyword: false, has_text: false, extra: OnceCell::new() };
        account::charge(set.bytes());
        Rc::new(set)
    }

    /// A set of distinct members, few enough to be scanned.
    pub(crate) fn from_distinct(members: impl ExactSizeIterator<Item = Value>) -> Rc<SetNode> {
        debug_assert!(members.len() <= SCAN);
        let mut held = SmallVec::with_capacity(members.len());
        held.extend(members);
        let (has_keyword, has_text) = (held.iter().any(is_keyword), held.iter().any(is_text));
        let set = SetNode { members: held, has_keyword, has_text, extra: OnceCell::new() };
        account::charge(set.bytes());
        Rc::new(set)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let spilled = if self.members.spilled() { self.members.capacity() * size_of::<Value>() } else { 0 };
        let indexed = if self.members.len() > SCAN { self.members.capacity() * INDEX_BYTES } else { 0 };
        SET_BYTES + spilled + indexed
    }

    /// The index, if it is worth using. A small set is scanned, even one that was large.
    #[inline]
    fn index(&self) -> Option<&Index> {
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

    /// The member at a position from a `find` or from the order.
    #[inline]
    pub fn member(&self, row: usize) -> &Value {
        &self.members[row]
    }

    /// Adds a member; in place if the set is not shared.
    ///
    /// # Errors
    /// Comparing collections pays fuel.
    pub fn insert(mut this: Rc<SetNode>, cx: &mut Store, member: Value) -> Result<Rc<SetNode>> {
        if this.find(cx, &member)?.is_some() {
            return Ok(this);
        }
        if let Some(set) = SetNode::exclusive(&mut this, cx, 1)? {
            set.push_new(cx, member)?;
        }
        Ok(this)
    }

    /// Adds a member that is known to be absent.
    ///
    /// # Errors
    /// Hashing and comparing collections and long texts pays fuel; the member is not added then.
    pub(crate) fn push_new(&mut self, cx: &mut Store, member: Value) -> Result<()> {
        let before = self.bytes();
        if self.len() > SCAN && self.len() == self.members.capacity() {
            // While the members move, both copies exist, and so with the index.
            cx.reserve(2 * self.len() * (size_of::<Value>() + INDEX_BYTES))?;
        }
        self.forget_order();
        let (is_keyword, is_text) = (is_keyword(&member), is_text(&member));
        self.members.push(member);
        let indexed = self.index_last(cx);
        match indexed {
            Ok(()) => {
                self.has_keyword |= is_keyword;
                self.has_text |= is_text;
            }
            Err(_) => drop(self.members.pop()),
        }
        account::recharge(before, self.bytes());
        indexed
    }

    /// Updates the index with a member that was just added.
    #[inline]
    fn index_last(&mut self, cx: &mut Store) -> Result<()> {
        let SetNode { members, extra, .. } = self;
        let known = extra.get_mut().and_then(|extra| extra.index.as_mut());
        let index = match (known, members.split_last()) {
            (Some(index), Some((last, others))) => {
                let entry = Entry::new(hash_value(cx, last)?, others.len() as u32);
                if index.insert(cx, entry, |cx, row| compare_keys(cx, &others[row], last))?.is_ok() {
                    return Ok(());
                }
                sorted_index(cx, members)?
            }
            _ if members.len() <= SCAN => return Ok(()),
            _ => index_of(cx, members)?,
        };
        extra.get_or_init(Box::default);
        if let Some(extra) = extra.get_mut() {
            extra.index = Some(index);
        }
        Ok(())
    }

    /// Removes a member if it is there; in place if the set is not shared.
    ///
    /// # Errors
    /// Comparing collections pays fuel.
    pub fn remove(mut this: Rc<SetNode>, cx: &mut Store, member: &Value) -> Result<Rc<SetNode>> {
        let Some(row) = this.find(cx, member)? else { return Ok(this) };
        if let Some(set) = SetNode::exclusive(&mut this, cx, 0)? {
            set.remove_at(cx, row)?;
        }
        Ok(this)
    }

    /// Removes the member at a position; the last member moves there.
    ///
    /// # Errors
    /// As [`SetNode::push_new`]; the member is still there then.
    pub(crate) fn remove_at(&mut self, cx: &mut Store, row: usize) -> Result<()> {
        let before = self.bytes();
        let SetNode { members, extra, .. } = self;
        if let Some(index) = extra.get_mut().and_then(|extra| extra.index.as_mut()) {
            let (gone, last) = (&members[row], members.len() - 1);
            let entry = Entry::new(hash_value(cx, gone)?, row as u32);
            let moved = if last == row {
                None
            } else {
                Some((Entry::new(hash_value(cx, &members[last])?, last as u32), row as u32))
            };
            index.remove(
                cx,
                entry,
                moved,
                |cx, row| compare_keys(cx, &members[row], gone),
                |cx, row| compare_keys(cx, &members[row], &members[last]),
            )?;
        }
        self.forget_order();
        self.members.swap_remove(row);
        self.shrink_index(cx);
        account::recharge(before, self.bytes());
        Ok(())
    }

    /// Copies have an index as large as the set's, charged for their own members: a set that was large must not pass
    /// its unused room on to them. Done on removal, so that copies and originals stay alike.
    fn shrink_index(&mut self, cx: &mut Store) {
        let len = self.members.len();
        let Some(extra) = self.extra.get_mut() else { return };
        if len <= SCAN / 2 {
            extra.index = None;
        } else if let Some(index) = &mut extra.index {
            index.shrink(cx, len.max(SCAN));
        }
    }

    /// The set, replaced by a copy with room for `more` members if it is shared. Never `None`.
    ///
    /// # Errors
    /// Memory, deadline and cancellation.
    pub(crate) fn exclusive<'s>(
        this: &'s mut Rc<SetNode>,
        cx: &mut Store,
        more: usize,
    ) -> Result<Option<&'s mut SetNode>> {
        if Rc::strong_count(this) > 1 {
            *this = this.copy(cx, more)?;
        }
        Ok(Rc::get_mut(this))
    }

    /// A copy with room for `more` members.
    ///
    /// # Errors
    /// Memory, deadline and cancellation.
    pub(crate) fn copy(&self, cx: &mut Store, more: usize) -> Result<Rc<SetNode>> {
        let capacity = self.len() + more;
        if capacity > SCAN {
            cx.reserve(capacity * (size_of::<Value>() + INDEX_BYTES))?;
        }
        let mut members = SmallVec::with_capacity(capacity);
        cx.copy_items(&mut members, &self.members)?;
        let extra = OnceCell::new();
        if let Some(index) = self.extra.get().and_then(|extra| extra.index.as_ref()) {
            let index = Some(index.copy(cx)?);
            // A copy is made to be changed, which would drop the order.
            extra.get_or_init(|| Box::new(Extra { index, order: OnceCell::new() }));
        }
        let copy = SetNode { members, has_keyword: self.has_keyword, has_text: self.has_text, extra };
        account::charge(copy.bytes());
        Ok(Rc::new(copy))
    }

    /// Positions in key order.
    ///
    /// # Errors
    /// Comparing members pays fuel, once in a run.
    pub fn order(&self, cx: &mut Store) -> Result<&[u32]> {
        let is_paid = self.known_order().is_some_and(|order| order.paid.get() == cx.run);
        let order = self.find_order(cx, is_paid)?;
        order.paid.set(cx.run);
        Ok(&order.rows)
    }

    /// [`SetNode::order`] for a map with these keys, which may have paid for it.
    ///
    /// # Errors
    /// Fuel.
    pub(crate) fn order_of_keys(&self, cx: &mut Store, is_paid: bool) -> Result<&[u32]> {
        Ok(&self.find_order(cx, is_paid)?.rows)
    }

    fn known_order(&self) -> Option<&Order> {
        self.extra.get()?.order.get()
    }

    fn find_order(&self, cx: &mut Store, is_paid: bool) -> Result<&Order> {
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
        let extra = self.extra.get_or_init(Box::default);
        Ok(extra.order.get_or_init(|| Order { rows, fuel, paid: Cell::default() }))
    }

    fn sorted(&self, cx: &mut Store) -> Result<Vec<u32>> {
        let mut rows: Vec<u32> = (0..self.members.len() as u32).collect();
        sort::sort_keys(cx, &mut rows, |&row| &self.members[row as usize])?;
        Ok(rows)
    }

    /// Members in key order.
    ///
    /// # Errors
    /// Comparing members pays fuel, once in a run.
    pub fn ordered<'s>(&'s self, cx: &mut Store) -> Result<impl ExactSizeIterator<Item = &'s Value>> {
        Ok(self.order(cx)?.iter().map(|&row| &self.members[row as usize]))
    }
}

/// An index of members that are all different.
fn index_of(cx: &mut Store, members: &[Value]) -> Result<Index> {
    let mut index = Index::with_room(2 * members.len());
    for (row, member) in members.iter().enumerate() {
        let entry = Entry::new(hash_value(cx, member)?, row as u32);
        if index.insert(cx, entry, |cx, row| compare_keys(cx, &members[row], member))?.is_err() {
            return sorted_index(cx, members);
        }
    }
    Ok(index)
}

/// The index of members that have flooded a table.
#[cold]
fn sorted_index(cx: &mut Store, members: &[Value]) -> Result<Index> {
    // The hashes, the rows, and their entries, twice.
    cx.reserve(members.len().saturating_mul(3 * size_of::<Entry>()))?;
    let mut hashes: Vec<u32> = Vec::with_capacity(members.len());
    for member in members {
        cx.tick(1)?;
        hashes.push(hash_value(cx, member)?);
    }
    let mut rows: Vec<u32> = (0..members.len() as u32).collect();
    sort::sort_by_small_key(cx, &mut rows, |&row| hashes[row as usize])?;
    for same in rows.chunk_by_mut(|&a, &b| hashes[a as usize] == hashes[b as usize]) {
        sort::sort_keys(cx, same, |&row| &members[row as usize])?;
    }
    let entries: Vec<Entry> = rows.iter().map(|&row| Entry::new(hashes[row as usize], row)).collect();
    Ok(Index::sorted(&entries))
}

impl Drop for SetNode {
    fn drop(&mut self) {
        let bytes = self.bytes();
        if self.members.len() <= 512 && !self.members.iter().any(Value::is_composite) {
            // The members are dropped with the node.
            account::release(bytes);
            return;
        }
        drop_children(self.members.drain(..).collect(), bytes);
    }
}
