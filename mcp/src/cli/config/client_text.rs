//! Reads and edits the text of a client's configuration file (JSON or TOML) for `ptc install`: puts the entry of `ptc` in,
//! takes it out, and does so with the client's own servers.

use super::target::path_text;
use crate::import::edit::JsonFile;
use crate::import::hosts::{EntryDialect, Host, Syntax};
use crate::import::own::starts_ptc;
use crate::import::source;
use crate::import::switches::only_lists;
use ptc_server::console::Abort;
use ptc_upstream::config;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The name of the entry.
pub(super) const NAME: &str = "ptc";

/// The entry in the client's dialect, for the servers in this file or those in the file that is used by default.
///
/// # Errors
/// A path in it is not UTF-8.
pub(super) fn entry(client: Host, upstreams_config: Option<&Path>) -> Result<Value, Abort> {
    let program = path_text(&std::env::current_exe()?)?;
    let mut arguments = vec!["serve".to_owned()];
    let named: Vec<PathBuf> = upstreams_config.iter().map(|path| path.to_path_buf()).collect();
    for file in config::find(&named) {
        if named.is_empty() && config::default_file().as_ref() == Some(&file) {
            continue;
        }
        arguments.extend(["--upstreams-config".to_owned(), path_text(&std::path::absolute(&file)?)?]);
    }
    Ok(match (client, client.format().dialect) {
        (_, EntryDialect::Opencode) => {
            let command: Vec<String> = std::iter::once(program).chain(arguments).collect();
            json!({ "type": "local", "command": command, "enabled": true })
        }
        (Host::Copilot, _) => {
            json!({ "type": "local", "command": program, "args": arguments, "tools": ["*"] })
        }
        (Host::Vscode, _) => json!({ "type": "stdio", "command": program, "args": arguments }),
        (_, EntryDialect::Zed) => {
            json!({ "source": "custom", "command": program, "args": arguments, "env": {} })
        }
        (_, EntryDialect::Goose) => {
            json!({ "name": NAME, "type": "stdio", "cmd": program, "args": arguments, "enabled": true })
        }
        (_, EntryDialect::Usual) => json!({ "command": program, "args": arguments }),
    })
}

/// The entry in the syntax of the client's file, to be shown.
pub(super) fn written(client: Host, entry: &Value) -> String {
    let key = client.format().key;
    match client.format().syntax {
        Syntax::Json | Syntax::JsonWithProjects => format!("{:#}", json!({ key: { NAME: entry } })),
        Syntax::Toml => table(key, entry).trim().to_owned(),
        Syntax::Yaml => {
            let lines = entry.as_object().into_iter().flatten();
            // JSON values are valid YAML.
            let lines: String = lines.map(|(name, value)| format!("\n    {name}: {value}")).collect();
            format!("{key}:\n  {NAME}:{lines}")
        }
    }
}

/// The text with the entry, and with `ptc` in the lists that name the only servers the client starts.
///
/// # Errors
/// Another entry has the name, or the text cannot be edited.
pub(super) fn with(client: Host, text: &str, entry: &Value) -> Result<String, String> {
    let format = client.format();
    let is_there = |there: &Map<String, Value>| match there.get(NAME) {
        Some(same) if same == entry => Ok(true),
        Some(other) if starts_ptc(other, None) => Err(format!(
            "its entry {NAME} starts ptc in another way; `ptc install {} --undo` takes it out",
            client.key()
        )),
        Some(_) => Err(format!("it has an entry {NAME} already")),
        None => Ok(false),
    };
    match format.syntax {
        Syntax::Json | Syntax::JsonWithProjects => {
            let file = JsonFile::read(text)?;
            if !is_there(&file.entries(format.key))? {
                file.set(format.key, NAME, entry)?;
            }
            only_lists(client).for_each(|list| file.add_to_list(list, NAME));
            let new = file.text();
            let is_same = new.trim() == text.trim_start_matches('\u{feff}').trim();
            Ok(if is_same { text.to_owned() } else { new })
        }
        Syntax::Toml => {
            if is_there(&entries(client, text)?)? {
                return Ok(text.to_owned());
            }
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            let new = format!("{text}{gap}{}", table(format.key, entry));
            // An inline table cannot be extended by another table.
            match entries(client, &new) {
                Ok(entries) if entries.get(NAME) == Some(entry) => Ok(new),
                _ => Err(format!("a table cannot be added below {}, which is in braces there", format.key)),
            }
        }
        Syntax::Yaml => {
            Err(format!("its files are not written; add the server with {}'s own settings", client.label()))
        }
    }
}

/// The entry as a TOML table. Strings and lists of strings have the same notation as in JSON.
fn table(key: &str, entry: &Value) -> String {
    let mut table = format!("\n[{key}.{NAME}]\n");
    // A sorted map gives the same order for every source.
    let keys: std::collections::BTreeMap<_, _> = entry.as_object().into_iter().flatten().collect();
    for (name, value) in keys {
        table.push_str(&format!("{name} = {value}\n"));
    }
    table
}

/// The servers of a client's file. The error says what is wrong with it.
pub(super) fn entries(client: Host, text: &str) -> Result<Map<String, Value>, String> {
    let format = client.format();
    match format.syntax {
        Syntax::Json | Syntax::JsonWithProjects => Ok(JsonFile::read(text)?.entries(format.key)),
        syntax => match source::read_root(text, syntax)?.get(format.key) {
            None => Ok(Map::new()),
            Some(Value::Object(entries)) => Ok(entries.clone()),
            Some(_) => Err(format!("{} holds something else than servers", format.key)),
        },
    }
}

/// The text without the entry. `before` is the text before the entry was put in, if it is known: lists that named `ptc`
/// there go on doing so.
///
/// # Errors
/// The text cannot be edited.
pub(super) fn without(
    client: Host,
    text: &str,
    entry: Option<&Value>,
    before: Option<&str>,
) -> Result<String, String> {
    let format = client.format();
    if format.syntax == Syntax::Toml {
        let Some(entry) = entry else { return Ok(text.to_owned()) };
        let table = table(format.key, entry);
        return match text.split_once(&table) {
            Some((before, after)) => Ok(format!("{before}{after}")),
            None => Err(format!("the entry {NAME} was changed by hand: remove it by hand")),
        };
    }
    let file = JsonFile::read(text)?;
    let before = before.and_then(|before| JsonFile::read(before).ok());
    if entry.is_some() {
        file.remove(format.key, NAME);
    }
    for list in only_lists(client) {
        if !before.as_ref().is_some_and(|before| before.has_in_list(list, NAME)) {
            file.remove_from_list(list, NAME);
        }
    }
    Ok(file.text())
}

/// What an edit of the client's file would change in place of what the client reads.
pub(super) fn doubled(client: Host, text: &str) -> Option<String> {
    let format = client.format();
    if !matches!(format.syntax, Syntax::Json | Syntax::JsonWithProjects) {
        return None;
    }
    let file = JsonFile::read(text).ok()?;
    let lists = only_lists(client).filter_map(|list| file.doubled_below(list.first()?));
    file.doubled_below(format.key).or_else(|| lists.into_iter().next())
}

/// The text of a JSON file without these servers.
pub(super) fn without_all(client: Host, text: &str, servers: &Map<String, Value>) -> Result<String, String> {
    let file = JsonFile::read(text)?;
    for name in servers.keys() {
        file.remove(client.format().key, name);
    }
    Ok(file.text())
}

/// The text of a JSON file with these servers.
pub(super) fn with_all(client: Host, text: &str, servers: &Map<String, Value>) -> Result<String, String> {
    let file = JsonFile::read(text)?;
    for (name, entry) in servers {
        file.set(client.format().key, name, entry)?;
    }
    Ok(file.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_can_be_taken_out() {
        let entry = json!({ "command": "/bin/ptc", "args": ["serve"] });
        for (client, text) in [
            (Host::Cursor, "{\n  // mine\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}\n"),
            (Host::Codex, "model = \"m\" # mine\n"),
            (Host::Gemini, "{\n  \"theme\": \"dark\"\n}\n"),
        ] {
            let new = with(client, text, &entry).unwrap();
            assert_eq!(entries(client, &new).unwrap().get(NAME), Some(&entry), "{new}");
            assert_eq!(with(client, &new, &entry).as_ref(), Ok(&new), "it is there");
            let other = json!({ "command": "/other/program" });
            assert!(with(client, &new, &other).unwrap_err().contains("--undo"));
            let old = without(client, &new, Some(&entry), None).unwrap();
            assert!(!entries(client, &old).unwrap().contains_key(NAME), "{old}");
            assert!(!text.contains("mine") || old.contains("mine"), "{old}");
        }
        assert!(with(Host::Goose, "", &entry).is_err());
    }
}
