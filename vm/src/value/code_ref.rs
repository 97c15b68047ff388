//! References from values to compiled functions, counted so that a program stays loaded as long as one of its closures
//! exists. A program that has lost its last closure gets into a list.

use crate::bytecode::ProtoIndex;
use crate::fault::UnitId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Number of a function in its isolate: its index in the function table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FunctionId(pub(crate) u32);

impl FunctionId {
    /// The index in the table.
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl UnitId {
    /// A function of this program. The functions of a program are adjacent, and the number of the first is the
    /// program's.
    #[inline(always)]
    pub(crate) fn function(self, proto: ProtoIndex) -> FunctionId {
        FunctionId(self.0 + u32::from(proto.0))
    }
}

/// A reference to the code of a loaded program, held by its unit and by each of its closures.
#[derive(Clone)]
pub(crate) struct CodeRef(Rc<Code>);

struct Code {
    unit: UnitId,
    released: Rc<Released>,
    /// It is in the list of released programs.
    is_listed: Cell<bool>,
}

/// Programs that lost their last closure at some time; others may have been made since.
pub(crate) type Released = RefCell<Vec<UnitId>>;

impl CodeRef {
    /// The reference of the unit itself.
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

    /// Lets the next dropped closure list the program again.
    pub(crate) fn unlist(&self) {
        self.0.is_listed.set(false);
    }
}

impl Drop for CodeRef {
    fn drop(&mut self) {
        // Only the unit's own reference is left.
        if Rc::strong_count(&self.0) == 2 && !self.0.is_listed.replace(true) {
            self.0.released.borrow_mut().push(self.0.unit);
        }
    }
}
