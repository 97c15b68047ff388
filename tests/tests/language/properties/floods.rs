//! Maps with many colliding keys behave like a naive model.

use crate::properties::for_all;
use crate::properties::values::in_isolate;
use proptest::prelude::*;
use ptc_tests::collisions;
use ptc_vm::value::map::MapNode;
use ptc_vm::value::relation::order::compare_keys;
use ptc_vm::{Budget, Context, Isolate, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A step on one of several maps, with many keys at once: a flood needs more than a few.
#[derive(Clone, Debug)]
enum Step {
    Copy { from: usize, to: usize },
    Insert { map: usize, first: u32, count: u32, value: i64 },
    Remove { map: usize, first: u32, count: u32 },
    Order { map: usize },
}

const MAPS: usize = 3;
const KEYS: u32 = 600;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (map, first) = (0..MAPS, 0..KEYS);
    let step = prop_oneof![
        2 => (map.clone(), map.clone()).prop_map(|(from, to)| Step::Copy { from, to }),
        6 => (map.clone(), first.clone(), 1u32..300, any::<i64>())
            .prop_map(|(map, first, count, value)| Step::Insert { map, first, count, value }),
        4 => (map.clone(), first, 1u32..400).prop_map(|(map, first, count)| Step::Remove { map, first, count }),
        1 => map.prop_map(|map| Step::Order { map }),
    ];
    prop::collection::vec(step, 0..16)
}

/// Keys of which most collide with many others, and a few with none.
fn key(cx: &mut Context, number: u32) -> Value {
    let nth = number / 8;
    match number % 8 {
        0 | 1 => Value::Int(collisions::integer(number)),
        2 => Value::Float(collisions::float(number).unwrap_or(f64::from(number))),
        3 => Value::vector(vec![Value::Int(collisions::integer(number))]),
        // The hash reads only the first items.
        4 => {
            let mut items = vec![Value::Nil; 12];
            items.push(Value::Int(nth.into()));
            Value::vector(items)
        }
        5 => Value::string(&collisions::long_text(nth)),
        6 => cx.keyword(&format!("k{nth}")),
        _ => Value::string(&format!("k{nth}")),
    }
}

#[test]
fn maps_whose_keys_collide_behave_like_any_others() {
    for_all(150, steps(), |steps| {
        in_isolate(|cx| {
            let keys: Vec<Value> = (0..KEYS).map(|number| key(cx, number)).collect();
            let mut maps = vec![MapNode::empty(); MAPS];
            let mut models: Vec<BTreeMap<u32, i64>> = vec![BTreeMap::new(); MAPS];
            for step in &steps {
                match *step {
                    Step::Copy { from, to } => {
                        maps[to] = maps[from].clone();
                        models[to] = models[from].clone();
                    }
                    Step::Insert { map, first, count, value } => {
                        for number in (first..first + count).map(|number| number % KEYS) {
                            let taken = std::mem::replace(&mut maps[map], MapNode::empty());
                            let key = keys[number as usize].clone();
                            maps[map] = MapNode::insert(taken, cx, key, Value::Int(value)).expect("inserts");
                            models[map].insert(number, value);
                        }
                    }
                    Step::Remove { map, first, count } => {
                        for number in (first..first + count).map(|number| number % KEYS) {
                            let taken = std::mem::replace(&mut maps[map], MapNode::empty());
                            maps[map] = MapNode::remove(taken, cx, &keys[number as usize]).expect("removes");
                            models[map].remove(&number);
                        }
                    }
                    Step::Order { map } => drop(maps[map].order(cx).expect("within limits")),
                }
            }
            for (map, model) in maps.iter().zip(&models) {
                check(cx, map, model, &keys);
            }
        });
    });
}

fn check(cx: &mut Context, map: &Rc<MapNode>, model: &BTreeMap<u32, i64>, keys: &[Value]) {
    assert_eq!(map.len(), model.len());
    for (number, key) in keys.iter().enumerate() {
        let row = map.find(cx, key).expect("within limits");
        let value = row.map(|row| match map.value(row) {
            Value::Int(value) => *value,
            _ => panic!("an integer"),
        });
        assert_eq!(value, model.get(&(number as u32)).copied(), "key {number}");
        if let Value::Keyword(symbol) = key {
            let named = map.find_named(cx, *symbol).is_some();
            assert_eq!(
                named,
                model.contains_key(&(number as u32)) || model.contains_key(&(number as u32 + 1))
            );
        }
    }
    let ordered: Vec<&Value> = map.ordered(cx).expect("within limits").map(|entry| entry.key).collect();
    for pair in ordered.windows(2) {
        assert_eq!(compare_keys(cx, pair[0], pair[1]).expect("within limits"), Ordering::Less);
    }
}

/// The memory account of a map does not depend on whether it was flooded.
#[test]
fn a_flooded_map_is_on_the_account_like_any_other() {
    let live = |key: fn(u32) -> i64| {
        let mut isolate = Isolate::new(Budget { memory_bytes: 64 << 20, ..Budget::default() });
        let map = isolate.with(|cx| {
            let fill =
                |map, nth| MapNode::insert(map, cx, Value::Int(key(nth)), Value::Nil).expect("inserts");
            (0..5_000).fold(MapNode::empty(), fill)
        });
        let live = isolate.live_bytes();
        isolate.with(|_| drop(map));
        assert_eq!(isolate.close(), 0);
        live
    };
    assert_eq!(live(collisions::integer), live(i64::from));
}
