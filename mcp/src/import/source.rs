//! Extracts the entries of MCP servers from the configuration file of another MCP client application, such as Claude
//! Desktop (JSON, TOML or YAML).

use super::hosts::{Format, Syntax};
use ptc_base::files;
use ptc_base::yaml;
use ptc_upstream::config::read_json;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::Path;

/// The text of a file, if it is there.
///
/// # Errors
/// It cannot be read: it is not UTF-8, no plain file, or the file system refuses.
pub fn text_of(path: &Path) -> Result<Option<String>, String> {
    match files::read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err("it is no text in UTF-8".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses a whole file.
///
/// # Errors
/// What is wrong with the text, in one line.
pub fn read_root(text: &str, syntax: Syntax) -> Result<Value, String> {
    match syntax {
        Syntax::Json | Syntax::JsonWithProjects => read_json(text),
        Syntax::Toml => toml::from_str(text).map_err(|error| toml_error(text, &error)),
        Syntax::Yaml if text.trim().is_empty() => Ok(Value::Null),
        // The parser's own message quotes lines, which may hold secrets.
        Syntax::Yaml => yaml::read(text).map_err(|_| "it is not YAML".to_owned()),
    }
}

/// Reads the servers of a file; there may be none. Those that the file has for this project come last.
///
/// # Errors
/// What is wrong with the text, in one line.
pub fn read(text: &str, format: Format, project: Option<&Path>) -> Result<Map<String, Value>, String> {
    let root = read_root(text, format.syntax)?;
    let mut servers = object(root.get(format.key));
    if format.syntax == Syntax::JsonWithProjects {
        let own = project.and_then(|project| root.get("projects")?.get(project.to_str()?)?.get(format.key));
        servers.extend(object(own));
    }
    Ok(servers)
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// What is wrong, with its location. The parser's own message quotes the line, which may hold a secret.
fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("{} at line {}", error.message(), before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::super::hosts::Host;
    use super::*;
    use serde_json::json;

    fn servers(text: &str, host: Host) -> Value {
        read(text, host.format(), Some(Path::new("/work dir"))).map_or_else(Value::String, Value::Object)
    }

    #[test]
    fn json_with_comments_and_commas() {
        let text =
            "{ // mine\n \"servers\": {\"a\": {\"command\": \"x,}\", \"args\": [\"//\", ],}, /* b */ },\n}";
        let found = servers(text, Host::Vscode);
        assert_eq!(found, json!({ "a": { "command": "x,}", "args": ["//"] } }));
        assert_eq!(servers("", Host::Vscode), json!({}));
        assert_eq!(servers("{}", Host::Vscode), json!({}));
        assert!(servers("{", Host::Vscode).is_string());
    }

    #[test]
    fn servers_of_the_project_come_with_those_of_the_user() {
        let text = r#"{"mcpServers": {"a": {"command": "x"}}, "projects": {
            "/work dir": {"mcpServers": {"b": {"command": "y"}}}, "/other": {"mcpServers": {"c": {}}}}}"#;
        let found = servers(text, Host::ClaudeCode);
        assert_eq!(found, json!({ "a": { "command": "x" }, "b": { "command": "y" } }));
    }

    #[test]
    fn tables_of_toml_and_yaml() {
        let text = "model = \"m\"\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\"-y\"]\n[mcp_servers.a.env]\nK = \"v\"\n";
        let found = servers(text, Host::Codex);
        assert_eq!(found, json!({ "a": { "command": "x", "args": ["-y"], "env": { "K": "v" } } }));
        assert!(servers("[", Host::Codex).is_string());
        let found = servers("extensions:\n  a:\n    cmd: x\n    timeout: 300\n", Host::Goose);
        assert_eq!(found, json!({ "a": { "cmd": "x", "timeout": 300 } }));
        assert_eq!((servers("", Host::Goose), servers("x: 1", Host::Goose)), (json!({}), json!({})));
        assert_eq!(servers("a: [s3cret", Host::Goose), "it is not YAML");
    }
}
