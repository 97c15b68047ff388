//! The meter of a program: charges the work of every operation to its fuel (the work budget), and checks its memory
//! limit. It also numbers the runs of an isolate.

use super::account::{self, Finding};
use super::fuel::Fuel;
use super::list::{Item, List};
use crate::fault::{Fault, Result};

/// The resources of work: fuel, and the memory account of the thread.
pub struct Meter {
    /// Fuel, deadline and cancellation.
    pub fuel: Fuel,
    /// The current run of the isolate.
    pub(crate) run: Run,
}

/// The number of a run of an isolate; the default is no run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run(u32);

impl Run {
    /// The first one.
    pub(crate) const FIRST: Run = Run(1);

    /// The next run.
    pub(crate) fn next(self) -> Run {
        Run(self.0.wrapping_add(1).max(1))
    }
}

impl Meter {
    /// A meter for the first run.
    pub(crate) fn new(fuel: Fuel) -> Meter {
        Meter { fuel, run: Run::FIRST }
    }

    /// Pays fuel for work that has been done or is about to be: one unit for an element visited or a byte
    /// produced.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    #[inline]
    pub fn tick(&mut self, units: u64) -> Result<()> {
        self.fuel.pay(units)
    }

    /// Checks that a bulk operation may allocate `bytes`; call it before allocating.
    ///
    /// # Errors
    /// `memory_exceeded`.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        match account::would_exceed(bytes as u64) {
            None => Ok(()),
            Some((needed, limit)) => Err(Fault::memory(needed, limit)),
        }
    }

    /// Collects items into a list; each costs a unit of fuel.
    ///
    /// # Errors
    /// Fuel and memory.
    pub fn collect<T: Item>(&mut self, items: impl IntoIterator<Item = T>) -> Result<List<T>> {
        let mut list = List::default();
        list.extend(self, items)?;
        Ok(list)
    }

    /// A safepoint that has something to do.
    ///
    /// # Errors
    /// Memory, deadline and cancellation.
    #[cold]
    pub(crate) fn attend(&mut self) -> Result<()> {
        match account::attend() {
            Finding::Fine => Ok(()),
            Finding::Poll => self.fuel.poll(),
            Finding::OverLimit(live, limit) => Err(Fault::memory(live, limit)),
        }
    }
}
