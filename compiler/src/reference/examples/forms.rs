//! Documentation examples for special forms, and for functions on tools, resources, prompts and spilled results (too
//! large to return, so kept in files), as programs with their printed results.

use super::Table;

#[rustfmt::skip]
pub(super) const FORMS: Table = &[
    ("let", "(let [x 1 {:keys [y]} {:y 2}] (+ x y))", "3"),
    ("loop", "(loop [i 0 out []] (if (< i 3) (recur (inc i) (conj out i)) out))", "[0 1 2]"),
    ("recur", "((fn [n acc] (if (zero? n) acc (recur (dec n) (* n acc)))) 5 1)", "120"),
    ("do", "(do 1 2 3)", "3"),
    ("comment", "(comment (anything here))", "nil"),
    ("quote", "(quote fs/read)", "'fs/read"),
    ("fn", "((fn [x & more] [x more]) 1 2 3)", "[1 [2 3]]"),
    ("fn", "((fn ([x] [:one x]) ([x y] [:two x y])) 1 2)", "[:two 1 2]"),
    ("def", "(def limit 10) (inc limit)", "11"),
    ("defonce", "(def x 1) (defonce x 2) x", "1"),
    ("defn", r#"(defn area "Of a rectangle." [w h] (* w h)) (area 2 3)"#, "6"),
    ("defn-", "(defn- half [x] (/ x 2)) (half 3)", "1.5"),
    ("if", "(if (pos? 1) :yes :no)", ":yes"),
    ("if-not", "(if-not (pos? 1) :yes :no)", ":no"),
    ("when", "(when (pos? 1) :yes)", ":yes"),
    ("when-not", "(when-not (pos? 1) :no)", "nil"),
    ("if-let", "(if-let [x (:a {:a 1})] (inc x) :none)", "2"),
    ("when-let", "(when-let [{:keys [a]} {:a 1}] (inc a))", "2"),
    ("if-some", "(if-some [x (:a {:a false})] [x] :none)", "[false]"),
    ("when-some", "(when-some [x (:a {})] [x])", "nil"),
    ("when-first", "(when-first [x [5 6]] (inc x))", "6"),
    ("cond", "(let [n 5] (cond (neg? n) :negative (zero? n) :zero :else :positive))", ":positive"),
    ("case", r#"(case "b" "a" 1 ("b" "c") 2 :other)"#, "2"),
    ("condp", "(condp < 5 10 :large 3 :medium :small)", ":medium"),
    ("and", "(and 1 nil 2)", "nil"),
    ("or", "(or nil false 2)", "2"),
    ("->", "(-> {:a 1} (assoc :b 2) :b inc)", "3"),
    ("->>", "(->> [1 2 3] (filter odd?) (map inc))", "[2 4]"),
    ("as->", "(as-> 5 n (+ n 1) (* n n))", "36"),
    ("cond->", "(cond-> {:a 1} true (assoc :b 2) false (assoc :c 3))", "{:a 1 :b 2}"),
    ("cond->>", "(cond->> [1 2 3] true (filter odd?))", "[1 3]"),
    ("some->", "(some-> {:a {:b 1}} :a :x inc)", "nil"),
    ("some->>", "(some->> [1 2] (map inc) (reduce +))", "5"),
    ("for", "(for [x [1 2 3] y [10 20] :when (odd? x)] (+ x y))", "[11 21 13 23]"),
    ("doseq", "(doseq [x [1 2]] (println x))", "nil"),
    ("dotimes", "(dotimes [i 2] (println i))", "nil"),
    ("doto", "(doto {:a 1} (println))", "{:a 1}"),
    ("letfn", "(letfn [(even [n] (if (zero? n) true (odd (dec n)))) (odd [n] (if (zero? n) false (even (dec n))))] (even 10))", "true"),
    ("task", r#"(task "sum" (+ 1 2))"#, "3"),
    ("step-done", r#"(step-done "sum" "added up")"#, r#""added up""#),
    ("task-reset", r#"(task-reset "sum")"#, "nil"),
    ("return", "(do (return 5) 6)", "5"),
    ("fail", r#"(if true :fine (fail {:why "no data"}))"#, ":fine"),
    ("*1", "*1", "nil"),
    ("*2", "*2", "nil"),
    ("*3", "*3", "nil"),
    ("*e", "*e", "nil"),
];

#[rustfmt::skip]
pub(super) const TOOL: Table = &[
    ("tool/call", r#"(:value (tool/call {:server "probe" :tool "echo" :args {:v 1}}))"#, "1"),
    ("tool/call", "(:value (tool/call 'probe/echo {:v [1 2]}))", "[1 2]"),
    ("tool/call!", "(tool/call! 'probe/echo {:v [1 2]})", "[1 2]"),
    ("tool/call!", r#"(map (fn [v] (tool/call! {:server "probe" :tool "echo" :args {:v v}})) [1 2])"#, "[1 2]"),
    ("tool/servers", "(map :name (tool/servers))", r#"["probe"]"#),
    ("tool/name", "(fn? tool/name)", "true"),
];

#[rustfmt::skip]
pub(super) const BUDGET: Table = &[
    ("budget/remaining", "(pos? (:upstream-calls (budget/remaining)))", "true"),
];

#[rustfmt::skip]
pub(super) const RESOURCE: Table = &[
    ("resource/list", r#"(map :name (:value (resource/list {:server "probe"})))"#, r#"["notes" "dot"]"#),
    ("resource/templates", r#"(map :uriTemplate (:value (resource/templates {:server "probe"})))"#, r#"["memo://numbers/{n}"]"#),
    ("resource/read", r#"(:value (resource/read {:server "probe" :uri "memo://notes"}))"#, r#""Buy milk.""#),
];

#[rustfmt::skip]
pub(super) const SPILL: Table = &[
    ("spill/stat", r##"(:lines (spill/stat (tool/call {:server "probe" :tool "flood" :args {:rows 60000} :on-large :spill})))"##, r##"60002"##),
    ("spill/head", r##"(second (:lines (spill/head (tool/call {:server "probe" :tool "flood" :args {:rows 60000} :on-large :spill}) 2)))"##, r##"" {\"n\":0,\"pad\":\"xxxxxxxxxxxxxxxxxxxxxxxx\"},""##),
    ("spill/tail", r##"(:from_line (spill/tail (tool/call {:server "probe" :tool "flood" :args {:rows 60000} :on-large :spill}) 1))"##, r##"60002"##),
    ("spill/slice", r##"(count (:lines (spill/slice (tool/call {:server "probe" :tool "flood" :args {:rows 60000} :on-large :spill}) 2 11)))"##, r##"10"##),
    ("spill/grep", r##"(:matches (spill/grep (tool/call {:server "probe" :tool "flood" :args {:rows 60000} :on-large :spill}) "\"n\":1234,"))"##, r##"1"##),
    ("spill/read", r##"(:truncated (spill/read (tool/call {:server "probe" :tool "flood" :args {:rows 60000} :on-large :spill}) 100))"##, r##"true"##),
    ("spill/json-path", r##"(spill/json-path (tool/call {:server "probe" :tool "flood" :args {:rows 60000} :on-large :spill}) "$[1:3].n")"##, r##"[1 2]"##),
];

#[rustfmt::skip]
pub(super) const PROMPT: Table = &[
    ("prompt/list", r#"(map :name (:value (prompt/list {:server "probe"})))"#, r#"["greet"]"#),
    ("prompt/get", r#"(get-in (prompt/get {:server "probe" :name "greet" :args {:who "Ada"}}) [:value :messages 0 :content :text])"#, r#""Greet Ada.""#),
];

#[rustfmt::skip]
pub(super) const DATA: Table = &[
    ("data/key", "data/key", "nil"),
];
