//! Tests of both kinds of index against a model, with colliding hashes.

use super::slots::PROBES;
use super::{Entry, Index};
use crate::value::Value;
use crate::value::relation::hash::hash_value;
use crate::value::relation::text_hash::hash_text;
use crate::value::testing::with_store;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Pseudo-random numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) % limit
    }
}

/// The owner of an index: keys with their hashes.
struct Owner {
    keys: Vec<u64>,
    index: Index,
    hash: fn(u64) -> u32,
    compared: Cell<usize>,
}

impl Owner {
    fn new(hash: fn(u64) -> u32) -> Owner {
        Owner { keys: Vec::new(), index: Index::with_room(0), hash, compared: Cell::new(0) }
    }

    fn find(&self, key: u64) -> Option<usize> {
        self.compared.set(0);
        let count = || self.compared.set(self.compared.get() + 1);
        let Ok(found) = self.index.find(
            &mut (),
            (self.hash)(key),
            |_, row| {
                count();
                Ok::<_, Infallible>(self.keys[row] == key)
            },
            |_, row| {
                count();
                Ok(self.keys[row].cmp(&key))
            },
        );
        found
    }

    fn insert(&mut self, key: u64) {
        let Owner { keys, index, hash, .. } = self;
        let entry = Entry::new(hash(key), keys.len() as u32);
        let Ok(inserted) = index.insert(&mut (), entry, |_, row| Ok::<_, Infallible>(keys[row].cmp(&key)));
        keys.push(key);
        if inserted.is_err() {
            let mut rows: Vec<u32> = (0..keys.len() as u32).collect();
            rows.sort_by_key(|&row| (hash(keys[row as usize]), keys[row as usize]));
            let entry = |&row: &u32| Entry::new(hash(keys[row as usize]), row);
            *index = Index::sorted(&rows.iter().map(entry).collect::<Vec<_>>());
        }
    }

    fn remove(&mut self, row: usize) {
        let Owner { keys, index, hash, .. } = self;
        let (gone, last) = (keys[row], keys.len() - 1);
        let moved = (row != last).then(|| (Entry::new(hash(keys[last]), last as u32), row as u32));
        let order = |key: u64| {
            let keys = &*keys;
            move |_: &mut (), row: usize| Ok::<_, Infallible>(keys[row].cmp(&key))
        };
        let entry = Entry::new(hash(gone), row as u32);
        let Ok(()) = index.remove(&mut (), entry, moved, order(gone), order(keys[last]));
        keys.swap_remove(row);
        index.shrink(&mut (), keys.len().max(16));
    }
}

type Hash = fn(u64) -> u32;

/// Hash functions, and whether their keys flood an index.
const HASHES: &[(&str, bool, Hash)] = &[
    ("all different", false, |key| (key as u32).wrapping_mul(0x9E37_79B1)),
    ("in pairs", false, |key| (key as u32 / 2).wrapping_mul(0x9E37_79B1)),
    ("all the same", true, |_| 7),
    ("three", true, |key| (key % 3) as u32),
    ("the low bits the same", true, |key| (key as u32) << 16),
    ("one and others", true, |key| if key.is_multiple_of(2) { 1 << 20 } else { key as u32 * 0x9E37 }),
];

#[test]
fn finds_what_is_there_and_nothing_else() {
    for &(name, floods, hash) in HASHES {
        let mut numbers = Numbers(1);
        let mut owner = Owner::new(hash);
        let mut model: BTreeMap<u64, ()> = BTreeMap::new();
        for step in 0..30_000u64 {
            let key = numbers.below(4_000);
            // It grows, shrinks, and grows again.
            let grows = !(10_000..20_000).contains(&step);
            match owner.find(key) {
                Some(row) => {
                    assert!(owner.keys[row] == key && model.contains_key(&key), "{name}: {key}");
                    if !grows || step % 4 == 0 {
                        owner.remove(row);
                        model.remove(&key);
                    }
                }
                None => {
                    assert!(!model.contains_key(&key), "{name}: {key}");
                    if grows {
                        owner.insert(key);
                        model.insert(key, ());
                    }
                }
            }
            assert_eq!(owner.keys.len(), model.len());
            assert!(owner.compared.get() <= PROBES, "{name}: {} comparisons", owner.compared.get());
        }
        assert!(model.len() > 1_000);
        for key in 0..4_000 {
            assert_eq!(owner.find(key).is_some(), model.contains_key(&key), "{name}: {key}");
        }
        assert_eq!(matches!(owner.index, Index::Sorted(_)), floods, "{name}");
    }
}

/// Typical keys of programs do not flood, however many there are.
#[test]
fn usual_keys_do_not_flood() {
    type Make = fn(u32) -> Value;
    let kinds: &[(&str, Make)] = &[
        ("numbers in a row", |n| Value::Int(i64::from(n))),
        ("numbers below 0", |n| Value::Int(-i64::from(n))),
        ("pages", |n| Value::Int(i64::from(n) << 12)),
        ("large steps", |n| Value::Int(i64::from(n) << 32)),
        ("floats", |n| Value::Float(f64::from(n))),
        ("parts", |n| Value::Float(f64::from(n) / 1_000.0)),
        ("names", |n| Value::string(&format!("w{n}"))),
        ("longer names", |n| Value::string(&format!("https://example.org/items/{n}.html?page=1"))),
        ("long texts", |n| Value::string(&format!("{n:0300}"))),
        ("pairs", |n| {
            Value::vector(vec![Value::Int(i64::from(n % 1_000)), Value::Int(i64::from(n / 1_000))])
        }),
    ];
    for &(name, make) in kinds {
        with_store(move |cx| {
            let mut index = Index::with_room(0);
            for row in 0..200_000 {
                let hash = hash_value(cx, &make(row)).expect("within limits");
                let Ok(inserted) =
                    index.insert(&mut (), Entry::new(hash, row), |_, _| Ok::<_, Infallible>(Ordering::Less));
                assert!(inserted.is_ok(), "{name}: flooded by {row}");
            }
        });
    }
}

/// The hash of a text is part of the cost of programs: it must be the same everywhere, and never change.
#[test]
fn hashes_are_known() {
    let long = "0123456789".repeat(100);
    let texts = ["", "a", "name", "user_id", "sixteen letters!", "seventeen letters", "é", &long];
    let known = [
        3_096_433_217,
        2_066_448_516,
        59_254_352,
        906_176_169,
        3_723_625_175,
        2_285_120_694,
        1_725_632_523,
        4_190_341_060,
    ];
    assert_eq!(texts.map(hash_text), known);
    with_store(|cx| {
        let values = [
            Value::Nil,
            Value::Int(1),
            Value::Int(-1),
            Value::Float(1.0),
            Value::vector(vec![Value::Int(1), Value::Nil]),
        ];
        let hashes = values.map(|value| hash_value(cx, &value).expect("within limits"));
        assert_eq!(hashes, [1, 607_091_784, 2_883_183_934, 2_222_611_348, 2_655_829_237]);
    });
}

/// A list that has shrunk is searched as quickly as one that was never long.
#[test]
fn a_sorted_list_joins_what_is_left_of_it() {
    let mut owner = Owner::new(|_| 1);
    (0..20_000).for_each(|key| owner.insert(key));
    while owner.keys.len() > 100 {
        owner.remove(owner.keys.len() / 2);
    }
    let Index::Sorted(sorted) = &owner.index else { panic!("not flooded") };
    assert!(sorted.chunk_count() <= 8, "{}", sorted.chunk_count());
    for key in owner.keys.clone() {
        assert!(owner.find(key).is_some());
        assert!(owner.compared.get() <= 16, "{}", owner.compared.get());
    }
}
