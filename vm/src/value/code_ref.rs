//! How a value refers to code: the number of a function, and what keeps its program in the isolate.

use crate::bytecode::ProtoIndex;
use crate::fault::UnitId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Number of a function in its isolate: its place in the table of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FunctionId(pub(crate) u32);

impl FunctionId {
    /// The place in the table.
    #[inline(always)]
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}

impl UnitId {
    /// A function of this program: those of one lie together, and the number of the first is that of the program.
    #[inline(always)]
    pub(crate) fn function(self, proto: ProtoIndex) -> FunctionId {
        FunctionId(self.0 + u32::from(proto.0))
    }
}

/// A reference to the code of a loaded program: its unit has one, and each of its closures.
#[derive(Clone)]
pub(crate) struct CodeRef(Rc<Code>);

struct Code {
    unit: UnitId,
    released: Rc<Released>,
    /// It is among the released.
    is_listed: Cell<bool>,
}

/// Programs whose last closure has gone at some time; others may have come since.
#[derive(Default)]
pub(crate) struct Released(RefCell<Vec<UnitId>>);

impl Released {
    /// Takes them out.
    pub(crate) fn take(&self) -> Vec<UnitId> {
        self.0.take()
    }

    /// Adds one.
    pub(crate) fn add(&self, unit: UnitId) {
        self.0.borrow_mut().push(unit);
    }

    /// There is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

impl CodeRef {
    /// The reference of a unit itself.
    pub(crate) fn new(unit: UnitId, released: Rc<Released>) -> CodeRef {
        CodeRef(Rc::new(Code { unit, released, is_listed: Cell::new(false) }))
    }

    /// The number of the program.
    pub(crate) fn unit(&self) -> UnitId {
        self.0.unit
    }

    /// There is no closure.
    pub(crate) fn is_only(&self) -> bool {
        Rc::strong_count(&self.0) == 1
    }

    /// The next closure to go lists the program again.
    pub(crate) fn unlist(&self) {
        self.0.is_listed.set(false);
    }
}

impl Drop for CodeRef {
    fn drop(&mut self) {
        // The one of the unit is left.
        if Rc::strong_count(&self.0) == 2 && !self.0.is_listed.replace(true) {
            self.0.released.add(self.0.unit);
        }
    }
}
