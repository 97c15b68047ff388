//! Redacts secrets in JSON messages without breaking them: JSON syntax, and the keys and constants that the message
//! format defines, such as `"type": "text"`, stay as they are.
//!
//! A secret may be `text` or `id` or `1`: replacing it wherever it occurs would destroy the message. So only
//! the contents of strings change, and numbers in foreign data, and a [`DocumentShape`] names the parts that the
//! format defines. Everything it does not name counts as foreign, including keys: if a key is missing in the
//! list, it is redacted needlessly, never leaked.

use super::REDACTED;
use std::borrow::Cow;

/// What the value of a known key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyClass {
    /// Data that a peer sent and gets back, or a constant: nothing in it changes.
    Verbatim,
    /// Words of a closed set, one or a list. An object instead has known keys.
    Words,
    /// Text, or an object with known keys.
    Fields,
    /// Foreign data: strings, keys and numbers all count as text.
    Data,
}

/// The known keys of one kind of message.
#[derive(Clone, Copy, Debug)]
pub struct DocumentShape {
    /// Keys by class.
    pub keys: &'static [(KeyClass, &'static [&'static str])],
    /// The class of all other keys.
    pub unknown: KeyClass,
}

impl DocumentShape {
    /// The shape of data that is foreign throughout.
    pub const DATA: DocumentShape = DocumentShape { keys: &[], unknown: KeyClass::Data };

    fn class(&self, key: &str) -> Option<KeyClass> {
        self.keys.iter().find(|(_, keys)| keys.contains(&key)).map(|(class, _)| *class)
    }

    const fn top(&self) -> KeyClass {
        if self.keys.is_empty() { self.unknown } else { KeyClass::Fields }
    }
}

const WORDS: [&str; 3] = ["true", "false", "null"];

struct OpenValue {
    is_object: bool,
    class: KeyClass,
    /// The class of the value of the latest key.
    value: KeyClass,
    wants_key: bool,
}

/// Rewrites the texts, each string with `scrub`; `None` when they are no JSON.
pub(super) fn scrub_document<'t>(
    text: &'t str,
    shape: &DocumentShape,
    scrub: impl Fn(&'t str) -> Cow<'t, str>,
) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<OpenValue> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        match bytes[start] {
            opening @ (b'{' | b'[') => {
                let is_object = opening == b'{';
                let class = match class_here(&open, shape) {
                    KeyClass::Words if is_object => KeyClass::Fields,
                    class => class,
                };
                open.push(OpenValue { is_object, class, value: class, wants_key: is_object });
            }
            b'}' | b']' => {
                open.pop()?;
            }
            b',' => {
                let frame = open.last_mut()?;
                frame.wants_key = frame.is_object;
            }
            b':' | b' ' | b'\n' | b'\t' | b'\r' => {}
            b'"' => {
                at = string_end(bytes, at)?;
                let content = &text[start + 1..at - 1];
                let keep = match open.last_mut().filter(|frame| frame.wants_key) {
                    Some(frame) => {
                        frame.wants_key = false;
                        let known = if frame.class == KeyClass::Fields { shape.class(content) } else { None };
                        frame.value = match (known, frame.class) {
                            (Some(class), _) => class,
                            (None, KeyClass::Fields) => shape.unknown,
                            (None, class) => class,
                        };
                        known.is_some() || frame.class == KeyClass::Verbatim
                    }
                    None => matches!(class_here(&open, shape), KeyClass::Verbatim | KeyClass::Words),
                };
                out.push('"');
                out.push_str(&if keep { Cow::Borrowed(content) } else { scrub(content) });
                out.push('"');
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                at += bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let number = &text[start..at];
                if class_here(&open, shape) == KeyClass::Data && matches!(scrub(number), Cow::Owned(_)) {
                    out.extend(["\"", REDACTED, "\""]);
                    continue;
                }
            }
            _ => at = start + WORDS.iter().find(|word| text[start..].starts_with(*word))?.len(),
        }
        out.push_str(&text[start..at]);
    }
    open.is_empty().then_some(out)
}

/// The class of a value at this position.
fn class_here(open: &[OpenValue], shape: &DocumentShape) -> KeyClass {
    match open.last() {
        Some(frame) if frame.is_object => frame.value,
        Some(frame) => frame.class,
        None => shape.top(),
    }
}

/// The position after the closing quote of a string with content from `at` on.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Protection, SecretRegistry};
    use super::*;
    use serde_json::{Value, json};

    const SHAPE: DocumentShape = DocumentShape {
        keys: &[
            (KeyClass::Verbatim, &["id"]),
            (KeyClass::Words, &["type"]),
            (KeyClass::Fields, &["result", "text", "list"]),
            (KeyClass::Data, &["value"]),
        ],
        unknown: KeyClass::Data,
    };

    fn scrubbed(secrets: &[&str], document: Value) -> Value {
        let registry = SecretRegistry::new();
        for secret in secrets {
            assert_eq!(registry.register(secret), Protection::Full, "{secret}");
        }
        let text = document.to_string();
        serde_json::from_str(&registry.scrub_json(&text, &SHAPE)).expect("JSON")
    }

    #[test]
    fn protocol_words_stay_and_everything_else_is_text() {
        let document = json!({"id": "text", "type": "text", "result": {"text": "the text", "type": ["text"]},
            "value": {"text": "x", "type": "text", "n": 5}, "other": {"text": 1}});
        let expected = json!({"id": "text", "type": "text",
            "result": {"text": "the [REDACTED]", "type": ["text"]},
            "value": {"[REDACTED]": "x", "type": "[REDACTED]", "n": 5}, "other": {"[REDACTED]": 1}});
        assert_eq!(scrubbed(&["text"], document), expected);
    }

    #[test]
    fn numbers_are_text_where_data_is_foreign() {
        let document = json!({"id": 123456, "result": 123456, "value": [123456, -12345678, 12]});
        let expected = json!({"id": 123456, "result": 123456, "value": ["[REDACTED]", "[REDACTED]", 12]});
        assert_eq!(scrubbed(&["123456"], document), expected);
    }

    #[test]
    fn escapes_stay_whole_whatever_a_secret_holds() {
        for secret in
            ["a\"b\"c", "\\\\n\\u00x-y", "ab\ncd\tef", "é😀é", "\",\"x\":\"", "\\\"a\\\"bcd", "%22%5c\"ab"]
        {
            for around in ["", "\\", "\"", "\n", "u00e9", "%5C"] {
                let text = format!("{around}{secret}{around}");
                let document = json!({"result": {"text": text}, "value": {text.clone(): text}});
                let clean = scrubbed(&[secret], document).to_string();
                let escaped = Value::from(secret).to_string();
                assert!(!clean.contains(&escaped[1..escaped.len() - 1]), "{secret:?}: {clean}");
            }
        }
    }

    #[test]
    fn what_is_no_json_is_taken_as_text() {
        let registry = SecretRegistry::new();
        registry.register("s3cret");
        for text in ["{s3cret", "\"s3cret", "]s3cret", "{\"a\":s3cret}", "}\"s3cret\""] {
            assert!(!registry.scrub_json(text, &SHAPE).contains("s3cret"), "{text}");
        }
        let lines = "{\"text\":\"s3cret\"}\n{\"text\":\"x\"}\n";
        assert_eq!(registry.scrub_json(lines, &SHAPE), "{\"text\":\"[REDACTED]\"}\n{\"text\":\"x\"}\n");
    }
}
