//! The cases of the instruction counter, as a table: name, default size, warm-up runs and the function that
//! prepares the case.

use ptc_benches::{SLICE, large_budget};
use ptc_compiler::{CompileOptions, Externals, SessionName, compile, inspect};
use ptc_vm::bytecode::{Program, verify};
use ptc_vm::json::{Keys, decode, encode};
use ptc_vm::{Budget, Exit, Isolate, Value};
use std::hint::black_box;
use std::sync::Arc;

/// A prepared case, which can be run any number of times.
pub(crate) type Prepared = Box<dyn FnMut() -> Result<(), String>>;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The workload's number of items; in other cases a number of repetitions or bytes. `run.py --growth`
    /// divides it.
    pub(crate) size: usize,
    /// Runs before the one that is counted.
    pub(crate) warm_up: usize,
    pub(crate) prepare: fn(usize) -> Result<Prepared, String>,
}

macro_rules! program {
    ($name:literal) => {
        include_str!(concat!("../../measure/workloads/", $name, ".ptc"))
    };
}

/// A workload: `$literal` in its text is the number of items.
macro_rules! workload {
    ($case:literal, $file:literal, $literal:literal) => {
        Case {
            name: $case,
            size: $literal,
            warm_up: 0,
            prepare: |size| workload(program!($file), stringify!($literal), size),
        }
    };
}

/// Rows of the file of issues that the JSON cases read from the working folder.
const ISSUES: usize = 20_000;

const P25: &str = program!("p25");

/// Programs as small as a model writes them.
const SMALL: &[&str] = &[
    "(+ 1 2)",
    "(map inc [1 2 3])",
    "(->> (range 10) (filter even?) (reduce +))",
    "(let [{:keys [a b]} {:a 1 :b 2}] (+ a b))",
    "(defn f [x] (* x x)) (f 12)",
    "(str/join \", \" (map :name [{:name \"a\"} {:name \"b\"}]))",
    "(loop [i 0 acc []] (if (< i 5) (recur (inc i) (conj acc i)) acc))",
    "(get-in {:a {:b [10 20 30]}} [:a :b 1])",
    "(cond (> 1 2) :more (< 1 2) :less :else :same)",
    "(for [x [1 2 3] :when (odd? x)] {:x x})",
];

pub(crate) const CASES: &[Case] = &[
    workload!("run/fib", "w1", 27),
    workload!("run/loop", "w2", 5000000),
    workload!("run/pipeline", "w3", 200000),
    workload!("run/freq", "w4", 500000),
    workload!("run/strings", "w5", 200000),
    workload!("run/sort", "w6", 200000),
    Case { name: "run/jsonparse", size: ISSUES, warm_up: 0, prepare: |_| workload(program!("w7p"), "", 0) },
    Case { name: "run/jsonwalk", size: ISSUES, warm_up: 0, prepare: |_| workload(program!("w7w"), "", 0) },
    workload!("run/closures", "w8", 500000),
    Case { name: "calls/own", size: 100_000, warm_up: 0, prepare: |size| calling(FUNCTION, "nil", size) },
    Case { name: "calls/other", size: 100_000, warm_up: 0, prepare: |size| calling("nil", FUNCTION, size) },
    Case { name: "json/decode", size: ISSUES, warm_up: 0, prepare: json_decode },
    Case { name: "json/encode", size: ISSUES, warm_up: 0, prepare: json_encode },
    Case { name: "json/text", size: ISSUES, warm_up: 0, prepare: json_text },
    Case { name: "compile/p25", size: 1, warm_up: 3, prepare: |_| compiling(vec![P25.to_owned()]) },
    Case { name: "compile/small", size: 1, warm_up: 3, prepare: |_| compiling(owned(SMALL)) },
    Case { name: "compile/long", size: 256, warm_up: 1, prepare: |size| compiling(vec![long(size)]) },
    Case { name: "compile/lex", size: 1, warm_up: 3, prepare: |_| stage(inspect::count_tokens) },
    Case { name: "compile/read", size: 1, warm_up: 3, prepare: |_| stage(inspect::count_forms) },
    Case { name: "compile/verify", size: 1, warm_up: 3, prepare: |_| verifying() },
    Case { name: "latency/tiny_new", size: 1, warm_up: 3, prepare: |_| new_isolate("(+ 1 2)") },
    Case { name: "latency/tiny_reuse", size: 1, warm_up: 3, prepare: |_| reused_isolate("(+ 1 2)") },
    Case { name: "latency/p25_new", size: 1, warm_up: 3, prepare: |_| new_isolate(P25) },
    Case { name: "latency/p25_reuse", size: 1, warm_up: 3, prepare: |_| reused_isolate(P25) },
    Case { name: "latency/p25_run", size: 1, warm_up: 3, prepare: |_| run_only() },
];

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A program of this many functions, each of which calls the one before it.
fn long(functions: usize) -> String {
    let mut text = String::from("(defn step-0 [rows limit] (count rows))\n");
    for at in 1..=functions {
        let before = at - 1;
        text.push_str(&format!(
            "(defn step-{at} [rows limit]\n  (let [chosen (filter #(> (:score-{at} %) limit) rows)\n        total \
             (reduce + (map :total chosen))]\n    (cond\n      (empty? chosen) {{:step {at} :total 0}}\n      (< \
             total {at}00) (assoc {{:step {at}}} :total total :name \"step {at}\")\n      :else (step-{before} \
             (take {at} chosen) (inc limit)))))\n"
        ));
    }
    text.push_str(&format!("(step-{functions} [] 1)\n"));
    text
}

fn issues() -> Result<String, String> {
    std::fs::read_to_string("issues.json").map_err(|error| format!("issues.json: {error}"))
}

fn translate(source: &str, session: &[SessionName<'_>]) -> Result<Arc<Program>, String> {
    let externals = Externals { session, ..Externals::default() };
    let compiled = compile(source, &externals, &CompileOptions::default());
    compiled.map(|compiled| compiled.program).map_err(|errors| format!("{errors:?}"))
}

fn finish(isolate: &mut Isolate) -> Result<(), String> {
    loop {
        match isolate.run(SLICE) {
            Exit::SliceEnd => {}
            Exit::Done | Exit::Return => return Ok(()),
            other => return Err(format!("{other:?}")),
        }
    }
}

fn evaluate(isolate: &mut Isolate, source: &str, session: &[SessionName<'_>]) -> Result<(), String> {
    let unit = isolate.load(translate(source, session)?).map_err(|fault| fault.message)?;
    isolate.start(unit);
    finish(isolate)
}

/// Evaluates as `ptc-bench latency` does: from source text to the printed value.
fn answer(isolate: &mut Isolate, source: &str, session: &[SessionName<'_>]) -> Result<(), String> {
    evaluate(isolate, source, session)?;
    let text = isolate.result(|cx, value| ptc_vm::print::pr_str(cx, value, 10_000));
    black_box(text).map(|_| ()).map_err(|fault| fault.message.into())
}

fn workload(source: &str, literal: &str, size: usize) -> Result<Prepared, String> {
    let source = match literal {
        "" => source.to_owned(),
        literal => source.replace(literal, &size.to_string()),
    };
    let mut isolate = Isolate::new(Budget { memory_bytes: 4 << 30, ..large_budget() });
    if source.contains("data/issues") {
        let context = serde_json::json!({ "issues": issues()? }).to_string();
        isolate.set_context(&context).map_err(|fault| fault.message)?;
    }
    evaluate(&mut isolate, &source, &[])?;
    let call = if source.contains("(def data") { "(work data)" } else { "(work nil)" };
    let session = ["work", "data"].map(|name| SessionName { name, arity: None });
    let unit = isolate.load(translate(call, &session)?).map_err(|fault| fault.message)?;
    Ok(Box::new(move || {
        isolate.start(unit);
        finish(&mut isolate)
    }))
}

/// The function under test. Functions of preludes are functions of another program; a call of them costs the
/// same.
const FUNCTION: &str = "(defn f [x] [x 0])";

/// Calls a function that the program defines itself, or that another program defined.
fn calling(own: &str, other: &str, size: usize) -> Result<Prepared, String> {
    let mut isolate = Isolate::new(large_budget());
    evaluate(&mut isolate, other, &[])?;
    let source = format!("{own} (loop [i 0] (if (< i {size}) (do (f i) (recur (inc i))) i))");
    let session = [SessionName { name: "f", arity: None }];
    let unit = isolate.load(translate(&source, &session)?).map_err(|fault| fault.message)?;
    Ok(Box::new(move || {
        isolate.start(unit);
        finish(&mut isolate)
    }))
}

fn compiling(sources: Vec<String>) -> Result<Prepared, String> {
    Ok(Box::new(move || {
        for source in &sources {
            black_box(translate(source, &[])?);
        }
        Ok(())
    }))
}

fn stage(work: fn(&str) -> usize) -> Result<Prepared, String> {
    Ok(Box::new(move || {
        black_box(work(P25));
        Ok(())
    }))
}

fn verifying() -> Result<Prepared, String> {
    let program = translate(P25, &[])?;
    Ok(Box::new(move || verify::verify(&program).map_err(|error| error.to_string())))
}

fn new_isolate(source: &'static str) -> Result<Prepared, String> {
    Ok(Box::new(move || answer(&mut Isolate::new(Budget::default()), source, &[])))
}

/// The session knows the names that the program defines from the second run on.
const P25_NAMES: [&str; 4] = ["orders", "discount", "paid", "sums"];

fn reused_isolate(source: &'static str) -> Result<Prepared, String> {
    let mut isolate = Isolate::new(Budget::default());
    evaluate(&mut isolate, P25, &[])?;
    let session = P25_NAMES.map(|name| SessionName { name, arity: None });
    Ok(Box::new(move || answer(&mut isolate, source, &session)))
}

/// The part of `latency/p25_new` that comes after compiling.
fn run_only() -> Result<Prepared, String> {
    let program = translate(P25, &[])?;
    Ok(Box::new(move || {
        let mut isolate = Isolate::new(Budget::default());
        let unit = isolate.load(program.clone()).map_err(|fault| fault.message)?;
        isolate.start(unit);
        finish(&mut isolate)
    }))
}

fn json_decode(_: usize) -> Result<Prepared, String> {
    let text = issues()?;
    let mut isolate = Isolate::new(large_budget());
    Ok(Box::new(move || {
        isolate.with(|cx| decode(cx, text.as_bytes()).map(drop).map_err(|error| format!("{error:?}")))
    }))
}

fn json_encode(_: usize) -> Result<Prepared, String> {
    let text = issues()?;
    let mut isolate = Isolate::new(large_budget());
    let value = isolate.with(|cx| decode(cx, text.as_bytes()).map_err(|error| format!("{error:?}")))?;
    Ok(Box::new(move || {
        isolate.with(|cx| match encode(cx, &value, Keys::Names, usize::MAX) {
            Ok(Ok(text)) => {
                black_box(text);
                Ok(())
            }
            Ok(Err(failure)) => Err(failure.to_string()),
            Err(fault) => Err(fault.message.into()),
        })
    }))
}

/// JSON inside a JSON string, as tools without structured content answer.
fn json_text(_: usize) -> Result<Prepared, String> {
    let block = serde_json::Value::String(issues()?).to_string();
    let mut isolate = Isolate::new(large_budget());
    Ok(Box::new(move || {
        isolate.with(|cx| {
            let text = decode(cx, block.as_bytes()).map_err(|error| format!("{error:?}"))?;
            let Value::Str(text) = text else { return Err("no text".to_owned()) };
            decode(cx, text.as_str().as_bytes()).map(drop).map_err(|error| format!("{error:?}"))
        })
    }))
}
