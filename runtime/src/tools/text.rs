//! Tools as text: arguments, a call to edit, documentation, one-line summaries.

use super::schema::{Properties, alternatives, key, resolve, result_shape, word};
use super::{Annotations, UpstreamTool};
use serde_json::Value as Json;
use std::borrow::Cow;

/// Characters of a description in a list.
pub(crate) const SUMMARY: usize = 120;

/// Characters of a description in documentation.
const DESCRIPTION: usize = 1_000;

/// Arguments that are explained one by one.
const MOST_EXPLAINED: usize = 40;

/// Values of an enumeration that are listed.
const MOST_VALUES: usize = 20;

/// How deep a call to edit goes into objects.
const DEEPEST_PLACEHOLDER: usize = 3;

/// What an upstream may claim about a tool.
pub(crate) struct Hint {
    /// In documentation.
    label: &'static str,
    /// For searches: one word, so that `read` does not find every tool that is read-only by name.
    pub(crate) word: &'static str,
    get: fn(&Annotations) -> Option<bool>,
}

const HINTS: [Hint; 4] = [
    Hint { label: "read-only", word: "readonly", get: |annotations| annotations.read_only_hint },
    Hint { label: "destructive", word: "destructive", get: |annotations| annotations.destructive_hint },
    Hint { label: "idempotent", word: "idempotent", get: |annotations| annotations.idempotent_hint },
    Hint { label: "open-world", word: "openworld", get: |annotations| annotations.open_world_hint },
];

/// The hints that hold.
pub(crate) fn hints(annotations: &Annotations) -> impl Iterator<Item = &'static Hint> {
    HINTS.iter().filter(|hint| (hint.get)(annotations) == Some(true))
}

/// The text on one line, cut after some characters.
pub fn one_line(text: &str, characters: usize) -> Cow<'_, str> {
    let mut line = String::with_capacity(text.len().min(characters * 4));
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let line = if line == text { Cow::Borrowed(text) } else { Cow::Owned(line) };
    match line.char_indices().nth(characters) {
        None => line,
        Some((end, _)) => Cow::Owned(format!("{}...", line[..end].trim_end())),
    }
}

/// `name - description`, or the name alone.
pub(crate) fn summary(name: &str, description: Option<&str>) -> String {
    let description = one_line(description.unwrap_or_default(), SUMMARY);
    if description.is_empty() { name.to_owned() } else { format!("{name} - {description}") }
}

/// Arguments as `{:path string :limit integer?}`: required ones in schema order, then optional ones by name.
pub fn arguments(input_schema: &Json) -> String {
    let rows: Vec<String> = Properties::of(input_schema, input_schema)
        .map(|row| {
            let mark = if row.required { "" } else { "?" };
            format!("{} {}{mark}", key(row.name), word(input_schema, row.schema))
        })
        .collect();
    format!("{{{}}}", rows.join(" "))
}

/// A tool with its arguments, for messages: `fs/read {:path string}`.
pub fn signature(server: &str, tool: &UpstreamTool) -> String {
    format!("{server}/{} {}", tool.name, arguments(&tool.input_schema))
}

/// A call that compiles and passes the checks of its arguments as it stands: required arguments with values
/// to edit, or the first optional one.
pub fn call_form(server: &str, tool: &UpstreamTool) -> String {
    let schema = &tool.input_schema;
    let args = object(schema, schema, 0, true);
    let (server, name) = (Json::from(server), Json::from(&*tool.name));
    format!("(tool/call {{:server {server} :tool {name} :args {args}}})")
}

fn object(root: &Json, schema: &Json, depth: usize, show_one: bool) -> String {
    let mut rows: Vec<_> = Properties::of(root, schema).collect();
    let required = rows.iter().filter(|row| row.required).count();
    rows.truncate(if required == 0 && show_one { 1 } else { required });
    let entries: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {}", key(row.name), placeholder(root, row.schema, depth + 1)))
        .collect();
    format!("{{{}}}", entries.join(" "))
}

/// A value that fits a schema.
fn placeholder(root: &Json, schema: &Json, depth: usize) -> String {
    let schema = resolve(root, schema);
    let given = [schema.get("const"), schema.get("default"), schema.pointer("/enum/0")];
    if let Some(value) = given.into_iter().flatten().find(|value| !value.is_object() && !value.is_array()) {
        return if value.is_null() { "nil".to_owned() } else { value.to_string() };
    }
    if depth > DEEPEST_PLACEHOLDER {
        return "nil".to_owned();
    }
    let kind = match schema.get("type") {
        Some(Json::String(kind)) => kind.as_str(),
        Some(Json::Array(kinds)) => {
            kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ => match alternatives(schema) {
            Some([first, ..]) => return placeholder(root, first, depth + 1),
            _ if schema.get("properties").is_some() => "object",
            _ => "string",
        },
    };
    match kind {
        "integer" => number(schema, "1"),
        "number" => number(schema, "1.0"),
        "boolean" => "true".to_owned(),
        "null" => "nil".to_owned(),
        "object" => object(root, schema, depth, false),
        "array" => match (schema.get("minItems").and_then(Json::as_u64), schema.get("items")) {
            (Some(1..), Some(items)) => format!("[{}]", placeholder(root, items, depth + 1)),
            _ => "[]".to_owned(),
        },
        _ => "\"...\"".to_owned(),
    }
}

/// The least number that the schema takes, or the usual one.
fn number(schema: &Json, usual: &str) -> String {
    schema.get("minimum").filter(|least| least.is_number()).map_or_else(|| usual.to_owned(), Json::to_string)
}

/// The documentation of one tool.
pub(crate) fn documentation(server: &str, tool: &UpstreamTool) -> String {
    let schema = &tool.input_schema;
    let mut text = format!("{server}/{}", tool.name);
    let description =
        one_line(tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default(), DESCRIPTION);
    if !description.is_empty() {
        text.push_str(&format!("\nDescription: {description}"));
    }
    text.push_str(&format!("\n\nArgs: {}", arguments(schema)));
    let required: Vec<String> =
        Properties::of(schema, schema).filter(|row| row.required).map(|row| key(row.name)).collect();
    let required = if required.is_empty() { "none".to_owned() } else { required.join(" ") };
    text.push_str(&format!("\nRequired args: {required}"));
    for row in Properties::of(schema, schema).take(MOST_EXPLAINED) {
        if let Some(about) = explanation(schema, row.schema) {
            text.push_str(&format!("\n  {} - {about}", key(row.name)));
        }
    }
    let hints: Vec<&str> = hints(&tool.annotations).map(|hint| hint.label).collect();
    if !hints.is_empty() {
        text.push_str(&format!("\nHints: {}", hints.join(", ")));
    }
    text.push_str(&format!("\n\nCall:\n{}", call_form(server, tool)));
    text.push_str(&format!(
        "\n\nReturns: {}",
        result_shape(tool.output_schema.as_ref(), tool.wraps_result_in())
    ));
    text.push_str("\nUse `(:value r)` after checking `(:ok r)`.");
    text
}

/// What a schema says about one argument beside its type.
fn explanation(root: &Json, schema: &Json) -> Option<String> {
    let described = schema.get("description");
    let schema = resolve(root, schema);
    let mut parts = Vec::new();
    if let Some(values) = schema.get("enum").and_then(Json::as_array) {
        let mut listed: Vec<String> = values.iter().take(MOST_VALUES).map(Json::to_string).collect();
        if values.len() > MOST_VALUES {
            listed.push(format!("… ({} more)", values.len() - MOST_VALUES));
        }
        parts.push(format!("one of {}", listed.join(", ")));
    }
    if let Some(text) = described.or_else(|| schema.get("description")).and_then(Json::as_str) {
        let text = one_line(text, SUMMARY);
        parts.extend((!text.is_empty()).then(|| text.into_owned()));
    }
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let default = default.to_string();
        parts.extend((default.len() <= SUMMARY).then(|| format!("default {default}")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(value: Json) -> UpstreamTool {
        serde_json::from_value(value).unwrap()
    }

    fn search() -> UpstreamTool {
        tool(json!({"name": "search_issues", "description": "Search\n issues.",
            "inputSchema": {"type": "object", "required": ["query", "repo"], "properties": {
                "state": {"type": "string", "enum": ["open", "closed"], "default": "open"},
                "repo": {"type": "string", "description": "owner/name"},
                "query": {"type": "string"}, "limit": {"type": "integer"}}},
            "outputSchema": {"type": "object", "required": ["items"], "properties": {
                "items": {"type": "array", "items": {"type": "string"}}, "next": {"type": "string"}}},
            "annotations": {"readOnlyHint": true}}))
    }

    #[test]
    fn documentation_has_arguments_call_and_result() {
        assert_eq!(
            documentation("github", &search()),
            "github/search_issues\n\
             Description: Search issues.\n\
             \n\
             Args: {:query string :repo string :limit integer? :state enum<string>?}\n\
             Required args: :query :repo\n  \
               :repo - owner/name\n  \
               :state - one of \"open\", \"closed\"; default \"open\"\n\
             Hints: read-only\n\
             \n\
             Call:\n\
             (tool/call {:server \"github\" :tool \"search_issues\" :args {:query \"...\" :repo \"...\"}})\n\
             \n\
             Returns: Result<{:items [string] :next string?}>\n\
             Use `(:value r)` after checking `(:ok r)`."
        );
    }

    #[test]
    fn a_tool_without_arguments_is_called_without() {
        let bare = tool(json!({"name": "now"}));
        assert_eq!(call_form("time", &bare), "(tool/call {:server \"time\" :tool \"now\" :args {}})");
        assert_eq!(signature("time", &bare), "time/now {}");
        assert!(documentation("time", &bare).contains("Required args: none"));
    }

    #[test]
    fn placeholders_fit_their_schemas() {
        let schema = json!({"required": ["a", "b", "c", "d", "e", "f", "g"], "properties": {
            "a": {"const": "x"}, "b": {"enum": [3, 4]}, "c": {"type": "number", "minimum": 5},
            "d": {"type": "array", "minItems": 1, "items": {"type": "boolean"}},
            "e": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
            "f": {"anyOf": [{"type": "null"}, {"type": "string"}]}, "g": {"type": ["null", "string"]}}});
        assert_eq!(
            object(&schema, &schema, 0, true),
            "{:a \"x\" :b 3 :c 5 :d [true] :e {:n 1} :f nil :g \"...\"}"
        );
        let optional = json!({"properties": {"b": {}, "a": {}}});
        assert_eq!(object(&optional, &optional, 0, true), "{:a \"...\"}");
    }

    #[test]
    fn long_descriptions_are_cut_on_one_line() {
        assert_eq!(one_line("  a\n b ", 10), "a b");
        assert_eq!(one_line("abc def", 4), "abc...");
        assert_eq!(summary("t", None), "t");
    }
}
