//! Builtins that call functions behave like naive models written with `loop`, also when the calls suspend.

use crate::properties::for_all;
use proptest::prelude::*;
use ptc_tests::variants::{Budget, Ending, Ran, USUAL, compare, run};
use ptc_vm::builtins::{Category, Purity, all};

const BUDGET: Budget = Budget { fuel: 1_000_000, memory_bytes: 16 << 20 };

/// Which calls of the functions must agree with the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    /// All, in the same order.
    InOrder,
    /// Only the result: the builtin may choose number and order of the calls.
    Any,
}
use Calls::{Any, InOrder};

/// A builtin at work, and the same written with `loop` and plain calls. In scope: `xs ys` vectors of integers, `m n`
/// maps from keywords to integers, `s` a text, `k` a small number, and the functions `f` (to a number), `h` (to a
/// vector), `p` (to a boolean), `g` (of two arguments), which log their arguments.
#[rustfmt::skip]
const MODELS: &[(&str, &str, Calls)] = &[
    ("(map f xs)", "(fold (fn [out x] (conj out (f x))) [] xs)", InOrder),
    ("(map g xs ys)", "(loop [i 0 out []] (if (and (< i (count xs)) (< i (count ys))) (recur (inc i) (conj out (g (nth xs i) (nth ys i)))) out))", InOrder),
    ("(mapv f xs)", "(fold (fn [out x] (conj out (f x))) [] xs)", InOrder),
    ("(mapcat h xs)", "(fold (fn [out x] (fold conj out (h x))) [] xs)", InOrder),
    ("(mapcat (fn [a b] [(g a b)]) xs ys)", "(loop [i 0 out []] (if (and (< i (count xs)) (< i (count ys))) (recur (inc i) (conj out (g (nth xs i) (nth ys i)))) out))", InOrder),
    ("(map-indexed g xs)", "(loop [i 0 out []] (if (< i (count xs)) (recur (inc i) (conj out (g i (nth xs i)))) out))", InOrder),
    ("(filter p xs)", "(fold (fn [out x] (if (p x) (conj out x) out)) [] xs)", InOrder),
    ("(filterv p xs)", "(fold (fn [out x] (if (p x) (conj out x) out)) [] xs)", InOrder),
    ("(remove p xs)", "(fold (fn [out x] (if (p x) out (conj out x))) [] xs)", InOrder),
    ("(keep p xs)", "(fold (fn [out x] (let [y (p x)] (if (nil? y) out (conj out y)))) [] xs)", InOrder),
    ("(keep-indexed (fn [i x] (when (odd? i) (f x))) xs)", "(loop [i 0 out []] (if (< i (count xs)) (recur (inc i) (if (odd? i) (conj out (f (nth xs i))) out)) out))", InOrder),
    ("(some p xs)", "(loop [i 0] (when (< i (count xs)) (let [y (p (nth xs i))] (if y y (recur (inc i))))))", InOrder),
    ("(every? p xs)", "(loop [i 0] (if (< i (count xs)) (if (p (nth xs i)) (recur (inc i)) false) true))", InOrder),
    ("(not-any? p xs)", "(loop [i 0] (if (< i (count xs)) (if (p (nth xs i)) false (recur (inc i))) true))", InOrder),
    ("(not-every? p xs)", "(loop [i 0] (if (< i (count xs)) (if (p (nth xs i)) (recur (inc i)) true) false))", InOrder),
    ("(take-while p xs)", "(loop [i 0 out []] (if (and (< i (count xs)) (p (nth xs i))) (recur (inc i) (conj out (nth xs i))) out))", InOrder),
    ("(drop-while p xs)", "(loop [i 0] (if (and (< i (count xs)) (p (nth xs i))) (recur (inc i)) (drop i xs)))", InOrder),
    ("(split-with p xs)", "(loop [i 0] (if (and (< i (count xs)) (p (nth xs i))) (recur (inc i)) [(take i xs) (drop i xs)]))", InOrder),
    ("(partition-by f xs)", "(let [[out run] (fold (fn [[out run key] x] (let [new (f x)] (if (and (seq run) (= new key)) [out (conj run x) key] [(if (seq run) (conj out run) out) [x] new]))) [[] [] nil] xs)] (if (seq run) (conj out run) out))", InOrder),
    ("(group-by f xs)", "(fold (fn [out x] (let [key (f x)] (assoc out key (conj (get out key []) x)))) {} xs)", InOrder),
    ("(distinct-by f xs)", "(first (fold (fn [[out seen] x] (let [key (f x)] (if (contains? seen key) [out seen] [(conj out x) (conj seen key)]))) [[] #{}] xs))", InOrder),
    ("(sum-by f xs)", "(fold (fn [sum x] (+ sum (f x))) 0 xs)", InOrder),
    ("(avg-by f xs)", "(when (seq xs) (/ (fold (fn [sum x] (+ sum (f x))) 0.0 xs) (count xs)))", InOrder),
    ("(run! f xs)", "(fold (fn [_ x] (f x) nil) nil xs)", InOrder),
    ("(reduce g k xs)", "(fold g k xs)", InOrder),
    ("(reduce g (cons k xs))", "(fold g k xs)", InOrder),
    ("(reduce (fn [a x] (if (p x) (reduced a) (g a x))) k xs)", "(loop [i 0 a k] (if (< i (count xs)) (if (p (nth xs i)) a (recur (inc i) (g a (nth xs i)))) a))", InOrder),
    ("(reductions g k xs)", "(fold (fn [out x] (conj out (g (last out) x))) [k] xs)", InOrder),
    ("(reduce-kv (fn [a key v] (conj a [key (g v k)])) [] m)", "(fold (fn [a [key v]] (conj a [key (g v k)])) [] (entries m))", InOrder),
    ("(update m :a (fnil f 0))", "(let [v (get m :a)] (assoc m :a (f (if (nil? v) 0 v))))", InOrder),
    ("(update xs 0 (fn [x] (if x (f x) k)))", "(if (seq xs) (assoc xs 0 (f (nth xs 0))) (assoc xs 0 k))", InOrder),
    ("(update m :a (fn [v & more] [v more]) 1 k)", "(assoc m :a [(get m :a) [1 k]])", InOrder),
    ("(update-in {:m m} [:m :a] (fnil f 0))", "(let [v (get m :a)] {:m (assoc m :a (f (if (nil? v) 0 v)))})", InOrder),
    ("(update-vals m f)", "(fold (fn [out [key v]] (assoc out key (f v))) {} (entries m))", InOrder),
    ("(update-keys m (fn [key] [(f (get m key)) key]))", "(fold (fn [out [key v]] (assoc out [(f v) key] v)) {} (entries m))", InOrder),
    ("(merge-with g m n)", "(fold (fn [out [key v]] (assoc out key (if (contains? out key) (g (get out key) v) v))) m (entries n))", InOrder),
    ("(min-by f xs)", "(first (fold (fn [best x] (let [key (f x)] (if (or (nil? best) (< key (second best))) [x key] best))) nil xs))", InOrder),
    ("(max-by f xs)", "(first (fold (fn [best x] (let [key (f x)] (if (or (nil? best) (> key (second best))) [x key] best))) nil xs))", InOrder),
    ("(f (apply min-key f k xs))", "(fold (fn [least x] (min least (f x))) (f k) xs)", Any),
    ("(f (apply max-key f k xs))", "(fold (fn [most x] (max most (f x))) (f k) xs)", Any),
    ("(sort-by f xs)", "(insertion (fn [a b] (< (f a) (f b))) xs)", Any),
    ("(sort-by f > xs)", "(insertion (fn [a b] (> (f a) (f b))) xs)", Any),
    ("(sort (fn [a b] (- (f a) (f b))) xs)", "(insertion (fn [a b] (< (f a) (f b))) xs)", Any),
    ("(apply g xs)", "(if (= 2 (count xs)) (g (first xs) (second xs)) (g))", InOrder),
    ("((comp f f inc) k)", "(f (f (inc k)))", InOrder),
    ("((partial g k) (count xs))", "(g k (count xs))", InOrder),
    ("((juxt f h p) k)", "(let [a (f k) b (h k) c (p k)] [a b c])", InOrder),
    ("((complement p) k)", "(not (p k))", InOrder),
    ("((fnil f 3) nil)", "(f 3)", InOrder),
    ("(boolean ((every-pred p odd?) k))", "(and (boolean (p k)) (odd? k))", Any),
    ("((some-fn p (fn [x] (when (odd? x) :odd))) k)", "(or (p k) (when (odd? k) :odd))", Any),
    ("(repeatedly (count xs) (fn [] (f k)))", "(fold (fn [out _] (conj out (f k))) [] xs)", InOrder),
    ("(take (count xs) (iterate f k))", "(loop [i 0 x k out []] (if (< i (count xs)) (recur (inc i) (if (< (inc i) (count xs)) (f x) x) (conj out x)) out))", InOrder),
    ("(take (count xs) (repeatedly (fn [] (f k))))", "(fold (fn [out _] (conj out (f k))) [] xs)", InOrder),
    ("(take-while (fn [x] (< x 100)) (iterate (fn [x] (+ 30 (f x) (- (f x)))) k))", "(loop [x k out []] (if (< x 100) (recur (+ 30 (f x) (- (f x))) (conj out x)) out))", Any),
    ("(walk f (fn [c] [(count c) c]) xs)", "(let [c (fold (fn [out x] (conj out (f x))) [] xs)] [(count c) c])", InOrder),
    ("(postwalk (fn [x] (if (number? x) (f x) x)) [xs [k]])", "[(fold (fn [out x] (conj out (f x))) [] xs) [(f k)]]", InOrder),
    ("(prewalk (fn [x] (if (number? x) (f x) x)) [xs [k]])", "[(fold (fn [out x] (conj out (f x))) [] xs) [(f k)]]", InOrder),
    ("(tree-seq vector? (fn [x] (f k) x) [xs k])", "(do (f k) (f k) (fold conj [[xs k] xs] (conj xs k)))", InOrder),
    ("(select p (set xs))", "(fold (fn [out x] (if (p x) (conj out x) out)) #{} (sort (distinct xs)))", InOrder),
    ("(replace s #\"[a-z]+\" (fn [t] (str (f (count t)))))", "(apply str (fold (fn [out part] (conj out (if (re-matches #\"[a-z]+\" part) (str (f (count part))) part))) [] (re-seq #\"[a-z]+|[^a-z]+\" s)))", InOrder),
    ("(replace-first s #\"[a-z]+\" (fn [t] (str (f (count t)))))", "(let [t (re-find #\"[a-z]+\" s)] (if t (let [i (index-of s t)] (str (subs s 0 i) (f (count t)) (subs s (+ i (count t))))) s))", InOrder),
    ("(into [] (map f) xs)", "(fold (fn [out x] (conj out (f x))) [] xs)", InOrder),
    ("(into k-set (comp (filter p) (take 2) (map f)) xs)", "(loop [i 0 taken 0 out k-set] (if (and (< i (count xs)) (< taken 2)) (if (p (nth xs i)) (recur (inc i) (inc taken) (conj out (f (nth xs i)))) (recur (inc i) taken out)) out))", InOrder),
    ("(transduce (comp (filter p) (map f)) + k xs)", "(fold (fn [sum x] (if (p x) (+ sum (f x)) sum)) k xs)", InOrder),
    ("(transduce (mapcat h) conj [] xs)", "(fold (fn [out x] (fold conj out (h x))) [] xs)", InOrder),
    ("(sequence (comp (remove p) (keep p)) xs)", "(fold (fn [out x] (if (p x) out (let [y (p x)] (if (nil? y) out (conj out y))))) [] xs)", InOrder),
    ("(into [] (eduction (filter p) (map f) xs))", "(fold (fn [out x] (if (p x) (conj out (f x)) out)) [] xs)", InOrder),
    ("(zip xs (repeatedly (fn [] (f k))))", "(fold (fn [out x] (conj out [x (f k)])) [] xs)", Any),
    ("(interleave xs (repeatedly (fn [] (f k))))", "(fold (fn [out x] (conj out x (f k))) [] xs)", Any),
    ("(zipmap xs (iterate (fn [x] (- (f x) (f x))) k))", "(loop [i 0 x k out {}] (if (< i (count xs)) (recur (inc i) (- (f x) (f x)) (assoc out (nth xs i) x)) out))", Any),
    ("(pmap f xs)", "(fold (fn [out x] (conj out (f x))) [] xs)", InOrder),
    ("(pcalls (fn [] (f k)) (fn [] (h k)))", "(let [a (f k) b (h k)] [a b])", InOrder),
    ("(for [x xs :when (p x) y ys] (g x y))", "(fold (fn [out x] (if (p x) (fold (fn [out y] (conj out (g x y))) out ys) out)) [] xs)", InOrder),
    ("(doseq [x xs :when (p x)] (f x))", "(fold (fn [_ x] (when (p x) (f x)) nil) nil xs)", InOrder),
];

/// Builtins that the table lists among those that call functions, but that never call one.
const CALL_NOTHING: &[&str] =
    &["keywordize-keys", "stringify-keys", "java.util.Date.", "LocalDate/now", "Instant/now"];

const HELPERS: &str = "
(defn fold [step init items]
  (loop [i 0 acc init] (if (< i (count items)) (recur (inc i) (step acc (nth items i))) acc)))
(defn insertion [before? items]
  (fold (fn [sorted x]
          (loop [i (count sorted)]
            (if (and (pos? i) (before? x (nth sorted (dec i))))
              (recur (dec i))
              (fold conj (conj (vec (take i sorted)) x) (drop i sorted)))))
        [] items))
";

#[derive(Clone, Debug)]
struct Inputs {
    bindings: String,
    f: &'static str,
    p: &'static str,
    g: &'static str,
}

fn inputs() -> impl Strategy<Value = Inputs> {
    let integers = || {
        prop_oneof![
            4 => prop::collection::vec(-4i64..7, 0..9).prop_map(|items| format!("{items:?}")),
            1 => (0u32..20).prop_map(|count| format!("(vec (range {count}))")),
        ]
    };
    let map = || {
        prop::collection::btree_map(prop::sample::select(vec![":a", ":b", ":c", ":d"]), -4i64..7, 0..4)
            .prop_map(|map| {
                format!("{map:?}")
                    .replace(['"', ':'], "")
                    .replace("{", "{:")
                    .replace(", ", " :")
                    .replace("{:}", "{}")
            })
    };
    let text = prop::sample::select(vec!["", "ab1cd", "a", "12", "é x-yz 😀"]);
    let f = prop::sample::select(vec!["(* x 2)", "(- x)", "(mod x 3)", "(+ x 0.5)", "1"]);
    let p = prop::sample::select(vec!["(odd? x)", "(> x 1)", "(< x 2)", "true", "nil", "(when (pos? x) x)"]);
    let g = prop::sample::select(vec!["(+ a b)", "(- a b)", "(max a b)", "(* 2 b)"]);
    (integers(), integers(), map(), map(), text, -3i64..6, f, p, g).prop_map(
        |(xs, ys, m, n, s, k, f, p, g)| Inputs {
            bindings: format!("xs {xs} ys {ys} m {m} n {n} s {s:?} k {k} k-set #{{{k}}}").replace(", ", " "),
            f,
            p,
            g,
        },
    )
}

impl Inputs {
    /// The expression with everything in scope. `wait` wraps the results of the functions.
    fn program(&self, expression: &str, wait: &str) -> String {
        let Inputs { bindings, f, p, g } = self;
        format!(
            "{HELPERS}
(let [{bindings}
      f (fn [x] (println :f x) ({wait} {f}))
      h (fn [x] (println :h x) ({wait} [x {f}]))
      p (fn [x] (println :p x) ({wait} {p}))
      g (fn [a b] (println :g a b) ({wait} {g}))]
  {expression})"
        )
    }
}

/// Fuel and locations differ between a builtin and a loop; a fault must have the same reason.
fn judge(ran: &Ran) -> Result<&str, ptc_vm::Reason> {
    match &ran.ending {
        Ending::Done(text) | Ending::Return(text) | Ending::Fail(text) => Ok(text),
        Ending::Fault(reason, ..) => Err(*reason),
    }
}

fn agrees(inputs: &Inputs, (expression, model, calls): &(&str, &str, Calls)) {
    let wanted = run(&inputs.program(model, "identity"), &BUDGET, &USUAL).expect("a model compiles");
    for wait in ["identity", "tool/echo"] {
        let program = inputs.program(expression, wait);
        let ran = match wait {
            "identity" => run(&program, &BUDGET, &USUAL),
            _ => compare(&program, &BUDGET),
        };
        let ran = ran.unwrap_or_else(|| panic!("does not compile: {program}"));
        assert_eq!(judge(&ran), judge(&wanted), "{program}\nis not\n{model}");
        if *calls == InOrder {
            assert_eq!(ran.prints, wanted.prints, "{program}\ncalls otherwise than\n{model}");
        }
    }
}

#[test]
fn builtins_that_call_functions_agree_with_a_model() {
    for_all(6, inputs(), |inputs| MODELS.iter().for_each(|row| agrees(&inputs, row)));
}

/// A builtin that calls functions and is not in the list would stay untested.
#[test]
fn every_builtin_that_calls_functions_has_a_model() {
    let missing: Vec<&str> = all()
        .map(|(_, builtin)| builtin)
        .filter(|builtin| builtin.purity == Purity::Calls && builtin.category != Category::Internal)
        .map(|builtin| builtin.name)
        .filter(|name| !CALL_NOTHING.contains(name))
        .filter(|name| {
            !MODELS.iter().any(|(expression, ..)| {
                expression.contains(&format!("({name} ")) || expression.contains(&format!(" {name} "))
            })
        })
        .collect();
    assert!(missing.is_empty(), "no model of {missing:?}");
}
