//! Paths into spilled JSON find what a walk through the whole value finds, and any path in any file ends with an
//! answer.
#![allow(clippy::unwrap_used, reason = "a broken helper should be loud")]

use ptc_base::secrets::SecretRegistry;
use ptc_base::spill::{SpillOptions, SpillStore};
use serde_json::Value;
use tempfile::TempDir;

fn store() -> (TempDir, SpillStore) {
    let folder = tempfile::tempdir().unwrap();
    let options = SpillOptions { base: folder.path().join("spill"), most_bytes: 1 << 26 };
    let store = SpillStore::open(&options, SecretRegistry::new()).unwrap();
    (folder, store)
}

/// Pseudo-random numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn name(&mut self) -> &'static str {
        const NAMES: [&str; 9] = [
            "a",
            "bb",
            "c d",
            "é",
            "it's",
            "x.y",
            "\"q\"",
            "[0]",
            "a-name-that-is-longer-than-what-is-usual-for-names-of-members-of-objects",
        ];
        NAMES[usize::try_from(self.below(9)).unwrap()]
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 4 } else { 7 }) {
            0 => Value::Null,
            1 => self.below(1_000).into(),
            2 => self.name().into(),
            3 => "]},\\\"{[".into(),
            4 => (0..self.below(6)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(
                (0..self.below(6)).map(|_| (self.name().to_owned(), self.value(depth - 1))).collect(),
            ),
        }
    }

    /// A path, and the values that the model finds for it.
    fn path(&mut self, value: &Value) -> (String, Vec<Value>, bool) {
        let (mut text, mut found, mut is_list) = ("$".to_owned(), vec![value.clone()], false);
        for _ in 0..self.below(5) {
            let name = self.name();
            let (from, to) = (self.below(4), self.below(6));
            let (step, range) = match self.below(5) {
                0 if !name.contains(['.', '[', '"']) => (format!(".{name}"), None),
                0 | 1 if !name.contains("']") => (format!("['{name}']"), None),
                0..2 => (format!("[\"{name}\"]"), None),
                2 => (format!("[{from}]"), Some((from, from + 1))),
                3 => (format!("[{from}:{to}]"), Some((from, to))),
                _ => ("[*]".to_owned(), Some((0, u64::MAX))),
            };
            is_list |= step.contains(':') || step == "[*]";
            text.push_str(&step);
            found = found
                .iter()
                .flat_map(|value| match (range, value) {
                    (None, Value::Object(members)) => members.get(name).cloned().into_iter().collect(),
                    (Some((from, to)), Value::Array(items)) => {
                        let numbered = items.iter().zip(0_u64..);
                        numbered
                            .filter(|(_, at)| (from..to).contains(at))
                            .map(|(item, _)| item.clone())
                            .collect()
                    }
                    _ => Vec::new(),
                })
                .collect();
        }
        (text, found, is_list)
    }
}

#[test]
fn paths_find_what_a_walk_through_the_value_finds() {
    let (_folder, store) = store();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut found_any = 0;
    for _ in 0..100 {
        let value = Value::Array((0..3).map(|_| dice.value(4)).collect());
        let texts = [value.to_string(), format!("{value:#}"), value.to_string().replace('é', "\\u00e9")];
        let kept = texts.map(|text| store.keep(text.as_bytes()).unwrap());
        for _ in 0..10 {
            let (path, want, is_list) = dice.path(&value);
            let want = match is_list {
                true => Some(Value::Array(want)),
                false => want.into_iter().next(),
            };
            found_any += usize::from(want.as_ref().is_some_and(|want| *want != Value::Array(Vec::new())));
            for kept in &kept {
                let found = kept.json_path(&path, 1 << 20).unwrap();
                let found = found.map(|json| serde_json::from_slice::<Value>(&json).unwrap());
                assert_eq!(found, want, "{path} in {value}");
            }
        }
    }
    assert!(found_any > 150, "{found_any}");
}

#[test]
fn any_text_is_a_path_or_is_refused() {
    let mut dice = Dice(42);
    const PARTS: [&str; 12] =
        ["$", ".", "[", "]", "'", "\"", "*", ":", "7", "é", "18446744073709551616", "name"];
    let (_folder, store) = store();
    let kept = store.keep(b"[]").unwrap();
    for _ in 0..3_000 {
        let length = dice.below(12);
        let text: String = (0..length).map(|_| PARTS[usize::try_from(dice.below(12)).unwrap()]).collect();
        let _ = kept.json_path(&format!("${text}"), 100);
        let _ = kept.json_path(&text, 100);
    }
}

#[test]
fn what_is_no_json_ends_a_search() {
    let (_folder, store) = store();
    let whole = br#"{"a": [1, {"b": "x\u00e9"}], "a b": [[2], 3]}"#;
    let mut dice = Dice(7);
    for cut in 0..whole.len() {
        let mut text = whole[..cut].to_vec();
        let at = usize::try_from(dice.below(1 + cut as u64)).unwrap();
        text.insert(at, b"{}[]\",:\\ x"[usize::try_from(dice.below(10)).unwrap()]);
        let kept = store.keep(&text).unwrap();
        for path in ["$", "$.a[1].b", "$[*]", "$['a b'][0:9][0]"] {
            kept.json_path(path, 1_000).unwrap();
        }
    }
}
