//! Hints for error messages about malformed special forms, mostly an example of how the form is written.

use super::Special;

/// Advice by form, mostly as an example.
#[rustfmt::skip]
const ADVICE: &[(Special, &str)] = &[
    (Special::Let, "For example (let [a 1 b (inc a)] (+ a b)): names and values in one vector, then the body."),
    (Special::Loop, "For example (loop [i 0 sum 0] (if (< i 5) (recur (inc i) (+ sum i)) sum))."),
    (Special::Recur, "It gives a new value for each name of the enclosing `loop` or parameter of the function."),
    (Special::Quote, "Only symbols can be quoted, as in 'server/tool."),
    (Special::Fn, "For example (fn [x y] (+ x y)): the parameters stand in a vector."),
    (Special::Def, "For example (def limit 10); a function is (defn name [x] …)."),
    (Special::DefOnce, "For example (defonce limit 10)."),
    (Special::Defn, "For example (defn add [x y] (+ x y)): name, parameters in a vector, body."),
    (Special::If, "Several expressions of one branch stand in (do …); more than two branches in (cond …)."),
    (Special::IfNot, "Several expressions of one branch stand in (do …)."),
    (Special::When, "For example (when (> n 0) (println n) n)."),
    (Special::WhenNot, "For example (when-not (empty? coll) (first coll))."),
    (Special::IfLet, "For example (if-let [x (:a m)] (inc x) 0): one name and one value in the vector."),
    (Special::WhenLet, "For example (when-let [x (:a m)] (inc x)): one name and one value in the vector."),
    (Special::IfSome, "For example (if-some [x (:a m)] (inc x) 0): one name and one value in the vector."),
    (Special::WhenSome, "For example (when-some [x (:a m)] (inc x)): one name and one value in the vector."),
    (Special::WhenFirst, "For example (when-first [x coll] (inc x))."),
    (Special::Cond, "For example (cond (< n 0) :neg (> n 0) :pos :else :zero)."),
    (Special::Case, "For example (case x :a 1 (:b :c) 2 0): constants and results in turn, the default last."),
    (Special::Condp, "For example (condp = x 1 :one 2 :two :many)."),
    (Special::ThreadFirst, "For example (-> m (assoc :a 1) :a): the value first, then the steps."),
    (Special::ThreadLast, "For example (->> coll (filter odd?) (map inc)): the value first, then the steps."),
    (Special::ThreadAs, "For example (as-> 1 x (inc x) (* x 2)): value, name, steps."),
    (Special::CondFirst, "For example (cond-> m (:new o) (assoc :new true)): after the value, tests and steps in turn."),
    (Special::CondLast, "For example (cond->> coll sorted? (sort)): after the value, tests and steps in turn."),
    (Special::SomeFirst, "For example (some-> m :a :b): the value first, then the steps."),
    (Special::SomeLast, "For example (some->> coll first (str \"a\")): the value first, then the steps."),
    (Special::For, "For example (for [x coll :when (odd? x)] (* x x)): bindings in a vector, then what to collect."),
    (Special::Doseq, "For example (doseq [x coll] (println x))."),
    (Special::Dotimes, "For example (dotimes [i 3] (println i))."),
    (Special::Doto, "For example (doto x (println))."),
    (Special::Letfn, "For example (letfn [(twice [x] (* 2 x))] (twice 4))."),
    (Special::Return, "It takes one value: put several into a vector or map, as in (return {:a 1})."),
    (Special::Fail, "It takes one value: put several into a vector or map, as in (fail {:why \"empty\"})."),
];

impl Special {
    /// How to write the form correctly.
    pub(crate) fn advice(self) -> Option<&'static str> {
        ADVICE.iter().find(|(special, _)| *special == self).map(|(_, advice)| *advice)
    }
}
