//! Writes what a signature says of a value besides its type: allowed values, bounds, excluded values.

use super::alternative::Plain;
use crate::tools::schema::type_of;
use serde_json::Value as Json;

/// Limit of values of an enumeration that is written out.
const MOST_VALUES: usize = 8;

/// Length limit, in characters, of an enumeration that is written out.
const LONGEST_VALUES: usize = 120;

/// Size limit of a pattern or a default, in bytes.
pub(super) const LONGEST_FACT: usize = 120;

/// Allowed values: `const<"x">` for a single one, `"a"|"b"`, or their number and type.
pub(super) fn enumeration(values: &[&Json]) -> String {
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
pub(super) fn refused(plain: &Plain<'_>, kind: Option<&str>) -> Vec<String> {
    let is_of = |value: &&&Json| kind.is_none_or(|kind| kind == type_of(value));
    let values = plain.refused.iter().filter(is_of).map(|value| format!("not {value}"));
    let unlike = plain.unlike.iter().map(|schema| format!("unlike {schema}"));
    values.chain(unlike).filter(|fact| fact.len() <= LONGEST_FACT).collect()
}

pub(super) fn within(facts: &[String]) -> String {
    if facts.is_empty() { String::new() } else { format!("<{}>", facts.join(", ")) }
}

/// `least..most`; either may be missing.
pub(super) fn range(plain: &Plain<'_>, least: &str, most: &str) -> Option<String> {
    let number = |name: &str| plain.limit(name).filter(|limit| limit.is_number()).map(Json::to_string);
    // No text and no list is shorter than 0.
    let least = number(least).filter(|limit| limit != "0" || least == "minimum");
    // Limits near those of 64-bit integers are left out: the type implies them.
    let most = number(most).filter(|limit| limit.len() < 16);
    (least.is_some() || most.is_some())
        .then(|| format!("{}..{}", least.unwrap_or_default(), most.unwrap_or_default()))
}

/// Alternatives, each once, null last.
pub(super) fn union(kinds: impl Iterator<Item = String>) -> String {
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
pub(super) fn is_name(format: &str) -> bool {
    const LONGEST: usize = 32;
    format.len() <= LONGEST && format.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
}
