//! A program loaded into an isolate: its tables linked to the isolate's symbols, globals and values.

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
    /// What its closures refer to it by.
    pub(crate) code: CodeRef,
    /// What linking it took: a run that finds it linked pays for that as if it had done so itself.
    pub(crate) linking: Linking,
    /// Logical bytes on the account; none before the run that loaded it is committed.
    pub(crate) charged: Cell<usize>,
    /// The host wants it kept, whether or not closures reach it.
    pub(crate) is_attached: Cell<bool>,
}

/// What linking a program took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linking {
    /// The run.
    pub(crate) run: u64,
    /// Fuel.
    pub(crate) fuel: u64,
    /// Logical bytes for a moment, beside those that it holds.
    pub(crate) bytes: u64,
}

impl Unit {
    /// Logical bytes of its tables and its code; those of its constants are on the account by themselves.
    pub(crate) fn bytes(&self) -> usize {
        self.program.heap_bytes()
            + self.constants.len() * size_of::<Value>()
            + self.globals.len() * size_of::<u32>()
            + self.program.protos.len() * size_of::<Function>()
            + self.leaves.len() * size_of::<Leaf>()
    }

    /// Puts the program on the account: it stays beyond its run.
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
