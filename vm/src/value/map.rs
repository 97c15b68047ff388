//! The map type of the language: a set of keys, which maps with the same keys share, and one value for each key.
//!
//! Rows of data have the same keys, so a row is a reference to them and its values, and a lookup scans keys that are
//! in the cache already. Small maps that add the same key to the same keys share the result (`extensions.rs`). A map
//! that grows larger gets keys of its own, which grow in place.

use crate::fault::Result;
use crate::memory::{Run, STEP, account};
use crate::value::garbage::{drop_children, is_shallow};
use crate::value::set::{SCAN, SetNode};
use crate::value::string::{SHORT_TEXT, StringNode};
use crate::value::symbol::Symbol;
use crate::value::{Store, Value};
use std::cell::Cell;
use std::mem::take;
use std::rc::Rc;

/// Logical bytes of a map node with room for four values. Its keys are charged separately.
pub const MAP_BYTES: usize = 96;

/// Logical bytes of one more key and value.
pub const ENTRY_BYTES: usize = 2 * size_of::<Value>();

/// Most values that are stored in the node.
const INLINE: usize = 4;

/// Shared keys below this number are extended as a shared set; from it on they are copied.
const SHARED: usize = 16;

/// A map. The fields that are read first come first: a small map fills one and a half cache lines.
#[repr(C)]
pub struct MapNode {
    keys: Rc<SetNode>,
    /// The run in which the program has paid for the order of the keys.
    order_paid: Cell<Run>,
    values: Values,
}

/// As many values as there are keys.
enum Values {
    /// Slots beyond the number of keys are nil.
    Few([Value; INLINE]),
    Many(Vec<Value>),
}

const _: () = assert!(size_of::<Values>() == INLINE * size_of::<Value>());

/// A key and its value.
#[derive(Clone, Copy)]
pub struct Entry<'m> {
    /// The key.
    pub key: &'m Value,
    /// The value.
    pub value: &'m Value,
}

impl Values {
    fn with_capacity(capacity: usize) -> Values {
        if capacity <= INLINE {
            Values::Few(Default::default())
        } else {
            Values::Many(Vec::with_capacity(capacity))
        }
    }

    #[inline]
    fn bytes(&self) -> usize {
        match self {
            Values::Few(_) => 0,
            Values::Many(values) => values.capacity() * size_of::<Value>(),
        }
    }

    /// The values, followed by nil in the room of the node.
    #[inline]
    fn held(&self) -> &[Value] {
        match self {
            Values::Few(values) => values,
            Values::Many(values) => values,
        }
    }

    #[inline]
    fn held_mut(&mut self) -> &mut [Value] {
        match self {
            Values::Few(values) => values,
            Values::Many(values) => values,
        }
    }

    /// Adds a value after the first `len`.
    fn push(&mut self, len: usize, value: Value) {
        match self {
            Values::Many(values) => values.push(value),
            Values::Few(values) => match values.get_mut(len) {
                Some(room) => *room = value,
                None => {
                    let mut more = Vec::with_capacity(2 * INLINE);
                    more.extend(values.iter_mut().map(take));
                    more.push(value);
                    *self = Values::Many(more);
                }
            },
        }
    }

    /// Removes the value at `row` of `len`; the last value moves to its row.
    fn swap_remove(&mut self, len: usize, row: usize) -> Value {
        match self {
            Values::Many(values) => values.swap_remove(row),
            Values::Few(values) => {
                values.swap(row, len - 1);
                take(&mut values[len - 1])
            }
        }
    }

    fn copy(&self, cx: &mut Store) -> Result<Values> {
        Ok(match self {
            Values::Few(values) => Values::Few(values.clone()),
            Values::Many(values) => {
                let capacity = values.len() + 1;
                cx.reserve_items(capacity)?;
                let mut copy = Vec::with_capacity(capacity);
                for part in values.chunks(STEP) {
                    copy.extend_from_slice(part);
                    if part.len() == STEP {
                        cx.fuel.poll()?;
                    }
                }
                Values::Many(copy)
            }
        })
    }
}

impl MapNode {
    /// An empty map.
    pub fn empty() -> Rc<MapNode> {
        MapNode::with_capacity(0)
    }

    /// An empty map with room for this many entries.
    pub fn with_capacity(capacity: usize) -> Rc<MapNode> {
        MapNode::from_parts(SetNode::with_capacity(capacity), Values::with_capacity(capacity))
    }

    fn from_parts(keys: Rc<SetNode>, values: Values) -> Rc<MapNode> {
        account::charge(MAP_BYTES + values.bytes());
        Rc::new(MapNode { keys, order_paid: Cell::default(), values })
    }

    /// A map of these keys and as many values.
    #[inline]
    pub(crate) fn from_keys(
        keys: Rc<SetNode>,
        mut values: impl ExactSizeIterator<Item = Value>,
    ) -> Rc<MapNode> {
        debug_assert_eq!(keys.len(), values.len());
        let len = values.len();
        // Filled in place: a node is expensive to move.
        let mut this = Rc::new(MapNode {
            keys,
            order_paid: Cell::default(),
            values: Values::Few([Value::Nil, Value::Nil, Value::Nil, Value::Nil]),
        });
        if let Some(MapNode { values: held, .. }) = Rc::get_mut(&mut this) {
            match held {
                Values::Few(few) if len <= INLINE => {
                    for slot in few {
                        let Some(value) = values.next() else { break };
                        // The slot is still empty.
                        std::mem::forget(std::mem::replace(slot, value));
                    }
                }
                _ => *held = Values::Many(values.collect()),
            }
        }
        account::charge(this.bytes());
        this
    }

    /// A map of keys and values, alternating; the last of equal keys wins. The keys are strings.
    ///
    /// # Errors
    /// Comparing keys pays fuel.
    pub(crate) fn from_pairs(cx: &mut Store, pairs: &mut [Value]) -> Result<Rc<MapNode>> {
        if are_few_names(pairs) {
            let keys = SetNode::from_distinct(pairs.iter_mut().step_by(2).map(take));
            return Ok(MapNode::from_keys(keys, pairs.iter_mut().skip(1).step_by(2).map(take)));
        }
        let mut map = MapNode::with_capacity(pairs.len() / 2);
        let Some(node) = Rc::get_mut(&mut map) else { return Ok(map) };
        for (at, pair) in pairs.chunks_exact_mut(2).enumerate() {
            if at % STEP == STEP - 1 {
                cx.fuel.poll()?;
            }
            let [key, value] = pair else { continue };
            match node.keys.find(cx, key)? {
                Some(row) => node.values.held_mut()[row] = take(value),
                None => node.push_new(cx, take(key), take(value))?,
            }
        }
        Ok(map)
    }

    #[inline]
    fn bytes(&self) -> usize {
        MAP_BYTES + self.values.bytes()
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Reads the far end of the node to bring it into the cache.
    #[inline]
    pub(crate) fn prefetch(&self) -> usize {
        match &self.values {
            Values::Few([.., last]) => usize::from(last.is_truthy()),
            Values::Many(values) => values.len(),
        }
    }

    /// No entries.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys in no meaningful order; see [`MapNode::order`].
    #[inline]
    pub fn keys(&self) -> &[Value] {
        self.keys.members()
    }

    /// The keys as a shareable set.
    pub(crate) fn key_set(&self) -> &Rc<SetNode> {
        &self.keys
    }

    /// The values in the order of the keys.
    #[inline]
    pub fn values(&self) -> &[Value] {
        let held = self.values.held();
        held.get(..self.len()).unwrap_or(held)
    }

    /// The entries in no meaningful order; see [`MapNode::ordered`].
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> + DoubleEndedIterator {
        self.keys().iter().zip(self.values()).map(|(key, value)| Entry { key, value })
    }

    /// The entry at a position from a `find` or from the order.
    #[inline]
    pub fn entry(&self, row: usize) -> Entry<'_> {
        Entry { key: self.key(row), value: self.value(row) }
    }

    /// The key at a position.
    #[inline]
    pub fn key(&self, row: usize) -> &Value {
        &self.keys()[row]
    }

    /// The value at a position.
    #[inline]
    pub fn value(&self, row: usize) -> &Value {
        &self.values.held()[row]
    }

    /// Position of a keyword key.
    #[inline]
    pub fn find_keyword(&self, cx: &Store, symbol: Symbol) -> Option<usize> {
        self.keys.find_keyword(cx, symbol)
    }

    /// Position of a string key of this text.
    ///
    /// # Errors
    /// Comparing long texts pays fuel.
    pub fn find_text(
        &self,
        cx: &mut Store,
        text: &str,
        hash: u32,
        symbol: Option<Symbol>,
    ) -> Result<Option<usize>> {
        self.keys.find_text(cx, text, hash, symbol)
    }

    /// Position of exactly this key: numbers by type, keywords and strings apart.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn find(&self, cx: &mut Store, key: &Value) -> Result<Option<usize>> {
        self.keys.find(cx, key)
    }

    /// Position of the key that a write to this key replaces: see [`SetNode::find_written`].
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    #[inline]
    pub fn find_written(&self, cx: &mut Store, key: &Value) -> Result<Option<usize>> {
        self.keys.find_written(cx, key)
    }

    /// Position of a key by the flexible rule: see [`SetNode::find_flexible`].
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    #[inline]
    pub fn find_flexible(&self, cx: &mut Store, key: &Value) -> Result<Option<usize>> {
        self.keys.find_flexible(cx, key)
    }

    /// [`MapNode::find_flexible`] for a keyword.
    #[inline]
    pub fn find_named(&self, cx: &Store, symbol: Symbol) -> Option<usize> {
        self.keys.find_named(cx, symbol)
    }

    /// The value of a key, by the flexible rule.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn get(&self, cx: &mut Store, key: &Value) -> Result<Option<&Value>> {
        Ok(self.find_flexible(cx, key)?.map(|row| self.value(row)))
    }

    /// Writes an entry as programs do (`assoc` and its relatives): a keyword replaces the string key of its name, see
    /// [`SetNode::find_written`]. [`MapNode::insert`] makes maps with given keys.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn write(this: Rc<MapNode>, cx: &mut Store, key: Value, value: Value) -> Result<Rc<MapNode>> {
        let row = this.find_written(cx, &key)?;
        MapNode::put(this, cx, row, key, value)
    }

    /// Adds or replaces an entry of exactly this key (the stored key stays); in place if the map is not shared.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn insert(this: Rc<MapNode>, cx: &mut Store, key: Value, value: Value) -> Result<Rc<MapNode>> {
        let row = this.find(cx, &key)?;
        MapNode::put(this, cx, row, key, value)
    }

    /// Replaces the value at the position of the key, or adds the key, which is absent.
    #[inline]
    fn put(
        this: Rc<MapNode>,
        cx: &mut Store,
        row: Option<usize>,
        key: Value,
        value: Value,
    ) -> Result<Rc<MapNode>> {
        let mut this = MapNode::unique(this, cx)?;
        // `unique` has just made sure that it is not shared.
        if let Some(map) = Rc::get_mut(&mut this) {
            match row {
                Some(row) => map.values.held_mut()[row] = value,
                None => map.push_new(cx, key, value)?,
            }
        }
        Ok(this)
    }

    /// Replaces the value at a position from a `find`.
    ///
    /// # Errors
    /// Memory, deadline and cancellation, if the map is shared.
    pub fn replace_at(this: Rc<MapNode>, cx: &mut Store, row: usize, value: Value) -> Result<Rc<MapNode>> {
        let mut this = MapNode::unique(this, cx)?;
        if let Some(map) = Rc::get_mut(&mut this) {
            map.values.held_mut()[row] = value;
        }
        Ok(this)
    }

    /// Adds an entry; its key is known to be absent.
    ///
    /// # Errors
    /// As [`SetNode::push_new`]; the entry is not added then.
    pub(crate) fn push_new(&mut self, cx: &mut Store, key: Value, value: Value) -> Result<()> {
        let (before, len) = (self.values.bytes(), self.len());
        if let Values::Many(values) = &self.values
            && values.len() == values.capacity()
        {
            cx.reserve_items(2 * len)?;
        }
        if len < SHARED && Rc::strong_count(&self.keys) > 1 {
            self.keys = cx.extend_keys(&self.keys, key)?;
        } else if let Some(keys) = SetNode::exclusive(&mut self.keys, cx, len)? {
            keys.push_new(cx, key)?;
        }
        self.order_paid.take();
        self.values.push(len, value);
        account::recharge(before, self.values.bytes());
        Ok(())
    }

    /// Removes the entry that a write to this key would replace: see [`SetNode::find_written`].
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn erase(this: Rc<MapNode>, cx: &mut Store, key: &Value) -> Result<Rc<MapNode>> {
        match this.find_written(cx, key)? {
            Some(row) => MapNode::remove_row(this, cx, row),
            None => Ok(this),
        }
    }

    /// Removes exactly this key if it is there; in place if the map is not shared.
    ///
    /// # Errors
    /// Comparing collections as keys pays fuel.
    pub fn remove(this: Rc<MapNode>, cx: &mut Store, key: &Value) -> Result<Rc<MapNode>> {
        match this.find(cx, key)? {
            Some(row) => MapNode::remove_row(this, cx, row),
            None => Ok(this),
        }
    }

    fn remove_row(this: Rc<MapNode>, cx: &mut Store, row: usize) -> Result<Rc<MapNode>> {
        let mut this = MapNode::unique(this, cx)?;
        if let Some(map) = Rc::get_mut(&mut this) {
            map.remove_at(cx, row)?;
        }
        Ok(this)
    }

    fn remove_at(&mut self, cx: &mut Store, row: usize) -> Result<()> {
        let (before, len) = (self.values.bytes(), self.len());
        if let Some(keys) = SetNode::exclusive(&mut self.keys, cx, 0)? {
            keys.remove_at(cx, row)?;
        }
        self.order_paid.take();
        drop(self.values.swap_remove(len, row));
        account::recharge(before, self.values.bytes());
        Ok(())
    }

    /// Moves the value at a position out, leaving nil, so that it can be updated in place. `None` if the map is
    /// shared.
    pub fn take_at(this: &mut Rc<MapNode>, row: usize) -> Option<Value> {
        MapNode::value_mut(this, row).map(take)
    }

    /// The value at a position: moved out, leaving nil, or copied if the map is shared.
    pub(crate) fn take_or_copy(this: &mut Rc<MapNode>, row: usize) -> Value {
        MapNode::take_at(this, row).unwrap_or_else(|| this.value(row).clone())
    }

    /// The value at a position, for changes in place. `None` if the map is shared.
    #[inline]
    pub(crate) fn value_mut(this: &mut Rc<MapNode>, row: usize) -> Option<&mut Value> {
        Rc::get_mut(this)?.values.held_mut().get_mut(row)
    }

    /// The map itself if it is not shared, else a copy with the same keys.
    #[inline]
    fn unique(mut this: Rc<MapNode>, cx: &mut Store) -> Result<Rc<MapNode>> {
        if Rc::get_mut(&mut this).is_some() { Ok(this) } else { this.copy(cx) }
    }

    #[inline(never)]
    fn copy(&self, cx: &mut Store) -> Result<Rc<MapNode>> {
        let copy = MapNode {
            keys: self.keys.clone(),
            // The payment for the order is copied, or the program would pay for it again.
            order_paid: self.order_paid.clone(),
            values: self.values.copy(cx)?,
        };
        // Keys count as well: they were read.
        cx.copied(self.len() * 2)?;
        account::charge(copy.bytes());
        Ok(Rc::new(copy))
    }

    /// Positions in key order.
    ///
    /// # Errors
    /// Comparing keys pays fuel, once for each map in a run.
    pub fn order(&self, cx: &mut Store) -> Result<&[u32]> {
        let order = self.keys.order_of_keys(cx, self.order_paid.get() == cx.run)?;
        self.order_paid.set(cx.run);
        Ok(order)
    }

    /// Entries in key order.
    ///
    /// # Errors
    /// Comparing keys pays fuel, once for each map in a run.
    pub fn ordered(&self, cx: &mut Store) -> Result<impl ExactSizeIterator<Item = Entry<'_>>> {
        Ok(self.order(cx)?.iter().map(|&row| self.entry(row as usize)))
    }
}

/// True for alternating keys and values if the keys are short distinct strings and few enough for maps to scan; they
/// need no lookups then.
fn are_few_names(pairs: &[Value]) -> bool {
    if pairs.len() > 2 * SCAN {
        return false;
    }
    let differ = |key: &StringNode, earlier: &Value| match (earlier, key.symbol()) {
        (Value::Str(other), Some(symbol)) if other.symbol().is_some() => other.symbol() != Some(symbol),
        (Value::Str(other), _) => other.as_str() != key.as_str(),
        _ => false,
    };
    pairs.iter().step_by(2).enumerate().all(|(at, key)| match key {
        Value::Str(key) if key.len() <= SHORT_TEXT => {
            pairs.iter().step_by(2).take(at).all(|earlier| differ(key, earlier))
        }
        _ => false,
    })
}

impl Drop for MapNode {
    fn drop(&mut self) {
        let bytes = self.bytes();
        match &mut self.values {
            // The values are dropped with the node.
            Values::Few(values)
                if !values.iter().any(Value::is_composite) || values.iter().all(is_shallow) =>
            {
                account::release(bytes);
            }
            Values::Few(values) => drop_children(values.iter_mut().map(take).collect(), bytes),
            Values::Many(values) => drop_children(take(values), bytes),
        }
    }
}
