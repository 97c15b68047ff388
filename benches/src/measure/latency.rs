//! Measures the latency of small programs: source text to value, compiled every time, in a new and in a
//! reused isolate.

use ptc_compiler::{CompileOptions, Externals, SessionName, compile};
use ptc_vm::{Budget, Exit, Isolate};
use std::time::Instant;

/// The smallest program.
const TINY: &str = "(+ 1 2)";

/// A program of 25 lines.
const P25: &str = include_str!("workloads/p25.ptc");

/// Fuel of one slice.
const SLICE: u64 = 1_000_000;

/// One row of the bench.
#[derive(Debug)]
pub struct Row {
    /// Program and kind of isolate.
    pub name: &'static str,
    /// `pr-str` of the value.
    pub result: String,
    /// Microseconds of each run, sorted.
    pub micros: Vec<f64>,
}

/// Measures all rows: `runs` runs each, after a tenth as many to warm up.
///
/// # Errors
/// The error of a program that failed.
pub fn measure(runs: usize) -> Result<Vec<Row>, String> {
    let new = |source: &'static str| {
        move || {
            let mut isolate = Isolate::new(Budget::default());
            evaluate(&mut isolate, source, &[])
        }
    };
    let mut reused = Isolate::new(Budget::default());
    // The session has the names that the program defines from the second run on.
    let session: Vec<SessionName<'_>> =
        ["orders", "discount", "paid", "sums"].map(|name| SessionName { name, arity: None }).into();
    evaluate(&mut reused, P25, &[])?;
    Ok(vec![
        row("tiny_new", runs, new(TINY))?,
        row("p25_new", runs, new(P25))?,
        row("tiny_reuse", runs, || evaluate(&mut reused, TINY, &session))?,
        row("p25_reuse", runs, || evaluate(&mut reused, P25, &session))?,
    ])
}

fn row(
    name: &'static str,
    runs: usize,
    mut run: impl FnMut() -> Result<String, String>,
) -> Result<Row, String> {
    let mut row = Row { name, result: String::new(), micros: Vec::with_capacity(runs) };
    for at in 0..runs + runs / 10 {
        let start = Instant::now();
        row.result = run()?;
        let elapsed = start.elapsed();
        if at >= runs / 10 {
            row.micros.push(elapsed.as_secs_f64() * 1e6);
        }
    }
    row.micros.sort_by(f64::total_cmp);
    Ok(row)
}

fn evaluate(isolate: &mut Isolate, source: &str, session: &[SessionName<'_>]) -> Result<String, String> {
    let externals = Externals { session, ..Externals::default() };
    let compiled =
        compile(source, &externals, &CompileOptions::default()).map_err(|errors| format!("{errors:?}"))?;
    let unit = isolate.load(compiled.program).map_err(|fault| fault.message)?;
    isolate.start(unit);
    loop {
        match isolate.run(SLICE) {
            Exit::SliceEnd => {}
            Exit::Done | Exit::Return => break,
            Exit::Fault(fault) => return Err(fault.message.into()),
            other => return Err(format!("unexpected end: {other:?}")),
        }
    }
    let text = isolate.result(|cx, value| ptc_vm::print::pr_str(cx, value, 10_000));
    text.map(|printed| printed.text).map_err(|fault| fault.message.into())
}
