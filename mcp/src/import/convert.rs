//! Converts the entry of an MCP server in another host's configuration (Claude, Cursor, Zed …) to the form that `ptc`
//! reads, with notes about what is lost.

use super::hosts::{EntryDialect, Host, HostFolders};
use super::keys::{Meaning, is_empty_value, meaning};
use ptc_base::secrets::names;
use serde_json::{Map, Value, json};
use std::path::Path;

/// An entry in our `mcpServers` shape, with notes for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The entry.
    pub entry: Map<String, Value>,
    /// Notes, one sentence each.
    pub notes: Vec<String>,
}

/// Keys for the address of a remote server.
const ADDRESSES: [&str; 4] = ["httpUrl", "url", "serverUrl", "uri"];

/// Transport of a remote server, if the entry names one. Otherwise both are tried.
fn remote_kind(theirs: &Map<String, Value>, address: &str) -> Option<&'static str> {
    let kind = theirs.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "sse" => Some("sse"),
        "http" | "streamablehttp" => Some("http"),
        _ => (address == "httpUrl").then_some("http"),
    }
}

/// Converts an entry of a file. The error says why it cannot be used at all. `base` is the folder for relative
/// paths, for a file of a project.
pub fn convert(
    entry: &Value,
    host: Host,
    places: &HostFolders,
    base: Option<&Path>,
) -> Result<Converted, String> {
    let Value::Object(theirs) = entry else { return Err("it is not an object".into()) };
    let mut theirs = theirs.clone();
    let mut notes = Vec::new();
    without_nulls(&mut theirs);
    match host.format().dialect {
        EntryDialect::Usual if host == Host::Gemini => {
            theirs.values_mut().for_each(|value| in_texts(value, &mut brace_variables))
        }
        EntryDialect::Usual => {}
        EntryDialect::Zed => normalize_zed(&mut theirs),
        EntryDialect::Opencode => normalize_opencode(&mut theirs, &mut notes),
        EntryDialect::Goose => normalize_goose(&mut theirs, &mut notes)?,
    }
    // The conversion may have moved nested members with nulls to the top level.
    without_nulls(&mut theirs);
    let theirs = &theirs;
    let is_local = theirs.get("command").is_some_and(Value::is_string);
    let address = ADDRESSES.iter().find_map(|key| Some((theirs.get(*key)?.as_str()?, *key)));
    let mut ours = Map::new();
    match address {
        Some((url, key)) if !is_local => {
            ours.extend(remote_kind(theirs, key).map(|kind| ("type".to_owned(), kind.into())));
            ours.insert("url".into(), fill_text(url, places, &mut notes).into());
        }
        _ if is_local => drop(ours.insert("command".into(), fill(&theirs["command"], places, &mut notes))),
        _ => return Err("it has neither a command nor a url".into()),
    }
    for (key, value) in theirs {
        let is_ours = match meaning(host, key) {
            Meaning::Same => true,
            Meaning::Local => is_local,
            Meaning::Remote => !is_local,
            _ => continue,
        };
        if is_ours {
            ours.insert(key.clone(), fill(value, places, &mut notes));
        } else if !is_empty_value(value) {
            notes.push(format!("{key} means nothing to such a server and is left out"));
        }
    }
    if is_local {
        inherited_variables(theirs, &mut ours);
        set_working_folder(&mut ours, base);
    } else {
        codex_headers(theirs, &mut ours);
    }
    let is_off = theirs.get("disabled") == Some(&Value::Bool(true))
        || theirs.get("enabled") == Some(&Value::Bool(false));
    if is_off {
        ours.insert("disabled".into(), true.into());
        notes.push("disabled there, and here too".into());
    }
    convert_limits(host, theirs, &mut ours);
    convert_tool_lists(host, theirs, &mut ours, &mut notes);
    note_unsupported(host, theirs, &mut notes);
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

/// Removes nulls: some programs write absent members as null.
fn without_nulls(theirs: &mut Map<String, Value>) {
    theirs.retain(|_, value| !value.is_null());
    for part in ["env", "headers"] {
        if let Some(Value::Object(pairs)) = theirs.get_mut(part) {
            pairs.retain(|_, value| !value.is_null());
        }
    }
}

/// Takes over limits.
fn convert_limits(host: Host, theirs: &Map<String, Value>, ours: &mut Map<String, Value>) {
    for (key, value) in theirs {
        let (our_key, unit) = match meaning(host, key) {
            Meaning::Millis(our_key) => (our_key, 1.0),
            Meaning::Seconds(our_key) => (our_key, 1_000.0),
            _ => continue,
        };
        if let Some(number) = value.as_f64().filter(|number| *number > 0.0) {
            ours.insert(our_key.into(), ((number * unit) as u64).max(1).into());
        }
    }
}

/// Takes over selections of tools.
fn convert_tool_lists(
    host: Host,
    theirs: &Map<String, Value>,
    ours: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) {
    let mut allowed = None;
    let mut excluded: Vec<Value> = Vec::new();
    for (key, value) in theirs {
        match (meaning(host, key), value) {
            (Meaning::AllowUnlessEmpty, Value::Array(names)) if names.is_empty() => {}
            // It selects all tools.
            (Meaning::Allow, value) if *value == json!(["*"]) || *value == json!("*") => {}
            (Meaning::Allow | Meaning::AllowUnlessEmpty, Value::Array(names)) => {
                if names.is_empty() {
                    notes.push(format!("{key} is empty: it has no tools there, and none here"));
                }
                allowed.get_or_insert_with(|| names.clone());
            }
            (Meaning::Exclude, Value::Array(names)) => excluded.extend(names.iter().cloned()),
            (Meaning::Allow | Meaning::AllowUnlessEmpty | Meaning::Exclude, value)
                if !is_empty_value(value) =>
            {
                notes.push(format!("{key} is no list of tools, and not taken over"));
            }
            _ => {}
        }
    }
    match allowed {
        Some(names) => {
            ours.insert("tools".into(), json!({ "allow": names }));
            // `tools` is either an allow list or a block list; exclusions from an allow list have their own key.
            if !excluded.is_empty() {
                ours.insert("excludeTools".into(), excluded.into());
            }
        }
        None if excluded.is_empty() => {}
        None => drop(ours.insert("tools".into(), json!({ "block": excluded }))),
    }
}

/// Adds a note for each key with a meaning that is not taken over.
fn note_unsupported(host: Host, theirs: &Map<String, Value>, notes: &mut Vec<String>) {
    for (key, _) in theirs.iter().filter(|(_, value)| !is_empty_value(value)) {
        match meaning(host, key) {
            Meaning::Approval => {
                notes.push(format!("{key} has no counterpart: programs call every tool without asking"));
            }
            Meaning::Unsupported(instead) => notes.push(format!("{key} {instead}")),
            _ => {}
        }
    }
}

/// Converts `$VAR` to `${VAR}`, since Gemini expands both. A name that is not in capitals may be part of a
/// password: it is left unchanged unless such a variable exists, as Gemini does.
fn brace_variables(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..=dollar]);
        rest = &rest[dollar + 1..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        match name.contains(|c: char| c.is_ascii_lowercase()) {
            true => out.push_str(&format!("{{{name}:-${name}}}")),
            false => out.push_str(&format!("{{{name}}}")),
        }
        rest = &rest[name.len()..];
    }
    out + rest
}

/// Zed for some time wrote the command as an object.
fn normalize_zed(theirs: &mut Map<String, Value>) {
    let Some(Value::Object(command)) = theirs.get("command") else { return };
    let mut command = command.clone();
    theirs.shift_remove("command");
    if let Some(path) = command.shift_remove("path") {
        theirs.insert("command".into(), path);
    }
    theirs.extend(command);
}

/// opencode writes the command line as one list, and references in braces.
fn normalize_opencode(theirs: &mut Map<String, Value>, notes: &mut Vec<String>) {
    if let Some(Value::Array(words)) = theirs.shift_remove("command") {
        let mut words = words.into_iter();
        if let Some(program) = words.next() {
            theirs.insert("command".into(), program);
        }
        theirs.insert("args".into(), words.collect());
    }
    if let Some(variables) = theirs.shift_remove("environment") {
        theirs.insert("env".into(), variables);
    }
    let mut references = |text: &str| {
        const FILE: &str = "{file:";
        let mut text = text.replace("{env:", "${env:").replace("$${env:", "${env:");
        while let Some(open) = text.find(FILE) {
            let Some(close) = text[open..].find('}') else { break };
            let path = text[open + FILE.len()..open + close].to_owned();
            let stem = Path::new(&path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let variable = variable_name(stem);
            text.replace_range(open..=open + close, &format!("${{{variable}}}"));
            notes.push(format!("the file {path} is not read: export what is in it as {variable}"));
        }
        text
    };
    for value in theirs.values_mut() {
        in_texts(value, &mut references);
    }
}

/// Goose lists its own extensions among the servers, and stores secrets elsewhere.
fn normalize_goose(theirs: &mut Map<String, Value>, notes: &mut Vec<String>) -> Result<(), String> {
    if let Some(kind) = theirs.get("type").and_then(Value::as_str)
        && !["stdio", "sse", "streamable_http", "streamable-http"].contains(&kind)
    {
        return Err(format!("it is a part of Goose itself ({kind})"));
    }
    for (key, usual) in [("cmd", "command"), ("envs", "env")] {
        if let Some(value) = theirs.shift_remove(key) {
            theirs.insert(usual.into(), value);
        }
    }
    if let Some(Value::Array(names)) = theirs.shift_remove("env_keys") {
        let env = theirs.entry("env").or_insert_with(|| json!({}));
        for name in names.iter().filter_map(Value::as_str) {
            if let Value::Object(env) = env
                && !env.contains_key(name)
            {
                env.insert(name.to_owned(), format!("${{{name}}}").into());
                notes.push(format!("Goose keeps {name} in its own store of secrets: export it"));
            }
        }
    }
    for key in ["env", "description"] {
        if theirs.get(key).is_some_and(is_empty_value) {
            theirs.shift_remove(key);
        }
    }
    Ok(())
}

/// Sets the working directory: a project's own file has paths relative to its folder.
pub fn set_working_folder(ours: &mut Map<String, Value>, base: Option<&Path>) {
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

fn in_texts(value: &mut Value, change: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| in_texts(item, change)),
        Value::Object(map) => map.values_mut().for_each(|value| in_texts(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Turns a text into the name of a variable.
fn variable_name(text: &str) -> String {
    let name = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    let digit = text.starts_with(|c: char| c.is_ascii_digit()) || text.is_empty();
    digit.then_some('_').into_iter().chain(name).collect()
}

/// Codex lists variables to pass on (`env_vars`).
fn inherited_variables(theirs: &Map<String, Value>, ours: &mut Map<String, Value>) {
    let variables = theirs.get("env_vars").and_then(Value::as_array).into_iter().flatten();
    // An entry may also be an object with a name.
    for name in variables.filter_map(|variable| variable.as_str().or_else(|| variable.get("name")?.as_str()))
    {
        let env = ours.entry("env").or_insert_with(|| json!({}));
        if let Value::Object(env) = env {
            env.entry(name).or_insert_with(|| format!("${{{name}:-}}").into());
        }
    }
}

/// Codex has headers in two tables: literal ones, and variables that hold secret ones.
fn codex_headers(theirs: &Map<String, Value>, ours: &mut Map<String, Value>) {
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

/// Replaces placeholders that only editors resolve: folders, and prompts to the user.
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
    let mut filled = text.replace("${userHome}", &places.home.display().to_string());
    // Without a project it stays: `ptc` fills in the folder that it runs in.
    if let Some(project) = &places.project {
        filled = filled.replace("${workspaceFolder}", &project.display().to_string());
    }
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

    fn convert_entry(host: Host, entry: Value) -> (Value, Vec<String>) {
        let Converted { entry, notes } =
            convert(&entry, host, &HostFolders::in_tests(), None).expect("an entry");
        (entry.into(), notes)
    }

    fn converted(entry: Value) -> (Value, Vec<String>) {
        convert_entry(Host::Cursor, entry)
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
        let (ours, notes) = convert_entry(Host::Codex, entry);
        let headers = json!({ "X-Region": "eu", "X-Key": "${KEY}", "Authorization": "Bearer ${TOKEN}" });
        assert_eq!(ours, json!({ "url": "https://h/mcp", "headers": headers }));
        assert!(notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn codex_settings_have_their_counterparts() {
        let entry = json!({ "command": "x", "env_vars": ["HOST", { "name": "USER", "source": "local" }],
            "startup_timeout_sec": 2.5, "required": true, "tool_timeout_sec": 60, "enabled_tools": ["a"],
            "enabled": false });
        let (ours, _) = convert_entry(Host::Codex, entry);
        assert_eq!(
            ours,
            json!({ "command": "x", "required": true, "disabled": true,
                "env": { "HOST": "${HOST:-}", "USER": "${USER:-}" }, "handshake_timeout_ms": 2500, "request_timeout_ms": 60000, "tools": { "allow": ["a"] } })
        );
    }

    #[test]
    fn remote_servers_keep_their_headers() {
        let (ours, notes) =
            converted(json!({ "serverUrl": "https://x/mcp", "headers": { "Authorization": "Bearer s" } }));
        let headers = json!({ "Authorization": "Bearer s" });
        assert_eq!(ours, json!({ "url": "https://x/mcp", "headers": headers }));
        assert!(notes[0].starts_with("headers Authorization was copied"), "{notes:?}");
        // Where a host does not name a server's transport, neither do we.
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
        let convert = |entry: Value| convert(&entry, Host::Cursor, &HostFolders::in_tests(), None);
        assert!(convert(json!({})).is_err() && convert(json!(1)).is_err());
    }

    #[test]
    fn paths_of_a_project_stay_its_own() {
        let base = Path::new("/p");
        let cwd = |entry: Value| {
            let converted =
                convert(&entry, Host::Cursor, &HostFolders::in_tests(), Some(base)).expect("an entry");
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

    #[test]
    fn what_is_not_taken_over_is_told() {
        let (ours, notes) = convert_entry(
            Host::Gemini,
            json!({ "command": "x", "args": ["$A-${B}-$1", "pa$word"], "env": { "T": "$T", "Z": null }, "timeout": 9 }),
        );
        let expected = json!({ "command": "x", "args": ["${A}-${B}-$1", "pa${word:-$word}"], "env": { "T": "${T}" },
            "request_timeout_ms": 9 });
        assert_eq!((ours, notes.len()), (expected, 0));
        let (ours, notes) = convert_entry(
            Host::Opencode,
            json!({ "type": "remote", "url": "https://h", "headers": { "K": "{file:~/.keys/api-key.txt}" }, "oauth": false }),
        );
        assert_eq!(ours, json!({ "url": "https://h", "headers": { "K": "${API_KEY}" } }));
        assert_eq!(notes, ["the file ~/.keys/api-key.txt is not read: export what is in it as API_KEY"]);
        let (ours, notes) = convert_entry(
            Host::Goose,
            json!({ "type": "stdio", "cmd": "x", "env_keys": ["K"], "timeout": 2, "available_tools": [], "name": "n" }),
        );
        assert_eq!(ours, json!({ "command": "x", "env": { "K": "${K}" }, "request_timeout_ms": 2000 }));
        assert_eq!(notes, ["Goose keeps K in its own store of secrets: export it"]);
        let (ours, notes) =
            convert_entry(Host::Copilot, json!({ "type": "local", "command": "x", "tools": [], "new": 1 }));
        assert_eq!(ours, json!({ "command": "x", "tools": { "allow": [] } }));
        assert_eq!(notes, ["tools is empty: it has no tools there, and none here", "new is not taken over"]);
        let (_, notes) = converted(json!({ "url": "https://h", "auth": { "CLIENT_SECRET": "s3cret" } }));
        assert!(notes.len() == 1 && notes[0].starts_with("auth is not taken over"), "{notes:?}");
    }
}
