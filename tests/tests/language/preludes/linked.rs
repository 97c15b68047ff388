//! Calls in all directions between functions of a program, exports and their helpers.

use super::attach::with_servers;
use super::{failure, run, runtime, value};

const TEXT: &str = r#"(ns m "Functions that call each other.")
(defn- odd-down? [n] (if (zero? n) false (even-down? (dec n))))
(defn even-down? [n] (if (zero? n) true (odd-down? (dec n))))
(defn product [n] (if (< n 2) 1 (* n (smaller n))))
(defn- smaller [n] (product (dec n)))
(defn each [f xs] (mapv (fn [x] (f x)) xs))
(defn times [n f x] (if (zero? n) x (times (dec n) f (f x))))
(defn adder [n] (fn [x] (+ n x)))
(defn pairs [xs] (reduce (fn [found x] (conj found [x (product x)])) [] xs))
(defn shapes ([a] (shapes a 1)) ([a b] (shapes a b 2)) ([a b & more] [a b more]))
(defn failing [f x] [(f x)])
"#;

/// A program and its value.
const VALUES: &[(&str, &str)] = &[
    ("[(m/even-down? 100) (m/even-down? 101)]", "[true false]"),
    ("(m/even-down? 5000)", "true"),
    ("(m/product 15)", "1307674368000"),
    // Functions of the program and of the prelude call each other.
    ("(defn down [n] (if (zero? n) 0 (m/times 1 down (dec n)))) (down 300)", "0"),
    ("(defn mine [x] (m/product x)) (m/each mine [1 2 3 4])", "[1 2 6 24]"),
    ("(m/each m/product [1 2 3 4])", "[1 2 6 24]"),
    ("(m/times 1000 (m/adder 3) 0)", "3000"),
    ("(m/times 10 (fn [x] (m/times 10 inc x)) 0)", "100"),
    ("(map m/product [1 2 3])", "[1 2 6]"),
    ("(filter m/even-down? (range 6))", "[0 2 4]"),
    ("(sort-by m/product > [1 3 2])", "[3 2 1]"),
    ("(reduce (fn [sum x] (+ sum (m/product x))) 0 [1 2 3])", "9"),
    ("(m/pairs [2 3])", "[[2 2] [3 6]]"),
    ("((comp m/product (m/adder 1) inc) 2)", "24"),
    ("(map (comp (m/adder 1) (m/adder 2)) [1 2 3])", "[4 5 6]"),
    ("[(m/shapes 0) (m/shapes 0 5) (m/shapes 0 5 6 7)]", "[[0 1 [2]] [0 5 [2]] [0 5 [6 7]]]"),
    ("(pmap m/product [1 2 3])", "[1 2 6]"),
    ("(loop [i 0 sum 0] (if (< i 1000) (recur (inc i) (+ sum (m/product 3))) sum))", "6000"),
    (
        "[(= m/product m/product) (= m/product m/each) (count (set [m/product m/each m/product]))]",
        "[true false 2]",
    ),
];

#[tokio::test]
async fn calls_go_back_and_forth_between_a_program_and_a_prelude() {
    let runtime = runtime(TEXT).await;
    // The second pass finds what the first one has cached.
    for (program, expected) in VALUES.iter().chain(VALUES) {
        assert_eq!(value(&runtime, program).await, *expected, "{program}");
    }
}

#[tokio::test]
async fn what_fails_below_says_who_called() {
    let runtime = runtime(TEXT).await;
    let program = "(defn divided [x]\n  (/ 1 x))\n(defn outer []\n  (m/failing divided 0))\n(outer)";
    let failed = run(&runtime, program).await.result.expect_err("division");
    let report = &failed.reports[0];
    let place = report.location.as_ref().map(|place| (place.start.line, place.start.column));
    assert_eq!(place, Some((2, 3)), "{report:?}");
    let (reason, message) = failure(&runtime, "(m/failing (fn [a b] a) 1)").await;
    assert_eq!((reason, message.contains("got 1")), ("arity_mismatch", true), "{message}");
}

#[tokio::test]
async fn functions_of_a_prelude_wait_for_servers_in_several_programs_at_once() {
    let text = "(ns m)\n(defn- shown [id user] [id (get user \"name\")])\n\
        (defn found [id] (shown id (:value (tool/call 'crm/get_user {:id (str \"norm:\" id)}))))\n\
        (defn both [f ids] (mapv (fn [id] [(f id) (found id)]) ids))";
    let runtime = with_servers(text, &["crm"]).await;
    let one = "(m/found \"u_123\")";
    let nested = "(defn mine [id] (second (m/found id))) (m/both mine [\"u_123\" \"u_124\"])";
    let branches = "(pmap m/found [\"u_124\" \"u_123\" \"u_124\"])";
    for _ in 0..3 {
        let (one, nested, branches) =
            tokio::join!(value(&runtime, one), value(&runtime, nested), value(&runtime, branches));
        assert_eq!(one, "[\"u_123\" \"Ada\"]");
        assert_eq!(nested, "[[\"Ada\" [\"u_123\" \"Ada\"]] [\"Bob\" [\"u_124\" \"Bob\"]]]");
        assert_eq!(branches, "[[\"u_124\" \"Bob\"] [\"u_123\" \"Ada\"] [\"u_124\" \"Bob\"]]");
    }
}
