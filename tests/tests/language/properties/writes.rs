//! Writes to maps by keyword: programs of many writes against a naive model of the rule.

use crate::properties::for_all;
use proptest::prelude::*;
use ptc_tests::variants::{Budget, Ending, VARIANTS, run};

/// A keyword or a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    // Keywords come first in the order of keys.
    is_text: bool,
    name: &'static str,
}

impl Key {
    fn shown(self) -> String {
        if self.is_text { format!("{:?}", self.name) } else { format!(":{}", self.name) }
    }
}

type Entries = Vec<(Key, i64)>;

/// The map of the model.
#[derive(Clone, Debug, Default)]
struct Model(Entries);

impl Model {
    fn exact(&self, key: Key) -> Option<usize> {
        self.0.iter().position(|(other, _)| *other == key)
    }

    /// The entry that a read finds: the key, the other kind of its name, and both again with `_` for `-`.
    fn read(&self, key: Key) -> Option<usize> {
        let of = |name: &'static str, is_text| self.exact(Key { is_text, name });
        let both = |name| of(name, key.is_text).or_else(|| of(name, !key.is_text));
        let underscored = if key.name == "a-b" { "a_b" } else { key.name };
        both(key.name).or_else(|| both(underscored))
    }

    /// The entry that a write replaces: the key; for a keyword also the string that a read finds.
    fn written(&self, key: Key) -> Option<usize> {
        let read = || self.read(key).filter(|&row| self.0[row].0.is_text);
        self.exact(key).or_else(|| if key.is_text { None } else { read() })
    }

    fn put(&mut self, row: Option<usize>, key: Key, value: i64) {
        match row {
            Some(row) => self.0[row].1 = value,
            None => self.0.push((key, value)),
        }
    }

    fn write(&mut self, key: Key, value: i64) {
        self.put(self.written(key), key, value);
    }

    fn from_entries(entries: &[(Key, i64)]) -> Model {
        let mut model = Model::default();
        for &(key, value) in entries {
            model.put(model.exact(key), key, value);
        }
        model
    }

    fn merge(&mut self, from: &Model) {
        let before = self.clone();
        for &(key, value) in &from.0 {
            let met = before.written(key).map(|row| before.0[row].0).unwrap_or(key);
            let named = |name: Key| from.read(name).is_none_or(|row| from.0[row].0 == key);
            let is_alone = named(met) && from.exact(Key { is_text: true, ..key }).is_none();
            let key = if key.is_text || is_alone { met } else { key };
            self.put(self.exact(key), key, value);
        }
    }

    fn shown(&self) -> String {
        let mut entries = self.0.clone();
        entries.sort();
        let entries: Vec<String> =
            entries.iter().map(|(key, value)| format!("{} {value}", key.shown())).collect();
        format!("{{{}}}", entries.join(" "))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Assoc(Key, i64),
    AssocIn(Key, i64),
    Conj(Key, i64),
    Dissoc(Key),
    Update(Key),
    UpdateInFrame(Key),
    UpdateIn(Key),
    Into(Entries),
    Merge(Entries),
    MergeWith(Entries),
    Rename(Key, Key),
}

impl Step {
    fn shown(&self) -> String {
        let map = |entries: &Entries| Model::from_entries(entries).shown();
        match self {
            Step::Assoc(key, value) => format!("(assoc {} {value})", key.shown()),
            Step::AssocIn(key, value) => format!("(assoc-in [{}] {value})", key.shown()),
            Step::Conj(key, value) => format!("(conj [{} {value}])", key.shown()),
            Step::Dissoc(key) => format!("(dissoc {})", key.shown()),
            Step::Update(key) => format!("(update {} (fnil inc 50))", key.shown()),
            Step::UpdateInFrame(key) => {
                format!("(update {} (fn [x] (let [y (or x 50)] (+ y 1))))", key.shown())
            }
            Step::UpdateIn(key) => format!("(update-in [{}] (fnil + 50) 1)", key.shown()),
            Step::Into(entries) => {
                let pairs: Vec<String> =
                    entries.iter().map(|(key, value)| format!("[{} {value}]", key.shown())).collect();
                format!("(into [{}])", pairs.join(" "))
            }
            Step::Merge(entries) => format!("(merge {})", map(entries)),
            Step::MergeWith(entries) => format!("(#(merge-with + % {}))", map(entries)),
            Step::Rename(old, new) => format!("(set/rename-keys {{{} {}}})", old.shown(), new.shown()),
        }
    }

    fn apply(&self, model: &mut Model) {
        match *self {
            Step::Assoc(key, value) | Step::AssocIn(key, value) | Step::Conj(key, value) => {
                model.write(key, value);
            }
            Step::Dissoc(key) => _ = model.written(key).map(|row| model.0.remove(row)),
            Step::Update(key) | Step::UpdateInFrame(key) => {
                let row = model.written(key);
                model.put(row, key, row.map_or(50, |row| model.0[row].1) + 1);
            }
            Step::UpdateIn(key) => {
                // A string reads like any key, and writes exactly.
                let (row, old) = (model.written(key), model.read(key));
                model.put(row, key, row.or(old).map_or(50, |row| model.0[row].1) + 1);
            }
            Step::Into(ref entries) => entries.iter().for_each(|&(key, value)| model.write(key, value)),
            Step::Merge(ref entries) => model.merge(&Model::from_entries(entries)),
            Step::MergeWith(ref entries) => {
                let mut from = Model::from_entries(entries);
                from.0.sort();
                for (key, value) in from.0 {
                    let row = model.written(key);
                    model.put(row, key, row.map_or(0, |row| model.0[row].1) + value);
                }
            }
            Step::Rename(old, new) => {
                if let Some(row) = model.read(old) {
                    let (_, value) = model.0.remove(row);
                    model.write(new, value);
                }
            }
        }
    }
}

fn keys() -> impl Strategy<Value = Key> {
    let names = prop::sample::select(vec!["a", "b", "a-b", "a_b"]);
    (any::<bool>(), names).prop_map(|(is_text, name)| Key { is_text, name })
}

fn entries() -> impl Strategy<Value = Entries> {
    prop::collection::vec((keys(), 0i64..9), 0..5)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (keys(), 0i64..9).prop_map(|(key, value)| Step::Assoc(key, value)),
        (keys(), 0i64..9).prop_map(|(key, value)| Step::AssocIn(key, value)),
        (keys(), 0i64..9).prop_map(|(key, value)| Step::Conj(key, value)),
        keys().prop_map(Step::Dissoc),
        keys().prop_map(Step::Update),
        keys().prop_map(Step::UpdateInFrame),
        keys().prop_map(Step::UpdateIn),
        entries().prop_map(Step::Into),
        entries().prop_map(Step::Merge),
        entries().prop_map(Step::MergeWith),
        (keys(), keys()).prop_map(|(old, new)| Step::Rename(old, new)),
    ];
    prop::collection::vec(step, 1..6)
}

/// The rule holds for every function that writes, in shared and unshared maps, small and large, and in every way to
/// run.
#[test]
fn a_keyword_meets_the_string_key_of_its_name() {
    let budget = Budget { fuel: 10_000_000, memory_bytes: 1 << 24 };
    for_all(400, (entries(), steps(), any::<bool>(), any::<bool>()), |(init, steps, shared, large)| {
        let mut model = Model::from_entries(&init);
        let calls: Vec<String> = steps.iter().map(Step::shown).collect();
        let others = if large { "(into {} (map (fn [n] [n n]) (range 30)))" } else { "{}" };
        let keep = if shared { "seen (conj seen m)" } else { "seen seen" };
        let program = format!(
            "(loop [i 0 seen [] m (merge {others} {})] (if (= i 3) (select-keys m (filter (complement int?) (keys m))) \
             (let [{keep}] (recur (inc i) seen (-> m {})))))",
            model.shown(),
            calls.join(" "),
        );
        for _ in 0..3 {
            steps.iter().for_each(|step| step.apply(&mut model));
        }
        let usual = run(&program, &budget, &VARIANTS[0]).expect("compiles");
        assert_eq!(usual.ending, Ending::Done(model.shown()), "{program}");
        for variant in VARIANTS {
            let ran = run(&program, &budget, variant).expect("compiles");
            assert_eq!(ran, usual, "{}: {program}", variant.name);
        }
    });
}
