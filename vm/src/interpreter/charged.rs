//! A growable vector for the stacks of a fiber (one thread of control in a program), which counts its growth against
//! the program's memory limit in steps. It holds registers, frames and machines.
//!
//! The room made so far is charged, not the capacity behind it. Beyond [`LARGE`] the capacity is reserved once, for
//! as much as the memory limit allows: the pages cost nothing until they are used, and a deep recursion never stops
//! to copy hundreds of megabytes, which no deadline could interrupt.

use crate::memory::account;
use std::ops::{Deref, DerefMut, Range};

/// From this size on, in bytes, the whole limit is reserved at once.
const LARGE: usize = 16 << 20;

/// Most bytes of room made in one step.
const STEP: usize = 4 << 20;

/// Most bytes reserved at once, whatever the limit is.
const MOST_RESERVED: u64 = 8 << 30;

/// A vector with charged room.
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
    /// Number of elements with charged room.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Makes and charges room for at least `needed` elements in all.
    #[cold]
    pub(crate) fn make_room(&mut self, needed: usize) {
        let size = size_of::<T>();
        // Growing by a share keeps growth amortised. The first step is exact, and the share stays small while the
        // whole is small, since many small programs may wait at the same time.
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

    /// Starts with these elements and charges them.
    pub(crate) fn adopt(&mut self, items: Vec<T>) {
        self.clear();
        account::charge(items.len() * size_of::<T>());
        self.room = items.len();
        self.items = items;
    }

    /// Moves a range of elements to a new vector of their size, and gives away the old vector, in which defaults
    /// replace them.
    pub(crate) fn move_out(&mut self, some: Range<usize>) -> Vec<T>
    where
        T: Default,
    {
        let kept: Vec<T> = self.items[some].iter_mut().map(std::mem::take).collect();
        account::release((self.room - kept.len()) * size_of::<T>());
        self.room = kept.len();
        std::mem::replace(&mut self.items, kept)
    }

    /// Moves all elements into a larger vector, over elements that own nothing, and uses that vector from now on.
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

    /// Takes the elements off the account and stores them for [`Charged::reuse`]; there is no room meanwhile.
    #[inline]
    pub(crate) fn recycle(&mut self) {
        account::release(self.room * size_of::<T>());
        self.room = 0;
    }

    /// Charges recycled elements, as if room had just been made for them.
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
