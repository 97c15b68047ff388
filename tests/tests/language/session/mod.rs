//! Tests of sessions: programs run one after the other in one isolate, which retains their definitions and the memory
//! of the fiber that returned last.
//!
//! - `transactions`: committed and rolled-back runs, against a model
//! - `namespaces`: functions that a host attaches
//! - `places`: functions of programs that come and go
//! - `hosted`: sessions of a runtime, against a model
//! - `tools`: sessions as clients of the server see them

mod hosted;
mod namespaces;
mod places;
mod tools;
mod transactions;

use ptc_compiler::{CompileOptions, Externals, SessionName, compile};
use ptc_vm::{Budget, Exit, Isolate, UnitId};

const SLICE: u64 = 1_000_000;

struct Session(Isolate);

impl Session {
    fn load(&mut self, source: &str) -> UnitId {
        let session = ["f", "deep"].map(|name| SessionName { name, arity: None });
        let externals = Externals { session: &session, ..Externals::default() };
        let compiled = compile(source, &externals, &CompileOptions::default()).expect(source);
        self.0.load(compiled.program).expect(source)
    }

    /// The text of the value, or how else it ended.
    fn run(&mut self, unit: UnitId) -> String {
        self.0.start(unit);
        loop {
            match self.0.run(SLICE) {
                Exit::SliceEnd => {}
                Exit::Done | Exit::Return => break,
                other => return format!("{other:?}").chars().take_while(|c| c.is_alphanumeric()).collect(),
            }
        }
        self.0.result(|cx, value| ptc_vm::print::pr_str(cx, value, 1_000).expect("printed").text)
    }

    fn eval(&mut self, source: &str) -> String {
        let unit = self.load(source);
        self.run(unit)
    }
}

#[test]
fn equal_programs_follow_definitions_that_changed_between_them() {
    let mut session = Session(Isolate::new(Budget::default()));
    let caller = session.load("(f 2)");
    let definitions = [
        ("(defn f [x] (+ x 1))", "3"),
        ("(defn f [x] (* x 10))", "20"),
        ("(defn f ([x] (f x 1)) ([x y] [x y]))", "[2 1]"),
        ("(def f [5 6 7])", "7"),
        ("(def f {2 :two})", ":two"),
        ("(def f (fn [x] (return (str x))))", "\"2\""),
        ("(defn f [x] (+ x \"a\"))", "Fault"),
        ("(defn f [x] x)", "2"),
    ];
    for (definition, expected) in definitions.into_iter().cycle().take(2 * definitions.len()) {
        session.eval(definition);
        // The next run begins anew, whatever runs in between and however it ends.
        for between in ["(+ 1 2)", "(+ 1 \"a\")", "(fail :x)", "(pmap inc [1 2 3])", "(deep 2000)"] {
            session.eval("(defn deep [n] (if (pos? n) (+ 1 (deep (dec n))) 0))");
            session.eval(between);
            assert_eq!(session.run(caller), expected, "{definition}, {between}");
            assert_eq!(session.run(caller), expected, "{definition}, {between}, again");
        }
    }
    assert_eq!(session.0.close(), 0);
}
