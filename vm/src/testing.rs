//! What the unit tests of this crate share: a context without an isolate, on a small native stack.

use crate::builtins::{FACTS, PLAIN};
use crate::bytecode::Builtins;
use crate::context::{Context, Prints};
use crate::memory::{Fuel, Interrupt, Meter};
use crate::value::Store;
use crate::value::garbage::{self, Heap};
use crate::value::symbol::Symbols;

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
        let meter = Meter::new(Fuel::new(fuel, Interrupt::default()));
        let store = Store::new(meter, Symbols::default(), Builtins::new(&FACTS));
        let mut cx = Context::new(store, &PLAIN, Prints::new(1 << 20));
        let result = work(&mut cx);
        drop(cx);
        while garbage::drain(usize::MAX) {}
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
