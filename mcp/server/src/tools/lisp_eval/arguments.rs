//! Parses and checks the arguments of the tool `lisp_eval` (program, context, output schema) in a fixed order, and
//! reports the first fault.

use crate::protocol::borrowed::{Raw, Text, present};
use ptc_calls::limits::Limits;
use ptc_calls::schema::output::{MAX_SCHEMA_BYTES, Schema};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The arguments of a call. [`read`] checks them.
#[derive(Default, Deserialize)]
pub struct EvalArguments<'a> {
    #[serde(borrow, default, rename = "program")]
    given: ProgramArgument<'a>,
    /// Source text.
    #[serde(skip)]
    pub program: Cow<'a, str>,
    /// The members of `data/`. The caller must check them with [`read_context`] before it submits the
    /// program.
    #[serde(borrow, default)]
    pub context: Option<Raw<'a>>,
    /// The text of the schema that the result must match.
    #[serde(borrow, default, deserialize_with = "present")]
    pub output_schema: Option<Raw<'a>>,
    /// The schema.
    #[serde(skip)]
    pub schema: Option<Schema>,
    #[serde(borrow, default, deserialize_with = "present")]
    signature: Option<Raw<'a>>,
}

/// The value of the argument `program`.
#[derive(Default)]
enum ProgramArgument<'a> {
    #[default]
    Absent,
    Text(Cow<'a, str>),
    /// A value of another type, by its JSON name.
    Other(&'static str),
}

/// Checks the arguments. The error is the message of an `args_error`.
pub fn read<'a>(arguments: Option<Raw<'a>>, limits: &Limits) -> Result<EvalArguments<'a>, String> {
    let mut arguments: EvalArguments<'_> = match arguments.map(Raw::get) {
        None | Some("null") => EvalArguments::default(),
        Some(text) if text.starts_with('{') => {
            serde_json::from_str(text).map_err(|error| format!("arguments are invalid: {error}"))?
        }
        Some(text) => return Err(format!("arguments must be a JSON object, got {}", json_type(text))),
    };
    let given = std::mem::take(&mut arguments.given);
    arguments.program = check_program(given, limits.max_program_bytes)?;
    let EvalArguments { context, output_schema, signature, .. } = arguments;
    if let (Some(context), true) = (context, signature.is_some() || output_schema.is_some()) {
        // Only the first fault is reported, and `context` comes before the arguments below.
        read_context(context, limits.max_context_bytes)?;
    }
    if signature.is_some() {
        return Err("argument `signature` is no longer supported; use `output_schema`".into());
    }
    arguments.schema = output_schema.map(read_schema).transpose()?;
    Ok(arguments)
}

/// What a later process needs to answer a call of a stored run: the text of its schema.
pub(super) fn memo(schema: Option<Raw<'_>>) -> String {
    schema.map_or("null", Raw::get).to_owned()
}

/// The schema of such a text; `None` for a text that is none.
pub(super) fn schema_of(memo: &str) -> Option<Option<Schema>> {
    let value: serde_json::Value = serde_json::from_str(memo).ok()?;
    if value.is_null() { Some(None) } else { Schema::parse(&value).ok().map(Some) }
}

fn check_program(program: ProgramArgument<'_>, cap: u64) -> Result<Cow<'_, str>, String> {
    let program = match program {
        ProgramArgument::Text(program) => program,
        ProgramArgument::Absent => return Err("argument `program` is required".into()),
        ProgramArgument::Other(kind) => {
            return Err(format!("argument `program` must be a string, got {kind}"));
        }
    };
    if program.chars().all(char::is_whitespace) {
        return Err("argument `program` must be a non-empty string".into());
    }
    if program.len() as u64 > cap {
        return Err(format!("argument `program` exceeds max_program_bytes ({} > {cap})", program.len()));
    }
    Ok(program)
}

impl<'de: 'a, 'a> Deserialize<'de> for ProgramArgument<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ProgramArgument<'a>, D::Error> {
        struct ProgramVisitor;
        impl<'de> Visitor<'de> for ProgramVisitor {
            type Value = ProgramArgument<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a program")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<ProgramArgument<'de>, E> {
                Ok(ProgramArgument::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<ProgramArgument<'de>, E> {
                Ok(ProgramArgument::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<ProgramArgument<'de>, E> {
                Ok(ProgramArgument::Other("null"))
            }

            fn visit_bool<E>(self, _: bool) -> Result<ProgramArgument<'de>, E> {
                Ok(ProgramArgument::Other("boolean"))
            }

            fn visit_i64<E>(self, _: i64) -> Result<ProgramArgument<'de>, E> {
                Ok(ProgramArgument::Other("integer"))
            }

            fn visit_u64<E>(self, _: u64) -> Result<ProgramArgument<'de>, E> {
                Ok(ProgramArgument::Other("integer"))
            }

            fn visit_f64<E>(self, _: f64) -> Result<ProgramArgument<'de>, E> {
                Ok(ProgramArgument::Other("number"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ProgramArgument<'de>, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(ProgramArgument::Other("array"))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ProgramArgument<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(ProgramArgument::Other("object"))
            }
        }
        deserializer.deserialize_any(ProgramVisitor)
    }
}

/// Checks a context: it must be an object with keys that can be written as `data/<key>`.
pub fn read_context(raw: Raw<'_>, cap: u64) -> Result<&str, String> {
    let text = raw.get();
    if !text.starts_with('{') {
        return Err(format!("argument `context` must be a JSON object, got {}", json_type(text)));
    }
    if text.len() as u64 > cap {
        return Err(format!("argument `context` exceeds max_context_bytes ({} > {cap})", text.len()));
    }
    let keys: Keys =
        serde_json::from_str(text).map_err(|error| format!("argument `context` is invalid: {error}"))?;
    match keys.fault {
        Some(fault) => Err(fault),
        None => Ok(text),
    }
}

fn read_schema(raw: Raw<'_>) -> Result<Schema, String> {
    let text = raw.get();
    if !text.starts_with('{') {
        return Err(format!("argument `output_schema` must be a JSON object, got {}", json_type(text)));
    }
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(format!(
            "argument `output_schema` is larger than {MAX_SCHEMA_BYTES} bytes ({})",
            text.len()
        ));
    }
    serde_json::from_str(text)
        .map_err(|error| error.to_string())
        .and_then(|value| Schema::parse(&value))
        .map_err(|reason| format!("argument `output_schema` is invalid: {reason}"))
}

/// The name of a raw value's JSON type, as messages use it.
pub fn json_type(text: &str) -> &'static str {
    match text.as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        Some(b'-' | b'0'..=b'9') if text.contains(['.', 'e', 'E']) => "number",
        Some(b'-' | b'0'..=b'9') => "integer",
        _ => "unknown",
    }
}

/// The first key of an object that cannot become `data/<key>`. Values are skipped.
struct Keys {
    fault: Option<String>,
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keys, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Keys;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut fault = None;
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    map.next_value::<IgnoredAny>()?;
                    if fault.is_some() {
                        continue;
                    }
                    if key.is_empty() {
                        fault = Some("argument `context` keys must be non-empty".into());
                    } else if key.contains('/') {
                        fault = Some(format!(
                            "argument `context` keys may not contain `/` (would shadow PTC-Lisp namespace): {:?}",
                            &*key
                        ));
                    }
                }
                Ok(Keys { fault })
            }
        }
        deserializer.deserialize_map(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(arguments: &str) -> String {
        let raw: Raw<'_> = serde_json::from_str(arguments).expect("JSON");
        let limits = Limits { max_program_bytes: 10, max_context_bytes: 40, ..Limits::default() };
        let call = read(Some(raw), &limits);
        let context =
            call.and_then(|call| call.context.map(|raw| read_context(raw, 40).map(drop)).transpose());
        context.map_or_else(|message| message, |_| "ok".into())
    }

    #[test]
    fn each_fault_has_its_message() {
        let cases = [
            (r#"{}"#, "argument `program` is required"),
            (r#"{"program":null}"#, "argument `program` must be a string, got null"),
            (r#"{"program":12}"#, "argument `program` must be a string, got integer"),
            (r#"{"program":1.5}"#, "argument `program` must be a string, got number"),
            (r#"{"program":true}"#, "argument `program` must be a string, got boolean"),
            (r#"{"program":["x"]}"#, "argument `program` must be a string, got array"),
            (r#"{"program":" \n"}"#, "argument `program` must be a non-empty string"),
            (r#"{"program":"12345678901"}"#, "argument `program` exceeds max_program_bytes (11 > 10)"),
            (r#"{"program":"1","context":null}"#, "ok"),
            (r#"{"program":"1","context":[]}"#, "argument `context` must be a JSON object, got array"),
            (
                r#"{"program":"1","context":{"long":"0123456789012345678901234567890123"}}"#,
                "argument `context` exceeds max_context_bytes (45 > 40)",
            ),
            (r#"{"program":"1","context":{"":1}}"#, "argument `context` keys must be non-empty"),
            (
                r#"{"program":"1","context":{"a/b":1}}"#,
                "argument `context` keys may not contain `/` (would shadow PTC-Lisp namespace): \"a/b\"",
            ),
            (
                r#"{"program":"1","signature":null}"#,
                "argument `signature` is no longer supported; use `output_schema`",
            ),
            (
                r#"{"program":"1","output_schema":null}"#,
                "argument `output_schema` must be a JSON object, got null",
            ),
            (
                r#"{"program":"1","output_schema":{}}"#,
                "argument `output_schema` is invalid: schema must have a \"type\" key",
            ),
            (r#"{"program":"1","unknown":1}"#, "ok"),
            (r#"[]"#, "arguments must be a JSON object, got array"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(message(arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn the_first_fault_wins() {
        assert_eq!(message(r#"{"output_schema":1,"context":1}"#), "argument `program` is required");
        assert_eq!(
            message(r#"{"program":"1","output_schema":1,"context":1}"#),
            "argument `context` must be a JSON object, got integer"
        );
    }
}
