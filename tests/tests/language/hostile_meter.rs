//! Work that once was unaccounted, unpaid or uninterruptible is checked against the account, the fuel and the polls
//! of the isolate, without a clock.

use ptc_compiler::{CompileOptions, Externals, compile};
use ptc_vm::{Budget, Exit, Interrupt, InterruptKind, Isolate, Preempt, Preemption, Reason};
use std::cell::{Cell, RefCell};

thread_local! {
    static POLLS: Cell<u64> = const { Cell::new(0) };
    static LAST: Cell<u64> = const { Cell::new(u64::MAX) };
    static INTERRUPT: RefCell<Interrupt> = RefCell::default();
}

/// Counts polls, and ends the program at the last allowed one.
struct Counter;

impl Preempt for Counter {
    fn is_due(&self) -> bool {
        POLLS.set(POLLS.get() + 1);
        if POLLS.get() == LAST.get() {
            INTERRUPT.with_borrow(|interrupt| interrupt.set(InterruptKind::Deadline));
        }
        false
    }

    fn suspend(&self, _live_bytes: u64) {}
}

/// An isolate that has run the program to its first exit.
fn run(source: &str, memory_bytes: u64) -> (Isolate, Exit) {
    POLLS.set(0);
    let compiled = compile(source, &Externals::default(), &CompileOptions::default());
    let program = compiled.unwrap_or_else(|errors| panic!("{source}: {errors:?}")).program;
    let mut isolate = Isolate::new(Budget {
        memory_bytes,
        fuel: 20_000_000,
        preemption: Preemption::by(&Counter),
        interrupt: INTERRUPT.with_borrow(Interrupt::clone),
        ..Budget::default()
    });
    let unit = isolate.load(program).expect("loads");
    isolate.start(unit);
    loop {
        match isolate.run(10_000) {
            Exit::SliceEnd => {}
            exit => return (isolate, exit),
        }
    }
}

/// Peak of bytes on a program's account.
fn peak(source: &str) -> u64 {
    let (isolate, exit) = run(source, 1 << 30);
    assert!(matches!(exit, Exit::Done), "{source}: {exit:?}");
    let peak = isolate.peak_bytes();
    assert_eq!(isolate.close(), 0, "bytes left behind by {source}");
    peak
}

/// Bytes of 100,000 values.
const ITEMS: u64 = 100_000 * 16;

#[test]
fn arguments_are_on_the_account_while_a_call_has_them() {
    for call in [
        "(apply + v)",
        "(apply max v)",
        "(apply (partial + 1) v)",
        "(apply (fn [a & more] a) v)",
        "(apply (comp identity +) v)",
        "((apply partial + v))",
        "(apply (juxt +) v)",
        "(map (apply juxt (repeat 1 (apply partial + v))) [1])",
        "(apply (memoize +) v)",
        "(apply (fnil + 1) v)",
        "(apply (every-pred int?) v)",
        "(apply update {} :a (fn [& more] 1) v)",
    ] {
        let with = |body: &str| peak(&format!("(let [v (vec (range 100000))] {body} (count v))"));
        let (before, after) = (with("nil"), with(call));
        assert!(after >= before + ITEMS, "{call}: {before} and then {after} bytes");
    }
}

#[test]
fn arguments_are_held_to_the_limit() {
    for call in ["apply hash-set", "apply vector", "apply (fn [& more] nil)"] {
        let source = format!("(let [v (vec (range 400000))] (loop [] ({call} v) (recur)))");
        let (isolate, exit) = run(&source, 10 << 20);
        assert!(
            matches!(&exit, Exit::Fault(fault) if fault.reason == Reason::MemoryExceeded),
            "{call}: {exit:?}"
        );
        assert_eq!(isolate.close(), 0, "bytes left behind by {call}");
    }
}

#[test]
fn arguments_of_a_call_of_the_host_are_on_the_account_until_it_answers() {
    let source = "(let [v (vec (range 100000))] (apply tool/any v) (count v))";
    let (isolate, exit) = run(source, 1 << 30);
    assert!(matches!(exit, Exit::HostCall(_)), "{exit:?}");
    assert!(isolate.live_bytes() >= 2 * ITEMS, "{} bytes", isolate.live_bytes());
    assert_eq!(isolate.close(), 0);
}

/// What a program used, and how often it polled.
#[derive(Debug, PartialEq)]
struct Work {
    fuel: u64,
    polls: u64,
}

fn work(source: &str) -> Work {
    let (isolate, exit) = run(source, 1 << 30);
    assert!(matches!(exit, Exit::Done), "{source}: {exit:?}");
    let work = Work { fuel: isolate.fuel_used(), polls: POLLS.get() };
    assert_eq!(isolate.close(), 0, "bytes left behind by {source}");
    work
}

/// Collections of 200,000 items, and an update that copies one because it is read afterwards.
const UPDATES: &[(&str, &str)] = &[
    ("(mapv identity (range 200000))", "(assoc c 7 :x)"),
    ("(mapv identity (range 200000))", "(conj c 1)"),
    ("(mapv identity (range 200000))", "(cons 1 c)"),
    ("(mapv identity (range 200000))", "(update c 3 inc)"),
    ("(zipmap (range 200000) (range 200000))", "(assoc c 7 :x)"),
    ("(zipmap (range 200000) (range 200000))", "(assoc c :new :x)"),
    ("(zipmap (range 200000) (range 200000))", "(dissoc c 7)"),
    ("(zipmap (range 200000) (range 200000))", "(update c 7 inc)"),
    ("(zipmap (range 200000) (range 200000))", "(update-in c [7] inc)"),
    ("(set (range 200000))", "(conj c :x)"),
    ("(set (range 200000))", "(disj c 7)"),
    ("(apply str (repeat 400000 \"abcdefgh\"))", "(str c \"x\")"),
];

#[test]
fn a_copy_of_what_is_shared_polls_and_costs_what_no_copy_does() {
    // Twelve steps; programs differ by a poll or two.
    const LEAST: u64 = 200_000 / 16_384 - 2;
    for (collection, update) in UPDATES {
        let body = |body: &str| work(&format!("(let [c {collection}] {body})"));
        let nothing = body("(do 1 (count [c]))");
        let in_place = body(&format!("(do {update} (count [1]))"));
        let copied = body(&format!("(do {update} (count [c]))"));
        assert!(copied.polls >= nothing.polls + LEAST, "{update}: {nothing:?} and then {copied:?}");
        assert_eq!(copied.fuel, in_place.fuel, "{update}: a copy is no matter of the program's");
    }
}

#[test]
fn a_copy_ends_at_the_deadline() {
    for (collection, update) in UPDATES {
        let source = format!("(let [c {collection}] (do {update} (count [c])))");
        let before = work(&format!("(let [c {collection}] (do 1 (count [c])))")).polls;
        LAST.set(before + 2);
        let (isolate, exit) = run(&source, 1 << 30);
        LAST.set(u64::MAX);
        INTERRUPT.set(Interrupt::default());
        assert!(matches!(&exit, Exit::Fault(fault) if fault.reason == Reason::Timeout), "{update}: {exit:?}");
        assert_eq!(isolate.close(), 0, "bytes left behind by {update}");
    }
}

/// Polls of a program minus those of one that only makes the values.
fn polls_beside(values: &str, body: &str) -> u64 {
    let nothing = work(&format!("(let [{values}] nil)"));
    work(&format!("(let [{values}] {body} nil)")).polls.saturating_sub(nothing.polls)
}

#[test]
fn one_grapheme_of_many_marks_polls_wherever_it_is_looked_for() {
    // 600,000 bytes: 36 steps.
    let text = "s (str \"e\" (apply str (repeat 300000 \"\u{301}\")))";
    for body in [
        "(count s)",
        "(first s)",
        "(last s)",
        "(vec s)",
        "(subs s 1)",
        "(get s 0)",
        "(str/reverse s)",
        "(str/capitalize s)",
        "(str/split s \"\")",
        "(str/replace s \"\" \"-\")",
        "(str/escape s {})",
        "(format \"%.1s\" s)",
    ] {
        let polls = polls_beside(text, body);
        assert!(polls >= 30, "{body}: {polls} polls");
    }
}

#[test]
fn long_texts_are_read_and_copied_with_polls() {
    // 4 MiB.
    const LONG: &str = "s (reduce (fn [s _] (str s s)) \"abcdefgh\" (range 19))";
    // 1,000,000 bytes.
    const BLANKS: &str = "s (apply str (repeat 100000 \"          \"))";
    const ESCAPES: &str = "s (json/generate-string (apply str (repeat 500000 \"\n\")))";
    const CHARACTERS: &str = "s (conj (vec (repeat 200000 \"a\")) 1)";
    for (values, body, least) in [
        (LONG, "(str 1 s)", 15),
        (LONG, "(subs s 1)", 15),
        (LONG, "(str \"\" s)", 15),
        (LONG, "(str/join s [1 2])", 15),
        (BLANKS, "(json/parse-string s)", 14),
        (BLANKS, "(json/parse-string (str s \"1\"))", 14),
        (BLANKS, "(json/parse-string (str \"[1\" s \"]\"))", 14),
        (ESCAPES, "(json/parse-string s)", 14),
        (CHARACTERS, "(println s)", 40),
    ] {
        let polls = polls_beside(values, body);
        assert!(polls >= least, "{body}: {polls} polls");
    }
}

#[test]
fn branches_poll_however_little_they_do() {
    for form in ["(pmap identity v)", "(pmap :a v)", "(apply pcalls (map constantly v))"] {
        let polls = polls_beside("v (range 3000)", form);
        assert!(polls >= 3000, "{form}: {polls} polls");
    }
}

#[test]
fn what_comparing_keeps_is_on_the_account() {
    let maps = "a (zipmap (range 100000) (range 100000)) b (zipmap (range 100000) (range 100000))";
    let with = |body: &str| peak(&format!("(let [{maps}] {body} (count [a b]))"));
    let nothing = with("nil");
    for body in ["(= a b)", "(compare a b)", "(sort [a b])"] {
        let peak = with(body);
        assert!(peak >= nothing + 100_000 * 24, "{body}: {nothing} and then {peak} bytes");
    }
}

#[test]
fn a_number_of_json_has_a_longest_form() {
    let number = |zeros: usize| {
        let source = format!("(json/parse-string (str \"0.\" (apply str (repeat {zeros} \"0\")) \"1\"))");
        let (mut isolate, exit) = run(&source, 1 << 30);
        assert!(matches!(exit, Exit::Done), "{exit:?}");
        let text = isolate.result(|cx, value| ptc_vm::print::pr_str(cx, value, 100)).expect("prints").text;
        assert_eq!(isolate.close(), 0);
        text
    };
    assert_eq!(number(3), "0.0001");
    assert_eq!(number(65_000), "0.0");
    assert_eq!(number(66_000), "nil");
}
