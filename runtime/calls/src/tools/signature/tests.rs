//! What signatures say of schemas of every shape.

use super::typed;
use super::typed::{LONGEST, compact, typed};
use serde_json::{Value as Json, json};

fn sign(schema: Json) -> String {
    typed(&schema, &schema).on_one_line()
}

fn result(schema: Option<&Json>, wrapped_in: Option<&str>) -> String {
    typed::result(schema, wrapped_in).0
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
    let all_of_many = many.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join("|");
    let first_of_long = format!("\"{}\"|…1 more", "a".repeat(300));
    for (schema, want) in [
        (json!({"enum": ["open", "closed"]}), "\"open\"|\"closed\""),
        (json!({"enum": [1, "a", null]}), "1|\"a\"|null"),
        (json!({"enum": many}), &*all_of_many),
        (json!({"enum": [0, 1, 2, 3, 4, 5, 6, "x", null]}), "0|1|2|3|4|5|6|\"x\"|null"),
        (json!({"enum": [null, "b", {"c": 1}]}), "\"b\"|const<{\"c\":1}>|null"),
        (json!({"enum": ["a".repeat(300), "b".repeat(300)]}), &*first_of_long),
        (json!({"enum": ["a".repeat(500), "b", null]}), "string…|null"),
        (json!({"const": "a".repeat(500)}), "string…"),
        (json!({"anyOf": [{"const": "off"}, {"const": "on"}, {"type": "null"}]}), "\"off\"|\"on\"|null"),
        (json!({"anyOf": [{"enum": ["off", "on"]}, {"type": "string"}]}), "\"off\"|\"on\"|string"),
        (json!({"type": "string", "pattern": "a".repeat(200), "minLength": 1}), "string<1..>…"),
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
        line.starts_with("{:member_0 string<..5> = \"x\" :deep {:n integer<1..> :o object…?} :member_1 string<..5>? = \"x\""),
        "{line}"
    );
    assert!(line.contains(" … (member_") && line.ends_with(" …)}") && line.len() <= 550, "{line}");
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
        let members: serde_json::Map<_, _> = (0..30).map(|n| (format!("member_{n}"), wide.clone())).collect();
        wide = json!({"type": "object", "properties": members});
    }
    assert!(sign(wide).len() <= LONGEST);
    let circle = json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
        "left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}}}}});
    assert!(sign(circle).len() <= LONGEST);
}
