//! The same promise for programs with tool calls in all kinds of loops, callbacks, memoized functions, endless sequences
//! and functions of earlier programs of a session.

use super::flows::{Changed, Left, names_source, same};
use crate::properties::for_all;
use proptest::prelude::*;
use ptc_compiler::flows::{FlowPlan, SourceSet};
use ptc_compiler::prelude::{self, CompiledPrelude, DefinitionBody, PreludeDefinition};
use ptc_compiler::{CallArity, CompileOptions, Export, Externals, Namespace, SessionName, compile};
use ptc_tests::small_stack::on_small_stack;
use ptc_vm::bytecode::Program;
use ptc_vm::{CallId, Exit, Isolate, json, print};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tools of functions of an earlier program begin here.
const OF_SESSION: usize = 500;

/// What a tool answers: usually the first, else one of the others.
pub(super) const VALUES: [&str; 6] = ["3", "null", "[1, 2]", "{\"k\": 1}", "[]", "2"];

/// Expressions with holes: `$` is an expression, `%` a call site, `@` a collection, `^` the text of a function of one
/// argument, `&` of two.
const SHAPES: [&str; 90] = [
    "1",
    "2",
    "nil",
    "x",
    "x",
    "x",
    "it",
    "it",
    "acc",
    "data/n",
    "(:k x)",
    "%",
    "%",
    "%",
    "(:k $)",
    "(if $ $ $)",
    "(when $ %)",
    "(do % $)",
    "(let [x $] $)",
    "(let [x %] (if (:value x) % $))",
    "(:value %)",
    "(:value %)",
    "(:ok %)",
    "(count %)",
    "(keys %)",
    "[$ $]",
    "{:k $ :m $}",
    "(get $ :m)",
    "(reduce & @)",
    "(reduce & $ @)",
    "(mapv ^ @)",
    "(filterv ^ @)",
    "(some ^ @)",
    "(every? ^ @)",
    "(for [it @ :when $] $)",
    "(for [it @ :while $] $)",
    "(doseq [it @] $)",
    "(doseq [it [1 2]] (do % (when $ (return $))))",
    "(loop [i 0 acc $] (if (< i 2) (do % (recur (inc i) $)) acc))",
    "(loop [i 0 acc $] (do % (when $ (return $)) (if (< i 2) (recur (inc i) $) acc)))",
    "(do (when $ (return $)) $)",
    "(do (when $ (fail $)) $)",
    "(let [m (memoize ^)] [(m $) (m $)])",
    "(vec (take 2 (iterate ^ $)))",
    "(let [s (iterate ^ $)] (when $ (vec (take 2 s))))",
    "(let [s (map ^ (range))] (if $ (vec (take 1 s)) $))",
    "(let [s (repeatedly (fn [] $))] (if $ (vec (take 2 s)) $))",
    "(reduced $)",
    "(assoc nil :k $ 0 $)",
    "(first $)",
    "(second (first (assoc nil :k $)))",
    "(conj [] $ $)",
    "(or $ $)",
    "(and $ $)",
    "(def g0 $)",
    "(defonce g1 $)",
    "(when $ (def g1 $))",
    "(do (when $ (def g0 $)) g0)",
    "g0",
    "(h0 $)",
    "(h1 $)",
    "(sort-by ^ @)",
    "(update {:k $} :k ^)",
    "(apply & [$ $])",
    "((comp ^ ^) $)",
    "(= $ $)",
    "((comparator &) $ $)",
    "(loop [i 0 acc $] (if (< i 2) (if $ (recur (inc i) $) acc) acc))",
    "(loop [i 0 acc $] (if (and (< i 2) $) (recur (inc i) $) [acc]))",
    "(first (filterv ^ @))",
    "(vec (concat @ @))",
    "(second (conj @ $))",
    "(get-in {:k {:m $}} [:k :m])",
    "(:k (assoc {:k $ :m $} :k $))",
    "(:m (assoc {:k $ :m $} :k $))",
    "(:k (merge {:k $} {:m $}))",
    "(last @)",
    "(first (reverse @))",
    "(first (rest @))",
    "(let [{:keys [k m]} {:k $ :m $}] (if k $ m))",
    "(let [[a b] [$ $]] (if a % b))",
    "(let [f (if $ ^ ^)] (f $))",
    "(let [y $ f (fn [it] (if it y $))] (f $))",
    "(first (mapv ^ [$ $]))",
    "(second (mapv ^ [$ $]))",
    "(cond $ $ $ % :else $)",
    "(pmap ^ @)",
    "(first (pmap ^ [$ $]))",
    "(second (pmap (fn [it] %) @))",
    "(pcalls (fn [] $) (fn [] %))",
];

/// Writes programs by choices.
struct Writer<'c> {
    choices: std::slice::Iter<'c, u8>,
    text: String,
    tools: usize,
    calls_session: bool,
}

impl Writer<'_> {
    fn pick(&mut self) -> usize {
        self.choices.next().map_or(0, |choice| usize::from(*choice))
    }

    fn expression(&mut self, depth: usize) {
        let shape = match depth {
            0 => SHAPES[self.pick() % 11],
            _ => SHAPES[self.pick() % SHAPES.len()],
        };
        let shape = if !self.calls_session && shape.starts_with("(h") { "%" } else { shape };
        for letter in shape.chars() {
            match letter {
                '$' => self.expression(depth.saturating_sub(1)),
                '%' => self.call(depth),
                '@' => match self.pick() % 3 {
                    0 => self.text.push_str("[1 2]"),
                    1 => {
                        self.text.push_str("(let [v ");
                        self.expression(depth.saturating_sub(1));
                        self.text.push_str("] (if (coll? v) v [v]))");
                    }
                    _ => self.text.push_str("(if (coll? x) x [])"),
                },
                '^' => self.function("[it]", depth),
                '&' => self.function("([] 0) ([acc] acc) ([acc it]", depth),
                other => self.text.push(other),
            }
        }
    }

    fn function(&mut self, parameters: &str, depth: usize) {
        let _ = write!(self.text, "(fn {parameters} ");
        self.expression(depth.saturating_sub(1));
        self.text.push_str(if parameters.starts_with('(') { "))" } else { ")" });
    }

    fn call(&mut self, depth: usize) {
        let number = self.tools;
        self.tools += 1;
        // Few servers, so that what one call writes another reads.
        let _ = write!(self.text, "(tool/call {{:server \"s{}\" :tool \"t{number}\" :args {{:a ", number % 3);
        self.expression(depth.saturating_sub(1));
        self.text.push_str("}})");
    }
}

/// A program, and one that defines functions before it, if it calls some.
fn programs(choices: &[u8]) -> (String, Option<String>) {
    let calls_session = choices.first().is_some_and(|choice| choice % 4 == 0);
    let mut writer = Writer { choices: choices.iter(), text: String::new(), tools: 0, calls_session };
    writer
        .text
        .push_str("(let [x (tool/call {:server \"s0\" :tool \"t402\" :args {:a 1}}) it 1 acc 2] (def g0 1) ");
    for _ in 0..3 {
        writer.expression(4);
        writer.text.push(' ');
    }
    writer.text.push(')');
    let text = std::mem::take(&mut writer.text);
    if !calls_session {
        return (text, None);
    }
    writer.tools = OF_SESSION;
    writer.calls_session = false;
    for name in ["h0", "h1"] {
        let _ = write!(writer.text, "(defn {name} [x] (let [it x acc x] ");
        writer.expression(3);
        writer.text.push_str(")) ");
    }
    (text, Some(writer.text))
}

/// What a program calls that stands elsewhere.
pub(super) enum Earlier {
    /// Functions of an earlier program.
    Program(Arc<Program>),
    /// Functions of a prelude.
    Prelude(CompiledPrelude),
}

/// A program with its plan, and what it calls; `None`: it does not compile.
pub(super) struct Generated {
    pub(super) texts: String,
    pub(super) program: Arc<Program>,
    pub(super) plan: Arc<FlowPlan>,
    pub(super) earlier: Option<Earlier>,
}

impl Generated {
    pub(super) fn new(choices: &[u8]) -> Option<Generated> {
        let (text, before) = programs(choices);
        let is_prelude = choices.get(2).is_some_and(|choice| choice % 2 == 0);
        let options = CompileOptions { flows: true, ..CompileOptions::default() };
        let (text, before) = match before {
            Some(before) if is_prelude => {
                (text.replace("(h0 ", "(p/h0 ").replace("(h1 ", "(p/h1 "), Some(format!("(ns p) {before}")))
            }
            other => (text, other),
        };
        let earlier = match &before {
            None => None,
            Some(before) if is_prelude => Some(Earlier::Prelude(prelude::compile(before, &options).ok()?)),
            Some(before) => {
                Some(Earlier::Program(compile(before, &Externals::default(), &options).ok()?.program))
            }
        };
        let arity = Some(CallArity { min: 1, max: Some(1) });
        let names = ["h0", "h1"].map(|name| SessionName { name, arity });
        let session = if matches!(earlier, Some(Earlier::Program(_))) { &names[..] } else { &[] };
        let exports = match &earlier {
            Some(Earlier::Prelude(prelude)) => &prelude.definitions[..],
            _ => &[],
        };
        let export = |definition: &PreludeDefinition| Export {
            name: definition.name.clone(),
            arity,
            parameters: Vec::new(),
            effects: definition.effects,
        };
        let namespace = Namespace::new("p", None, exports.iter().map(export).collect());
        let namespaces = if exports.is_empty() { &[][..] } else { &[&namespace] };
        let compiled =
            compile(&text, &Externals { session, namespaces, ..Externals::default() }, &options).ok()?;
        let plan = compiled.flows.expect("a plan");
        let texts = format!("{}\n{text}", before.as_deref().unwrap_or_default());
        Some(Generated { texts, program: compiled.program, plan, earlier })
    }
}

/// Attaches the functions of a prelude.
pub(super) fn attach(isolate: &mut Isolate, prelude: &CompiledPrelude) -> Option<()> {
    for definition in &prelude.definitions {
        let DefinitionBody::Function(function) = definition.body else { continue };
        isolate.attach_function("p", &definition.name, definition.program.clone(), function).ok()?;
    }
    Some(())
}

/// A session, and what its servers have been given.
struct Session {
    isolate: Isolate,
    changed: Changed,
    calls: BTreeMap<usize, Vec<String>>,
    /// What each server was given last.
    last: BTreeMap<usize, String>,
    made: usize,
}

/// Calls that the host answers; all others fail.
pub(super) const MOST_CALLS: usize = 12;

impl Session {
    fn run(&mut self, program: &Arc<Program>) -> Option<Option<String>> {
        let unit = self.isolate.load(program.clone()).ok()?;
        let n = if self.changed == Changed::Context(0, 0) { "[7]" } else { "5" };
        self.isolate.set_context(&format!("{{\"n\": {n}}}")).ok()?;
        self.isolate.start(unit);
        let exit = loop {
            match self.isolate.run(100_000) {
                Exit::HostCall(call) => self.answer(call),
                Exit::SliceEnd => {}
                end => break end,
            }
        };
        let ended = matches!(exit, Exit::Done | Exit::Return | Exit::Fail(_));
        let result =
            self.isolate.result(|cx, value| print::pr_str(cx, value, 4_096).ok().map(|printed| printed.text));
        Some(result.filter(|_| ended))
    }

    /// A tool answers with what its server was given before, or with a value of its own.
    fn answer(&mut self, call: CallId) {
        let place = self.isolate.call_place(call);
        let shown = self.isolate.call(call, |cx, _, arguments| {
            let map = arguments.first()?;
            print::pr_str(cx, map, 4_096).ok().map(|printed| printed.text)
        });
        let shown = shown.flatten().unwrap_or_default();
        let number =
            shown.split(":tool \"t").nth(1).and_then(|rest| rest.split('"').next()?.parse::<usize>().ok());
        let number = number.unwrap_or(usize::MAX);
        self.made += 1;
        let is_ok = self.made <= MOST_CALLS && !shown.contains(":a nil");
        // A call that stands elsewhere is not planned: what was answered before it may be in it.
        if place.is_some() {
            self.calls.entry(number).or_default().push(shown.clone());
        }
        let before = self.last.insert(number % 3, shown).unwrap_or_default();
        let value = match self.changed {
            Changed::Tool(tool, with) if tool == number => VALUES[with].to_owned(),
            _ if number.is_multiple_of(2) => VALUES[number / 2 % VALUES.len()].to_owned(),
            _ => before.len().to_string(),
        };
        let answer = match is_ok {
            true => format!("{{\"ok\": true, \"value\": {value}, \"value_kind\": \"json\"}}"),
            false => "{\"ok\": false, \"reason\": \"tool_error\", \"message\": \"no\"}".to_owned(),
        };
        self.isolate.resume(call, |cx| json::decode(cx, answer.as_bytes()).map_err(Into::into));
    }
}

/// What leaves a run of a program, after the one before it.
fn run(generated: &Generated, changed: Changed) -> Option<Left> {
    let budget = ptc_vm::Budget { fuel: 20_000, memory_bytes: 2 << 20, ..ptc_vm::Budget::default() };
    let (calls, last) = Default::default();
    let mut session = Session { isolate: Isolate::new(budget), changed, calls, last, made: 0 };
    match &generated.earlier {
        None => {}
        Some(Earlier::Program(before)) => {
            session.run(before)??;
        }
        Some(Earlier::Prelude(prelude)) => attach(&mut session.isolate, prelude)?,
    }
    let program = &generated.program;
    let result = session.run(program)?;
    let prints = session.isolate.prints();
    session.isolate.close();
    Some(Left { calls: session.calls, prints, result })
}

/// What may reach the calls of a tool.
fn reaching(plan: &FlowPlan, number: usize) -> Option<SourceSet> {
    let name = format!("t{number}");
    let mut calls =
        plan.calls.iter().filter(|call| call.tool.as_deref().is_none_or(|tool| tool == name)).peekable();
    calls.peek()?;
    Some(calls.fold(SourceSet::EMPTY, |all, call| {
        call.arguments.iter().fold(all.union(call.control), |all, argument| all.union(argument.sources))
    }))
}

fn compare(texts: &str, plan: &FlowPlan, usual: &Left, other: &Left, changed: Changed) -> usize {
    let both_ended = usual.result.is_some() && other.result.is_some();
    let mut compared = 0;
    let mut numbers: Vec<usize> = usual.calls.keys().chain(other.calls.keys()).copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let sources = reaching(plan, number);
        let Some(sources) = sources else { panic!("t{number} is in no plan\n{texts}\n{}", plan.text()) };
        if !names_source(plan, sources, changed) {
            compared += 1;
            let calls = |left: &Left| left.calls.get(&number).cloned().unwrap_or_default();
            let (usual, other) = (calls(usual), calls(other));
            assert!(
                same(&usual, &other, both_ended, false),
                "{changed:?} reaches t{number}: {usual:?} {other:?}\n{texts}\n{}",
                plan.text()
            );
        }
    }
    if both_ended && !names_source(plan, plan.result, changed) {
        compared += 1;
        assert_eq!(usual.result, other.result, "{changed:?} reaches the result\n{texts}\n{}", plan.text());
    }
    compared
}

#[test]
fn a_source_of_a_program_with_loops_and_a_session_has_no_influence_that_is_not_named() {
    on_small_stack(|| {
        let [programs_run, pairs, compared] = [const { AtomicUsize::new(0) }; 3];
        for_all(2_000, prop::collection::vec(any::<u8>(), 0..120), |choices| {
            let Some(generated) = Generated::new(&choices) else { return };
            let Some(usual) = run(&generated, Changed::Nothing) else { return };
            programs_run.fetch_add(1, Ordering::Relaxed);
            let Generated { plan, texts, .. } = &generated;
            if plan.is_unknown {
                return;
            }
            let with = |tool: usize| usize::from(choices.get(tool % 50).copied().unwrap_or(1)) % VALUES.len();
            let tools = usual.calls.keys().take(6).map(|tool| Changed::Tool(*tool, with(*tool)));
            for changed in tools.chain([Changed::Context(0, 0)]) {
                let Some(other) = run(&generated, changed) else { continue };
                pairs.fetch_add(1, Ordering::Relaxed);
                compared.fetch_add(compare(texts, plan, &usual, &other, changed), Ordering::Relaxed);
            }
        });
        let [programs_run, pairs, compared] = [programs_run, pairs, compared].map(AtomicUsize::into_inner);
        eprintln!("{programs_run} programs, {pairs} pairs of runs, {compared} comparisons");
        assert!(programs_run > 1_000 && compared > pairs / 4);
    });
}
