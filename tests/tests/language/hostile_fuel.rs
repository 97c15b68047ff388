//! Programs that try to do much work for little fuel: a long operation in a short loop, or few functions made of each
//! other. A limit on fuel bounds the time of every program.

use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_vm::{Budget, Exit, Isolate, Reason};
use std::time::Duration;

const MEMORY: u64 = 10 << 20;

/// Fuel of each program, and the time to use it up: some microseconds a unit, a hundred times the usual.
const FUEL: u64 = 200_000;
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 500 });

/// Programs that never end, or not soon.
const PROGRAMS: &[&str] = &[
    // Many stages, few items.
    "(transduce (apply comp (repeat 30000 (take 1000000000))) + 0 (range 1000000))",
    "(transduce (apply comp (repeat 30000 (drop 0))) + 0 (range 1000000))",
    "(into [] (apply comp (repeat 30000 (dedupe))) (range 1000000))",
    "(reduce + (take 100000 (reduce (fn [s _] (take-nth 1 s)) (iterate inc 1) (range 30000))))",
    "(def s (reduce (fn [s _] (drop 1 s)) (iterate inc 1) (range 30000))) (loop [] (first s) (recur))",
    // Functions composed of functions: few values, many calls, no frame.
    "(def a (apply every-pred (repeat 1000 int?))) (def b (apply every-pred (repeat 1000 a)))
     (map (apply every-pred (repeat 1000 b)) [1])",
    "(def a (apply some-fn (repeat 1000 nil?))) (def b (apply some-fn (repeat 1000 a)))
     (map (apply some-fn (repeat 1000 b)) [1])",
    "(def a (apply comp (repeat 1000 identity))) (def b (apply comp (repeat 1000 a)))
     (sort-by (apply comp (repeat 1000 b)) [2 1])",
    "(def a (apply juxt (repeat 1000 inc))) (def b (apply juxt (repeat 1000 a)))
     (map (apply juxt (repeat 1000 b)) [1])",
    // Very many arguments.
    "(def f (apply partial (constantly 1) (range 100000))) (loop [] (f) (recur))",
    "(def f (apply partial (constantly 1) (range 100000))) (count (map f (range 100000)))",
    "(def f (apply partial vector (range 100000))) (loop [] (f) (recur))",
    "(def f (reduce (fn [f _] (partial f 1)) + (range 30000))) (loop [] (f 1) (recur))",
    "(def f (reduce (fn [f _] (partial f 1)) + (range 30000))) (loop [] (transduce (map inc) f 0 []) (recur))",
    // Where the last grapheme begins depends on the first one.
    "(def s (reduce (fn [s _] (str s s)) \"\u{1f1e6}\" (range 15))) (loop [] (last s) (recur))",
];

/// Processor time of this thread, independent of other load.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("nanoseconds"))
}

/// How a program ended, and after how much time.
fn run(source: &str) -> (Option<Reason>, Duration) {
    let compiled = compile(source, &Externals::default(), &CompileOptions::default());
    let program = compiled.unwrap_or_else(|errors| panic!("{source}: {errors:?}")).program;
    let options = Budget { memory_bytes: MEMORY, fuel: FUEL, ..Budget::default() };
    let mut isolate = Isolate::new(options);
    let begin = processor_time();
    let unit = isolate.load(program).expect("loads");
    isolate.start(unit);
    let end = loop {
        match isolate.run(10_000) {
            Exit::SliceEnd => {}
            Exit::Done => break None,
            Exit::Fault(fault) => break Some(fault.reason),
            other => panic!("{other:?}"),
        }
    };
    let time = processor_time() - begin;
    assert_eq!(isolate.close(), 0, "bytes left behind by {source}");
    (end, time)
}

#[test]
fn fuel_runs_out_in_time() {
    let mut wrong = Vec::new();
    for source in PROGRAMS {
        let (end, time) = run(source);
        if end != Some(Reason::FuelExceeded) && end != Some(Reason::MemoryExceeded) || time > TIME {
            wrong.push(format!("{time:?} {end:?}: {source}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Searching for the last grapheme in ever longer suffixes of a text finds the same as scanning all of it.
#[test]
fn the_last_grapheme_is_the_same_as_in_the_whole_text() {
    for piece in ["\u{1f1e6}", "\u{1f468}\u{200d}", "\u{915}\u{94d}", "e\u{301}", "\r\n", "\u{301}", "a"] {
        for (before, times, after) in
            [("", 700, ""), ("x", 701, ""), ("\u{1f1e6}", 1_000, "\u{1f468}"), ("", 301, "\u{915}")]
        {
            let source = format!(
                "(let [s (str \"{before}\" (apply str (repeat {times} \"{piece}\")) \"{after}\")]
                   (= (last s) (last (vec s))))"
            );
            let compiled = compile(&source, &Externals::default(), &CompileOptions::default());
            let mut isolate = Isolate::new(Budget::default());
            let unit = isolate.load(compiled.expect("compiles").program).expect("loads");
            isolate.start(unit);
            while matches!(isolate.run(100_000), Exit::SliceEnd) {}
            let text =
                isolate.result(|cx, value| ptc_vm::print::pr_str(cx, value, 100)).expect("prints").text;
            assert_eq!(text, "true", "{source}");
            assert_eq!(isolate.close(), 0);
        }
    }
}
