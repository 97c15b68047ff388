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
//! has members that are not shown. A type that contains itself, or that is used repeatedly, is written once, by
//! name: `{:filter Filter?} where Filter = {:and [Filter]? :field string?}`.

use super::alternative::{Constraint, Plain, PlainMember};
use super::facts::{LONGEST_FACT, enumeration, is_name, range, refused, union, within};
use super::types::{TypeId, TypeUses, whole_type};
use super::variants::{MOST_LOOKED_AT, Variants};
use crate::tools::schema::key;
use crate::tools::tool::is_text;
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::HashMap;

/// Depth limit; deeper values are shown by their type only.
const DEEPEST: usize = 8;

/// Size limit of a signature; a longer one is written with fewer levels.
const LONGEST: usize = 8_000;

/// Size limit of a line with a signature.
const LONGEST_LINE: usize = 2_000;

/// Size of a repeated type that is not named.
const SHORT_TYPE: usize = 40;

/// Limit of schemas that are examined for one line.
const MOST_FOR_LINE: usize = 4_000;

/// Limit of members of one map.
const MOST_MEMBERS: usize = 60;

/// How much a signature says.
#[derive(Clone, Copy, Debug)]
struct Detail {
    levels: usize,
    /// Optional members are written without content, constraints and defaults.
    is_brief: bool,
    /// Limit of optional members of one map.
    most_optional: usize,
}

const FULL: Detail = Detail { levels: DEEPEST, is_brief: false, most_optional: usize::MAX };

const fn brief(most_optional: usize) -> Detail {
    Detail { is_brief: true, most_optional, ..FULL }
}

/// Ways to write a signature on one line, each with the size at which it is used; the most precise first.
const LINES: [(usize, Detail); 7] = [
    (240, FULL),
    (400, brief(usize::MAX)),
    (400, brief(8)),
    (400, brief(4)),
    (LONGEST_LINE, brief(0)),
    (LONGEST_LINE, Detail { levels: 3, ..brief(0) }),
    (LONGEST_LINE, Detail { levels: 1, ..brief(0) }),
];

/// A signature with the types that it names.
pub(crate) struct Signature<'s> {
    pub(crate) text: String,
    /// Names and definitions, in the order of their first use.
    pub(crate) types: Vec<(String, String)>,
    /// True if further types are not shown.
    pub(crate) is_cut: bool,
    named: Vec<TypeId>,
    writer: SignatureWriter<'s>,
}

impl<'s> Signature<'s> {
    /// The signature with its types on one line.
    pub(crate) fn on_one_line(self) -> String {
        let types: Vec<String> = self.types.iter().map(|(name, text)| format!("{name} = {text}")).collect();
        if types.is_empty() { self.text } else { format!("{} where {}", self.text, types.join("; ")) }
    }

    /// The schemas behind the signature.
    pub(crate) fn variants(&self) -> &Variants<'s> {
        &self.writer.variants
    }

    /// The types that are shown: their names and alternatives.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (String, Vec<Plain<'s>>)> {
        let shown = self.types.iter().zip(&self.named);
        shown.map(|((name, _), id)| (name.clone(), self.writer.variants.definition(*id)))
    }

    /// True when the signature shows these alternatives by name.
    pub(crate) fn is_named(&self, all: &[Plain<'s>]) -> bool {
        all.iter().any(|plain| self.writer.type_of(plain, all).is_some())
    }
}

/// The signature of a schema; `root` is the document that contains it.
pub(crate) fn typed<'s>(root: &'s Json, schema: &'s Json) -> Signature<'s> {
    let mut writer = SignatureWriter::new(root, schema, MOST_LOOKED_AT);
    loop {
        let (text, types) = writer.write(MOST_LOOKED_AT);
        let is_used_up = writer.variants.is_used_up();
        let levels = writer.detail.levels;
        if levels == 1 || (text.len() <= LONGEST && !is_used_up) {
            return Signature::new(writer, text, types);
        }
        // If the budget of examined schemas is used up, the number of levels drops faster, to keep retries
        // few.
        writer.detail.levels = if is_used_up { levels / 2 } else { levels - 1 };
    }
}

/// The signature of a document on one line, with as much as there is room for: all required members, then
/// optional ones, then constraints and the content of optional ones.
pub(crate) fn compact(root: &Json) -> String {
    let mut writer = SignatureWriter::new(root, root, MOST_FOR_LINE);
    for (room, detail) in LINES {
        writer.detail = detail;
        let (text, types) = writer.write(MOST_FOR_LINE);
        let is_used_up = writer.variants.is_used_up();
        let names = types.iter().map(|(id, text)| writer.variants.types().name(*id).len() + text.len() + 8);
        if text == "any" {
            return "{* any}".to_owned();
        }
        if text.len() + names.sum::<usize>() <= room && (detail.levels == 1 || !is_used_up) {
            return Signature::new(writer, text, types).on_one_line();
        }
    }
    "{…}".to_owned()
}

impl<'s> Signature<'s> {
    /// The signature with as many types as there is room for.
    fn new(writer: SignatureWriter<'s>, text: String, types: Vec<(TypeId, String)>) -> Signature<'s> {
        let (mut size, all) = (text.len(), types.len());
        let fits = |(_, text): &(TypeId, String)| {
            size += text.len();
            size <= LONGEST
        };
        let shown: Vec<(TypeId, String)> = types.into_iter().take_while(fits).collect();
        let named = shown.iter().map(|(id, _)| *id).collect();
        let name = |id: TypeId| writer.variants.types().name(id).to_owned();
        let types: Vec<(String, String)> = shown.into_iter().map(|(id, text)| (name(id), text)).collect();
        Signature { text, is_cut: types.len() < all, types, named, writer }
    }
}

/// The signature of a call's result: `Result<{:rows [string] :next string?}>`. If the tool wraps its result
/// in a member, the signature is that of the content; a text that is JSON counts as data.
pub(crate) fn result<'s>(
    output_schema: Option<&'s Json>,
    wrapped_in: Option<&str>,
) -> (String, Option<Signature<'s>>) {
    let inner =
        output_schema.and_then(|schema| wrapped_in.and_then(|name| schema.get("properties")?.get(name)));
    let signature = output_schema.map(|schema| typed(schema, inner.unwrap_or(schema)));
    let said = signature.as_ref().map_or("any", |signature| &signature.text);
    let or_data = if inner.is_some_and(is_text) { ", or data where the text is JSON" } else { "" };
    (format!("Result<{said}{or_data}>"), signature)
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// Content, constraints and names of types are left out.
    is_brief: bool,
}

impl Place {
    const TOP: Place = Place { depth: 0, is_brief: false };

    fn inside(self) -> Place {
        Place { depth: self.depth + 1, ..self }
    }
}

struct SignatureWriter<'s> {
    variants: Variants<'s>,
    detail: Detail,
    /// The alternatives of the whole.
    main: Vec<Plain<'s>>,
    /// For types that are written by name: how many alternatives they have.
    named: HashMap<TypeId, usize>,
    /// The named types in the order of their first use.
    used: RefCell<Vec<TypeId>>,
}

impl<'s> SignatureWriter<'s> {
    /// Decides which types are named: those that contain themselves, and repeated ones that are not short.
    /// At most `budget` schemas are examined.
    fn new(root: &'s Json, schema: &'s Json, budget: usize) -> SignatureWriter<'s> {
        let variants = Variants::with_types(root);
        variants.allow(budget);
        let mut main = variants.alternatives(&[Constraint::Is(schema)]);
        let own = variants.types().id(schema);
        main.iter_mut().for_each(|plain| plain.types.retain(|id| Some(*id) != own));
        let uses = TypeUses::find(&variants, &main, own);
        let used = RefCell::new(Vec::new());
        let mut writer = SignatureWriter { variants, detail: FULL, main, named: uses.repeated, used };
        if writer.named.len() > uses.recursive.len() {
            let (_, types) = writer.write(budget);
            for (id, text) in types {
                if text.chars().count() <= SHORT_TYPE && !uses.recursive.contains(&id) {
                    writer.named.remove(&id);
                }
            }
        }
        writer
    }

    /// Writes the whole and the types that it names.
    fn write(&self, budget: usize) -> (String, Vec<(TypeId, String)>) {
        self.variants.allow(budget);
        self.used.borrow_mut().clear();
        let text = self.side_by_side(&self.main, Place::TOP);
        let mut types = Vec::new();
        let next = |at: usize| self.used.borrow().get(at).copied();
        while let Some(id) = next(types.len()) {
            types.push((id, self.side_by_side(&self.variants.definition(id), Place::TOP)));
        }
        (text, types)
    }

    fn type_of(&self, plain: &Plain<'s>, all: &[Plain<'s>]) -> Option<TypeId> {
        whole_type(&self.named, plain, all)
    }

    fn render(&self, demand: &[Constraint<'s>], place: Place) -> String {
        self.side_by_side(&self.variants.alternatives(demand), place)
    }

    fn side_by_side(&self, all: &[Plain<'s>], place: Place) -> String {
        if all.is_empty() {
            return "nothing".to_owned();
        }
        let types: Vec<Option<TypeId>> =
            all.iter().map(|plain| self.type_of(plain, all).filter(|_| !place.is_brief)).collect();
        if types.iter().all(Option::is_none)
            && let Some(map) = self.one_map(all, place)
        {
            return map;
        }
        union(all.iter().zip(types).map(|(plain, id)| match id {
            Some(id) => {
                let mut used = self.used.borrow_mut();
                if !used.contains(&id) {
                    used.push(id);
                }
                self.variants.types().name(id).to_owned()
            }
            None => self.plain(plain, place),
        }))
    }

    fn plain(&self, plain: &Plain<'s>, place: Place) -> String {
        if let Some(values) = &plain.values {
            return enumeration(values);
        }
        let kinds = plain.kinds();
        if kinds.is_empty() {
            return format!("any{}", within(&refused(plain, None)));
        }
        union(kinds.iter().map(|kind| self.kind(kind, plain, place)))
    }

    /// Alternatives that differ only in which members are required, as one map.
    fn one_map(&self, all: &[Plain<'s>], place: Place) -> Option<String> {
        let [first, others @ ..] = all else { return None };
        let is_map = |plain: &Plain<'_>| {
            plain.kinds() == ["object"]
                && plain.values.is_none()
                && plain.refused.is_empty()
                && !plain.leaves_out()
        };
        if others.is_empty() || self.is_deepest(place) || !all.iter().all(is_map) {
            return None;
        }
        let common: Vec<&str> = first
            .required()
            .iter()
            .filter(|name| others.iter().all(|other| other.requires(name)))
            .copied()
            .collect();
        let rows = |plain: &Plain<'s>| {
            let mut rows = self.rows(plain, &common, place);
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
        let map = self.object(first, &common, place);
        Some(if sets.iter().any(String::is_empty) {
            map
        } else {
            format!("{map}<{}>", union(sets.into_iter()))
        })
    }

    fn kind(&self, kind: &str, plain: &Plain<'s>, place: Place) -> String {
        let range = |least: &str, most: &str| range(plain, least, most);
        let mut facts = Vec::new();
        match kind {
            "object" | "array" if self.is_deepest(place) => return format!("{kind}…"),
            "object" if place.is_brief && plain.members().next().is_some() => return "object…".to_owned(),
            "object" => return self.object(plain, plain.required(), place),
            "array" => {
                let items = match plain.first_items {
                    Some(items) => {
                        let items: Vec<String> = items
                            .iter()
                            .map(|item| self.render(&[Constraint::Is(item)], place.inside()))
                            .collect();
                        items.join(", ")
                    }
                    None if plain.items.is_empty() => "any".to_owned(),
                    None => self.render(&plain.items, place.inside()),
                };
                facts.extend(range("minItems", "maxItems").filter(|_| !place.is_brief));
                return format!("[{items}]{}", within(&facts));
            }
            "string" => {
                // Some documents have a sentence instead of a format name.
                let format = plain.limit("format").and_then(Json::as_str).filter(|format| is_name(format));
                facts.extend(format.map(str::to_owned));
                if place.is_brief {
                    return format!("{kind}{}", within(&facts));
                }
                facts.extend(range("minLength", "maxLength"));
                let pattern =
                    plain.limit("pattern").filter(|pattern| pattern.is_string()).map(Json::to_string);
                facts.extend(pattern.filter(|pattern| pattern.len() <= LONGEST_FACT));
            }
            _ if place.is_brief => return kind.to_owned(),
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

    fn is_deepest(&self, place: Place) -> bool {
        place.depth >= self.detail.levels
    }

    /// The members of a map, each with its mark and its default.
    fn rows(&self, plain: &Plain<'s>, required: &[&str], place: Place) -> Vec<String> {
        let row = |(name, member): (&str, &PlainMember<'s>)| {
            let is_required = required.contains(&name);
            let is_brief = place.is_brief || (self.detail.is_brief && !is_required);
            let all = self.variants.alternatives(&member.demand);
            let default = all.iter().find_map(|plain| plain.default).filter(|value| !value.is_null());
            let default = default.map(Json::to_string).filter(|text| text.len() <= LONGEST_FACT && !is_brief);
            let default = default.map(|text| format!(" = {text}")).unwrap_or_default();
            let mark = if is_required { "" } else { "?" };
            let of = self.side_by_side(&all, Place { is_brief, ..place.inside() });
            format!("{} {of}{mark}{default}", key(name))
        };
        plain.members().take(self.most_members(plain)).map(row).collect()
    }

    /// Limit of the members of a map that are shown: required ones come first.
    fn most_members(&self, plain: &Plain<'s>) -> usize {
        plain.required().len().saturating_add(self.detail.most_optional).min(MOST_MEMBERS)
    }

    fn object(&self, plain: &Plain<'s>, required: &[&str], place: Place) -> String {
        let mut members = self.rows(plain, required, place);
        if plain.members().nth(members.len()).is_some() {
            members.push("…".to_owned());
        }
        if !plain.others.is_empty() {
            members.push(format!("* {}", self.render(&plain.others, place.inside())));
        } else if members.is_empty() && (plain.open || (!plain.closed && place.depth > 0)) {
            members.push("* any".to_owned());
        }
        let facts: Vec<String> = range(plain, "minProperties", "maxProperties").into_iter().collect();
        format!("{{{}}}{}", members.join(" "), within(&facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sign(schema: Json) -> String {
        typed(&schema, &schema).on_one_line()
    }

    fn result(schema: Option<&Json>, wrapped_in: Option<&str>) -> String {
        super::result(schema, wrapped_in).0
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
    fn types_that_contain_themselves_are_written_once() {
        let schema = json!({"type": "object", "required": ["base"], "properties": {
            "base": {"type": "string"},
            "where": {"anyOf": [{"$ref": "#/$defs/filter"}, {"type": "null"}]},
            "sort": {"type": "array", "items": {"$ref": "#/$defs/sort"}},
            "then": {"$ref": "#/$defs/sort", "description": "after that"},
            "first": {"$ref": "#/$defs/way"}, "second": {"$ref": "#/$defs/way"}},
            "$defs": {
                "way": {"enum": ["up", "down"]},
                "sort": {"type": "object", "required": ["field"], "properties": {
                    "field": {"type": "string", "minLength": 1}, "is_descending": {"type": "boolean"}}},
                "filter": {"oneOf": [{"$ref": "#/$defs/all"}, {"$ref": "#/$defs/leaf"}]},
                "all": {"type": "object", "required": ["all"], "properties": {
                    "all": {"type": "array", "items": {"$ref": "#/$defs/filter"}}}},
                "leaf": {"type": "object", "required": ["field", "value"], "properties": {
                    "field": {"type": "string"}, "value": {"type": ["string", "null"]}}}}});
        assert_eq!(
            sign(schema.clone()),
            "{:base string :first \"up\"|\"down\"? :second \"up\"|\"down\"? :sort [Sort]? :then Sort? \
             :where Filter|null?} where Sort = {:field string<1..> :is_descending boolean?}; \
             Filter = {:all [Filter]}|{:field string :value string|null}"
        );
        assert_eq!(
            compact(&schema),
            "{:base string :first \"up\"|\"down\"? :second \"up\"|\"down\"? :sort [Sort]? :then Sort? \
             :where Filter|null?} where Sort = {:field string<1..> :is_descending boolean?}; \
             Filter = {:all [Filter]}|{:field string :value string|null}"
        );
        // A library for schemas refers to the place where it wrote a schema first.
        let places = json!({"type": "object", "properties": {"node": {"type": "object", "properties": {
            "children": {"type": "array", "items": {"$ref": "#/properties/node"}}}}}});
        assert_eq!(sign(places), "{:node Node?} where Node = {:children [Node]?}");
        let root = json!({"type": "object", "properties": {"inner": {"$ref": "#"}}});
        assert_eq!(sign(root), "{:inner Type?} where Type = {:inner Type?}");
    }

    #[test]
    fn a_line_has_room_for_what_is_required() {
        let member =
            |n: usize| (format!("member_{n}"), json!({"type": "string", "maxLength": 5, "default": "x"}));
        let many: serde_json::Map<_, _> = (0..40).map(member).collect();
        let mut schema = json!({"type": "object", "required": ["member_0", "deep"], "properties": many});
        schema["properties"]["deep"] = json!({"type": "object", "required": ["n"], "properties": {
            "n": {"type": "integer", "minimum": 1}, "o": {"type": "object", "properties": {"p": {}}}}});
        let line = compact(&schema);
        assert!(
            line.starts_with(
                "{:member_0 string<..5> = \"x\" :deep {:n integer<1..> :o object…?} :member_1 string?"
            ),
            "{line}"
        );
        assert!(line.ends_with(" …}") && line.len() <= 400, "{line}");
    }

    #[test]
    fn results_are_what_is_in_them() {
        let wrapped =
            json!({"properties": {"result": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}});
        assert_eq!(result(Some(&wrapped), Some("result")), "Result<integer>");
        assert_eq!(result(None, None), "Result<any>");
        let text = json!({"properties": {"result": {"type": "string"}}});
        assert_eq!(result(Some(&text), Some("result")), "Result<string, or data where the text is JSON>");
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
