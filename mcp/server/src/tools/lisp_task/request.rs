//! Parses and validates the arguments of the MCP tool `lisp_task`, which solves a task in natural language with a
//! model: the task, its input data, and constraints on the answer. The first fault is reported.

use super::constraints::Constraints;
use serde_json::{Map, Value};

/// The checked arguments of a task.
#[derive(Clone, Debug)]
pub struct TaskRequest {
    task: String,
    /// The members of `data/` in the task's programs.
    pub context: Map<String, Value>,
    /// Constraints on the answer.
    pub constraints: Constraints,
    constraints_text: String,
}

impl TaskRequest {
    /// Reads the arguments of the tool.
    ///
    /// # Errors
    /// The message about the first wrong argument.
    pub fn read(arguments: &str, most_bytes: u64) -> Result<TaskRequest, String> {
        let fields = match serde_json::from_str(arguments) {
            Ok(Value::Object(fields)) => fields,
            Ok(Value::Null) => Map::new(),
            Ok(_) | Err(_) => return Err("arguments must be a JSON object".to_owned()),
        };
        let task = match fields.get("task").unwrap_or(&Value::Null) {
            Value::String(task) if !task.trim().is_empty() => task.clone(),
            Value::String(_) => return Err("argument `task` must be a non-empty string".to_owned()),
            other => return Err(format!("argument `task` must be a string, got {}", kind(other))),
        };
        let object = |name: &str| match fields.get(name) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => match Value::Object(object.clone()).to_string().len() as u64 {
                size if size > most_bytes => {
                    Err(format!("argument `{name}` exceeds max_context_bytes ({size} > {most_bytes})"))
                }
                _ => Ok(object.clone()),
            },
            Some(other) => Err(format!("argument `{name}` must be a JSON object, got {}", kind(other))),
        };
        let context = object("context")?;
        if context.contains_key("") {
            return Err("argument `context` keys must be non-empty".to_owned());
        }
        if let Some(key) = context.keys().find(|key| key.contains('/')) {
            return Err(format!("argument `context` keys may not contain `/`: {key:?}"));
        }
        let constraints = object("constraints")?;
        let constraints_text = match constraints.is_empty() {
            true => String::new(),
            false => Value::Object(constraints.clone()).to_string(),
        };
        Ok(TaskRequest { task, context, constraints: Constraints::read(&constraints), constraints_text })
    }

    /// The task as text for the model.
    pub(super) fn mission(&self) -> String {
        let mut text = self.task.trim().to_owned();
        if !self.constraints_text.is_empty() {
            text.push_str("\n\nConstraints JSON:\n");
            text.push_str(&self.constraints_text);
        }
        text
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_told_in_order() {
        let cases = [
            ("[]", "arguments must be a JSON object"),
            ("{}", "argument `task` must be a string, got null"),
            (r#"{"task": 1, "context": 1}"#, "argument `task` must be a string, got number"),
            (r#"{"task": " "}"#, "argument `task` must be a non-empty string"),
            (r#"{"task": "t", "context": []}"#, "argument `context` must be a JSON object, got array"),
            (r#"{"task": "t", "context": {"": 1}}"#, "argument `context` keys must be non-empty"),
            (
                r#"{"task": "t", "context": {"a/b": 1}}"#,
                "argument `context` keys may not contain `/`: \"a/b\"",
            ),
            (
                r#"{"task": "t", "constraints": "x"}"#,
                "argument `constraints` must be a JSON object, got string",
            ),
            (
                r#"{"task": "t", "context": {"a": "0123456789"}}"#,
                "argument `context` exceeds max_context_bytes (18 > 16)",
            ),
        ];
        for (arguments, want) in cases {
            assert_eq!(TaskRequest::read(arguments, 16).unwrap_err(), want, "{arguments}");
        }
        let task = TaskRequest::read(r#"{"task": "t", "constraints": {"max_items": 1}}"#, 100).unwrap();
        assert_eq!(task.mission(), "t\n\nConstraints JSON:\n{\"max_items\":1}");
    }
}
