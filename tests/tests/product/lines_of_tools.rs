//! Lines of `dir` for schemas of every kind: `tests/tool_lines/lines.txt` has them, and arguments made of a line alone
//! fit the schema. `PTC_BLESS=1 cargo test -p ptc-tests --test product lines_of_tools` rewrites the lines.

#![expect(clippy::unwrap_used, reason = "test helpers: what is broken should be loud")]

use jsonschema::{Draft, JSONSchema};
use ptc_calls::tools::UpstreamTool;
use ptc_calls::tools::text::list_entry;
use ptc_tests::signature::{Style, read};
use ptc_tests::workspace;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Size limit of a signature without long required arguments: the line, and the names of what is not shown.
const LONGEST: usize = 700;

/// Numbers of arguments.
const COUNTS: [usize; 6] = [1, 2, 5, 9, 20, 45];

fn words(start: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{start}-{at}")).collect()
}

/// Kinds of arguments, by name.
fn kinds() -> Vec<(&'static str, Value)> {
    let nested = json!({"type": "object", "required": ["$kind", "size"], "properties": {
        "$kind": {"type": "string", "pattern": "^k-[0-9]{2}$"}, "size": {"type": "integer", "minimum": 3},
        "colour": {"enum": ["red", "blue"]}, "inner": {"type": "object", "properties": {"a": {"type": "boolean"}}}}});
    vec![
        ("a short enumeration", json!({"enum": ["open", "closed"]})),
        ("an enumeration of sixteen values", json!({"type": "string", "enum": words("west", 16)})),
        ("a very long enumeration", json!({"type": "string", "enum": words("a-long-name-of-a-guide", 120)})),
        ("an enumeration with null", json!({"enum": [null, 1, 2, 3]})),
        ("an enumeration of long texts", json!({"enum": ["y".repeat(500), "z".repeat(500)]})),
        (
            "constants side by side",
            json!({"anyOf": [{"const": "off"}, {"const": "moderate"}], "default": "moderate"}),
        ),
        (
            "values or another text",
            json!({"anyOf": [{"enum": ["pd", "pw"]}, {"type": "string", "minLength": 4}]}),
        ),
        ("bounds", json!({"type": "integer", "minimum": 1, "maximum": 100, "default": 20})),
        ("an open bound", json!({"type": "number", "exclusiveMinimum": 0})),
        ("a short pattern", json!({"type": "string", "pattern": "^[A-Z]{3}$", "default": "EUR"})),
        (
            "a long pattern",
            json!({"type": "string", "pattern": "^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$"}),
        ),
        (
            "a pattern that is too long",
            json!({"type": "string", "pattern": format!("^({})$", words("alternative", 20).join("|"))}),
        ),
        (
            "a pattern and a length",
            json!({"type": "string", "pattern": "^[a-f0-9]+$", "minLength": 40, "maxLength": 40}),
        ),
        ("a format", json!({"type": "string", "format": "cidrv4"})),
        ("a sentence as a format", json!({"type": "string", "format": "as the manual says"})),
        (
            "a long default",
            json!({"type": "string", "default": "as much as is usual in this place ".repeat(2)}),
        ),
        ("a very long default", json!({"type": "string", "default": "as much as is usual ".repeat(20)})),
        (
            "values in the description",
            json!({"type": "string", "description": "Whether to list near ('near'), far ('far') or both kinds ('both')."}),
        ),
        (
            "examples in the description",
            json!({"type": "string", "description": "The key of a project (e.g., 'ABC' or 'DEF')"}),
        ),
        ("JSON in a text", json!({"type": "string", "description": "Parameters as a JSON string"})),
        ("a map with required members", nested.clone()),
        ("a list of such maps", json!({"type": "array", "items": nested, "minItems": 1, "maxItems": 3})),
        ("a map of optional members", json!({"type": "object", "properties": {"a": {"type": "string"}}})),
        ("a refused value", json!({"type": "string", "not": {"const": "text"}})),
    ]
}

/// A tool with this many arguments of a kind.
fn tool(kind: &Value, required: usize, optional: usize) -> UpstreamTool {
    let names =
        |start: &str, count: usize| -> Vec<String> { (0..count).map(|at| format!("{start}_{at}")).collect() };
    let (needed, others) = (names("needed", required), names("option", optional));
    let properties: serde_json::Map<String, Value> =
        needed.iter().chain(&others).map(|name| (name.clone(), kind.clone())).collect();
    let schema = json!({"type": "object", "required": needed, "properties": properties, "additionalProperties": false});
    serde_json::from_value(json!({"name": "tool", "inputSchema": schema})).unwrap()
}

/// Made of its line alone, the arguments of a tool fit.
fn assert_fits(kind: &str, tool: &UpstreamTool) -> String {
    let (line, _) = list_entry(tool);
    // Formats are not checked: a format may be any word.
    let schema = JSONSchema::options().with_draft(Draft::Draft202012).compile(&tool.input_schema).unwrap();
    let signature = read(&line);
    for style in [Style::Least, Style::First, Style::Last] {
        let value = signature.value(style);
        assert!(schema.is_valid(&value) || is_unknowable(kind, tool), "{kind} {style:?}: {line}\n{value}");
    }
    line
}

/// True where no line could say what is required: the constraint is longer than a line.
fn is_unknowable(kind: &str, tool: &UpstreamTool) -> bool {
    ["an enumeration of long texts", "a pattern that is too long"].contains(&kind)
        && tool.required().next().is_some()
}

#[test]
fn lines_are_as_listed() {
    let mut text = String::new();
    for (kind, schema) in kinds() {
        let required = assert_fits(kind, &tool(&schema, 1, 0));
        let many = assert_fits(kind, &tool(&schema, 0, 9));
        writeln!(text, "{kind}\n  {required}\n  {many}\n").unwrap();
    }
    let mut mixed = tool(&json!({"type": "string"}), 1, 0);
    for (at, (_, schema)) in kinds().into_iter().enumerate() {
        // Not in the order of the alphabet: the first of the schema say most.
        mixed.input_schema["properties"][format!("option_{}", 99 - at)] = schema;
    }
    writeln!(text, "all of them\n  {}", assert_fits("all of them", &mixed)).unwrap();
    let file = workspace().join("tests/tool_lines/lines.txt");
    if std::env::var_os("PTC_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), text, "PTC_BLESS=1 writes it");
}

#[test]
fn every_argument_has_its_name_or_a_mark() {
    for (kind, schema) in kinds() {
        for (required, optional) in COUNTS.iter().flat_map(|count| [(1, *count), (0, *count), (2, *count)]) {
            let tool = tool(&schema, required, optional);
            let line = assert_fits(kind, &tool);
            let names = tool.input_schema["properties"].as_object().unwrap().keys();
            for name in names {
                let is_there = line.contains(&format!(":{name} "))
                    || line.contains(&format!(" {name} "))
                    || line.contains(&format!("({name} "))
                    || line.contains(&format!(" {name})"))
                    || line.contains(&format!("({name})"));
                assert!(is_there || line.ends_with(" …)}"), "{kind}: {name} is not in {line}");
            }
            let long = 450 * required;
            assert!(
                line.len() <= LONGEST + long,
                "{kind}, {required} and {optional}: {} bytes: {line}",
                line.len()
            );
        }
    }
}
