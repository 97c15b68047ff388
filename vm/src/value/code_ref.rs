//! What keeps a loaded program in its isolate: the functions of it that are alive.

use crate::fault::UnitId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

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
            self.0.released.0.borrow_mut().push(self.0.unit);
        }
    }
}
