//! The cached shape of a context, retained from one attempt to the next, is invisible to programs.

use ptc_compiler::{CompileOptions, Externals};
use ptc_vm::bytecode::Program;
use ptc_vm::print::pr_str;
use ptc_vm::{Budget, Exit, Isolate, UnitId};
use std::sync::Arc;

/// The observable result of a run: the text of its value, or nothing, with fuel and peak memory.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Value {
        text: String,
        fuel: u64,
        peak: u64,
    },
    /// The program ran and failed.
    Fault {
        message: String,
        fuel: u64,
    },
    /// The context is not valid.
    NoContext(String),
}

const LONG: &str =
    "a text of more than sixty-four bytes, which is searched for its end in another way: quite long";

fn contexts() -> Vec<String> {
    let many: String = (0..40).map(|at| format!(r#""k{at}":{at},"#)).collect();
    let several: Vec<String> = (0..10).map(|at| format!(r#""k{at}":"{at}""#)).collect();
    let rows = r#"{"id":1,"tag":"x"},"#.repeat(60);
    let mut all: Vec<String> = [
        r#"{"a":1,"name":"bench"}"#,
        r#"{"a":2,"name":"b\u0065nch"}"#,
        r#" { "a" : -3 , "name" : "ä" } "#,
        "{\"a\":1.5,\n\"name\":null}",
        r#"{"name":"bench","a":1}"#,
        r#"{"a":1,"name":"bench","more":true}"#,
        r#"{"a":1}"#,
        r#"{}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"name":1,"name":2}"#,
        r#"{"\u0061":1,"name":2}"#,
        r#"{"a":[1,{"name":"a"},"name"],"name":{"a":{"b":[]}}}"#,
        r#"{"a":{"a":"x"},"name":"x"}"#,
        r#"{"a":12345678901234567890,"name":"1"}"#,
        r#"{"a\"b":1,"name":2}"#,
        r#"{"a"b":1,"name":2}"#,
        r#"{"a":1,"name":2} x"#,
        r#"{"a":1,"name":2,}"#,
        r#"{"a":1,"name":tru}"#,
        r#"{"a":1 "name":2}"#,
        r#"{"a":1,"name"}"#,
        r#"{"a":1,"nam"#,
        r#"{"a":01,"name":2}"#,
        "{\"a\":\"\t\",\"name\":2}",
        "[]",
        "",
        r#"{"a":{"id":1,"tag":"x"},"name":"bench"}"#,
        r#"{"a":{"id":2,"tag":null},"name":"n"}"#,
        r#"{"a":{"id":2,"tag":null },"name":"n"}"#,
        r#"{"a":{"tag":null,"id":2},"name":"n"}"#,
        r#"{"a":{"id":2,"tag":[]},"name":"n"}"#,
        r#"{"a":{"id":2},"name":"n"}"#,
        r#"{"a":{"id":2,"tag":1},"name":{"id":3,"tag":4}}"#,
        r#"{"a":[1,2,3],"name":[[1],[2,[3]],[]]}"#,
        r#"{"a":[],"name":[[],[],[]]}"#,
        r#"{"a":[1 , "2" ],"name":[[1],[2],[]]}"#,
        r#"{"a":[1,],"name":[]}"#,
        r#"{"a":[1,2,"name":[]}"#,
        r#"{"a":[{"id":1,"tag":"x"},{"id":2,"tag":"y"}],"name":"rows"}"#,
        r#"{"a":[{"id":1,"tag":"x"},{"id":2,"tag":"y"},{"id":3,"tag":"z"}],"name":"rows"}"#,
        r#"{"a":[{"id":1,"tag":"x"},{"id":2,"tag":"y"},{"id":3,"tag":{}}],"name":"rows"}"#,
        r#"{"a":[{"id":1,"tag":"x"},{"id":2}],"name":"rows"}"#,
        r#"{"a":[{"id":1,"tag":"x"},{"id":2,"tug":1},{"id":2,"tag":1}],"name":"rows"}"#,
        r#"{"a":[],"name":"rows"}"#,
        r#"{"a":[{"id":1,"id":"x"},{"id":2,"id":"y"}],"name":"rows"}"#,
        r#"{"a":[{"i\u0064":1},{"id":2}],"name":"rows"}"#,
        r#"{"a":[{"i\"d":1},{"i\"d":2}],"name":"rows"}"#,
        r#"{"a":[{"i\"d":1},{"i"d":2}],"name":"rows"}"#,
        r#"{"a":[{"id":{"tag":1,"b":[{"c":1}]}},{"id":{"tag":2,"b":[{"c":2},{"c":3}]}}],"name":1}"#,
        r#"{"a":[{"id":{"tag":1,"b":[{"c":1}]}},{"id":{"tag":2,"b":[]}}],"name":1}"#,
        r#"{"a":[[[[[[[[[1]]]]]]]]],"name":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}}"#,
        r#"{"a":{},"name":[{},{}]}"#,
    ]
    .map(str::to_owned)
    .into();
    all.push(format!(r#"{{"a":"{LONG}","name":"{LONG}\n{LONG}"}}"#));
    all.push(format!(r#"{{"a":[{rows}1],"name":["x","tag","x"]}}"#));
    all.push(format!(r#"{{"a":[{rows}1],"nam":"x"}}"#));
    all.push(format!("{{{}}}", several.join(",")));
    all.push(format!("{{{}}}", several[..2].join(",")));
    all.push(format!(r#"{{{many}"a":1,"name":2}}"#));
    all
}

fn seen(exit: &Exit, cx: &mut ptc_vm::Context, value: &ptc_vm::Value, peak: u64) -> Seen {
    match exit {
        Exit::Done => {
            let fuel = cx.fuel.used();
            let text = pr_str(cx, value, 1 << 16).expect("it fits").text;
            Seen::Value { text, fuel, peak }
        }
        Exit::Fault(fault) if fault.location.is_none() => Seen::NoContext(fault.message.as_str().to_owned()),
        Exit::Fault(fault) => {
            Seen::Fault { message: fault.message.as_str().to_owned(), fuel: cx.fuel.used() }
        }
        other => panic!("no end: {other:?}"),
    }
}

fn prepared(program: &Arc<Program>) -> (Isolate, UnitId) {
    let mut isolate = Isolate::new(Budget { strict_data: true, ..Budget::default() });
    let unit = isolate.attach(program.clone()).expect("it loads");
    isolate.commit(u64::MAX).expect("no limit");
    (isolate, unit)
}

#[test]
fn a_context_after_another_one_is_read_as_if_it_were_the_first() {
    let sources = [
        "(+ 1 2)",
        "[data/a data/name]",
        "[(get data/a 0) (count (str data/name))]",
        "(def kept {:name data/name}) (assoc kept \"a\" (keyword \"name\") :k (hash-map \"name\" data/a))",
        "(map (fn [k] [k data/k1]) [\"k1\" \"tag\"])",
        "(let [rows (if (vector? data/a) data/a [data/a])] [(map keys (filter map? rows)) (pr-str rows)])",
        "(map (fn [row] (if (map? row) (assoc (dissoc row \"tag\") :k (get row :id) \"id\" 3) row)) [data/a data/name])",
        "(def rows (map (fn [k] (keyword (str k))) (if (map? data/a) (keys data/a) [\"tag\"]))) [rows data/a]",
    ];
    for source in sources {
        let compiled = ptc_compiler::compile(source, &Externals::default(), &CompileOptions::default());
        let program = compiled.expect("a program").program;
        let attempt = |(isolate, unit): &mut (Isolate, UnitId), context: &str| {
            isolate.attempt(*unit, Some(context), 1 << 20, |cx, ended| {
                seen(ended.exit, cx, ended.value, ended.peak_bytes)
            })
        };
        let first: Vec<Seen> = contexts()
            .iter()
            .map(|context| {
                let (mut isolate, unit) = prepared(&program);
                let exit = match isolate.set_context(context) {
                    Ok(()) => {
                        isolate.start(unit);
                        isolate.run(1 << 20)
                    }
                    Err(fault) => Exit::Fault(fault),
                };
                let peak = isolate.peak_bytes();
                let seen = isolate.result(|cx, value| seen(&exit, cx, value, peak));
                assert_eq!(isolate.close(), 0, "{source} left bytes behind with {context}");
                seen
            })
            .collect();
        for before in contexts() {
            let mut again = prepared(&program);
            for (context, expected) in contexts().iter().zip(&first) {
                attempt(&mut again, &before);
                assert_eq!(attempt(&mut again, context), *expected, "{source}: {context} after {before}");
                assert_eq!(attempt(&mut again, context), *expected, "{source}: {context} again");
            }
            // Committing and sweeping must not confuse names of retained values with remembered keys.
            again.0.commit(u64::MAX).expect("no limit");
            again.0.sweep();
            attempt(&mut again, &before);
            assert_eq!(again.0.close(), 0, "{source} left bytes behind after {before}");
        }
    }
}
