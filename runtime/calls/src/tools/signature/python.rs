//! Writes the signature of a tool as that of a Python function, with type hints and defaults, for authors of scripts.

use super::alternative::{Constraint, Demand, Plain};
use super::arguments::{Argument, Explanations, MOST_LOOKED_AT, merged};
use super::detail::Content;
use super::facts::{is_name, range, within};
use super::type_uses::{TypeUses, whole_type};
use super::types::TypeId;
use super::variants::{MOST_LOOKED_AT as MOST_SCHEMAS, Variants};
use crate::tools::text::Described;
use crate::tools::tool::is_text;
use crate::tools::{UpstreamTool, visible::literal};
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::HashMap;

/// Depth limit; deeper values are shown by their type only.
const DEEPEST: usize = 6;

/// Limit of members of one dictionary.
const MOST_MEMBERS: usize = 60;

/// Limit of values that are written out.
const MOST_VALUES: usize = 40;

/// Size limit of the types that are shown.
const LONGEST: usize = 8_000;

/// What a function for a tool takes and gives.
#[derive(Clone, Debug, Default)]
pub struct PythonSignature {
    /// The parameters by name: their type, with the default as in `int = 10`, and `= None` for others that may be left
    /// out.
    pub parameters: HashMap<String, String>,
    /// Types that contain themselves or are used repeatedly: names and definitions.
    pub types: Vec<(String, String)>,
    /// The type of the result.
    pub returns: Option<String>,
    /// The description of the tool, without what it says of parameters.
    pub about: String,
    /// Descriptions of the parameters, and of what is in them: `filter["since"]`.
    pub explanations: Vec<(String, String)>,
}

impl PythonSignature {
    /// The signature of a tool.
    pub fn new(tool: &UpstreamTool) -> PythonSignature {
        let Described { text: about, arguments: more } = Described::new(tool);
        let schema = &tool.input_schema;
        let writer = PythonWriter::new(schema, schema);
        let parameters = merged(&writer.main).map(|Argument { name, demand, required }| {
            let all = writer.variants.alternatives(&demand);
            let default = all.iter().find_map(|plain| plain.default).filter(|value| !value.is_null());
            let default = default.map(python_literal).filter(|text| text.len() <= Content::Whole.fact_room());
            let of = writer.side_by_side(&all, 1);
            let text = match (required, default) {
                (_, Some(default)) => format!("{of} = {default}"),
                (true, None) => of,
                (false, None) => format!("{of} = None"),
            };
            (name.to_owned(), text)
        });
        let parameters = parameters.collect();
        let mut types = writer.types();
        let named = writer.used.borrow().clone();
        let definitions =
            named.into_iter().map(|id| (writer.name(id).to_owned(), writer.variants.definition(id)));
        let is_named = |all: &[Plain<'_>]| all.iter().any(|plain| writer.type_of(plain, all).is_some());
        writer.variants.allow(MOST_LOOKED_AT);
        let explanations = Explanations {
            variants: &writer.variants,
            is_named: &is_named,
            more: &more,
            left: MOST_LOOKED_AT,
            rows: Vec::new(),
        };
        let rows = explanations.rows(&writer.main, definitions).into_iter();
        let explanations = rows.map(|row| (place(row.of_type.as_deref(), &row.path), row.about)).collect();
        let returns = tool.output_schema.as_ref().map(|schema| {
            let inner = tool.wraps_result_in().and_then(|name| schema.get("properties")?.get(name));
            let writer = PythonWriter::new(schema, inner.unwrap_or(schema));
            let mut text = writer.side_by_side(&writer.main, 0);
            if inner.is_some_and(is_text) {
                text.push_str(", or data where the text is JSON");
            }
            types.extend(writer.types());
            text
        });
        types.dedup();
        PythonSignature { parameters, types, returns, about, explanations }
    }
}

/// Where a member stands: `filter["since"]`, `Filter["since"]`.
fn place(of_type: Option<&str>, path: &[String]) -> String {
    let (first, rest) = match of_type {
        Some(name) => (name, path),
        None => (path[0].as_str(), &path[1..]),
    };
    rest.iter().fold(first.to_owned(), |text, name| format!("{text}[{}]", literal(name)))
}

struct PythonWriter<'s> {
    variants: Variants<'s>,
    main: Vec<Plain<'s>>,
    named: HashMap<TypeId, usize>,
    used: RefCell<Vec<TypeId>>,
}

impl<'s> PythonWriter<'s> {
    fn new(root: &'s Json, schema: &'s Json) -> PythonWriter<'s> {
        let variants = Variants::with_types(root);
        let main = variants.alternatives(&[Constraint::Is(schema)]);
        let named = TypeUses::find(&variants, &main, variants.types.id(schema)).repeated;
        variants.allow(MOST_SCHEMAS);
        PythonWriter { variants, main, named, used: RefCell::default() }
    }

    fn name(&self, id: TypeId) -> &str {
        self.variants.types.name(id)
    }

    fn type_of(&self, plain: &Plain<'s>, all: &[Plain<'s>]) -> Option<TypeId> {
        whole_type(&self.named, plain, all)
    }

    /// The types that were used so far, and those that they use.
    fn types(&self) -> Vec<(String, String)> {
        let (mut types, mut size) = (Vec::new(), 0);
        let next = |at: usize| self.used.borrow().get(at).copied();
        while let Some(id) = next(types.len()).filter(|_| size < LONGEST) {
            let text = self.side_by_side(&self.variants.definition(id), 0);
            size += text.len();
            types.push((self.name(id).to_owned(), text));
        }
        types
    }

    fn render(&self, demand: &Demand<'s>, depth: usize) -> String {
        if demand.is_empty() {
            return "Any".to_owned();
        }
        self.side_by_side(&self.variants.alternatives(demand), depth)
    }

    fn side_by_side(&self, all: &[Plain<'s>], depth: usize) -> String {
        let texts = all.iter().map(|plain| match self.type_of(plain, all) {
            Some(id) => {
                let mut used = self.used.borrow_mut();
                if !used.contains(&id) {
                    used.push(id);
                }
                self.name(id).to_owned()
            }
            None => self.plain(plain, depth),
        });
        union(texts)
    }

    fn plain(&self, plain: &Plain<'s>, depth: usize) -> String {
        if let Some(values) = &plain.values
            && values.len() <= MOST_VALUES
        {
            let (nulls, values): (Vec<&Json>, Vec<&Json>) = values.iter().partition(|value| value.is_null());
            let listed = values.iter().map(|value| python_literal(value)).collect::<Vec<_>>().join(", ");
            let listed = Some(format!("Literal[{listed}]")).filter(|_| !values.is_empty());
            return union(listed.into_iter().chain(nulls.iter().map(|_| "None".to_owned())));
        }
        let kinds = plain.kinds();
        if kinds.is_empty() {
            "Any".to_owned()
        } else {
            union(kinds.iter().map(|kind| self.kind(kind, plain, depth)))
        }
    }

    fn kind(&self, kind: &str, plain: &Plain<'s>, depth: usize) -> String {
        match kind {
            "object" if depth < DEEPEST => self.dictionary(plain, depth),
            "object" => "dict".to_owned(),
            "array" if depth < DEEPEST => match plain.first_items {
                Some(items) => {
                    let item = |item| self.render(&vec![Constraint::Is(item)], depth + 1);
                    format!("tuple[{}]", items.iter().map(item).collect::<Vec<_>>().join(", "))
                }
                None => {
                    let facts: Vec<String> = range(plain, "minItems", "maxItems").into_iter().collect();
                    format!("list[{}]{}", self.render(&plain.items, depth + 1), within(&facts))
                }
            },
            "array" => "list".to_owned(),
            "string" => {
                let format = plain.limit("format").and_then(Json::as_str).filter(|format| is_name(format));
                let facts: Vec<String> = format
                    .map(str::to_owned)
                    .into_iter()
                    .chain(range(plain, "minLength", "maxLength"))
                    .collect();
                format!("str{}", within(&facts))
            }
            "integer" | "number" => {
                let facts: Vec<String> = range(plain, "minimum", "maximum").into_iter().collect();
                format!("{}{}", python_word(kind), within(&facts))
            }
            other => python_word(other).to_owned(),
        }
    }

    fn dictionary(&self, plain: &Plain<'s>, depth: usize) -> String {
        let mut members: Vec<String> = plain
            .members()
            .take(MOST_MEMBERS)
            .map(|(name, member)| {
                let mark = if plain.requires(name) { "" } else { "?" };
                format!("{}{mark}: {}", literal(name), self.render(&member.demand, depth + 1))
            })
            .collect();
        if members.is_empty() {
            let others = self.render(&plain.others, depth + 1);
            return if plain.closed { "{}".to_owned() } else { format!("dict[str, {others}]") };
        }
        if !plain.others.is_empty() || plain.members().nth(MOST_MEMBERS).is_some() {
            members.push("...".to_owned());
        }
        format!("{{{}}}", members.join(", "))
    }
}

/// Types, each once, None last.
fn union(texts: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for text in texts {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    // Stable: the others keep their order.
    seen.sort_by_key(|text| text == "None");
    if seen.is_empty() { "Never".to_owned() } else { seen.join(" | ") }
}

/// The type of Python for a type of JSON Schema.
pub(crate) fn python_word(kind: &str) -> &str {
    match kind {
        "string" => "str",
        "integer" => "int",
        "number" => "float",
        "boolean" => "bool",
        "null" => "None",
        "object" => "dict",
        "array" => "list",
        "any" => "Any",
        other => other,
    }
}

/// Words of Python that are no names.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The name of a parameter in Python: a keyword gets an underscore at its end, as `from_`.
pub fn python_name(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// JSON as Python writes it.
fn python_literal(value: &Json) -> String {
    match value {
        Json::Null => "None".to_owned(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        Json::Array(items) => {
            format!("[{}]", items.iter().map(python_literal).collect::<Vec<_>>().join(", "))
        }
        Json::Object(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{}: {}", literal(name), python_literal(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Json::String(text) => literal(text),
        Json::Number(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn signatures_are_in_the_notation_of_python() {
        let tool: UpstreamTool = serde_json::from_value(json!({"name": "query", "description": "Finds rows.",
            "inputSchema": {"type": "object", "required": ["table"], "properties": {
                "table": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "default": 10},
                "way": {"enum": ["up", "down", null]}, "tags": {"type": "array", "items": {"type": "string"}},
                "options": {"type": "object", "required": ["deep"], "properties": {
                    "deep": {"type": "boolean", "description": "All levels"}, "n": {"type": ["integer", "null"]}}},
                "env": {"type": "object", "additionalProperties": {"type": "string"}},
                "where": {"$ref": "#/$defs/filter"}},
                "$defs": {"filter": {"type": "object", "properties": {
                    "all": {"type": "array", "items": {"$ref": "#/$defs/filter"}, "description": "Each"}}}}},
            "outputSchema": {"type": "object", "properties": {"result": {"type": "array", "items":
                {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}}}}}))
        .unwrap();
        let signature = PythonSignature::new(&tool);
        for (name, want) in [
            ("table", "str"),
            ("limit", "int<1..> = 10"),
            ("way", "Literal[\"up\", \"down\"] | None = None"),
            ("tags", "list[str] = None"),
            ("options", "{\"deep\": bool, \"n\"?: int | None} = None"),
            ("env", "dict[str, str] = None"),
            ("where", "Filter = None"),
        ] {
            assert_eq!(signature.parameters[name], want, "{name}");
        }
        assert_eq!(signature.types, [("Filter".to_owned(), "{\"all\"?: list[Filter]}".to_owned())]);
        assert_eq!(signature.returns.as_deref(), Some("list[{\"id\": int}]"));
        let explained = [("options[\"deep\"]", "All levels"), ("Filter[\"all\"]", "Each")];
        assert_eq!(
            signature.explanations,
            explained.map(|(name, about)| (name.to_owned(), about.to_owned()))
        );
    }
}
