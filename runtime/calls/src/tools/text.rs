//! Describes tools and servers in text for models and messages: signatures, example calls, documentation, one-line
//! summaries.

use super::SeenResults;
use super::key::key;
use super::offers::MOST_SHOWN;
use super::sentence::first_sentence;
use super::signature::alternative::{Constraint, Plain};
use super::signature::arguments::{Explanation, Explanations, MOST_LOOKED_AT, merged};
use super::signature::docstring::without_parameters;
use super::signature::example;
use super::signature::typed::{Signature, compact, result, typed};
use super::signature::variants::Variants;
use super::visible::{shown_name, visible};
use super::{Annotations, CatalogServer, UpstreamTool};
use crate::schema::word;
use ptc_base::secrets::{Cut, dotted};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::HashMap;

/// Length limit of a description in a list, in characters.
pub const SUMMARY: usize = 120;

/// Length limit of a tool's description in documentation.
const DESCRIPTION: usize = 6_000;

/// Length limit of an argument's description.
const EXPLANATION: usize = 1_000;

/// A hint of an upstream about a tool.
pub struct Hint {
    /// Its text in documentation.
    label: &'static str,
    /// Its text for searches: its name in the protocol, and its words as one.
    pub searched: &'static str,
    get: fn(&Annotations) -> Option<bool>,
}

const HINTS: [Hint; 4] = [
    Hint {
        label: "read-only",
        searched: "readOnlyHint readonly",
        get: |annotations| annotations.read_only_hint,
    },
    Hint {
        label: "destructive",
        searched: "destructiveHint",
        get: |annotations| annotations.destructive_hint,
    },
    Hint { label: "idempotent", searched: "idempotentHint", get: |annotations| annotations.idempotent_hint },
    Hint {
        label: "open-world",
        searched: "openWorldHint openworld",
        get: |annotations| annotations.open_world_hint,
    },
];

/// The hints that are set.
pub fn hints(annotations: &Annotations) -> impl Iterator<Item = &'static Hint> {
    HINTS.iter().filter(|hint| (hint.get)(annotations) == Some(true))
}

/// A number of tools in words.
pub fn count(tools: usize) -> String {
    format!("{tools} tool{}", if tools == 1 { "" } else { "s" })
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
pub fn summary(name: &str, description: Option<&str>) -> String {
    let description = one_line(description.unwrap_or_default(), SUMMARY);
    if description.is_empty() { name.to_owned() } else { format!("{name} - {description}") }
}

/// The first sentence of a description of a tool on one line, cut at the end of a word.
fn short_sentence(text: &str) -> String {
    let line = one_line(first_sentence(text).unwrap_or(text), DESCRIPTION);
    if line.chars().count() <= SUMMARY {
        return line.trim_end_matches(['.', ':']).to_owned();
    }
    let cut: String = line.chars().take(SUMMARY).collect();
    let whole = cut.rfind(' ').map_or(cut.as_str(), |end| &cut[..end]);
    format!("{}...", whole.trim_end_matches([',', ';', ':', '.', ' ']))
}

/// What a list says of a tool: its signature and the first sentence of its description.
pub fn list_entry(tool: &UpstreamTool) -> (String, String) {
    let about = Described::new(tool).text;
    let about = if about.is_empty() { tool.title.as_deref().unwrap_or_default() } else { &about };
    (visible(&compact(&tool.input_schema)).into_owned(), short_sentence(about))
}

/// A tool in a list, with what a call needs:
/// `read_file {:path string :limit integer?} - Reads a file`. `name` is its name there.
pub fn tool_line(name: &str, tool: &UpstreamTool) -> String {
    let (signature, about) = list_entry(tool);
    let about = if about.is_empty() { about } else { format!(" - {about}") };
    format!("{name} {signature}{about}")
}

/// A tool's description, apart from what it says about parameters.
pub(super) struct Described {
    pub(super) text: String,
    /// Descriptions of arguments that the schema lacks, or has only a part of.
    pub(super) arguments: HashMap<String, String>,
}

impl Described {
    pub(super) fn new(tool: &UpstreamTool) -> Described {
        let properties = tool.input_schema.get("properties").and_then(Json::as_object);
        let mut arguments = HashMap::new();
        let text = without_parameters(tool.description.as_deref().unwrap_or_default(), |name, about| {
            let Some(schema) = properties.and_then(|all| all.get(name)) else { return false };
            let known = schema.get("description").and_then(Json::as_str).unwrap_or_default();
            let (known, about_words) = (words_of(known), words_of(about));
            if known.contains(&about_words) {
                return true;
            }
            // Both differ: both stay.
            let is_more = about_words.contains(&known);
            if is_more {
                arguments.insert(name.to_owned(), about.to_owned());
            }
            is_more
        });
        Described { text, arguments }
    }
}

/// The words of a text, for comparisons.
fn words_of(text: &str) -> String {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Arguments as `{:path string :limit integer?}`: required ones in schema order, then optional ones by name.
fn arguments(input_schema: &Json) -> String {
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

/// A tool with its arguments, for messages: `fs/read {:path string}`.
pub fn signature(server: &str, tool: &UpstreamTool) -> String {
    format!("{server}/{} {}", shown_name(&tool.name), arguments(&tool.input_schema))
}

/// A call that compiles and passes the checks of its arguments as it stands: required arguments with values
/// to edit.
pub fn call_form(server: &str, tool: &UpstreamTool) -> String {
    let args = example::arguments(&tool.input_schema);
    let (server, name) = (Json::from(server), Json::from(&*tool.name));
    format!("(tool/call {{:server {server} :tool {name} :args {args}}})")
}

/// Facts about a server; `is_hidden`: a namespace of the same name hides its lists.
pub fn about_server(server: &CatalogServer, is_hidden: bool) -> String {
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
    for list in tools.into_iter().flat_map(|tools| tools.offers().lists()) {
        let (count, form) = (list.count(), list.kind.form());
        let first = list.entries.first();
        let used = first.map(|entry| format!(", {}", entry.form(list.kind, &server.name)));
        let used = used.unwrap_or_default();
        text.push_str(&format!("\nAlso {count}: ({form} {{:server {name}}}){used}"));
        for entry in list.entries.iter().take(MOST_SHOWN) {
            text.push_str(&format!("\n  {}", entry.line()));
        }
        if list.entries.len() > MOST_SHOWN {
            text.push_str("\n  …");
        }
    }
    text
}

/// The documentation of one tool; `seen` is known of the results of a tool that does not declare them.
pub fn documentation(server: &str, tool: &UpstreamTool, seen: Option<&SeenResults>) -> String {
    let schema = &tool.input_schema;
    let mut text = format!("{server}/{}", shown_name(&tool.name));
    if let Some(title) = tool.title.as_deref().filter(|title| !title.is_empty() && *title != &*tool.name) {
        text.push_str(&format!(" ({})", one_line(title, SUMMARY)));
    }
    let described = Described::new(tool);
    let description = paragraph(&described.text, DESCRIPTION, "  ");
    if !description.is_empty() {
        text.push_str(&format!("\nDescription: {description}"));
    }
    let reference = Json::from(format!("{server}/{}", tool.name));
    let signature = typed(schema, schema);
    text.push_str(&format!("\n\nArgs: {}", signature.text));
    push_types(&mut text, &signature, &[], &reference);
    let variants = signature.variants();
    variants.allow(MOST_LOOKED_AT);
    let all = variants.alternatives(&[Constraint::Is(schema)]);
    let required: Vec<String> = merged(&all).filter(|row| row.required).map(|row| key(row.name)).collect();
    let required = if required.is_empty() { "none".to_owned() } else { required.join(" ") };
    text.push_str(&format!("\nRequired args: {required}"));
    let rows = explained(&signature, &all, &described.arguments);
    rows.iter().for_each(|row| text.push_str(&format!("\n  {row}")));
    let hints: Vec<&str> = hints(&tool.annotations).map(|hint| hint.label).collect();
    if !hints.is_empty() {
        text.push_str(&format!("\nHints: {}", hints.join(", ")));
    }
    text.push_str(&format!("\n\nCall:\n{}", call_form(server, tool)));
    let (result, shape) = result(tool.output_schema.as_ref(), tool.wraps_result_in());
    match seen {
        Some(SeenResults { times, size, shape }) => {
            let plural = if *times == 1 { "" } else { "s" };
            let size = size.as_ref().map(|size| format!(", {size}")).unwrap_or_default();
            text.push_str(&format!("\n\nReturns (seen {times} time{plural}{size}): {shape}"));
        }
        None => text.push_str(&format!("\n\nReturns: {result}")),
    }
    if let Some(shape) = shape {
        push_types(&mut text, &shape, &signature.types, &reference);
    }
    // Values of schemas are in it unescaped.
    visible(&text).into_owned()
}

/// Appends the types of a signature, without those that are `known`.
fn push_types(text: &mut String, signature: &Signature<'_>, known: &[(String, String)], reference: &Json) {
    for (name, definition) in signature.types.iter().filter(|row| !known.contains(row)) {
        text.push_str(&format!("\n  {name} = {definition}"));
    }
    if signature.is_cut {
        text.push_str(&format!("\n  … (meta {reference}) has the other types"));
    }
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

/// The descriptions of arguments: `:filter :since - not before this day`, `Filter :since - …` for a named type.
fn explained<'s>(
    signature: &Signature<'s>,
    all: &[Plain<'s>],
    more: &HashMap<String, String>,
) -> Vec<String> {
    let is_named = |all: &[Plain<'s>]| signature.is_named(all);
    let explanations = Explanations {
        variants: signature.variants(),
        is_named: &is_named,
        more,
        left: MOST_LOOKED_AT,
        rows: Vec::new(),
    };
    let row = |Explanation { of_type, path, about }: Explanation| {
        let names = of_type.into_iter().chain(path.iter().map(|name| key(name)));
        format!("{} - {}", names.collect::<Vec<_>>().join(" "), paragraph(&about, EXPLANATION, "    "))
    };
    explanations.rows(all, signature.definitions()).into_iter().map(row).collect()
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
             Returns: Result<{:items [string] :next string?}>"
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
        let seen = SeenResults { times: 2, size: Some("1 to 3 items".into()), shape: "[string]".into() };
        let text = documentation("s", &nested, Some(&seen));
        for line in [
            "s/t (The tool)",
            "  :filter - What to keep",
            "  :filter :since - not before",
            "  :rows :id - its number",
            "Returns (seen 2 times, 1 to 3 items): [string]",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }

    fn booking() -> UpstreamTool {
        tool(json!({"name": "book", "description":
            "Books a table, e.g. for two. Sends a mail.\n\n:param place: Where to eat.\n:param people: How many\n    come.\n\
             :type people: int\n:param note: Passed on to the cook, in any language.\n:return: The number of the booking.",
            "inputSchema": {"type": "object", "required": ["place"], "properties": {
                "place": {"type": "string", "description": "Where to eat."}, "people": {"type": "integer"},
                "note": {"type": "string", "description": "Anything."}}}}))
    }

    #[test]
    fn documentation_says_everything_once() {
        assert_eq!(
            documentation("table", &booking(), None),
            "table/book\n\
             Description: Books a table, e.g. for two. Sends a mail.\n  \
               :param note: Passed on to the cook, in any language.\n  \
               :return: The number of the booking.\n\
             \n\
             Args: {:place string :note string? :people integer?}\n\
             Required args: :place\n  \
               :place - Where to eat.\n  \
               :note - Anything.\n  \
               :people - How many come.\n\
             \n\
             Call:\n\
             (tool/call {:server \"table\" :tool \"book\" :args {:place \"...\"}})\n\
             \n\
             Returns: Result<any>"
        );
        let query = tool(json!({"name": "query", "inputSchema": {"type": "object", "properties": {
                "filter": {"$ref": "#/$defs/Filter"}, "other": {"$ref": "#/$defs/Filter"}},
                "$defs": {"Filter": {"type": "object", "properties": {
                    "all": {"type": "array", "items": {"$ref": "#/$defs/Filter"}, "description": "each of them"},
                    "field": {"type": "string", "description": "its name"}}}}}}));
        assert_eq!(
            documentation("db", &query, None),
            "db/query\n\
             \n\
             Args: {:filter Filter? :other Filter?}\n  \
               Filter = {:all [Filter]? :field string?}\n\
             Required args: none\n  \
               Filter :all - each of them\n  \
               Filter :field - its name\n\
             \n\
             Call:\n\
             (tool/call {:server \"db\" :tool \"query\" :args {}})\n\
             \n\
             Returns: Result<any>"
        );
    }

    #[test]
    fn a_line_has_arguments_and_the_first_sentence() {
        assert_eq!(
            tool_line("book", &booking()),
            "book {:place string :note string? :people integer?} - Books a table, e.g. for two"
        );
        assert_eq!(short_sentence("Reads v1.5 of it! Then more."), "Reads v1.5 of it!");
        assert_eq!(short_sentence("A\ntitle\n\nAnd text."), "A title");
        let long = short_sentence(&"word, ".repeat(40));
        assert!(long.ends_with("word...") && long.len() <= SUMMARY + 3, "{long}");
        assert_eq!(short_sentence(&"x".repeat(200)).len(), SUMMARY + 3);
    }

    #[test]
    fn long_descriptions_are_cut_on_one_line() {
        assert_eq!(one_line("  a\n b ", 10), "a b");
        assert_eq!(one_line("abc def", 4), "abc...");
        assert_eq!(summary("t", None), "t");
    }
}
