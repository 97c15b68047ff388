//! What every builtin can reach: names, fuel, memory, printed lines, the program's input data.
//! It cannot reach the interpreter: no builtin can call a function of the program (architecture
//! invariant 3); those that take callbacks are native frames.

use crate::extensions::Extensions;
use crate::fault::{Fault, Result};
use crate::fuel::Fuel;
use crate::native::memoize::Memos;
use crate::prints::Prints;
use crate::reason::Reason;
use crate::regex::RegexCache;
use crate::symbol::{Symbol, Symbols};
use crate::unit::Unit;
use crate::value::Value;
use std::rc::Rc;

/// The state of an isolate that builtins work on.
pub struct Context {
    /// Interned names.
    pub symbols: Symbols,
    /// Fuel, deadline and cancellation.
    pub fuel: Fuel,
    /// Lines written by `println`.
    pub prints: Prints,
    /// Compiled regular expressions.
    pub regexes: RegexCache,
    /// The map behind `data/…`.
    pub data: Value,
    /// Reading an absent key of `data` is an error.
    pub strict_data: bool,
    /// Most rounds of one loop activation.
    pub loop_limit: u64,
    /// Most pmap branches alive at once.
    pub parallel_width: usize,
    /// Results of memoized functions.
    pub(crate) memos: Memos,
    pub(crate) units: Rc<Vec<Rc<Unit>>>,
    /// How deep collections used as map keys nest in the comparison under way.
    pub(crate) key_depth: u32,
    /// Which run of the isolate this is.
    pub(crate) run: Run,
    /// Keys that came of adding a key to others.
    pub(crate) extensions: Extensions,
    /// Memory for short texts under construction.
    pub(crate) scratch: String,
    /// Frequent instructions run in the hot loop.
    pub(crate) hot_loop: bool,
}

/// A run of an isolate; the default one is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run(u32);

impl Run {
    /// The first one.
    pub(crate) const FIRST: Run = Run(1);

    /// The one after it.
    pub(crate) fn next(self) -> Run {
        Run(self.0.wrapping_add(1).max(1))
    }
}

/// Deepest nesting of collections used as keys that ordering and equality follow: the only place
/// where an operation on values calls itself.
const KEY_DEPTH: u32 = 24;

impl Context {
    /// A keyword named by the host.
    pub fn keyword(&mut self, text: &str) -> Value {
        Value::Keyword(self.symbols.intern(text))
    }

    /// The text of a symbol.
    pub fn text(&self, symbol: Symbol) -> &str {
        self.symbols.text(symbol)
    }

    /// The name behind a keyword, string or symbol value.
    pub fn name<'v>(&'v self, value: &'v Value) -> Option<&'v str> {
        match value {
            Value::Keyword(symbol) | Value::Symbol(symbol) => Some(self.symbols.text(*symbol)),
            Value::Str(node) => Some(node.as_str()),
            _ => None,
        }
    }

    /// Runs `work` one key level deeper.
    pub(crate) fn nested_key<T>(&mut self, work: impl FnOnce(&mut Context) -> Result<T>) -> Result<T> {
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
