//! Benchmarks of the project, the binary `ptc-bench`, and helpers that run a program in an isolate.
//!
//! # Layout
//! - `benches/language.rs`: compiler and interpreter; `benches/json.rs`: JSON in and out
//! - `benches/suspension.rs`: host calls, `pmap`; `benches/server.rs`: requests a second over stdio
//! - `bin/instructions`: the cases of `instructions/run.py`, which counts instructions
//! - `bin/ptc-bench`: the command line of the measurements in [`measure`]
//! - `compare/`: nine workloads and latency against Lua 5.4, in one run

pub mod measure;

use ptc_compiler::flows::FlowPlan;
use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_vm::bytecode::Program;
use ptc_vm::{Budget, Exit, Isolate};
use std::sync::Arc;

/// Fuel of one slice.
pub const SLICE: u64 = 1_000_000;

/// Budgets that no benchmark exhausts.
pub fn large_budget() -> Budget {
    Budget { memory_bytes: 1 << 30, fuel: u64::MAX >> 1, ..Budget::default() }
}

/// The data flows of a program, compiled with it.
///
/// # Panics
/// When the program does not compile, which is a mistake in the benchmark.
pub fn planned(source: &str) -> Arc<FlowPlan> {
    let options = CompileOptions { flows: true, ..CompileOptions::default() };
    match compile(source, &Externals::default(), &options) {
        Ok(compiled) => compiled.flows.unwrap_or_default(),
        Err(errors) => panic!("{errors:?}"),
    }
}

/// Compiles a program.
///
/// # Panics
/// When the program does not compile, which is a mistake in the benchmark.
pub fn compiled(source: &str) -> Arc<Program> {
    match compile(source, &Externals::default(), &CompileOptions::default()) {
        Ok(compiled) => compiled.program,
        Err(errors) => panic!("{errors:?}"),
    }
}

/// Runs a program to its end in a new isolate.
///
/// # Panics
/// When the program fails.
pub fn run(program: &Arc<Program>) {
    let mut isolate = Isolate::new(large_budget());
    let unit = match isolate.load(program.clone()) {
        Ok(unit) => unit,
        Err(fault) => panic!("{fault:?}"),
    };
    isolate.start(unit);
    loop {
        match isolate.run(SLICE) {
            Exit::SliceEnd => {}
            Exit::Done => return,
            other => panic!("{other:?}"),
        }
    }
}

/// A program of 25 lines, as a model writes it: data in, pipeline, small answer.
pub const PIPELINE: &str = r#"
(def issues
  (map (fn [i] {:number i
                :state (if (even? i) "open" "closed")
                :author {:login (str "user" (mod i 7))}
                :labels [{:name (if (zero? (mod i 3)) "bug" "feature")}]
                :comments (mod (* i 7) 11)})
       (range 200)))

(defn label? [issue name]
  (some #(= name (:name %)) (:labels issue)))

(def open-bugs
  (->> issues
       (filter #(= "open" (:state %)))
       (filter #(label? % "bug"))))

(def by-author
  (->> open-bugs
       (group-by #(get-in % [:author :login]))
       (map (fn [[login xs]]
              {:login login
               :open (count xs)
               :comments (reduce + (map :comments xs))}))
       (sort-by :comments >)))

{:total (count open-bugs) :top (take 3 by-author)}
"#;
