//! Calls every builtin with the largest, deepest, most shared and most colliding values that the language allows, all
//! in this one process, and reports which calls broke their limits. The test `hostile_builtins` starts it with little
//! address space, so that unaccounted memory ends the process.
//!
//! It prints one line of JSON for each call that broke a limit, and a last line with counts.

use ptc_calls::limits::Limits;
use ptc_calls::options::RunOptions;
use ptc_engine::{Runtime, RuntimeConfig};
use ptc_tests::cost::{forget_peak, peak_resident, processor_time, resident};
use ptc_vm::builtins::{self, Builtin, Category};
use serde_json::json;
use std::time::Duration;

/// The limits of each call.
const MEMORY: u64 = 10 << 20;
const TIMEOUT: Duration = Duration::from_millis(200);

/// How long a call may go on after its limit.
const GRACE: Duration = Duration::from_millis(50);

/// Resident memory beyond what the process had: twice the limit and 30 MB.
const RESIDENT: u64 = 2 * MEMORY + 30_000_000;

/// A value and the program that makes it. A plain test run uses only the first ones.
const VALUES: &[(&str, &str)] = &[
    ("range of 10^9", "(range 1000000000)"),
    ("range of 10^12", "(range 1000000000000)"),
    ("string of 5 MB", "(reduce (fn [s _] (str s s)) \"a b,c\" (range 20))"),
    ("string of 4 MB, not ASCII", "(reduce (fn [s _] (str s s)) \"éß\" (range 20))"),
    ("integer of 2^20 bits", "(bit-shift-left 1 1048000)"),
    ("deep nest", "(reduce (fn [a _] [a]) nil (range 50000))"),
    ("wide graph", "(reduce (fn [a _] [a a]) nil (range 64))"),
    ("colliding keys", "(mapv (fn [i] (conj [0 0 0 0 0 0 0 0] i)) (range 20000))"),
    ("wide graph of maps", "(reduce (fn [a _] {:a a :b a}) {} (range 64))"),
    ("deep maps", "(reduce (fn [a _] {:a a}) nil (range 20000))"),
    ("large map", "(zipmap (range 40000) (range 40000))"),
    ("rows", "(mapv (fn [i] {:id i :name (str \"n\" i)}) (range 20000))"),
];

/// Arguments of a call; `h` is the value.
const ONE: &[&str] = &["h"];
const TWO: &[&str] = &[
    "h h",
    "inc h",
    "h inc",
    "1 h",
    "h 1",
    ":id h",
    "h :id",
    "\"a\" h",
    "h \"a\"",
    "identity h",
    "h identity",
    "+ h",
    "#\"a+\" h",
    "h #\"a+\"",
    "[h] h",
    "h [h]",
    "{h h} h",
    "1000000000 h",
    "h 1000000000",
];
const THREE: &[&str] = &[
    "h h h",
    "inc h h",
    "+ 0 h",
    "h 1 h",
    "h \"a\" h",
    "h \"a\" \"bb\"",
    "h #\"a\" \"$0$0\"",
    "h :k identity",
    "h [:a :b] h",
    "h h identity",
    "identity h h",
    "(map inc) h h",
    "(fn [a b] a) h h",
    "h 0 1000000000",
    "2 1 h",
    "compare h h",
];

/// Those of a plain test run.
const FEW_TWO: &[&str] = &["h h", "inc h", "1 h", "h 1"];
const FEW_THREE: &[&str] = &["h h h", "+ 0 h", "h \"a\" h"];
const FEW_VALUES: usize = 8;

/// The name of a builtin as programs write it.
fn name_of(builtin: &Builtin) -> Option<String> {
    let prefix = match builtin.category {
        Category::Internal => return None,
        Category::Json => "json/",
        Category::Set => "set/",
        Category::Walk => "walk/",
        Category::Math if builtins::lookup(None, builtin.name).is_none() => "Math/",
        _ => "",
    };
    Some(format!("{prefix}{}", builtin.name))
}

/// What a call cost.
struct Cost {
    time: Duration,
    resident: u64,
    end: String,
}

impl Cost {
    fn is_fine(&self) -> bool {
        self.time <= TIMEOUT + GRACE && self.resident <= RESIDENT
    }
}

async fn run(runtime: &Runtime, program: &str) -> Cost {
    let limits = Limits {
        timeout_ms: TIMEOUT.as_millis() as u64,
        memory_bytes: MEMORY,
        fuel: u64::MAX >> 1,
        ..Limits::default()
    };
    let options = RunOptions {
        limits,
        result_bytes: 1 << 16,
        want_json: true,
        json_bytes: 1 << 16,
        ..RunOptions::default()
    };
    let before = resident();
    forget_peak();
    let begun = processor_time();
    let outcome = runtime.run(program, options).await;
    let time = processor_time().saturating_sub(begun);
    let end = match &outcome.result {
        Ok(_) => "ok".to_owned(),
        Err(failure) => failure.reason.raw().to_owned(),
    };
    Cost { time, resident: peak_resident().saturating_sub(before), end }
}

/// A call that breaks a limit gets two more tries and must keep it in both: the median of three.
async fn judge(runtime: &Runtime, program: &str) -> Cost {
    let first = run(runtime, program).await;
    if first.is_fine() {
        return first;
    }
    let second = run(runtime, program).await;
    if second.is_fine() { run(runtime, program).await } else { second }
}

#[tokio::main]
async fn main() {
    let all = std::env::args().nth(1).is_some_and(|argument| argument == "all");
    let only = std::env::args().nth(2);
    let config = RuntimeConfig { workers: 1, cache_bytes: 0, ..RuntimeConfig::default() };
    let runtime = match Runtime::start(config).await {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    let (two, three, values) =
        if all { (TWO, THREE, VALUES) } else { (FEW_TWO, FEW_THREE, &VALUES[..FEW_VALUES]) };
    let (mut calls, mut broken, mut builtins_seen) = (0_u64, 0_u64, 0_u64);
    for (_, builtin) in builtins::all() {
        let Some(name) = name_of(builtin) else { continue };
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        builtins_seen += 1;
        let shapes = [(1, ONE), (2, two), (3, three)];
        let shapes =
            shapes.iter().filter(|(count, _)| builtin.arity.accepts(*count)).flat_map(|(_, shapes)| *shapes);
        for shape in shapes {
            for (what, value) in values {
                calls += 1;
                let program = format!("(let [h {value}] ({name} {shape}))");
                let cost = judge(&runtime, &program).await;
                if !cost.is_fine() {
                    broken += 1;
                    let line = json!({
                        "call": format!("({name} {shape})"), "h": what, "end": cost.end,
                        "ms": cost.time.as_millis() as u64, "mb": cost.resident / 1_000_000,
                    });
                    println!("{line}");
                }
            }
        }
    }
    println!("{}", json!({ "builtins": builtins_seen, "calls": calls, "broken": broken }));
}
