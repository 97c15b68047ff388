//! Holds the memory state of an isolate (a separate heap) while it is not running: its byte counters, and its dropped
//! values that are still to be freed.

use super::{GARBAGE, Garbage, WorkList};
use crate::memory::account::Account;
use std::mem;

/// The memory of one isolate while it is not running: its account, and its garbage.
#[derive(Default)]
pub(crate) struct Heap {
    pub(crate) account: Account,
    garbage: Vec<Garbage>,
}

impl Heap {
    /// An empty account with a limit in logical bytes.
    pub(crate) fn new(limit: u64) -> Heap {
        Heap { account: Account::new(limit), garbage: Vec::new() }
    }

    /// Makes this the memory of the current thread until [`Heap::leave`]; scopes do not nest.
    pub(crate) fn enter(&mut self) {
        self.account.enter(&WorkList, !self.garbage.is_empty());
        // Between scopes the thread has only an empty list.
        if !self.garbage.is_empty() {
            self.swap();
        }
    }

    /// Ends [`Heap::enter`].
    pub(crate) fn leave(&mut self) {
        self.account.leave();
        // A thread that ends has no list any more.
        if GARBAGE.try_with(|garbage| !garbage.borrow().is_empty()).unwrap_or_default() {
            self.swap();
        }
    }

    #[cold]
    fn swap(&mut self) {
        let _ = GARBAGE.try_with(|garbage| mem::swap(&mut self.garbage, &mut garbage.borrow_mut()));
    }
}
