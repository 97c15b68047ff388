//! Two hand-assembled programs, timed: what the interpreter does without any compiler.

use ptc_vm::builtins::lookup;
use ptc_vm::bytecode::instruction::*;
use ptc_vm::bytecode::{GlobalName, Program, Proto, Shape, verify};
use ptc_vm::{Exit, Isolate, IsolateOptions, Span};
use std::sync::Arc;

fn src(reg: u8) -> Src {
    Src { reg, last: false }
}
fn last(reg: u8) -> Src {
    Src { reg, last: true }
}

fn proto(name: &str, fixed: u8, registers: u16, code: Vec<Instruction>) -> Proto {
    let spans = vec![Span::default(); code.len()];
    Proto {
        name: name.into(),
        shape: Shape { fixed, variadic: false },
        parameters: "n".into(),
        registers,
        captures: 0,
        next_arity: None,
        code,
        spans,
    }
}

fn program(protos: Vec<Proto>, globals: usize) -> Arc<Program> {
    let program = Program {
        source_name: "handmade".into(),
        source_bytes: 0,
        protos,
        entry: ProtoIndex(0),
        constants: Vec::new(),
        symbols: vec!["fib".into()],
        globals: vec![GlobalName { symbol: 0, builtin: None }; globals],
    };
    verify::verify(&program).expect("handmade code is right");
    Arc::new(program)
}

fn fib() -> Arc<Program> {
    use Instruction::*;
    let main = vec![
        MakeClosure { proto: ProtoIndex(1), captures: Args { at: 1, count: 0 }, dst: Dst(1) },
        StoreGlobal { global: Global(0), src: last(1) },
        LoadInt { value: Small(27), dst: Dst(2) },
        CallGlobal { global: Global(0), window: Window { at: 1, count: 1 } },
        Return { src: last(1) },
    ];
    let fib = vec![
        JumpUnlessLessSmall { a: src(1), value: Small(2), to: Near(1) },
        Return { src: last(1) },
        AddSmall { a: src(1), value: Small(-1), dst: Dst(3), written: Written::Minus },
        CallGlobal { global: Global(0), window: Window { at: 2, count: 1 } },
        AddSmall { a: last(1), value: Small(-2), dst: Dst(4), written: Written::Minus },
        CallGlobal { global: Global(0), window: Window { at: 3, count: 1 } },
        Add { a: last(2), b: last(3), dst: Dst(1) },
        Return { src: last(1) },
    ];
    program(vec![proto("main", 0, 3, main), proto("fib", 1, 5, fib)], 1)
}

fn looping() -> Arc<Program> {
    use Instruction::*;
    let _ = lookup(None, "inc");
    let main = vec![
        LoadInt { value: Small(0), dst: Dst(1) },
        LoadInt { value: Small(0), dst: Dst(2) },
        LoadInt { value: Small(0), dst: Dst(3) },
        LoadInt { value: Small(5_000), dst: Dst(4) },
        LoadInt { value: Small(1_000), dst: Dst(5) },
        Multiply { a: last(4), b: last(5), dst: Dst(6) },
        // 6: loop head
        JumpUnlessLess { a: src(1), b: src(6), to: Near(5) },
        AddSmall { a: src(1), value: Small(1), dst: Dst(4), written: Written::Increment },
        Add { a: last(2), b: last(1), dst: Dst(2) },
        Move { src: last(4), dst: Dst(1) },
        LoopBack { counter: Pinned(3), to: Far(-5) },
        // 11
        LoadNil { dst: Dst(5) },
        Drop { src: last(5) },
        Drop { src: last(1) },
        Drop { src: last(6) },
        Drop { src: last(3) },
        Return { src: last(2) },
    ];
    let mut main = main;
    main[6] = JumpUnlessLess { a: src(1), b: src(6), to: Near(4) };
    program(vec![proto("main", 0, 8, main)], 0)
}

/// CPU time of this process in seconds: other processes on the machine do not count.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn time(name: &str, program: &Arc<Program>) {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let mut isolate = Isolate::new(IsolateOptions { memory_bytes: 1 << 30, ..IsolateOptions::default() });
        let unit = isolate.load(program.clone()).expect("loads");
        isolate.start(unit);
        let start = cpu_seconds();
        while isolate.run(100_000) == Exit::SliceEnd {}
        best = best.min((cpu_seconds() - start) * 1e3);
        let text = isolate.result(|cx, value| ptc_vm::print::pr_str(cx, value, 100).expect("prints").text);
        let leaked = isolate.close();
        assert_eq!(leaked, 0);
        if best == f64::MAX {
            println!("{text}");
        }
        std::hint::black_box(text);
    }
    println!("{name}: {best:.2} ms");
}

fn main() {
    time("fib27", &fib());
    time("loop5M", &looping());
}
