//! Parses JSON and rejects objects with duplicate keys, because parsers differ in which of them counts (RFC 8259,
//! section 4).

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Reads a value. The reader bounds its depth.
pub fn value(text: &[u8]) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

/// Reads an object.
pub fn object(text: &[u8]) -> Option<Map<String, Value>> {
    match value(text)? {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Strict)?;
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        Ok(all.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_stands_once_at_every_depth() {
        assert!(object(br#"{"a":1,"b":[{"a":null}],"c":1.5e3}"#).is_some());
        for wrong in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"b":[{"a":1,"a":2}]}"#,
            "[]",
            "1",
            "",
            r#"{"a":1} {}"#,
            r#"{"a":1}x"#,
        ] {
            assert!(object(wrong.as_bytes()).is_none(), "{wrong}");
        }
        let deep = "[".repeat(100_000);
        assert!(object(format!("{{\"a\":{deep}").as_bytes()).is_none());
    }
}
