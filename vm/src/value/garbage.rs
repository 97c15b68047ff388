//! Frees dropped values by a work list in bounded steps instead of by recursion, so that neither deep nor huge values
//! overflow the stack or block a program for long. A dropped collection hands its children to the list; what a step
//! leaves waits for the next safepoint.

mod heap;

pub(crate) use heap::Heap;

use super::Value;
use crate::memory::account::{self, Backlog, DRAIN_STEP};
use crate::memory::{Dropped, Item};
use std::cell::RefCell;
use std::mem;

/// The content of a dropped collection or list, and the logical bytes to release when it is gone.
struct Garbage {
    items: Items,
    bytes: u64,
}

enum Items {
    Values(Vec<Value>),
    /// Items of a type private to an operation.
    Others(Box<dyn Shed>),
}

/// Frees its items one by one.
trait Shed {
    /// Frees an item; false if none was left.
    fn shed(&mut self) -> bool;
}

impl<T> Shed for Vec<T> {
    fn shed(&mut self) -> bool {
        self.pop().is_some()
    }
}

impl Items {
    /// Frees an item; false if none was left. Collections that are dropped here push their children instead of
    /// recursing.
    #[inline]
    fn shed(&mut self) -> bool {
        match self {
            Items::Values(values) => values.pop().is_some(),
            Items::Others(others) => others.shed(),
        }
    }
}

thread_local! {
    // Separate from the counters of the account: a thread-local without a destructor is accessed without a check.
    static GARBAGE: RefCell<Vec<Garbage>> = const { RefCell::new(Vec::new()) };
}

/// The work list of the thread.
struct WorkList;

impl Backlog for WorkList {
    fn drain(&self, budget: usize) -> bool {
        drain(budget)
    }

    fn parked(&self, work: &mut dyn FnMut()) {
        let kept = GARBAGE.with(RefCell::take);
        work();
        // Between scopes the thread has no garbage.
        GARBAGE.with(|garbage| garbage.replace(kept));
    }
}

/// Drops the children of a collection without recursion: children that may cascade go to the work list.
pub(crate) fn drop_children(children: Vec<Value>, bytes: usize) {
    const DIRECT: usize = 1_024;
    if !children.iter().any(Value::is_heap) {
        // Numbers, or the nils left where items were moved out: checked, but not dropped one by one.
        children.into_iter().for_each(mem::forget);
        account::release(bytes);
    } else if children.len() <= DIRECT && !children.iter().any(Value::is_composite) {
        drop(children);
        account::release(bytes);
    } else {
        discard(children, bytes);
    }
}

/// Whether its drop frees at most a handful of values and goes no deeper.
#[inline]
pub(crate) fn is_shallow(value: &Value) -> bool {
    const FEW: usize = 8;
    let held = match value {
        Value::Map(map) => Some(map.values()),
        Value::Vector(items) => items.as_slice(),
        _ => return !value.is_composite(),
    };
    held.is_some_and(|held| held.len() <= FEW && !held.iter().any(Value::is_composite))
}

/// Hands over the children of a dropped collection. `bytes` are released when they are gone.
pub(crate) fn discard(values: Vec<Value>, bytes: usize) {
    discard_items(Items::Values(values), bytes);
}

impl<T> Dropped<T> {
    /// Frees items that own values: many of them in steps, the rest at the next safepoint.
    #[inline]
    pub fn in_steps(self)
    where
        T: 'static,
    {
        /// Number of items that are freed at once.
        const FEW: usize = 256;
        if self.items.len() <= FEW {
            self.at_once();
        } else {
            discard_items(Items::Others(Box::new(self.items)), self.bytes);
        }
    }
}

impl Item for Value {
    #[inline]
    fn discard(dropped: Dropped<Value>) {
        drop_children(dropped.items, dropped.bytes);
    }
}

fn discard_items(items: Items, bytes: usize) {
    // A thread that ends has neither a list nor an account.
    let listed =
        GARBAGE.try_with(|garbage| garbage.borrow_mut().push(Garbage { items, bytes: bytes as u64 })).is_ok();
    if listed {
        drain(DRAIN_STEP);
    }
}

/// [`drain`] for the case that there is usually nothing to free: the account knows that. Not for use while draining.
#[inline]
pub(crate) fn drain_waiting(budget: usize) -> bool {
    account::attention() && drain(budget)
}

/// Frees up to `budget` values; true if some are left.
pub(crate) fn drain(budget: usize) -> bool {
    if !account::begin_draining() {
        return false;
    }
    let left = drain_list(budget);
    account::end_draining(left);
    left
}

fn drain_list(mut budget: usize) -> bool {
    loop {
        let Ok(Some(mut batch)) = GARBAGE.try_with(|garbage| garbage.borrow_mut().pop()) else {
            return false;
        };
        loop {
            if budget == 0 {
                GARBAGE.with(|garbage| garbage.borrow_mut().push(batch));
                return true;
            }
            if !batch.items.shed() {
                break;
            }
            budget -= 1;
        }
        account::release(batch.bytes as usize);
    }
}
