//! Long and deep programs compile on a small native stack, or are refused with an error.

use ptc_compiler::{CompileOptions, Compiled, Externals, Rejection, compile};
use ptc_vm::Reason;
use ptc_vm::bytecode::LONGEST_NAME;

/// Native stack of these tests, too small for recursion over the length of a program.
const STACK: usize = 256 * 1024;

fn compile_on_small_stack(source: String) -> Result<Compiled, Rejection> {
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || compile(&source, &Externals::default(), &CompileOptions::default()))
        .expect("a thread starts")
        .join()
        .expect("the compiler does not panic")
}

fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

/// Nests a form almost as deep as the reader allows (some levels are left for brackets in its own text).
fn deepest(open: &str, inner: &str, close: &str) -> String {
    let opened: i32 = open.chars().map(|c| i32::from("([{".contains(c)) - i32::from(")]}".contains(c))).sum();
    nested(open, inner, close, 60 / opened as usize)
}

#[test]
fn deep_nests_of_every_form_compile() {
    for (open, close) in [
        ("(inc ", ")"),
        ("(vector 1 2 ", ")"),
        ("(if true ", " 2)"),
        ("(when (not ", ") 1)"),
        ("(-> ", " (if 1 2))"),
        ("(->> ", " (let [q 1] q))"),
        ("(-> 1 (or ", "))"),
        ("(cond-> 1 true (+ ", "))"),
        ("(some-> 1 (+ ", "))"),
        ("(case ", " 1 2 3)"),
        ("(cond false 1 :else ", ")"),
        ("(condp = 1 2 ", " 3)"),
        ("(and 1 ", ")"),
        ("(do 1 ", ")"),
        ("(as-> ", " x (inc x))"),
        ("(str ", " \"a\" \"b\" 1)"),
        ("(fail ", ")"),
        ("((fn [x] x) ", ")"),
        ("{:a ", "}"),
        ("#{", "}"),
        ("[", "]"),
    ] {
        let source = deepest(open, "1", close);
        if let Err(errors) = compile_on_small_stack(source.clone()) {
            panic!("{open}: {}", errors[0].message);
        }
    }
    for (open, close) in [
        ("(let [x ", "] x)"),
        ("(fn [] ", ")"),
        ("(loop [x ", "] (if x (recur nil) 1))"),
        ("(if-let [x ", "] x 1)"),
        ("(when-first [x ", "] x)"),
        ("(for [x ", "] x)"),
        ("(doseq [x ", "] x)"),
        ("(fn [{:keys [a b] :or {a 1} :as m} & [c & d]] ", ")"),
    ] {
        let source = deepest(open, "nil", close);
        if let Err(errors) = compile_on_small_stack(source.clone()) {
            panic!("{open}: {}", errors[0].message);
        }
    }
}

#[test]
fn sixty_five_levels_are_refused() {
    compile_on_small_stack(nested("(inc ", "1", ")", 64)).expect("64 levels");
    let errors = compile_on_small_stack(nested("(inc ", "1", ")", 65)).expect_err("too deep");
    assert_eq!(errors[0].reason, Reason::ParseError);
    assert_eq!(errors[0].message, "nesting depth exceeds limit of 64");
}

#[test]
fn closures_and_bindings_in_each_other_to_the_limit() {
    let source = deepest("(let [x 1] (fn [y] ", "[x y]", "))");
    compile_on_small_stack(source).expect("it compiles");
    let pattern = nested("[", "x", "]", 60);
    compile_on_small_stack(format!("(let [{pattern} nil] x)")).expect("it compiles");
}

#[test]
fn long_chains_compile() {
    let steps = "(+ 1) ".repeat(5_000);
    compile_on_small_stack(format!("(-> 0 {steps})")).expect("a long ->");
    compile_on_small_stack(format!("(->> 0 {steps})")).expect("a long ->>");
    compile_on_small_stack(format!("(some-> 0 {steps})")).expect("a long some->");
    compile_on_small_stack(format!("(as-> 0 x {})", "(+ x 1) ".repeat(5_000))).expect("a long as->");
    compile_on_small_stack(format!("(cond-> 0 {})", "true (+ 1) ".repeat(5_000))).expect("a long cond->");
    let clauses: String = (0..2_000).map(|n| format!("(= x {n}) :k{n} ")).collect();
    compile_on_small_stack(format!("(let [x 5] (cond {clauses}))")).expect("a long cond");
    let clauses: String = (0..5_000).map(|n| format!("{n} [x {n}] ")).collect();
    compile_on_small_stack(format!("(let [x 5] (case x {clauses} nil))")).expect("a long case");
    compile_on_small_stack(format!("(and {})", "true ".repeat(5_000))).expect("a long and");
    compile_on_small_stack(format!("(or {})", "(= 1 2) ".repeat(5_000))).expect("a long or");
    compile_on_small_stack(format!("(+ {})", "1 ".repeat(5_000))).expect("a long sum");
    compile_on_small_stack(format!("(str {})", "1 ".repeat(5_000))).expect("a long call");
    compile_on_small_stack("(def x 1) ".repeat(20_000)).expect("many forms");
}

#[test]
fn long_literals_compile() {
    let numbers: String = (0..20_000).map(|n| format!("{n} ")).collect();
    compile_on_small_stack(format!("[{numbers}]")).expect("a long constant vector");
    compile_on_small_stack(format!("(let [x 1] [x {numbers}])")).expect("a long vector");
    compile_on_small_stack(format!("(let [x -1] {{x 1 {numbers}}})")).expect("a long map");
    compile_on_small_stack(format!("(let [x -1] #{{x {numbers}}})")).expect("a long set");
}

#[test]
fn jumps_over_more_code_than_a_near_jump_reaches() {
    let body = "(println x) ".repeat(20_000);
    compile_on_small_stack(format!("(let [x 5] (if (= x 5) (do {body}) (when (< x 9) x)))"))
        .expect("far jumps");
}

#[test]
fn too_many_locals_are_refused() {
    let bindings: String = (0..300).map(|n| format!("x{n} {n} ")).collect();
    let uses: String = (0..300).map(|n| format!("x{n} ")).collect();
    let errors = compile_on_small_stack(format!("(let [{bindings}] [{uses}])")).expect_err("too many");
    assert_eq!(errors[0].reason, Reason::CompileMemoryExceeded);
    assert_eq!(errors[0].message, "function needs too many registers; split it");
}

#[test]
fn size_and_symbol_limits() {
    let options = CompileOptions { max_program_bytes: 10, ..CompileOptions::default() };
    let errors = compile("(+ 1 2 3 4)", &Externals::default(), &options).expect_err("too long");
    assert_eq!(errors[0].reason, Reason::ProgramTooLarge);
    assert_eq!(errors[0].message, "program size 11 bytes exceeds limit of 10");
    let keywords: String = (0..10_001).map(|n| format!(":k{n} ")).collect();
    let errors = compile_on_small_stack(keywords).expect_err("too many symbols");
    assert_eq!(errors[0].reason, Reason::SymbolLimitExceeded);
}

#[test]
fn many_constants_are_an_error_not_a_panic() {
    let numbers: String = (0..70_000).map(|n| format!("{} ", n + 40_000)).collect();
    let errors = compile_on_small_stack(format!("[{numbers}]")).expect_err("too many constants");
    assert_eq!(errors[0].reason, Reason::CompileMemoryExceeded);
}

/// Looking up a name takes bounded time, because names have bounded length.
#[test]
fn names_have_a_longest() {
    let (longest, longer) = ("n".repeat(LONGEST_NAME), "n".repeat(LONGEST_NAME + 1));
    for form in ["(def @ 1)", ":@", "(let [@ 1] @)", "'@", "{:keys [@]}"] {
        let source = |name: &str| form.replace('@', name);
        if let Err(errors) = compile_on_small_stack(source(&longest)) {
            // Its length has nothing to do with what it cannot mean.
            assert!(!errors[0].message.contains("bytes"), "{form}: {}", errors[0].message);
        }
        let Err(errors) = compile_on_small_stack(source(&longer)) else { panic!("{form} compiles") };
        assert!(errors[0].message.contains("this name has 257 bytes"), "{form}: {}", errors[0].message);
    }
}
