//! Lets the runtime stop a program that is running: end it (deadline, cancellation), or preempt it so that another one
//! runs.

use super::account;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Why the driver stops a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptKind {
    /// The deadline passed.
    Deadline,
    /// The caller gave up.
    Cancelled,
}

/// A flag that any thread may raise; the program polls it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicU8>);

impl Interrupt {
    /// Raises the flag; the first reason wins.
    pub fn set(&self, kind: InterruptKind) {
        // 0 is no reason.
        let code = kind as u8 + 1;
        // Losing the race means that another reason was first.
        let _ = self.0.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The raised reason.
    #[inline]
    pub fn get(&self) -> Option<InterruptKind> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(InterruptKind::Deadline),
            _ => Some(InterruptKind::Cancelled),
        }
    }
}

/// Lets a driver preempt native work at a poll and resume it later. This is the only way to suspend a native
/// operation half-way, and the same for all of them: code that polls can be preempted.
///
/// The operation stays on the native stack, so the driver must run isolates on stacks of their own to make use of
/// this.
pub trait Preempt: Sync {
    /// Whether another task should run now. Asked at every poll, so it must be cheap.
    fn is_due(&self) -> bool;

    /// Suspends the caller and returns when it is to continue; its isolate has this many live bytes. Its memory
    /// account is off the thread meanwhile: other isolates may run there.
    fn suspend(&self, live_bytes: u64);
}

/// The [`Preempt`] of an isolate; none by default.
#[derive(Clone, Copy, Default)]
pub struct Preemption(Option<&'static dyn Preempt>);

impl Preemption {
    /// Calls `preempt` at polls.
    pub const fn by(preempt: &'static dyn Preempt) -> Preemption {
        Preemption(Some(preempt))
    }

    /// A point at which the current work may be suspended. State that other isolates on this thread use must not be
    /// borrowed here.
    #[inline]
    pub fn point(self) {
        if let Some(preempt) = self.0
            && preempt.is_due()
        {
            account::parked(|live_bytes| preempt.suspend(live_bytes));
        }
    }
}

impl fmt::Debug for Preemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Preemption").field(&self.0.is_some()).finish()
    }
}
