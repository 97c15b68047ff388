//! `doc` describes schemas of every shape well enough to call the tool: arguments made from it alone fit the schema,
//! and so does the example call that it shows.

use jsonschema::{Draft, JSONSchema};
use ptc_calls::tools::text::{call_form, documentation};
use ptc_calls::tools::{Notation, UpstreamTool, check_arguments};
use ptc_tests::binary::eval;
use ptc_tests::signature::{Style, arguments, read};
use serde_json::{Map, Value, json};

/// Schemas of objects.
fn objects() -> Vec<Value> {
    vec![
        json!({"properties": {"a": {"type": "string"}}, "required": ["a"]}),
        json!({"properties": {"b": {"type": "integer", "minimum": 2, "description": "how many"}}, "required": ["b"]}),
        json!({"properties": {"kind": {"const": "x"}, "c": {"type": "boolean"}}, "required": ["kind", "c"]}),
        json!({"properties": {"kind": {"const": "y"},
            "d": {"type": "array", "items": {"type": "string", "format": "date"}, "minItems": 1}}, "required": ["kind", "d"]}),
        json!({"$ref": "#/$defs/base"}),
        json!({"required": ["a"]}),
        json!({"type": "object", "properties": {"f": {"type": ["string", "null"]}, "g": {"enum": ["p", "q"]}},
            "additionalProperties": false, "required": ["g"]}),
        json!({"properties": {"h": {"type": "string"}, "i": {"type": "integer"}}, "minProperties": 1}),
        json!({"not": {"required": ["a"]}}),
        json!({"properties": {"e": {"type": "string", "default": "of e"}}, "dependentRequired": {"e": ["b"]}}),
        json!({"properties": {"kind": {"enum": ["x", "y", "z"]}}}),
    ]
}

/// Schemas of values.
fn values() -> Vec<Value> {
    vec![
        json!({"type": "string"}),
        json!({"type": "integer"}),
        json!({"enum": ["p", "q", 3]}),
        json!({"const": "p"}),
        json!({"type": "string", "minLength": 3, "maxLength": 5}),
        json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
        json!({"type": "integer", "multipleOf": 4, "minimum": 5}),
        json!({"type": ["string", "null"]}),
        json!({"type": "array", "items": {"$ref": "#/$defs/base"}, "minItems": 1}),
        json!({"type": "object", "properties": {"z": {"type": "integer"}}, "required": ["z"]}),
        json!({"type": "null"}),
        json!({"$ref": "#/$defs/tree"}),
    ]
}

/// True for `oneOf` schemas that nearly every object matches twice; no real schema means that.
fn is_vague(schema: &Value) -> bool {
    schema.get("minProperties").is_some()
        || schema.get("dependentRequired").is_some()
        || (schema.get("required").is_none() && schema.get("properties").is_some())
}

/// Ways to combine schemas for one value.
fn together(first: &Value, second: &Value, third: &Value) -> Vec<Value> {
    let mut all = vec![
        json!({"allOf": [first, second]}),
        json!({"anyOf": [first, second]}),
        json!({"allOf": [first], "anyOf": [second, third]}),
        json!({"allOf": [{"anyOf": [first, second]}, {"anyOf": [second, third]}]}),
        json!({"if": first, "then": second}),
        json!({"if": first, "then": second, "else": third}),
        json!({"allOf": [{"if": first, "then": third}, second]}),
        json!({"allOf": [first], "not": second}),
        json!({"anyOf": [{"allOf": [first, third]}, {"$ref": "#/$defs/base"}]}),
    ];
    if !is_vague(second) {
        all.extend((!is_vague(first)).then(|| json!({"oneOf": [first, second]})));
        all.extend((!is_vague(third)).then(|| json!({"allOf": [first], "oneOf": [second, third]})));
    }
    all
}

/// Tools of all these shapes.
fn schemas() -> Vec<Value> {
    let defs = json!({
        "base": {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}}, "required": ["id"]},
        "tree": {"type": "object", "properties": {"leaf": {"type": "string"}, "left": {"$ref": "#/$defs/tree"}}, "required": ["leaf"]},
    });
    let with_defs = |mut schema: Value| {
        schema["$defs"] = defs.clone();
        schema
    };
    let mut all = Vec::new();
    let objects = objects();
    for (at, first) in objects.iter().enumerate() {
        for second in objects.iter().chain([&json!({})]) {
            let third = &objects[(at + 1) % objects.len()];
            for mut schema in together(first, second, third) {
                schema["type"] = "object".into();
                all.push(with_defs(schema));
            }
        }
    }
    let values = values();
    for (at, first) in values.iter().enumerate() {
        for second in &values {
            for value in together(first, second, &values[(at + 1) % values.len()]) {
                all.push(with_defs(json!({"type": "object", "properties": {"v": value}, "required": ["v"]})));
            }
        }
    }
    all
}

fn tool(schema: &Value) -> UpstreamTool {
    serde_json::from_value(json!({"name": "tool", "inputSchema": schema})).expect("a tool")
}

fn validator(schema: &Value) -> JSONSchema {
    let compiled =
        JSONSchema::options().with_draft(Draft::Draft202012).should_validate_formats(true).compile(schema);
    compiled.unwrap_or_else(|error| panic!("{schema}: {error}"))
}

#[test]
fn arguments_made_of_documentation_fit() {
    let schemas = schemas();
    let tools: Vec<UpstreamTool> = schemas.iter().map(tool).collect();
    // The example calls, as data.
    let shown: Vec<String> = tools
        .iter()
        .map(|tool| {
            let call = call_form("s", tool);
            let arguments = call.split_once(":args ").unwrap().1.strip_suffix("})").unwrap();
            arguments.to_owned()
        })
        .collect();
    let mut data = Vec::new();
    for part in shown.chunks(400) {
        let report = eval(&format!("[{}]", part.join("\n")), &[]);
        data.extend(report["json"].as_array().unwrap_or_else(|| panic!("{report:#}")).clone());
    }
    let mut made: Vec<(usize, String, Vec<Value>)> = Vec::new();
    let mut pool: Vec<Value> = vec![Value::Object(Map::new())];
    for (at, (tool, data)) in tools.iter().zip(data).enumerate() {
        let text = documentation("s", tool, None);
        let signature = arguments(&text).unwrap().to_owned();
        let mut values = vec![data];
        if signature != "nothing" && !signature.contains(" nothing") {
            let read = read(&signature);
            values.extend([Style::Least, Style::First, Style::Last].map(|style| read.value(style)));
        }
        pool.extend(values.clone());
        made.push((at, signature, values));
    }
    pool.sort_by_key(Value::to_string);
    pool.dedup();
    let (mut fit, mut impossible, mut misfits) = (0, 0, Vec::new());
    for (at, signature, values) in made {
        let (schema, tool) = (&schemas[at], &tools[at]);
        let validator = validator(schema);
        let wrong: Vec<&Value> = values.iter().filter(|value| !validator.is_valid(value)).collect();
        if wrong.is_empty() {
            fit += 1;
            for value in &values {
                let checked = check_arguments("s", tool, &value.to_string(), Notation::Json);
                assert!(checked.is_ok(), "{schema}: {value}: {checked:?}");
            }
        } else if !pool.iter().any(|value| validator.is_valid(value)) {
            // Nothing fits: the schema contradicts itself.
            impossible += 1;
        } else {
            misfits.push(format!(
                "{schema}\n  {signature}\n  {}",
                wrong.iter().map(|value| value.to_string()).collect::<Vec<_>>().join("\n  ")
            ));
        }
    }
    println!("{fit} of {} schemas fit, {impossible} cannot be fitted", schemas.len());
    assert!(
        misfits.is_empty(),
        "{} misfits:\n{}",
        misfits.len(),
        misfits[..misfits.len().min(60)].join("\n")
    );
}
