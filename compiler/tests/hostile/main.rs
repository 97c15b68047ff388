//! Texts that are meant to be expensive: compiling any text takes steps in proportion to its length, and ends at the
//! limits of its budget of time, memory and steps.

mod allocator;
mod families;

use allocator::peak_of;
use families::{ALL, Family};
use ptc_compiler::diagnostic::Report;
use ptc_compiler::{CompileBudget, CompileOptions, Compiled, Externals, Rejection, compile, inspect};
use ptc_vm::fault::bounded_text::MOST;
use ptc_vm::{Interrupt, InterruptKind, Reason};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest program that is compiled by default.
const LONGEST: usize = 1_000_000;

/// Memory of a program by default.
const MEMORY: u64 = 10 << 20;

const MIB: f64 = (1 << 20) as f64;

fn options(memory: u64, interrupt: &Interrupt) -> CompileOptions {
    let budget = CompileBudget::for_memory(memory, Some(interrupt.clone()));
    CompileOptions { budget, ..CompileOptions::default() }
}

fn compiled(source: &str, options: &CompileOptions) -> Result<Compiled, Rejection> {
    compile(source, &Externals::default(), options)
}

/// The reason of a refusal.
fn reason(result: &Result<Compiled, Rejection>) -> Option<Reason> {
    result.as_ref().err().map(|rejection| rejection[0].reason)
}

#[test]
fn steps_grow_as_the_text_does() {
    let options = CompileOptions { max_symbols: usize::MAX, ..CompileOptions::default() };
    let steps = |text: &str| inspect::steps(text, &Externals::default(), &options);
    let mut steep = Vec::new();
    for Family { name, text } in ALL {
        let (small, large) = (text(20_000), text(80_000));
        let growth = steps(&large) as f64 / steps(&small) as f64;
        if growth > 4.6 {
            steep.push(format!("{name}: {growth:.2}"));
        }
        assert_eq!(steps(&small), steps(&small), "{name}");
    }
    assert!(steep.is_empty(), "{steep:#?}");
}

#[test]
fn the_longest_texts_end_and_say_why_in_few_words() {
    let options = options(MEMORY, &Interrupt::default());
    for Family { name, text } in ALL.iter().filter(|family| !family.name.contains("patterns")) {
        let source = text(LONGEST);
        let (result, peak) = peak_of(|| compiled(&source, &options));
        // The arena reserves twice what it has, and touches only what it needs: see below.
        let most = 3 * options.budget.memory_bytes;
        assert!(peak as u64 <= most, "{name}: {:.1} MiB", peak as f64 / MIB);
        let Err(rejection) = result else { continue };
        assert!(rejection.len() <= 20, "{name}: {} errors", rejection.len());
        for error in rejection.iter() {
            let texts = error.hints.iter().chain([&error.message]);
            assert!(texts.map(|text| text.chars().count()).max() <= Some(MOST), "{name}");
            let report = Report::from_diagnostic(error, &source).compact();
            assert!(report.chars().count() < 4 * MOST, "{name}: {report}");
        }
    }
}

#[test]
fn errors_that_are_not_kept_are_counted() {
    let refused = |source: &str| compiled(source, &CompileOptions::default()).expect_err(source);
    let members = refused(&"(foo/bar 1)".repeat(1_000));
    assert_eq!((members.len(), members.more), (20, 980));
    let names: String = (0..1_000).map(|number| format!("(zork{number})")).collect();
    let names = refused(&names);
    assert_eq!((names.len(), names.more), (20, 980));
    let few = refused("(zork)(zork)(foo/bar 1)");
    assert_eq!((few.len(), few.more), (2, 0));
}

#[test]
fn the_interrupt_ends_a_compilation() {
    let long = "(str 1 [2 {:a 3}])".repeat(20_000);
    for (kind, wanted) in
        [(InterruptKind::Deadline, Reason::CompileTimeout), (InterruptKind::Cancelled, Reason::Cancelled)]
    {
        let interrupt = Interrupt::default();
        interrupt.set(kind);
        let options = options(100 << 20, &interrupt);
        assert_eq!(reason(&compiled(&long, &options)), Some(wanted));
        assert_eq!(reason(&compiled(&"#".repeat(LONGEST), &options)), Some(wanted));
        assert_eq!(reason(&compiled("(+ 1 2)", &options)), Some(wanted));
        // A stopped compilation leaves nothing behind.
        assert_eq!(reason(&compiled("(+ 1 2)", &CompileOptions::default())), None);
    }
}

#[test]
fn the_interrupt_is_looked_at_all_the_time() {
    const RAISED: Duration = Duration::from_millis(50);
    // Generous, for a machine with other load; none of the texts would be finished by the first deadline.
    const SOON: Duration = Duration::from_secs(5);
    for name in ["unknown members", "calls", "letters of another script apart", "metadata"] {
        let family = ALL.iter().find(|family| family.name == name).expect(name);
        let source = (family.text)(20 * LONGEST);
        let interrupt = Interrupt::default();
        let options = CompileOptions { max_program_bytes: usize::MAX, ..options(4 << 30, &interrupt) };
        let begun = Instant::now();
        let (result, late) = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(RAISED);
                interrupt.set(InterruptKind::Deadline);
            });
            (compiled(&source, &options), begun.elapsed())
        });
        assert!(late < RAISED + SOON, "{name}: {late:?}");
        assert_eq!(reason(&result), Some(Reason::CompileTimeout), "{name}: {late:?}");
    }
}

#[test]
fn memory_is_bounded_in_every_pass() {
    // However small the budget, it ends with this reason; a larger one makes the program compile.
    let source = "(defn f [x] (let [y [x {:a x}]] (if (and x y) (str x \"a\" y) :none)))".repeat(4_000);
    let mut ends = Vec::new();
    for memory in [0, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 128 << 20] {
        let budget = CompileBudget { memory_bytes: memory, ..CompileBudget::default() };
        ends.push(reason(&compiled(&source, &CompileOptions { budget, ..CompileOptions::default() })));
    }
    assert_eq!((ends.first(), ends.last()), (Some(&Some(Reason::CompileMemoryExceeded)), Some(&None)));
    ends.dedup();
    assert_eq!(ends.len(), 2, "{ends:?}");
}

#[test]
fn expansion_without_end_is_refused_by_its_steps() {
    // Each level doubles: a loop destructures its patterns twice, and so the function in their default.
    let (open, close) = ("(fn [] (loop [{:keys [a] :or {a ", "}} {}] (if a (recur nil) 1)))");
    let source = format!("{}(fn [] {}){}", open.repeat(12), "(inc 1)".repeat(100), close.repeat(12));
    let result = compiled(&source, &CompileOptions::default());
    assert_eq!(reason(&result), Some(Reason::CompileTimeout));
}

/// The family that a child process measures.
const CHILD: &str = "PTC_RESIDENT_OF";

#[test]
fn resident_memory_stays_near_the_limit() {
    if let Ok(family) = std::env::var(CHILD) {
        return compile_alone(&family);
    }
    let path = std::env::current_exe().expect("this very program");
    let begin = |family: &Family| {
        Command::new(&path)
            .args(["--exact", "resident_memory_stays_near_the_limit", "--nocapture"])
            .env(CHILD, family.name)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    for families in ALL.chunks(4) {
        let children: Vec<_> = families.iter().map(begin).collect();
        for (family, child) in families.iter().zip(children) {
            let output = child.wait_with_output().expect("it ends");
            let text = String::from_utf8_lossy(&output.stdout);
            let resident = text.lines().find_map(|line| line.strip_prefix("resident ")?.parse().ok());
            let resident: u64 = resident.unwrap_or_else(|| panic!("{}: {text}", family.name));
            let limit = 2 * MEMORY + (30 << 20);
            assert!(resident <= limit, "{}: {:.1} MiB", family.name, resident as f64 / MIB);
        }
    }
}

fn compile_alone(family: &str) {
    let family = ALL.iter().find(|known| known.name == family).expect(family);
    let interrupt = Interrupt::default();
    let options = options(MEMORY, &interrupt);
    let source = (family.text)(LONGEST);
    std::thread::scope(|scope| {
        // As in a run of a second: some take long to end.
        let watch = scope.spawn(|| {
            std::thread::park_timeout(Duration::from_secs(1));
            interrupt.set(InterruptKind::Deadline);
        });
        let _ = compiled(&source, &options);
        watch.thread().unpark();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0);
        println!("\nresident {}", kib << 10);
    });
}
