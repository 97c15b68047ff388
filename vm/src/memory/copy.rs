//! Copies that an update makes because somebody else holds a collection, and other moves of many items at once.
//!
//! Copies cost no fuel. Whether there is one depends on what the compiler knows of last uses and on what tables hold
//! that only make programs faster, and fuel must depend on neither: programs run with all of that off, and compare fuel.
//! So copies are counted instead, and every [`STEP`] elements there is a poll. A long copy has polls inside of it,
//! and many short ones have them too; what a unit of fuel can make a program copy is bounded by its memory limit.

use super::account;
use super::meter::Meter;
use crate::fault::Result;

/// Elements moved or copied between two polls.
pub(crate) const STEP: usize = 16 << 10;

impl Meter {
    /// Counts elements copied because a collection was shared, and polls when it is time to.
    ///
    /// # Errors
    /// Deadline and cancellation.
    #[inline]
    pub(crate) fn copied(&mut self, elements: usize) -> Result<()> {
        if account::count_copy(elements) { self.fuel.poll() } else { Ok(()) }
    }

    /// Adds copies of items that somebody else holds to a collection that has room for them.
    ///
    /// # Errors
    /// Deadline and cancellation.
    #[inline]
    pub(crate) fn copy_items<T: Clone>(&mut self, to: &mut impl Extend<T>, items: &[T]) -> Result<()> {
        for part in items.chunks(STEP) {
            to.extend(part.iter().cloned());
            self.copied(part.len())?;
        }
        Ok(())
    }
}
