//! Sorts items by keys in the natural order of values, for `sort`, `sort-by` and the key order of maps and sets:
//! stably, with fast paths for integer and string keys. Items are given as rows (positions in a collection), and no
//! keys can cause a panic.
//!
//! The kinds of the keys are determined first. Integers are sorted as integers, strings by their first eight bytes
//! first, short vectors of leaves item by item; only keys that hold collections or are long need comparisons that pay
//! fuel and can fault. If comparisons cannot fault, the standard library sorts blocks of rows, which are then merged,
//! so that a sort pays as it goes.

use crate::fault::Result;
use crate::value::relation::order::{Ties, compare_leaf, compare_nested, is_short};
use crate::value::string::SHORT_TEXT;
use crate::value::{Store, Value};
use std::cmp::Ordering;

/// Rows sorted at once, in about a millisecond.
const BLOCK: usize = 16_384;

/// Sorts rows by a borrowed key.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub(crate) fn sort_by_key<'v>(
    cx: &mut Store,
    rows: &mut [u32],
    key: impl Fn(&u32) -> &'v Value,
) -> Result<()> {
    sort_rows(cx, rows, key, Ties::Equal)
}

/// [`sort_by_key`] for the keys of a map or the members of a set, which are distinct in this order.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub(crate) fn sort_keys<'v>(cx: &mut Store, rows: &mut [u32], key: impl Fn(&u32) -> &'v Value) -> Result<()> {
    sort_rows(cx, rows, key, Ties::ByType)
}

/// Sorts rows by a small key each, such as a number.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub(crate) fn sort_by_small_key<K: Ord + Copy>(
    cx: &mut Store,
    rows: &mut [u32],
    key: impl Fn(&u32) -> K,
) -> Result<()> {
    let sort = |_: &Store, block: &mut [u32]| by_small_key_then(block, &key, |_, _| Ordering::Equal);
    in_blocks(cx, rows, sort, |_, a, b| key(a).cmp(&key(b)))
}

fn sort_rows<'v>(
    cx: &mut Store,
    rows: &mut [u32],
    key: impl Fn(&u32) -> &'v Value,
    ties: Ties,
) -> Result<()> {
    match kind_of(cx, rows.iter().map(&key))? {
        Kind::Integers => sort_by_small_key(cx, rows, |row| integer(key(row))),
        Kind::Strings => {
            let order = |a: &u32, b: &u32| text(key(a)).cmp(text(key(b)));
            let sort = |_: &Store, block: &mut [u32]| by_small_key_then(block, |row| prefix(key(row)), order);
            in_blocks(cx, rows, sort, |_, a, b| order(a, b))
        }
        Kind::IntegerPairs => sort_by_small_key(cx, rows, |row| match items(key(row)) {
            [first, second] => (integer(first), integer(second)),
            _ => (0, 0),
        }),
        Kind::Leaves => {
            let order = |cx: &Store, a: &u32, b: &u32| compare_leaf(cx, key(a), key(b), ties);
            in_blocks(cx, rows, |cx, block| block.sort_by(|a, b| order(cx, a, b)), order)
        }
        Kind::Vectors => {
            let sort = |cx: &Store, block: &mut [u32]| {
                let keys: Vec<&[Value]> = block.iter().map(|row| items(key(row))).collect();
                let mut places: Vec<u32> = (0..block.len() as u32).collect();
                places.sort_by(|&a, &b| compare_items(cx, keys[a as usize], keys[b as usize], ties));
                let sorted: Vec<u32> = places.into_iter().map(|place| block[place as usize]).collect();
                block.copy_from_slice(&sorted);
            };
            in_blocks(cx, rows, sort, |cx, a, b| compare_items(cx, items(key(a)), items(key(b)), ties))
        }
        Kind::Any => {
            reserve(cx, rows.len())?;
            merge_sort(cx, rows, 1, |cx, a, b| compare_nested(cx, key(a), key(b), ties))
        }
    }
}

/// Sorts rows by several keys each: `width` adjacent items of `parts` for each row. All are short.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub(crate) fn sort_by_parts(cx: &mut Store, rows: &mut [u32], parts: &[Value], width: usize) -> Result<()> {
    let part = |row: u32, at: usize| &parts[row as usize * width + at];
    let is_integers = |cx: &Store, at: usize| -> Result<bool> {
        for block in rows.chunks(BLOCK) {
            if !block.iter().all(|&row| matches!(part(row, at), Value::Int(_))) {
                return Ok(false);
            }
            cx.fuel.poll()?;
        }
        Ok(true)
    };
    let rest = |row: u32, from: usize| &parts[row as usize * width..][from..width];
    let first = is_integers(cx, 0)?;
    match (first, width) {
        (true, 2) if is_integers(cx, 1)? => {
            sort_by_small_key(cx, rows, |&row| (integer(part(row, 0)), integer(part(row, 1))))
        }
        (is_integer, _) => {
            let order =
                |cx: &Store, &a: &u32, &b: &u32| compare_items(cx, rest(a, 0), rest(b, 0), Ties::Equal);
            let sort = |cx: &Store, block: &mut [u32]| match is_integer {
                true => by_small_key_then(
                    block,
                    |&row| integer(part(row, 0)),
                    |&a, &b| compare_items(cx, rest(a, 1), rest(b, 1), Ties::Equal),
                ),
                false => block.sort_by(|a, b| order(cx, a, b)),
            };
            in_blocks(cx, rows, sort, order)
        }
    }
}

/// Sorts blocks one after the other, and merges them.
fn in_blocks(
    cx: &mut Store,
    rows: &mut [u32],
    sort: impl Fn(&Store, &mut [u32]),
    order: impl Fn(&Store, &u32, &u32) -> Ordering,
) -> Result<()> {
    if rows.len() < 2 {
        return Ok(());
    }
    reserve(cx, rows.len())?;
    for block in rows.chunks_mut(BLOCK) {
        pay_block(cx, block.len())?;
        sort(cx, block);
    }
    merge_sort(cx, rows, BLOCK, |cx, a, b| Ok(order(cx, a, b)))
}

fn reserve(cx: &mut Store, rows: usize) -> Result<()> {
    // The widest copy of a key with its row.
    const COPY_BYTES: usize = 24;
    cx.reserve(rows.saturating_mul(size_of::<u32>()).saturating_add(rows.min(BLOCK) * COPY_BYTES))
}

fn pay_block(cx: &mut Store, rows: usize) -> Result<()> {
    let levels = usize::BITS - rows.leading_zeros();
    cx.tick(rows as u64 * u64::from(levels))
}

/// The common kind of all keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integers,
    /// Short strings.
    Strings,
    /// Short values, no collections: their order is total and comparing them cannot fault.
    Leaves,
    /// Vectors of two integers.
    IntegerPairs,
    /// Vectors of short values.
    Vectors,
    Any,
}

fn kind_of<'v>(cx: &Store, keys: impl Iterator<Item = &'v Value>) -> Result<Kind> {
    let mut whole = None;
    for (at, key) in keys.enumerate() {
        if at % BLOCK == BLOCK - 1 {
            cx.fuel.poll()?;
        }
        let kind = match key {
            Value::Int(_) => Kind::Integers,
            Value::Str(node) if node.as_str().len() <= SHORT_TEXT => Kind::Strings,
            Value::Vector(vector) => match vector.as_slice() {
                Some([Value::Int(_), Value::Int(_)]) => Kind::IntegerPairs,
                Some(items) if items.len() <= 8 && items.iter().all(is_short) => Kind::Vectors,
                _ => return Ok(Kind::Any),
            },
            leaf if is_short(leaf) => Kind::Leaves,
            _ => return Ok(Kind::Any),
        };
        whole = Some(match whole {
            None => kind,
            Some(before) if before == kind => kind,
            Some(Kind::IntegerPairs | Kind::Vectors)
                if matches!(kind, Kind::IntegerPairs | Kind::Vectors) =>
            {
                Kind::Vectors
            }
            Some(Kind::Integers | Kind::Strings | Kind::Leaves)
                if matches!(kind, Kind::Integers | Kind::Strings | Kind::Leaves) =>
            {
                Kind::Leaves
            }
            Some(_) => return Ok(Kind::Any),
        });
    }
    Ok(whole.unwrap_or(Kind::Leaves))
}

/// Sorts by copied keys; where those and `tie` are equal, the row number decides, which keeps the sort stable.
fn by_small_key_then<K: Ord + Copy>(
    rows: &mut [u32],
    key: impl Fn(&u32) -> K,
    tie: impl Fn(&u32, &u32) -> Ordering,
) {
    let mut keyed: Vec<(K, u32, u32)> =
        rows.iter().enumerate().map(|(place, row)| (key(row), place as u32, *row)).collect();
    keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| tie(&a.2, &b.2)).then(a.1.cmp(&b.1)));
    for (row, (_, _, sorted)) in rows.iter_mut().zip(keyed) {
        *row = sorted;
    }
}

fn integer(key: &Value) -> i64 {
    match key {
        Value::Int(int) => *int,
        _ => 0,
    }
}

fn text(key: &Value) -> &str {
    key.as_str().unwrap_or_default()
}

/// The first eight bytes of a text as a number of the same order.
fn prefix(key: &Value) -> u64 {
    let text = text(key).as_bytes();
    let mut bytes = [0; 8];
    let length = text.len().min(8);
    bytes[..length].copy_from_slice(&text[..length]);
    u64::from_be_bytes(bytes)
}

fn items(key: &Value) -> &[Value] {
    match key {
        Value::Vector(vector) => vector.as_slice().unwrap_or_default(),
        _ => &[],
    }
}

fn compare_items(cx: &Store, a: &[Value], b: &[Value], ties: Ties) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let order = match (a, b) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Str(a), Value::Str(b)) => a.as_str().cmp(b.as_str()),
            (a, b) => compare_leaf(cx, a, b, ties),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// A bottom-up merge sort of rows in which each group of `sorted` neighbours is in order. It stops at the first
/// fault; the standard library's sort may panic if a comparison has no answer.
fn merge_sort(
    cx: &mut Store,
    rows: &mut [u32],
    sorted: usize,
    mut compare: impl FnMut(&mut Store, &u32, &u32) -> Result<Ordering>,
) -> Result<()> {
    if rows.len() <= sorted {
        return Ok(());
    }
    let mut merged = Vec::with_capacity(rows.len());
    let mut width = sorted;
    while width < rows.len() {
        for start in (0..rows.len()).step_by(width * 2) {
            let middle = (start + width).min(rows.len());
            let end = (start + width * 2).min(rows.len());
            let (mut left, mut right) = (start, middle);
            merged.clear();
            while left < middle && right < end {
                cx.tick(1)?;
                // Taking the left one on ties keeps the sort stable.
                if compare(cx, &rows[right], &rows[left])? == Ordering::Less {
                    merged.push(rows[right]);
                    right += 1;
                } else {
                    merged.push(rows[left]);
                    left += 1;
                }
            }
            merged.extend_from_slice(&rows[left..middle]);
            merged.extend_from_slice(&rows[right..end]);
            rows[start..end].copy_from_slice(&merged);
        }
        width *= 2;
    }
    Ok(())
}
