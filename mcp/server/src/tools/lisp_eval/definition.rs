//! Builds the entry of the tool `lisp_eval` in `tools/list`: its title, description, schemas and hints about effects.

use super::description::description;
use crate::tools::definition::output_schema;
use crate::tools::{Definition, Facts, ToolAnnotations};
use serde_json::{Value, json};

/// Builds the entry. Without upstream servers it is constant for the lifetime of the server.
pub fn definition(facts: &Facts) -> Definition {
    Definition {
        title: "Run a PTC-Lisp program".into(),
        description: description(facts),
        input_schema: input_schema(),
        annotations: annotations(!facts.catalog.is_empty(), facts.read_only),
        output_schema: output_schema(facts.profile),
    }
}

fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "program": { "type": "string", "description": "PTC-Lisp source; several top-level forms are fine." },
            "context": {
                "type": "object", "additionalProperties": true,
                "description": "JSON data for the program: key k is read as data/k.",
            },
            "output_schema": {
                "type": "object", "additionalProperties": true,
                "description": "JSON Schema subset (type, properties, required, items, additionalProperties, \
                    description) that the result must match; the result then comes back as JSON.",
            },
        },
        "required": ["program"],
    })
}

/// Hints about effects. Without upstreams a program changes nothing; with them it has the effects of their
/// tools.
fn annotations(upstreams: bool, read_only: bool) -> ToolAnnotations {
    match upstreams {
        true => ToolAnnotations::of_calls(read_only),
        false => ToolAnnotations {
            idempotent_hint: true,
            open_world_hint: false,
            ..ToolAnnotations::of_calls(true)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::caps::Profile;

    #[test]
    fn output_schemas_follow_the_profile() {
        let tool = |profile| definition(&Facts { profile, ..Facts::default() });
        assert!(tool(Profile::Slim).output_schema.is_none());
        let structured = tool(Profile::Structured).output_schema.expect("schema");
        assert_eq!(structured["oneOf"][0]["required"], json!(["status"]));
        assert!(tool(Profile::Debug).annotations.read_only_hint);
    }
}
