//! Makes long copies of shared collections interruptible: counts the copied items, and checks for deadline and
//! cancellation at regular intervals.
//!
//! Copies cost no fuel. Whether a copy is made depends on the compiler's knowledge of last uses and on caches that
//! only speed up programs. Fuel must depend on neither: tests run programs with all of that off and compare fuel. So
//! copies are counted instead, with a poll every [`STEP`] elements, also inside a long copy. The amount that a unit
//! of fuel can make a program copy is bounded by its memory limit.

use super::account;
use super::meter::Meter;
use crate::fault::Result;

/// Elements moved or copied between two polls.
pub(crate) const STEP: usize = 16 << 10;

impl Meter {
    /// Counts elements copied because a collection was shared, and polls if it is time.
    ///
    /// # Errors
    /// Deadline and cancellation.
    #[inline]
    pub(crate) fn copied(&mut self, elements: usize) -> Result<()> {
        if account::count_copy(elements) { self.fuel.poll() } else { Ok(()) }
    }

    /// Adds copies of shared items to a collection that has room for them.
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
