//! Holds the state that all operations on the values of one program share: the meter of work and memory, the interned
//! names of keywords and symbols, and caches.

use super::Value;
use super::extensions::Extensions;
use super::symbol::{Symbol, Symbols};
use crate::bytecode::Builtins;
use crate::fault::{Fault, Reason, Result};
use crate::memory::Meter;
use std::mem;
use std::ops::{Deref, DerefMut};

/// The shared state of the values of one isolate.
pub struct Store {
    /// The meter that pays for work.
    pub(crate) meter: Meter,
    /// Interned names.
    pub symbols: Symbols,
    /// Facts about builtins.
    pub(crate) builtins: Builtins,
    /// Current nesting of collections used as map keys in a comparison.
    pub(crate) key_depth: u32,
    /// The cache of key sets with an added key.
    pub(crate) extensions: Extensions,
    /// Memory for short texts under construction.
    pub(crate) scratch: String,
    /// An empty stack of [`STACK`] values, or none.
    stack: Vec<Value>,
}

/// Initial room of a stack, in values.
const STACK: usize = 16;

/// Deepest nesting of collections used as keys that ordering and equality follow: the only recursion of an operation
/// on values.
const KEY_DEPTH: u32 = 24;

impl Deref for Store {
    type Target = Meter;

    #[inline(always)]
    fn deref(&self) -> &Meter {
        &self.meter
    }
}

impl DerefMut for Store {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }
}

impl Store {
    /// A store without values.
    pub(crate) fn new(meter: Meter, symbols: Symbols, builtins: Builtins) -> Store {
        Store {
            meter,
            symbols,
            builtins,
            key_depth: 0,
            extensions: Extensions::default(),
            scratch: String::new(),
            stack: Vec::new(),
        }
    }

    /// A stack for values under construction, which is not on the account. It has the same initial room whether it
    /// was reused or not, so that programs cannot observe the reuse.
    pub(crate) fn take_stack(&mut self) -> Vec<Value> {
        let kept = mem::take(&mut self.stack);
        if kept.capacity() > 0 { kept } else { Vec::with_capacity(STACK) }
    }

    /// Stores a stack for the next use if it is empty and has not grown.
    pub(crate) fn keep_stack(&mut self, stack: Vec<Value>) {
        if stack.is_empty() && stack.capacity() == STACK {
            self.stack = stack;
        }
    }

    /// A keyword named by the host.
    pub fn keyword(&mut self, text: &str) -> Value {
        Value::Keyword(self.symbols.intern(text))
    }

    /// The text of a symbol.
    pub fn text(&self, symbol: Symbol) -> &str {
        self.symbols.text(symbol)
    }

    /// The name of a keyword, string or symbol value.
    pub fn name<'v>(&'v self, value: &'v Value) -> Option<&'v str> {
        match value {
            Value::Keyword(symbol) | Value::Symbol(symbol) => Some(self.symbols.text(*symbol)),
            Value::Str(node) => Some(node.as_str()),
            _ => None,
        }
    }

    /// Runs `work` one key level deeper.
    pub(crate) fn nested_key<T>(&mut self, work: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        if self.key_depth >= KEY_DEPTH {
            return Err(Fault::new(
                Reason::RuntimeError,
                format_args!(
                    "collections used as map keys or set members nest deeper than {KEY_DEPTH} levels"
                ),
            ));
        }
        self.key_depth += 1;
        let result = work(self);
        self.key_depth -= 1;
        result
    }
}
