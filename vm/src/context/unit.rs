//! Holds a program that is loaded into an isolate (the heap and state in which it runs): the bytecode, the values of
//! the program's constants, and the global slots for the program's names.

use super::Function;
use crate::bytecode::Program;
use crate::bytecode::leaf::Leaf;
use crate::memory::account;
use crate::value::Value;
use crate::value::code_ref::CodeRef;
use std::cell::Cell;
use std::sync::Arc;

/// A loaded program.
pub(crate) struct Unit {
    /// The code.
    pub(crate) program: Arc<Program>,
    /// Constant values, by the program's numbers.
    pub(crate) constants: Vec<Value>,
    /// Global slots of the isolate, by the program's numbers.
    pub(crate) globals: Vec<u32>,
    /// The functions that are one operation.
    pub(crate) leaves: Vec<Leaf>,
    /// The reference to its code that its closures hold as well.
    pub(crate) code: CodeRef,
    /// The cost of linking it: a run that finds it linked pays as if it had linked it itself.
    pub(crate) linking: Linking,
    /// Logical bytes charged to the account; none until the run that loaded it is committed.
    pub(crate) charged: Cell<usize>,
    /// The host has attached it, so it stays even if no closure reaches it.
    pub(crate) is_attached: Cell<bool>,
}

/// The cost of linking a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linking {
    /// The run.
    pub(crate) run: u64,
    /// Fuel.
    pub(crate) fuel: u64,
    /// Temporary logical bytes, in addition to those that it holds.
    pub(crate) bytes: u64,
}

impl Unit {
    /// Logical bytes of its tables and code; its constants are charged separately.
    pub(crate) fn bytes(&self) -> usize {
        self.program.heap_bytes()
            + self.constants.len() * size_of::<Value>()
            + self.globals.len() * size_of::<u32>()
            + self.program.protos.len() * size_of::<Function>()
            + self.leaves.len() * size_of::<Leaf>()
    }

    /// Charges the program to the account: it outlives its run.
    pub(crate) fn charge(&self) {
        if self.charged.get() == 0 {
            self.charged.set(self.bytes());
            account::charge(self.charged.get());
        }
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        account::release(self.charged.get());
    }
}
