//! Tools as text: arguments, a call to edit, documentation, one-line summaries.

use super::schema::{Argument, Properties, alternatives, key, resolve, word};
use super::typed::{result, typed};
use super::{Annotations, CatalogServer, ListKind, UpstreamTool};
use crate::secrets::{Cut, dotted};
use serde_json::Value as Json;
use std::borrow::Cow;

/// Characters of a description in a list.
pub(crate) const SUMMARY: usize = 120;

/// Characters of the description of a tool in documentation.
const DESCRIPTION: usize = 6_000;

/// Characters of that of an argument.
const EXPLANATION: usize = 1_000;

/// Arguments that are explained one by one, those inside others included.
const MOST_EXPLAINED: usize = 60;

/// Arguments that are looked at for that: references may lead to the same ones again and again.
const MOST_LOOKED_AT: usize = 2_000;

/// How deep arguments inside others are explained.
const DEEPEST_EXPLAINED: usize = 3;

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
    match dotted(&line, Cut::Chars(characters)) {
        Cow::Owned(short) => Cow::Owned(short),
        Cow::Borrowed(_) => line,
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

/// What there is to know about a server that has listed its tools.
pub(crate) fn about_server(server: &CatalogServer) -> String {
    let name = Json::from(&*server.name);
    let mut text = server.name.to_string();
    let tools = server.tools.as_ref();
    let says = tools.and_then(|tools| tools.instructions());
    for (label, about) in [("Description", server.description.as_deref()), ("Instructions", says)] {
        let about = paragraph(about.unwrap_or_default(), DESCRIPTION, "  ");
        if !about.is_empty() {
            text.push_str(&format!("\n{label}: {about}"));
        }
    }
    let count = tools.map_or(0, |tools| tools.len());
    text.push_str(&format!("\nTools: {count}, listed by (dir {name})"));
    for (what, target) in [("Resources", ListKind::Resources), ("Prompts", ListKind::Prompts)] {
        let is_open = tools.is_some_and(|tools| tools.request_refusal(target.parts().0).is_none());
        if is_open {
            text.push_str(&format!("\n{what}: ({} {{:server {name}}})", target.form()));
        }
    }
    text
}

/// The documentation of one tool; `seen` is the shape of what it last gave, for one that does not say what it gives.
pub(crate) fn documentation(server: &str, tool: &UpstreamTool, seen: Option<&str>) -> String {
    let schema = &tool.input_schema;
    let mut text = format!("{server}/{}", tool.name);
    if let Some(title) = tool.title.as_deref().filter(|title| !title.is_empty() && *title != &*tool.name) {
        text.push_str(&format!(" ({})", one_line(title, SUMMARY)));
    }
    let description = paragraph(tool.description.as_deref().unwrap_or_default(), DESCRIPTION, "  ");
    if !description.is_empty() {
        text.push_str(&format!("\nDescription: {description}"));
    }
    text.push_str(&format!("\n\nArgs: {}", typed(schema, schema)));
    let required: Vec<String> =
        Properties::of(schema, schema).filter(|row| row.required).map(|row| key(row.name)).collect();
    let required = if required.is_empty() { "none".to_owned() } else { required.join(" ") };
    text.push_str(&format!("\nRequired args: {required}"));
    let mut rows = Vec::new();
    explain(schema, schema, &[], &mut { MOST_LOOKED_AT }, &mut rows);
    rows.iter().for_each(|row| text.push_str(&format!("\n  {row}")));
    let hints: Vec<&str> = hints(&tool.annotations).map(|hint| hint.label).collect();
    if !hints.is_empty() {
        text.push_str(&format!("\nHints: {}", hints.join(", ")));
    }
    text.push_str(&format!("\n\nCall:\n{}", call_form(server, tool)));
    let result = result(tool.output_schema.as_ref(), tool.wraps_result_in(), seen);
    text.push_str(&format!("\n\nReturns: {result}"));
    text.push_str("\nUse `(:value r)` after checking `(:ok r)`.");
    let reference = Json::from(format!("{server}/{}", tool.name));
    text.push_str(&format!(" (meta {reference}) has the schemas in full."));
    text
}

/// A text with its lines, each after the first behind `indent`, cut after some characters. Blank lines and the
/// indentation that all lines share are left out.
fn paragraph(text: &str, characters: usize, indent: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let blanks = |line: &&str| line.len() - line.trim_start().len();
    let shared = lines.iter().skip(1).map(blanks).min().unwrap_or_default();
    let lines = lines.iter().enumerate().map(|(at, line)| match at {
        0 => (*line).to_owned(),
        // All of them begin with as many blanks, which may be of any kind.
        _ => format!("{indent}{}", line.get(shared..).unwrap_or_else(|| line.trim_start())),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    match dotted(&text, Cut::Chars(characters)) {
        Cow::Owned(short) => short,
        Cow::Borrowed(_) => text,
    }
}

/// What a schema says about its members in words, and about theirs: `:filter :since - not before this day`.
fn explain(root: &Json, schema: &Json, path: &[&str], left: &mut usize, rows: &mut Vec<String>) {
    for Argument { name, schema: row, .. } in Properties::of(root, schema) {
        *left = left.saturating_sub(1);
        if rows.len() >= MOST_EXPLAINED || *left == 0 {
            return;
        }
        let path = [path, &[name]].concat();
        let inner = resolve(root, row);
        let described = row.get("description").or_else(|| inner.get("description")).and_then(Json::as_str);
        let about = paragraph(described.unwrap_or_default(), EXPLANATION, "    ");
        if !about.is_empty() {
            let path: Vec<String> = path.iter().map(|name| key(name)).collect();
            rows.push(format!("{} - {about}", path.join(" ")));
        }
        if path.len() < DEEPEST_EXPLAINED {
            let inside = [inner].into_iter().chain(alternatives(inner).unwrap_or_default());
            for schema in inside.map(|schema| resolve(root, schema)) {
                let items = schema.get("items").filter(|items| items.is_object());
                explain(root, items.unwrap_or(schema), &path, left, rows);
            }
        }
    }
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
            documentation("github", &search(), None),
            "github/search_issues\n\
             Description: Search\n  \
               issues.\n\
             \n\
             Args: {:query string :repo string :limit integer? :state \"open\"|\"closed\"? = \"open\"}\n\
             Required args: :query :repo\n  \
               :repo - owner/name\n\
             Hints: read-only\n\
             \n\
             Call:\n\
             (tool/call {:server \"github\" :tool \"search_issues\" :args {:query \"...\" :repo \"...\"}})\n\
             \n\
             Returns: Result<{:items [string] :next string?}>\n\
             Use `(:value r)` after checking `(:ok r)`. (meta \"github/search_issues\") has the schemas in full."
        );
    }

    #[test]
    fn a_tool_without_arguments_is_called_without() {
        let bare = tool(json!({"name": "now"}));
        assert_eq!(call_form("time", &bare), "(tool/call {:server \"time\" :tool \"now\" :args {}})");
        assert_eq!(signature("time", &bare), "time/now {}");
        assert!(documentation("time", &bare, None).contains("Required args: none"));
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
    fn descriptions_keep_their_lines() {
        assert_eq!(paragraph("One.\n\n    Two:\n      - a\n", 100, "  "), "One.\n  Two:\n    - a");
        assert_eq!(paragraph("abc def", 4, ""), "abc...");
        let nested = tool(json!({"name": "t", "title": "The tool", "inputSchema": {"properties": {
            "filter": {"description": "What to keep", "properties": {"since": {"description": "not before"}}},
            "rows": {"type": "array", "items": {"properties": {"id": {"description": "its number"}}}}}}}));
        let text = documentation("s", &nested, Some("[string]"));
        for line in [
            "s/t (The tool)",
            "  :filter - What to keep",
            "  :filter :since - not before",
            "  :rows :id - its number",
            "Returns: Result<any>; it last gave [string]",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }

    #[test]
    fn long_descriptions_are_cut_on_one_line() {
        assert_eq!(one_line("  a\n b ", 10), "a b");
        assert_eq!(one_line("abc def", 4), "abc...");
        assert_eq!(summary("t", None), "t");
    }
}
