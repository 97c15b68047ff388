//! Runs a program in several ways that must not differ visibly: with an optimisation off, or with slices of another
//! size. All runs must agree on value, prints, fault and fuel.

use crate::guest::VISITED;
use ptc_compiler::{CompileOptions, Externals};
use ptc_vm::builtins::HostFunction;
use ptc_vm::json::{self, Keys};
use ptc_vm::{BoundedText, CallId, Exit, Isolate, Preemption, Reason, Span, Tuning, Value};
use std::sync::Arc;

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Units of fuel.
    pub fuel: u64,
    /// Logical bytes alive at once.
    pub memory_bytes: u64,
}

impl Budget {
    fn of_run(&self) -> ptc_vm::Budget {
        ptc_vm::Budget {
            fuel: self.fuel,
            memory_bytes: self.memory_bytes,
            parallel_width: 3,
            print_bytes: 4_096,
            ..ptc_vm::Budget::default()
        }
    }
}

/// A way to run.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// What differs.
    pub name: &'static str,
    /// Locals are taken by their last reader.
    pub last_uses: bool,
    /// Frequent instructions run in the hot loop.
    pub hot_loop: bool,
    /// Keys of data are interned.
    pub intern_keys: bool,
    /// Another isolate runs on the thread whenever this one polls.
    pub visited: bool,
    /// Fuel of a slice.
    pub slice: u64,
}

/// The way in which programs run normally.
pub const USUAL: Variant = Variant {
    name: "usual",
    last_uses: true,
    hot_loop: true,
    intern_keys: true,
    visited: false,
    slice: 100_000,
};

/// All ways to run; the first is the normal one.
pub const VARIANTS: &[Variant] = &[
    USUAL,
    Variant { name: "again", ..USUAL },
    Variant { name: "short slices", slice: 37, ..USUAL },
    Variant { name: "moves off", last_uses: false, ..USUAL },
    Variant { name: "hot loop off", hot_loop: false, ..USUAL },
    Variant { name: "keys not interned", intern_keys: false, ..USUAL },
    Variant { name: "preempted", visited: true, ..USUAL },
    Variant { name: "all off", last_uses: false, hot_loop: false, intern_keys: false, slice: 1_000, ..USUAL },
];

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the value of its last form, as `pr-str` prints it.
    Done(String),
    /// With `(return v)`.
    Return(String),
    /// With `(fail v)`.
    Fail(String),
    /// With a fault: reason, message, location, hints.
    Fault(Reason, BoundedText, Option<Span>, Vec<BoundedText>),
}

/// The observable result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// The lines it printed.
    pub prints: Vec<String>,
    /// The fuel it spent.
    pub fuel: u64,
}

impl Ran {
    fn reason(&self) -> Option<Reason> {
        match &self.ending {
            Ending::Fault(reason, ..) => Some(*reason),
            _ => None,
        }
    }
}

/// The data behind `data/…`: every kind of JSON value, and repeated keys.
const CONTEXT: &str = r#"{"n": 5, "x": 2.5, "text": "one two\nthree", "none": null, "ok": true,
    "big": 123456789012345678901234567890, "tags": ["b", "a", "b"], "nested": {"a": {"b": [1, {"c": 2}]}},
    "rows": [{"id": 1, "name": "ann", "tags": ["x", "y"], "score": 1.5},
             {"id": 2, "name": "bob", "tags": [], "score": null},
             {"id": 3, "name": "cy", "long key that is never interned, being long": 1}]}"#;

/// Bytes of a printed result that are compared.
const SHOWN: usize = 1 << 16;

/// Runs a program one way. `None`: it does not compile that way.
///
/// # Panics
/// If it leaves memory behind, or blocks although every call is answered.
pub fn run(source: &str, budget: &Budget, variant: &Variant) -> Option<Ran> {
    let options = CompileOptions { last_uses: variant.last_uses, ..CompileOptions::default() };
    let program = ptc_compiler::compile(source, &Externals::default(), &options).ok()?.program;
    let preemption = if variant.visited { VISITED } else { Preemption::default() };
    let tuning = Tuning { hot_loop: variant.hot_loop, intern_keys: variant.intern_keys };
    let mut isolate = Isolate::tuned(ptc_vm::Budget { preemption, ..budget.of_run() }, tuning);
    let started = isolate.load(Arc::clone(&program));
    let started = started.and_then(|unit| isolate.set_context(CONTEXT).map(|()| unit));
    let ending = match started {
        Ok(unit) => {
            isolate.start(unit);
            drive(&mut isolate, variant.slice)
        }
        Err(fault) => Exit::Fault(fault),
    };
    let fuel = isolate.fuel_used();
    let ending = isolate.result(|cx, value| ending_of(cx, &ending, value));
    let prints = isolate.prints();
    let left = isolate.close();
    assert_eq!(left, 0, "{} left {left} bytes behind: {source}\n{}", variant.name, program.disassemble());
    Some(Ran { ending, prints, fuel })
}

/// Runs to the end, answering host calls as they come.
fn drive(isolate: &mut Isolate, slice: u64) -> Exit {
    loop {
        match isolate.run(slice) {
            Exit::HostCall(call) => answer(isolate, call),
            Exit::SliceEnd => {}
            Exit::Blocked => panic!("blocked, though every call is answered"),
            end => return end,
        }
    }
}

/// The clock stands still. A host tool returns its last argument as it is, any other call its last argument as JSON.
fn answer(isolate: &mut Isolate, call: CallId) {
    let same = isolate.call(call, |_, function, arguments| match function {
        HostFunction::Tool => arguments.last().cloned(),
        _ => None,
    });
    // The value returns to the scope of its isolate before anything drops it.
    if let Some(Some(value)) = same {
        return isolate.resume(call, |_| Ok(value));
    }
    let echo = isolate.call(call, |cx, function, arguments| match function {
        HostFunction::Now => Ok(Some("1700000000000".to_owned())),
        _ => match arguments.last() {
            Some(argument) => json::encode(cx, argument, Keys::Names, 4_096).map(Result::ok),
            None => Ok(None),
        },
    });
    isolate.resume(call, |cx| match echo {
        Some(Ok(Some(text))) => json::decode(cx, text.as_bytes()).map_err(Into::into),
        Some(Err(fault)) => Err(fault),
        _ => Ok(Value::Nil),
    });
}

fn ending_of(cx: &mut ptc_vm::Context, exit: &Exit, value: &Value) -> Ending {
    let fault = |fault: &ptc_vm::Fault| {
        let place = fault.location.map(|(_, span)| span);
        Ending::Fault(fault.reason, fault.message.clone(), place, fault.hints.clone())
    };
    let wrap = match exit {
        Exit::Done => Ending::Done,
        Exit::Return => Ending::Return,
        Exit::Fail(_) => Ending::Fail,
        Exit::Fault(found) => return fault(found),
        other => panic!("no end: {other:?}"),
    };
    match ptc_vm::print::pr_str(cx, value, SHOWN) {
        Ok(printed) => wrap(printed.text),
        Err(found) => fault(&found),
    }
}

/// Runs a program in all ways and returns the normal result. `None`: it does not compile.
///
/// # Panics
/// If two ways differ.
pub fn compare(source: &str, budget: &Budget) -> Option<Ran> {
    let usual = run(source, budget, &USUAL)?;
    for variant in &VARIANTS[1..] {
        let Some(other) = run(source, budget, variant) else {
            assert!(!variant.last_uses, "{} does not compile: {source}", variant.name);
            continue;
        };
        let name = variant.name;
        assert!(agree(&usual, &other), "{name} differs: {source}\nusual: {usual:#?}\n{name}: {other:#?}");
    }
    run_again(source, budget);
    Some(usual)
}

/// Runs a program in a new isolate, and twice in an isolate that rolls back each run.
///
/// # Panics
/// If the runs differ in anything, memory included.
fn run_again(source: &str, budget: &Budget) {
    let Ok(compiled) = ptc_compiler::compile(source, &Externals::default(), &CompileOptions::default())
    else {
        return;
    };
    let load = || {
        let mut isolate = Isolate::new(budget.of_run());
        let unit = isolate.attach(compiled.program.clone()).ok()?;
        Some((isolate, unit))
    };
    let (Some((mut new, unit)), Some((mut again, attached))) = (load(), load()) else { return };
    let exit = match new.set_context(CONTEXT) {
        Ok(()) => {
            new.start(unit);
            drive(&mut new, USUAL.slice)
        }
        Err(fault) => Exit::Fault(fault),
    };
    let (fuel, peak) = (new.fuel_used(), new.peak_bytes());
    let ending = new.result(|cx, value| ending_of(cx, &exit, value));
    let first = (Ran { ending, prints: new.prints(), fuel }, peak);
    assert_eq!(new.close(), 0, "bytes left behind: {source}");
    again.commit(u64::MAX).expect("no limit");
    for _ in 0..2 {
        let ran = again.attempt(attached, Some(CONTEXT), budget.fuel, |cx, ended| {
            // A program that calls its host does not end in one slice.
            let ends = matches!(ended.exit, Exit::Done | Exit::Return | Exit::Fail(_) | Exit::Fault(_));
            ends.then(|| {
                let fuel = cx.fuel.used();
                let ending = ending_of(cx, ended.exit, ended.value);
                (Ran { ending, prints: cx.prints.take(), fuel }, ended.peak_bytes)
            })
        });
        if let Some(ran) = ran
            && first.0.reason() != Some(Reason::MemoryExceeded)
        {
            assert_eq!(first, ran, "run again differs: {source}");
        }
    }
    assert_eq!(again.close(), 0, "bytes left behind: {source}");
}

fn agree(a: &Ran, b: &Ran) -> bool {
    let (a_reason, b_reason) = (a.reason(), b.reason());
    // Where memory runs out depends on what is shared and when it is freed.
    if [a_reason, b_reason].contains(&Some(Reason::MemoryExceeded)) {
        return true;
    }
    // The fuel limit is exact, but which of the instructions at that point detects it is not.
    if (a_reason, b_reason) == (Some(Reason::FuelExceeded), Some(Reason::FuelExceeded)) {
        return a.fuel == b.fuel;
    }
    a == b
}
