//! Validates the answer of an agent against its JSON Schema, after converting it to JSON with keys spelled as in the
//! schema.

use ptc_calls::run::outcome::{JsonRefusal, RenderedValue};
use ptc_calls::schema::judge::{Judge, MOST_COMPARED, items};
use ptc_calls::schema::resolve;
use ptc_calls::tools::check_value;
use serde_json::{Map, Value as Json};

/// Converts the answer of a program to JSON that matches the schema. Keys follow the schema's spelling:
/// `:user-id` becomes `user_id` if the schema has that.
pub(super) fn answer(rendered: &RenderedValue, schema: Option<&Json>) -> Result<Json, String> {
    let json = match &rendered.json {
        Some(Ok(json)) => json,
        Some(Err(refusal @ JsonRefusal::TooLarge { .. })) => {
            return Err(format!("the answer is {refusal}: return a summary"));
        }
        Some(Err(refusal)) => return Err(refusal.to_string()),
        None => return Err("the answer has no JSON form".to_owned()),
    };
    let value: Json = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let Some(schema) = schema else { return Ok(value) };
    let value = spelled(value, &Judge::new(schema, MOST_COMPARED), schema);
    check_value(schema, &value)?;
    Ok(value)
}

/// Renames keys with a `-` that is a `_` in the schema. Recursion is as deep as the JSON, which the parser bounds.
fn spelled<'s>(value: Json, judge: &Judge<'s>, schema: &'s Json) -> Json {
    let schema = resolve(judge.root(), schema);
    match value {
        Json::Object(entries) => {
            let properties = schema.get("properties").and_then(Json::as_object);
            let name = |key: String| match properties {
                Some(known) if !known.contains_key(&key) => {
                    let other = key.replace('-', "_");
                    if known.contains_key(&other) { other } else { key }
                }
                _ => key,
            };
            let entry = |(key, value)| {
                let key = name(key);
                let below = properties.and_then(|known| known.get(&key));
                let value = match below {
                    Some(below) => spelled(value, judge, below),
                    None => value,
                };
                (key, value)
            };
            Json::Object(entries.into_iter().map(entry).collect::<Map<String, Json>>())
        }
        Json::Array(list) => match items(judge, schema) {
            Some(below) => Json::Array(list.into_iter().map(|item| spelled(item, judge, below)).collect()),
            None => Json::Array(list),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_checked_and_spelled_as_the_schema_spells() {
        let schema = json!({"type": "array", "items": {"type": "object", "required": ["user_id"],
            "properties": {"user_id": {"type": "integer"}, "kind": {"enum": ["a", "b"]}}}});
        let checked = |text: &str| {
            let rendered =
                RenderedValue { json: Some(Ok(text.to_owned())), ..RenderedValue::from_text(String::new()) };
            answer(&rendered, Some(&schema))
        };
        assert_eq!(checked(r#"[{"user-id": 1, "more": 2}]"#), Ok(json!([{"user_id": 1, "more": 2}])));
        let cases = [
            (r#"{"user_id": 1}"#, "the answer must be array, got an object"),
            (r#"[{"user_id": "1"}]"#, "[0].user_id must be integer, got \"1\""),
            ("[{}]", "[0] misses required user_id"),
            (r#"[{"user_id": 1, "kind": "c"}]"#, "[0].kind must be one of \"a\", \"b\""),
        ];
        for (text, want) in cases {
            let told = checked(text).unwrap_err();
            assert!(told.starts_with(want), "{told}");
        }
    }
}
