//! Turns JSON Schemas into typed signatures, which suffice to write a valid call:
//!
//! ```text
//! {:path string :mode "text"|"base64"? = "text" :lines [integer<1..>]<..10>? :filter {:since string<date>|null?}?}
//! ```
//!
//! Required members come first, `?` marks the others, `= value` is a default. `<…>` holds the constraints of
//! a value other than its type: bounds of a number, of the length of a text or list or of the number of
//! members, a format, a pattern, excluded values. A short enumeration is written out, a long one is
//! `enum<string, 12 values>`. A single allowed value is `const<"x">`. `null` as an alternative says that null
//! is allowed. `{* T}` is a map with any keys. Alternatives are separated by `|`. If they differ only in
//! their required members, these names follow the map: `{:a string? :b string?}<with :a|with :b>`. `object…`
//! has members that are not shown.

use super::alternative::{Constraint, Plain, PlainMember};
use super::variants::Variants;
use crate::tools::schema::{key, type_of};
use crate::tools::tool::is_text;
use serde_json::Value as Json;

/// Depth limit; deeper values are shown by their type only.
const DEEPEST: usize = 8;

/// Size limit of a signature; a longer one is written with fewer levels.
const LONGEST: usize = 8_000;

/// Limit of members of one map.
const MOST_MEMBERS: usize = 60;

/// Limit of values of an enumeration that is written out.
const MOST_VALUES: usize = 8;

/// Length limit, in characters, of an enumeration that is written out.
const LONGEST_VALUES: usize = 120;

/// Size limit of a pattern or a default, in bytes.
const LONGEST_FACT: usize = 120;

/// The signature of a schema; `root` is the document that contains it.
pub(crate) fn typed(root: &Json, schema: &Json) -> String {
    let mut levels = DEEPEST;
    loop {
        let writer = SignatureWriter { variants: Variants::new(root), levels };
        let text = writer.render(&[Constraint::Is(schema)], 0);
        let is_used_up = writer.variants.is_used_up();
        if levels == 1 || (text.len() <= LONGEST && !is_used_up) {
            return text;
        }
        // If the budget of examined schemas is used up, the number of levels drops faster, to keep retries
        // few.
        levels = if is_used_up { levels / 2 } else { levels - 1 };
    }
}

/// The signature of a call's result: `Result<{:rows [string] :next string?}>`. If the tool wraps its result
/// in a member, the signature is that of the content; a text that is JSON counts as data. `seen` is the
/// observed shape for a tool that declares none.
pub(crate) fn result(output_schema: Option<&Json>, wrapped_in: Option<&str>, seen: Option<&str>) -> String {
    let said = match output_schema {
        None => "any".to_owned(),
        Some(schema) => match wrapped_in.and_then(|name| schema.get("properties")?.get(name)) {
            Some(inner) if is_text(inner) => {
                format!("{}, or data where the text is JSON", typed(schema, inner))
            }
            inner => typed(schema, inner.unwrap_or(schema)),
        },
    };
    let seen = seen.map(|seen| format!("; it last gave {seen}")).unwrap_or_default();
    format!("Result<{said}>{seen}")
}

struct SignatureWriter<'s> {
    variants: Variants<'s>,
    levels: usize,
}

impl<'s> SignatureWriter<'s> {
    fn render(&self, demand: &[Constraint<'s>], depth: usize) -> String {
        self.side_by_side(&self.variants.alternatives(demand), depth)
    }

    fn side_by_side(&self, all: &[Plain<'s>], depth: usize) -> String {
        if all.is_empty() {
            return "nothing".to_owned();
        }
        self.one_map(all, depth).unwrap_or_else(|| union(all.iter().map(|plain| self.plain(plain, depth))))
    }

    fn plain(&self, plain: &Plain<'s>, depth: usize) -> String {
        if let Some(values) = &plain.values {
            return enumeration(values);
        }
        let kinds = plain.kinds();
        if kinds.is_empty() {
            return format!("any{}", within(&refused(plain, None)));
        }
        union(kinds.iter().map(|kind| self.kind(kind, plain, depth)))
    }

    /// Alternatives that differ only in which members are required, as one map.
    fn one_map(&self, all: &[Plain<'s>], depth: usize) -> Option<String> {
        let [first, others @ ..] = all else { return None };
        let is_map = |plain: &Plain<'_>| {
            plain.kinds() == ["object"]
                && plain.values.is_none()
                && plain.refused.is_empty()
                && !plain.leaves_out()
        };
        if others.is_empty() || depth >= self.levels || !all.iter().all(is_map) {
            return None;
        }
        let common: Vec<&str> = first
            .required()
            .iter()
            .filter(|name| others.iter().all(|other| other.requires(name)))
            .copied()
            .collect();
        let rows = |plain: &Plain<'s>| {
            let mut rows = self.rows(plain, &common, depth);
            rows.sort_unstable();
            rows
        };
        let told = rows(first);
        if others.iter().any(|other| rows(other) != told || other.closed != first.closed) {
            return None;
        }
        let sets: Vec<String> = all
            .iter()
            .map(|plain| {
                let more: Vec<String> = plain
                    .required()
                    .iter()
                    .filter(|name| !others.iter().chain([first]).all(|other| other.requires(name)))
                    .map(|name| key(name))
                    .collect();
                if more.is_empty() { String::new() } else { format!("with {}", more.join(" ")) }
            })
            .collect();
        let map = self.object(first, &common, depth);
        Some(if sets.iter().any(String::is_empty) {
            map
        } else {
            format!("{map}<{}>", union(sets.into_iter()))
        })
    }

    fn kind(&self, kind: &str, plain: &Plain<'s>, depth: usize) -> String {
        let range = |least: &str, most: &str| range(plain, least, most);
        let mut facts = Vec::new();
        match kind {
            "object" | "array" if depth >= self.levels => return format!("{kind}…"),
            "object" => return self.object(plain, plain.required(), depth),
            "array" => {
                let items = match plain.first_items {
                    Some(items) => {
                        let items: Vec<String> = items
                            .iter()
                            .map(|item| self.render(&[Constraint::Is(item)], depth + 1))
                            .collect();
                        items.join(", ")
                    }
                    None if plain.items.is_empty() => "any".to_owned(),
                    None => self.render(&plain.items, depth + 1),
                };
                facts.extend(range("minItems", "maxItems"));
                return format!("[{items}]{}", within(&facts));
            }
            "string" => {
                // Some documents have a sentence instead of a format name.
                let format = plain.limit("format").and_then(Json::as_str).filter(|format| is_name(format));
                facts.extend(format.map(str::to_owned));
                facts.extend(range("minLength", "maxLength"));
                let pattern =
                    plain.limit("pattern").filter(|pattern| pattern.is_string()).map(Json::to_string);
                facts.extend(pattern.filter(|pattern| pattern.len() <= LONGEST_FACT));
            }
            "integer" | "number" => {
                facts.extend(range("minimum", "maximum"));
                let limits =
                    [("exclusiveMinimum", "above"), ("exclusiveMaximum", "below"), ("multipleOf", "times")];
                for (name, word) in limits {
                    let limit = plain.limit(name).filter(|limit| limit.is_number());
                    facts.extend(limit.map(|limit| format!("{word} {limit}")));
                }
            }
            _ => {}
        }
        facts.extend(refused(plain, Some(kind)));
        format!("{kind}{}", within(&facts))
    }

    /// The members of a map, each with its mark and its default.
    fn rows(&self, plain: &Plain<'s>, required: &[&str], depth: usize) -> Vec<String> {
        let row = |(name, member): (&str, &PlainMember<'s>)| {
            let mark = if required.contains(&name) { "" } else { "?" };
            let all = self.variants.alternatives(&member.demand);
            let default = all.iter().find_map(|plain| plain.default).filter(|value| !value.is_null());
            let default = default.map(Json::to_string).filter(|text| text.len() <= LONGEST_FACT);
            let default = default.map(|text| format!(" = {text}")).unwrap_or_default();
            format!("{} {}{mark}{default}", key(name), self.side_by_side(&all, depth + 1))
        };
        plain.members().take(MOST_MEMBERS).map(row).collect()
    }

    fn object(&self, plain: &Plain<'s>, required: &[&str], depth: usize) -> String {
        let mut members = self.rows(plain, required, depth);
        if plain.members().nth(MOST_MEMBERS).is_some() {
            members.push("…".to_owned());
        }
        if !plain.others.is_empty() {
            members.push(format!("* {}", self.render(&plain.others, depth + 1)));
        } else if members.is_empty() && (plain.open || (!plain.closed && depth > 0)) {
            members.push("* any".to_owned());
        }
        let facts: Vec<String> = range(plain, "minProperties", "maxProperties").into_iter().collect();
        format!("{{{}}}{}", members.join(" "), within(&facts))
    }
}

/// Allowed values: `const<"x">` for a single one, `"a"|"b"`, or their number and type.
fn enumeration(values: &[&Json]) -> String {
    if let [only] = values {
        return match only.to_string() {
            text if text.len() <= LONGEST_FACT => format!("const<{text}>"),
            _ => format!("const<{}…>", type_of(only)),
        };
    }
    if values.len() <= MOST_VALUES {
        let listed = values.iter().map(|value| value.to_string()).collect::<Vec<_>>().join("|");
        if listed.chars().count() <= LONGEST_VALUES {
            return listed;
        }
    }
    let (nulls, others): (Vec<&Json>, Vec<&Json>) = values.iter().partition(|value| value.is_null());
    let mut kinds: Vec<&str> = others.iter().map(|value| type_of(value)).collect();
    kinds.dedup();
    let count = others.len();
    let listed = match kinds[..] {
        [kind] => format!("enum<{kind}, {count} values>"),
        _ => format!("enum<{count} values>"),
    };
    if nulls.is_empty() { listed } else { format!("{listed}|null") }
}

/// The excluded values of this type.
fn refused(plain: &Plain<'_>, kind: Option<&str>) -> Vec<String> {
    let is_of = |value: &&&Json| kind.is_none_or(|kind| kind == type_of(value));
    let values = plain.refused.iter().filter(is_of).map(|value| format!("not {value}"));
    let unlike = plain.unlike.iter().map(|schema| format!("unlike {schema}"));
    values.chain(unlike).filter(|fact| fact.len() <= LONGEST_FACT).collect()
}

fn within(facts: &[String]) -> String {
    if facts.is_empty() { String::new() } else { format!("<{}>", facts.join(", ")) }
}

/// `least..most`; either may be missing.
fn range(plain: &Plain<'_>, least: &str, most: &str) -> Option<String> {
    let number = |name: &str| plain.limit(name).filter(|limit| limit.is_number()).map(Json::to_string);
    // No text and no list is shorter than 0.
    let least = number(least).filter(|limit| limit != "0" || least == "minimum");
    // Limits near those of 64-bit integers are left out: the type implies them.
    let most = number(most).filter(|limit| limit.len() < 16);
    (least.is_some() || most.is_some())
        .then(|| format!("{}..{}", least.unwrap_or_default(), most.unwrap_or_default()))
}

/// Alternatives, each once, null last.
fn union(kinds: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for kind in kinds {
        if !kind.is_empty() && !seen.contains(&kind) {
            seen.push(kind);
        }
    }
    // Stable: the others keep their order.
    seen.sort_by_key(|kind| kind == "null");
    seen.join("|")
}

/// True for a format that is a name, such as `date-time`.
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
             :lines [integer<1..>]<..10>? :mode \"text\"|\"base64\"|null? = \"text\" :ratio number<..1, above 0>? \
             :since string<date>|null?}"
        );
    }

    #[test]
    fn no_form_has_two_meanings() {
        let many: Vec<String> = (0..12).map(|n| format!("v{n}")).collect();
        let long: Vec<String> = ["a", "b"].map(|text| text.repeat(70)).to_vec();
        for (schema, want) in [
            (json!({"enum": ["open", "closed"]}), "\"open\"|\"closed\""),
            (json!({"enum": [1, "a", null]}), "1|\"a\"|null"),
            (json!({"enum": many}), "enum<string, 12 values>"),
            (json!({"enum": long}), "enum<string, 2 values>"),
            (json!({"enum": [0, 1, 2, 3, 4, 5, 6, "x", null]}), "enum<8 values>|null"),
            (json!({"const": "fixed"}), "const<\"fixed\">"),
            (json!({"const": false}), "const<false>"),
            (json!({"const": null}), "const<null>"),
            (json!({"const": 0}), "const<0>"),
            (json!({"type": "null"}), "null"),
            (json!({"type": ["null", "string"]}), "string|null"),
            (json!({"anyOf": [{"type": "null"}, {"const": "x"}]}), "const<\"x\">|null"),
        ] {
            assert_eq!(sign(schema.clone()), want, "{schema}");
        }
    }

    #[test]
    fn variants_stand_side_by_side() {
        let either = json!({"oneOf": [
            {"type": "object", "required": ["url"], "properties": {"type": {"const": "url"}, "url": {"type": "string", "format": "uri"}}},
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}]});
        assert_eq!(sign(either), "{:url string<uri> :type const<\"url\">?}|[string, integer]");
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
        let text = json!({"properties": {"result": {"type": "string"}}});
        assert_eq!(
            result(Some(&text), Some("result"), Some("[integer]")),
            "Result<string, or data where the text is JSON>; it last gave [integer]"
        );
    }

    #[test]
    fn what_is_too_much_is_written_with_fewer_levels() {
        let mut deep = json!({"type": "string"});
        for _ in 0..20 {
            deep = json!({"type": "array", "items": deep});
        }
        assert_eq!(sign(deep), "[[[[[[[[array…]]]]]]]]");
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
