//! Defines payload policies, which set how much of a tool call's program, input data, printed lines and answer may be
//! shown in traces, telemetry and the web page.

use ptc_base::digest::sha256_hex;
use ptc_base::secrets::{Cut, DocumentShape, SecretRegistry};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Characters of a text in a summary.
const PREVIEW_CHARS: usize = 256;

/// Characters of a printed line in a summary.
const LINE_CHARS: usize = 80;

/// How much records show of programs, contexts, printed lines and answers. Reasons and messages of errors are
/// always shown; secrets never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum PayloadPolicy {
    /// Sizes and hashes.
    None,
    /// And the beginnings of texts, the keys of contexts.
    #[default]
    Summary,
    /// Everything.
    Full,
}

impl PayloadPolicy {
    /// The name in flags and records.
    pub const fn name(self) -> &'static str {
        match self {
            PayloadPolicy::None => "none",
            PayloadPolicy::Summary => "summary",
            PayloadPolicy::Full => "full",
        }
    }

    /// Shows a program, a script, or the text of an answer.
    pub fn text(self, text: &str, secrets: &SecretRegistry) -> Value {
        match self {
            PayloadPolicy::None => json!({ "sha256": sha256_hex(text.as_bytes()), "bytes": text.len() }),
            PayloadPolicy::Summary => json!({
                "sha256": sha256_hex(text.as_bytes()), "bytes": text.len(),
                "preview": secrets.excerpt(text, Cut::Chars(PREVIEW_CHARS)),
            }),
            PayloadPolicy::Full => secrets.scrub(text).into(),
        }
    }

    /// Shows the members of an object, such as a context; `None` for anything else.
    pub fn object(self, object: &str, secrets: &SecretRegistry) -> Option<Value> {
        match self {
            PayloadPolicy::None => Some(json!({ "<bytes>": object.len() })),
            PayloadPolicy::Summary => {
                let clean = |(key, shape): (String, Value)| (secrets.scrub(&key).into_owned(), shape);
                Some(Value::Object(summarized(object)?.into_iter().map(clean).collect()))
            }
            PayloadPolicy::Full => {
                serde_json::from_str(&secrets.scrub_json(object, &DocumentShape::DATA)).ok()
            }
        }
    }

    /// Shows printed lines.
    pub fn lines(self, lines: &[String], secrets: &SecretRegistry) -> Value {
        match self {
            PayloadPolicy::None => json!({ "count": lines.len() }),
            PayloadPolicy::Summary => {
                let first = |line: &String| {
                    let clean = secrets.scrub(line);
                    let first = clean.lines().next().unwrap_or_default();
                    secrets.excerpt(first, Cut::Chars(LINE_CHARS)).into_owned()
                };
                json!({ "count": lines.len(), "items": lines.iter().map(first).collect::<Vec<_>>() })
            }
            PayloadPolicy::Full => lines.iter().map(|line| Value::from(secrets.scrub(line))).collect(),
        }
    }
}

/// Type of each member, and size of each collection.
fn summarized(object: &str) -> Option<Map<String, Value>> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(object).ok()?;
    let summary = |(key, value): (String, &RawValue)| {
        let ValueKind { name, count } =
            serde_json::from_str(value.get()).unwrap_or(ValueKind::scalar("null"));
        (key, json!({ "type": name, "count": count }))
    };
    Some(members.into_iter().map(summary).collect())
}

/// Type of a JSON value, and its size; the value itself is skipped.
struct ValueKind {
    name: &'static str,
    count: Option<u64>,
}

impl ValueKind {
    const fn scalar(name: &'static str) -> ValueKind {
        ValueKind { name, count: None }
    }
}

impl<'de> Deserialize<'de> for ValueKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ValueKind, D::Error> {
        struct ValueKindVisitor;
        impl<'de> Visitor<'de> for ValueKindVisitor {
            type Value = ValueKind;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON value")
            }

            fn visit_bool<E>(self, _: bool) -> Result<ValueKind, E> {
                Ok(ValueKind::scalar("boolean"))
            }

            fn visit_i64<E>(self, _: i64) -> Result<ValueKind, E> {
                Ok(ValueKind::scalar("number"))
            }

            fn visit_u64<E>(self, _: u64) -> Result<ValueKind, E> {
                Ok(ValueKind::scalar("number"))
            }

            fn visit_f64<E>(self, _: f64) -> Result<ValueKind, E> {
                Ok(ValueKind::scalar("number"))
            }

            fn visit_str<E>(self, _: &str) -> Result<ValueKind, E> {
                Ok(ValueKind::scalar("string"))
            }

            fn visit_unit<E>(self) -> Result<ValueKind, E> {
                Ok(ValueKind::scalar("null"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ValueKind, A::Error> {
                let mut count = 0;
                while items.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(ValueKind { name: "array", count: Some(count) })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ValueKind, A::Error> {
                let mut count = 0;
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(ValueKind { name: "object", count: Some(count) })
            }
        }
        deserializer.deserialize_any(ValueKindVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_shows_what_it_says() {
        let secrets = SecretRegistry::new();
        let text = "(+ 1 2)";
        let hash = "390e79ac6bb3f3b2240e1186fd2c94da4af3a66387965acbbfcf40853bd4a652";
        assert_eq!(PayloadPolicy::None.text(text, &secrets), json!({ "sha256": hash, "bytes": 7 }));
        assert_eq!(
            PayloadPolicy::Summary.text(text, &secrets),
            json!({ "sha256": hash, "bytes": 7, "preview": text })
        );
        assert_eq!(PayloadPolicy::Full.text(text, &secrets), json!(text));
        let context = r#"{"rows":[1,{"a":[2]}],"o":{"x":1},"s":"x","n":null,"b":true,"f":1.5}"#;
        assert_eq!(PayloadPolicy::None.object(context, &secrets), Some(json!({ "<bytes>": context.len() })));
        assert_eq!(
            PayloadPolicy::Summary.object(context, &secrets),
            Some(json!({
                "b": { "type": "boolean", "count": null }, "f": { "type": "number", "count": null },
                "n": { "type": "null", "count": null }, "o": { "type": "object", "count": 1 },
                "rows": { "type": "array", "count": 2 }, "s": { "type": "string", "count": null },
            }))
        );
        assert_eq!(PayloadPolicy::Summary.object("[1]", &secrets), None);
        assert_eq!(PayloadPolicy::Full.object(context, &secrets), serde_json::from_str(context).ok());
        let lines = ["é".repeat(100) + "\nmore", "b".into()];
        let shown = PayloadPolicy::Summary.lines(&lines, &secrets);
        assert_eq!(shown, json!({ "count": 2, "items": ["é".repeat(80), "b"] }));
    }

    #[test]
    fn a_secret_at_the_cut_leaves_nothing() {
        let secrets = SecretRegistry::new();
        secrets.register("correct-horse-battery");
        for before in 230..260 {
            let text = "x".repeat(before) + "correct-horse-battery";
            for policy in [PayloadPolicy::Summary, PayloadPolicy::Full] {
                let shown = policy.text(&text, &secrets).to_string();
                assert!(!shown.contains("corr"), "{before}: {shown}");
            }
        }
        let context = r#"{"correct-horse-battery":{"k":"correct-horse-battery"}}"#;
        for policy in [PayloadPolicy::Summary, PayloadPolicy::Full] {
            let shown = policy.object(context, &secrets).expect("an object").to_string();
            assert!(!shown.contains("corr"), "{shown}");
        }
    }
}
