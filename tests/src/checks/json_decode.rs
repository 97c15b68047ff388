//! Checks our JSON decoder against serde_json on arbitrary bytes.

use ptc_vm::json::{DecodeFailure, Keys, decode, encode};
use ptc_vm::value::relation::equal::equal;
use ptc_vm::{Budget, Context, Isolate, Value};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A document as serde_json reads it: entries in the order of the text, repeated keys included.
enum Theirs {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    Array(Vec<Theirs>),
    Object(Vec<(String, Theirs)>),
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Theirs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E: Error>(self) -> Result<Theirs, E> {
        Ok(Theirs::Null)
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<Theirs, E> {
        Ok(Theirs::Bool(value))
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<Theirs, E> {
        Ok(Theirs::Integer(value.into()))
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<Theirs, E> {
        Ok(Theirs::Integer(value.into()))
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Theirs, E> {
        Ok(Theirs::Float(value))
    }
    fn visit_str<E: Error>(self, value: &str) -> Result<Theirs, E> {
        Ok(Theirs::Text(value.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Theirs, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Theirs::Array(all))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Theirs, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            all.push(entry);
        }
        Ok(Theirs::Object(all))
    }
}

impl<'de> Deserialize<'de> for Theirs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Theirs, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// Most digits of an integer; `json` refuses longer ones.
const MOST_DIGITS: usize = 4_096;

/// Longer integers overflow a float, the only type that serde_json has for them.
const THEIR_DIGITS: usize = 308;

/// serde_json's limit of nesting; ours is memory.
const THEIR_DEPTH: usize = 127;

/// We accept what serde_json accepts, with the same value; our value, written and read again, is equal; and no byte
/// of memory stays behind.
pub fn json_decode(data: &[u8]) {
    let theirs = serde_json::from_slice::<Theirs>(data);
    let mut isolate = Isolate::new(Budget { memory_bytes: 64 << 20, fuel: 100_000_000, ..Budget::default() });
    let accepted = isolate.with(|cx| match decode(cx, data) {
        Ok(value) => {
            if let Ok(theirs) = &theirs {
                assert!(same(cx, &value, theirs), "read otherwise: {:?}", String::from_utf8_lossy(data));
            }
            check_way_back(cx, &value);
            true
        }
        Err(DecodeFailure::Invalid(error)) => {
            assert!(error.offset <= data.len(), "{error} in {} bytes", data.len());
            false
        }
        Err(DecodeFailure::Fault(fault)) => panic!("{fault:?}"),
    });
    let (deep, digits) = (nesting(data) > THEIR_DEPTH, longest_number(data));
    match accepted {
        true => assert!(
            theirs.is_ok() || deep || digits > THEIR_DIGITS,
            "only we accept {:?}",
            String::from_utf8_lossy(data)
        ),
        false => assert!(
            theirs.is_err() || digits > MOST_DIGITS,
            "only they accept {:?}",
            String::from_utf8_lossy(data)
        ),
    }
    assert_eq!(isolate.close(), 0, "bytes left behind by {:?}", String::from_utf8_lossy(data));
}

fn check_way_back(cx: &mut Context, value: &Value) {
    let write = |cx: &mut Context, value: &Value| {
        let written = encode(cx, value, Keys::NamesAndIntegers, usize::MAX);
        written.expect("within limits").expect("what JSON gave has a JSON form")
    };
    let text = write(cx, value);
    let again = decode(cx, text.as_bytes()).unwrap_or_else(|error| panic!("{error:?} in {text}"));
    assert!(equal(cx, value, &again).expect("within limits"), "reads otherwise: {text}");
    assert_eq!(text, write(cx, &again));
}

/// Nests at most [`THEIR_DEPTH`] levels, so it may recurse.
fn same(cx: &mut Context, ours: &Value, theirs: &Theirs) -> bool {
    match (ours, theirs) {
        (Value::Nil, Theirs::Null) => true,
        (Value::Bool(ours), Theirs::Bool(theirs)) => ours == theirs,
        (Value::Int(ours), Theirs::Integer(theirs)) => i128::from(*ours) == *theirs,
        (Value::BigInt(ours), Theirs::Integer(theirs)) => ours.get().to_string() == theirs.to_string(),
        // Integers too large for serde_json's integer types.
        (Value::BigInt(ours), Theirs::Float(theirs)) => {
            ours.get().to_string().parse::<f64>().is_ok_and(|ours| near(ours, *theirs))
        }
        // Our integer zero has no sign.
        (Value::Int(0), Theirs::Float(theirs)) => *theirs == 0.0,
        (Value::Float(ours), Theirs::Float(theirs)) => near(*ours, *theirs),
        (Value::Str(ours), Theirs::Text(theirs)) => ours.as_str() == theirs,
        (Value::Vector(ours), Theirs::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| same(cx, &ours, theirs))
        }
        (Value::Map(ours), Theirs::Object(theirs)) => {
            // The last of equal keys counts.
            let last = |index: usize| !theirs[index + 1..].iter().any(|(key, _)| *key == theirs[index].0);
            let distinct: Vec<usize> = (0..theirs.len()).filter(|&index| last(index)).collect();
            ours.len() == distinct.len()
                && distinct.iter().all(|&index| {
                    let (key, value) = &theirs[index];
                    let key = Value::string(key);
                    let found = ours.get(cx, &key).expect("within limits").cloned();
                    found.is_some_and(|found| same(cx, &found, value))
                })
        }
        _ => false,
    }
}

/// serde_json reads floats fast, not to the last bit.
fn near(ours: f64, theirs: f64) -> bool {
    ours == theirs
        || (ours - theirs).abs() <= ours.abs().max(theirs.abs()) * 1e-15
        || (ours - theirs).abs() < 1e-320
}

/// An upper bound on how deep brackets nest.
fn nesting(data: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in data {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn longest_number(data: &[u8]) -> usize {
    data.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).max().unwrap_or(0)
}
