//! Writes JSON for people and for programs with its numbers as they came: another reader would round those that
//! are longer than its own.

use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt::Write;

/// Most levels that are indented, so that the text of a value is not much longer than the value, however deep it is.
const INDENTED: usize = 64;

/// JSON with the digits that it came with.
pub(super) type Exact = Box<RawValue>;

/// Reads JSON; `None` when it is none.
pub(super) fn read(json: &str) -> Option<Exact> {
    serde_json::from_str::<Exact>(json).ok()
}

/// A text as JSON.
pub(super) fn text(text: &str) -> Exact {
    // The text of a JSON string is JSON.
    RawValue::from_string(Value::from(text).to_string()).unwrap_or_default()
}

/// The text that a value is; `None` for another one.
pub(super) fn as_text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// On one line.
pub(super) fn compact(value: &RawValue) -> String {
    written(value, None)
}

/// On many lines, indented.
pub(super) fn indented(value: &RawValue) -> String {
    written(value, Some(0))
}

/// Writes the tokens of the value; `depth`: how far they are indented, if they are.
fn written(value: &RawValue, mut depth: Option<usize>) -> String {
    let mut out = String::with_capacity(value.get().len());
    let mut rest = value.get().trim_start();
    while let Some(first) = rest.chars().next() {
        let length = token(rest);
        let (token, after) = rest.split_at(length);
        rest = after.trim_start();
        match first {
            // An empty list or object stays on its line.
            '{' | '[' if rest.starts_with(['}', ']']) => {
                out.push(first);
                out.push_str(&rest[..1]);
                rest = rest[1..].trim_start();
            }
            '{' | '[' => {
                out.push(first);
                depth = depth.map(|depth| depth + 1);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.map(|depth| depth.saturating_sub(1));
                line(&mut out, depth);
                out.push(first);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(if depth.is_some() { ": " } else { ":" }),
            // Servers write characters as escapes that people read better.
            '"' => match serde_json::from_str::<String>(token) {
                Ok(text) => out.push_str(&Value::from(text).to_string()),
                Err(_) => out.push_str(token),
            },
            _ => out.push_str(token),
        }
    }
    out
}

/// Bytes of the first token of the rest of a value.
fn token(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    match bytes[0] {
        b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
        b'"' => {
            let mut at = 1;
            while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            (at + 1).min(rest.len())
        }
        _ => rest.find(|c: char| c.is_ascii_whitespace() || ",:{}[]\"".contains(c)).unwrap_or(rest.len()),
    }
}

/// Begins a line.
fn line(out: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n{:1$}", "", depth.min(INDENTED) * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_as_by_others_but_for_its_numbers() {
        let texts = [
            r#"{"a": [1, 2.5 , {"b":{}, "c": [ ]}], "é\n\"x\\": "\u00e9 , [ {", "t":true,"n" : null }"#,
            "[]",
            " [ [ ] , {} ] ",
            r#""a\\""#,
            "-3",
        ];
        for json in texts {
            let (exact, value) = (read(json).unwrap(), serde_json::from_str::<Value>(json).unwrap());
            assert_eq!(compact(&exact), value.to_string());
            assert_eq!(indented(&exact), format!("{value:#}"));
        }
        let deep = read(&("[".repeat(20_000) + "1" + &"]".repeat(20_000))).unwrap();
        assert!(indented(&deep).len() < 40_000 * (2 * INDENTED + 2));
        let long = "[18446744073709551616,0.12345678901234567890123,1E5]";
        assert_eq!(compact(&read(long).unwrap()), long);
        assert_eq!(as_text(&text("a\"b")).as_deref(), Some("a\"b"));
        assert!(as_text(&read("5").unwrap()).is_none() && read("5 5").is_none());
    }
}
