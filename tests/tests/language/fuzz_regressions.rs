//! Replays the inputs that fuzzing has found: every input in `fuzz/regressions/<target>/` and every seed satisfies
//! the check of its target.

use ptc_tests::checks::{Check, TARGETS};
use ptc_tests::small_stack::on_small_stack;
use ptc_tests::workspace;
use std::collections::BTreeSet;
use std::path::Path;

/// The targets of each list of seeds.
const SEEDS: &[(&str, &[&str])] = &[
    ("programs", &["lex", "parse", "compile", "run"]),
    ("json", &["json_decode"]),
    ("regex", &["regex_translate"]),
];

fn target(name: &str) -> Check {
    TARGETS.iter().find(|(target, _)| *target == name).expect("a target").1
}

/// Runs the check on every input; names the failing input.
fn replay(name: &'static str, inputs: Vec<(String, Vec<u8>)>) {
    let check = target(name);
    let broken: Vec<String> = on_small_stack(move || {
        let breaks = |data: &[u8]| std::panic::catch_unwind(|| check(data)).is_err();
        inputs.into_iter().filter(|(_, data)| breaks(data)).map(|(input, _)| input).collect()
    });
    assert!(broken.is_empty(), "{name}: {broken:#?}");
}

fn inputs(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.display().to_string(), std::fs::read(&path).expect("read"))).collect()
}

#[test]
fn findings_stay_fixed() {
    for (name, _) in TARGETS {
        replay(name, inputs(&workspace().join("fuzz/regressions").join(name)));
    }
}

#[test]
fn seeds_keep_the_promises() {
    for (list, targets) in SEEDS {
        let text =
            std::fs::read_to_string(workspace().join(format!("fuzz/seeds/{list}.jsonl"))).expect("read");
        let seeds: Vec<String> =
            text.lines().map(|line| serde_json::from_str(line).expect("a string")).collect();
        assert!(seeds.len() > 40, "{list}");
        for name in *targets {
            replay(name, seeds.iter().map(|seed| (seed.clone(), seed.clone().into_bytes())).collect());
        }
    }
}

/// A fuzz target without a check here, or a check without a fuzz target, would never run.
#[test]
fn every_target_is_built_and_replayed() {
    let files = std::fs::read_dir(workspace().join("fuzz/fuzz_targets")).expect("the targets");
    let built: BTreeSet<String> = files
        .map(|file| {
            file.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    let checked: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(built, checked);
    let folders = std::fs::read_dir(workspace().join("fuzz/regressions")).expect("the regressions");
    for folder in folders {
        let name = folder.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(checked.contains(&name), "no target {name}");
    }
}
