//! Sorting rows by keys in the natural order: stable, no panic whatever the keys are.
//!
//! What kinds of keys there are is looked at once. Integers are sorted as integers, strings by their
//! first eight bytes first, short vectors of leaves item by item; only keys that hold collections need
//! comparisons that pay fuel and can fault.

use crate::context::Context;
use crate::fault::Result;
use crate::order::{Ties, compare_leaf, compare_nested};
use crate::value::Value;
use std::cmp::Ordering;

/// Sorts rows by a key that borrows from elsewhere.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub(crate) fn sort_by_key<'v>(
    cx: &mut Context,
    rows: &mut [u32],
    key: impl Fn(&u32) -> &'v Value,
) -> Result<()> {
    sort_rows(cx, rows, key, Ties::Equal)
}

/// [`sort_by_key`] for the keys of a map or the members of a set: no two of them are equal in this order.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub(crate) fn sort_keys<'v>(
    cx: &mut Context,
    rows: &mut [u32],
    key: impl Fn(&u32) -> &'v Value,
) -> Result<()> {
    sort_rows(cx, rows, key, Ties::ByType)
}

fn sort_rows<'v>(
    cx: &mut Context,
    rows: &mut [u32],
    key: impl Fn(&u32) -> &'v Value,
    ties: Ties,
) -> Result<()> {
    if rows.len() < 2 {
        return Ok(());
    }
    pay(cx, rows.len())?;
    match kind_of(rows.iter().map(&key)) {
        Kind::Integers => by_small_key(rows, |row| match key(row) {
            Value::Int(int) => *int,
            _ => 0,
        }),
        Kind::Strings => {
            by_small_key_then(rows, |row| prefix(key(row)), |a, b| text(key(a)).cmp(text(key(b))))
        }
        Kind::Leaves => {
            let cx = &*cx;
            rows.sort_by(|a, b| compare_leaf(cx, key(a), key(b), ties));
        }
        Kind::IntegerPairs => by_small_key(rows, |row| match items(key(row)) {
            [Value::Int(first), Value::Int(second)] => (*first, *second),
            _ => (0, 0),
        }),
        Kind::Vectors => {
            let cx = &*cx;
            let keys: Vec<&[Value]> = rows.iter().map(|row| items(key(row))).collect();
            let mut places: Vec<u32> = (0..rows.len() as u32).collect();
            places.sort_by(|&a, &b| compare_items(cx, keys[a as usize], keys[b as usize], ties));
            let sorted: Vec<u32> = places.into_iter().map(|place| rows[place as usize]).collect();
            rows.copy_from_slice(&sorted);
        }
        Kind::Any => return merge_sort(cx, rows, |cx, a, b| compare_nested(cx, key(a), key(b), ties)),
    }
    Ok(())
}

/// Sorts rows by several keys each: those of a row are `width` neighbours in `parts`. None is a collection.
///
/// # Errors
/// Fuel, deadline, cancellation.
pub(crate) fn sort_by_parts(cx: &mut Context, rows: &mut [u32], parts: &[Value], width: usize) -> Result<()> {
    if rows.len() < 2 {
        return Ok(());
    }
    pay(cx, rows.len())?;
    let cx = &*cx;
    let part = |row: u32, at: usize| &parts[row as usize * width + at];
    let integer = |row: u32, at: usize| match part(row, at) {
        Value::Int(int) => *int,
        _ => 0,
    };
    let is_integers = |at: usize| rows.iter().all(|&row| matches!(part(row, at), Value::Int(_)));
    let rest = |row: u32, from: usize| &parts[row as usize * width..][from..width];
    match (is_integers(0), width) {
        (true, 2) if is_integers(1) => by_small_key(rows, |&row| (integer(row, 0), integer(row, 1))),
        (true, _) => by_small_key_then(
            rows,
            |&row| integer(row, 0),
            |&a, &b| compare_items(cx, rest(a, 1), rest(b, 1), Ties::Equal),
        ),
        _ => rows.sort_by(|&a, &b| compare_items(cx, rest(a, 0), rest(b, 0), Ties::Equal)),
    }
    Ok(())
}

fn pay(cx: &mut Context, rows: usize) -> Result<()> {
    let levels = usize::BITS - rows.leading_zeros();
    cx.tick(rows as u64 * u64::from(levels))?;
    // The widest copy of a key with its places.
    const COPY_BYTES: usize = 24;
    cx.reserve(rows.saturating_mul(COPY_BYTES + size_of::<u32>()))
}

/// What all keys are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integers,
    Strings,
    /// No collections: their order is total and comparing them cannot fault.
    Leaves,
    /// Vectors of two integers.
    IntegerPairs,
    /// Vectors of leaves.
    Vectors,
    Any,
}

fn kind_of<'v>(keys: impl Iterator<Item = &'v Value>) -> Kind {
    let mut whole = None;
    for key in keys {
        let kind = match key {
            Value::Int(_) => Kind::Integers,
            Value::Str(_) => Kind::Strings,
            Value::Vector(vector) => match vector.as_slice() {
                Some([Value::Int(_), Value::Int(_)]) => Kind::IntegerPairs,
                Some(items) if items.len() <= 8 && !items.iter().any(Value::is_composite) => Kind::Vectors,
                _ => return Kind::Any,
            },
            leaf if !leaf.is_composite() => Kind::Leaves,
            _ => return Kind::Any,
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
            Some(_) => return Kind::Any,
        });
    }
    whole.unwrap_or(Kind::Leaves)
}

/// Sorts by keys that are copied once; the place of a row decides ties, which keeps the sort stable.
fn by_small_key<K: Ord + Copy>(rows: &mut [u32], key: impl Fn(&u32) -> K) {
    by_small_key_then(rows, key, |_, _| Ordering::Equal);
}

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

fn compare_items(cx: &Context, a: &[Value], b: &[Value], ties: Ties) -> Ordering {
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

/// A bottom-up merge sort that stops at the first fault: the sort of the standard library may panic when
/// a comparison cannot answer.
fn merge_sort(
    cx: &mut Context,
    rows: &mut [u32],
    mut compare: impl FnMut(&mut Context, &u32, &u32) -> Result<Ordering>,
) -> Result<()> {
    let mut merged = Vec::with_capacity(rows.len());
    let mut width = 1;
    while width < rows.len() {
        for start in (0..rows.len()).step_by(width * 2) {
            let middle = (start + width).min(rows.len());
            let end = (start + width * 2).min(rows.len());
            let (mut left, mut right) = (start, middle);
            merged.clear();
            while left < middle && right < end {
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
