//! Results that are spilled to files: their layout, partial reads, limits, and the cleanup after dead processes.
#![allow(clippy::disallowed_methods, reason = "tests write files as they need them")]

use ptc_base::secrets::SecretRegistry;
use ptc_base::spill::{Grep, LookError, SpillError, SpillOptions, SpillStore, TopLevel, names_in};
use ptc_base::tasks::StopFlag;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

const ALL: usize = usize::MAX;

fn store_in(base: &Path, most_bytes: u64, secrets: &[&str]) -> SpillStore {
    let registry = SecretRegistry::new();
    for secret in secrets {
        registry.register(secret);
    }
    SpillStore::open(&SpillOptions { base: base.to_owned(), most_bytes }, registry).expect("a folder")
}

fn store() -> (TempDir, SpillStore) {
    let dir = tempfile::tempdir().expect("a folder");
    let store = store_in(&dir.path().join("spill"), 1 << 30, &[]);
    (dir, store)
}

fn rows(count: u64) -> Value {
    let row =
        |id: u64| json!({ "id": id, "name": format!("row {id}"), "tags": ["a", "b"], "x": { "y": [] } });
    json!({ "rows": (0..count).map(row).collect::<Vec<_>>(), "next": null, "text": "ä\"\\\n" })
}

#[test]
fn json_on_one_line_gets_lines_and_stays_the_same_json() {
    let (_dir, store) = store();
    let nested = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let long = json!({ "a": "x".repeat(100_000), "b": [["y".repeat(3_000)], { "c": "\"}{][".repeat(900) }] });
    for text in
        [rows(3_000).to_string(), nested, long.to_string(), json!([[], {}, "", 1.5e-7, -0]).to_string()]
    {
        let kept = store.keep(text.as_bytes()).expect("kept");
        let read = kept.read(ALL).expect("read");
        let same = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(same(&read.text), same(&text));
        assert_eq!(kept.stat().lines, read.text.lines().count() as u64);
        assert_eq!(kept.stat().bytes, read.text.len() as u64);
    }
    // Each row becomes a line.
    let kept = store.keep(rows(3_000).to_string().as_bytes()).expect("kept");
    let slice = kept.slice(3, 4, ALL).expect("read");
    let lines: Vec<&str> = slice.text.lines().map(|line| line.trim().trim_end_matches(',')).collect();
    assert_eq!(lines, [rows(2)["rows"][0].to_string(), rows(2)["rows"][1].to_string()]);
    let keys = ["rows", "next", "text"].map(str::to_owned).to_vec();
    assert_eq!(kept.top_level(), TopLevel::Object { keys, more: false });
    // Text that only looks like JSON, nests too deep, or already has lines is stored unchanged.
    let lines = serde_json::to_string_pretty(&rows(300)).expect("JSON");
    let almost = format!("{{\"a\": 1, {}", "\"b\" : 2, ".repeat(2_000));
    for text in
        [&deep, &lines, &almost, "{foo bar}", "[1 2]", "{\"a\":01x}", "log\n[1]", "", "\u{feff}[]", "[1],"]
    {
        assert_eq!(store.keep(text.as_bytes()).expect("kept").read(ALL).expect("read").text, text);
    }
}

#[test]
fn parts_are_lines_and_have_a_bound() {
    let (_dir, store) = store();
    let text: String = (1..=100_000).map(|line| format!("line {line} ä\n")).collect();
    let kept = store.keep(text.as_bytes()).expect("kept");
    assert_eq!((kept.stat().lines, kept.stat().bytes), (100_000, text.len() as u64));
    let want = |from: u64, to: u64| (from..=to).map(|line| format!("line {line} ä\n")).collect::<String>();
    assert_eq!(kept.head(2, ALL).expect("read").text, want(1, 2));
    assert_eq!(kept.tail(3, ALL).expect("read").text, want(99_998, 100_000));
    assert_eq!(kept.tail(3, ALL).expect("read").from_line, 99_998);
    for from in [1, 2, 17, 15_000, 22_222, 50_001, 99_999] {
        assert_eq!(kept.slice(from, from + 1, ALL).expect("read").text, want(from, from + 1), "{from}");
    }
    assert_eq!(kept.slice(99_999, 200_000, ALL).expect("read").text, want(99_999, 100_000));
    for (from, to) in [(100_001, 100_002), (5, 4), (u64::MAX, u64::MAX)] {
        assert_eq!(kept.slice(from, to, ALL).expect("read").text, "");
    }
    let cut = kept.read(8).expect("read");
    assert_eq!((&*cut.text, cut.truncated), ("line 1 ", true));
    assert!(!kept.read(text.len()).expect("read").truncated);
    let without_end = store.keep(b"a\nb").expect("kept");
    assert_eq!((without_end.stat().lines, &*without_end.tail(1, ALL).expect("read").text), (2, "b"));
    let empty = store.keep(b"").expect("kept");
    assert_eq!((empty.stat().lines, &*empty.head(5, ALL).expect("read").text), (0, ""));
}

#[test]
fn grep_shows_lines_with_numbers_and_counts_them_all() {
    let (_dir, store) = store();
    let text: String = (1..=50_000)
        .map(|line| format!("line {line} {}\n", if line % 10_000 == 0 { "Foo.TXT" } else { "-" }))
        .collect();
    let kept = store.keep(text.as_bytes()).expect("kept");
    let grep = |pattern: &str, context, most_bytes| {
        kept.grep(&Grep { pattern: pattern.to_owned(), context, most_bytes }, &StopFlag::default())
    };
    let found = grep("foo\\.txt", 1, ALL).expect("found");
    assert_eq!(found.matches, 5);
    assert!(
        found.text.starts_with("9999-line 9999 -\n10000:line 10000 Foo.TXT\n10001-line 10001 -\n--\n19999-"),
        "{}",
        found.text
    );
    let found = grep("line", 0, 100).expect("found");
    assert!(found.matches == 50_000 && found.truncated && found.text.len() <= 100, "{found:?}");
    assert_eq!(grep("nothing", 0, ALL).expect("found").matches, 0);
    // A match never spans lines, and any pattern takes linear time.
    assert_eq!(grep("1\\s+line 2 ", 0, ALL).expect("found").matches, 0);
    let evil = store.keep("a".repeat(1 << 20).as_bytes()).expect("kept");
    let found = evil
        .grep(&Grep { pattern: "(a*)*b".into(), context: 0, most_bytes: 10 }, &StopFlag::default())
        .expect("found");
    assert_eq!(found.matches, 0);
    assert_eq!(grep("\\bfoo\\b.\\w+$", 0, ALL).expect("found").matches, 5);
    assert_eq!(grep("^line \\d{5} \\p{Lu}", 0, ALL).expect("found").matches, 5);
    let states = [
        "[ab]*a[ab]{2000}c",
        "c[ab]{2000}a[ab]*",
        "(?:a|b)*a(?:a|b){4000}c",
        ".*a.{500}b.{500}c",
        "\\w{250}0",
    ];
    for pattern in ["(", "a{1000}{1000}{1000}", "\\n"].into_iter().chain(states) {
        assert!(grep(pattern, 0, ALL).is_err(), "{pattern}");
    }
}

/// A part of a result must not look like the whole.
#[test]
fn a_file_that_was_cut_is_an_error_for_every_look() {
    let (_dir, store) = store();
    let text = (1..=50_000).map(|line| format!("line {line}\n")).collect::<String>();
    for left in [0, 10, 300_000, text.len() as u64 - 1] {
        let kept = store.keep(text.as_bytes()).expect("kept");
        std::fs::OpenOptions::new()
            .write(true)
            .open(kept.path())
            .expect("a file")
            .set_len(left)
            .expect("cut");
        let grep = Grep { pattern: "line 49999".to_owned(), context: 0, most_bytes: ALL };
        let found = kept.grep(&grep, &StopFlag::default()).expect_err("a part");
        assert!(found.to_string().contains(&format!("{left} bytes of {}", text.len())), "{found}");
        for looked in [kept.read(3), kept.head(1, ALL), kept.tail(1, ALL), kept.slice(40_000, 40_001, ALL)] {
            assert!(matches!(looked, Err(LookError::Io(_))), "{left}: {looked:?}");
        }
        assert!(matches!(kept.json_path("$", ALL), Err(LookError::Io(_))));
    }
}

#[test]
fn all_results_together_have_a_bound_and_the_oldest_go() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = store_in(&dir.path().join("spill"), 10_000, &[]);
    let keep = |byte: char| store.keep(byte.to_string().repeat(4_000).as_bytes());
    let [a, b, c] = ['a', 'b', 'c'].map(|byte| keep(byte).expect("kept"));
    let is_there = |path: &str| Path::new(path).exists();
    assert!(!is_there(a.path()) && is_there(b.path()) && is_there(c.path()));
    assert!(a.is_gone() && !b.is_gone());
    assert_eq!(store.used_bytes(), 8_000);
    // A handle of an evicted result finds nothing, and its bytes are freed on the disk.
    for looked in [a.read(3), a.head(1, ALL), a.tail(1, ALL), a.slice(1, 2, ALL)] {
        assert_eq!(looked, Err(LookError::Gone));
    }
    let grep = Grep { pattern: "a".to_owned(), context: 0, most_bytes: ALL };
    assert_eq!(
        (a.grep(&grep, &StopFlag::default()), a.json_path("$", ALL)),
        (Err(LookError::Gone), Err(LookError::Gone))
    );
    assert_eq!(store.keep("x".repeat(10_001).as_bytes()).err(), Some(SpillError::TooLarge { most: 10_000 }));
    assert_eq!(store.used_bytes(), 0, "what made room for it has gone, and so has it");
    let name = |path: &str| path.rsplit('/').next().expect("a name").to_owned();
    let d = keep('d').expect("kept");
    assert!(d.is_named(&name(d.path())) && d.is_named(d.path()));
    for other in ["", "/", "..", "../x", "/etc/passwd", ".lock", &name(a.path())] {
        assert!(!d.is_named(other), "{other}");
    }
    let text = format!("{{\"paths\":[\"x.json\",\"..\\/{}\"]}}", name(d.path()));
    assert_eq!(names_in(&text).collect::<Vec<_>>(), ["x.json", &name(d.path())]);
    assert_eq!(names_in("ä.json .json ../ärä-1.json").collect::<Vec<_>>(), [".json", ".json", "-1.json"]);
}

#[test]
fn a_result_is_its_holders() {
    let dir = tempfile::tempdir().expect("a folder");
    let store = store_in(&dir.path().join("spill"), 1 << 20, &[]);
    let files = || {
        std::fs::read_dir(dir.path().join("spill"))
            .expect("a folder")
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .map(|folder| std::fs::read_dir(folder.path()).expect("a folder").count() - 1)
            .sum::<usize>()
    };
    let kept = store.keep(b"one").expect("kept");
    let also = kept.clone();
    drop(kept);
    assert_eq!((files(), store.used_bytes()), (1, 3));
    drop(also);
    assert_eq!((files(), store.used_bytes()), (0, 0));
    // Each has an open file, so their number is limited as well.
    let many: Vec<_> = (0..300).map(|_| store.keep(b"").expect("kept")).collect();
    assert_eq!((files(), many.iter().filter(|kept| !kept.is_gone()).count()), (256, 256));
    assert!(many[0].is_gone() && !many[299].is_gone());
    store.close();
    assert!(many.iter().all(|kept| kept.is_gone()));
    drop((many, store));
    assert_eq!(std::fs::read_dir(dir.path().join("spill")).expect("a folder").count(), 0);
}

#[test]
fn folders_are_private_and_those_of_dead_processes_go() {
    let dir = tempfile::tempdir().expect("a folder");
    let base = dir.path().join("spill");
    let first = store_in(&base, 1 << 20, &[]);
    let kept = first.keep(b"mine").expect("kept");
    let folder = Path::new(kept.path()).parent().expect("a folder").to_owned();
    for (path, mode) in [(&base, 0o700), (&folder, 0o700), (&kept.path().into(), 0o600)] {
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, mode, "{}", path.display());
    }
    // The state after a killed process: the lock file exists, but is not locked.
    let dead = base.join("1-0");
    std::fs::create_dir(&dead).expect("made");
    std::fs::write(dead.join(".lock"), "").expect("written");
    std::fs::write(dead.join("r1.json"), "left behind").expect("written");
    let second = store_in(&base, 1 << 20, &[]);
    assert!(!dead.exists() && Path::new(kept.path()).exists());
    second.close();
    drop((first, kept));
    assert!(!folder.exists());
    // A folder that other users may write to is not used, nor one that is reached through a link.
    std::fs::set_permissions(&base, PermissionsExt::from_mode(0o777)).expect("open to all");
    let linked = dir.path().join("linked");
    std::os::unix::fs::symlink(dir.path(), &linked).expect("linked");
    for base in [&base, &linked] {
        let options = SpillOptions { base: base.clone(), most_bytes: 1 };
        assert!(SpillStore::open(&options, SecretRegistry::new()).is_err(), "{}", base.display());
    }
}

#[test]
fn no_secret_is_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let secret = "correct-horse\nbattery-staple";
    let store = store_in(&dir.path().join("spill"), 1 << 30, &[secret]);
    // At every offset relative to the blocks that are searched together.
    let filler = "0123456789abcde\n".repeat(1 << 16);
    let text: String =
        (0..12).map(|number| format!("{}{secret}", &filler[..(number * 77_777) % filler.len()])).collect();
    let json = json!({ "a": [text, { secret: 1 }] }).to_string();
    for text in [&text, &json] {
        let kept = store.keep(text.as_bytes()).expect("kept").read(ALL).expect("read").text;
        assert!(
            kept.matches("[REDACTED]").count() >= 12 && !kept.contains("horse") && !kept.contains("staple")
        );
    }
}
