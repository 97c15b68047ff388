//! What the unit tests of this crate share: a context without an isolate, on a small native stack.

use crate::context::{Context, Run};
use crate::fuel::{Fuel, Interrupt};
use crate::heap::{self, Heap};
use crate::native::memoize::Memos;
use crate::prints::Prints;
use crate::regex::RegexCache;
use crate::symbol::Symbols;
use crate::value::Value;
use std::rc::Rc;

/// Native stack of a test (decision 19): what recurses over values does not fit.
const STACK: usize = 256 * 1024;

/// Runs `work` with plenty of fuel and memory.
pub(crate) fn with_context<T: Send + 'static>(work: impl FnOnce(&mut Context) -> T + Send + 'static) -> T {
    with_limits(1_000_000_000, 1 << 30, work)
}

/// Runs `work` under these limits, and checks that it leaves no bytes behind.
pub(crate) fn with_limits<T: Send + 'static>(
    fuel: u64,
    bytes: u64,
    work: impl FnOnce(&mut Context) -> T + Send + 'static,
) -> T {
    let run = move || {
        let mut heap = Heap::new(bytes);
        heap.enter();
        let mut cx = Context {
            symbols: Symbols::default(),
            fuel: Fuel::new(fuel, Interrupt::default()),
            prints: Prints::new(1 << 20),
            regexes: RegexCache::default(),
            data: Value::Nil,
            strict_data: false,
            loop_limit: u64::MAX,
            parallel_width: 1,
            units: Rc::new(Vec::new()),
            key_depth: 0,
            memos: Memos::default(),
            run: Run::FIRST,
            extensions: Default::default(),
            scratch: String::new(),
            hot_loop: true,
        };
        let result = work(&mut cx);
        drop(cx);
        while heap::drain(usize::MAX) {}
        heap.leave();
        assert_eq!(heap.live(), 0, "live bytes after the test");
        result
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).expect("a thread starts");
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
