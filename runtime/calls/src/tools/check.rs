//! Checks arguments in JSON against the schema of their tool, for callers other than PTC-Lisp programs:
//! proxied calls and scripts.

use super::UpstreamTool;
use super::call_messages::{Notation, Path, Problem, WrongCall, not_sent, review, undeclared_note};
use crate::schema::judge::{Judge, MOST_COMPARED, Names, ValueShape, below, items, mismatch};
use serde_json::Value as Json;

/// Most bytes of the tree of arguments that are checked.
const MOST_TREE: usize = 16 << 20;

/// True if the tree of this JSON text takes at most `MOST_TREE` bytes. The tree can be a hundred times as
/// large as the text: `[0],` takes 170 bytes, `{"":0},` takes 700.
pub fn is_small_tree(json: &str) -> bool {
    // A value in a list that grows, a new list, a new object (a node of a tree), a key.
    const VALUE: usize = 64;
    const LIST: usize = 144;
    const OBJECT: usize = 640;
    const KEY: usize = 48;
    if json.len() <= MOST_TREE / OBJECT {
        return true;
    }
    let (mut bytes, mut rest) = (json.len(), json.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        bytes += match first {
            b',' => VALUE,
            b'[' => LIST,
            b'{' => OBJECT,
            b':' => KEY,
            b'"' => {
                rest = after_text(after);
                0
            }
            _ => 0,
        };
        if bytes > MOST_TREE {
            return false;
        }
    }
    true
}

/// What follows a JSON string whose opening quote has been read.
fn after_text(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        if rest[at] == b'"' {
            return &rest[at + 1..];
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    &[]
}

/// Checks the text of a call's arguments, which must be a JSON object. Returns notes to the client about
/// arguments that the schema neither declares nor refuses. Of arguments with a large tree only the syntax is
/// checked, and the upstream decides about the rest.
///
/// # Errors
/// What the schema proves wrong: types, enumerations, constants and names. The upstream decides about
/// everything else.
pub fn check_arguments(
    server: &str,
    tool: &UpstreamTool,
    arguments: &str,
    notation: Notation,
) -> Result<Vec<String>, WrongCall> {
    if !is_small_tree(arguments) && arguments.trim_start().starts_with('{') {
        return match serde_json::from_str::<serde::de::IgnoredAny>(arguments) {
            Ok(_) => Ok(Vec::new()),
            Err(error) => Err(not_sent(server, &tool.name, &format!("they are no JSON ({error})"))),
        };
    }
    // The parser limits nesting, which bounds the traversal as well.
    let arguments = match serde_json::from_str(arguments) {
        Ok(Json::Object(arguments)) => arguments,
        Ok(other) => {
            let got = notation.shown(&shape(&other));
            return Err(not_sent(server, &tool.name, &format!("they must be an object, got {got}")));
        }
        Err(error) => return Err(not_sent(server, &tool.name, &format!("they are no JSON ({error})"))),
    };
    let schema = &tool.input_schema;
    let mut check = Check { judge: Judge::new(schema, MOST_COMPARED), undeclared: Vec::new() };
    match check.object(schema, &arguments, &Path::root(notation), true) {
        Ok(()) => {
            let note = |name: &String| undeclared_note(server, tool, name, notation);
            Ok(check.undeclared.iter().map(note).collect())
        }
        Err(problem) => Err(problem.into_wrong_call(server, tool)),
    }
}

/// Checks a value of any type against a schema; the error is one line.
pub fn check_value(schema: &Json, value: &Json) -> Result<(), String> {
    let mut check = Check { judge: Judge::new(schema, MOST_COMPARED), undeclared: Vec::new() };
    check.value(schema, value, &Path::root(Notation::Json)).map_err(|Problem { what, hint }| {
        // The value itself has an empty path.
        let what = if what.starts_with(' ') { format!("the answer{what}") } else { what };
        hint.map_or_else(|| what.clone(), |hint| format!("{what}. {hint}"))
    })
}

struct Check<'s> {
    /// The judge of the whole input schema.
    judge: Judge<'s>,
    /// Arguments that the schema neither declares nor refuses.
    undeclared: Vec<String>,
}

impl<'s> Check<'s> {
    fn object(
        &mut self,
        schema: &'s Json,
        object: &serde_json::Map<String, Json>,
        path: &Path,
        is_top: bool,
    ) -> Result<(), Problem> {
        let names = Names::for_object(&self.judge, schema);
        let given = object.keys().map(String::as_str);
        let undeclared =
            review::<Problem>(&names, given, |name| object.contains_key(name), || path.clone(), |_| Ok(()))?;
        if is_top {
            self.undeclared.extend(undeclared.into_iter().map(str::to_owned));
        }
        for (name, value) in object {
            if let Some(below) = below(&self.judge, schema, name) {
                self.value(below, value, &path.entry(name))?;
            }
        }
        Ok(())
    }

    fn value(&mut self, schema: &'s Json, value: &Json, path: &Path) -> Result<(), Problem> {
        let shape = shape(value);
        if let Some(why) = mismatch(&self.judge, schema, &shape) {
            return Err(Problem::mismatch(path, &why, &shape));
        }
        match value {
            Json::Object(object) => self.object(schema, object, path, false),
            Json::Array(list) => {
                let Some(schema) = items(&self.judge, schema) else { return Ok(()) };
                list.iter().enumerate().try_for_each(|(at, item)| self.value(schema, item, &path.item(at)))
            }
            _ => Ok(()),
        }
    }
}

/// The shape of a value, for the checks.
fn shape(value: &Json) -> ValueShape<'_> {
    match value {
        Json::Null => ValueShape::Nil,
        Json::Bool(value) => ValueShape::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => ValueShape::Int(number),
            (None, Some(number), _) => ValueShape::BigInt(number.to_string().into()),
            (None, None, Some(number)) => ValueShape::Float(number),
            (None, None, None) => ValueShape::Unknown,
        },
        Json::String(text) => ValueShape::Text(text.into()),
        Json::Array(_) => ValueShape::List,
        Json::Object(_) => ValueShape::Map,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_arguments_are_judged_like_computed_ones_in_their_own_notation() {
        let tool: UpstreamTool = serde_json::from_value(json!({"name": "t", "inputSchema": {
            "required": ["path"], "properties": {
                "path": {"type": "string"}, "mode": {"enum": ["r", "w"]}, "ids": {"items": {"type": "integer"}},
                "filter": {"type": "object", "additionalProperties": false, "properties": {"state": {}}}}}}))
        .unwrap();
        let wrong = |arguments: Json| {
            let WrongCall { message, hints } =
                check_arguments("s", &tool, &arguments.to_string(), Notation::Json).unwrap_err();
            let message = message.strip_prefix("tool 's.t' rejected args: ").unwrap().to_owned();
            (message, hints.first().cloned().unwrap_or_default())
        };
        let cases = [
            (json!([]), "they must be an object, got a list", ""),
            (json!({}), "missing required args path", "Signature: s/t {:path string"),
            (json!({"path": 1}), "path must be string, got 1", "Write \"1\" with quotes."),
            (json!({"path": null}), "path must be string, got null", "Leave it out, or give it a value."),
            (json!({"path": "a", "mode": "R"}), "mode must be one of \"r\", \"w\"", "Did you mean \"r\"?"),
            (json!({"path": "a", "mod": "r"}), "unknown arg mod", "Did you mean mode?"),
            (json!({"path": "a", "ids": [1, "2"]}), "ids[1] must be integer, got \"2\"", "Write 2 without"),
            (json!({"path": "a", "filter": {"x": {}}}), "unknown arg filter.x", "Signature: "),
        ];
        for (arguments, message, hint) in cases {
            let (told, hinted) = wrong(arguments);
            assert!(told.starts_with(message) && hinted.starts_with(hint), "{told} / {hinted}");
        }
        assert!(check_arguments("s", &tool, "{\"path\": ", Notation::Json).is_err());
        assert_eq!(check_arguments("s", &tool, r#"{"path":"a","ids":[1]}"#, Notation::Json), Ok(Vec::new()));
        let notes = check_arguments("s", &tool, r#"{"path":"a","unheard":1}"#, Notation::Json).unwrap();
        assert!(
            notes[0].starts_with("the schema of s/t has no argument unheard; it may be ignored."),
            "{notes:?}"
        );
    }
}
