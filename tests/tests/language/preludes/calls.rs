//! Programs that call into a prelude.

use super::{failure, run, runtime, value};
use ptc_calls::options::RunOptions;

const TEXT: &str = r#"(ns math "Numbers.")
(def page-size 50)
(def sizes {:small 1 :words ["a" "b"] :rx #"b+" :clean (comp str/trim str/lower-case)})
(def twice-page (* 2 (double-of page-size)))
(defn- double-of [n] (* 2 n))
(defn even-steps? "Told by its odd sibling." [n] (if (zero? n) true (odd-steps? (dec n))))
(defn odd-steps? [n] (if (zero? n) false (even-steps? (dec n))))
(defn adder [n] (fn [x] (+ (double-of n) x)))
(defn area ([side] (area side side)) ([a b] (* a b)))
(defn total [first-one & others] (reduce + first-one others))
(defn named [{:keys [name]}] (str "n:" name))
(defn stop [x] (return [:stopped x]))
(defn abort [x] (fail {:reason x}))
(defn count [coll] (str "own " (clojure.core/count coll)))
(defn counted [coll] (count coll))
(ns other)
(defn- double-of [n] [:other n])
(defn area [x] (double-of x))
(defn all-names [] (sort (keys (ns-publics 'math))))
"#;

/// A program and its value.
const VALUES: &[(&str, &str)] = &[
    ("math/page-size", "50"),
    ("(math/page-size)", "50"),
    ("(:words math/sizes)", "[\"a\" \"b\"]"),
    ("((:clean math/sizes) \" Ab \")", "\"ab\""),
    ("(re-find (:rx math/sizes) \"abbb\")", "\"bbb\""),
    ("math/twice-page", "200"),
    ("[(math/even-steps? 10) (math/odd-steps? 10)]", "[true false]"),
    ("((math/adder 5) 1)", "11"),
    ("[(math/area 3) (math/area 3 4) (math/total 1 2 3) (math/total 1)]", "[9 12 6 1]"),
    ("(math/named {:name \"x\"})", "\"n:x\""),
    // Exports are first-class values.
    ("(map math/adder [1 2])", "[#fn[x] #fn[x]]"),
    ("(map #((math/adder %) 1) [1 2])", "[3 5]"),
    ("(apply math/total [1 2 3])", "6"),
    ("(pmap math/area [1 2 3])", "[1 4 9]"),
    ("((comp math/area inc) 2)", "9"),
    ("(let [f math/area] (f 5))", "25"),
    // Names of the program and of other namespaces are separate.
    ("(defn double-of [n] :mine) [(double-of 1) ((math/adder 5) 1)]", "[:mine 11]"),
    ("[(math/area 2) (other/area 2)]", "[4 [:other 2]]"),
    ("[(count [1 2]) (math/counted [1 2])]", "[2 \"own 2\"]"),
    ("(let [math 1 area 2] (+ math area (math/area 1)))", "4"),
    ("(do (math/stop 1) :never)", "[:stopped 1]"),
    ("(map (fn [x] (math/area x)) [1 2 3])", "[1 4 9]"),
];

#[tokio::test]
async fn exports_are_called_and_are_values() {
    let runtime = runtime(TEXT).await;
    for (program, expected) in VALUES {
        assert_eq!(value(&runtime, program).await, *expected, "{program}");
    }
    // The second time each program comes from the cache.
    for (program, expected) in VALUES {
        assert_eq!(value(&runtime, program).await, *expected, "{program}");
    }
}

/// A program, the reason and the message of its failure.
#[rustfmt::skip]
const FAILURES: &[(&str, &str, &str)] = &[
    ("(math/area)", "arity_mismatch", "math/area expects 1 to 2 argument(s), got 0"),
    ("(math/adder 1 2)", "arity_mismatch", "math/adder expects 1 argument(s), got 2"),
    ("(math/total)", "arity_mismatch", "math/total expects at least 1 argument(s), got 0"),
    ("(math/page-size 1)", "arity_mismatch", "math/page-size is a constant and takes no arguments"),
    ("(math/nope 1)", "invalid_form", "math/nope is not a public export of namespace math. Discover its public exports with (ns-publics 'math) or (apropos \"nope\")."),
    ("(math/double-of 1)", "invalid_form", "math/double-of is not a public export of namespace math. Discover its public exports with (ns-publics 'math) or (apropos \"double-of\")."),
    ("(def math/area 1)", "invalid_form", "cannot redefine math/area: it is a public export of the protected namespace math and cannot be redefined by user code."),
    ("(defn math/new [x] x)", "invalid_form", "cannot define math/new: math is a protected namespace whose names cannot be redefined by user code."),
    ("(let [math/area 1] 2)", "unsupported_pattern", "cannot bind the qualified name math/area"),
    ("(fn [math/area] 2)", "unsupported_pattern", "cannot bind the qualified name math/area"),
    ("(loop [math/area 1] 2)", "unsupported_pattern", "cannot bind the qualified name math/area"),
    ("(for [math/area [1]] 2)", "unsupported_pattern", "cannot bind the qualified name math/area"),
    ("(as-> 1 math/area (str math/area))", "unsupported_pattern", "cannot bind the qualified name math/area"),
    ("(let [{:as math/area} {}] math/area)", "unsupported_pattern", "cannot bind the qualified name math/area"),
    ("(let [[a :as math/area] [1]] math/area)", "unsupported_pattern", "cannot bind the qualified name math/area"),
    ("((fn math/area [n] n) 2)", "unsupported_pattern", "cannot bind the qualified name math/area"),
    ("(defonce math/area 1)", "invalid_form", "cannot redefine math/area: it is a public export of the protected namespace math and cannot be redefined by user code."),
    ("(math/abort :gone)", "fail", "{:reason :gone}"),
    ("(missing/f 1)", "invalid_form", "unknown namespace missing/"),
];

#[tokio::test]
async fn what_a_program_cannot_do_is_said() {
    let runtime = runtime(TEXT).await;
    for (program, reason, message) in FAILURES {
        assert_eq!(failure(&runtime, program).await, (*reason, (*message).to_owned()), "{program}");
    }
}

#[tokio::test]
async fn a_fault_in_a_prelude_is_shown_with_both_places() {
    let runtime =
        runtime("(ns geo)\n\n(defn- divided [a b]\n  (/ a b))\n(defn side [area] (divided 12 area))").await;
    let failed = run(&runtime, "(def before 1)\n(str (geo/side 0))").await.result.expect_err("division");
    let report = &failed.reports[0];
    let place = report.location.as_ref().map(|place| (place.start.line, place.start.column));
    assert_eq!(place, Some((2, 6)), "{report:?}");
    assert_eq!(report.hints[0], "It happened in geo/divided, at p.clj:4:3: (/ a b)");
}

#[tokio::test]
async fn what_is_not_called_costs_a_program_nothing() {
    let large: String =
        (0..300).map(|n| format!("(defn f{n} [x] (g{n} x)) (defn- g{n} [x] [x {n} \"{n}\"])")).collect();
    let (small, large) = (
        runtime("(ns m) (defn f0 [x] (g0 x)) (defn- g0 [x] [x 0 \"0\"])").await,
        runtime(&format!("(ns m) {large}")).await,
    );
    for program in ["(+ 1 2)", "(m/f0 7)", "(map m/f0 (range 20))"] {
        let of = async |runtime: &ptc_engine::Runtime| {
            let usage = run(runtime, program).await.usage;
            (usage.fuel, usage.peak_bytes)
        };
        assert_eq!(of(&small).await, of(&large).await, "{program}");
    }
    let again =
        |program: &str| large.try_run(program, None, &RunOptions::default(), |outcome| outcome.usage.fuel);
    assert_eq!(again("(m/f0 7)").expect("it is tiny"), run(&large, "(m/f0 7)").await.usage.fuel);
}
