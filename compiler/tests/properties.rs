//! The compiler ends on any text; a compiled program passes the verifier (a debug assertion in `compile`) and leaves
//! no value behind when it runs.

use proptest::prelude::*;
use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_vm::{Budget, Exit, Isolate, Value};

/// Compiles; if that works, runs with little fuel. The live bytes at the end must be 0.
fn check(source: &str) {
    let Ok(compiled) = compile(source, &Externals::default(), &CompileOptions::default()) else { return };
    let options = Budget { fuel: 20_000, memory_bytes: 4 << 20, ..Budget::default() };
    let mut isolate = Isolate::new(options);
    let unit = isolate.load(compiled.program.clone()).expect("a small program loads");
    isolate.start(unit);
    loop {
        match isolate.run(5_000) {
            Exit::HostCall(call) => isolate.resume(call, |_| Ok(Value::Nil)),
            Exit::SliceEnd => {}
            Exit::Done | Exit::Return | Exit::Fail(_) | Exit::Fault(_) | Exit::Blocked => break,
        }
    }
    assert_eq!(isolate.close(), 0, "leaked by\n{source}\n{}", compiled.program.disassemble());
}

/// Text that looks like a program.
fn soup() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "#{",
        "#(",
        "'",
        "#'",
        "%",
        "%2",
        "%&",
        "&",
        ":a",
        ":keys",
        ":as",
        ":or",
        ":when",
        ":while",
        ":let",
        ":else",
        ":>>",
        "x",
        "y",
        "f",
        "_",
        "1",
        "-1",
        "2.5",
        "nil",
        "true",
        "\"s\"",
        "\\a",
        "#\"a+\"",
        "let",
        "loop",
        "recur",
        "fn",
        "def",
        "defn",
        "defonce",
        "if",
        "when",
        "cond",
        "case",
        "condp",
        "and",
        "or",
        "->",
        "->>",
        "as->",
        "cond->",
        "some->",
        "for",
        "doseq",
        "do",
        "return",
        "fail",
        "if-let",
        "when-first",
        "+",
        "=",
        "<",
        "not",
        "map",
        "str",
        "tool/call",
        "tool/x",
        "data/k",
        "##NaN",
        ";c\n",
        "'a/b",
        "apply",
        "conj",
        "get",
        "..",
        ".x",
    ]);
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.join(" "))
}

/// Expressions that mostly compile, over the locals `a`, `b`, `c` and globals `g`, `h`.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", "c", "g", "1", "2", "-7", "nil", "true", "false", ":k", "\"s\"", "[1 2 3]", "{:k 1}", "[]",
        "2.5", "'q",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 60, 4, |inner| {
        let one = inner.clone();
        let two = (inner.clone(), inner.clone());
        let three = (inner.clone(), inner.clone(), inner.clone());
        let four = (inner.clone(), inner.clone(), inner.clone(), inner);
        prop_oneof![
            one.clone().prop_map(|x| format!("(str {x})")),
            one.clone().prop_map(|x| format!("(:k {x})")),
            one.clone().prop_map(|x| format!("(fn [a] [a b {x}])")),
            one.clone().prop_map(|x| format!("(let [[a & b] [{x} 1 2]] [a b])")),
            one.clone().prop_map(|x| format!("(let [{{:keys [a] :or {{a 5}} :as b}} {{:a {x}}}] [a b])")),
            one.clone().prop_map(|x| format!("(some-> {x} vector first)")),
            one.clone().prop_map(|x| format!("(when-first [a [1 2]] {x})")),
            one.clone().prop_map(|x| format!("(do (def h {x}) h)")),
            one.prop_map(|x| format!("(return {x})")),
            two.clone().prop_map(|(x, y)| format!("(vector {x} {y})")),
            two.clone().prop_map(|(x, y)| format!("(= {x} {y})")),
            two.clone().prop_map(|(x, y)| format!("(and {x} {y} c)")),
            two.clone().prop_map(|(x, y)| format!("(or {x} {y} b)")),
            two.clone().prop_map(|(x, y)| format!("(let [a {x} c {y}] [a c b])")),
            two.clone().prop_map(|(x, y)| format!("(for [a [1 2 3] :when {x} :let [b a]] {y})")),
            two.clone().prop_map(|(x, y)| format!("(for [a [1 2 3] :while {x} b [a a]] [b {y}])")),
            two.clone().prop_map(|(x, y)| format!("(do (doseq [c [1 2]] {x}) {y})")),
            two.clone().prop_map(|(x, y)| format!("((fn [a b] [b {x}]) {y} c)")),
            two.clone().prop_map(|(x, y)| format!("(-> {x} (vector {y}) (conj a) count)")),
            two.clone().prop_map(|(x, y)| format!("(->> {x} (vector (str {y})) (conj [b]) last)")),
            two.clone().prop_map(|(x, y)| format!("(as-> {x} a [a {y}] (conj a b))")),
            two.clone().prop_map(|(x, y)| format!("(cond-> [] {x} (conj a) {y} (conj b))")),
            two.prop_map(|(x, y)| format!("(reduce (fn [a b] [b {x}]) {y} [1 2])")),
            three.clone().prop_map(|(x, y, z)| format!("(if {x} {y} {z})")),
            three.clone().prop_map(|(x, y, z)| format!("(if (and {x} (not {y})) {z} a)")),
            three.clone().prop_map(|(x, y, z)| format!("(if (or {x} (nil? {y})) b {z})")),
            three.clone().prop_map(|(x, y, z)| format!("(if-let [a {x}] {y} {z})")),
            three.clone().prop_map(|(x, y, z)| format!("(case {x} 1 {y} (2 :k) {z} c)")),
            three.clone().prop_map(|(x, y, z)| format!("(condp = {x} 1 {y} {z} b a)")),
            three.clone().prop_map(|(x, y, z)| format!("[{x} {y} {{:z {z}}} #{{a}}]")),
            three.clone().prop_map(|(x, y, z)| format!(
                "(loop [i 0 a {x} b {y}] (if (< i 3) (recur (inc i) b a) [{z} a c]))"
            )),
            three.clone().prop_map(|(x, y, z)| format!(
                "(loop [i 3 a c] (cond (= i 0) {x} {y} (recur (dec i) {z}) :else c))"
            )),
            three
                .prop_map(|(x, y, z)| format!("((fn [i a] (if (> i 2) {x} (recur (inc i) [{y} {z}]))) 0 b)")),
            four.clone().prop_map(|(x, y, z, w)| format!("(cond {x} {y} {z} {w})")),
            four.prop_map(|(x, y, z, w)| format!(
                "(loop [[a b] [{x} {y}] n 0] (when (< n 2) {z} (recur {w} (+ n 1))))"
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_an_answer(source in ".{0,80}") {
        check(&source);
    }

    #[test]
    fn any_tokens_get_an_answer(source in soup()) {
        check(&source);
    }

    #[test]
    fn what_compiles_runs_without_leaks(body in expression()) {
        check(&format!("(def g 1) (let [a [1] b {{:k [2]}} c \"three\"] {body})"));
        check(&format!("(def g 1) (defn f [a b & c] {body}) [(f 1 [2] 3) (f {{}} nil)]"));
    }
}
