//! A vector that grows in charged steps: registers and frames of a fiber.
//!
//! What is charged is the room made so far, not the capacity behind it. Beyond [`LARGE`] the capacity is
//! reserved once for as much as the memory limit allows: the pages cost nothing until they are used, and
//! a deep recursion never stops to copy hundreds of megabytes, which no deadline could interrupt.

use crate::memory::account;
use std::ops::{Deref, DerefMut, Range};

/// From this size on, in bytes, the whole limit is reserved at once.
const LARGE: usize = 16 << 20;

/// Most bytes of room made in one step.
const STEP: usize = 4 << 20;

/// Most bytes reserved at once, whatever the limit is.
const MOST_RESERVED: u64 = 8 << 30;

/// A vector whose room is charged.
pub(crate) struct Charged<T> {
    items: Vec<T>,
    room: usize,
}

impl<T> Default for Charged<T> {
    fn default() -> Charged<T> {
        Charged { items: Vec::new(), room: 0 }
    }
}

impl<T> Charged<T> {
    /// Elements there is charged room for.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Makes and charges room for at least `needed` elements in all.
    #[cold]
    pub(crate) fn make_room(&mut self, needed: usize) {
        let size = size_of::<T>();
        // Growing by a share keeps growth amortised; the first step is exact, and while the whole is small
        // the share is too, because many small programs may wait at the same time.
        const FEW_BYTES: usize = 16 << 10;
        let share = if needed * size < FEW_BYTES { needed / 8 } else { needed / 2 };
        let more = if self.room == 0 { 0 } else { share.min(STEP / size) };
        let target = needed + more;
        if target > self.items.capacity() {
            let all = (account::limit().min(MOST_RESERVED) as usize / size).max(target);
            let capacity = if target * size > LARGE { all } else { target };
            self.items.reserve_exact(capacity - self.items.len());
        }
        account::charge((target - self.room) * size);
        self.room = target;
    }

    /// Begins with these elements, charged.
    pub(crate) fn adopt(&mut self, items: Vec<T>) {
        self.clear();
        account::charge(items.len() * size_of::<T>());
        self.room = items.len();
        self.items = items;
    }

    /// Moves some elements to a vector of their size, and gives the other one away: in the places of those it has defaults.
    pub(crate) fn move_out(&mut self, some: Range<usize>) -> Vec<T>
    where
        T: Default,
    {
        let kept: Vec<T> = self.items[some].iter_mut().map(std::mem::take).collect();
        account::release((self.room - kept.len()) * size_of::<T>());
        self.room = kept.len();
        std::mem::replace(&mut self.items, kept)
    }

    /// Moves all elements to places of a larger vector that own nothing, and goes on with that.
    pub(crate) fn move_into(&mut self, mut larger: Vec<T>, at: usize) {
        for (place, item) in larger[at..].iter_mut().zip(std::mem::take(&mut self.items)) {
            std::mem::forget(std::mem::replace(place, item));
        }
        self.adopt(larger);
    }

    /// Gives the elements away.
    pub(crate) fn release(&mut self) -> Vec<T> {
        let items = std::mem::take(&mut self.items);
        self.clear();
        items
    }

    /// Takes the elements off the account and keeps them for [`Charged::reuse`]: meanwhile there is no room.
    #[inline]
    pub(crate) fn recycle(&mut self) {
        account::release(self.room * size_of::<T>());
        self.room = 0;
    }

    /// Charges elements that were recycled, as if room had just been made for them.
    #[inline]
    pub(crate) fn reuse(&mut self) {
        account::charge(self.items.len() * size_of::<T>());
        self.room = self.items.len();
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.items = Vec::new();
        account::release(self.room * size_of::<T>());
        self.room = 0;
    }
}

impl<T> Deref for Charged<T> {
    type Target = Vec<T>;
    fn deref(&self) -> &Vec<T> {
        &self.items
    }
}

impl<T> DerefMut for Charged<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.items
    }
}
