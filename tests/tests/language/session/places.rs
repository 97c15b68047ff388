//! The functions of an isolate share one table: adding and removing programs does not affect those that stay.

use ptc_compiler::prelude::DefinitionBody;
use ptc_compiler::{CompileOptions, Externals, SessionName, compile};
use ptc_vm::{Budget, Exit, Isolate, UnitId};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Pseudo-random numbers, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Runs a program of one slice. Gives the value as text.
fn eval(isolate: &mut Isolate, source: &str) -> String {
    let session = NAMES.map(|name| SessionName { name, arity: None });
    let externals = Externals { session: &session, ..Externals::default() };
    let compiled = compile(source, &externals, &CompileOptions::default()).expect(source);
    let unit = isolate.load(compiled.program).expect(source);
    isolate.start(unit);
    let exit = isolate.run(100_000);
    assert!(matches!(exit, Exit::Done), "{source}: {exit:?}");
    isolate.result(|cx, value| ptc_vm::print::pr_str(cx, value, 1_000).expect("printed").text)
}

/// A definition of a function that closes over `inner` functions and calls them all.
fn definition(name: &str, version: usize, inner: usize) -> String {
    let bound: String = (0..inner).map(|at| format!("g{at} (fn [] [{version} {at}]) ")).collect();
    let called: String = (0..inner).map(|at| format!("(g{at}) ")).collect();
    format!("(def {name} (let [{bound}] (fn [x] [{version} x {called}])))")
}

fn value(version: usize, inner: usize) -> String {
    let called: String = (0..inner).map(|at| format!(" [{version} {at}]")).collect();
    format!("[{version} :x{called}]")
}

#[test]
fn functions_are_what_they_were_whatever_was_loaded_and_freed_around_them() {
    let mut isolate = Isolate::new(Budget::default());
    let mut random = Random(18);
    let mut held: [Option<(usize, usize)>; NAMES.len()] = [None; NAMES.len()];
    for version in 0..400 {
        let (at, inner) = (random.below(NAMES.len()), random.below(6));
        match random.below(5) {
            // A run that leaves nothing.
            0 => {
                eval(&mut isolate, &definition(NAMES[at], version, inner));
                isolate.rollback();
            }
            1 => {
                isolate.undefine(None, NAMES[at]);
                isolate.commit(u64::MAX).expect("there is no bound");
                held[at] = None;
            }
            _ => {
                eval(&mut isolate, &definition(NAMES[at], version, inner));
                isolate.commit(u64::MAX).expect("there is no bound");
                held[at] = Some((version, inner));
            }
        }
        assert_eq!(isolate.programs(), held.iter().flatten().count(), "after {version}");
        for (name, held) in NAMES.iter().zip(held) {
            if let Some((version, inner)) = held {
                assert_eq!(eval(&mut isolate, &format!("({name} :x)")), value(version, inner));
            }
        }
        isolate.rollback();
    }
    for name in NAMES {
        isolate.undefine(None, name);
    }
    isolate.commit(u64::MAX).expect("there is no bound");
    assert_eq!(isolate.programs(), 0);
    assert_eq!(isolate.close(), 0);
}

#[test]
fn functions_of_freed_programs_are_other_functions_than_those_that_came_in_their_places() {
    let mut isolate = Isolate::new(Budget::default());
    for (name, version) in [("a", 1), ("b", 2), ("c", 3)] {
        eval(&mut isolate, &definition(name, version, 3));
        isolate.commit(u64::MAX).expect("there is no bound");
    }
    let before = isolate.live_bytes();
    isolate.undefine(None, "b");
    isolate.commit(u64::MAX).expect("there is no bound");
    // It fits into the slots, and so does the program that calls it.
    eval(&mut isolate, &definition("d", 4, 2));
    isolate.commit(u64::MAX).expect("there is no bound");
    assert_eq!(
        eval(&mut isolate, "[(= a c) (= a d) (= d d) (count #{a c d}) (d :x)]"),
        "[false false true 3 [4 :x [4 0] [4 1]]]"
    );
    isolate.rollback();
    isolate.undefine(None, "d");
    isolate.commit(u64::MAX).expect("there is no bound");
    eval(&mut isolate, &definition("b", 2, 3));
    isolate.commit(u64::MAX).expect("there is no bound");
    isolate.sweep();
    assert!(isolate.live_bytes() <= before, "{} of {before}", isolate.live_bytes());
    assert_eq!(isolate.close(), 0);
}

/// Attaches a prelude of one definition, in a program of its own.
fn attach(isolate: &mut Isolate, version: usize, inner: usize) -> UnitId {
    let calls: String = (0..inner).map(|at| format!("((fn [] [{version} {at}])) ")).collect();
    let text = format!("(ns m) (defn f [x] [{version} x {calls}])");
    let compiled = ptc_compiler::prelude::compile(&text, &CompileOptions::default()).expect("it compiles");
    let definition = &compiled.definitions[0];
    let DefinitionBody::Function(function) = definition.body else { panic!("a function") };
    let program = definition.program.clone();
    isolate.attach_function("m", "f", program, function).expect("there is room")
}

/// A host may replace an attached prelude: the old code is freed when nothing holds it any more.
#[test]
fn what_is_attached_no_more_goes_when_nothing_holds_it() {
    let mut isolate = Isolate::new(Budget::default());
    let keep = |isolate: &mut Isolate| isolate.commit(u64::MAX).expect("there is no bound");
    let mut attached = attach(&mut isolate, 0, 2);
    keep(&mut isolate);
    let empty = isolate.live_bytes();
    for version in 1..20 {
        isolate.undefine(Some("m"), "f");
        isolate.detach(attached);
        attached = attach(&mut isolate, version, version % 4);
        keep(&mut isolate);
        assert_eq!(isolate.programs(), 1, "after {version}");
    }
    isolate.undefine(Some("m"), "f");
    isolate.detach(attached);
    keep(&mut isolate);
    assert_eq!(isolate.programs(), 0);
    assert!(isolate.live_bytes() <= empty, "{} of {empty}", isolate.live_bytes());
    assert_eq!(isolate.close(), 0);
}

#[test]
fn a_program_without_functions_is_refused() {
    let mut isolate = Isolate::new(Budget::default());
    let compiled = compile("1", &Externals::default(), &CompileOptions::default()).expect("it compiles");
    let mut program = (*compiled.program).clone();
    program.protos.clear();
    assert!(isolate.load(program.into()).is_err());
    assert_eq!(isolate.close(), 0);
}
