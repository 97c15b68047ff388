//! Finds the tool arguments that a transport must mirror (repeat) in HTTP headers, because the schema of the tool marks
//! them with `x-mcp-header`. Tools with invalid marks are left out.

use crate::request::Mirrored;
use ptc_calls::tools::{Listed, Refusal};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

const ANNOTATION: &str = "x-mcp-header";

/// Keywords with data, not schemas, as values.
const DATA: [&str; 4] = ["default", "const", "enum", "examples"];

/// The largest integer that every JSON parser reads exactly.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// Which arguments of which tools are mirrored.
#[derive(Default)]
pub(super) struct MirroredArguments {
    tools: HashMap<Arc<str>, Vec<Annotated>>,
}

/// One marked argument: its path in the arguments.
#[derive(Debug, PartialEq)]
struct Annotated {
    path: Vec<String>,
    name: Arc<str>,
}

impl MirroredArguments {
    /// Reads the marks in the schemas of a list. Removes tools with invalid marks.
    pub(super) fn read(listed: &mut Listed) -> MirroredArguments {
        let mut mirrored = MirroredArguments::default();
        let Listed { tools, refused, notes, .. } = listed;
        tools.retain(|tool| match annotations(&tool.input_schema) {
            Ok(annotated) => {
                if !annotated.is_empty() {
                    mirrored.tools.insert(tool.name.clone(), annotated);
                }
                true
            }
            Err(why) => {
                notes.push(format!("tool {} is left out: {ANNOTATION} {why}", tool.name));
                refused.push((tool.name.clone(), Refusal::Broken));
                false
            }
        });
        mirrored
    }

    /// The mirrored arguments of a call.
    pub(super) fn of_call(&self, tool: &str, arguments: &str) -> Vec<Mirrored> {
        let Some(annotated) = self.tools.get(tool) else { return Vec::new() };
        let Ok(arguments) = serde_json::from_str::<Value>(arguments) else { return Vec::new() };
        let shown = annotated.iter().filter_map(|Annotated { path, name }| {
            let value = path.iter().try_fold(&arguments, |value, key| value.get(key))?;
            Some(Mirrored { name: name.clone(), value: text(value)? })
        });
        shown.collect()
    }
}

/// An argument as text; `None` for one that is not of a primitive type.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        // 42.0 is an integer, too.
        Value::Number(number) => number
            .as_f64()
            .filter(|number| number.fract() == 0.0 && number.abs() <= LARGEST)
            .map(|n| format!("{n:.0}")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The marks in a schema; the error names the rule that one of them violates.
fn annotations(schema: &Value) -> Result<Vec<Annotated>, String> {
    let mut found = Vec::new();
    // `None`: not reachable through names of properties alone.
    let mut open: Vec<(&Value, Option<Vec<String>>)> = vec![(schema, Some(Vec::new()))];
    while let Some((schema, path)) = open.pop() {
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(items) => {
                open.extend(items.iter().map(|item| (item, None)));
                continue;
            }
            _ => continue,
        };
        if let Some(name) = members.get(ANNOTATION) {
            let path = path.clone().filter(|path| !path.is_empty());
            let path = path.ok_or("stands where no chain of properties leads")?;
            found.push(annotated(name, members, path)?);
        }
        for (key, value) in members {
            match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    open.extend(properties.iter().map(|(name, schema)| {
                        let below = path.as_ref().map(|path| path.iter().chain([name]).cloned().collect());
                        (schema, below)
                    }));
                }
                (ANNOTATION, _) => {}
                (key, _) if DATA.contains(&key) => {}
                (_, value) => open.push((value, None)),
            }
        }
    }
    for (at, one) in found.iter().enumerate() {
        if found[..at].iter().any(|other| other.name.eq_ignore_ascii_case(&one.name)) {
            return Err(format!("names {} twice", one.name));
        }
    }
    Ok(found)
}

fn annotated(name: &Value, schema: &Map<String, Value>, path: Vec<String>) -> Result<Annotated, String> {
    let is_token = |name: &&str| {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !name.is_empty() && name.bytes().all(is_token)
    };
    let name = name.as_str().filter(is_token).ok_or("is no name of a header")?;
    let is_primitive = |kind: &str| matches!(kind, "string" | "integer" | "boolean");
    let fits = match schema.get("type") {
        Some(Value::String(kind)) => is_primitive(kind),
        Some(Value::Array(kinds)) => {
            let mut kinds =
                kinds.iter().map(|kind| kind.as_str().unwrap_or_default()).filter(|kind| *kind != "null");
            kinds.next().is_some_and(is_primitive) && kinds.all(is_primitive)
        }
        _ => false,
    };
    if !fits {
        return Err(format!("{name} is of no type that a header can show"));
    }
    Ok(Annotated { path, name: name.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_calls::tools::UpstreamTool;
    use serde_json::json;

    fn tool(name: &str, schema: Value) -> UpstreamTool {
        serde_json::from_value(json!({"name": name, "inputSchema": schema})).unwrap()
    }

    #[test]
    fn arguments_are_found_by_their_path() {
        let marked = |name: &str, kind: &str| json!({"type": kind, "x-mcp-header": name});
        let schema = json!({"properties": {
            "region": marked("Region", "string"), "plain": {"type": "string"},
            "x-mcp-header": {"type": "string", "default": {"x-mcp-header": 1}},
            "deep": {"properties": {"n": marked("N", "integer"), "b": marked("B", "boolean")}},
        }});
        let mut listed = Listed::from(vec![tool("sql", schema), tool("other", json!({}))]);
        let mirrored = MirroredArguments::read(&mut listed);
        assert_eq!(listed.tools.len(), 2);
        let shown = |arguments: &str| {
            let all = mirrored.of_call("sql", arguments);
            let mut all: Vec<String> = all.into_iter().map(|m| format!("{}={}", m.name, m.value)).collect();
            all.sort();
            all.join(" ")
        };
        assert_eq!(
            shown(r#"{"region":"eu","deep":{"n":-42.0,"b":false},"plain":"x"}"#),
            "B=false N=-42 Region=eu"
        );
        assert_eq!(shown(r#"{"region":null,"deep":{"n":1.5,"b":[1]}}"#), "");
        assert!(mirrored.of_call("other", r#"{"region":"eu"}"#).is_empty());
    }

    #[test]
    fn tools_that_break_the_rules_are_left_out() {
        let with = |schema: Value| json!({"properties": {"a": schema}});
        let bad = [
            (with(json!({"type": "number", "x-mcp-header": "A"})), "no type"),
            (with(json!({"x-mcp-header": "A"})), "no type"),
            (with(json!({"type": "string", "x-mcp-header": ""})), "no name"),
            (with(json!({"type": "string", "x-mcp-header": "a b"})), "no name"),
            (with(json!({"type": "string", "x-mcp-header": "a\r\nb: c"})), "no name"),
            (with(json!({"type": "string", "x-mcp-header": 7})), "no name"),
            (with(json!({"items": {"type": "string", "x-mcp-header": "A"}})), "no chain"),
            (json!({"anyOf": [with(json!({"type": "string", "x-mcp-header": "A"}))]}), "no chain"),
            (json!({"$defs": {"d": {"type": "string", "x-mcp-header": "A"}}}), "no chain"),
            (json!({"type": "string", "x-mcp-header": "A"}), "no chain"),
            (
                json!({"properties": {
                    "a": {"type": "string", "x-mcp-header": "Name"},
                    "b": {"type": "string", "x-mcp-header": "name"},
                }}),
                "twice",
            ),
        ];
        for (schema, why) in bad {
            let mut listed = Listed::from(vec![tool("bad", schema), tool("good", json!({}))]);
            MirroredArguments::read(&mut listed);
            assert_eq!(listed.tools.len(), 1, "{why}");
            assert!(listed.notes[0].contains(why) && &*listed.refused[0].0 == "bad", "{:?}", listed.notes);
        }
    }
}
