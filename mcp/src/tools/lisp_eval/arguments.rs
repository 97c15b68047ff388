//! The arguments of `lisp_eval`, checked in a fixed order; the first fault is the message.

use crate::answer::schema::Schema;
use crate::protocol::json::{Json, Malformed, Members, Reader};
use ptc_runtime::limits::Limits;
use std::borrow::Cow;

/// A checked call.
#[derive(Clone, Debug)]
pub struct EvalCall<'a> {
    /// Source text.
    pub program: Cow<'a, str>,
    /// JSON object text.
    pub context: Option<String>,
    /// The shape the result must have.
    pub schema: Option<Schema>,
}

const NAMES: [&str; 4] = ["program", "context", "output_schema", "signature"];
const CONTEXT: usize = 1;

/// Checks the arguments; the error is the message of an `args_error`.
pub fn read<'a>(arguments: Option<Json<'a>>, limits: &Limits) -> Result<EvalCall<'a>, String> {
    let arguments = arguments.filter(|arguments| !arguments.is_null());
    let text = arguments.map_or("{}", Json::get);
    if let Some(arguments) = arguments.filter(|arguments| !arguments.get().starts_with('{')) {
        return Err(format!("arguments must be a JSON object, got {}", arguments.type_name()));
    }
    let mut keys = Keys::default();
    let members = Reader::new(text).members(&NAMES, |reader, place| match place {
        CONTEXT if reader.peek() == Some(b'{') => keys.read(reader),
        _ => reader.value(),
    });
    let Members { values: [program, context, schema, signature], twice } =
        members.map_err(|Malformed| "arguments are invalid: a name with an escape that is no character")?;
    if let Some(name) = twice {
        return Err(format!("arguments are invalid: duplicate field `{name}`"));
    }
    let program = read_program(program, limits.max_program_bytes)?;
    let context = context.filter(|context| !context.is_null());
    let context =
        context.map(|context| check_context(context, &keys, limits.max_context_bytes)).transpose()?;
    if signature.is_some() {
        return Err("argument `signature` is no longer supported; use `output_schema`".into());
    }
    let schema = schema.map(read_schema).transpose()?;
    Ok(EvalCall { program, context, schema })
}

fn read_program(program: Option<Json<'_>>, cap: u64) -> Result<Cow<'_, str>, String> {
    let program = program.ok_or("argument `program` is required")?;
    let text = program.string();
    let text =
        text.ok_or_else(|| format!("argument `program` must be a string, got {}", program.type_name()))?;
    let program = text.map_err(|error| format!("argument `program` is invalid: {error}"))?;
    if program.trim().is_empty() {
        return Err("argument `program` must be a non-empty string".into());
    }
    if program.len() as u64 > cap {
        return Err(format!("argument `program` exceeds max_program_bytes ({} > {cap})", program.len()));
    }
    Ok(program)
}

/// Checks a context: an object whose keys can be written as `data/<key>`.
pub fn read_context(context: Json<'_>, cap: u64) -> Result<String, String> {
    let mut keys = Keys::default();
    if context.get().starts_with('{') && keys.read(&mut Reader::new(context.get())).is_err() {
        return Err("argument `context` is invalid: a name with an escape that is no character".into());
    }
    check_context(context, &keys, cap)
}

fn check_context(context: Json<'_>, keys: &Keys, cap: u64) -> Result<String, String> {
    let text = context.get();
    if !text.starts_with('{') {
        return Err(format!("argument `context` must be a JSON object, got {}", context.type_name()));
    }
    if text.len() as u64 > cap {
        return Err(format!("argument `context` exceeds max_context_bytes ({} > {cap})", text.len()));
    }
    match &keys.fault {
        Some(fault) => Err(fault.clone()),
        None => Ok(text.to_owned()),
    }
}

fn read_schema(schema: Json<'_>) -> Result<Schema, String> {
    if !schema.get().starts_with('{') {
        return Err(format!("argument `output_schema` must be a JSON object, got {}", schema.type_name()));
    }
    schema
        .decode()
        .map_err(|error| error.to_string())
        .and_then(|value| Schema::parse(&value))
        .map_err(|reason| format!("argument `output_schema` is invalid: {reason}"))
}

/// The first key of an object that cannot become `data/<key>`.
#[derive(Default)]
struct Keys {
    fault: Option<String>,
}

impl Keys {
    /// Reads an object, whose values are skipped.
    fn read<'a>(&mut self, reader: &mut Reader<'a>) -> Result<Json<'a>, Malformed> {
        reader.object(|reader, key| {
            reader.value()?;
            if self.fault.is_some() {
                return Ok(());
            }
            if key.is_empty() {
                self.fault = Some("argument `context` keys must be non-empty".into());
            } else if key.contains('/') {
                self.fault = Some(format!(
                    "argument `context` keys may not contain `/` (would shadow PTC-Lisp namespace): {key:?}"
                ));
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(arguments: &str) -> String {
        let limits = Limits { max_program_bytes: 10, max_context_bytes: 40, ..Limits::default() };
        match read(Some(Json::parse(arguments).expect("JSON")), &limits) {
            Ok(_) => "ok".into(),
            Err(message) => message,
        }
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
