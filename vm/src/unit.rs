//! A program loaded into an isolate: its tables linked to the isolate's symbols, globals and values.

use crate::bytecode::Program;
use crate::symbol::Symbol;
use crate::value::Value;
use std::cell::Cell;
use std::sync::Arc;

/// A loaded program.
pub struct Unit {
    /// The code.
    pub program: Arc<Program>,
    /// Symbols of the isolate, by the program's numbers.
    pub symbols: Vec<Symbol>,
    /// Constant values, by the program's numbers.
    pub constants: Vec<Value>,
    /// Global slots of the isolate, by the program's numbers.
    pub globals: Vec<u32>,
    /// Inline-cache cells, all functions after one another.
    pub(crate) caches: Vec<Cell<u32>>,
}
