//! What holds for all shapes: they contain no values, they are bounded, and joining does not depend on the order.

use super::*;
use ptc_base::secrets::SecretRegistry;
use serde_json::{Value as Json, json};

/// Values at random, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn text(&mut self, alphabet: &str, length: u64) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let size = letters.len() as u64;
        (0..length).map(|_| letters[usize::try_from(self.below(size)).unwrap()]).collect()
    }

    fn key(&mut self) -> String {
        const NAMES: [&str; 8] = ["id", "name", "created_at", "items", "total", "nextPage", "tags", "owner"];
        match self.below(12) {
            0 => format!("{:08}", self.below(100_000_000)),
            1 => format!("{}@example.com", self.text("abcdefgh", 6)),
            2 => format!("field_{}", self.text("abcdeghilmnoprstu", 3)),
            at => NAMES[usize::try_from(at).unwrap() % NAMES.len()].to_owned(),
        }
    }

    fn value(&mut self, depth: u64) -> Json {
        match self.below(if depth == 0 { 6 } else { 10 }) {
            0 => Json::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(1_000_000 + self.below(1_000_000_000)),
            3 => json!(self.below(1_000_000) as f64 + 0.515_625),
            4 | 5 => json!(format!("value-{}", self.text("abcdefghijklmnopqrstuvwxyz0123456789", 12))),
            6 | 7 => (0..self.below(8)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let count = if self.below(10) == 0 { 60 } else { self.below(8) };
                Json::Object((0..count).map(|_| (self.key(), self.value(depth - 1))).collect())
            }
        }
    }
}

fn learn(value: &Json) -> Learned {
    observe(&Given::Json(value.to_string().as_bytes()), &SecretRegistry::new())
}

fn text(text: &str) -> Learned {
    observe(&Given::Text(text), &SecretRegistry::new())
}

fn rendered(values: &[Json]) -> String {
    let all = values.iter().map(learn).fold(Learned::default(), Learned::join);
    all.rendered().unwrap_or_default()
}

#[test]
fn shapes_say_keys_types_and_what_may_be_missing() {
    for (values, shape) in [
        (
            vec![json!([{"id": 1, "sender": "me", "amount": 1.5, "date": "2026-03-01"}])],
            "[{:amount float :date string :id int :sender string}]",
        ),
        (
            vec![
                json!({"rows": [{"id": 1, "tags": ["a"]}, {"id": "x", "size": 1.5, "tags": []}], "next": null}),
            ],
            "{:next nil :rows [{:id int|string :size float? :tags [string]}]}",
        ),
        (vec![json!({"a": 1}), json!({"a": null, "b": 2.5}), json!({"a": 2})], "{:a int|nil :b float?}"),
        (vec![json!([]), json!(null)], "[]|nil"),
        (vec![json!([1, 2.5])], "[number]"),
        (vec![json!({})], "{}"),
        (vec![json!({"ann@example.com": {"age": 1}})], "{string {:age int}}"),
        (vec![json!({"ann": {"age": 1}, "bob": {"age": 2}, "eve": {"age": 3}})], "{string {:age int}}"),
        (vec![json!("some words")], "string"),
        (vec![], ""),
    ] {
        assert_eq!(rendered(&values), shape, "{values:?}");
    }
    let many: serde_json::Map<_, _> = (0..50).map(|n| (format!("k{}", n % 26), json!(n))).collect();
    assert!(rendered(&[many.into()]).starts_with("{:k0 int"));
    let letters = "bcdfghjklm";
    let many: serde_json::Map<_, _> = letters
        .chars()
        .flat_map(|one| letters.chars().map(move |other| (format!("{one}a{other}o"), json!(1))))
        .collect();
    assert_eq!(rendered(&[many.into()]), "{string int}");
}

#[test]
fn texts_that_are_tables_are_said_to_be() {
    for (given, shape) in [
        ("id,name\n1,\"Smith, Ann\"\n2,Bob\n", "string that is CSV {:id string :name string}"),
        ("id\tOrder date\n1\tx\n", "string that is TSV {\"Order date\" string :id string}"),
        ("id;sum\n1;2,5\n", "string that is CSV with semicolons {:id string :sum string}"),
        ("| id | sum |\n|---|---:|\n| 1 | 2 |\n", "string that is a Markdown table {:id string :sum string}"),
        ("{\"id\": 1}\n{\"id\": 2, \"note\": null}\n", "string that is JSON Lines {:id int :note nil?}"),
        ("4711,4712\n1,2\n", "string"),
        ("Hello, Ann\nGoodbye, Bob and all others\n", "string"),
        ("Dear all, we met.\nOn Monday, Tuesday, and so on\n", "string"),
        ("one line", "string"),
    ] {
        assert_eq!(text(given).rendered().as_deref(), Some(shape), "{given:?}");
    }
    let both = text("id,name\n1,a\n").join(text("nothing found"));
    assert_eq!(
        both.rendered().as_deref(),
        Some("string, sometimes a text that is CSV {:id string :name string}")
    );
}

#[test]
fn a_shape_contains_no_value() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..2_000 {
        let value = random.value(4);
        let learned = learn(&value);
        let shown = format!(
            "{} {}",
            serde_json::to_string(&learned).unwrap(),
            learned.rendered().unwrap_or_default()
        );
        each_scalar(&value, &mut |scalar| assert!(!shown.contains(scalar), "{scalar} in {shown}"));
    }
}

/// Texts of all scalars and of all keys that are data.
fn each_scalar(value: &Json, check: &mut impl FnMut(&str)) {
    match value {
        Json::String(text) => check(text),
        Json::Number(number) => check(&number.to_string()),
        Json::Array(items) => items.iter().for_each(|item| each_scalar(item, check)),
        Json::Object(members) => {
            for (name, member) in members {
                if name.contains('@') || name.starts_with(|first: char| first.is_ascii_digit()) {
                    check(name);
                }
                each_scalar(member, check);
            }
        }
        Json::Null | Json::Bool(_) => {}
    }
}

#[test]
fn joining_is_associative_commutative_and_idempotent() {
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    for _ in 0..1_000 {
        let [a, b, c] = [(); 3].map(|()| {
            let depth = 2 + random.below(7);
            let values: Vec<Json> = (0..random.below(4)).map(|_| random.value(depth)).collect();
            values.iter().map(learn).fold(Learned::default(), Learned::join)
        });
        let join = |one: &Learned, other: &Learned| one.clone().join(other.clone());
        assert_eq!(join(&a, &b), join(&b, &a));
        assert_eq!(join(&join(&a, &b), &c), join(&a, &join(&b, &c)));
        let twice = join(&a, &a);
        assert_eq!(join(&twice, &a), twice);
        assert_eq!(join(&Learned::default(), &a), a);
        let weight =
            a.shape.weight(a.levels) + a.tables.values().map(|rows| rows.weight(a.levels)).sum::<usize>();
        assert!(weight <= HEAVIEST, "{weight}");
        assert!(serde_json::to_string(&a).unwrap().len() < 128 << 10);
        assert_eq!(
            serde_json::from_str::<Learned>(&serde_json::to_string(&twice).unwrap()).unwrap(),
            confirm(twice)
        );
    }
}

/// As read from the store: every key counts as confirmed.
fn confirm(learned: Learned) -> Learned {
    serde_json::from_value(serde_json::to_value(learned).unwrap()).unwrap()
}

#[test]
fn a_key_is_stored_when_several_results_have_it_or_the_tool_names_it() {
    let stored = |learned: &Learned, named: &[&str]| {
        learned.clone().confirmed(&|key| named.contains(&key)).rendered().unwrap()
    };
    let once = learn(&json!({"session": [{"mekola": 1, "id": 2}, {"mekola": 2, "id": 3}]}));
    assert_eq!(stored(&once, &[]), "object");
    assert_eq!(stored(&once, &["session", "id"]), "{:session [{:id int}]}");
    let repeated = once.clone().join(once.clone());
    assert_eq!(stored(&repeated, &[]), "object", "the same result again is no evidence");
    let again = once.clone().join(learn(&json!({"session": [{"id": 2, "name": "x"}]})));
    assert_eq!(stored(&again, &[]), "{:session [object]}", "more keys are unsure than sure");
    let more = once.join(learn(&json!({"session": [{"mekola": 5, "dorina": 1, "id": 2}]})));
    assert_eq!(stored(&more, &[]), "{:session [{:id int :mekola int}]}");
    let table = text("id,mekola\n1,2\n");
    assert_eq!(stored(&table, &[]), "string that is CSV object");
    assert_eq!(
        stored(&table.join(text("id,mekola\n1,3\n")), &[]),
        "string that is CSV {:id string :mekola string}"
    );
    // What becomes known later is not optional.
    let unknown = learn(&json!({"id": 1})).confirmed(&|_| false);
    assert_eq!(unknown.join(learn(&json!({"id": 2}))).rendered().unwrap(), "{:id int}");
}

#[test]
fn secrets_that_are_keys_are_not_kept() {
    let secrets = SecretRegistry::new();
    let _ = secrets.register("plainpassword");
    let learned = observe(&Given::Json(br#"[{"plainpassword": 1}, {"plainpassword": 2}]"#), &secrets);
    assert_eq!(learned.rendered().as_deref(), Some("[{string int}]"));
}

#[test]
fn sizes_are_known_up_to_a_factor_of_two() {
    let lists = learn(&json!([1])).join(learn(&json!([1, 2, 3, 4, 5])));
    assert_eq!(lists.size().as_deref(), Some("1 to 7 items"));
    assert_eq!(learn(&json!([])).size().as_deref(), Some("0 items"));
    assert_eq!(text(&"x".repeat(5_000)).size().as_deref(), Some("4096 to 8191 characters"));
    assert_eq!(text("short").size(), None);
}
