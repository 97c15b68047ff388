//! Random sequences of committed and rolled-back runs, against a naive model and against an isolate that has executed
//! only the committed ones.

use proptest::prelude::*;
use ptc_compiler::{CallArity, CompileOptions, Externals, SessionName, compile};
use ptc_tests::properties::for_all;
use ptc_vm::{Budget, Exit, Isolate, Reason};
use std::collections::{BTreeMap, BTreeSet};

/// A definition that a run makes. Numbers are indexes of names: `i0`, `f1` …
#[derive(Clone, Copy, Debug)]
enum Define {
    /// `(def i N)`.
    Int(u8),
    /// A function that gives its version and the value of an integer by name.
    Function(u8, u8),
    /// A function that closes over the current value of an integer.
    Capture(u8, u8),
    /// A function made of a function of any earlier run.
    Wrap(u8, u8),
    /// A memoized function that prints when it computes.
    Memo(u8),
    /// Data with keys of its own.
    Data(u8),
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Value,
    Return,
    Fail,
    Fault,
    OutOfFuel,
    OutOfMemory,
    Waiting,
}

#[derive(Clone, Debug)]
struct Run {
    defines: Vec<Define>,
    end: End,
    /// A run that ended well is committed.
    commits: bool,
    /// A name that the host removes before.
    forgets: Option<u8>,
    /// The host sweeps unreachable values afterwards.
    sweeps: bool,
}

fn a_define() -> impl Strategy<Value = Define> {
    let name = || 0..3_u8;
    prop_oneof![
        name().prop_map(Define::Int),
        (name(), name()).prop_map(|(f, i)| Define::Function(f, i)),
        (name(), name()).prop_map(|(c, i)| Define::Capture(c, i)),
        (name(), name()).prop_map(|(w, f)| Define::Wrap(w, f)),
        name().prop_map(Define::Memo),
        name().prop_map(Define::Data),
    ]
}

fn a_run() -> impl Strategy<Value = Run> {
    let end = prop_oneof![
        6 => Just(End::Value),
        1 => Just(End::Return),
        1 => Just(End::Fail),
        1 => Just(End::Fault),
        1 => Just(End::OutOfFuel),
        1 => Just(End::OutOfMemory),
        1 => Just(End::Waiting),
    ];
    let defines = prop::collection::vec(a_define(), 0..4);
    let forgets = prop::option::weighted(0.2, 0..3_u8);
    (defines, end, prop::bool::weighted(0.8), forgets, prop::bool::weighted(0.4))
        .prop_map(|(defines, end, commits, forgets, sweeps)| Run { defines, end, commits, forgets, sweeps })
}

/// The value of a name. Run numbers of functions say which programs must stay.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Int(usize),
    Function { version: usize, reads: u8 },
    Capture { version: usize, value: usize },
    Wrap { version: usize, reads: u8 },
    Memo { version: usize, known: BTreeSet<usize> },
    Data { version: usize },
}

type State = BTreeMap<String, Held>;

fn int_of(state: &State, name: u8) -> usize {
    match state.get(&format!("i{name}")) {
        Some(Held::Int(value)) => *value,
        _ => 0,
    }
}

/// The text of a definition, and its effect on the state. Names that it needs exist: `i0` … from the beginning.
fn define(state: &mut State, define: Define, version: usize) -> String {
    match define {
        Define::Int(name) => {
            state.insert(format!("i{name}"), Held::Int(version));
            format!("(def i{name} {version})")
        }
        Define::Function(name, reads) => {
            state.insert(format!("f{name}"), Held::Function { version, reads });
            format!("(defn f{name} [] [{version} i{reads}])")
        }
        Define::Capture(name, from) => {
            let value = int_of(state, from);
            state.insert(format!("c{name}"), Held::Capture { version, value });
            format!("(def c{name} (let [v i{from}] (fn [] [{version} v])))")
        }
        Define::Wrap(name, inner) => match state.get(&format!("f{inner}")) {
            Some(&Held::Function { version, reads }) => {
                state.insert(format!("w{name}"), Held::Wrap { version, reads });
                format!("(def w{name} (comp count f{inner}))\n(def w{name} (partial f{inner}))")
            }
            _ => String::new(),
        },
        Define::Memo(name) => {
            state.insert(format!("m{name}"), Held::Memo { version, known: BTreeSet::new() });
            format!("(def m{name} (memoize (fn [k] (println \"computed\" {version} k) (* k {version}))))")
        }
        Define::Data(name) => {
            state.insert(format!("d{name}"), Held::Data { version });
            // Keys that only this value has, from the program and from data; an index; a long text.
            format!(
                "(def d{name} (into (json/parse-string \"{{\\\"key{version}\\\": {{\\\"in{version}\\\": 1}}}}\") \
                 (map (fn [n] [n (keyword (str \"k\" n \"_\" {version}))]) (range 30))))"
            )
        }
    }
}

/// A program that uses every name, the text of its value and the lines it prints.
fn observe(state: &mut State, version: usize) -> (String, String, Vec<String>) {
    let (mut source, mut value, mut prints) = (Vec::new(), Vec::new(), Vec::new());
    let ints: Vec<usize> = (0..3).map(|name| int_of(state, name)).collect();
    for (name, held) in state {
        let (used, gives) = match held {
            Held::Int(int) => (name.clone(), int.to_string()),
            Held::Function { version, reads } | Held::Wrap { version, reads } => {
                (format!("({name})"), format!("[{version} {}]", ints[usize::from(*reads)]))
            }
            Held::Capture { version, value } => (format!("({name})"), format!("[{version} {value}]")),
            Held::Memo { version: own, known } => {
                let argument = version % 3;
                if known.insert(argument) {
                    prints.push(format!("computed {own} {argument}"));
                }
                (format!("({name} {argument})"), (argument * *own).to_string())
            }
            // Its keys in their order, its text searched with a pattern that needs an automaton.
            Held::Data { version } => {
                let found =
                    format!("(count (re-seq #\"k1[0-9]_{version}\" (apply str (repeat 90 (str {name})))))");
                (found, (10 * 90).to_string())
            }
        };
        source.push(used);
        value.push(gives);
    }
    (format!("[{}]", source.join(" ")), format!("[{}]", value.join(" ")), prints)
}

/// The number of programs with reachable functions.
fn programs_of(state: &State) -> usize {
    let versions = state.values().filter_map(|held| match held {
        Held::Function { version, .. }
        | Held::Capture { version, .. }
        | Held::Wrap { version, .. }
        | Held::Memo { version, .. } => Some(*version),
        Held::Int(_) | Held::Data { .. } => None,
    });
    versions.collect::<BTreeSet<_>>().len()
}

const MEMORY: u64 = 4 << 20;
const FUEL: u64 = 2_000_000;

/// The observable result of a run.
#[derive(Debug, PartialEq)]
struct Shown {
    exit: &'static str,
    text: String,
    prints: Vec<String>,
    fuel: u64,
    peak: u64,
}

fn run(isolate: &mut Isolate, source: &str) -> Shown {
    isolate.begin(Budget { memory_bytes: MEMORY, fuel: FUEL, ..Budget::default() });
    let mut names: Vec<(String, Option<CallArity>)> = Vec::new();
    isolate.definitions(|definition| {
        let arity = definition.arity.map(|arity| CallArity { min: arity.min, max: arity.max });
        names.push((definition.name.to_owned(), arity));
    });
    let session: Vec<SessionName<'_>> =
        names.iter().map(|(name, arity)| SessionName { name, arity: *arity }).collect();
    let externals = Externals { session: &session, ..Externals::default() };
    let compiled = compile(source, &externals, &CompileOptions::default());
    let program = compiled.unwrap_or_else(|errors| panic!("{source}\n{errors:?}")).program;
    isolate.set_context(r#"{"rows": [{"id": 1}]}"#).expect("a context");
    let unit = isolate.load(program).expect("room for it");
    isolate.start(unit);
    let exit = loop {
        match isolate.run(10_000) {
            Exit::SliceEnd => {}
            Exit::HostCall(_) => break "waiting",
            Exit::Done => break "done",
            Exit::Return => break "return",
            Exit::Fail(_) => break "fail",
            Exit::Fault(fault) => {
                break match fault.reason {
                    Reason::FuelExceeded => "fuel",
                    Reason::MemoryExceeded => "memory",
                    _ => "fault",
                };
            }
            Exit::Blocked => panic!("nothing was handed out: {source}"),
        }
    };
    let text = match exit {
        "done" | "return" => {
            isolate.result(|cx, value| ptc_vm::print::pr_str(cx, value, 4_096).expect("printed").text)
        }
        _ => String::new(),
    };
    Shown { exit, text, fuel: isolate.fuel_used(), peak: isolate.peak_bytes(), prints: isolate.prints() }
}

fn names_of(isolate: &mut Isolate) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    isolate.definitions(|definition| {
        assert!(!definition.is_new, "no run is under way");
        names.insert(definition.name.to_owned());
    });
    names
}

fn check(runs: &[Run]) {
    let mut state: State = (0..3).map(|name| (format!("i{name}"), Held::Int(0))).collect();
    let mut isolates = [Isolate::new(Budget::default()), Isolate::new(Budget::default())];
    for isolate in &mut isolates {
        assert_eq!(run(isolate, "(def i0 0) (def i1 0) (def i2 0)").exit, "done");
        isolate.commit(MEMORY).expect("room for it");
    }
    let [isolate, undisturbed] = &mut isolates;
    for (at, planned) in runs.iter().enumerate() {
        let version = at + 1;
        let before = isolate.live_bytes();
        let mut after = state.clone();
        let defines: Vec<String> =
            planned.defines.iter().map(|&wanted| define(&mut after, wanted, version)).collect();
        let (observed, value, prints) = observe(&mut after, version);
        let (end, exit) = match planned.end {
            End::Value => (String::new(), "done"),
            End::Return => (format!("(return {observed})"), "return"),
            End::Fail => ("(fail :no)".to_owned(), "fail"),
            End::Fault => ("(+ 1 (first [\"a\"]))".to_owned(), "fault"),
            End::OutOfFuel => ("(loop [n 0] (recur (inc n)))".to_owned(), "fuel"),
            End::OutOfMemory => ("(reduce conj [] (range 1000000))".to_owned(), "memory"),
            End::Waiting => ("(tool/call {:server \"s\" :tool \"t\"})".to_owned(), "waiting"),
        };
        let source = match planned.end {
            End::Return => format!("{}\n{end}\n(def never 1)", defines.join("\n")),
            End::Value => format!("{}\n{observed}", defines.join("\n")),
            _ => format!("{}\n(do {observed} {end})", defines.join("\n")),
        };
        let shown = run(isolate, &source);
        assert_eq!(shown.exit, exit, "{source}\n{shown:?}");
        assert_eq!(shown.prints, prints, "{source}");
        let ended_well = matches!(exit, "done" | "return");
        if ended_well {
            assert_eq!(shown.text, value, "{source}");
        }
        if ended_well && planned.commits {
            isolate.commit(MEMORY).expect("room for it");
            // Rolled-back runs leave no visible trace.
            assert_eq!(run(undisturbed, &source), shown, "{source}");
            undisturbed.commit(MEMORY).expect("room for it");
            state = after;
        } else {
            isolate.rollback();
            assert_eq!(isolate.live_bytes(), before, "{source}");
        }
        if let Some(name) = planned.forgets.map(|name| format!("c{name}")) {
            let is_there = state.remove(&name).is_some();
            for isolate in [&mut *isolate, &mut *undisturbed] {
                assert_eq!(isolate.undefine(None, &name), is_there);
                isolate.commit(MEMORY).expect("room for it");
            }
        }
        if planned.sweeps {
            isolate.sweep();
            undisturbed.sweep();
        }
        assert_eq!(isolate.live_bytes(), undisturbed.live_bytes(), "{source}");
        let names: BTreeSet<String> = state.keys().cloned().collect();
        assert_eq!(names_of(isolate), names, "{source}");
        assert_eq!(isolate.programs(), programs_of(&state), "{source}\n{state:?}");
    }
    for mut isolate in isolates {
        forget_everything(&mut isolate);
        assert_eq!(isolate.live_bytes(), 0, "{runs:?}");
        assert_eq!(isolate.close(), 0);
    }
}

fn forget_everything(isolate: &mut Isolate) {
    for name in names_of(isolate) {
        assert!(isolate.undefine(None, &name));
    }
    isolate.commit(MEMORY).expect("room for it");
    isolate.sweep();
}

#[test]
fn names_that_nothing_keeps_do_not_accumulate() {
    let mut isolate = Isolate::new(Budget::default());
    let kept = "(def kept {:a {\"b\" 1}}) (def twice (memoize (fn [n] [n :twice n]))) (twice 1)";
    assert_eq!(run(&mut isolate, kept).exit, "done");
    isolate.commit(MEMORY).expect("room for it");
    isolate.sweep();
    let base = isolate.live_bytes();
    // Memory for little more than one run.
    let most = base + 48_000;
    for at in 0..5_000 {
        let source = match at % 4 {
            0 => format!("(count (into {{}} (map (fn [n] [(keyword (str \"k{at}_\" n)) 1]) (range 40))))"),
            1 => format!("[:p{at} 's{at} \"t{at}\" (json/parse-string \"{{\\\"u{at}\\\": 1}}\")]"),
            2 => format!("(def n{at} (memoize (fn [x] [x :q{at}]))) (n{at} 1)"),
            _ => format!("(def same [:r{at} (fn [] :v{at})]) ((second same))"),
        };
        assert_eq!(run(&mut isolate, &source).exit, "done", "{source}");
        isolate.commit(most).unwrap_or_else(|over| panic!("{at}: {over:?}"));
        if isolate.undefine(None, &format!("n{at}")) {
            isolate.commit(most).unwrap_or_else(|over| panic!("{at}: {over:?}"));
        }
    }
    let shown = run(&mut isolate, "[(get-in kept [:a :b]) (twice 1) (twice 2)]");
    assert_eq!(shown.text, "[1 [1 :twice 1] [2 :twice 2]]");
    isolate.rollback();
    assert!(isolate.undefine(None, "same"));
    isolate.commit(most).expect("less than before");
    isolate.sweep();
    assert_eq!(isolate.live_bytes(), base);
    forget_everything(&mut isolate);
    assert_eq!(isolate.live_bytes(), 0);
    assert_eq!(isolate.close(), 0);
}

#[test]
fn names_of_a_run_alone_are_no_reason_to_refuse_it() {
    let mut isolate = Isolate::new(Budget::default());
    for at in 0..100 {
        let keys = format!("(count (into {{}} (map (fn [n] [(keyword (str \"k{at}_\" n)) 1]) (range 500))))");
        assert_eq!(run(&mut isolate, &keys).text, "500");
        isolate.commit(8_000).unwrap_or_else(|over| panic!("{at}: {over:?}"));
    }
    assert_eq!(isolate.close(), 0);
}

#[test]
fn runs_keep_what_was_committed_and_nothing_else() {
    for_all(60, prop::collection::vec(a_run(), 1..16), |runs| check(&runs));
}

#[test]
fn a_commit_beyond_its_limit_is_rolled_back() {
    let mut isolate = Isolate::new(Budget::default());
    assert_eq!(run(&mut isolate, "(def kept 1)").exit, "done");
    isolate.commit(MEMORY).expect("room for it");
    let before = isolate.live_bytes();
    assert_eq!(run(&mut isolate, "(def large (mapv inc (range 1000)))").exit, "done");
    let refused = isolate.commit(before + 8_000).expect_err("16 bytes an item");
    assert_eq!(refused.most, before + 8_000);
    assert!(refused.needed > before + 16_000, "{refused:?}");
    assert_eq!(isolate.live_bytes(), before);
    assert_eq!(names_of(&mut isolate), BTreeSet::from(["kept".to_owned()]));
    assert_eq!(isolate.close(), 0);
}

#[test]
fn the_host_defines_names_from_results() {
    let mut isolate = Isolate::new(Budget::default());
    for (source, expected) in [("[1 2 3]", "[1 2 3]"), ("(count *1)", "3"), ("[*1 *1]", "[3 3]")] {
        let shown = run(&mut isolate, source);
        assert_eq!(shown.text, expected);
        isolate.define("*1", |_, result| Ok(result.clone())).expect("a value");
        isolate.commit(MEMORY).expect("room for it");
    }
    // Nothing of the programs remains.
    assert_eq!(isolate.programs(), 0);
    assert_eq!(isolate.close(), 0);
}
