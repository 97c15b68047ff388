//! Runs the conformance cases of the language.

use ptc_tests::conformance::{Report, cases, run};
use ptc_tests::workspace;

/// Every case of this project passes. Cases that do not pass yet are listed by id in `known_failures.txt`; a listed
/// case that passes must be removed from the list.
#[test]
fn our_own_cases() {
    let dir = workspace().join("tests/conformance");
    let report = run(&cases(&dir));
    println!("{report}");
    let known = std::fs::read_to_string(dir.join("known_failures.txt")).expect("the list");
    let known: Vec<&str> = known.lines().filter(|line| !line.starts_with('#')).collect();
    compare(&report, &known);
}

/// Every case of the whole corpus passes, if its folder exists next to this repository. `tests/known_gaps` lists the
/// exceptions with reasons; a listed case that passes must be removed from the list.
#[test]
#[cfg_attr(not(corpus), ignore = "no corpus beside the repository")]
fn the_whole_corpus_but_for_known_gaps() {
    let dir = workspace().join("../shared/conformance");
    let report = run(&cases(&dir));
    println!("{report}");
    let list = std::fs::read_to_string(workspace().join("tests/known_gaps")).expect("the list");
    let rows = list.lines().filter(|line| !line.starts_with('#'));
    let known: Vec<&str> = rows.map(|row| row.split_once("  ").expect("an id and why").0).collect();
    compare(&report, &known);
}

/// # Panics
/// If a case fails that is not listed, or a listed case passes.
fn compare(report: &Report, known: &[&str]) {
    let id = |mismatch: &str| mismatch[1..].split(']').next().unwrap_or_default().to_owned();
    let failed: Vec<String> = report.mismatches.iter().map(|mismatch| id(mismatch)).collect();
    let new: Vec<&String> =
        report.mismatches.iter().filter(|mismatch| !known.contains(&id(mismatch).as_str())).collect();
    assert!(new.is_empty(), "{}", new.iter().map(|text| text.as_str()).collect::<Vec<_>>().join("\n"));
    let mended: Vec<_> = known.iter().filter(|known| !failed.iter().any(|failed| failed == *known)).collect();
    assert!(mended.is_empty(), "these pass now, so take them off the list: {mended:?}");
}
