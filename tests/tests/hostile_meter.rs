//! What was not on the account of an isolate, not paid for, or could not be interrupted: as the account, the fuel and
//! the polls of the isolate say, without looking at a clock.

use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_vm::{Exit, Isolate, IsolateOptions, Reason};

/// An isolate that has run the program to its first exit.
fn run(source: &str, memory_bytes: u64) -> (Isolate, Exit) {
    let compiled = compile(source, &Externals::default(), &CompileOptions::default());
    let program = compiled.unwrap_or_else(|errors| panic!("{source}: {errors:?}")).program;
    let mut isolate =
        Isolate::new(IsolateOptions { memory_bytes, fuel: 20_000_000, ..IsolateOptions::default() });
    let unit = isolate.load(program).expect("loads");
    isolate.start(unit);
    loop {
        match isolate.run(10_000) {
            Exit::SliceEnd => {}
            exit => return (isolate, exit),
        }
    }
}

/// Most bytes that a program had on its account at once.
fn peak(source: &str) -> u64 {
    let (isolate, exit) = run(source, 1 << 30);
    assert!(matches!(exit, Exit::Done), "{source}: {exit:?}");
    let peak = isolate.peak_bytes();
    assert_eq!(isolate.close(), 0, "bytes left behind by {source}");
    peak
}

/// Bytes of 100,000 values.
const ITEMS: u64 = 100_000 * 16;

#[test]
fn arguments_are_on_the_account_while_a_call_has_them() {
    for call in [
        "(apply + v)",
        "(apply max v)",
        "(apply (partial + 1) v)",
        "(apply (fn [a & more] a) v)",
        "(apply (comp identity +) v)",
        "((apply partial + v))",
        "(apply (juxt +) v)",
        "(map (apply juxt (repeat 1 (apply partial + v))) [1])",
        "(apply (memoize +) v)",
        "(apply (fnil + 1) v)",
        "(apply (every-pred int?) v)",
        "(apply update {} :a (fn [& more] 1) v)",
    ] {
        let with = |body: &str| peak(&format!("(let [v (vec (range 100000))] {body} (count v))"));
        let (before, after) = (with("nil"), with(call));
        assert!(after >= before + ITEMS, "{call}: {before} and then {after} bytes");
    }
}

#[test]
fn arguments_are_held_to_the_limit() {
    for call in ["apply hash-set", "apply vector", "apply (fn [& more] nil)"] {
        let source = format!("(let [v (vec (range 400000))] (loop [] ({call} v) (recur)))");
        let (isolate, exit) = run(&source, 10 << 20);
        assert!(
            matches!(&exit, Exit::Fault(fault) if fault.reason == Reason::MemoryExceeded),
            "{call}: {exit:?}"
        );
        assert_eq!(isolate.close(), 0, "bytes left behind by {call}");
    }
}

#[test]
fn arguments_of_a_call_of_the_host_are_on_the_account_until_it_answers() {
    let source = "(let [v (vec (range 100000))] (apply tool/any v) (count v))";
    let (isolate, exit) = run(source, 1 << 30);
    assert!(matches!(exit, Exit::HostCall(_)), "{exit:?}");
    assert!(isolate.live_bytes() >= 2 * ITEMS, "{} bytes", isolate.live_bytes());
    assert_eq!(isolate.close(), 0);
}
