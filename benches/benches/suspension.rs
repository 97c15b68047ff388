//! Benchmark of a host call that the host answers at once: the VM's share of a tool call.

use criterion::{Criterion, criterion_group, criterion_main};
use ptc_benches::{SLICE, compiled, large_budget};
use ptc_vm::bytecode::Program;
use ptc_vm::{CallId, Exit, Isolate, Value};
use std::sync::Arc;

/// Runs a program and answers all its host calls with 1. Calls are answered together, once every fiber waits.
fn run_answering(program: &Arc<Program>) {
    let mut isolate = Isolate::new(large_budget());
    let Ok(unit) = isolate.load(program.clone()) else { panic!("does not load") };
    isolate.start(unit);
    let mut waiting: Vec<CallId> = Vec::new();
    loop {
        match isolate.run(SLICE) {
            Exit::HostCall(call) => waiting.push(call),
            Exit::Blocked => {
                for call in waiting.drain(..) {
                    isolate.resume(call, |_| Ok(Value::Int(1)));
                }
            }
            Exit::SliceEnd => {}
            Exit::Done => return,
            other => panic!("{other:?}"),
        }
    }
}

fn suspension(criterion: &mut Criterion) {
    let programs = [
        ("one call", r#"(tool/call {:server "s" :tool "t"})"#),
        (
            "1,000 calls in a map",
            r#"(count (map (fn [i] (tool/call {:server "s" :tool "t"})) (range 1000)))"#,
        ),
        (
            "pmap of 1,000 calls",
            r#"(count (pmap (fn [i] (tool/call {:server "s" :tool "t"})) (range 1000)))"#,
        ),
        (
            "inside a sort-by key, 100",
            r#"(count (sort-by (fn [i] (tool/call {:server "s" :tool "t"})) (range 100)))"#,
        ),
    ];
    let mut group = criterion.benchmark_group("suspension");
    for (name, source) in programs {
        let program = compiled(source);
        group.bench_function(name, |bencher| bencher.iter(|| run_answering(&program)));
    }
    group.finish();
}

criterion_group!(benches, suspension);
criterion_main!(benches);
