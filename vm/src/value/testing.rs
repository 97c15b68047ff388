//! A heap and a store without an isolate, for unit tests of the layers below the builtins.

use crate::bytecode::{Builtins, Facts};
use crate::memory::{Fuel, Interrupt, Meter};
use crate::value::Store;
use crate::value::garbage::{self, Heap};
use crate::value::symbol::Symbols;

/// Native stack of a test, too small for recursion over values.
const STACK: usize = 256 * 1024;

/// Runs `work` with a store of these limits and builtins, and checks that it leaves no memory behind.
pub(crate) fn on_heap<T: Send + 'static>(
    fuel: u64,
    bytes: u64,
    builtins: &'static [Facts],
    work: impl FnOnce(Store) -> T + Send + 'static,
) -> T {
    let run = move || {
        let mut heap = Heap::new(bytes);
        heap.enter();
        let meter = Meter::new(Fuel::new(fuel, Interrupt::default()));
        let result = work(Store::new(meter, Symbols::default(), Builtins::new(builtins)));
        while garbage::drain(usize::MAX) {}
        heap.leave();
        assert_eq!(heap.account.live, 0, "live bytes after the test");
        result
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).expect("a thread starts");
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs `work` with plenty of fuel and memory, and without builtins.
pub(crate) fn with_store<T: Send + 'static>(work: impl FnOnce(&mut Store) -> T + Send + 'static) -> T {
    on_heap(1_000_000_000, 1 << 30, &[], |mut store| work(&mut store))
}
