//! A native operation that is preempted half-way ends as if it had not been: other isolates that run on its thread in
//! the meantime leave no trace in its account.

use ptc_tests::guest;
use ptc_tests::variants::{Budget, Ending, USUAL, Variant, run};
use ptc_vm::Reason;

const BUDGET: Budget = Budget { fuel: 50_000_000, memory_bytes: 64 << 20 };

/// Each spends several native slices in one operation.
const LONG: &[&str] = &[
    "(first (sort (map (fn [n] (mod (* n 7919) 100003)) (range 60000))))",
    "(let [dag (fn [] (reduce (fn [a _] [a a]) nil (range 17)))] (= (dag) (dag)))",
    "(count (pr-str (reduce (fn [a _] [a a]) nil (range 16))))",
    "(count (json/generate-string (vec (range 40000))))",
    "(count (json/parse-string (json/generate-string (vec (range 40000)))))",
    "(count (str (reduce * (range 1 6000))))",
    "(count (distinct (flatten (repeat 300 (range 200)))))",
    "(count (frequencies (map str (range 30000))))",
    "(count (clojure.string/split (apply str (repeat 30000 \"ab \")) #\" \"))",
    "(reduce (fn [m n] (assoc m n [n])) {} (range 9000))",
    "(vec (range 60000))",
];

#[test]
fn what_is_preempted_ends_the_same() {
    let preempted = Variant { visited: true, ..USUAL };
    for program in LONG {
        let usual = run(program, &BUDGET, &USUAL);
        let visits = guest::visits();
        assert_eq!(run(program, &BUDGET, &preempted), usual, "{program}");
        assert!(matches!(usual.map(|ran| ran.ending), Some(Ending::Done(_))), "{program}");
        assert!(guest::visits() > visits, "nobody ran in between: {program}");
    }
}

/// The charges of a native operation count while it runs, not only when it is over.
#[test]
fn a_native_operation_is_stopped_when_it_is_over_the_limit() {
    let small = Budget { memory_bytes: 1 << 20, ..BUDGET };
    for variant in [USUAL, Variant { visited: true, ..USUAL }] {
        for program in ["(count (map str (range 1000000)))", "(json/parse-string (str [(range 200000)]))"] {
            let ran = run(program, &small, &variant).expect("compiles");
            let Ending::Fault(reason, ..) = ran.ending else { panic!("{program}: {:?}", ran.ending) };
            assert_eq!(reason, Reason::MemoryExceeded, "{program}");
        }
    }
}
