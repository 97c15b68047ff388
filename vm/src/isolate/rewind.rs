//! Taking an isolate back to the moment after its program was loaded, so that the program can run again
//! without being linked again.
//!
//! Invariant: no program can tell an isolate that was taken back from a new one. Whatever a run leaves is dropped, and
//! what it has spent is given back; what cannot be taken back (names interned from data, programs of
//! regexes) is on the memory account, and an isolate that holds more than before is refused.

use super::{Exit, Isolate, UnitId, World};
use crate::context::Context;
use crate::memory::account::AccountMark;
use crate::memory::{FuelMark, account};
use crate::value::{Value, garbage};

/// The state of an isolate before its program started.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    unit: UnitId,
    heap: AccountMark,
    fuel: FuelMark,
}

impl Isolate {
    /// Notes the state of an isolate into which `unit` has been loaded and that has not run yet.
    pub fn mark(&self, unit: UnitId) -> Mark {
        // The world is there until the isolate is closed, which takes the isolate.
        let fuel = self.world.as_ref().map(|world| world.cx.fuel.mark()).unwrap_or_default();
        Mark { unit, heap: self.heap.mark(), fuel }
    }

    /// Runs the program of the mark once, from its beginning and with one slice of fuel, and lets `look` see how
    /// it ended; then forgets the run. The bool is false when something of it is left: the isolate is of no further
    /// use then.
    ///
    /// One scope of the memory account for all of that: a tiny program costs less than entering and leaving it.
    pub fn rerun<T>(
        &mut self,
        mark: &Mark,
        slice: u64,
        look: impl FnOnce(&mut Context, Ended<'_>) -> T,
    ) -> (T, bool) {
        let (seen, is_empty) = self.scope(|world, cancelled| {
            world.start(mark.unit);
            let exit = world.run(slice);
            let ended = Ended { exit: &exit, value: &world.result, peak_bytes: account::peak() };
            let seen = look(&mut world.cx, ended);
            cancelled.clear();
            (seen, world.forget(mark))
        });
        (seen, is_empty && self.heap.restore(&mark.heap))
    }
}

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

impl World {
    /// Drops what the run since the mark has left; true when no program was added.
    fn forget(&mut self, mark: &Mark) -> bool {
        self.result = Value::Nil;
        self.schedule.rest();
        self.schedule.cancelled.clear();
        self.globals.undefine();
        let cx = &mut self.cx;
        cx.data = Value::Nil;
        if !cx.memos.is_empty() {
            cx.memos = Default::default();
        }
        cx.extensions.clear();
        cx.prints.restart();
        cx.remarks.take();
        cx.fuel.restore(mark.fuel);
        cx.key_depth = 0;
        while garbage::drain(usize::MAX) {}
        cx.units.len() == mark.unit.0 as usize + 1
    }
}
