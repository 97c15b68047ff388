//! Runs that are recorded, replayed and tested.

#![allow(clippy::unwrap_used, reason = "a broken recording should be loud")]

mod replays;
mod scripts;
mod suites;

use ptc_tests::binary::{Finished, run_ptc};
use ptc_tests::upstreams::{Upstreams, probe_server};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The recordings of a folder, by name.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "ptcrun")).collect();
    found.sort();
    found
}

/// Runs a program with the probe server and records it. Returns the folder, the recording and what was printed.
fn recorded(program: &str, more: &[&str]) -> (TempDir, PathBuf, Finished) {
    recorded_by(&["eval", program], "", more)
}

/// The same for a command with this input.
fn recorded_by(words: &[&str], input: &str, more: &[&str]) -> (TempDir, PathBuf, Finished) {
    let folder = tempfile::tempdir().unwrap();
    let config = Upstreams::default().add("probe", probe_server(&[])).write();
    let record = ["--record", folder.path().to_str().unwrap()];
    let arguments = [words, &record, &config.flags(&[]), more].concat();
    let finished = run_ptc(&arguments, input);
    let mut found = recordings(folder.path());
    assert_eq!(found.len(), 1, "{words:?} {input}\n{finished:?}");
    let recording = found.remove(0);
    (folder, recording, finished)
}

fn replay(file: &Path, more: &[&str]) -> Finished {
    let arguments: Vec<&str> =
        ["replay", file.to_str().unwrap()].into_iter().chain(more.iter().copied()).collect();
    run_ptc(&arguments, "")
}

/// The records of a file.
fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The same recording with one text replaced.
fn edited(file: &Path, from: &str, to: &str) -> PathBuf {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    let other = file.with_file_name("edited.ptcrun");
    std::fs::write(&other, text.replacen(from, to, 1)).unwrap();
    other
}
