//! Compiler, VM and JSON work on a native stack of 256 KiB: nothing recurses over values.

use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_tests::small_stack::on_small_stack;
use ptc_vm::{Budget, Exit, Isolate, Reason};
use std::hint::black_box;
use std::process::Command;

/// The test below, which must overflow, that a child process of this binary runs.
const OVERFLOW: &str = "PTC_TEST_OVERFLOW";

fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    if depth == 0 { 0 } else { frame[3].min(1) + recurse(black_box(depth - 1)) }
}

/// 10,000 frames of 128 bytes need more than 256 KiB: the helper must detect that.
#[test]
fn the_helper_bites() {
    if std::env::var_os(OVERFLOW).is_some() {
        assert_eq!(on_small_stack(|| recurse(10_000)), 10_000);
        return;
    }
    let test = std::env::current_exe().expect("this binary");
    let ran = Command::new(test)
        .args(["--exact", "small_stack::the_helper_bites"])
        .env(OVERFLOW, "1")
        .output()
        .expect("ran");
    assert!(!ran.status.success(), "10,000 frames fit: the stack is not small");
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(stderr.contains("overflowed its stack"), "{stderr}");
    // The same work fits into a larger stack.
    let roomy = std::thread::Builder::new().stack_size(64 << 20).spawn(|| recurse(10_000));
    assert_eq!(roomy.expect("a thread").join().expect("no overflow"), 10_000);
}

/// How a program ended: its text, or the reason.
fn run(source: String, memory_bytes: u64) -> Result<String, Reason> {
    on_small_stack(move || {
        let compiled = compile(&source, &Externals::default(), &CompileOptions::default());
        let program = compiled.map_err(|errors| errors[0].reason)?.program;
        let mut isolate = Isolate::new(Budget { memory_bytes, ..Budget::default() });
        let unit = isolate.load(program).map_err(|fault| fault.reason)?;
        isolate.start(unit);
        let result = loop {
            match isolate.run(100_000) {
                Exit::SliceEnd => {}
                Exit::Done => {
                    let text = isolate.result(|cx, value| ptc_vm::print::pr_str(cx, value, 1 << 16));
                    break text.map_err(|fault| fault.reason);
                }
                Exit::Fault(fault) => break Err(fault.reason),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(isolate.close(), 0, "bytes left behind by {source}");
        result.map(|printed| printed.text)
    })
}

const ROOMY: u64 = 1 << 30;

fn deep(depth: u32, use_it: &str) -> String {
    format!(
        "(def nest (fn [n] (reduce (fn [a _] [a]) nil (range n)))) (let [x (nest {depth}) y (nest {depth})] {use_it})"
    )
}

#[test]
fn deep_values() {
    for (what, answer) in [
        ("(= x y)", "true"),
        ("(count (set [x y]))", "1"),
        ("(get {x 1} y)", "1"),
        ("(compare x y)", "0"),
        ("(count (flatten [x y]))", "2"),
        ("(count (distinct [x y]))", "1"),
        ("(do x nil)", "nil"),
    ] {
        assert_eq!(run(deep(100_000, what), ROOMY).as_deref(), Ok(answer), "{what}");
    }
    for what in ["(count (pr-str x))", "(count (str x))", "(count (json/generate-string x))", "x"] {
        let ended = run(deep(100_000, what), ROOMY);
        assert!(ended.is_ok() || ended == Err(Reason::TypeError), "{what}: {ended:?}");
    }
}

#[test]
fn deep_values_of_every_kind() {
    for step in ["[a]", "(list a)", "{:k a}", "#{a}", "{a :v}", "(fn [] a)", "(partial a)", "[1 [2 {:k a}]]"]
    {
        let source = format!("(let [x (reduce (fn [a _] {step}) inc (range 20000))] (do x 1))");
        assert_eq!(run(source, ROOMY).as_deref(), Ok("1"), "{step}");
    }
}

#[test]
fn deep_json() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [100, 10_000, 300_000] {
        let source = format!("(count [(json/parse-string {:?})])", nested(depth));
        let ended = run(source, ROOMY);
        assert_eq!(ended.as_deref(), Ok("1"), "depth {depth}");
    }
    let broken = format!("(json/parse-string {:?})", "[".repeat(300_000));
    assert!(run(broken, ROOMY).as_deref() == Ok("nil"));
}

#[test]
fn deep_calls() {
    let source = "(defn f [n] (if (= n 0) 0 (inc (f (dec n))))) (f 100000)";
    assert_eq!(run(source.into(), ROOMY).as_deref(), Ok("100000"));
    assert_eq!(run("(defn f [n] (inc (f n))) (f 1)".into(), 10 << 20), Err(Reason::MemoryExceeded));
    let nested_natives =
        "(defn f [n] (if (= n 0) 0 (reduce + (map (fn [x] (inc (f (dec n)))) [1])))) (f 20000)";
    assert_eq!(run(nested_natives.into(), ROOMY).as_deref(), Ok("20000"));
    let sorts = "(defn f [n] (if (= n 0) 0 (first (sort-by (fn [x] (f (dec n))) [n n])))) (f 10)";
    assert_eq!(run(sorts.into(), ROOMY).as_deref(), Ok("10"));
}

/// The reader's limit is 64 levels, so the compiler may recurse over forms.
#[test]
fn nested_source() {
    for (open, close) in [
        ("[", "]"),
        ("(do ", ")"),
        ("(inc ", ")"),
        ("(let [x 1] ", ")"),
        ("(if true ", " 2)"),
        ("(fn [] ", ")"),
        ("((fn [x] x) ", ")"),
        ("(-> 1 (+ ", "))"),
        ("(cond false 1 :else ", ")"),
        ("(map (fn [x] ", ") [1])"),
        ("(let [{:keys [a] :or {a ", "}} {}] a)"),
        ("(for [x [1] :let [y 2] :when true] ", ")"),
        ("(loop [i 0] ", ")"),
        ("(when-let [x ", "] x)"),
        ("(case 1 1 ", " 2)"),
        ("{:a ", "}"),
        ("#{", "}"),
    ] {
        let levels = open.matches(['(', '[', '{']).count().max(1);
        let fits = 60 / levels;
        let source = format!("(do {}1{} nil)", open.repeat(fits), close.repeat(fits));
        let ended = run(source.clone(), ROOMY);
        assert!(
            !matches!(ended, Err(Reason::ParseError | Reason::CompileError | Reason::ExecutionError)),
            "{ended:?} {source}"
        );
        for deep in [65, 1_000, 20_000] {
            let source = format!("{}1{}", open.repeat(deep), close.repeat(deep));
            assert_eq!(run(source, ROOMY), Err(Reason::ParseError), "{open} {deep} times");
        }
    }
}

/// Long, flat source has no such limit.
#[test]
fn long_source() {
    let ands = format!("(and {})", "true ".repeat(20_000));
    assert_eq!(run(ands, ROOMY).as_deref(), Ok("true"));
    let threads = format!("(-> 0 {})", "inc ".repeat(5_000));
    assert_eq!(run(threads, ROOMY).as_deref(), Ok("5000"));
    let conds = format!("(cond {} :else 7)", "false 1 ".repeat(5_000));
    assert_eq!(run(conds, ROOMY).as_deref(), Ok("7"));
    let lets = (0..2_000).map(|n| format!("x{n} {n} ")).collect::<String>();
    let ended = run(format!("(let [{lets}] x1999)"), ROOMY);
    assert!(matches!(ended.as_deref(), Ok("1999") | Err(Reason::CompileMemoryExceeded)), "{ended:?}");
    let forms = (0..5_000).map(|n| format!("(def y{n} {n}) ")).collect::<String>();
    assert_eq!(run(format!("{forms} y4999"), ROOMY).as_deref(), Ok("4999"));
}
