//! Runs the workloads of the peer benchmark: evaluates each program once, then times its function `work`,
//! with or without source tracking.

use super::clock::cpu_millis;
use ptc_compiler::{CompileOptions, Externals, SessionName, compile};
use ptc_vm::{Budget, DefinedFrom, Exit, Isolate};
use std::path::Path;

/// Timed runs after one warm-up.
const RUNS: usize = 5;

/// Fuel of one slice.
const SLICE: u64 = 1_000_000;

/// The file in the working folder that the JSON workloads read.
pub const ISSUES: &str = "issues.json";

/// One workload.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name in the peer benchmark.
    pub name: &'static str,
    /// A short description.
    pub title: &'static str,
    /// Definitions: the function `work` of one argument, and `data`, its argument, where it needs one.
    pub source: &'static str,
}

macro_rules! workloads {
    ($($name:literal $title:literal)*) => {
        /// The workloads.
        pub const WORKLOADS: &[Workload] = &[$(Workload {
            name: $name,
            title: $title,
            source: include_str!(concat!("workloads/", $name, ".ptc")),
        }),*];
    };
}

workloads! {
    "w1" "fib27"
    "w2" "loop5M"
    "w3" "pipeline"
    "w4" "freq"
    "w5" "strings"
    "w6" "sort"
    "w7p" "jsonparse"
    "w7w" "jsonwalk"
    "w8" "closures"
}

/// What a run tracks of where its values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// Nothing, as in a run without labels on values.
    Off,
    /// All values, none of which has a source.
    Clear,
    /// All values, each of which has a source: the function of the workload has one.
    Sourced,
}

/// Figures of a workload.
#[derive(Debug)]
pub struct WorkloadFigures {
    /// The result: a string as it is, anything else as `pr-str` shows it.
    pub result: String,
    /// CPU milliseconds of each run.
    pub millis: Vec<f64>,
    /// Fuel of one run.
    pub fuel: u64,
    /// Largest number of logical bytes alive at once, including data.
    pub peak_bytes: u64,
    /// Elements of collections that a run copied because they were shared.
    pub copied_elements: u64,
}

impl Workload {
    fn has_data(&self) -> bool {
        self.source.contains("(def data")
    }

    fn reads_issues(&self) -> bool {
        self.source.contains("data/issues")
    }

    /// The call that is timed.
    fn call(&self) -> &'static str {
        if self.has_data() { "(work data)" } else { "(work nil)" }
    }

    /// Runs the workload: the definitions once, then the call, once to warm up and five times timed. The
    /// result of a run is dropped inside the timed part of the next.
    ///
    /// # Errors
    /// A missing [`ISSUES`] file; the error of the program.
    pub fn run(&self, folder: &Path, tracking: Tracking) -> Result<WorkloadFigures, String> {
        let options = Budget { memory_bytes: 4 << 30, fuel: u64::MAX >> 1, ..Budget::default() };
        let mut isolate = Isolate::new(options);
        if self.reads_issues() {
            let path = folder.join(ISSUES);
            let text = std::fs::read_to_string(&path).map_err(|error| {
                format!("{}: {error}; the peer benchmark's generator writes it", path.display())
            })?;
            let context = serde_json::json!({ "issues": text }).to_string();
            isolate.set_context(&context).map_err(|fault| fault.message)?;
        }
        evaluate(&mut isolate, self.source, &[])?;
        if tracking == Tracking::Clear {
            // Names of which nothing is said may come from anything.
            isolate
                .definitions_from(&[], |_| DefinedFrom::Sources { named: Vec::new(), globals: Vec::new() });
        }
        if tracking != Tracking::Off {
            isolate.commit(u64::MAX).map_err(|limit| format!("{limit:?}"))?;
            isolate.track(false);
        }
        let session = [SessionName { name: "work", arity: None }, SessionName { name: "data", arity: None }];
        let externals = Externals { session: &session, ..Externals::default() };
        let program = compile(self.call(), &externals, &CompileOptions::default())
            .map_err(|errors| format!("{errors:?}"))?
            .program;
        let unit = isolate.load(program).map_err(|fault| fault.message)?;
        let mut measured = WorkloadFigures {
            result: String::new(),
            millis: Vec::new(),
            fuel: 0,
            peak_bytes: 0,
            copied_elements: 0,
        };
        for run in 0..=RUNS {
            let (fuel, copied) = (isolate.fuel_used(), isolate.copied_elements());
            let start = cpu_millis();
            isolate.start(unit);
            finish(&mut isolate)?;
            let elapsed = cpu_millis() - start;
            if run > 0 {
                measured.millis.push(elapsed);
                measured.fuel = isolate.fuel_used() - fuel;
                measured.copied_elements = isolate.copied_elements() - copied;
            }
        }
        measured.peak_bytes = isolate.peak_bytes();
        measured.result = isolate
            .result(|cx, value| match value {
                ptc_vm::Value::Str(text) => Ok(text.as_str().to_owned()),
                other => ptc_vm::print::pr_str(cx, other, 10_000).map(|printed| printed.text),
            })
            .map_err(|fault| fault.message)?;
        Ok(measured)
    }
}

pub(super) fn evaluate(
    isolate: &mut Isolate,
    source: &str,
    session: &[SessionName<'_>],
) -> Result<(), String> {
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
            Exit::Fault(fault) => return Err(fault.message.into()),
            other => return Err(format!("unexpected end: {other:?}")),
        }
    }
}
