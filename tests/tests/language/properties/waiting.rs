//! The memory of a program that waits for its host does not depend on what ran before on the thread.

use ptc_compiler::{CompileOptions, Externals};
use ptc_vm::{Budget, Exit, Isolate, Value};

/// Runs a program to its first host call. Gives the bytes alive then, and the peak.
fn held_while_waiting(source: &str) -> (u64, u64) {
    let program = ptc_compiler::compile(source, &Externals::default(), &CompileOptions::default());
    let mut isolate = Isolate::new(Budget::default());
    let unit = isolate.load(program.expect("a program").program).expect("room for it");
    isolate.start(unit);
    let held = match isolate.run(10_000) {
        Exit::HostCall(call) => {
            let live = isolate.live_bytes();
            isolate.resume(call, |_| Ok(Value::Nil));
            assert_eq!(isolate.run(10_000), Exit::Done);
            live
        }
        Exit::Done => 0,
        other => panic!("{other:?}"),
    };
    let peak = isolate.peak_bytes();
    assert_eq!(isolate.close(), 0);
    (held, peak)
}

#[test]
fn registers_of_an_earlier_program_do_not_count() {
    const WAITING: &str = "(do (tool/call {:a 1}) (+ 1 2))";
    let alone = held_while_waiting(WAITING);
    assert!(alone.0 > 0, "it has waited");
    // Integers in many registers: no instruction drops them when the program ends.
    let names: Vec<String> = (0..60).map(|at| format!("x{at}")).collect();
    let bindings: Vec<String> = names.iter().map(|name| format!("{name} (count [1 2])")).collect();
    let busy = format!("(let [{}] [{}])", bindings.join(" "), names.join(" "));
    assert_eq!(held_while_waiting(&busy).0, 0, "it has not waited");
    assert_eq!(held_while_waiting(WAITING), alone);
}
