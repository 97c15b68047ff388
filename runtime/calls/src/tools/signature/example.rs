//! Builds example arguments of a tool: as few as it accepts, each with a value that matches its schema.

use super::alternative::{Constraint, Demand, Plain};
use super::variants::Variants;
use crate::tools::key::key;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value as Json;

/// Depth limit.
const DEEPEST: usize = 8;

/// Limits of items in a list, and of characters in a text.
const MOST_ITEMS: usize = 16;
const MOST_CHARACTERS: usize = 256;

/// Placeholder text, to be edited.
const TEXT: &str = "...";

/// Texts by their format.
const FORMATS: [(&str, &str); 10] = [
    ("date-time", "2026-01-31T12:00:00Z"),
    ("date", "2026-01-31"),
    ("time", "12:00:00Z"),
    ("duration", "P1D"),
    ("email", "name@example.com"),
    ("uri", "https://example.com/"),
    ("url", "https://example.com/"),
    ("uuid", "00000000-0000-4000-8000-000000000000"),
    ("hostname", "example.com"),
    ("ipv4", "192.0.2.1"),
];

/// Arguments that match this schema, as far as possible: the required ones.
pub(crate) fn arguments(schema: &Json) -> String {
    let examples = Examples { variants: Variants::new(schema) };
    let all = examples.variants.alternatives(&[Constraint::Is(schema)]);
    let fewest = all.into_iter().min_by_key(|plain| plain.required().len()).unwrap_or_default();
    examples.object(&fewest, 0)
}

struct Examples<'s> {
    variants: Variants<'s>,
}

impl<'s> Examples<'s> {
    /// Required members, and others while it needs more.
    fn object(&self, plain: &Plain<'s>, depth: usize) -> String {
        let least = plain.limit("minProperties").and_then(Json::as_u64).map_or(0, small);
        let required = plain.required().len();
        let entries: Vec<String> = plain
            .members()
            .take(required.max(least))
            .map(|(name, member)| format!("{} {}", key(name), self.value(&member.demand, depth + 1)))
            .collect();
        format!("{{{}}}", entries.join(" "))
    }

    /// A value that matches.
    fn value(&self, demand: &Demand<'s>, depth: usize) -> String {
        let all = self.variants.alternatives(demand);
        let Some(plain) = all.first().filter(|_| depth <= DEEPEST) else { return "nil".to_owned() };
        if let Some(value) = plain.values.as_ref().and_then(|values| values.first()) {
            return literal(value);
        }
        let kinds = plain.kinds();
        let default = all
            .iter()
            .find_map(|plain| plain.default)
            .filter(|value| !value.is_object() && !value.is_array());
        if let Some(value) = default.filter(|value| !plain.refused.contains(value)) {
            return literal(value);
        }
        let kind = kinds.iter().find(|kind| **kind != "null").or(kinds.first());
        match kind.copied().unwrap_or("string") {
            "integer" => number(plain, true),
            "number" => number(plain, false),
            "boolean" => (!plain.refused.contains(&&Json::Bool(true))).to_string(),
            "null" => "nil".to_owned(),
            "object" => self.object(plain, depth),
            "array" => self.list(plain, depth),
            _ => Json::from(text(plain)).to_string(),
        }
    }

    fn list(&self, plain: &Plain<'s>, depth: usize) -> String {
        let least = plain.limit("minItems").and_then(Json::as_u64).map_or(0, small);
        let item = |at: usize| match plain.first_items.and_then(|items| items.get(at)) {
            Some(first) => self.value(&vec![Constraint::Is(first)], depth + 1),
            None => self.value(&plain.items, depth + 1),
        };
        let items: Vec<String> = (0..least).map(item).collect();
        format!("[{}]", items.join(" "))
    }
}

/// A number of items that is small enough to show.
fn small(number: u64) -> usize {
    usize::try_from(number).map_or(MOST_ITEMS, |number| number.min(MOST_ITEMS))
}

/// JSON as a program writes it.
fn literal(value: &Json) -> String {
    match value {
        Json::Null => "nil".to_owned(),
        Json::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(" ")),
        Json::Object(entries) => {
            let entries = entries.iter().map(|(name, value)| format!("{} {}", key(name), literal(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

/// The least number that matches, or the usual one.
fn number(plain: &Plain<'_>, is_whole: bool) -> String {
    let limit = |name: &str| plain.limit(name).and_then(Json::as_f64);
    let step = limit("multipleOf").filter(|step| *step > 0.0);
    let above = limit("exclusiveMinimum");
    let below = limit("exclusiveMaximum");
    let least = limit("minimum").into_iter().chain(above.map(|above| above + 1.0)).reduce(f64::max);
    let most = limit("maximum").into_iter().chain(below.map(|below| below - 1.0)).reduce(f64::min);
    let mut number = match (least, most) {
        (None, None) if step.is_none() && plain.refused.is_empty() => {
            return if is_whole { "1".to_owned() } else { "1.0".to_owned() };
        }
        // The bounds leave no whole number: the example lies between them.
        (Some(least), Some(most)) if least > most && !is_whole => match (above, below) {
            (Some(above), Some(below)) => f64::midpoint(above, below),
            (Some(_), None) => most,
            (None, _) => least,
        },
        (Some(least), _) => least,
        (None, Some(most)) => most.min(1.0),
        (None, None) => 1.0,
    };
    if is_whole {
        number = number.ceil();
    }
    let round = |number: f64| step.map_or(number, |step| (number / step).ceil() * step);
    number = round(number);
    let is_refused = |number: f64| plain.refused.iter().any(|value| value.as_f64() == Some(number));
    for _ in 0..MOST_ITEMS {
        if is_refused(number) {
            number = round(number + step.unwrap_or(1.0));
        }
    }
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT { format!("{number:.0}") } else { format!("{number:?}") }
}

/// A text that matches its format, its pattern or its length.
fn text(plain: &Plain<'_>) -> String {
    let word = |name: &str| plain.limit(name).and_then(Json::as_str);
    let format = word("format").and_then(|format| FORMATS.iter().find(|(name, _)| *name == format));
    let known = format.map(|(_, text)| (*text).to_owned());
    if let Some(text) = known.or_else(|| like(word("pattern")?)) {
        return text;
    }
    let is_refused = |text: &str| plain.refused.iter().any(|value| value.as_str() == Some(text));
    let mut text =
        [TEXT, "text", "other"].into_iter().find(|text| !is_refused(text)).unwrap_or(TEXT).to_owned();
    let length =
        |name: &str| plain.limit(name).and_then(Json::as_u64).and_then(|length| usize::try_from(length).ok());
    if let Some(least) = length("minLength").filter(|least| *least <= MOST_CHARACTERS) {
        text.push_str(&".".repeat(least.saturating_sub(text.len())));
    }
    if let Some(most) = length("maxLength") {
        text.truncate(most);
    }
    text
}

/// A short text that a pattern matches; `None` for a pattern with unsupported syntax.
fn like(pattern: &str) -> Option<String> {
    let pattern = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    fill(&pattern, &mut text).then_some(text)
}

/// Appends a matching text; false when it would be too long or does not exist. The parser bounds the depth.
fn fill(pattern: &Hir, text: &mut String) -> bool {
    if text.len() > MOST_CHARACTERS {
        return false;
    }
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            std::str::from_utf8(&literal.0).map(|literal| text.push_str(literal)).is_ok()
        }
        HirKind::Class(class) => character(class).map(|character| text.push(character)).is_some(),
        HirKind::Repetition(times) => (0..times.min).all(|_| fill(&times.sub, text)),
        HirKind::Capture(capture) => fill(&capture.sub, text),
        HirKind::Concat(parts) => parts.iter().all(|part| fill(part, text)),
        HirKind::Alternation(choices) => choices.first().is_some_and(|choice| fill(choice, text)),
    }
}

fn character(class: &Class) -> Option<char> {
    const USUAL: [char; 4] = ['a', 'A', '1', ' '];
    match class {
        Class::Unicode(class) => {
            let has = |wanted: &char| {
                class.ranges().iter().any(|range| (range.start()..=range.end()).contains(wanted))
            };
            USUAL.into_iter().find(has).or_else(|| class.ranges().first().map(|range| range.start()))
        }
        Class::Bytes(class) => class.ranges().first().map(|range| char::from(range.start())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_fit_their_schemas() {
        let schema = json!({"required": ["a", "b", "c", "d", "e", "f", "g"], "properties": {
            "a": {"const": "x"}, "b": {"enum": [3, 4]}, "c": {"type": "number", "minimum": 5},
            "d": {"type": "array", "minItems": 1, "items": {"type": "boolean"}},
            "e": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
            "f": {"anyOf": [{"type": "null"}, {"type": "string"}]}, "g": {"type": ["null", "string"]}}});
        assert_eq!(arguments(&schema), "{:a \"x\" :b 3 :c 5 :d [true] :e {:n 1} :f nil :g \"...\"}");
        let optional = json!({"properties": {"b": {}, "a": {}}});
        assert_eq!(arguments(&optional), "{}");
        let patterns = json!({"required": ["a", "b", "c"], "properties": {
            "a": {"pattern": "^[A-Z]{2}-\\d+(x|y)$"}, "b": {"type": "string", "format": "date"},
            "c": {"type": "integer", "exclusiveMinimum": 2, "multipleOf": 5, "not": {"const": 5}}}});
        assert_eq!(arguments(&patterns), "{:a \"AA-1x\" :b \"2026-01-31\" :c 10}");
    }
}
