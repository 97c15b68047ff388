//! A program may wait for a tool anywhere: in every function that a builtin calls, at any depth.

use ptc_tests::binary::{batch, batch_line, eval, value};
use ptc_tests::serve::Server;
use ptc_tests::upstreams::Upstreams;
use ptc_vm::builtins::{Category, Purity, all};

/// Programs that call `(t x)` inside functions that builtins call; `t` returns its argument.
const POSITIONS: &[&str] = &[
    "(map (fn [x] (inc (t x))) [1 2 3])",
    "(map (fn [x y] (+ (t x) (t y))) [1 2 3] [10 20])",
    "(mapv (fn [x] (t x)) [3 1 2])",
    "(mapcat (fn [x] [(t x) (t (* x x))]) [1 2 3])",
    "(map-indexed (fn [i x] [(t i) (t x)]) [\"a\" \"b\"])",
    "(keep (fn [x] (when (odd? (t x)) (t x))) [1 2 3])",
    "(keep-indexed (fn [i x] (when (odd? (t i)) (t x))) [\"a\" \"b\" \"c\" \"d\"])",
    "(filter (fn [x] (even? (t x))) [1 2 3 4])",
    "(filterv (fn [x] (t (even? x))) [1 2 3 4])",
    "(remove (fn [x] (even? (t x))) #{1 2 3 4})",
    "(reduce (fn [a x] (+ (t a) (t x))) [1 2 3 4])",
    "(reduce-kv (fn [a k v] (assoc a (t v) k)) {} {:a 1 :b 2})",
    "(sort (fn [a b] (- (t a) (t b))) [3 1 2 5 4 9 8 7 6])",
    "(sort (fn [a b] (t (< a b))) [3 1 2 5 4])",
    "(sort-by (fn [x] (t (- x))) [3 1 2 5 4])",
    "(sort-by (fn [x] (t x)) (fn [a b] (- (t b) (t a))) [3 1 2 5 4])",
    "(sort-by (comp t :n) [{:n 2} {:n 1}])",
    "(group-by (fn [x] (odd? (t x))) [1 2 3 4 5])",
    "(partition-by (fn [x] (> (t x) 2)) [1 2 3 4 1])",
    "(distinct-by (fn [x] (t (mod x 3))) [1 2 3 4 5])",
    "(split-with (fn [x] (< (t x) 3)) [1 2 3 1])",
    "(take-while (fn [x] (< (t x) 3)) [1 2 3 1])",
    "(drop-while (fn [x] (< (t x) 3)) [1 2 3 1])",
    "(some (fn [x] (when (> (t x) 2) (t x))) [1 2 3 4])",
    "(some (fn [x] (t (> x 9))) [1 2 3 4])",
    "(every? (fn [x] (pos? (t x))) [1 2 3])",
    "(not-any? (fn [x] (neg? (t x))) [1 2 3])",
    "(not-every? (fn [x] (odd? (t x))) [1 2 3])",
    "(run! (fn [x] (println (t x))) [1 2 3])",
    "(update {:a 1} :a (fn [x] (inc (t x))))",
    "(update {:a 1} :a + (t 1) (t 2))",
    "(update-in {:a {:b [1 2]}} [:a :b 1] (fn [x] (t (* 10 x))))",
    "(update-vals {:a 1 :b 2} (fn [x] (t (inc x))))",
    "(update-keys {1 :a 2 :b} (fn [x] (t (inc x))))",
    "(merge-with (fn [a b] (+ (t a) (t b))) {:a 1 :b 2} {:b 3 :c 4} {:b 5})",
    "(min-by (fn [x] (t (- x))) [1 3 2])",
    "(max-by (fn [x] (t (- x))) [1 3 2])",
    "(min-key (fn [x] (t (- x))) 1 3 2)",
    "(max-key (fn [x] (t (- x))) 1 3 2)",
    "(sum-by (fn [x] (t x)) [1 2 3])",
    "(avg-by (fn [x] (t x)) [1 2 3])",
    "(apply (fn [a b c] [(t a) (t b) (t c)]) 1 [2 3])",
    "(apply t [7])",
    "(apply map (fn [a b] (+ (t a) (t b))) [[1 2] [3 4]])",
    "((comp inc t inc t) 1)",
    "((partial (fn [a b] (- (t a) (t b))) 10) 3)",
    "((juxt t (fn [x] (inc (t x))) inc) 1)",
    "((complement (fn [x] (odd? (t x)))) 2)",
    "((every-pred (fn [x] (odd? (t x))) (fn [x] (> (t x) 2))) 3 5)",
    "((some-fn (fn [x] (t (even? x))) (fn [x] (> (t x) 4))) 3 5)",
    "((fnil (fn [x] (inc (t x))) 41) nil)",
    "(replace \"a1b22\" #\"\\d+\" (fn [m] (t (str \"<\" m \">\"))))",
    "(replace-first \"a1b22\" #\"\\d+\" (fn [m] (t (str \"<\" m \">\"))))",
    "(reduce (fn [a x] (if (> (t a) 5) (reduced (t a)) (+ a (t x)))) 0 [1 2 3 4 5 6])",
    "(reductions (fn [a x] (+ (t a) (t x))) [1 2 3 4])",
    "(take 5 (iterate (fn [x] (t (* 2 x))) 1))",
    "(take 3 (repeatedly (fn [] (t 7))))",
    "(repeatedly 3 (fn [] (t 7)))",
    "(into [] (comp (map (fn [x] (t x))) (filter (fn [x] (odd? (t x)))) (take 3)) (range 10))",
    "(into #{} (mapcat (fn [x] (t [x (* x x)]))) [1 2 3])",
    "(into {} (map-indexed (fn [i x] [(t i) (t x)])) [\"a\" \"b\"])",
    "(into [] (comp (remove (fn [x] (even? (t x)))) (keep (fn [x] (t (* 2 x)))) (drop-while (fn [x] (t (< x 4))))) (range 9))",
    "(into [] (comp (take-while (fn [x] (< (t x) 5))) (partition-by (fn [x] (t (quot x 2)))) (distinct-by (fn [x] (t (count x))))) (range 9))",
    "(into [] (keep-indexed (fn [i x] (when (odd? (t i)) (t x)))) [1 2 3 4])",
    "(transduce (map (fn [x] (t (inc x)))) (fn ([] (t 0)) ([a] (t [a])) ([a x] (+ (t a) (t x)))) [1 2 3])",
    "(transduce (map (fn [x] (t x))) (completing (fn [a x] (if (> (t x) 2) (reduced (t a)) (+ a x)))) 0 [1 2 3 4])",
    "(transduce (fn [rf] (t 1) (fn ([] (rf)) ([a] (t (rf a))) ([a x] (rf a (t x))))) + [1 2 3])",
    "(reduce ((comp (map (fn [x] (t (inc x)))) (filter (fn [x] (t (odd? x))))) (fn [a x] (+ (t a) (t x)))) 0 (range 6))",
    "(sequence (comp (map (fn [x] (t x))) (partition-all 2)) [1 2 3])",
    "(eduction (filter (fn [x] (t (odd? x)))) (map (fn [x] (t (inc x)))) [1 2 3])",
    "(take 3 (filter (fn [x] (even? (t x))) (map (fn [x] (t (* 3 x))) (iterate (fn [x] (t (inc x))) 0))))",
    "(interleave [1 2] (iterate (fn [x] (t (inc x))) 5))",
    "(zip (iterate (fn [x] (t (inc x))) 5) [1 2])",
    "(zipmap [:a :b] (repeatedly (fn [] (t 7))))",
    "(let [[a b] (iterate (fn [x] (t (inc x))) 5)] [a b])",
    "((memoize (fn [x y] (+ (t x) (t y)))) 1 2)",
    "(letfn [(even [n] (if (zero? (t n)) true (odd (dec n)))) (odd [n] (if (zero? (t n)) false (even (dec n))))] (even 5))",
    "(for [x (iterate (fn [x] (t (inc x))) 1) :while (< (t x) 4)] (t x))",
    "(if-let [{:keys [a]} (t {:a 1})] (t a) 0)",
    "(task \"a\" (t 1))",
    "(walk (fn [x] (t (inc x))) (fn [xs] (reduce + (t xs))) [1 2 3])",
    "(postwalk (fn [x] (if (number? x) (t (inc x)) x)) [1 [2 {:a 3}]])",
    "(prewalk (fn [x] (if (number? x) (t (inc x)) x)) [1 [2 {:a 3}]])",
    "(tree-seq (fn [x] (t (vector? x))) (fn [xs] (t xs)) [1 [2 [3]] 4])",
    "(select (fn [x] (odd? (t x))) #{1 2 3})",
    "(pmap (fn [x] (t (* x x))) (range 20))",
    "(pmap (fn [x y] [(t x) (t y)]) [1 2] [3 4])",
    "(pcalls (fn [] (t 1)) (fn [] (t \"b\")))",
    "(pmap (fn [x] (pmap (fn [y] (t (+ x y))) (range 3))) (range 3))",
    "(loop [i 0 out []] (if (< (t i) 4) (recur (inc i) (conj out (t i))) out))",
    "(for [x [1 2] y [(t 3) 4] :when (odd? (t (+ x y))) :let [z (t (* x y))]] [x y z])",
    "(doseq [x [1 2 3]] (println (t x)))",
    "(let [[a & more] (t [1 2 3]) {:keys [b]} {:b (t 2)}] [a more b])",
    "(-> 1 t inc t (+ (t 5)))",
    "(->> [1 2 3] (map t) (filter odd?) (reduce +))",
    "(cond (t false) 1 (t true) (t 2) :else 3)",
    "(and (t 1) (or (t false) (t nil) (t 3)))",
    "(if-let [x (t 4)] (t (inc x)) 0)",
    "(case (t 2) 1 :one 2 (t 22) :other)",
    "(defn f [n] (if (zero? (t n)) 0 (+ (t 1) (f (dec n))))) (f 20)",
    "(def total (t 5)) (defn add [x] (+ total (t x))) (add 1)",
    "(str (t 1) (t \"a\") [(t 2)] {:k (t 3)})",
    "(return (t 5)) 6",
    "(fail (t \"why\"))",
    "(/ (t 1) (t 0))",
    "(map (fn [x] (sort-by (fn [y] (t (- y))) (map (fn [z] (t (* x z))) [1 2 3]))) [1 2])",
];

fn with(definition: &str) -> Vec<serde_json::Value> {
    let config = Upstreams::probe().write();
    let lines =
        POSITIONS.iter().map(|program| batch_line(*program, &format!("(def t {definition}) {program}")));
    let flags = config.flags(&["--timeout", "120s", "--max-upstream-calls", "100000"]);
    batch(&flags, &lines.collect::<String>())
}

#[test]
fn a_call_in_any_position_changes_nothing() {
    let suspended = with("(fn [x] (:value (tool/call {:server \"probe\" :tool \"echo\" :args {:v x}})))");
    let plain = with("(fn [x] x)");
    assert_eq!(plain.len(), POSITIONS.len());
    for (suspended, plain) in suspended.iter().zip(&plain) {
        let expected_failure =
            plain["id"].as_str().is_some_and(|id| id.starts_with("(fail") || id.starts_with("(/ "));
        assert_eq!(plain["ok"], !expected_failure, "{plain}");
        assert_eq!(suspended, plain);
    }
}

/// Machines of the VM that never call a function of the program.
const CALL_NOTHING: &[&str] =
    &["keywordize-keys", "stringify-keys", "java.util.Date.", "LocalDate/now", "Instant/now"];

/// A builtin that calls functions and is missing above would stay untested.
#[test]
fn every_builtin_that_calls_functions_is_tried() {
    let calls = all()
        .map(|(_, builtin)| builtin)
        .filter(|builtin| builtin.purity == Purity::Calls && builtin.category != Category::Internal);
    let missing: Vec<&str> = calls
        .map(|builtin| builtin.name)
        .filter(|name| !CALL_NOTHING.contains(name))
        .filter(|name| !POSITIONS.iter().any(|program| program.contains(&format!("({name} "))))
        .collect();
    assert!(missing.is_empty(), "no program calls a tool inside {missing:?}");
}

#[test]
fn inside_a_sort_key_inside_a_map_callback_inside_a_branch() {
    let config = Upstreams::probe().write();
    let program = r#"
        (defn echo [x] (:value (tool/call {:server "probe" :tool "echo" :args {:v x}})))
        (pmap (fn [n]
                (map (fn [xs] (sort-by (fn [x] (echo (mod (* x n) 11))) xs))
                     [(range 1 11) (range 10 0 -1)]))
              [1 2 3])"#;
    let expected = "[[[1 2 3 4 5 6 7 8 9 10] [1 2 3 4 5 6 7 8 9 10]] \
                     [[6 1 7 2 8 3 9 4 10 5] [6 1 7 2 8 3 9 4 10 5]] \
                     [[4 8 1 5 9 2 6 10 3 7] [4 8 1 5 9 2 6 10 3 7]]]";
    assert_eq!(value(program, &config.flags(&["--max-upstream-calls", "1000"])), expected);
}

/// `gather` answers only when all its calls are in flight.
#[test]
fn branches_wait_at_the_same_time() {
    for n in [1, 2, 100, 1_000] {
        let config = Upstreams::probe().write();
        let program = format!(
            "(let [all (pmap (fn [_] (:value (tool/call {{:server \"probe\" :tool \"gather\" :args {{:n {n}}}}}))) (range {n}))
                   stats (:value (tool/call {{:server \"probe\" :tool \"stats\"}}))]
               [(frequencies all) (get stats \"most_in_flight\") (get stats \"calls\")])"
        );
        let answer = value(&program, &config.flags(&["--max-upstream-calls", "2000"]));
        assert_eq!(answer, format!("[{{\"together\" {n}}} {n} {}]", n + 1));
    }
}

/// Nested branches share the width; the parent's slot keeps one child running, so this ends.
#[test]
fn nested_branches_do_not_block_each_other() {
    let config = Upstreams::probe().write();
    let program = "(defn echo [x] (:value (tool/call {:server \"probe\" :tool \"echo\" :args {:v x}})))
        (reduce + (mapcat identity (pmap (fn [x] (pmap (fn [y] (echo (* x y))) (range 8))) (range 8))))";
    for width in ["1", "2", "7", "1000"] {
        let flags = config.flags(&["--max-upstream-calls", "100", "--parallel-width", width]);
        assert_eq!(value(program, &flags), "784", "width {width}");
    }
}

#[test]
fn without_branches_calls_follow_each_other() {
    let config = Upstreams::probe().write();
    let program = "(let [all (map (fn [n] (:value (tool/call {:server \"probe\" :tool \"echo\" :args {:v n}}))) (range 20))]
        [(reduce + all) (get (:value (tool/call {:server \"probe\" :tool \"stats\"})) \"most_in_flight\")])";
    assert_eq!(value(program, &config.flags(&[])), "[190 1]");
}

#[test]
fn the_call_budget_is_exact_under_branches() {
    let config = Upstreams::probe().write();
    let program =
        "(let [all (pmap (fn [n] (tool/call {:server \"probe\" :tool \"echo\" :args {:v n}})) (range 80))]
        [(count (filter :ok all)) (frequencies (map :reason (remove :ok all)))])";
    let report = eval(program, &config.flags(&[]));
    assert_eq!(report["value"], "[50 {:cap_exhausted 30}]", "{report:#}");
    let calls = report["upstream_calls"].as_array().expect("the calls");
    assert_eq!(calls.len(), 80);
    assert_eq!(calls.iter().filter(|call| call["status"] == "ok").count(), 50);
}

/// The first fault ends the other branches, and cancels their calls at the server.
#[test]
fn a_fault_in_a_branch_cancels_the_others() {
    let config = Upstreams::probe().write();
    let flags = config.flags(&["--timeout", "120s", "--max-upstream-calls", "1000000"]);
    let mut server = Server::start(&[&flags[..], &["--response-profile", "structured"]].concat());
    let stats = "(defn stats [key] (get (:value (tool/call {:server \"probe\" :tool \"stats\"})) key))";
    // The last branch fails when the server holds the calls of the others.
    let failing = server.run(&format!(
        "{stats} (pmap (fn [n] (if (< n 4)
                                 (tool/call {{:server \"probe\" :tool \"hold\"}})
                                 (loop [] (if (= (stats \"most_in_flight\") 5) (/ 1 0) (recur)))))
                       (range 5))"
    ));
    let failing = &failing["structuredContent"];
    assert_eq!(failing["error_kind"], "pmap_error", "{failing}");
    let message = failing["message"].as_str().expect("text");
    assert!(message.contains('4') && message.contains("arithmetic_error"), "{message}");
    let cancelled =
        server.text(&format!("{stats} (loop [] (let [n (stats \"cancelled\")] (if (< n 4) (recur) n)))"));
    assert_eq!(cancelled, "4");
}
