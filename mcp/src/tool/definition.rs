//! The entry of `lisp_eval` in `tools/list`.

use super::LISP_EVAL;
use super::caps::Profile;
use super::description::{Facts, description};
use serde_json::{Value, json};

/// Builds the entry. It is constant for the lifetime of the server.
pub fn definition(facts: &Facts, read_only: bool) -> Value {
    let mut tool = json!({
        "name": LISP_EVAL,
        "title": "Run a PTC-Lisp program",
        "description": description(facts),
        "inputSchema": input_schema(),
        "annotations": annotations(!facts.catalog.is_empty(), read_only),
    });
    if let Some(schema) = output_schema(facts.profile) {
        tool["outputSchema"] = schema;
    }
    tool
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

/// Without upstreams a program can change nothing; with them it can do what their tools do.
fn annotations(upstreams: bool, read_only: bool) -> Value {
    let (read, destructive, idempotent, open) = match (upstreams, read_only) {
        (false, _) => (true, false, true, false),
        (true, true) => (true, false, false, true),
        (true, false) => (false, true, false, true),
    };
    json!({
        "readOnlyHint": read, "destructiveHint": destructive,
        "idempotentHint": idempotent, "openWorldHint": open,
    })
}

fn output_schema(profile: Profile) -> Option<Value> {
    let ok = |required: &[&str]| {
        json!({
            "type": "object",
            "properties": { "status": { "const": "ok" }, "result": { "type": "string" } },
            "required": required,
        })
    };
    let error = |required: &[&str]| {
        json!({
            "type": "object",
            "properties": {
                "status": { "const": "error" }, "reason": { "type": "string" },
                "error_kind": { "type": "string" }, "message": { "type": "string" },
            },
            "required": required,
        })
    };
    let (ok, error) = match profile {
        Profile::Slim => return None,
        Profile::Structured => (ok(&["status"]), error(&["status", "reason", "message"])),
        Profile::Debug => (
            ok(&["status", "prints", "feedback", "truncated"]),
            error(&["status", "reason", "message", "feedback"]),
        ),
    };
    Some(json!({ "type": "object", "oneOf": [ok, error] }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_schemas_follow_the_profile() {
        let tool = |profile| definition(&Facts { profile, ..Facts::default() }, false);
        assert!(tool(Profile::Slim).get("outputSchema").is_none());
        assert_eq!(tool(Profile::Structured)["outputSchema"]["oneOf"][0]["required"], json!(["status"]));
        assert_eq!(tool(Profile::Debug)["annotations"]["readOnlyHint"], json!(true));
    }
}
