//! A host's file as a list of entries, whatever it is written in.

use super::hosts::Format;
use ptc_runtime::config::read_json;
use serde_json::{Map, Value};
use std::path::Path;

/// Reads the servers of a file; none when it has none.
///
/// # Errors
/// What is wrong with the text, in one line.
pub fn read(text: &str, format: Format, project: &Path) -> Result<Map<String, Value>, String> {
    let (root, key) = match format {
        Format::Json(key) | Format::JsonWithProjects(key) => (read_json(text)?, key),
        Format::Toml(key) => (toml::from_str(text).map_err(|error| toml_error(text, &error))?, key),
    };
    let mut servers = object(root.get(key));
    if matches!(format, Format::JsonWithProjects(_)) {
        let own = project.to_str().and_then(|path| root.get("projects")?.get(path)?.get(key));
        servers.extend(object(own));
    }
    Ok(servers)
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// What is wrong and where. The reader's own text quotes the line, and that may hold a secret.
fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("{} at line {}", error.message(), before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn servers(text: &str, format: Format) -> Value {
        read(text, format, Path::new("/work dir")).map_or_else(Value::String, Value::Object)
    }

    #[test]
    fn json_with_comments_and_commas() {
        let text =
            "{ // mine\n \"servers\": {\"a\": {\"command\": \"x,}\", \"args\": [\"//\", ],}, /* b */ },\n}";
        let found = servers(text, Format::Json("servers"));
        assert_eq!(found, json!({ "a": { "command": "x,}", "args": ["//"] } }));
        assert_eq!(servers("", Format::Json("servers")), json!({}));
        assert_eq!(servers("{}", Format::Json("servers")), json!({}));
        assert!(servers("{", Format::Json("servers")).is_string());
    }

    #[test]
    fn servers_of_the_project_come_with_those_of_the_user() {
        let text = r#"{"mcpServers": {"a": {"command": "x"}}, "projects": {
            "/work dir": {"mcpServers": {"b": {"command": "y"}}}, "/other": {"mcpServers": {"c": {}}}}}"#;
        let found = servers(text, Format::JsonWithProjects("mcpServers"));
        assert_eq!(found, json!({ "a": { "command": "x" }, "b": { "command": "y" } }));
    }

    #[test]
    fn toml_tables() {
        let text = "model = \"m\"\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\"-y\"]\n[mcp_servers.a.env]\nK = \"v\"\n";
        let found = servers(text, Format::Toml("mcp_servers"));
        assert_eq!(found, json!({ "a": { "command": "x", "args": ["-y"], "env": { "K": "v" } } }));
        assert!(servers("[", Format::Toml("mcp_servers")).is_string());
    }
}
