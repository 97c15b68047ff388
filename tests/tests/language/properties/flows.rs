//! What a plan of data flows does not name has no influence: random programs run twice with one source changed, and
//! everything that leaves them stays the same unless the plan says that the source may reach it.

use crate::properties::for_all;
use proptest::prelude::*;
use ptc_compiler::flows::{FlowPlan, FlowSource, SourceSet};
use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_tests::grammar;
use ptc_tests::small_stack::on_small_stack;
use ptc_vm::builtins::HostFunction;
use ptc_vm::bytecode::Program;
use ptc_vm::{CallId, Exit, Isolate, Value, json, print};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The keys of the context that programs read, each with other values.
const CONTEXT: [(&str, &str, [&str; 3]); 3] = [
    ("n", "5", ["6", "null", "[1]"]),
    ("text", "\"one two\"", ["\"three\"", "7", "{\"a\": 1}"]),
    ("rows", "[{\"id\": 1, \"a\": 3}, {\"id\": 2, \"b\": 4}]", ["[]", "[{\"id\": 1, \"a\": 9}]", "null"]),
];

/// What a changed source answers.
const ANSWERS: [&str; 6] = ["12345", "null", "[9, 8]", "{\"a\": 77, \"b\": [1]}", "\"zz\"", "false"];

/// A source that is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Nothing,
    /// A key of the context, and which of its other values it has.
    Context(usize, usize),
    /// The answers of a tool, and what it answers instead.
    Tool(usize, usize),
}

/// Everything that leaves a run.
#[derive(Debug)]
pub(super) struct Left {
    /// Arguments by tool, in order.
    pub(super) calls: BTreeMap<usize, Vec<String>>,
    pub(super) prints: Vec<String>,
    /// The value, unless it ended with a fault.
    pub(super) result: Option<String>,
}

/// A program with a tool of its own at each place that calls one, and more such places than the grammar makes.
fn with_tools(source: &str) -> String {
    let source = source.replace(" 40", " (tool/echo 40)").replace(" 7)", " (tool/echo {:a 7 :b [data/n]}))");
    let mut parts = source.split("(tool/echo ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (number, part) in parts.enumerate() {
        text.push_str(&format!("(tool/t{number} {part}"));
    }
    text
}

fn run(program: &Arc<Program>, changed: Changed) -> Option<Left> {
    let budget = ptc_vm::Budget { fuel: 20_000, memory_bytes: 2 << 20, ..ptc_vm::Budget::default() };
    let mut isolate = Isolate::new(budget);
    let unit = isolate.load(program.clone()).ok()?;
    let entries = CONTEXT.iter().enumerate().map(|(number, (key, usual, others))| match changed {
        Changed::Context(other, value) if other == number => format!("{key:?}: {}", others[value]),
        _ => format!("{key:?}: {usual}"),
    });
    isolate.set_context(&format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))).ok()?;
    isolate.start(unit);
    let mut calls: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let exit = loop {
        match isolate.run(100_000) {
            Exit::HostCall(call) => answer(&mut isolate, call, changed, &mut calls),
            Exit::SliceEnd => {}
            end => break end,
        }
    };
    let ended = matches!(exit, Exit::Done | Exit::Return | Exit::Fail(_));
    let result = isolate.result(|cx, value| print::pr_str(cx, value, 4_096).ok().map(|printed| printed.text));
    let prints = isolate.prints();
    isolate.close();
    Some(Left { calls, prints, result: result.filter(|_| ended) })
}

/// A tool answers with its last argument.
fn answer(isolate: &mut Isolate, call: CallId, changed: Changed, calls: &mut BTreeMap<usize, Vec<String>>) {
    let (number, value) = isolate
        .call(call, |cx, function, arguments| {
            let number = match (function, arguments.first()) {
                (HostFunction::Tool, Some(name)) => {
                    cx.name(name).and_then(|name| name[1..].parse::<usize>().ok())
                }
                _ => None,
            };
            let shown = arguments.last().and_then(|value| print::pr_str(cx, value, 4_096).ok());
            if let (Some(number), Some(shown)) = (number, shown) {
                calls.entry(number).or_default().push(shown.text);
            }
            (number, arguments.last().cloned())
        })
        .unwrap_or_default();
    match changed {
        Changed::Tool(tool, with) if number == Some(tool) => {
            drop(value);
            isolate.resume(call, |cx| json::decode(cx, ANSWERS[with].as_bytes()).map_err(Into::into));
        }
        _ => isolate.resume(call, |_| Ok(value.unwrap_or(Value::Nil))),
    }
}

/// True when the plan names the source among these.
pub(super) fn names_source(plan: &FlowPlan, sources: SourceSet, changed: Changed) -> bool {
    let tool = |index: &usize| plan.calls.get(*index).and_then(|call| call.tool.as_deref());
    sources.iter().any(|number| match (&plan.sources[number], changed) {
        (FlowSource::Anything, _) => true,
        (FlowSource::Context(key), Changed::Context(number, _)) => {
            key.as_deref().is_none_or(|key| key == CONTEXT[number].0)
        }
        (FlowSource::Result(index) | FlowSource::Status(index), Changed::Tool(number, _)) => {
            tool(index).is_none_or(|tool| tool == format!("t{number}"))
        }
        _ => false,
    })
}

/// What may reach the calls of a tool.
fn reaching(plan: &FlowPlan, number: usize) -> SourceSet {
    let name = format!("t{number}");
    let calls = plan.calls.iter().filter(|call| call.tool.as_deref().is_none_or(|tool| tool == name));
    calls.fold(SourceSet::EMPTY, |all, call| {
        call.arguments.iter().fold(all.union(call.control), |all, argument| all.union(argument.sources))
    })
}

/// True when two runs left the same; a run that did not end normally may have left less.
pub(super) fn same(usual: &[String], other: &[String], both_ended: bool, is_parallel: bool) -> bool {
    let (mut usual, mut other) = (usual.to_vec(), other.to_vec());
    if is_parallel {
        usual.sort();
        other.sort();
    }
    if both_ended {
        return usual == other;
    }
    let (short, long) = if usual.len() < other.len() { (&usual, &other) } else { (&other, &usual) };
    match is_parallel {
        true => short.iter().all(|line| long.contains(line)),
        false => long.starts_with(short),
    }
}

/// Compares two runs; the number of comparisons.
fn compare(source: &str, plan: &FlowPlan, usual: &Left, other: &Left, changed: Changed) -> usize {
    let both_ended = usual.result.is_some() && other.result.is_some();
    let is_parallel = source.contains("pmap") || source.contains("pcalls");
    let mut compared = 0;
    let mut numbers: Vec<usize> = usual.calls.keys().chain(other.calls.keys()).copied().collect();
    numbers.dedup();
    for number in numbers {
        if !names_source(plan, reaching(plan, number), changed) {
            compared += 1;
            let calls = |left: &Left| left.calls.get(&number).cloned().unwrap_or_default();
            let (usual, other) = (calls(usual), calls(other));
            assert!(
                same(&usual, &other, both_ended, is_parallel),
                "{changed:?} reaches t{number}: {usual:?} {other:?}\n{source}\n{}",
                plan.text()
            );
        }
    }
    if !names_source(plan, plan.prints, changed) {
        compared += 1;
        assert!(
            same(&usual.prints, &other.prints, both_ended, is_parallel),
            "{changed:?} reaches prints: {:?} {:?}\n{source}\n{}",
            usual.prints,
            other.prints,
            plan.text()
        );
    }
    if both_ended && !names_source(plan, plan.result, changed) {
        compared += 1;
        assert_eq!(usual.result, other.result, "{changed:?} reaches the result\n{source}\n{}", plan.text());
    }
    compared
}

#[test]
fn a_source_that_is_not_named_has_no_influence() {
    on_small_stack(|| {
        let [programs, pairs, compared, exact] = [const { AtomicUsize::new(0) }; 4];
        for_all(1_000, prop::collection::vec(any::<u8>(), 0..160), |choices| {
            let source = with_tools(&grammar::program(&choices));
            let options = CompileOptions { flows: true, ..CompileOptions::default() };
            let Ok(compiled) = compile(&source, &Externals::default(), &options) else { return };
            let plan = compiled.flows.expect("a plan");
            let Some(usual) = run(&compiled.program, Changed::Nothing) else { return };
            programs.fetch_add(1, Ordering::Relaxed);
            exact.fetch_add(usize::from(!plan.is_unknown), Ordering::Relaxed);
            if plan.is_unknown {
                return;
            }
            let pick =
                |number: usize, count: usize| usize::from(choices.get(number).copied().unwrap_or(0)) % count;
            let keys = (0..CONTEXT.len()).map(|key| Changed::Context(key, pick(key, 3)));
            let tools =
                usual.calls.keys().take(4).map(|tool| Changed::Tool(*tool, pick(4 + tool, ANSWERS.len())));
            for changed in keys.chain(tools) {
                let Some(other) = run(&compiled.program, changed) else { continue };
                pairs.fetch_add(1, Ordering::Relaxed);
                compared.fetch_add(compare(&source, &plan, &usual, &other, changed), Ordering::Relaxed);
            }
        });
        let [programs, pairs, compared, exact] =
            [programs, pairs, compared, exact].map(AtomicUsize::into_inner);
        eprintln!("{programs} programs ({exact} planned), {pairs} pairs of runs, {compared} comparisons");
        assert!(programs > 800 && exact * 10 > programs * 9 && compared > pairs / 4);
    });
}
