//! A run: what an isolate does between two points at which it is decided what is kept.
//!
//! What was kept before is never written to: what a run defines, memoizes, interns, loads and remembers lies over it, and
//! either becomes part of it (commit) or goes (rollback). Both cost what the run has done and not what there is.
//!
//! Invariants: after a rollback the account says what it said when the run began; no program can tell what was rolled
//! back, nor whether its isolate is a new one but for what was committed.

use super::{Budget, Exit, FREE_STEP, Isolate, World};
use crate::context::{Context, Memos, Prints};
use crate::fault::{Fault, UnitId};
use crate::memory::{Fuel, account};
use crate::value::{Value, garbage};

/// How a run ended, while what it made is still there.
#[derive(Clone, Copy)]
pub struct Ended<'w> {
    /// Why the isolate came back.
    pub exit: &'w Exit,
    /// The result after `Done`, `Return` or `Fail`.
    pub value: &'w Value,
    /// Most logical bytes alive at once, up to here.
    pub peak_bytes: u64,
}

/// What a run would leave is more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverLimit {
    /// Logical bytes that would be kept.
    pub needed: u64,
    /// Logical bytes that may be.
    pub most: u64,
}

impl From<OverLimit> for Box<Fault> {
    fn from(OverLimit { needed, most }: OverLimit) -> Box<Fault> {
        Fault::memory(needed, most)
    }
}

impl Isolate {
    /// Begins a run with this budget. What has not been committed is rolled back.
    pub fn begin(&mut self, budget: Budget) {
        self.rollback();
        self.heap.set_limit(budget.memory_bytes);
        if let Some(world) = &mut self.world {
            world.set_budget(budget);
        }
    }

    /// Ends the run and keeps what it has defined: later runs see it. Results, printed lines, host calls and the context
    /// go. With a bound, what earlier runs have left and nothing reaches any more goes from time to time.
    ///
    /// # Errors
    /// What is kept would be more than `most_bytes`; the run is rolled back then. What the run has replaced or undefined
    /// counts, too: it is there as long as the run can be rolled back.
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
        debug_assert_eq!(self.heap.live(), self.begun_with, "a run that was rolled back has left something");
        self.next_run();
    }

    /// Rolls back what has not been committed, and frees what was kept and nothing reaches any more: names, places of
    /// names without a value, results of memoized functions. Costs what there is, and not what a run has done.
    pub fn sweep(&mut self) {
        self.rollback();
        self.scope(|world, _| world.sweep());
        self.next_run();
    }

    /// Runs a program from its beginning with this context ([`Isolate::set_context`]) and one slice of fuel, lets `look`
    /// see how it ended, and rolls the run back.
    ///
    /// One scope of the memory account for all of that: a tiny program costs less than entering and leaving it.
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
        debug_assert_eq!(self.heap.live(), self.begun_with, "a run that was rolled back has left something");
        self.next_run();
        seen
    }

    /// The next run begins, with the budget of the one before.
    fn next_run(&mut self) {
        self.begun_with = self.heap.live();
        self.heap.restart();
    }
}

impl World {
    /// One slice for the context and the program: there is no point between them at which others may run.
    fn attempt(&mut self, unit: UnitId, context: Option<&str>, slice: u64) -> Result<Exit, Box<Fault>> {
        self.cx.fuel.poll()?;
        self.cx.fuel.grant(slice);
        if let Some(json) = context {
            self.set_similar_context(json)?;
        }
        self.start(unit);
        let exit = self.go_on();
        if account::attention() {
            // What comes next looks at memory first.
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

    /// Drops what no run leaves to the next.
    fn end_run(&mut self, cancelled: &mut Vec<super::CallId>) {
        cancelled.clear();
        self.result = Value::Nil;
        self.schedule.end_run();
        self.schedule.cancelled.clear();
        let cx = &mut self.cx;
        cx.data = Value::Nil;
        self.context_shape.end_run();
        cx.extensions.clear();
        cx.regexes.end_run();
        cx.prints.restart();
        cx.remarks.take();
        cx.fuel.refill_all();
        cx.key_depth = 0;
    }

    /// Keeps what the run has defined; nothing else of it is there any more.
    fn commit(&mut self) {
        self.context_shape.forget();
        Memos::commit(&mut self.cx);
        self.globals.commit();
        // What was replaced may have held the last functions of a program.
        self.drain();
        self.units.commit(&mut self.cx);
        self.drain();
        self.cx.symbols.commit();
        self.runs += 1;
    }

    /// Takes back what the run has defined; nothing else of it is there any more.
    fn roll_back(&mut self) {
        self.globals.roll_back(|slot| self.slots.forget(slot));
        self.cx.memos.roll_back();
        self.units.roll_back(&mut self.cx);
        self.drain();
        // Last: the values of the run had them.
        self.cx.symbols.roll_back();
        self.runs += 1;
    }

    /// Frees what waits for it; others may run in between.
    pub(super) fn drain(&self) {
        let preemption = self.cx.fuel.preemption;
        while garbage::drain_waiting(FREE_STEP) {
            preemption.point();
        }
    }
}
