//! Workloads of the peer benchmark: a setup that is evaluated once, and one function that is timed.

use super::clock::cpu_millis;
use ptc_compiler::{CompileOptions, Externals, SessionName, compile};
use ptc_vm::{Exit, Isolate, IsolateOptions};

/// Timed runs after one warm-up.
const RUNS: usize = 5;

/// Fuel of one slice.
const SLICE: u64 = 1_000_000;

/// One workload.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name in the peer benchmark.
    pub name: &'static str,
    /// What it does.
    pub title: &'static str,
    /// Definitions; one of them is the function `work` without parameters.
    setup: &'static str,
}

/// The workloads.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "w1",
        title: "fib(27), recursive",
        setup: "(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
                (defn work [] (fib 27))",
    },
    Workload {
        name: "w2",
        title: "a loop of 5 million rounds",
        setup: "(defn work [] (loop [i 0 acc 0] (if (< i 5000000) (recur (inc i) (+ acc i)) acc)))",
    },
];

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    /// `pr-str` of the result.
    pub result: String,
    /// CPU milliseconds of each run.
    pub millis: Vec<f64>,
    /// Fuel of one run.
    pub fuel: u64,
}

impl Workload {
    /// Runs it.
    ///
    /// # Errors
    /// What the program said instead of a result.
    pub fn run(&self) -> Result<Measured, String> {
        let options =
            IsolateOptions { memory_bytes: 1 << 30, fuel: u64::MAX >> 1, ..IsolateOptions::default() };
        let mut isolate = Isolate::new(options);
        evaluate(&mut isolate, self.setup, &[])?;
        let session = [SessionName { name: "work", arity: None }];
        let mut measured = Measured { result: String::new(), millis: Vec::new(), fuel: 0 };
        let options = CompileOptions::default();
        let externals = Externals { session: &session, ..Externals::default() };
        let program =
            compile("(work)", &externals, &options).map_err(|errors| format!("{errors:?}"))?.program;
        let unit = isolate.load(program).map_err(|fault| fault.message)?;
        for run in 0..=RUNS {
            let fuel = isolate.fuel_used();
            let start = cpu_millis();
            isolate.start(unit);
            finish(&mut isolate)?;
            let elapsed = cpu_millis() - start;
            if run > 0 {
                measured.millis.push(elapsed);
                measured.fuel = isolate.fuel_used() - fuel;
            }
        }
        measured.result = isolate
            .result(|cx, value| ptc_vm::print::pr_str(cx, value, 1_000))
            .map_err(|fault| fault.message)?
            .text;
        Ok(measured)
    }
}

fn evaluate(isolate: &mut Isolate, source: &str, session: &[SessionName<'_>]) -> Result<(), String> {
    let externals = Externals { session, ..Externals::default() };
    let compiled =
        compile(source, &externals, &CompileOptions::default()).map_err(|errors| format!("{errors:?}"))?;
    let unit = isolate.load(compiled.program).map_err(|fault| fault.message)?;
    isolate.start(unit);
    finish(isolate)
}

fn finish(isolate: &mut Isolate) -> Result<(), String> {
    loop {
        match isolate.run(SLICE) {
            Exit::SliceEnd => {}
            Exit::Done | Exit::Return => return Ok(()),
            Exit::Fault(fault) => return Err(fault.message),
            other => return Err(format!("unexpected end: {other:?}")),
        }
    }
}
