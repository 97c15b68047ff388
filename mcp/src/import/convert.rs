//! A host's entry as one of ours.

use super::hosts::HostFolders;
use ptc_runtime::secrets::names;
use serde_json::{Map, Value, json};

/// An entry in our `mcpServers` shape, and what its owner should know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The entry.
    pub entry: Map<String, Value>,
    /// One sentence each.
    pub notes: Vec<String>,
}

/// Keys that mean the same everywhere.
const SAME: [&str; 5] = ["command", "args", "env", "cwd", "description"];

/// Converts; the error says why the entry cannot be used at all.
pub fn convert(entry: &Value, places: &HostFolders) -> Result<Converted, String> {
    let Value::Object(theirs) = entry else { return Err("it is not an object".into()) };
    let mut ours = Map::new();
    let mut notes = Vec::new();
    if let Some(url) = theirs.get("url").or_else(|| theirs.get("serverUrl")).and_then(Value::as_str) {
        ours.insert("type".into(), "http".into());
        ours.insert("url".into(), url.into());
        ours.insert("disabled".into(), true.into());
        notes.push(
            "remote servers are not built into this version: written as disabled, without headers".into(),
        );
        return Ok(Converted { entry: ours, notes });
    }
    if !theirs.get("command").is_some_and(Value::is_string) {
        return Err("it has neither a command nor a url".into());
    }
    for key in SAME {
        if let Some(value) = theirs.get(key) {
            ours.insert(key.into(), fill(value, places, &mut notes));
        }
    }
    let is_off = theirs.get("disabled") == Some(&Value::Bool(true))
        || theirs.get("enabled") == Some(&Value::Bool(false));
    if is_off {
        ours.insert("disabled".into(), true.into());
        notes.push("disabled there, and here too".into());
    }
    inherited_variables(theirs, &mut ours);
    for (key, our_key) in
        [("startup_timeout_sec", "handshake_timeout_ms"), ("tool_timeout_sec", "request_timeout_ms")]
    {
        if let Some(seconds) = theirs.get(key).and_then(Value::as_f64).filter(|seconds| *seconds > 0.0) {
            ours.insert(our_key.into(), ((seconds * 1_000.0) as u64).max(1).into());
        }
    }
    match (theirs.get("enabled_tools"), theirs.get("disabled_tools")) {
        (Some(allowed), _) => drop(ours.insert("tools".into(), json!({ "allow": allowed }))),
        (None, Some(blocked)) => drop(ours.insert("tools".into(), json!({ "block": blocked }))),
        (None, None) => {}
    }
    if theirs.contains_key("envFile") {
        notes.push("envFile is not read: export its variables, or write them into env".into());
    }
    for (name, value) in ours.get("env").and_then(Value::as_object).into_iter().flatten() {
        let literal = value.as_str().is_some_and(|text| !text.is_empty() && !text.contains("${"));
        if literal && names::is_secret(name) {
            notes.push(format!(
                "env {name} was copied as it is; to keep it out of the file, export it and write \"${{{name}}}\""
            ));
        }
    }
    Ok(Converted { entry: ours, notes })
}

/// Codex names variables that are handed on (`env_vars`).
fn inherited_variables(theirs: &Map<String, Value>, ours: &mut Map<String, Value>) {
    let names =
        theirs.get("env_vars").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in names {
        let env = ours.entry("env").or_insert_with(|| json!({}));
        if let Value::Object(env) = env {
            env.entry(name).or_insert_with(|| format!("${{{name}:-}}").into());
        }
    }
}

/// Replaces the placeholders that only editors know: folders, and questions to the user.
fn fill(value: &Value, places: &HostFolders, notes: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) => fill_text(text, places, notes).into(),
        Value::Array(items) => items.iter().map(|item| fill(item, places, notes)).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.clone(), fill(value, places, notes))).collect()
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, places: &HostFolders, notes: &mut Vec<String>) -> String {
    let mut filled = text
        .replace("${workspaceFolder}", &places.project.display().to_string())
        .replace("${userHome}", &places.home.display().to_string());
    while let Some(open) = filled.find("${input:") {
        let Some(close) = filled[open..].find('}') else { break };
        let question = &filled[open + "${input:".len()..open + close];
        let variable: String = question
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        notes.push(format!("the editor asks for {question}: export it as {variable}"));
        filled.replace_range(open..=open + close, &format!("${{{variable}}}"));
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> HostFolders {
        HostFolders {
            home: "/h".into(),
            config: "/h/.config".into(),
            project: "/p".into(),
            codex: "/h/.codex".into(),
        }
    }

    fn converted(entry: Value) -> (Value, Vec<String>) {
        let Converted { entry, notes } = convert(&entry, &places()).expect("an entry");
        (entry.into(), notes)
    }

    #[test]
    fn references_stay_and_literal_secrets_are_pointed_out() {
        let entry = json!({ "type": "stdio", "command": "npx", "args": ["-y", "gh"], "alwaysAllow": ["x"],
            "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}", "API_KEY": "abc", "MODE": "fast" } });
        let (ours, notes) = converted(entry);
        let env = json!({ "GITHUB_TOKEN": "${GITHUB_TOKEN}", "API_KEY": "abc", "MODE": "fast" });
        assert_eq!(ours, json!({ "command": "npx", "args": ["-y", "gh"], "env": env }));
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("env API_KEY was copied") && !notes[0].contains("abc"), "{notes:?}");
    }

    #[test]
    fn questions_of_an_editor_become_variables() {
        let entry =
            json!({ "command": "x", "args": ["${workspaceFolder}/a"], "env": { "K": "${input:my-key}" } });
        let (ours, notes) = converted(entry);
        assert_eq!(ours, json!({ "command": "x", "args": ["/p/a"], "env": { "K": "${MY_KEY}" } }));
        assert_eq!(notes, ["the editor asks for my-key: export it as MY_KEY"]);
    }

    #[test]
    fn codex_settings_have_their_counterparts() {
        let entry = json!({ "command": "x", "env_vars": ["HOST"], "startup_timeout_sec": 2.5,
            "tool_timeout_sec": 60, "enabled_tools": ["a"], "enabled": false });
        let (ours, _) = converted(entry);
        assert_eq!(
            ours,
            json!({ "command": "x", "disabled": true, "env": { "HOST": "${HOST:-}" },
                "handshake_timeout_ms": 2500, "request_timeout_ms": 60000, "tools": { "allow": ["a"] } })
        );
    }

    #[test]
    fn remote_servers_are_kept_but_off() {
        let (ours, notes) =
            converted(json!({ "url": "https://x/mcp", "headers": { "Authorization": "Bearer s" } }));
        assert_eq!(ours, json!({ "type": "http", "url": "https://x/mcp", "disabled": true }));
        assert_eq!(notes.len(), 1);
        assert!(convert(&json!({}), &places()).is_err() && convert(&json!(1), &places()).is_err());
    }
}
