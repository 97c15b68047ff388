//! Makes each run of a program in an isolate (heap and state of the program) a transaction, which ends by committing or
//! rolling back what the run has defined.
//!
//! Committed state is never overwritten: the definitions, memoized results, interned names, loaded programs and
//! remembered values of a run form a layer above it. The layer is merged (commit) or dropped (rollback). Both take
//! time proportional to the work of the run, not to the amount of committed state.
//!
//! Invariants: after a rollback the account is the same as at the beginning of the run. Programs can observe neither
//! what was rolled back nor, apart from committed state, whether their isolate is new.

use super::{Budget, Exit, FREE_STEP, Isolate, World};
use crate::context::{Context, Memos, Prints};
use crate::fault::{Fault, UnitId};
use crate::memory::{Fuel, account};
use crate::value::{Value, garbage};

/// How a run ended, while its values still exist.
#[derive(Clone, Copy)]
pub struct Ended<'w> {
    /// Why the isolate returned.
    pub exit: &'w Exit,
    /// The result after `Done`, `Return` or `Fail`.
    pub value: &'w Value,
    /// Peak of live logical bytes up to here.
    pub peak_bytes: u64,
}

/// The retained state of a run would exceed its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverLimit {
    /// Logical bytes that would be retained.
    pub needed: u64,
    /// The limit.
    pub most: u64,
}

impl From<OverLimit> for Box<Fault> {
    fn from(OverLimit { needed, most }: OverLimit) -> Box<Fault> {
        Fault::memory(needed, most)
    }
}

impl Isolate {
    /// Begins a run with this budget. Uncommitted state is rolled back.
    pub fn begin(&mut self, budget: Budget) {
        self.rollback();
        self.heap.account.limit = budget.memory_bytes;
        if let Some(world) = &mut self.world {
            world.set_budget(budget);
        }
    }

    /// Ends the run and keeps its definitions for later runs. Results, printed lines, host calls and the context are
    /// dropped. With a limit, retained values that nothing reaches any more are freed from time to time.
    ///
    /// # Errors
    /// More than `most_bytes` would be retained; the run is rolled back then. Values that the run has replaced or
    /// undefined count as well: they exist as long as the run can be rolled back.
    pub fn commit(&mut self, most_bytes: u64) -> Result<(), OverLimit> {
        let kept = self.scope(|world, cancelled| {
            world.end_run(cancelled);
            world.drain();
            let mut needed = account::live() + world.units.added_bytes(&world.cx) as u64;
            let is_tight = needed > most_bytes;
            if is_tight {
                needed = needed.saturating_sub(world.unreached_bytes());
            }
            if needed > most_bytes {
                world.roll_back();
                return Err(OverLimit { needed, most: most_bytes });
            }
            world.commit();
            if is_tight || world.sweep_is_due(most_bytes) {
                world.sweep();
            }
            Ok(())
        });
        self.next_run();
        kept
    }

    /// Ends the run and leaves no trace of it.
    pub fn rollback(&mut self) {
        self.scope(|world, cancelled| {
            world.end_run(cancelled);
            world.roll_back();
        });
        self.after_rollback();
    }

    /// Rolls back uncommitted state, and frees retained state that nothing reaches any more: names, slots of names
    /// without a value, results of memoized functions. Takes time proportional to all retained state.
    pub fn sweep(&mut self) {
        self.rollback();
        self.scope(|world, _| world.sweep());
        self.next_run();
    }

    /// Runs a program from its beginning with this context ([`Isolate::set_context`]) and one slice of fuel, calls
    /// `look` with the outcome, and rolls the run back.
    ///
    /// All of this uses one scope of the memory account: a tiny program costs less than entering and leaving it.
    pub fn attempt<T>(
        &mut self,
        unit: UnitId,
        context: Option<&str>,
        slice: u64,
        look: impl FnOnce(&mut Context, Ended<'_>) -> T,
    ) -> T {
        let seen = self.scope(|world, cancelled| {
            let exit = world.attempt(unit, context, slice).unwrap_or_else(Exit::Fault);
            let ended = Ended { exit: &exit, value: &world.result, peak_bytes: account::peak() };
            let seen = look(&mut world.cx, ended);
            world.end_run(cancelled);
            world.roll_back();
            seen
        });
        self.after_rollback();
        seen
    }

    /// Begins the next run after one that was rolled back.
    fn after_rollback(&mut self) {
        let left = self.heap.account.live;
        debug_assert_eq!(left, self.begun_with, "a run that was rolled back has left something");
        self.next_run();
    }

    /// Begins the next run, with the same budget.
    fn next_run(&mut self) {
        self.begun_with = self.heap.account.live;
        self.heap.account.restart();
    }
}

impl World {
    /// One slice for both context and program: no other isolate runs between them.
    fn attempt(&mut self, unit: UnitId, context: Option<&str>, slice: u64) -> Result<Exit, Box<Fault>> {
        self.cx.fuel.poll()?;
        self.cx.fuel.grant(slice);
        if let Some(json) = context {
            self.set_context(json)?;
        }
        self.start(unit);
        let exit = self.run_fibers();
        if account::attention() {
            // The next safepoint then checks memory first.
            self.cx.fuel.surrender();
        }
        Ok(exit)
    }

    pub(super) fn set_budget(&mut self, budget: Budget) {
        let cx = &mut self.cx;
        cx.fuel = Fuel::new(budget.fuel, budget.interrupt);
        cx.fuel.preemption = budget.preemption;
        cx.prints = Prints::new(budget.print_bytes);
        cx.strict_data = budget.strict_data;
        cx.loop_limit = budget.loop_limit.unwrap_or(u64::MAX);
        cx.parallel_width = budget.parallel_width.max(1);
    }

    /// Drops the state that no run passes on.
    fn end_run(&mut self, cancelled: &mut Vec<super::CallId>) {
        cancelled.clear();
        self.result = Value::Nil;
        self.schedule.end_run();
        self.schedule.cancelled.clear();
        let cx = &mut self.cx;
        cx.data = Value::Nil;
        cx.extensions.clear();
        cx.regexes.end_run();
        cx.prints.restart();
        cx.remarks.take();
        cx.fuel.refill_all();
        cx.key_depth = 0;
    }

    /// Keeps the definitions of the run, the only state that is left of it.
    fn commit(&mut self) {
        self.keep_sources();
        Memos::commit(&mut self.cx);
        self.globals.commit();
        // Replaced values may have held the last functions of a program.
        self.drain();
        self.units.commit(&mut self.cx);
        self.drain();
        self.cx.symbols.commit();
        self.runs += 1;
    }

    /// Undoes the definitions of the run, the only state that is left of it.
    fn roll_back(&mut self) {
        self.tracker = self.cx.tracker.take().or_else(|| self.tracker.take());
        if let Some(tracker) = &mut self.tracker {
            tracker.roll_back();
        }
        self.globals.roll_back(|slot| self.slots.forget(slot));
        self.cx.memos.roll_back();
        self.units.roll_back(&mut self.cx);
        self.drain();
        // Last: the values of the run used these names.
        self.cx.symbols.roll_back();
        self.runs += 1;
    }

    /// Frees the backlog; other isolates may run in between.
    pub(super) fn drain(&self) {
        let preemption = self.cx.fuel.preemption;
        while garbage::drain_waiting(FREE_STEP) {
            preemption.point();
        }
    }
}
