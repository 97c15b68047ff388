//! A program loaded into an isolate: its tables linked to the isolate's symbols, globals and values.

use crate::bytecode::Program;
use crate::bytecode::entry::Entry;
use crate::bytecode::leaf::Leaf;
use crate::value::Value;
use std::sync::Arc;

/// A loaded program.
pub(crate) struct Unit {
    /// The code.
    pub(crate) program: Arc<Program>,
    /// Constant values, by the program's numbers.
    pub(crate) constants: Vec<Value>,
    /// Global slots of the isolate, by the program's numbers.
    pub(crate) globals: Vec<u32>,
    /// The simple calls of each function.
    pub(crate) entries: Vec<Entry>,
    /// The functions that are one operation.
    pub(crate) leaves: Vec<Leaf>,
}

impl Unit {
    /// The function as one operation, if it is one.
    #[inline(always)]
    pub(crate) fn leaf(&self, entry: Entry) -> Option<&Leaf> {
        self.leaves.get(usize::from(entry.leaf()).wrapping_sub(1))
    }
}
