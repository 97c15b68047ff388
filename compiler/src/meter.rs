//! Counts the steps and bytes of a compilation, and stops it when its budget is used up or it is interrupted.
//!
//! Architecture invariant: every pass is metered at a function that it cannot bypass: the reader at the next token,
//! walks over forms in `form::walk`, resolving at a form, liveness at an expression, code generation at an expression
//! and an instruction, the verifier at an instruction. The meter sees the bytes of the arena directly; heap memory is
//! reported where it grows.
//!
//! A meter that has stopped stays stopped. Passes without errors of their own skip the rest, at one step for each of
//! the forms or expressions on the way out; their result is thrown away.

use crate::diagnostic::{Diagnostic, Done, Failed};
use bumpalo::Bump;
use ptc_vm::{Interrupt, InterruptKind, Preemption, Reason, Span};
use std::cell::Cell;

/// A list that grows in the arena and becomes a slice of it.
pub(crate) type List<'a, T> = bumpalo::collections::Vec<'a, T>;

/// Steps between two checks of interrupt and memory: far below a millisecond.
const SLICE: u64 = 1_024;

/// Steps for each byte of source text. Typical programs take one or two; a form that expands into others, or code
/// that drops many locals on each of its paths, a hundred.
const STEPS_PER_BYTE: u64 = 250;

/// Bytes allocated at once for one step.
const BYTES_MADE_PER_STEP: usize = 256;

/// Bytes that may be allocated at once without a check of the budget.
const LOOKED_AT: usize = 1 << 10;

/// Bytes of text that are read for one step.
const BYTES_PER_STEP: usize = 32;

/// The limits of one compilation, and the hooks to end or suspend it.
#[derive(Clone, Debug)]
pub struct CompileBudget {
    /// Most bytes held at once: forms, intermediate code, bytecode, constants.
    pub memory_bytes: u64,
    /// Raised at the deadline, or when the caller gives up; `None` if the compilation is never interrupted.
    pub interrupt: Option<Interrupt>,
    /// Lets a driver use the thread for other work meanwhile.
    pub preemption: Preemption,
}

impl CompileBudget {
    /// For the program of a run with this memory limit: as many bytes, and in addition what any text of a few pages
    /// needs during compilation.
    pub fn for_memory(limit: u64, interrupt: Option<Interrupt>) -> CompileBudget {
        const ANYWAY: u64 = 8 << 20;
        let memory_bytes = limit.saturating_add(ANYWAY);
        CompileBudget { memory_bytes, interrupt, preemption: Preemption::default() }
    }
}

impl Default for CompileBudget {
    /// As for a run of 100 MiB, without a deadline.
    fn default() -> CompileBudget {
        CompileBudget::for_memory(100 << 20, None)
    }
}

/// The budget is used up, or the caller has given up: `Meter::verdict` says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// The reason for stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    Interrupted(InterruptKind),
    Memory,
    Steps,
}

/// The meter of one compilation.
#[derive(Debug)]
pub struct Meter<'a> {
    arena: &'a Bump,
    /// Steps until the next check.
    left: Cell<u64>,
    /// Steps granted so far, `left` included.
    granted: Cell<u64>,
    most_steps: u64,
    /// Bytes on the heap that passes have reported.
    held: Cell<u64>,
    budget: &'a CompileBudget,
    stopped: Cell<Option<StopReason>>,
}

impl<'a> Meter<'a> {
    /// A full budget for a text.
    pub(crate) fn new(arena: &'a Bump, budget: &'a CompileBudget, source: &str) -> Meter<'a> {
        let most_steps = (source.len() as u64 + 100).saturating_mul(STEPS_PER_BYTE);
        Meter {
            arena,
            // The first check comes when there is something to see; the verdict checks in any case.
            left: Cell::new(SLICE),
            granted: Cell::new(SLICE),
            most_steps,
            held: Cell::new(0),
            budget,
            stopped: Cell::new(None),
        }
    }

    /// The arena for everything that lives as long as the compilation.
    pub(crate) fn arena(&self) -> &'a Bump {
        self.arena
    }

    /// One step of work: a token, a form, an expression, an instruction.
    ///
    /// # Errors
    /// The budget is used up.
    #[inline]
    pub fn step(&self) -> Result<(), Stopped> {
        self.work(1)
    }

    /// Several steps at once.
    ///
    /// # Errors
    /// The budget is used up.
    #[inline]
    pub fn work(&self, steps: usize) -> Result<(), Stopped> {
        match self.left.get().checked_sub(steps as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => self.look(steps as u64),
        }
    }

    /// One step for reading a text, and more if it is long.
    ///
    /// # Errors
    /// The budget is used up.
    #[inline]
    pub fn text(&self, bytes: usize) -> Result<(), Stopped> {
        self.work(1 + bytes / BYTES_PER_STEP)
    }

    /// Checks interrupt and memory out of turn, after much memory was reported.
    pub(crate) fn look_now(&self) -> Result<(), Stopped> {
        self.look(0)
    }

    /// Reserves room that is allocated at once.
    ///
    /// # Errors
    /// It does not fit the budget.
    #[inline]
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), Stopped> {
        // Small allocations are paid for with the form that needs them.
        if bytes <= LOOKED_AT { Ok(()) } else { self.reserve_much(bytes) }
    }

    #[cold]
    fn reserve_much(&self, bytes: usize) -> Result<(), Stopped> {
        self.work(bytes / BYTES_MADE_PER_STEP)?;
        if self.bytes() + bytes as u64 > self.budget.memory_bytes {
            self.stop(Some(StopReason::Memory));
            return Err(Stopped);
        }
        Ok(())
    }

    /// False once the budget is used up, so that loops over forms end.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        self.stopped.get().is_none()
    }

    /// Reports bytes that are held on the heap until the end.
    #[inline]
    pub(crate) fn hold(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes as u64);
    }

    /// Reports bytes that are no longer held.
    pub(crate) fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes as u64));
    }

    /// Checks interrupt, memory and steps.
    #[cold]
    #[inline(never)]
    fn look(&self, steps: u64) -> Result<(), Stopped> {
        if self.stopped.get().is_some() {
            return Err(Stopped);
        }
        let done = self.steps().saturating_add(steps);
        self.budget.preemption.point();
        let why = match self.budget.interrupt.as_ref().and_then(Interrupt::get) {
            Some(kind) => Some(StopReason::Interrupted(kind)),
            None if self.bytes() > self.budget.memory_bytes => Some(StopReason::Memory),
            None if done > self.most_steps => Some(StopReason::Steps),
            None => None,
        };
        self.granted.set(done.saturating_add(SLICE));
        self.left.set(SLICE);
        self.stop(why);
        if why.is_none() { Ok(()) } else { Err(Stopped) }
    }

    fn stop(&self, why: Option<StopReason>) {
        self.stopped.set(why);
        if why.is_some() {
            // Nothing is granted any more: each further step checks and finds the reason.
            self.granted.set(self.steps());
            self.left.set(0);
        }
    }

    /// Bytes that may still be held.
    pub(crate) fn room(&self) -> u64 {
        self.budget.memory_bytes.saturating_sub(self.bytes())
    }

    /// Bytes held now.
    fn bytes(&self) -> u64 {
        let arena = self.arena.allocated_bytes().saturating_sub(self.arena.chunk_capacity());
        arena as u64 + self.held.get()
    }

    /// Steps done so far. The same for the same text, in every process.
    pub(crate) fn steps(&self) -> u64 {
        self.granted.get() - self.left.get()
    }

    /// Between two passes: the reason if the compilation must end.
    ///
    /// # Errors
    /// The budget is used up.
    pub(crate) fn verdict(&self) -> Done {
        if self.stopped.get().is_none() {
            // Growth since the last check counts.
            let _ = self.look(0);
        }
        let Some(why) = self.stopped.get() else { return Ok(()) };
        let limit = self.budget.memory_bytes;
        let (reason, message) = match why {
            StopReason::Interrupted(InterruptKind::Deadline) => {
                (Reason::CompileTimeout, "compiling the program took longer than its time limit".to_owned())
            }
            StopReason::Interrupted(InterruptKind::Cancelled) => {
                (Reason::Cancelled, "the program was cancelled".to_owned())
            }
            StopReason::Steps => (
                Reason::CompileTimeout,
                format!("compiling the program takes more than {} steps", self.most_steps),
            ),
            StopReason::Memory => (
                Reason::CompileMemoryExceeded,
                format!("compiling the program needs more memory than the limit of {limit} bytes"),
            ),
        };
        Err(Box::new(Diagnostic::error(reason, Span::default(), message)))
    }
}

impl From<Stopped> for Failed {
    /// A placeholder: the verdict replaces it when the pass has ended.
    #[cold]
    fn from(_: Stopped) -> Failed {
        Box::new(Diagnostic::error(Reason::CompileTimeout, Span::default(), "compiling ended early"))
    }
}
