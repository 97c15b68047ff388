//! Translates the arguments of an MCP tool call into a Lisp program that calls the library function behind the tool.
//! The arguments are checked first against the tool's JSON Schema, which the function declares, or which is derived
//! here from the names of the parameters.

use super::object_of;
use ptc_calls::tools::{Notation, UpstreamTool, check_arguments};
use ptc_engine::ExposedExport;
use serde_json::{Map, Value, json};

/// The schema for parameters without one: of the arity with the most of them.
pub(super) fn schema_of(parameters: &[Vec<String>]) -> Value {
    let fixed = parameters.iter().filter(|names| !names.iter().any(|name| name == "&"));
    let longest = fixed.max_by_key(|names| names.len()).cloned().unwrap_or_default();
    let mut schema = object_of(&longest);
    let shortest = parameters.iter().min_by_key(|names| names.len());
    let is_always = |name: &String| shortest.is_none_or(|names| names.contains(name));
    schema["required"] = json!(longest.iter().filter(|name| is_always(name)).collect::<Vec<_>>());
    schema
}

/// A schema that says what the arguments are: an object, with the parameters as its properties.
///
/// # Errors
/// What is wrong.
pub(super) fn checked_schema(schema: &Value, parameters: &[Vec<String>]) -> Result<Value, String> {
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(":input has to be an object: its members are the parameters by name".to_owned());
    }
    let mut schema = schema.clone();
    schema["type"] = "object".into();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let is_known = |property: &String| parameters.iter().flatten().any(|name| is_named(name, property));
    match properties.into_iter().find(|property| !is_known(property)) {
        Some(unknown) => Err(format!(":input has the property {unknown:?}, which is no parameter")),
        None => Ok(schema),
    }
}

/// True if a member of the arguments is this parameter: the names are the same, apart from `-` and `_`.
fn is_named(parameter: &str, member: &str) -> bool {
    parameter.len() == member.len()
        && parameter
            .bytes()
            .zip(member.bytes())
            .all(|(one, other)| one == other || (one, other) == (b'-', b'_'))
}

/// The program that calls an export with these arguments, and its context.
///
/// # Errors
/// What is wrong with the arguments.
pub(super) fn program(
    export: &ExposedExport,
    schema: &Value,
    name: &str,
    text: &str,
) -> Result<(String, String), String> {
    let text = if text == "null" { "{}" } else { text };
    let given: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| format!("{name} takes an object of arguments: {error}"))?;
    let tool = json!({ "name": name, "inputSchema": schema });
    let tool: UpstreamTool = serde_json::from_value(tool).map_err(|error| error.to_string())?;
    check_arguments("ptc", &tool, text, Notation::Json).map_err(|wrong| wrong.message)?;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !given.contains_key(*name)) {
        return Err(format!("{name}: the argument {missing:?} is missing"));
    }
    // The shortest list of parameters that has all of them.
    let fits = |names: &&Vec<String>| {
        !names.iter().any(|name| name == "&")
            && given.keys().all(|member| names.iter().any(|name| is_named(name, member)))
    };
    let Some(names) = export.parameters.iter().filter(fits).min_by_key(|names| names.len()) else {
        let known: Vec<String> =
            export.parameters.iter().map(|names| format!("[{}]", names.join(" "))).collect();
        let is_known =
            |member: &&String| export.parameters.iter().flatten().any(|name| is_named(name, member));
        let unknown = given.keys().find(|member| !is_known(member));
        let unknown = unknown.map_or_else(String::new, |member| format!("; there is no {member:?}"));
        return Err(format!("{name} takes the arguments {}{unknown}", known.join(" or ")));
    };
    let mut context = Map::new();
    let mut program = format!("({}", export.reference);
    for (at, name) in names.iter().enumerate() {
        let value = given.iter().find(|(member, _)| is_named(name, member)).map(|(_, value)| value.clone());
        context.insert(format!("a{at}"), value.unwrap_or_default());
        program.push_str(&format!(" data/a{at}"));
    }
    program.push(')');
    Ok((program, Value::Object(context).to_string()))
}
