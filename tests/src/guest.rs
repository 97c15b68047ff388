//! Runs another isolate on the same thread whenever the tested one polls, as a driver does that preempts a native
//! operation.

use ptc_compiler::{CompileOptions, Externals};
use ptc_vm::bytecode::Program;
use ptc_vm::{Budget, Exit, Isolate, Preempt, Preemption};
use std::cell::Cell;
use std::sync::{Arc, LazyLock};

/// Makes values of many kinds, leaves garbage, prints and faults.
const SOURCE: &str = "(println (map str (range 20))) \
    (let [m (reduce (fn [m n] (assoc m n [n (str n)])) {} (range 40))] (/ (count (sort (vals m))) 0))";

static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(|| {
    let compiled = ptc_compiler::compile(SOURCE, &Externals::default(), &CompileOptions::default());
    compiled.expect("the guest compiles").program
});

thread_local! {
    static VISITS: Cell<u64> = const { Cell::new(0) };
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

struct Guest;

/// Runs the guest at every poll.
pub const VISITED: Preemption = Preemption::by(&Guest);

impl Preempt for Guest {
    fn is_due(&self) -> bool {
        !IS_HERE.get()
    }

    fn suspend(&self, _live_bytes: u64) {
        IS_HERE.set(true);
        let mut isolate = Isolate::new(Budget { preemption: VISITED, ..Budget::default() });
        let unit = isolate.load(PROGRAM.clone()).expect("the guest has room");
        isolate.start(unit);
        assert!(matches!(isolate.run(1_000_000), Exit::Fault(_)), "the guest faults");
        assert_eq!(isolate.prints().len(), 1);
        assert_eq!(isolate.close(), 0, "the guest leaves nothing");
        VISITS.set(VISITS.get() + 1);
        IS_HERE.set(false);
    }
}

/// How often the guest has run on this thread.
pub fn visits() -> u64 {
    VISITS.get()
}
