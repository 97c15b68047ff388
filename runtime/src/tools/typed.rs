//! JSON Schemas as typed signatures, enough to write a call that fits:
//!
//! ```text
//! {:path string :mode "text"|"base64"? = "text" :lines [integer<1..>]<..10>? :filter {:since string<date>?}?}
//! ```
//!
//! Required members come first, `?` marks the others, `= value` is a default. `<…>` says what a value has to keep beside
//! its type: bounds of a number, of the length of a text or list, a format, a pattern. `{* T}` is a map of any keys.

use super::schema::{Properties, alternatives, key, resolve, word};
use serde_json::Value as Json;
use std::cell::Cell;

/// Levels of a signature; what is deeper is named by its type only.
const DEEPEST: usize = 8;

/// Bytes of a signature. One that is longer is written with fewer levels.
const LONGEST: usize = 8_000;

/// Schemas that are looked at for one signature: references may lead to the same ones again and again.
const MOST_SCHEMAS: usize = 2_000;

/// Members of one map.
const MOST_MEMBERS: usize = 60;

/// Values of an enumeration.
const MOST_VALUES: usize = 60;

/// Bytes of a pattern or a default.
const LONGEST_FACT: usize = 120;

/// The signature of a schema; `root` is the document that it is in.
pub(crate) fn typed(root: &Json, schema: &Json) -> String {
    let mut text = String::new();
    for levels in (1..=DEEPEST).rev() {
        let writer = SignatureWriter { root, levels, left: Cell::new(MOST_SCHEMAS) };
        text = writer.of(schema, 0);
        if text.len() <= LONGEST && writer.left.get() > 0 {
            break;
        }
    }
    text
}

/// What a call gives: `Result<{:rows [string] :next string?}>`. Of a result that is wrapped in a member, what is in it;
/// `seen` is what a tool that does not say gave before.
pub(crate) fn result(output_schema: Option<&Json>, wrapped_in: Option<&str>, seen: Option<&str>) -> String {
    match (output_schema, seen) {
        (Some(schema), _) => {
            let inner = wrapped_in.and_then(|name| schema.get("properties")?.get(name));
            format!("Result<{}>", typed(schema, inner.unwrap_or(schema)))
        }
        (None, Some(seen)) => format!("Result<any>; it last gave {seen}"),
        (None, None) => "Result<any>".to_owned(),
    }
}

struct SignatureWriter<'s> {
    root: &'s Json,
    levels: usize,
    left: Cell<usize>,
}

impl<'s> SignatureWriter<'s> {
    fn of(&self, schema: &'s Json, depth: usize) -> String {
        let schema = resolve(self.root, schema);
        if let Some(fixed) = schema.get("const") {
            return fixed.to_string();
        }
        if let Some(values) = schema.get("enum").and_then(Json::as_array) {
            let listed = values.iter().filter(|value| !value.is_null() || values.len() == 1);
            let mut words: Vec<String> = listed.take(MOST_VALUES).map(Json::to_string).collect();
            if values.len() > MOST_VALUES {
                words.push("…".to_owned());
            }
            return words.join("|");
        }
        self.left.update(|left| left.saturating_sub(1));
        if depth >= self.levels || self.left.get() == 0 {
            return word(self.root, schema);
        }
        if let Some(choices) = alternatives(schema) {
            // Variants beside members say which of these belong together.
            let own = schema.get("properties").map(|_| self.object(schema, depth));
            let kinds = choices.iter().map(|choice| match own.is_some() && choice.get("type").is_none() {
                true => self.required(choice),
                false => self.of(choice, depth + 1),
            });
            let kinds = union(kinds);
            return match own {
                Some(own) if kinds.is_empty() => own,
                Some(own) => format!("{own}<{kinds}>"),
                None => kinds,
            };
        }
        match schema.get("type") {
            Some(Json::Array(kinds)) => {
                union(kinds.iter().filter_map(Json::as_str).map(|kind| self.kind(kind, schema, depth)))
            }
            Some(Json::String(kind)) => self.kind(kind, schema, depth),
            _ if schema.get("properties").is_some() => self.object(schema, depth),
            _ if schema.get("items").is_some() => self.kind("array", schema, depth),
            _ => word(self.root, schema),
        }
    }

    /// A variant that only names members which must be there.
    fn required(&self, choice: &Json) -> String {
        let names = choice.get("required").and_then(Json::as_array).into_iter().flatten();
        let names: Vec<String> = names.filter_map(Json::as_str).map(key).collect();
        if names.is_empty() { String::new() } else { format!("with {}", names.join(" ")) }
    }

    fn kind(&self, kind: &str, schema: &'s Json, depth: usize) -> String {
        match kind {
            "object" => self.object(schema, depth),
            "array" => {
                let items = match (schema.get("prefixItems").and_then(Json::as_array), schema.get("items")) {
                    (Some(items), _) => {
                        let items: Vec<String> = items.iter().map(|item| self.of(item, depth + 1)).collect();
                        items.join(", ")
                    }
                    (None, Some(items)) if items.is_object() => self.of(items, depth + 1),
                    _ => "any".to_owned(),
                };
                let facts: Vec<String> = range(schema, "minItems", "maxItems").into_iter().collect();
                format!("[{items}]{}", within(&facts))
            }
            "string" => {
                let mut facts = Vec::new();
                // Some documents have a sentence here.
                let format = schema.get("format").and_then(Json::as_str).filter(|format| is_name(format));
                facts.extend(format.map(str::to_owned));
                facts.extend(range(schema, "minLength", "maxLength"));
                let pattern =
                    schema.get("pattern").filter(|pattern| pattern.is_string()).map(Json::to_string);
                facts.extend(pattern.filter(|pattern| pattern.len() <= LONGEST_FACT));
                format!("string{}", within(&facts))
            }
            "integer" | "number" => {
                let mut facts: Vec<String> = range(schema, "minimum", "maximum").into_iter().collect();
                let limits =
                    [("exclusiveMinimum", "above"), ("exclusiveMaximum", "below"), ("multipleOf", "times")];
                for (name, word) in limits {
                    let limit = schema.get(name).filter(|limit| limit.is_number());
                    facts.extend(limit.map(|limit| format!("{word} {limit}")));
                }
                format!("{kind}{}", within(&facts))
            }
            other => other.to_owned(),
        }
    }

    fn object(&self, schema: &'s Json, depth: usize) -> String {
        let rows: Vec<_> = Properties::of(self.root, schema).collect();
        let mut members: Vec<String> = rows
            .iter()
            .take(MOST_MEMBERS)
            .map(|row| {
                let mark = if row.required { "" } else { "?" };
                let default =
                    resolve(self.root, row.schema).get("default").or_else(|| row.schema.get("default"));
                let default = default.filter(|value| !value.is_null()).map(Json::to_string);
                let default = default.filter(|text| text.len() <= LONGEST_FACT);
                let default = default.map(|text| format!(" = {text}")).unwrap_or_default();
                format!("{} {}{mark}{default}", key(row.name), self.of(row.schema, depth + 1))
            })
            .collect();
        if rows.len() > MOST_MEMBERS {
            members.push("…".to_owned());
        }
        match schema.get("additionalProperties") {
            Some(other @ Json::Object(_)) => members.push(format!("* {}", self.of(other, depth + 1))),
            Some(Json::Bool(true)) if members.is_empty() => members.push("* any".to_owned()),
            None if members.is_empty() && depth > 0 => members.push("* any".to_owned()),
            _ => {}
        }
        format!("{{{}}}", members.join(" "))
    }
}

fn within(facts: &[String]) -> String {
    if facts.is_empty() { String::new() } else { format!("<{}>", facts.join(", ")) }
}

/// `least..most`, either of which may be missing.
fn range(schema: &Json, least: &str, most: &str) -> Option<String> {
    let number = |name: &str| schema.get(name).filter(|limit| limit.is_number()).map(Json::to_string);
    // No text and no list is shorter.
    let least = number(least).filter(|limit| limit != "0" || least == "minimum");
    // What 64 bits can hold is said by the type.
    let most = number(most).filter(|limit| limit.len() < 16);
    (least.is_some() || most.is_some())
        .then(|| format!("{}..{}", least.unwrap_or_default(), most.unwrap_or_default()))
}

/// Alternatives, each once, without null beside others: nil is as good as left out.
fn union(kinds: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for kind in kinds {
        if !kind.is_empty() && !seen.contains(&kind) {
            seen.push(kind);
        }
    }
    if seen.len() > 1 {
        seen.retain(|kind| kind != "null");
    }
    seen.join("|")
}

/// A format that has a name, such as `date-time`.
fn is_name(format: &str) -> bool {
    const LONGEST: usize = 32;
    format.len() <= LONGEST && format.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sign(schema: Json) -> String {
        typed(&schema, &schema)
    }

    #[test]
    fn members_say_what_they_take() {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string", "minLength": 1},
            "mode": {"anyOf": [{"enum": ["text", "base64"]}, {"type": "null"}], "default": "text"},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 10},
            "since": {"type": ["string", "null"], "format": "date"},
            "filter": {"type": "object", "properties": {"deep": {"type": "object",
                "properties": {"odd key": {"type": "boolean", "default": false}}}}},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
            "ratio": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}}});
        assert_eq!(
            sign(schema),
            "{:path string<1..> :env {* string}? :filter {:deep {\"odd key\" boolean? = false}?}? \
             :lines [integer<1..>]<..10>? :mode \"text\"|\"base64\"? = \"text\" :ratio number<..1, above 0>? \
             :since string<date>?}"
        );
    }

    #[test]
    fn variants_stand_side_by_side() {
        let either = json!({"oneOf": [
            {"type": "object", "required": ["url"], "properties": {"type": {"const": "url"}, "url": {"type": "string", "format": "uri"}}},
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}]});
        assert_eq!(sign(either), "{:url string<uri> :type \"url\"?}|[string, integer]");
        let together = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
        assert_eq!(sign(together), "{:a string? :b string?}<with :a|with :b>");
    }

    #[test]
    fn results_are_what_is_in_them() {
        let wrapped =
            json!({"properties": {"result": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}});
        assert_eq!(result(Some(&wrapped), Some("result"), None), "Result<integer>");
        assert_eq!(result(None, None, None), "Result<any>");
        assert_eq!(result(None, None, Some("text")), "Result<any>; it last gave text");
    }

    #[test]
    fn what_is_too_much_is_written_with_fewer_levels() {
        let mut deep = json!({"type": "string"});
        for _ in 0..20 {
            deep = json!({"type": "array", "items": deep});
        }
        assert_eq!(sign(deep), "[[[[[[[[array]]]]]]]]");
        let mut wide = json!({"type": "string"});
        for _ in 0..3 {
            let members: serde_json::Map<_, _> =
                (0..30).map(|n| (format!("member_{n}"), wide.clone())).collect();
            wide = json!({"type": "object", "properties": members});
        }
        assert!(sign(wide).len() <= LONGEST);
        let circle = json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
            "left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}}}}});
        assert!(sign(circle).len() <= LONGEST);
    }
}
