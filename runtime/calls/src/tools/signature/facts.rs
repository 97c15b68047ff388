//! Writes the constraints of a value in a tool's signature, next to its type: allowed values, bounds, excluded values.

use super::alternative::Plain;
use super::detail::Content;
use crate::schema::type_of;
use serde_json::Value as Json;

/// Constraints of a value.
#[derive(Default)]
pub(super) struct Facts {
    written: Vec<String>,
    /// Some are left out.
    is_cut: bool,
}

impl Facts {
    pub(super) fn push(&mut self, fact: impl Into<Option<String>>) {
        self.written.extend(fact.into());
    }

    /// Adds a constraint if it is short enough.
    pub(super) fn push_short(&mut self, fact: impl Into<Option<String>>, content: Content) {
        if let Some(fact) = fact.into() {
            if fact.len() <= content.fact_room() {
                self.written.push(fact);
            } else {
                self.is_cut = true;
            }
        }
    }

    /// Marks that a constraint is left out.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty() && !self.is_cut
    }

    /// A type with these constraints.
    pub(super) fn after(&self, kind: &str) -> String {
        format!("{kind}{}{}", within(&self.written), if self.is_cut { "…" } else { "" })
    }
}

/// Allowed values: `const<"x">` for a single one, `"a"|"b"`, or the first ones and the number of the others:
/// `"a"|"b"|…14 more`. Null comes last.
pub(super) fn enumeration(values: &[&Json], content: Content) -> String {
    if let [only] = values {
        return match constant(only) {
            text if text.len() <= Content::Whole.fact_room() => text,
            _ => format!("{}…", type_of(only)),
        };
    }
    let (nulls, others): (Vec<&Json>, Vec<&Json>) = values.iter().partition(|value| value.is_null());
    let texts: Vec<String> = others.iter().map(|value| literal(value)).collect();
    let size = |texts: &[String]| texts.iter().map(|text| text.chars().count() + 1).sum::<usize>();
    let room = content.values_room();
    let shown = if size(&texts) <= room + 1 {
        texts.len()
    } else {
        // The number of the others needs room, too.
        (1..=texts.len()).take_while(|count| size(&texts[..*count]) + 10 <= room).last().unwrap_or(0)
    };
    let mut parts = texts[..shown].to_vec();
    match texts.len() - shown {
        0 => {}
        left if shown > 0 => parts.push(format!("…{left} more")),
        _ => {
            let mut kinds: Vec<&str> = others.iter().map(|value| type_of(value)).collect();
            kinds.dedup();
            parts.push(format!("{}…", if let [kind] = kinds[..] { kind } else { "any" }));
        }
    }
    parts.extend((!nulls.is_empty()).then(|| "null".to_owned()));
    parts.join("|")
}

fn constant(value: &Json) -> String {
    format!("const<{value}>")
}

/// A value among others. Maps and lists are marked as values, because types are written with the same brackets.
fn literal(value: &Json) -> String {
    if value.is_object() || value.is_array() { constant(value) } else { value.to_string() }
}

/// The excluded values of this type.
pub(super) fn refused(plain: &Plain<'_>, kind: Option<&str>) -> impl Iterator<Item = String> {
    let is_of = move |value: &&&Json| kind.is_none_or(|kind| kind == type_of(value));
    let values = plain.refused.iter().filter(is_of).map(|value| format!("not {value}"));
    let unlike = plain.unlike.iter().map(|schema| format!("unlike {schema}"));
    values.chain(unlike)
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
