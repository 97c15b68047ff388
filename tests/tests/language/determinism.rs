//! Value, prints and fuel of a program are a function of its text, its context and the answers of its host: they are
//! the same in every process. Random programs run in several processes; `PTC_PROCESSES=100` runs as many.

use ptc_tests::grammar;
use ptc_tests::variants::{self, Budget, USUAL};
use std::fmt::Write;
use std::process::{Child, Command, Stdio};

/// Names the file into which a child process of this test writes its results.
const REPORT: &str = "PTC_TEST_REPORT";

/// Number of processes to compare by default.
const PROCESSES: usize = 4;

/// Number of processes that run at the same time.
const TOGETHER: usize = 4;

const RANDOM_PROGRAMS: u64 = 1_000;

const SMALL: Budget = Budget { fuel: 50_000, memory_bytes: 4 << 20 };
const LARGE: Budget = Budget { fuel: 50_000_000, memory_bytes: 64 << 20 };

/// Programs with so many keys that some collide by chance: an extra comparison in one process would show in the fuel.
const CROWDED: &[&str] = &[
    "(count (frequencies (map (fn [n] [(str n) 1]) (range 40000))))",
    "(count (group-by (fn [n] {:id (str \"row\" n)}) (range 40000)))",
    "(count (set (map (fn [n] #{(str n) :a}) (range 40000))))",
    "(count (distinct (map (fn [n] {(str \"k\" n) n}) (range 40000))))",
    "(count (zipmap (map (fn [n] [:k (keyword (str \"k\" (mod n 4000))) n]) (range 40000)) (range 40000)))",
    "(count (frequencies (map (fn [n] [(LocalDate/parse \"2024-01-02\") (str n)]) (range 40000))))",
    "(count (frequencies (map (fn [n] [(* n 9223372036854775807) (str n)]) (range 40000))))",
    "(count (reduce (fn [m n] (assoc m [n (str n)] [(str n)])) {} (range 40000)))",
    // Among others, keys that collide because they begin alike.
    "(let [wide (fn [n] [0 0 0 0 0 0 0 0 n])
           s (into (set (map str (range 200))) (map wide (range 200)))]
       [(count (filter s (map wide (range 300)))) (sort (map str (take 20 s)))])",
];

fn programs() -> impl Iterator<Item = (String, Budget)> {
    // Pseudo-random numbers, the same in every process.
    let mut state = 1u64;
    let mut number = move || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state >> 33) as u8
    };
    let random = (0..RANDOM_PROGRAMS).map(move |_| {
        let choices: Vec<u8> = (0..160).map(|_| number()).collect();
        (grammar::program(&choices), SMALL)
    });
    random.chain(CROWDED.iter().map(|&source| (source.to_owned(), LARGE)))
}

/// The results of all programs, one line each.
fn report() -> String {
    programs().fold(String::new(), |mut report, (source, budget)| {
        let ran = variants::run(&source, &budget, &USUAL);
        writeln!(report, "{ran:?}").expect("a string");
        report
    })
}

fn start(file: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "determinism::programs_leave_the_same_in_every_process"])
        .env(REPORT, file)
        .stdout(Stdio::null())
        .spawn()
        .expect("starts")
}

#[test]
fn programs_leave_the_same_in_every_process() {
    if let Some(file) = std::env::var_os(REPORT) {
        std::fs::write(file, report()).expect("written");
        return;
    }
    let count = std::env::var("PTC_PROCESSES").ok().and_then(|count| count.parse().ok()).unwrap_or(PROCESSES);
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<_> = (0..count).map(|process| folder.path().join(process.to_string())).collect();
    let mut known: Option<String> = None;
    for together in files.chunks(TOGETHER) {
        let children: Vec<Child> = together.iter().map(|file| start(file)).collect();
        for (mut child, file) in children.into_iter().zip(together) {
            assert!(child.wait().expect("ends").success());
            let report = std::fs::read_to_string(file).expect("written");
            let known = known.get_or_insert_with(|| report.clone());
            for (((source, _), known), found) in programs().zip(known.lines()).zip(report.lines()) {
                assert_eq!(known, found, "{source}");
            }
            assert_eq!(known.lines().count(), RANDOM_PROGRAMS as usize + CROWDED.len());
            assert_eq!(*known, report);
        }
    }
    let known = known.expect("a process at least");
    let done = known.lines().filter(|line| line.contains("Done(")).count();
    assert!(done * 3 > RANDOM_PROGRAMS as usize, "only {done} programs say something");
}
