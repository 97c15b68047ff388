//! Finds the subschemas that the references (`$ref`) of a JSON Schema lead to, and gives each a unique type name for
//! signatures.

use serde_json::Value as Json;
use std::collections::HashMap;

/// Limit of named schemas in a document.
const MOST: usize = 500;

/// Limit of values that are searched for references.
const MOST_SEARCHED: usize = 200_000;

/// Length limit of a name, in bytes.
const LONGEST: usize = 40;

/// Parts of a pointer that say where a schema stands, not what it describes.
const STRUCTURE: [&str; 12] = [
    "$defs",
    "definitions",
    "properties",
    "patternProperties",
    "additionalProperties",
    "items",
    "prefixItems",
    "allOf",
    "anyOf",
    "oneOf",
    "components",
    "schemas",
];

/// Index of a named schema.
pub(crate) type TypeId = usize;

/// The schemas of a document that references lead to.
#[derive(Debug, Default)]
pub(crate) struct NamedTypes<'s> {
    /// By address: a reference and the place that it points to are the same type.
    ids: HashMap<*const Json, TypeId>,
    schemas: Vec<&'s Json>,
    names: Vec<String>,
}

impl<'s> NamedTypes<'s> {
    /// Finds the references of a document. The names are unique.
    pub(crate) fn find(root: &'s Json) -> NamedTypes<'s> {
        let mut types = NamedTypes::default();
        let mut open = vec![root];
        let mut left = MOST_SEARCHED;
        while let Some(value) = open.pop() {
            left -= 1;
            if left == 0 || types.schemas.len() == MOST {
                break;
            }
            match value {
                Json::Object(members) => {
                    let pointer = members.get("$ref").and_then(Json::as_str);
                    if let Some(pointer) = pointer.and_then(|reference| reference.strip_prefix('#'))
                        && let Some(target) = root.pointer(pointer)
                    {
                        types.add(pointer, target);
                    }
                    // The last one that is pushed is examined first.
                    open.extend(members.values().rev());
                }
                Json::Array(items) => open.extend(items.iter().rev()),
                _ => {}
            }
        }
        types
    }

    fn add(&mut self, pointer: &str, target: &'s Json) {
        if !target.is_object() || self.ids.contains_key(&std::ptr::from_ref(target)) {
            return;
        }
        let name = name(pointer);
        let is_taken = |name: &String| self.names.contains(name);
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name));
        self.ids.insert(std::ptr::from_ref(target), self.schemas.len());
        self.schemas.push(target);
        self.names.extend(name);
    }

    /// The type that a schema is.
    pub(crate) fn id(&self, schema: &Json) -> Option<TypeId> {
        if self.ids.is_empty() { None } else { self.ids.get(&std::ptr::from_ref(schema)).copied() }
    }

    pub(crate) fn name(&self, id: TypeId) -> &str {
        &self.names[id]
    }

    pub(crate) fn schema(&self, id: TypeId) -> &'s Json {
        self.schemas[id]
    }
}

/// The name of the schema at a pointer, with a capital first letter: types of JSON have small ones.
fn name(pointer: &str) -> String {
    let says = |part: &&str| !STRUCTURE.contains(part) && part.parse::<usize>().is_err();
    let part = pointer.rsplit('/').find(says).unwrap_or_default();
    let plain: String = part.chars().filter(|char| char.is_ascii_alphanumeric() || *char == '_').collect();
    let mut name = plain.trim_start_matches(|char: char| !char.is_ascii_alphabetic()).to_owned();
    name.truncate(LONGEST);
    match name.get_mut(..1) {
        Some(first) => first.make_ascii_uppercase(),
        None => name.push_str("Type"),
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_those_of_the_places() {
        for (pointer, want) in [
            ("/$defs/filter", "Filter"),
            ("/definitions/__schema0", "Schema0"),
            ("/properties/where/anyOf/0/properties/and/items", "And"),
            ("/$defs/a-b.C", "AbC"),
            ("", "Type"),
        ] {
            assert_eq!(name(pointer), want, "{pointer}");
        }
        let root = json!({"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/definitions/x"}, "c": {"$ref": "#/nowhere"},
            "$defs": {"x": {}}, "definitions": {"x": {}}});
        let types = NamedTypes::find(&root);
        let mut names = types.names.clone();
        names.sort_unstable();
        assert_eq!(names, ["X", "X2"]);
        assert_eq!(types.id(&root), None);
    }
}
