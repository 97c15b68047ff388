//! Taking an isolate back to the moment after its program was loaded, so that the program can run again
//! without being linked again.
//!
//! Invariant: no program can tell a rewound isolate from a new one. Whatever a run leaves is dropped, and
//! what it has spent is given back; what cannot be taken back (names interned from data, programs of
//! regexes) is on the memory account, and an isolate that holds more than before is refused.

use super::{Isolate, UnitId};
use crate::fuel::FuelMark;
use crate::heap::{self, HeapMark};
use crate::value::Value;

/// The state of an isolate before its program started.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    unit: UnitId,
    heap: HeapMark,
    fuel: FuelMark,
}

impl Isolate {
    /// Notes the state of an isolate into which `unit` has been loaded and that has not run yet.
    pub fn mark(&self, unit: UnitId) -> Mark {
        // The world is there until the isolate is closed, which takes the isolate.
        let fuel = self.world.as_ref().map(|world| world.cx.fuel.mark()).unwrap_or_default();
        Mark { unit, heap: self.heap.mark(), fuel }
    }

    /// Forgets what has been run since the mark. False when something of it is left: the isolate is of no
    /// further use then.
    pub fn rewind(&mut self, mark: &Mark) -> bool {
        self.scope(|world, cancelled| {
            world.result = Value::Nil;
            world.schedule.clear();
            world.globals.undefine();
            world.cx.data = Value::Nil;
            world.cx.memos = Default::default();
            world.cx.extensions.clear();
            world.cx.prints.restart();
            world.cx.fuel.restore(mark.fuel);
            world.cx.key_depth = 0;
            world.schedule.cancelled.clear();
            cancelled.clear();
            while heap::drain(usize::MAX) {}
        });
        let units = self.world.as_ref().map_or(0, |world| world.cx.units.len());
        units == mark.unit.0 as usize + 1 && self.heap.restore(&mark.heap)
    }
}
