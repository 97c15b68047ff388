//! Random programs run the same with every optimisation off.

use crate::properties::for_all;
use proptest::prelude::*;
use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_tests::grammar;
use ptc_tests::small_stack::on_small_stack;
use ptc_tests::variants::{self, Budget, Ending};
use ptc_vm::Isolate;
use ptc_vm::bytecode::verify::verify;
use ptc_vm::bytecode::{Const, Program};
use std::sync::atomic::{AtomicUsize, Ordering};

const BUDGET: Budget = Budget { fuel: 50_000, memory_bytes: 4 << 20 };

/// Value, prints, fault and fuel are the same with moves, the hot loop and interned keys on and off, and in slices of
/// any size; the verifier accepts the code; no memory stays behind.
#[test]
fn no_optimisation_shows() {
    on_small_stack(|| {
        let (done, all) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for_all(1_500, prop::collection::vec(any::<u8>(), 0..160), |choices| {
            let source = grammar::program(&choices);
            let Some(ran) = variants::compare(&source, &BUDGET) else { return };
            all.fetch_add(1, Ordering::Relaxed);
            done.fetch_add(usize::from(matches!(ran.ending, Ending::Done(_))), Ordering::Relaxed);
        });
        let (done, all) = (done.into_inner(), all.into_inner());
        assert!(all > 1_300 && done * 3 > all, "only {done} of {all} programs say something");
    });
}

/// The switch has an effect: without last uses an update copies what it changes.
#[test]
fn without_moves_an_update_copies() {
    let copied = |last_uses: bool| {
        let options = CompileOptions { last_uses, ..CompileOptions::default() };
        let source = "(let [v (mapv inc (range 100))] (let [w (assoc v 0 :changed)] (count w)))";
        let compiled = compile(source, &Externals::default(), &options).expect("compiles");
        let mut isolate = Isolate::new(ptc_vm::Budget::default());
        let unit = isolate.load(compiled.program).expect("loads");
        isolate.start(unit);
        assert_eq!(isolate.run(1_000_000), ptc_vm::Exit::Done);
        isolate.copied_elements()
    };
    assert_eq!(copied(true), 0);
    assert!(copied(false) >= 100);
}

/// A map literal takes its keys from a constant set: a set with fewer members than the map has values is refused.
#[test]
fn keys_of_a_record_are_different_names() {
    let compiled =
        compile("(let [x (+ 1 2)] {:a x \"b\" x})", &Externals::default(), &CompileOptions::default());
    let program = compiled.expect("compiles").program;
    assert_eq!(verify(&program), Ok(()));
    let keys = program.constants.iter().position(|constant| matches!(constant, Const::Set(_))).expect("keys");
    let Const::Set(rows) = program.constants[keys].clone() else { panic!("a set") };
    let equal = Const::Set(vec![rows[0]; 2]);
    let fewer = Const::Set(vec![rows[0]]);
    for (row, constant) in [(keys, equal), (keys, fewer), (usize::from(rows[1]), Const::Nil)] {
        let mut changed = Program::clone(&program);
        changed.constants[row] = constant;
        assert!(verify(&changed).is_err());
    }
}
