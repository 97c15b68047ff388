//! Tests of JSON: the decoder against serde_json, the encoder against the decoder, and both at their limits.

use super::{with_context, with_limits};
use crate::context::Context;
use crate::fault::Reason;
use crate::json::{DecodeFailure, EncodeFailure, Keys, decode, encode};
use crate::print::pr_str;
use crate::value::Value;
use crate::value::map::MapNode;

fn printed(cx: &mut Context, text: &str) -> Option<String> {
    match decode(cx, text.as_bytes()) {
        Ok(value) => Some(pr_str(cx, &value, usize::MAX).expect("prints").text),
        Err(DecodeFailure::Invalid(_)) => None,
        Err(DecodeFailure::Fault(fault)) => panic!("{fault:?}"),
    }
}

/// The value as serde_json decodes it equals ours, through our own encoder.
fn agrees(cx: &mut Context, bytes: &[u8]) {
    let theirs: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    match decode(cx, bytes) {
        Ok(value) => {
            let text = encode(cx, &value, Keys::NamesAndIntegers, usize::MAX)
                .expect("within limits")
                .expect("is JSON");
            let ours: serde_json::Value = serde_json::from_str(&text).expect("encodes to JSON");
            let theirs =
                theirs.unwrap_or_else(|| panic!("only we accept {:?}", String::from_utf8_lossy(bytes)));
            assert_eq!(ours.to_string(), sorted(theirs).to_string());
        }
        Err(DecodeFailure::Invalid(_)) => {
            assert!(theirs.is_none(), "only they accept {:?}", String::from_utf8_lossy(bytes));
        }
        Err(DecodeFailure::Fault(fault)) => panic!("{fault:?}"),
    }
}

fn sorted(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Array(items) => items.into_iter().map(sorted).collect(),
        serde_json::Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            serde_json::Value::Object(entries.into_iter().collect())
        }
        other => other,
    }
}

const TEXTS: &[&str] = &[
    "",
    " ",
    "null",
    "true",
    "false",
    "nul",
    "nulll",
    "truefalse",
    "0",
    "-1",
    "-",
    "01",
    "-01",
    "1.",
    ".5",
    "1.5",
    "1e5",
    "1E+5",
    "1e-5",
    "1e",
    "1e+",
    "+1",
    "123456789012345678",
    "9223372036854775807",
    "-9223372036854775808",
    "0.1",
    "2.2250738585072014e-308",
    "1e400",
    "\"\"",
    "\"a",
    "\"\\\"\"",
    "\"\\u0041\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"\\ude00\"",
    "\"\\ud83d\\u0041\"",
    "\"\\u12g4\"",
    "\"\\u12",
    "\"\\x\"",
    "\"\t\"",
    "\"\u{7f}\"",
    "\"\\b\\f\\n\\r\\t\\/\\\\\"",
    "\"日本語 😀 text that is longer than one word\"",
    "[]",
    "[ ]",
    "[1]",
    "[1,2]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[",
    "]",
    "[1",
    "{}",
    "{ }",
    "{\"a\":1}",
    "{\"a\":1,}",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{a:1}",
    "{\"a\":{\"b\":[{},[]]}}",
    "{\"b\":1,\"a\":2}",
    "[1}",
    "{\"a\":1]",
    "1 2",
    "\u{feff}1",
    "[\"x\",null,true,1.25,-0.5]",
    " \t\r\n[ 1 , 2 ] ",
    "{\"a\" : 1 , \"b\" : [ ] }",
    "/* */1",
    "NaN",
    "Infinity",
    "'a'",
];

#[test]
fn accepts_and_reads_what_serde_json_does() {
    with_context(|cx| {
        for text in TEXTS {
            agrees(cx, text.as_bytes());
        }
        agrees(cx, b"\"\xff\"");
        agrees(cx, b"\"abcdefgh\xc3\"");
        agrees(cx, b"\xff");
    });
}

#[test]
fn damaged_documents_agree_too() {
    let document =
        r#"{"rows":[{"id":1,"name":"a\u00e9\n","ok":true,"x":[1.5,-2e3,null]},{"id":2}],"n":{"m":{}}}"#;
    with_context(move |cx| {
        for at in 0..document.len() {
            agrees(cx, &document.as_bytes()[..at]);
            for byte in [b'"', b',', b'}', b']', b'0', b'\\', b' ', 0x01, 0xC3] {
                let mut damaged = document.as_bytes().to_vec();
                damaged[at] = byte;
                agrees(cx, &damaged);
            }
        }
    });
}

#[test]
fn integers_of_any_size_and_duplicate_keys() {
    with_context(|cx| {
        assert_eq!(printed(cx, "9223372036854775808").as_deref(), Some("9223372036854775808"));
        assert_eq!(printed(cx, "-0").as_deref(), Some("0"));
        assert_eq!(printed(cx, r#"{"a":1,"b":2,"a":3}"#).as_deref(), Some(r#"{"a" 3 "b" 2}"#));
        assert_eq!(printed(cx, &"1".repeat(4_096)), Some("1".repeat(4_096)));
        assert_eq!(printed(cx, &"1".repeat(4_097)), None);
    });
}

#[test]
fn errors_say_where() {
    with_context(|cx| {
        let Err(DecodeFailure::Invalid(error)) = decode(cx, b"{\"a\": [1, x]}") else { panic!("is no JSON") };
        assert_eq!(error.to_string(), "expected a value at byte 10");
    });
}

#[test]
fn depth_is_limited_by_memory_only() {
    with_context(|cx| {
        let text = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let value = decode(cx, text.as_bytes()).expect("decodes");
        assert_eq!(encode(cx, &value, Keys::NamesAndIntegers, usize::MAX).expect("within limits"), Ok(text));
    });
    let fault = with_limits(1_000_000_000, 1 << 20, |cx| decode(cx, "[".repeat(200_000).as_bytes()).err());
    assert!(matches!(fault, Some(DecodeFailure::Fault(fault)) if fault.reason == Reason::MemoryExceeded));
}

#[test]
fn a_long_text_ends_in_a_typed_fault() {
    let text = format!("[{}1]", "1,".repeat(500_000));
    let (short, copy) = (text.clone(), text.clone());
    let fault = with_limits(1_000_000_000, 1 << 20, move |cx| decode(cx, short.as_bytes()).err());
    assert!(matches!(fault, Some(DecodeFailure::Fault(fault)) if fault.reason == Reason::MemoryExceeded));
    let fault = with_limits(100_000, 1 << 30, move |cx| decode(cx, copy.as_bytes()).err());
    assert!(matches!(fault, Some(DecodeFailure::Fault(fault)) if fault.reason == Reason::FuelExceeded));
    with_context(move |cx| {
        let value = decode(cx, text.as_bytes()).expect("decodes");
        let cut = encode(cx, &value, Keys::NamesAndIntegers, 1_000).expect("within limits");
        assert_eq!(cut, Err(EncodeFailure::TooLarge { limit: 1_000, bytes: 1_001 }));
    });
}

#[test]
fn shared_structure_ends_in_a_typed_fault() {
    for (fuel, bytes, reason) in
        [(1_000_000, 1 << 30, Reason::FuelExceeded), (1_000_000_000, 1 << 20, Reason::MemoryExceeded)]
    {
        let fault = with_limits(fuel, bytes, |cx| {
            let mut value = Value::Nil;
            for _ in 0..64 {
                value = Value::vector(vec![value.clone(), value]);
            }
            let printed = pr_str(cx, &value, 100).expect("within limits");
            assert_eq!((printed.text.len(), printed.truncated, printed.bytes), (100, true, 101));
            encode(cx, &value, Keys::NamesAndIntegers, usize::MAX).expect_err("too much")
        });
        assert_eq!(fault.reason, reason);
    }
}

#[test]
fn what_has_no_json_form_is_named_with_its_place() {
    with_context(|cx| {
        let key = cx.keyword("a");
        let map =
            Value::Map(MapNode::insert(MapNode::empty(), cx, key.clone(), key.clone()).expect("inserts"));
        let rows = Value::vector(vec![Value::Int(1), map]);
        assert_eq!(
            encode(cx, &rows, Keys::Names, 99).expect("within limits"),
            Ok(r#"[1,{"a":"a"}]"#.to_owned())
        );
        let refused = |path: &str, kind| Err(EncodeFailure::NotJson { path: path.to_owned(), kind });
        let number =
            Value::Map(MapNode::insert(MapNode::empty(), cx, Value::Int(1), key.clone()).expect("inserts"));
        assert_eq!(encode(cx, &number, Keys::Names, 99).expect("within limits"), refused("1", "number"));
        let text = encode(cx, &number, Keys::NamesAndIntegers, 99).expect("within limits");
        assert_eq!(text, Ok(r#"{"1":"a"}"#.to_owned()));
        for (other, shown) in [(key.clone(), ":a"), (Value::string("a"), "\"a\"")] {
            let both = MapNode::insert(MapNode::empty(), cx, other, Value::Int(1)).expect("inserts");
            let third = if shown == ":a" { Value::string("a") } else { key.clone() };
            let both = MapNode::insert(both, cx, third, Value::Int(2)).expect("inserts");
            let rows = Value::vector(vec![Value::Map(both)]);
            let clash =
                EncodeFailure::SameName { path: "[0].a".into(), key: "\"a\"".into(), other: ":a".into() };
            assert_eq!(encode(cx, &rows, Keys::Names, 99).expect("within limits"), Err(clash));
        }
        let nan = Value::Float(f64::NAN);
        let name = Value::string("rows");
        let deep = Value::vector(vec![nan]);
        let deep = Value::Map(MapNode::insert(MapNode::empty(), cx, name, deep).expect("inserts"));
        assert_eq!(encode(cx, &deep, Keys::Names, 99).expect("within limits"), refused("rows[0]", "number"));
    });
}
