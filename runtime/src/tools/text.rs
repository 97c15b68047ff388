//! Describes tools as text: arguments, an example call, documentation, one-line summaries.

use super::schema::{key, word};
use super::signature::alternative::{Constraint, Demand, Plain};
use super::signature::example;
use super::signature::typed::{result, typed};
use super::signature::variants::Variants;
use super::visible::{shown_name, visible};
use super::{Annotations, CatalogServer, ListKind, UpstreamTool};
use crate::secrets::{Cut, dotted};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Length limit of a description in a list, in characters.
pub(crate) const SUMMARY: usize = 120;

/// Length limit of a tool's description in documentation.
const DESCRIPTION: usize = 6_000;

/// Length limit of an argument's description.
const EXPLANATION: usize = 1_000;

/// Limit of arguments that are explained one by one, including nested ones.
const MOST_EXPLAINED: usize = 60;

/// Limit of arguments that are examined for that: references may lead to the same ones again and again.
const MOST_LOOKED_AT: usize = 2_000;

/// Depth limit of explained nested arguments.
const DEEPEST_EXPLAINED: usize = 3;

/// A hint of an upstream about a tool.
pub(crate) struct Hint {
    /// Its text in documentation.
    label: &'static str,
    /// Its words for searches. A query matches with all of these words, or with all of them as one, so `read`
    /// alone does not match every tool that is read-only.
    pub(crate) words: &'static [&'static str],
    get: fn(&Annotations) -> Option<bool>,
}

const HINTS: [Hint; 4] = [
    Hint { label: "read-only", words: &["read", "only"], get: |annotations| annotations.read_only_hint },
    Hint { label: "destructive", words: &["destructive"], get: |annotations| annotations.destructive_hint },
    Hint { label: "idempotent", words: &["idempotent"], get: |annotations| annotations.idempotent_hint },
    Hint { label: "open-world", words: &["open", "world"], get: |annotations| annotations.open_world_hint },
];

/// The hints that are set.
pub(crate) fn hints(annotations: &Annotations) -> impl Iterator<Item = &'static Hint> {
    HINTS.iter().filter(|hint| (hint.get)(annotations) == Some(true))
}

/// The text on one line, without control characters, cut after `characters`.
pub fn one_line(text: &str, characters: usize) -> String {
    let mut line = String::with_capacity(text.len().min(characters * 4));
    let text = &*visible(text);
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    match dotted(&line, Cut::Chars(characters)) {
        Cow::Owned(short) => short,
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
    let variants = Variants::new(input_schema);
    let rows: Vec<String> = merged(&variants.alternatives(&[Constraint::Is(input_schema)]))
        .map(|row| {
            let mark = if row.required { "" } else { "?" };
            let word = match row.demand[..] {
                [Constraint::Is(schema)] => word(input_schema, schema),
                _ => kinds(&variants.alternatives(&row.demand)),
            };
            format!("{} {word}{mark}", key(row.name))
        })
        .collect();
    visible(&format!("{{{}}}", rows.join(" "))).into_owned()
}

/// The types of alternatives, without null if there are others.
fn kinds(all: &[Plain<'_>]) -> String {
    let mut kinds: Vec<&str> = all.iter().flat_map(Plain::kinds).collect();
    kinds.dedup();
    if kinds.len() > 1 {
        kinds.retain(|kind| *kind != "null");
    }
    if kinds.is_empty() { "any".to_owned() } else { kinds.join("|") }
}

/// An argument, merged from all alternatives that have it.
struct Argument<'s> {
    name: &'s str,
    demand: Demand<'s>,
    /// Required in all of them.
    required: bool,
}

/// The arguments of all alternatives, required ones first. The first alternative that has one describes it.
fn merged<'s>(all: &[Plain<'s>]) -> impl Iterator<Item = Argument<'s>> + use<'s> {
    let mut rows: Vec<Argument<'s>> = Vec::new();
    let mut known = BTreeSet::new();
    for (name, member) in all.iter().flat_map(Plain::members) {
        if known.insert(name) {
            let required = all.iter().all(|plain| plain.requires(name));
            rows.push(Argument { name, demand: member.demand.clone(), required });
        }
    }
    // Stable: required ones stay in schema order.
    rows.sort_by_key(|row| (!row.required, if row.required { "" } else { row.name }));
    rows.into_iter()
}

/// A tool with its arguments, for messages: `fs/read {:path string}`.
pub fn signature(server: &str, tool: &UpstreamTool) -> String {
    format!("{server}/{} {}", shown_name(&tool.name), arguments(&tool.input_schema))
}

/// A call that compiles and passes the checks of its arguments as it stands: required arguments with values
/// to edit, or the first optional one.
pub fn call_form(server: &str, tool: &UpstreamTool) -> String {
    let args = example::arguments(&tool.input_schema);
    let (server, name) = (Json::from(server), Json::from(&*tool.name));
    format!("(tool/call {{:server {server} :tool {name} :args {args}}})")
}

/// Facts about a server; `is_hidden`: a namespace of the same name hides its lists.
pub(crate) fn about_server(server: &CatalogServer, is_hidden: bool) -> String {
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
    let count = tools.map_or("not listed yet".to_owned(), |tools| tools.len().to_string());
    let way = if is_hidden {
        "found by (apropos \"words\" {:load true})".to_owned()
    } else {
        format!("listed by (dir {name})")
    };
    text.push_str(&format!("\nTools: {count}, {way}"));
    for (what, target) in [("Resources", ListKind::Resources), ("Prompts", ListKind::Prompts)] {
        let is_open = tools.is_some_and(|tools| tools.request_refusal(target.parts().0).is_none());
        if is_open {
            text.push_str(&format!("\n{what}: ({} {{:server {name}}})", target.form()));
        }
    }
    text
}

/// The documentation of one tool; `seen` is the observed shape of its results if it declares none.
pub fn documentation(server: &str, tool: &UpstreamTool, seen: Option<&str>) -> String {
    let schema = &tool.input_schema;
    let mut text = format!("{server}/{}", shown_name(&tool.name));
    if let Some(title) = tool.title.as_deref().filter(|title| !title.is_empty() && *title != &*tool.name) {
        text.push_str(&format!(" ({})", one_line(title, SUMMARY)));
    }
    let description = paragraph(tool.description.as_deref().unwrap_or_default(), DESCRIPTION, "  ");
    if !description.is_empty() {
        text.push_str(&format!("\nDescription: {description}"));
    }
    text.push_str(&format!("\n\nArgs: {}", typed(schema, schema)));
    let variants = Variants::new(schema);
    let all = variants.alternatives(&[Constraint::Is(schema)]);
    let required: Vec<String> = merged(&all).filter(|row| row.required).map(|row| key(row.name)).collect();
    let required = if required.is_empty() { "none".to_owned() } else { required.join(" ") };
    text.push_str(&format!("\nRequired args: {required}"));
    let mut rows = Vec::new();
    explain(&variants, &all, &[], &mut { MOST_LOOKED_AT }, &mut rows);
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
    // Values of schemas are in it unescaped.
    visible(&text).into_owned()
}

/// A text with its lines, each after the first behind `indent`, cut after `characters`. Blank lines and
/// common indentation are removed.
fn paragraph(text: &str, characters: usize, indent: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let blanks = |line: &&str| line.len() - line.trim_start().len();
    let shared = lines.iter().skip(1).map(blanks).min().unwrap_or_default();
    let lines = lines.iter().enumerate().map(|(at, line)| match at {
        0 => (*line).to_owned(),
        // All lines begin with this many whitespace characters, perhaps of different kinds.
        _ => format!("{indent}{}", line.get(shared..).unwrap_or_else(|| line.trim_start())),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    match dotted(&text, Cut::Chars(characters)) {
        Cow::Owned(short) => short,
        Cow::Borrowed(_) => text,
    }
}

/// The descriptions of a schema's members, including nested ones: `:filter :since - not before this day`.
fn explain<'s>(
    variants: &Variants<'s>,
    all: &[Plain<'s>],
    path: &[&str],
    left: &mut usize,
    rows: &mut Vec<String>,
) {
    for Argument { name, demand, .. } in merged(all) {
        *left = left.saturating_sub(1);
        if rows.len() >= MOST_EXPLAINED || *left == 0 {
            return;
        }
        let path = [path, &[name]].concat();
        let inside = variants.alternatives(&demand);
        let described = inside.iter().find_map(|plain| plain.about);
        let about = paragraph(described.unwrap_or_default(), EXPLANATION, "    ");
        if !about.is_empty() {
            let path: Vec<String> = path.iter().map(|name| key(name)).collect();
            rows.push(format!("{} - {about}", path.join(" ")));
        }
        if path.len() < DEEPEST_EXPLAINED {
            for plain in &inside {
                let items = if plain.items.is_empty() {
                    vec![plain.clone()]
                } else {
                    variants.alternatives(&plain.items)
                };
                explain(variants, &items, &path, left, rows);
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

    /// The cost of documentation depends on the size of the document, not on how its parts refer to each
    /// other.
    #[test]
    fn documentation_of_schemas_that_refer_to_themselves_is_bounded() {
        let circle = |count: usize| {
            let names: Vec<String> = (0..count).map(|n| format!("p{n}")).collect();
            let members: serde_json::Map<String, Json> =
                (0..count).map(|n| (format!("p{n}"), json!({"$ref": format!("#/$defs/a{n}")}))).collect();
            let one = json!({"type": "object", "required": names, "properties": members});
            let defs: serde_json::Map<String, Json> =
                (0..count).map(|n| (format!("a{n}"), one.clone())).collect();
            json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/a0"}}, "required": ["v"], "$defs": defs})
        };
        let names: Vec<String> = (0..100_000).map(|n| format!("r{n}")).collect();
        let parts: Vec<Json> = (0..60).map(|n| json!({"$ref": format!("#/$defs/b{n}")})).collect();
        let all: serde_json::Map<String, Json> =
            (0..60).map(|n| (format!("b{n}"), json!({"allOf": parts}))).collect();
        for schema in [
            circle(8),
            circle(60),
            json!({"type": "object", "required": names}),
            json!({"properties": {"v": {"$ref": "#/$defs/b0"}}, "$defs": all}),
        ] {
            let tool = tool(json!({"name": "t", "inputSchema": schema, "outputSchema": schema}));
            // Without a bound this takes minutes: the test would not end.
            assert!(documentation("s", &tool, None).starts_with("s/t"));
            assert!(signature("s", &tool).starts_with("s/t"));
        }
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
