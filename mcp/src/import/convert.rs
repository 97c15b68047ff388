//! A host's entry as one of ours.

use super::hosts::{EntryDialect, HostFolders};
use ptc_runtime::secrets::names;
use serde_json::{Map, Value, json};
use std::path::Path;

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

/// Approvals of hosts, which nothing here has.
const APPROVALS: [&str; 5] = ["autoApprove", "alwaysAllow", "alwaysApprove", "autoAllow", "trust"];

/// Names of the address of a remote server.
const ADDRESSES: [&str; 4] = ["url", "serverUrl", "httpUrl", "uri"];

/// What the address alone does not say; without it both transports are tried.
fn remote_kind(theirs: &Map<String, Value>, address: &str) -> Option<&'static str> {
    let kind = theirs.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "sse" => Some("sse"),
        "http" | "streamablehttp" => Some("http"),
        _ => (address == "httpUrl").then_some("http"),
    }
}

/// Converts an entry of a file; the error says why it cannot be used at all. `base` is the folder that relative paths
/// of a project's own file are meant from.
pub fn convert(
    entry: &Value,
    dialect: EntryDialect,
    places: &HostFolders,
    base: Option<&Path>,
) -> Result<Converted, String> {
    let Value::Object(theirs) = entry else { return Err("it is not an object".into()) };
    let mut theirs = theirs.clone();
    theirs.retain(|_, value| !value.is_null());
    match dialect {
        EntryDialect::Usual => {}
        EntryDialect::Zed => of_zed(&mut theirs),
        EntryDialect::Opencode => of_opencode(&mut theirs),
        EntryDialect::Goose => of_goose(&mut theirs)?,
    }
    let theirs = &theirs;
    let mut ours = Map::new();
    let mut notes = Vec::new();
    let address = ADDRESSES.iter().find_map(|key| Some((theirs.get(*key)?.as_str()?, *key)));
    match address {
        Some((url, key)) if !theirs.contains_key("command") => {
            ours.extend(remote_kind(theirs, key).map(|kind| ("type".to_owned(), kind.into())));
            ours.insert("url".into(), fill_text(url, places, &mut notes).into());
            for key in ["headers", "description"] {
                if let Some(value) = theirs.get(key) {
                    ours.insert(key.into(), fill(value, places, &mut notes));
                }
            }
            headers_of_codex(theirs, &mut ours);
        }
        _ => {
            if !theirs.get("command").is_some_and(Value::is_string) {
                return Err("it has neither a command nor a url".into());
            }
            for key in SAME {
                if let Some(value) = theirs.get(key) {
                    ours.insert(key.into(), fill(value, places, &mut notes));
                }
            }
            inherited_variables(theirs, &mut ours);
            keep_folder(&mut ours, base);
        }
    }
    let is_off = theirs.get("disabled") == Some(&Value::Bool(true))
        || theirs.get("enabled") == Some(&Value::Bool(false));
    if is_off {
        ours.insert("disabled".into(), true.into());
        notes.push("disabled there, and here too".into());
    }
    for (key, our_key) in
        [("startup_timeout_sec", "handshake_timeout_ms"), ("tool_timeout_sec", "request_timeout_ms")]
    {
        if let Some(seconds) = theirs.get(key).and_then(Value::as_f64).filter(|seconds| *seconds > 0.0) {
            ours.insert(our_key.into(), ((seconds * 1_000.0) as u64).max(1).into());
        }
    }
    choices(theirs, &mut ours, &mut notes);
    if theirs.contains_key("envFile") {
        notes.push("envFile is not read: export its variables, or write them into env".into());
    }
    for part in ["env", "headers"] {
        for (name, value) in ours.get(part).and_then(Value::as_object).into_iter().flatten() {
            let literal = value.as_str().is_some_and(|text| !text.is_empty() && !text.contains("${"));
            if literal && names::is_secret(name) {
                notes.push(format!(
                    "{part} {name} was copied as it is; to keep it out of the file, export it and write \"${{{}}}\"",
                    variable_name(name)
                ));
            }
        }
    }
    Ok(Converted { entry: ours, notes })
}

/// Which tools there are, in our words; approvals are told about.
fn choices(theirs: &Map<String, Value>, ours: &mut Map<String, Value>, notes: &mut Vec<String>) {
    let list = |keys: &[&str]| keys.iter().find_map(|key| theirs.get(*key).filter(|value| value.is_array()));
    let only =
        list(&["enabled_tools", "enabledTools", "includeTools", "allowedTools", "available_tools", "tools"])
            .filter(|names| **names != json!(["*"]) && **names != json!([]));
    let without =
        list(&["disabled_tools", "disabledTools", "excludeTools"]).filter(|names| **names != json!([]));
    match (only, without) {
        (Some(names), _) => {
            ours.insert("tools".into(), json!({ "allow": names }));
            // Our rule is one of the two; the reader knows this key beside it.
            if let Some(names) = without {
                ours.insert("excludeTools".into(), names.clone());
            }
        }
        (None, Some(names)) => drop(ours.insert("tools".into(), json!({ "block": names }))),
        (None, None) => {}
    }
    for key in APPROVALS {
        let says_something = match theirs.get(key) {
            Some(Value::Array(names)) => !names.is_empty(),
            Some(value) => *value != Value::Bool(false),
            None => false,
        };
        if says_something {
            notes.push(format!("{key} has no counterpart: programs call every tool without asking"));
        }
    }
}

/// Zed wrote the command as an object for a while.
fn of_zed(theirs: &mut Map<String, Value>) {
    let Some(Value::Object(command)) = theirs.get("command") else { return };
    let mut command = command.clone();
    theirs.remove("command");
    if let Some(path) = command.remove("path") {
        theirs.insert("command".into(), path);
    }
    theirs.extend(command);
}

/// opencode writes the command line as one list, and references in braces.
fn of_opencode(theirs: &mut Map<String, Value>) {
    if let Some(Value::Array(words)) = theirs.remove("command") {
        let mut words = words.into_iter();
        if let Some(program) = words.next() {
            theirs.insert("command".into(), program);
        }
        theirs.insert("args".into(), words.collect());
    }
    if let Some(variables) = theirs.remove("environment") {
        theirs.insert("env".into(), variables);
    }
    for value in theirs.values_mut() {
        in_texts(value, &|text| text.replace("{env:", "${env:").replace("$${env:", "${env:"));
    }
}

/// Goose has extensions of its own among the servers.
fn of_goose(theirs: &mut Map<String, Value>) -> Result<(), String> {
    if let Some(kind) = theirs.get("type").and_then(Value::as_str)
        && !["stdio", "sse", "streamable_http", "streamable-http"].contains(&kind)
    {
        return Err(format!("it is a part of Goose itself ({kind})"));
    }
    for (key, usual) in [("cmd", "command"), ("envs", "env"), ("env_keys", "env_vars")] {
        if let Some(value) = theirs.remove(key) {
            theirs.insert(usual.into(), value);
        }
    }
    if theirs.get("env").is_some_and(|env| *env == json!({})) {
        theirs.remove("env");
    }
    if theirs.get("description").is_some_and(|text| text == "") {
        theirs.remove("description");
    }
    Ok(())
}

/// A project's own file means its paths from its folder.
pub fn keep_folder(ours: &mut Map<String, Value>, base: Option<&Path>) {
    let Some(base) = base else { return };
    if let Some(folder) = ours.get("cwd").and_then(Value::as_str) {
        let absolute = base.join(folder);
        ours.insert("cwd".into(), absolute.display().to_string().into());
        return;
    }
    let is_relative = |word: &str| {
        word.starts_with("./")
            || word.starts_with("../")
            || (word.contains('/') && Path::new(word).is_relative() && base.join(word).is_file())
    };
    let command = ours.get("command").and_then(Value::as_str);
    let arguments = ours.get("args").and_then(Value::as_array);
    let mut words = command.into_iter().chain(arguments.into_iter().flatten().filter_map(Value::as_str));
    if words.any(is_relative) {
        ours.insert("cwd".into(), base.display().to_string().into());
    }
}

fn in_texts(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| in_texts(item, change)),
        Value::Object(map) => map.values_mut().for_each(|value| in_texts(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A name for a variable.
fn variable_name(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
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

/// Codex writes headers apart, and names the variables that hold secret ones.
fn headers_of_codex(theirs: &Map<String, Value>, ours: &mut Map<String, Value>) {
    let named = |key: &str| theirs.get(key).and_then(Value::as_object).into_iter().flatten();
    let reference = |variable: &Value| variable.as_str().map(|name| format!("${{{name}}}"));
    let mut headers: Map<String, Value> =
        named("http_headers").map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, variable) in named("env_http_headers") {
        headers.extend(reference(variable).map(|value| (name.clone(), value.into())));
    }
    if let Some(value) = theirs.get("bearer_token_env_var").and_then(reference) {
        headers.insert("Authorization".into(), format!("Bearer {value}").into());
    }
    if !headers.is_empty()
        && let Value::Object(all) = ours.entry("headers").or_insert_with(|| json!({}))
    {
        all.extend(headers);
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
        let variable = variable_name(question);
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
        let Converted { entry, notes } =
            convert(&entry, EntryDialect::Usual, &places(), None).expect("an entry");
        (entry.into(), notes)
    }

    #[test]
    fn references_stay_and_literal_secrets_are_pointed_out() {
        let entry = json!({ "type": "stdio", "command": "npx", "args": ["-y", "gh"], "alwaysAllow": ["x"],
            "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}", "API_KEY": "abc", "MODE": "fast" } });
        let (ours, notes) = converted(entry);
        let env = json!({ "GITHUB_TOKEN": "${GITHUB_TOKEN}", "API_KEY": "abc", "MODE": "fast" });
        assert_eq!(ours, json!({ "command": "npx", "args": ["-y", "gh"], "env": env }));
        assert_eq!(notes.len(), 2);
        assert!(notes[1].starts_with("env API_KEY was copied") && !notes[1].contains("abc"), "{notes:?}");
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
    fn codex_headers_are_headers() {
        let entry = json!({ "url": "https://h/mcp", "bearer_token_env_var": "TOKEN",
            "http_headers": { "X-Region": "eu" }, "env_http_headers": { "X-Key": "KEY" } });
        let (ours, notes) = converted(entry);
        let headers = json!({ "X-Region": "eu", "X-Key": "${KEY}", "Authorization": "Bearer ${TOKEN}" });
        assert_eq!(ours, json!({ "url": "https://h/mcp", "headers": headers }));
        assert!(notes.is_empty(), "{notes:?}");
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
    fn remote_servers_keep_their_headers() {
        let (ours, notes) =
            converted(json!({ "serverUrl": "https://x/mcp", "headers": { "Authorization": "Bearer s" } }));
        let headers = json!({ "Authorization": "Bearer s" });
        assert_eq!(ours, json!({ "url": "https://x/mcp", "headers": headers }));
        assert!(notes[0].starts_with("headers Authorization was copied"), "{notes:?}");
        // Where a host does not say which transport a server speaks, neither do we.
        for (theirs, kind) in [
            (json!({ "url": "https://x" }), Value::Null),
            (json!({ "url": "https://x", "type": "remote" }), Value::Null),
            (json!({ "url": "https://x", "type": "sse" }), json!("sse")),
            (json!({ "url": "https://x", "type": "streamableHttp" }), json!("http")),
            (json!({ "uri": "https://x", "type": "streamable_http" }), json!("http")),
            (json!({ "httpUrl": "https://x" }), json!("http")),
        ] {
            assert_eq!(converted(theirs).0["type"], kind);
        }
        let convert = |entry: Value| convert(&entry, EntryDialect::Usual, &places(), None);
        assert!(convert(json!({})).is_err() && convert(json!(1)).is_err());
    }

    #[test]
    fn paths_of_a_project_stay_its_own() {
        let base = Path::new("/p");
        let cwd = |entry: Value| {
            let converted = convert(&entry, EntryDialect::Usual, &places(), Some(base)).expect("an entry");
            converted.entry.get("cwd").cloned()
        };
        assert_eq!(cwd(json!({ "command": "./serve" })), Some(json!("/p")));
        assert_eq!(cwd(json!({ "command": "node", "args": ["../x.js"] })), Some(json!("/p")));
        assert_eq!(cwd(json!({ "command": "node", "cwd": "sub" })), Some(json!("/p/sub")));
        assert_eq!(cwd(json!({ "command": "npx", "args": ["-y", "@a/b"] })), None);
    }

    #[test]
    fn choices_of_tools_are_taken_over_and_approvals_told() {
        let entry = json!({ "command": "x", "includeTools": ["a"], "excludeTools": ["b"], "trust": true });
        let (ours, notes) = converted(entry);
        assert_eq!(ours, json!({ "command": "x", "tools": { "allow": ["a"] }, "excludeTools": ["b"] }));
        assert_eq!(notes, ["trust has no counterpart: programs call every tool without asking"]);
        let (ours, notes) =
            converted(json!({ "command": "x", "disabledTools": ["b"], "autoApprove": [], "tools": ["*"] }));
        assert_eq!((ours, notes.len()), (json!({ "command": "x", "tools": { "block": ["b"] } }), 0));
    }
}
