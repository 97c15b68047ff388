//! Converts values between JSON and the Python interpreter Monty, including objects that stand for large results kept
//! in files. It also reads the clock for scripts.

use jiter::JsonValue;
use monty_types::{MontyClassInstance, MontyClassType, MontyObject, MontyTimeZone, MontyUuid};
use serde_json::Value;
use std::fmt::Write;

/// The deepest nesting of an argument.
const DEEPEST: usize = 100;

/// Converts JSON text of a tool to a value.
pub(super) fn value_of(json: &str) -> Result<MontyObject, String> {
    JsonValue::parse(json.as_bytes(), false).map(object).map_err(|error| error.to_string())
}

/// Converts parsed JSON. The parser bounds its depth.
fn object(json: JsonValue<'_>) -> MontyObject {
    match json {
        JsonValue::Null => MontyObject::None,
        JsonValue::Bool(value) => MontyObject::Bool(value),
        JsonValue::Int(value) => MontyObject::Int(value),
        JsonValue::BigInt(value) => MontyObject::BigInt(value),
        JsonValue::Float(value) => MontyObject::Float(value),
        JsonValue::Str(text) => MontyObject::String(text.into_owned()),
        JsonValue::Array(items) => MontyObject::List(items.iter().cloned().map(object).collect()),
        JsonValue::Object(entries) => {
            let entry = |(key, value): &(std::borrow::Cow<'_, str>, JsonValue<'_>)| {
                (MontyObject::String(key.to_string()), object(value.clone()))
            };
            MontyObject::dict(entries.iter().map(entry).collect::<Vec<_>>())
        }
    }
}

/// The id of the class of spilled results. The lower half of an object's id is the number of the result.
const SPILLED: u128 = 0x7074_632d_6b65_7074 << 64;

/// The object of a spilled result: `{"spill": "r1", …}` as attributes. The host executes its methods.
pub(super) fn spilled_object(known: &Value) -> Option<MontyObject> {
    let number: u64 = known["spill"].as_str()?.strip_prefix('r')?.parse().ok()?;
    let attr =
        |name: &str| Some((MontyObject::String(name.to_owned()), value_of(&known[name].to_string()).ok()?));
    let attrs = ["spill", "bytes", "lines", "preview"].into_iter().map(attr).collect::<Option<Vec<_>>>()?;
    let class_type = MontyClassType {
        name: "Spilled".to_owned(),
        id: MontyUuid::from_u128(SPILLED),
        host_defined: true,
        is_dataclass: false,
        attrs: Vec::new().into(),
    };
    let instance_id = MontyUuid::from_u128(SPILLED | u128::from(number));
    let instance = MontyClassInstance { class_type, instance_id, attrs: attrs.into() };
    Some(MontyObject::ClassInstance(Box::new(instance)))
}

/// The name of the spilled result with this id.
pub(super) fn spilled_name(id: MontyUuid) -> Option<String> {
    let number = u128::from_be_bytes(*id.as_bytes()).checked_sub(SPILLED).filter(|&number| number > 0)?;
    u64::try_from(number).ok().map(|number| format!("r{number}"))
}

/// Converts an argument to JSON.
///
/// # Errors
/// JSON has no form for the value.
pub(super) fn json_of(value: &MontyObject) -> Result<Value, String> {
    json_at(value, DEEPEST)
}

fn json_at(value: &MontyObject, room: usize) -> Result<Value, String> {
    let room = room.checked_sub(1).ok_or("an argument of a tool nests too deep")?;
    let array =
        |items: &[MontyObject]| items.iter().map(|item| json_at(item, room)).collect::<Result<_, _>>();
    Ok(match value {
        MontyObject::None => Value::Null,
        MontyObject::Bool(value) => (*value).into(),
        MontyObject::Int(value) => (*value).into(),
        MontyObject::BigInt(value) => {
            let wide = u64::try_from(value)
                .map_err(|_| "an integer beyond 64 bits cannot be an argument of a tool")?;
            wide.into()
        }
        MontyObject::Float(value) => {
            let number = serde_json::Number::from_f64(*value);
            Value::Number(number.ok_or_else(|| format!("ValueError: {value} has no form in JSON"))?)
        }
        MontyObject::String(text) | MontyObject::Path(text) => text.clone().into(),
        MontyObject::List(items)
        | MontyObject::Tuple(items)
        | MontyObject::Set(items)
        | MontyObject::FrozenSet(items)
        | MontyObject::NamedTuple { values: items, .. } => Value::Array(array(items)?),
        MontyObject::Dict(entries) => {
            let entry = |(key, value): &(MontyObject, MontyObject)| Ok((key_of(key)?, json_at(value, room)?));
            Value::Object(entries.into_iter().map(entry).collect::<Result<_, String>>()?)
        }
        MontyObject::Date(date) => format!("{:04}-{:02}-{:02}", date.year, date.month, date.day).into(),
        MontyObject::DateTime(at) => {
            let mut text = format!("{:04}-{:02}-{:02}T", at.year, at.month, at.day);
            clock(&mut text, [at.hour, at.minute, at.second], at.microsecond, at.offset_seconds);
            text.into()
        }
        MontyObject::Time(at) => {
            let mut text = String::new();
            clock(&mut text, [at.hour, at.minute, at.second], at.microsecond, at.offset_seconds);
            text.into()
        }
        other => return Err(format!("{} cannot be an argument of a tool", cut(&other.to_string()))),
    })
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(100)]
}

fn clock(text: &mut String, [hour, minute, second]: [u8; 3], micros: u32, offset: Option<i32>) {
    // Writing to a String cannot fail.
    let _ = write!(text, "{hour:02}:{minute:02}:{second:02}");
    if micros > 0 {
        let _ = write!(text, ".{micros:06}");
    }
    if let Some(offset) = offset {
        let sign = if offset < 0 { '-' } else { '+' };
        let minutes = offset.abs() / 60;
        let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    }
}

/// Converts a key as `json.dumps` does.
fn key_of(key: &MontyObject) -> Result<String, String> {
    match key {
        MontyObject::String(text) => Ok(text.clone()),
        MontyObject::Int(_) | MontyObject::BigInt(_) | MontyObject::Float(_) => Ok(key.to_string()),
        MontyObject::Bool(value) => Ok(value.to_string()),
        MontyObject::None => Ok("null".to_owned()),
        other => Err(format!(
            "keys of an argument must be str, int, float, bool or None, not {}",
            cut(&other.to_string())
        )),
    }
}

/// The current time in UTC, as in CPython's jail.
pub(super) fn now(zone: Option<&MontyTimeZone>) -> jiff::civil::DateTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let offset = zone.map_or(0, |zone| i64::from(zone.offset_seconds));
    let micros = i64::try_from(since.as_micros()).unwrap_or_default().saturating_add(offset * 1_000_000);
    let stamp = jiff::Timestamp::from_microsecond(micros).unwrap_or_default();
    jiff::tz::Offset::UTC.to_datetime(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_and_go() {
        let text = r#"{"a":[1,-2.5,true,null,"ü"],"b":{"c":123456789012345678901234567890}}"#;
        let value = value_of(text).unwrap();
        assert_eq!(
            value.to_string(),
            "{'a': [1, -2.5, True, None, 'ü'], 'b': {'c': 123456789012345678901234567890}}"
        );
        assert!(json_of(&value).unwrap_err().contains("64 bits"));
        let value = value_of(r#"{"a":[1,-2.5,true,null,"ü"],"b":18446744073709551615}"#).unwrap();
        assert_eq!(
            json_of(&value).unwrap().to_string(),
            r#"{"a":[1,-2.5,true,null,"ü"],"b":18446744073709551615}"#
        );
        assert!(json_of(&MontyObject::Float(f64::NAN)).is_err());
        let deep = (0..200).fold(MontyObject::None, |inner, _| MontyObject::List(vec![inner]));
        assert!(json_of(&deep).unwrap_err().contains("deep"));
        assert!(value_of(&"[".repeat(100_000)).is_err());
    }
}
