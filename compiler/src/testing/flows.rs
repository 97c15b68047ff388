//! Plans of programs.

use crate::flows::{FlowArgument, FlowCallKind, FlowPlan, SourceSet};
use crate::{CompileOptions, Externals, SessionName, compile};

fn planned_in(source: &str, externals: &Externals<'_>) -> FlowPlan {
    let options = CompileOptions { flows: true, ..CompileOptions::default() };
    let compiled = compile(source, externals, &options).expect(source);
    (*compiled.flows.expect("a plan")).clone()
}

fn planned(source: &str) -> FlowPlan {
    planned_in(source, &Externals::default())
}

/// Sources without what every value has, in alphabetical order and without lines.
fn shown(plan: &FlowPlan, sources: SourceSet) -> String {
    let mut names: Vec<String> = plan.names(sources);
    names.retain(|name| name != "the program's text");
    for name in &mut names {
        if let Some((before, _)) = name.split_once(" (line") {
            *name = before.to_owned();
        }
    }
    names.sort();
    names.dedup();
    names.join(" ")
}

/// What may reach an argument of the call of `t/sink`, without what decides whether it is called; then that.
fn sink(source: &str) -> String {
    let plan = planned(source);
    let call = plan.calls.iter().find(|call| call.tool.as_deref() == Some("sink")).expect(source);
    let arguments = call
        .arguments
        .iter()
        .map(|argument| format!("{}={}", argument.pointer(), shown(&plan, argument.sources)));
    let control = shown(&plan, call.control);
    arguments.chain((!control.is_empty()).then(|| format!("if {control}"))).collect::<Vec<_>>().join("; ")
}

/// Checks programs around a call of `t/sink`.
fn check(cases: &[(&str, &str)]) {
    let wrong = cases.iter().filter_map(|(text, expected)| {
        let found = sink(&around(text));
        (found != *expected).then(|| format!("{text}\n  expected {expected}\n  found    {found}\n"))
    });
    let wrong: String = wrong.collect();
    assert!(wrong.is_empty(), "{wrong}");
}

/// The program around a call: `a` and `b` are values of two tools, `ra` the tagged result of the first.
fn around(text: &str) -> String {
    format!(
        "(let [ra (tool/call {{:server \"m\" :tool \"a\"}}) a (:value ra) b (tool/call! {{:server \"m\" :tool \"b\"}})
               sink (fn [x] (tool/call {{:server \"t\" :tool \"sink\" :args {{:x x}}}}))] {text})"
    )
}

#[test]
fn arguments_name_what_may_reach_them() {
    let cases = [
        ("(sink 1)", "/x="),
        ("(sink a)", "/x=m/a status of m/a"),
        ("(sink (:ok ra))", "/x=status of m/a"),
        ("(sink (:value-kind ra))", "/x=status of m/a"),
        ("(sink (:message ra))", "/x=m/a status of m/a"),
        ("(sink (str \"x\" (:name b)))", "/x=m/b status of m/b"),
        ("(sink data/to)", "/x=data/to"),
        // Parts of maps.
        ("(sink (:k {:k 1 :l b}))", "/x="),
        ("(sink (get {\"k\" 1 :l b} :l))", "/x=m/b status of m/b"),
        ("(sink (get-in {:k {:l 1 :m b}} [:k :l]))", "/x="),
        ("(sink (:k (assoc {:l b} :k 1)))", "/x="),
        ("(sink (:k (select-keys {:l b :k 1} [:k])))", "/x="),
        ("(sink (:k (merge {:l b} {:k 1})))", "/x="),
        ("(sink (:k (update {:l b :k 1} :k inc)))", "/x="),
        ("(let [{:keys [k]} {:l b :k 1}] (sink k))", "/x="),
        ("(let [[k l] [1 b]] (sink k))", "/x="),
        ("(let [[k l] [1 b]] (sink l))", "/x=m/b status of m/b"),
        ("(sink {:k 1 :l b})", "/x/k=; /x/l=m/b status of m/b"),
        ("(sink {(:k b) 1})", "/x=m/b status of m/b"),
        ("(sink {:k [[[[[[b]]]]]] :l 1})", "/x/k=m/b status of m/b; /x/l="),
        ("(sink {:k-l b})", "/x/k_l=m/b status of m/b"),
        // Functions of a whole value.
        ("(sink (count [b b]))", "/x="),
        ("(sink (count b))", "/x=m/b status of m/b"),
        ("(sink (count #{1 b}))", "/x=m/b status of m/b"),
        ("(sink (= {:k b} {:k 1}))", "/x=m/b status of m/b"),
        ("(sink (pr-str {:k {:l b}}))", "/x=m/b status of m/b"),
        ("(sink (compare [1 {:k b}] [1]))", "/x=m/b status of m/b"),
        ("(sink (distinct [1 b]))", "/x=m/b status of m/b"),
        ("(sink (re-find (re-pattern (:p b)) \"text\"))", "/x=m/b status of m/b"),
        ("(sink (keys {(:k b) 1}))", "/x=m/b status of m/b"),
        ("(sink (count {(:k b) 1 :l 2}))", "/x=m/b status of m/b"),
        ("(sink (get {:l 1} (:k b)))", "/x=m/b status of m/b"),
        ("(sink (first (sort [b 1])))", "/x=m/b status of m/b"),
        // Functions with callbacks.
        ("(sink (map :id b))", "/x=m/b status of m/b"),
        ("(sink (map inc [1 2]))", "/x="),
        ("(sink (reduce + 0 b))", "/x=m/b status of m/b"),
        ("(sink ((memoize (fn [x] b)) 1))", "/x=m/b status of m/b"),
        ("(sink ((partial str b) 1))", "/x=m/b status of m/b"),
        ("(sink ((comp inc (fn [x] b)) 1))", "/x=m/b status of m/b"),
        ("(sink ((constantly b) 1))", "/x=m/b status of m/b"),
        ("(sink (for [x [1 2] :when (< x b)] x))", "/x=m/b status of m/b"),
        ("(sink (loop [i 0 acc []] (if (< i b) (recur (inc i) (conj acc 1)) acc)))", "/x=m/b status of m/b"),
        ("(sink (take 3 (iterate (fn [x] (+ x b)) 1)))", "/x=m/b status of m/b"),
        ("(sink (apply + [1 b]))", "/x=m/b status of m/b"),
        ("(sink (into {} [[:k b]]))", "/x=m/b status of m/b"),
        ("(sink (if b 1 2))", "/x=m/b status of m/b"),
        ("(sink (case b 1 2 3))", "/x=m/b status of m/b"),
        ("(sink (and b 1))", "/x=m/b status of m/b"),
        ("(sink (if (:ok ra) 1 2))", "/x=status of m/a"),
        ("(def g b) (sink g)", "/x=m/b status of m/b"),
        (
            "(sink (tool/call! {:server \"m\" :tool \"c\" :args {:q b}}))",
            "/x=m/b m/c status of m/b status of m/c",
        ),
        ("(sink (json/parse-string (json/generate-string {:k b})))", "/x=m/b status of m/b"),
        ("(sink (budget/remaining))", "/x=anything"),
        ("(sink (spill/head \"result-1\"))", "/x=anything"),
        ("(sink (doc \"m/a\"))", "/x=texts about tools"),
        ("(sink (currentTimeMillis))", "/x=the clock"),
        ("(letfn [(f [x] (if (< x 1) b (g x))) (g [x] (f (dec x)))] (sink (f 3)))", "/x=m/b status of m/b"),
    ];
    check(&cases);
}

#[test]
fn what_decides_about_a_call_counts() {
    let cases = [
        ("(if (:n b) (sink 1) 2)", "/x=; if m/b status of m/b"),
        ("(if (:ok ra) (sink 1) 2)", "/x=; if status of m/a"),
        ("(if (:ok ra) 2 (if (:n a) 1 (sink 1)))", "/x=; if m/a status of m/a"),
        ("(doseq [x b] (sink 1))", "/x=; if m/b status of m/b"),
        ("(doseq [x [1 2]] (sink x))", "/x="),
        ("(run! sink b)", "/x=m/b status of m/b; if m/b status of m/b"),
        ("(pmap (fn [x] (sink (:k x))) b)", "/x=m/b status of m/b; if m/b status of m/b"),
        ("(do (when (:n b) (return 1)) (sink 1))", "/x=; if m/b status of m/b"),
        ("(do (sink 1) (when (:n b) (return 1)))", "/x="),
        (
            "(loop [i 0] (sink i) (when (< i b) (recur (inc i))))",
            "/x=m/b status of m/b; if m/b status of m/b",
        ),
        ("((if (:n b) sink inc) 1)", "/x=; if m/b status of m/b"),
        ("(and (:n b) (sink 1))", "/x=; if m/b status of m/b"),
        ("(some (fn [x] (sink 1) x) [1 b])", "/x=; if m/b status of m/b"),
        ("(doseq [x [1 2]] (sink x) (when (:n b) (return 1)))", "/x=; if m/b status of m/b"),
        ("{(when (:n b) (fail 1)) (sink 1)}", "/x=; if m/b status of m/b"),
        ("((when (:n b) (fail 1)) (sink 1))", "/x=; if m/b status of m/b"),
        (
            "(loop [i 0] (sink 1) (when (:n b) (return 1)) (if (< i 3) (recur (inc i)) 1))",
            "/x=; if m/b status of m/b",
        ),
        ("(mapv (fn [x] (sink x) (when (:n b) (return 1))) [1 2])", "/x=; if m/b status of m/b"),
        ("((:f {:f sink :g b}) 1)", "/x="),
        ("(let [f (if (:ok ra) sink nil)] (f 1))", "/x=; if status of m/a"),
    ];
    check(&cases);
}

#[test]
fn a_call_that_is_computed_may_be_any() {
    let plan = planned(
        "(let [s (tool/call! {:server \"m\" :tool \"a\"})]
           (tool/call {:server (:s s) :tool \"x\" :args {:y 1}})
           (tool/call (:call s))
           (map tool/call [{:server \"q\" :tool \"r\"}])
           (tool/call 'w/z {:v 1})
           (let [server \"k\"] (tool/call {:server server :tool \"l\"}))
           (tool/call :server \"u\" :tool \"v\" :args {:w s}))",
    );
    let calls: Vec<(String, String)> =
        plan.calls.iter().map(|call| (call.name(), shown(&plan, call.control))).collect();
    let by = "m/a status of m/a";
    let expected = [
        ("m/a", ""),
        ("(any server)/x", by),
        ("(any server)/(any tool)", by),
        // Its callback may get what it gave before.
        (
            "(any server)/(any tool)",
            "(any server)/(any tool) m/a status of (any server)/(any tool) status of m/a",
        ),
        ("w/z", ""),
        ("k/l", ""),
        ("u/v", ""),
    ];
    assert_eq!(calls, expected.map(|(name, control)| (name.to_owned(), control.to_owned())));
    let last = plan.calls.last().expect("a call");
    assert_eq!(last.arguments.iter().map(FlowArgument::pointer).collect::<Vec<_>>(), ["/w"]);
}

#[test]
fn what_is_not_known_is_anything() {
    let session = [
        SessionName { name: "f", arity: Some(crate::CallArity { min: 1, max: Some(1) }) },
        SessionName { name: "v", arity: None },
        SessionName { name: "*1", arity: None },
    ];
    let externals = Externals { session: &session, ..Externals::default() };
    let text = "(let [a (f v)] (tool/call {:server \"t\" :tool \"sink\" :args {:x a :y v :z *1}}))";
    let plan = planned_in(text, &externals);
    let call = plan.calls.iter().find(|call| call.tool.as_deref() == Some("sink")).expect(text);
    let shown: Vec<_> = call.arguments.iter().map(|argument| shown(&plan, argument.sources)).collect();
    assert_eq!(
        shown,
        [
            // The function may have defined the names again.
            "anything f f of the session status of f v of the session",
            "anything v of the session",
            "*1 of the session anything"
        ]
    );
    assert_eq!(plan.calls[0].kind, FlowCallKind::Function);
}

#[test]
fn results_and_prints_and_names_are_planned() {
    let plan = planned(
        "(def n (:k (tool/call! {:server \"m\" :tool \"a\"})))
         (map println [data/x])
         (when data/y (return 1))
         (fail n)",
    );
    assert_eq!(shown(&plan, plan.prints), "data/x");
    assert_eq!(shown(&plan, plan.result), "data/y m/a status of m/a");
    let names: Vec<_> =
        plan.definitions.iter().map(|(name, sources)| (&**name, shown(&plan, *sources))).collect();
    assert_eq!(names, [("n", "m/a status of m/a".to_owned())]);
}

#[test]
fn a_program_that_is_too_large_is_unknown() {
    let calls = "(tool/call {:server \"m\" :tool \"a\"}) ".repeat(200);
    assert!(planned(&calls).is_unknown);
    let functions = "(fn [x] x) ".repeat(200);
    assert!(planned(&functions).is_unknown);
}

#[test]
fn the_picture_shows_every_flow() {
    let plan = planned(
        "(tool/call {:server \"s\" :tool \"b\" :args {:x (tool/call! {:server \"m\" :tool \"a\"})}})",
    );
    let picture = plan.mermaid();
    for line in ["c1[\"m/a (line 1)\"]", "c1 -->|\"/x\"| c0", "c0 -->|\"\"| end_"] {
        assert!(picture.contains(line), "{picture}");
    }
}

/// Programs whose plans would take memory or time by the square of their text, or more.
fn heavy() -> Vec<String> {
    let entries = |count: usize, value: &str| {
        (0..count).map(|key| format!(":k{key} {value}")).collect::<Vec<_>>().join(" ")
    };
    let levels = (0..6).fold("1".to_owned(), |value, level| {
        format!("(let [v{level} {value} w{level} {value}] {{{}}})", entries(40, &format!("v{level}")))
    });
    let assocs = (0..4_000).map(|key| format!("(assoc :k{key} x)")).collect::<Vec<_>>().join(" ");
    let merges = (0..2_000).map(|key| format!("{{:k{key} x}}")).collect::<Vec<_>>().join(" ");
    let defs = (0..3_000).map(|key| format!("(def d{key} [x {{:a x}}])")).collect::<Vec<_>>().join(" ");
    let captured =
        (0..60).map(|key| format!("f{key} (fn [y] [y {}])", entries(1, "x"))).collect::<Vec<_>>().join(" ");
    vec![
        format!("(let [x data/x] {{{}}})", entries(20_000, "x")),
        format!("(let [x (tool/call! {{:server \"m\" :tool \"a\"}})] (-> {{}} {assocs}))"),
        format!("(let [x data/x] (merge {merges}))"),
        format!("(def x data/x) {defs}"),
        format!("(let [x data/x {captured}] [{}])", "(f1 (f2 (f3 x))) ".repeat(2_000)),
        levels,
    ]
}

#[test]
fn a_plan_is_bounded_and_refuses_no_program() {
    for source in heavy() {
        let compiled = |flows, memory_bytes| {
            let budget = crate::CompileBudget { memory_bytes, ..crate::CompileBudget::default() };
            let options = CompileOptions { flows, budget, ..CompileOptions::default() };
            let (compiled, steps) =
                crate::pipeline::compile_counting(&source, &Externals::default(), &options);
            (compiled.map(|compiled| compiled.program), steps)
        };
        let start = &source[..source.len().min(80)];
        // The plan has a budget of its own: what is enough without it is enough with it.
        for memory in [1_u64 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 27] {
            let (without, steps) = compiled(false, memory);
            let (with, more) = compiled(true, memory);
            assert_eq!(without.is_ok(), with.is_ok(), "{memory} {start}");
            assert_eq!(steps, more, "{memory} {start}");
        }
    }
}

#[test]
fn what_is_called_otherwise_than_it_is_written_counts() {
    let (by_b, by_sink) = ("m/b status of m/b", "status of t/sink t/sink");
    let cases = [
        // Without items a reduction calls its function without arguments.
        ("(sink (reduce (fn ([] b) ([x y] 1)) []))".to_owned(), format!("/x={by_b}")),
        ("(reduce (fn ([] (sink 1)) ([x y] 1)) b)".to_owned(), format!("/x=; if {by_b} status of t/sink")),
        (
            "(reduce (fn [acc x] (sink 1) (if (:n acc) (reduced acc) acc)) b [1 2])".to_owned(),
            format!("/x=; if {by_b}"),
        ),
        // Endless sequences call their functions where they are read; memoized functions are called for what is new.
        (
            "(let [s (iterate (fn [x] (sink 1) 1) 1)] (when (:n b) (vec (take 2 s))))".to_owned(),
            format!("/x=anything {by_sink}; if anything {by_sink}"),
        ),
        (
            "(let [s (map (fn [x] (sink 1)) (range))] (when (:n b) (vec (take 2 s))))".to_owned(),
            "/x=; if anything".to_owned(),
        ),
        (
            "(let [m (memoize (fn [x] (sink 1)))] (m b) (m 1))".to_owned(),
            format!("/x=anything {by_b} {by_sink}; if anything {by_b} {by_sink}"),
        ),
        // A function is analysed once: what decides about one call of it says nothing about another.
        (
            "(let [f (fn [p] (for [x [1] :when (:n b)] x))] (when (:n b) (f 1)) (sink (f 2)))".to_owned(),
            format!("/x={by_b}"),
        ),
        ("(when (:n b) (def g 1)) (defonce g (sink 1))".to_owned(), format!("/x=; if {by_b} {by_sink}")),
        ("(sink (second (first (assoc nil :k b))))".to_owned(), format!("/x={by_b}")),
        ("(sink ((comparator (fn [x y] y)) b 1))".to_owned(), format!("/x={by_b}")),
        ("(sink (map spill/head [\"r1\"]))".to_owned(), "/x=anything".to_owned()),
        ("(sink (map (fn [f] (f)) [budget/remaining]))".to_owned(), "/x=anything".to_owned()),
    ];
    check(&cases.each_ref().map(|(text, expected)| (text.as_str(), expected.as_str())));
}

#[test]
fn results_depend_on_what_their_server_was_given() {
    let call = |server: &str, more: &str| format!("(tool/call {{:server \"{server}\" :tool \"c\" {more}}})");
    let by = |server: &str| format!("m/b status of {server}/c status of m/b");
    let cases = [
        (format!("(sink (:ok {}))", call("d", ":args {:q b}")), format!("/x={}", by("d"))),
        (format!("(sink (:ok {}))", call("d", ":on-large (:how b)")), format!("/x={}", by("d"))),
        // Which parts a result has says how large it is.
        ("(sink (count ra))".to_owned(), "/x=m/a status of m/a".to_owned()),
        ("(sink (keys ra))".to_owned(), "/x=m/a status of m/a".to_owned()),
        ("(sink (if ra 1 2))".to_owned(), "/x=status of m/a".to_owned()),
        // What one call writes another one may read.
        (
            format!("(sink (:ok {})) {}", call("d", ":args {:q 1}"), call("d", ":args {:q b}")),
            "/x=status of d/c".to_owned(),
        ),
        (
            format!("{} (sink (:ok (tool/call {{:server \"d\" :tool \"e\"}})))", call("d", ":args {:q b}")),
            "/x=m/b status of d/e status of m/b".to_owned(),
        ),
        (
            format!("{} (sink (:ok (tool/call {{:server \"e\" :tool \"e\"}})))", call("d", ":args {:q b}")),
            "/x=status of e/e".to_owned(),
        ),
        // How many calls are left.
        (
            format!("(doseq [x b] {}) (sink (:ok (tool/call {{:server \"e\" :tool \"e\"}})))", call("d", "")),
            "/x=m/b status of e/e status of m/b".to_owned(),
        ),
    ];
    check(&cases.each_ref().map(|(text, expected)| (text.as_str(), expected.as_str())));
}

#[test]
fn a_function_of_an_earlier_program_may_end_define_and_call() {
    let arity = Some(crate::CallArity { min: 0, max: None });
    let session = [SessionName { name: "f", arity }];
    let externals = Externals { session: &session, ..Externals::default() };
    let sink = "(tool/call {:server \"t\" :tool \"sink\" :args {:x y}})";
    for text in [
        // It may end the program, give a name another value, call a function under a name.
        format!("(def y 1) (f) {sink}"),
        format!("(def y 1) (map f [1]) {sink}"),
        format!("(defn g [y] {sink}) (f)"),
    ] {
        let plan = planned_in(&text, &externals);
        let call = plan.calls.iter().find(|call| call.tool.as_deref() == Some("sink")).expect(&text);
        assert!(shown(&plan, call.control).contains("anything"), "{text}\n{}", plan.text());
        assert!(shown(&plan, call.arguments[0].sources).contains("anything"), "{text}\n{}", plan.text());
    }
}

#[test]
fn a_program_cannot_write_its_own_plan() {
    let plan = planned(
        "(tool/call {:server \"a\\nline 9: bank/pay\" :tool \"b (line 1)\u{202e}\" :args {\"/*\" 1 \"*\" 2 \"k\\n  /z  nothing\" 3}})",
    );
    let text = plan.text();
    assert_eq!(text.lines().filter(|line| line.starts_with("line ")).count(), 1, "{text}");
    assert!(text.is_ascii() && text.contains(r#""a\nline 9: bank/pay"/"b (line 1)\u{202e}""#), "{text}");
    assert!(
        text.contains(r"/~1*") && text.contains(r"  /\*") && text.contains(r#""/k\n  ~1z  nothing""#),
        "{text}"
    );
    assert!(!text.lines().any(|line| line.starts_with("  /* ")), "{text}");
    assert!(!plan.mermaid().contains("line 9: bank/pay\"]"), "{}", plan.mermaid());
}

#[test]
fn a_function_of_a_prelude_does_what_its_code_may_do() {
    let arity = Some(crate::CallArity { min: 0, max: None });
    let text = "(ns lib) (defn pure [x] (str x)) (defn helped [x] (pure x)) (defn calls [x] (tool/call {:server \"s\" \
                :tool \"t\" :args {:x x}})) (defn ends [x] (if x (fail 1) 2)) (defn later [f] (memoize f)) \
                (defn each [f xs] (map f xs)) (defn shows [x] (println x))";
    let prelude = crate::prelude::compile(text, &CompileOptions::default()).expect("a prelude");
    let export = |definition: &crate::prelude::PreludeDefinition| crate::Export {
        name: definition.name.clone(),
        arity,
        parameters: Vec::new(),
        effects: definition.effects,
    };
    let namespace = crate::Namespace::new("lib", None, prelude.definitions.iter().map(export).collect());
    let externals = Externals { namespaces: &[&namespace], ..Externals::default() };
    let sink = "(tool/call {:server \"t\" :tool \"sink\" :args {:x v}})";
    for (value, control, reaches) in [
        ("(lib/pure data/x)", "", "data/x lib/pure"),
        ("(lib/helped 1)", "", "lib/helped"),
        ("(lib/each (fn [x] [x data/y]) [data/x])", "", "data/x data/y lib/each"),
        ("(do (lib/shows data/x) 1)", "", ""),
        ("(do (lib/ends data/x) 1)", "anything", ""),
        ("(do (lib/calls data/x) 1)", "", ""),
        ("(lib/calls data/x)", "", "anything"),
        ("(lib/later (fn [x] x))", "", "anything"),
    ] {
        let source = format!("(let [v {value}] {sink})");
        let plan = planned_in(&source, &externals);
        let call = plan.calls.iter().find(|call| call.tool.as_deref() == Some("sink")).expect(&source);
        let has = |sources, wanted: &str| match wanted {
            "anything" => shown(&plan, sources).contains("anything"),
            exact => shown(&plan, sources) == exact,
        };
        assert!(has(call.control, control), "{source}\n{}", plan.text());
        assert!(has(call.arguments[0].sources, reaches), "{source}\n{}", plan.text());
    }
}
