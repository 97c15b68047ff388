//! Printed values read back as themselves.

use crate::properties::for_all;
use crate::properties::values::{Build, Plain, in_isolate, printed, texts, values};
use proptest::prelude::*;
use ptc_tests::variants::{Budget, Ending, USUAL, run};
use ptc_vm::Value;
use ptc_vm::value::relation::equal::equal;
use ptc_vm::value::temporal::{DateTime, LocalDate};

const BUDGET: Budget = Budget { fuel: 10_000_000, memory_bytes: 64 << 20 };

fn read_and_print(text: &str) -> Option<Ending> {
    run(text, &BUDGET, &USUAL).map(|ran| ran.ending)
}

#[test]
fn what_is_printed_reads_and_prints_the_same() {
    for_all(1_500, values(), |plain| {
        if plain.has_dates_as_keys() {
            return;
        }
        let text = in_isolate(|cx| {
            let value = plain.build(cx, Build::Usual);
            printed(cx, &value)
        });
        assert_eq!(read_and_print(&text), Some(Ending::Done(text.clone())), "{text}");
    });
}

/// Maps and sets print in key order, whatever their history.
#[test]
fn the_representation_is_not_printed() {
    for_all(1_500, values(), |plain| {
        in_isolate(|cx| {
            let (usual, other) = (plain.build(cx, Build::Usual), plain.build(cx, Build::Other));
            assert_eq!(printed(cx, &usual), printed(cx, &other));
        });
    });
}

#[test]
fn a_printed_string_is_the_string() {
    for_all(1_000, texts(), |text| {
        let literal = in_isolate(|cx| {
            let value = Value::string(&text);
            printed(cx, &value)
        });
        let program = format!("(return (json/generate-string {literal}))");
        let Some(Ending::Return(json)) = read_and_print(&program) else { panic!("{program}") };
        let json: String = serde_json::from_str(&json).expect("a printed string is a JSON string or close");
        let back: String = serde_json::from_str(&json).expect("JSON");
        assert_eq!(back, text, "{program}");
    });
}

/// A float prints as the shortest text that reads as the same float.
#[test]
fn floats_read_back_to_the_last_bit() {
    for_all(5_000, any::<f64>(), |number| {
        let text = in_isolate(|cx| printed(cx, &Value::Float(number)));
        match number.is_finite() {
            true => assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(number.to_bits()), "{text}"),
            false => assert!(text.starts_with("##"), "{text}"),
        }
    });
}

/// A date prints as the string from which it is parsed.
#[test]
fn dates_parse_from_what_they_print() {
    for_all(2_000, -3_000_000i64..2_900_000, |days| {
        let date = LocalDate::from_epoch_day(days).expect("in range");
        assert_eq!(LocalDate::parse(&date.to_string()), Some(date));
    });
    for_all(2_000, -200_000_000_000_000i64..200_000_000_000_000, |millis| {
        let instant = DateTime::from_millis(millis).expect("in range");
        assert_eq!(DateTime::parse(&instant.to_string()), Some(instant), "{instant}");
    });
}

/// JSON values come back equal; any other value with a JSON form gives the same text again.
#[test]
fn json_gives_back_what_it_took() {
    for_all(1_500, values(), |plain| {
        in_isolate(|cx| {
            let value = plain.build(cx, Build::Usual);
            let encoded = ptc_vm::json::encode(cx, &value, ptc_vm::json::Keys::NamesAndIntegers, usize::MAX);
            let Ok(text) = encoded.expect("within limits") else { return };
            let back = ptc_vm::json::decode(cx, text.as_bytes()).expect("our own JSON");
            if is_json(&plain) {
                assert!(equal(cx, &value, &back).expect("within limits"), "{text}");
            }
            let again = ptc_vm::json::encode(cx, &back, ptc_vm::json::Keys::NamesAndIntegers, usize::MAX);
            let again = again.expect("within limits").expect("JSON again");
            // Keys that become strings may sort differently.
            assert!(has_other_keys(&plain) || again == text, "{text} {again}");
        });
    });
}

fn is_json(plain: &Plain) -> bool {
    match plain {
        Plain::Nil | Plain::Bool(_) | Plain::Int(_) | Plain::Big(_) | Plain::Float(_) | Plain::Text(_) => {
            true
        }
        Plain::Vector(items) => items.iter().all(is_json),
        Plain::Map(entries) => {
            entries.iter().all(|(key, value)| matches!(key, Plain::Text(_)) && is_json(value))
        }
        _ => false,
    }
}

fn has_other_keys(plain: &Plain) -> bool {
    match plain {
        Plain::Vector(items) | Plain::Set(items) => items.iter().any(has_other_keys),
        Plain::Map(entries) => {
            entries.iter().any(|(key, value)| !matches!(key, Plain::Text(_)) || has_other_keys(value))
        }
        _ => false,
    }
}
