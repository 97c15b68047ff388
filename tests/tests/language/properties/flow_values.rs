//! Values carry where they come from: the same programs run twice with one source changed, and every call with
//! arguments and control that do not carry the source stays the same. Nothing is said of calls by a plan, so calls of
//! functions of earlier programs count too.

use super::flow_programs::{Earlier, Generated, MOST_CALLS, VALUES, attach};
use super::flows::{Changed, same};
use crate::properties::for_all;
use proptest::prelude::*;
use ptc_compiler::flows::{FlowPlan, FlowSource};
use ptc_tests::small_stack::on_small_stack;
use ptc_vm::bytecode::Program;
use ptc_vm::{AnswerSources, CallId, DefinedFrom, Exit, Isolate, SourceText, Sources, Tuning, json, print};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A call, and the names of what may be in it.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    number: usize,
    shown: String,
    /// `None`: anything.
    carried: Option<Vec<String>>,
    is_planned: bool,
}

impl Made {
    fn carries(&self, name: &str) -> bool {
        self.carried.as_ref().is_none_or(|carried| carried.iter().any(|carried| carried == name))
    }
}

/// How the program before is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// In the same run.
    Same,
    /// In a run of its own that tracks values.
    Tracked,
    /// In a run of its own that does not.
    Untracked,
}

struct Session {
    isolate: Isolate,
    changed: Changed,
    calls: Vec<Made>,
    last: BTreeMap<usize, String>,
    made: usize,
}

impl Session {
    fn run(&mut self, program: &Arc<Program>) -> Option<bool> {
        let unit = self.isolate.load(program.clone()).ok()?;
        let n = if self.changed == Changed::Context(0, 0) { "[7]" } else { "5" };
        self.isolate.set_context(&format!("{{\"n\": {n}}}")).ok()?;
        self.isolate.start(unit);
        let exit = loop {
            match self.isolate.run(1_000) {
                Exit::HostCall(call) => self.answer(call),
                Exit::SliceEnd => {}
                end => break end,
            }
        };
        Some(matches!(exit, Exit::Done | Exit::Return | Exit::Fail(_)))
    }

    fn answer(&mut self, call: CallId) {
        let is_planned = self.isolate.call_place(call).is_some();
        let shown = self.isolate.call(call, |cx, _, arguments| {
            print::pr_str(cx, arguments.first()?, 4_096).ok().map(|printed| printed.text)
        });
        let shown = shown.flatten().unwrap_or_default();
        let number =
            shown.split(":tool \"t").nth(1).and_then(|rest| rest.split('"').next()?.parse::<usize>().ok());
        let number = number.unwrap_or(usize::MAX);
        self.made += 1;
        let is_ok = self.made <= MOST_CALLS && !shown.contains(":a nil");
        let server = (number % 3).to_string();
        if let Some(sources) = self.isolate.call_sources(call, &server) {
            let all = sources.arguments.iter().fold(sources.control, |all, part| all.union(part.deep));
            let carried = self.names(all);
            self.calls.push(Made { number, shown: shown.clone(), carried, is_planned });
            let (data, status) = (format!("t{number}"), format!("s{number}"));
            let parts = Some(&["ok", "reason", "value_kind"][..]);
            let from = AnswerSources::Server { server: &server, data: &data, status: &status, parts };
            self.isolate.answer_from(call, from);
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

    fn names(&self, sources: Sources) -> Option<Vec<String>> {
        let texts = self.isolate.source_texts(sources).into_iter();
        texts
            .map(|(_, text)| match text {
                SourceText::Named(name) => Some(name.to_string()),
                SourceText::Answered | SourceText::Anything => None,
            })
            .collect()
    }
}

fn run(generated: &Generated, changed: Changed, how: Before) -> Option<(Vec<Made>, bool)> {
    run_tuned(generated, changed, how, Tuning::default())
}

fn run_tuned(
    generated: &Generated,
    changed: Changed,
    how: Before,
    tuning: Tuning,
) -> Option<(Vec<Made>, bool)> {
    let budget = ptc_vm::Budget { fuel: 20_000, memory_bytes: 4 << 20, ..ptc_vm::Budget::default() };
    let (calls, last) = Default::default();
    let mut session = Session { isolate: Isolate::tuned(budget, tuning), changed, calls, last, made: 0 };
    match &generated.earlier {
        Some(Earlier::Program(before)) => {
            if how != Before::Untracked {
                session.isolate.track(true);
            }
            if !session.run(before)? {
                return None;
            }
            if how == Before::Untracked {
                session.isolate.definitions_from(&[], |_| DefinedFrom::Sources {
                    named: Vec::new(),
                    globals: Vec::new(),
                });
            }
            if how != Before::Same {
                session.isolate.commit(u64::MAX).ok()?;
                session.isolate.track(true);
            }
        }
        Some(Earlier::Prelude(prelude)) => {
            attach(&mut session.isolate, prelude)?;
            session.isolate.commit(u64::MAX).ok()?;
            session.isolate.track(true);
        }
        None => session.isolate.track(true),
    }
    let ended = session.run(&generated.program)?;
    let Session { isolate, calls, .. } = session;
    let leaked = isolate.close();
    assert_eq!(leaked, 0, "bytes are left on the account");
    Some((calls, ended))
}

/// The calls that do not carry a source, by tool.
fn without(calls: &[Made], name: &str) -> BTreeMap<usize, Vec<String>> {
    let mut by_tool: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for call in calls.iter().filter(|call| !call.carries(name)) {
        by_tool.entry(call.number).or_default().push(call.shown.clone());
    }
    by_tool
}

/// How many sources of a call the values carry and its plan does not name.
fn beyond(plan: &FlowPlan, calls: &[Made]) -> (usize, usize) {
    let (mut all, mut beyond) = (0, 0);
    for call in calls.iter().filter(|call| call.is_planned) {
        let name = format!("t{}", call.number);
        let planned = plan.calls.iter().filter(|planned| planned.tool.as_deref() == Some(&*name));
        let named = |source: &FlowSource, carried: &str| match source {
            FlowSource::Anything | FlowSource::Session(_) => true,
            FlowSource::Result(index) => {
                plan.calls[*index].tool.as_deref().is_none_or(|tool| tool == carried)
            }
            FlowSource::Status(index) => {
                plan.calls[*index].tool.as_deref().is_none_or(|tool| tool[1..] == carried[1..])
            }
            FlowSource::Context(_) => carried == "data/n",
            _ => false,
        };
        let sources: Vec<usize> = planned
            .flat_map(|planned| {
                let arguments = planned.arguments.iter().flat_map(|argument| argument.sources.iter());
                arguments.chain(planned.control.iter()).collect::<Vec<_>>()
            })
            .collect();
        for carried in call.carried.iter().flatten() {
            all += 1;
            beyond += usize::from(!sources.iter().any(|source| named(&plan.sources[*source], carried)));
        }
    }
    (all, beyond)
}

#[test]
fn a_source_that_the_values_of_a_call_do_not_carry_has_no_influence_on_it() {
    on_small_stack(|| {
        let [programs_run, pairs, calls_made, carriers, all, over] = [const { AtomicUsize::new(0) }; 6];
        for_all(2_000, prop::collection::vec(any::<u8>(), 0..120), |choices| {
            let Some(generated) = Generated::new(&choices) else { return };
            let how = [Before::Same, Before::Tracked, Before::Untracked]
                [choices.get(1).map_or(0, |choice| usize::from(*choice)) % 3];
            // The order of calls of branches depends on their time.
            let is_parallel = ["pmap", "pcalls"].iter().any(|name| generated.texts.contains(name));
            let Some((usual, ended)) = run(&generated, Changed::Nothing, how) else { return };
            programs_run.fetch_add(1, Ordering::Relaxed);
            if !generated.plan.is_unknown {
                let (carried, beyond) = beyond(&generated.plan, &usual);
                all.fetch_add(carried, Ordering::Relaxed);
                over.fetch_add(beyond, Ordering::Relaxed);
            }
            let with = |tool: usize| usize::from(choices.get(tool % 50).copied().unwrap_or(1)) % VALUES.len();
            let mut numbers: Vec<usize> = usual.iter().map(|call| call.number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let tools = numbers.iter().take(6).map(|tool| Changed::Tool(*tool, with(*tool)));
            for changed in tools.chain([Changed::Context(0, 0)]) {
                let Some((other, other_ended)) = run(&generated, changed, how) else { continue };
                pairs.fetch_add(1, Ordering::Relaxed);
                let name = match changed {
                    Changed::Tool(tool, _) => format!("t{tool}"),
                    _ => "data/n".to_owned(),
                };
                calls_made.fetch_add(usual.len(), Ordering::Relaxed);
                let carry = usual.iter().filter(|call| call.carries(&name)).count();
                carriers.fetch_add(carry, Ordering::Relaxed);
                let (a, b) = (without(&usual, &name), without(&other, &name));
                for number in a.keys().chain(b.keys()) {
                    let [a, b] = [&a, &b].map(|calls| calls.get(number).cloned().unwrap_or_default());
                    assert!(
                        same(&a, &b, ended && other_ended, is_parallel),
                        "{changed:?} reaches t{number} {how:?}: {a:?} {b:?}\n{}\n{usual:#?}\n{other:#?}",
                        generated.texts
                    );
                }
            }
        });
        let [programs_run, pairs, calls_made, carriers, all, over] =
            [programs_run, pairs, calls_made, carriers, all, over].map(AtomicUsize::into_inner);
        eprintln!(
            "{programs_run} programs, {pairs} pairs of runs, {calls_made} calls, {carriers} carry the source; \
             {over} of {all} carried sources are in no plan"
        );
        assert!(programs_run > 1_000 && carriers < calls_made / 2);
    });
}

/// Functions that can meet no source run in the hot loop, without shadows. Without that loop the same sources are found.
#[test]
fn the_hot_loop_changes_no_source() {
    on_small_stack(|| {
        let [calls_made, sourced] = [const { AtomicUsize::new(0) }; 2];
        for_all(2_000, prop::collection::vec(any::<u8>(), 0..160), |choices| {
            let Some(generated) = Generated::new(&choices) else { return };
            for how in [Before::Same, Before::Tracked, Before::Untracked] {
                let run = |hot_loop| {
                    let tuning = Tuning { hot_loop, ..Tuning::default() };
                    run_tuned(&generated, Changed::Nothing, how, tuning)
                };
                let (hot, complete) = (run(true), run(false));
                assert_eq!(hot, complete, "{how:?}\n{}", generated.texts);
                let (calls, _) = hot.unwrap_or_default();
                calls_made.fetch_add(calls.len(), Ordering::Relaxed);
                let has_some = |call: &&Made| call.carried.as_ref().is_none_or(|carried| !carried.is_empty());
                sourced.fetch_add(calls.iter().filter(has_some).count(), Ordering::Relaxed);
            }
        });
        let (calls_made, sourced) = (calls_made.into_inner(), sourced.into_inner());
        eprintln!("{calls_made} calls, {sourced} of them with sources");
        assert!(calls_made > 2_000 && sourced > 500 && sourced < calls_made);
    });
}
