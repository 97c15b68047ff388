//! The language as the conformance cases define it.

use ptc_tests::conformance::{cases, run};
use ptc_tests::workspace;

/// Every case that belongs to this project gives its answer. Cases that do not yet are listed with their ids
/// in `known_failures.txt`; one that gives its answer must be taken off the list.
#[test]
fn our_own_cases() {
    let dir = workspace().join("tests/conformance");
    let report = run(&cases(&dir));
    println!("{report}");
    let known = std::fs::read_to_string(dir.join("known_failures.txt")).expect("the list");
    let known: Vec<&str> = known.lines().filter(|line| !line.starts_with('#')).collect();
    let id = |mismatch: &str| mismatch[1..].split(']').next().unwrap_or_default().to_owned();
    let failed: Vec<String> = report.mismatches.iter().map(|mismatch| id(mismatch)).collect();
    let new: Vec<&String> =
        report.mismatches.iter().filter(|mismatch| !known.contains(&id(mismatch).as_str())).collect();
    assert!(new.is_empty(), "{}", new.iter().map(|text| text.as_str()).collect::<Vec<_>>().join("\n"));
    let mended: Vec<_> = known.iter().filter(|known| !failed.iter().any(|failed| failed == *known)).collect();
    assert!(mended.is_empty(), "these pass now, so take them off the list: {mended:?}");
}

/// The whole corpus, where its folder lies beside this repository: the pass rate never falls below the floor.
#[test]
fn the_whole_corpus_keeps_its_level() {
    let dir = workspace().join("../shared/conformance");
    if !dir.is_dir() {
        eprintln!("SKIPPED: no corpus at {}", dir.display());
        return;
    }
    let report = run(&cases(&dir));
    println!("{report}");
    if std::env::var_os("PTC_SHOW_MISMATCHES").is_some() {
        println!("{}", report.mismatches.join("\n"));
    }
    let floor = std::fs::read_to_string(workspace().join("tests/conformance/corpus_floor.txt"));
    let floor: usize = floor.expect("the floor").trim().parse().expect("a number");
    assert!(report.passed() >= floor, "{report}\nthe floor is {floor}");
}
