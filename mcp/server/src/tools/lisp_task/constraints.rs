//! Reads and applies the constraints that a client sets on the answer to a task (`max_items`, `preferred_fields`).

use serde_json::{Map, Value};

/// The constraints of one task.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    max_items: Option<usize>,
    preferred_fields: Vec<String>,
    /// Names of constraints that are not supported.
    pub unsupported: Vec<String>,
}

impl Constraints {
    pub(super) fn read(fields: &Map<String, Value>) -> Constraints {
        let mut constraints = Constraints::default();
        for (name, value) in fields {
            let texts = || {
                let items = value.as_array()?.iter();
                items.map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
            };
            match (name.as_str(), value.as_u64().filter(|number| *number > 0), texts()) {
                ("max_items", Some(number), _) => {
                    constraints.max_items = Some(usize::try_from(number).unwrap_or(usize::MAX));
                }
                ("preferred_fields", _, Some(names)) => constraints.preferred_fields = names,
                _ => constraints.unsupported.push(name.clone()),
            }
        }
        constraints
    }

    /// Applies the constraints to an answer. A list, or the first list of a map, is cut to the most items. A
    /// map that has all preferred fields keeps only these.
    pub(super) fn apply(&self, value: Value) -> Value {
        self.chosen(self.bounded(value))
    }

    fn bounded(&self, mut value: Value) -> Value {
        let Some(most) = self.max_items else { return value };
        let list = match &mut value {
            Value::Array(list) => Some(list),
            Value::Object(fields) => fields.values_mut().find_map(|field| match field {
                Value::Array(list) => Some(list),
                _ => None,
            }),
            _ => None,
        };
        if let Some(list) = list {
            list.truncate(most);
        }
        value
    }

    fn chosen(&self, value: Value) -> Value {
        if self.preferred_fields.is_empty() {
            return value;
        }
        let choose = |value: Value| match value {
            Value::Object(mut fields)
                if self.preferred_fields.iter().all(|name| fields.contains_key(name)) =>
            {
                let field = |name: &String| Some((name.clone(), fields.shift_remove(name)?));
                Value::Object(self.preferred_fields.iter().filter_map(field).collect())
            }
            other => other,
        };
        match value {
            Value::Array(list) => Value::Array(list.into_iter().map(choose).collect()),
            other => choose(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn applied(constraints: Value, value: Value) -> (Value, Vec<String>) {
        let Value::Object(fields) = constraints else { panic!() };
        let constraints = Constraints::read(&fields);
        (constraints.apply(value), constraints.unsupported)
    }

    #[test]
    fn answers_are_cut_down_to_what_was_asked_for() {
        let cases = [
            (json!({"max_items": 2}), json!([1, 2, 3]), json!([1, 2])),
            (
                json!({"max_items": 1}),
                json!({"n": 1, "rows": [1, 2], "more": [1, 2]}),
                json!({"n": 1, "rows": [1], "more": [1, 2]}),
            ),
            (
                json!({"preferred_fields": ["b"]}),
                json!([{"a": 1, "b": 2}, {"a": 1}]),
                json!([{"b": 2}, {"a": 1}]),
            ),
            (json!({"max_items": 1}), json!("text"), json!("text")),
        ];
        for (constraints, value, want) in cases {
            assert_eq!(applied(constraints, value), (want, Vec::new()));
        }
        let (_, unsupported) =
            applied(json!({"max_items": 0, "tone": "kind", "preferred_fields": [1]}), json!(1));
        assert_eq!(unsupported, ["max_items", "tone", "preferred_fields"]);
    }
}
