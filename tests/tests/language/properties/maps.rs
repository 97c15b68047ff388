//! Maps that share keys behave like a naive model.

use crate::properties::for_all;
use crate::properties::values::in_isolate;
use proptest::prelude::*;
use ptc_vm::value::map::MapNode;
use ptc_vm::{Budget, Context, Isolate, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A step on several maps, which begin as copies of one another.
#[derive(Clone, Debug)]
enum Step {
    Copy {
        from: usize,
        to: usize,
    },
    Insert {
        map: usize,
        key: u8,
        value: i64,
    },
    Remove {
        map: usize,
        key: u8,
    },
    /// The order is requested, and so remembered.
    Order {
        map: usize,
    },
}

const MAPS: usize = 4;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (map, key) = (0..MAPS, 0u8..40);
    let step = prop_oneof![
        2 => (map.clone(), map.clone()).prop_map(|(from, to)| Step::Copy { from, to }),
        12 => (map.clone(), key.clone(), any::<i64>())
            .prop_map(|(map, key, value)| Step::Insert { map, key, value }),
        3 => (map.clone(), key).prop_map(|(map, key)| Step::Remove { map, key }),
        1 => map.prop_map(|map| Step::Order { map }),
    ];
    prop::collection::vec(step, 0..120)
}

/// Keywords, strings of the same names, and integers: flexible look-up could confuse them.
fn key(cx: &mut Context, number: u8) -> Value {
    match number % 3 {
        0 => cx.keyword(&format!("k{}", number / 6)),
        1 => {
            let symbol = cx.symbols.intern_key(&format!("k{}", number / 6)).expect("short");
            Value::Str(cx.symbols.string(symbol).clone())
        }
        _ => Value::Int(i64::from(number)),
    }
}

/// The key in the model.
fn name(number: u8) -> (u8, u8) {
    match number % 3 {
        2 => (2, number),
        kind => (kind, number / 6),
    }
}

#[test]
fn maps_that_share_keys_behave_as_if_they_did_not() {
    for_all(1_000, steps(), |steps| {
        in_isolate(|cx| {
            let mut maps = vec![MapNode::empty(); MAPS];
            let mut models: Vec<BTreeMap<(u8, u8), i64>> = vec![BTreeMap::new(); MAPS];
            for step in &steps {
                match *step {
                    Step::Copy { from, to } => {
                        maps[to] = maps[from].clone();
                        models[to] = models[from].clone();
                    }
                    Step::Insert { map, key: number, value } => {
                        let key = key(cx, number);
                        let taken = std::mem::replace(&mut maps[map], MapNode::empty());
                        maps[map] =
                            MapNode::insert(taken, cx, key, Value::Int(value)).expect("within limits");
                        models[map].insert(name(number), value);
                    }
                    Step::Remove { map, key: number } => {
                        let key = key(cx, number);
                        let taken = std::mem::replace(&mut maps[map], MapNode::empty());
                        maps[map] = MapNode::remove(taken, cx, &key).expect("within limits");
                        models[map].remove(&name(number));
                    }
                    Step::Order { map } => drop(maps[map].order(cx).expect("within limits")),
                }
            }
            for (map, model) in maps.iter().zip(&models) {
                check(cx, map, model);
            }
        });
    });
}

fn check(cx: &mut Context, map: &Rc<MapNode>, model: &BTreeMap<(u8, u8), i64>) {
    assert_eq!((map.len(), map.values().len()), (model.len(), model.len()));
    for number in 0..40 {
        let key = key(cx, number);
        let exact = map.find(cx, &key).expect("within limits").map(|row| map.value(row).clone());
        assert_eq!(as_int(exact.as_ref()), model.get(&name(number)).copied());
        let (kind, row) = name(number);
        let other = if kind < 2 { model.get(&(1 - kind, row)) } else { None };
        let flexible = map.get(cx, &key).expect("within limits");
        assert_eq!(as_int(flexible), model.get(&name(number)).or(other).copied());
    }
    let mut ordered = map.ordered(cx).expect("within limits").map(|entry| as_int(Some(entry.value)));
    // Numbers sort before keywords, keywords before strings.
    for kind in [2, 0, 1] {
        for (_, value) in model.iter().filter(|((of, _), _)| *of == kind) {
            assert_eq!(ordered.next(), Some(Some(*value)));
        }
    }
}

fn as_int(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Int(int)) => Some(*int),
        _ => None,
    }
}

/// A row of JSON stores its values; its keys are shared.
#[test]
fn a_row_costs_the_same_however_many_keys_it_has() {
    let live = |rows: usize, row: &str| {
        let mut isolate = Isolate::new(Budget::default());
        let context = format!("{{\"rows\":[{}]}}", vec![row; rows].join(","));
        isolate.set_context(&context).expect("within limits");
        isolate.live_bytes()
    };
    let of_a_row = |row: &str| (live(2_000, row) - live(1_000, row)) / 1_000;
    // A node and its slot in the vector.
    assert_eq!(of_a_row(r#"{"a":1}"#), 96 + 16);
    assert_eq!(of_a_row(r#"{"a":1,"b":2,"c":3,"d":4}"#), 96 + 16);
    assert_eq!(of_a_row(r#"{"a":1,"b":2,"c":3,"d":4,"e":5}"#), 96 + 16 + 5 * 16);
}
