//! Holds the state of a running program that builtins work on: interned names, fuel, memory, printed lines, input data.
//! It does not contain the interpreter, so no builtin can call a function of the program (architecture invariant 3);
//! those that take callbacks are native frames.

mod function;
mod memos;
mod prints;
mod regexes;
mod remarks;
mod unit;

use crate::bytecode::Arity;
use crate::fault::Result;
use crate::memory::account;
use crate::sources::Tracker;
use crate::value::regex::RegexNode;
use crate::value::{Store, Value};
pub(crate) use function::Function;
pub use memos::Memos;
pub use prints::Prints;
use ptc_regex::Spans;
use regexes::RegexCache;
pub use remarks::Remarks;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
pub(crate) use unit::{Linking, Unit};

/// A builtin in the form needed to call it without a frame.
#[derive(Clone, Copy)]
pub(crate) struct Direct {
    /// Numbers of arguments.
    pub(crate) arity: Arity,
    /// The function; `None` for a builtin that calls functions or the host.
    pub(crate) run: Option<DirectFunction>,
}

/// A function that takes its arguments from registers and computes its value at once.
pub(crate) type DirectFunction = fn(&mut Context, &mut [Value]) -> Result<Value>;

/// The state of an isolate that builtins work on.
pub struct Context {
    /// What its values need.
    pub(crate) store: Store,
    /// The builtins that compute their value at once, by number.
    pub(crate) direct: &'static [Direct],
    /// Lines written by `println`.
    pub prints: Prints,
    /// Remarks for the reader of the result.
    pub remarks: Remarks,
    /// Compiled regular expressions.
    pub(crate) regexes: RegexCache,
    /// The map behind `data/…`.
    pub data: Value,
    /// Reading an absent key of `data` is an error.
    pub strict_data: bool,
    /// Maximal rounds of one loop activation.
    pub loop_limit: u64,
    /// Maximal number of live pmap branches.
    pub parallel_width: usize,
    /// Results of memoized functions.
    pub(crate) memos: Memos,
    /// The functions of the loaded programs.
    pub(crate) functions: Rc<Vec<Function>>,
    /// Frequent instructions run in the hot loop.
    pub(crate) hot_loop: bool,
    /// The run tracks where values come from: a machine makes each call of a function with a frame, which is observed.
    pub(crate) is_observed: bool,
    /// The hot loop leaves calls of builtins with callbacks to the complete table.
    pub(crate) leaves_callbacks: bool,
    /// Where values come from, in a run that tracks it.
    pub(crate) tracker: Option<Box<Tracker>>,
}

impl Context {
    /// A context without a program.
    pub(crate) fn new(store: Store, direct: &'static [Direct], prints: Prints) -> Context {
        Context {
            store,
            direct,
            prints,
            remarks: Remarks::default(),
            regexes: RegexCache::default(),
            data: Value::Nil,
            strict_data: false,
            loop_limit: u64::MAX,
            parallel_width: 1,
            memos: Memos::default(),
            functions: Rc::default(),
            hot_loop: true,
            is_observed: false,
            leaves_callbacks: false,
            tracker: None,
        }
    }
}

impl Deref for Context {
    type Target = Store;

    #[inline(always)]
    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for Context {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl Context {
    /// The regex of a pattern made at run time. The cost is the same whether the isolate has it cached or not.
    ///
    /// # Errors
    /// A pattern that is too long or does not compile; fuel, memory, deadline, cancellation.
    pub fn compile_regex(&mut self, pattern: &str) -> Result<Rc<RegexNode>> {
        self.regexes.compile(&mut self.store.meter, pattern)
    }

    /// The first match of a regex that begins at byte `at` or later.
    ///
    /// # Errors
    /// Fuel for each step, memory, deadline, cancellation; a pattern that takes too many steps.
    pub(crate) fn find_match(&mut self, regex: &RegexNode, text: &str, at: usize) -> Result<Option<Spans>> {
        regex.regex.find(&mut self.store.meter, &mut self.regexes.searches, text, at)
    }

    /// The match of a regex with the whole text.
    ///
    /// # Errors
    /// As [`Context::find_match`].
    pub(crate) fn match_whole(&mut self, regex: &RegexNode, text: &str) -> Result<Option<Spans>> {
        regex.regex.match_whole(&mut self.store.meter, &mut self.regexes.searches, text)
    }

    /// Runs `work` while `bytes` of memory without a value count against the limit. They are not part of the
    /// program's peak: rendering its result is for the host.
    pub fn holding<T>(&mut self, bytes: usize, work: impl FnOnce(&mut Context) -> T) -> T {
        account::hold(bytes);
        let done = work(self);
        account::release(bytes);
        done
    }
}
