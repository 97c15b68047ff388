//! Limits the work of a program: charges it to a budget (fuel) that is granted in slices, and checks during long
//! operations whether the program must stop or be preempted.
//!
//! Fuel counts semantic events: a call, a back-edge, an element visited, a byte produced. It is granted in slices;
//! between slices the isolate returns to its driver. Work inside one native operation cannot be cut into slices, so
//! it *polls* whenever a slice would have ended: it checks the [`Interrupt`] and the memory limit, and lets the
//! driver preempt it.

use super::account;
use super::interrupt::{Interrupt, InterruptKind, Preemption};
use crate::fault::{Fault, Reason, Result};

/// Units granted at a time inside native work.
const NATIVE_SLICE: u64 = 16_384;

/// The fuel of one run.
#[derive(Debug)]
pub struct Fuel {
    /// Left of the current slice; negative if a bulk operation overdrew it.
    pub(crate) slice: i64,
    /// Not yet granted.
    left: u64,
    limit: u64,
    interrupt: Interrupt,
    pub(crate) preemption: Preemption,
}

impl Fuel {
    /// Restores all fuel for another run.
    pub(crate) fn refill_all(&mut self) {
        self.slice = 0;
        self.left = self.limit;
    }

    /// Charges work that was done before the run; a shortage fails at the next safepoint.
    pub(crate) fn spend(&mut self, units: u64) {
        let of_slice = units.saturating_sub(self.left);
        self.left = self.left.saturating_sub(units);
        self.slice = self.slice.saturating_sub_unsigned(of_slice);
    }

    /// All fuel is left.
    pub fn new(limit: u64, interrupt: Interrupt) -> Fuel {
        Fuel { slice: 0, left: limit, limit, interrupt, preemption: Preemption::default() }
    }

    /// Fuel spent so far.
    pub fn used(&self) -> u64 {
        let unspent = self.left as i128 + i128::from(self.slice);
        u64::try_from(i128::from(self.limit) - unspent).unwrap_or(u64::MAX).min(self.limit)
    }

    /// Pays `units`.
    ///
    /// # Errors
    /// Fuel, deadline and cancellation.
    #[inline]
    pub fn pay(&mut self, units: u64) -> Result<()> {
        self.slice = self.slice.saturating_sub_unsigned(units);
        if self.slice < 0 { self.refill() } else { Ok(()) }
    }

    /// Grants native work another slice, within the limits; its charges since the last one count.
    #[cold]
    fn refill(&mut self) -> Result<()> {
        self.poll()?;
        if let Some((needed, limit)) = account::would_exceed(0) {
            return Err(Fault::memory(needed, limit));
        }
        self.grant(NATIVE_SLICE);
        if self.slice < 0 { Err(self.exhausted()) } else { Ok(()) }
    }

    /// Adds up to `units` to the slice, after settling what was overdrawn.
    pub(crate) fn grant(&mut self, units: u64) {
        let debt = u64::try_from(-self.slice.min(0)).unwrap_or(u64::MAX);
        let granted = units.saturating_add(debt).min(self.left);
        self.left -= granted;
        self.slice = self.slice.saturating_add_unsigned(granted);
    }

    /// Nothing is left to grant, and the slice is overdrawn.
    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0 && self.slice < 0
    }

    /// Returns the unused rest of the slice.
    pub(crate) fn surrender(&mut self) {
        if self.slice > 0 {
            self.left += self.slice as u64;
            self.slice = 0;
        }
    }

    /// Checks deadline and cancellation, after a preemption if the driver wants one.
    ///
    /// # Errors
    /// `timeout` and `cancelled`.
    #[inline]
    pub fn poll(&self) -> Result<()> {
        // First, so that a long preemption that passed the deadline is noticed at once.
        self.preemption.point();
        match self.interrupt.get() {
            None => Ok(()),
            Some(kind) => Err(interrupted(kind)),
        }
    }

    #[cold]
    pub(crate) fn exhausted(&self) -> Box<Fault> {
        Fault::new(Reason::FuelExceeded, format_args!("the program used up its {} units of fuel", self.limit))
    }
}

#[cold]
fn interrupted(kind: InterruptKind) -> Box<Fault> {
    match kind {
        InterruptKind::Deadline => Fault::new(Reason::Timeout, "the program ran longer than its time limit"),
        InterruptKind::Cancelled => Fault::new(Reason::Cancelled, "the program was cancelled"),
    }
}
