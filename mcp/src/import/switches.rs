//! Finds the servers and tools that the user has switched off in another MCP client application, such as Claude Code,
//! and disables them in the imported configuration too. Only switches outside of the servers' own entries are read
//! here.

use super::convert::Converted;
use super::hosts::{EntryDialect, Host, HostFolders};
use super::source;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Lists of disabled servers, by host: the keys from the root of the file, and whether the list only applies to
/// servers of the project's own file.
const OFF: &[(Host, &[&str], bool)] = &[
    (Host::ClaudeCode, &["disabledMcpServers"], false),
    (Host::ClaudeCode, &["disabledMcpjsonServers"], true),
    (Host::Gemini, &["mcp", "excluded"], false),
    (Host::Gemini, &["excludeMCPServers"], false),
];

/// Lists of the only enabled servers.
const ON: &[(Host, &[&str])] = &[(Host::Gemini, &["mcp", "allowed"]), (Host::Gemini, &["allowMCPServers"])];

/// The lists of a host that name its only enabled servers, by their keys from the root of a file.
pub fn only_lists(host: Host) -> impl Iterator<Item = &'static [&'static str]> {
    ON.iter().filter(move |(of, _)| *of == host).map(|(_, key)| *key)
}

/// The switches in a host's files.
pub struct Switches {
    host: Host,
    /// The user's files first, since a project's override them. Within a file the project's part comes last.
    roots: Vec<Value>,
}

impl Switches {
    /// Reads them. An unreadable file is reported where its servers are read.
    pub fn read(host: Host, places: &HostFolders, read: impl Fn(&Path) -> Option<String>) -> Switches {
        let mut files: Vec<PathBuf> = host.files(places).into_iter().map(|file| file.path).collect();
        if host == Host::ClaudeCode {
            let settings = [".claude/settings.local.json", ".claude/settings.json"];
            files.extend(places.project.iter().flat_map(|project| settings.map(|name| project.join(name))));
            let of_user = places.claude.clone().unwrap_or_else(|| places.home.join(".claude"));
            files.push(of_user.join("settings.json"));
        }
        let mut roots = Vec::new();
        for path in files.iter().rev() {
            let text = read(path);
            let Some(root) = text.and_then(|text| source::read_root(&text, host.format().syntax).ok()) else {
                continue;
            };
            let project = places.project.as_ref();
            let project = project.and_then(|project| root.get("projects")?.get(project.to_str()?)).cloned();
            roots.push(root);
            roots.extend(project);
        }
        Switches { host, roots }
    }

    /// Disables what the host has disabled, and notes the key that says so.
    pub fn apply(&self, name: &str, of_project: bool, converted: &mut Converted) {
        let reason = self.off(name, of_project).or_else(|| self.tools(name, converted));
        if let Some(key) = reason
            && converted.entry.get("disabled") != Some(&Value::Bool(true))
        {
            converted.entry.insert("disabled".into(), true.into());
            converted.notes.push(format!("switched off there by {key}, and here too"));
        }
    }

    /// The key that switches a server off.
    pub fn off(&self, name: &str, of_project: bool) -> Option<String> {
        let has = |list: &Value| list.as_array().is_some_and(|names| names.iter().any(|known| known == name));
        let off = OFF
            .iter()
            .filter(|(host, _, only_project)| *host == self.host && (of_project || !only_project))
            .find(|(_, key, _)| self.lists(key).any(has));
        if let Some((_, key, _)) = off {
            return Some(key.join("."));
        }
        let on = ON.iter().filter(|(host, _)| *host == self.host);
        // The nearest list counts.
        on.filter_map(|(_, key)| Some((key, self.lists(key).last()?)))
            .find(|(_, list)| !has(list))
            .map(|(key, _)| key.join("."))
    }

    fn lists(&self, key: &[&str]) -> impl Iterator<Item = &Value> {
        self.roots.iter().filter_map(move |root| key.iter().try_fold(root, |value, part| value.get(part)))
    }

    /// Applies opencode's switches for tools, which are named after their servers; the last rule counts.
    /// Returns the key if no tool is left.
    fn tools(&self, server: &str, converted: &mut Converted) -> Option<String> {
        if self.host.format().dialect != EntryDialect::Opencode {
            return None;
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let prefix: String = server.chars().map(|c| if is_part(c) { c } else { '_' }).chain(['_']).collect();
        let mut rule = ToolRule::default();
        let mut last = None;
        for key in ["tools", "permission"] {
            for (pattern, value) in self.lists(&[key]).filter_map(Value::as_object).flatten() {
                let is_on = *value != json!(false) && *value != json!("deny");
                let Some(tool) = below(pattern, &prefix) else { continue };
                if !is_on {
                    last = Some(key);
                }
                rule.add(&tool, is_on);
            }
        }
        let key = last?;
        match rule {
            ToolRule::Only(tools) if tools.is_empty() => return Some(key.to_owned()),
            ToolRule::Only(tools) => converted.entry.insert("tools".into(), json!({ "allow": tools })),
            ToolRule::Without(tools) if tools.is_empty() => return None,
            ToolRule::Without(tools) => converted.entry.insert("tools".into(), json!({ "block": tools })),
        };
        None
    }
}

/// The switches of single projects, which say nothing about other folders.
pub struct ProjectSwitches {
    of_user: Switches,
    /// The working directory with all that counts there.
    here: Option<(PathBuf, Switches)>,
}

impl ProjectSwitches {
    /// Reads those of the working directory, and those that the user's files have for any project.
    pub fn read(host: Host, places: &HostFolders, read: impl Fn(&Path) -> Option<String>) -> ProjectSwitches {
        let here = places.project.clone().map(|project| (project, Switches::read(host, places, &read)));
        ProjectSwitches { of_user: Switches::read(host, &places.of_user(), &read), here }
    }

    /// The projects in which a server of the user is switched off, each with the key that says so.
    pub fn off(&self, name: &str) -> Vec<(String, String)> {
        if self.of_user.off(name, false).is_some() {
            return Vec::new();
        }
        let here = self.here.iter().filter_map(|(project, switches)| {
            Some((project.display().to_string(), switches.off(name, false)?))
        });
        let projects =
            self.of_user.roots.iter().filter_map(|root| root.get("projects")?.as_object()).flatten();
        let elsewhere = projects.filter_map(|(project, part)| {
            let part = Switches { host: self.of_user.host, roots: vec![part.clone()] };
            Some((project.clone(), part.off(name, false)?))
        });
        let all: BTreeMap<String, String> = elsewhere.chain(here).collect();
        all.into_iter().collect()
    }
}

/// The part of a pattern after `prefix`, which selects tools of that server.
fn below(pattern: &str, prefix: &str) -> Option<String> {
    if let Some(tool) = pattern.strip_prefix(prefix) {
        return Some(tool.to_owned());
    }
    let star = pattern.find('*')?;
    prefix.starts_with(&pattern[..star]).then(|| pattern[star..].to_owned())
}

/// Which tools are left after some rules.
enum ToolRule {
    Only(Vec<String>),
    Without(Vec<String>),
}

impl Default for ToolRule {
    fn default() -> ToolRule {
        ToolRule::Without(Vec::new())
    }
}

impl ToolRule {
    fn add(&mut self, tool: &str, is_on: bool) {
        match (self, is_on) {
            (rule, true) if tool == "*" => *rule = ToolRule::Without(Vec::new()),
            (rule, false) if tool == "*" => *rule = ToolRule::Only(Vec::new()),
            (ToolRule::Only(tools), true) | (ToolRule::Without(tools), false) => tools.push(tool.to_owned()),
            (ToolRule::Only(tools), false) | (ToolRule::Without(tools), true) => {
                tools.retain(|known| known != tool);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::merge::Import;
    use super::*;
    use serde_json::Map;

    /// The new entries of a host with these files, and the number of notes.
    fn import(host: Host, files: &[(&str, &str)]) -> (Value, usize) {
        let places = HostFolders::in_tests();
        let read = |path: &Path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).into())
        };
        let import = Import::collect(&[host], &places, Map::new(), |path| Ok(read(path)));
        let found = import.files.iter().flat_map(|file| file.servers.as_ref().expect("servers"));
        let notes = found.map(|found| found.notes.len()).sum();
        (import.servers.into(), notes)
    }

    #[test]
    fn what_is_off_there_is_off_here() {
        let off = json!({ "command": "x", "disabled": true });
        let on = json!({ "command": "x" });
        let three = r#"{"a": {"command": "x"}, "b": {"command": "x"}, "c": {"command": "x"}}"#;
        let claude = import(
            Host::ClaudeCode,
            &[
                ("/p/.mcp.json", r#"{"mcpServers": {"m": {"command": "x"}}}"#),
                ("/p/.claude/settings.local.json", r#"{"disabledMcpjsonServers": ["m", "b"]}"#),
                (
                    "/h/.claude.json",
                    &format!(
                        r#"{{"mcpServers": {three}, "projects": {{"/p": {{"disabledMcpServers": ["a"]}}}}}}"#
                    ),
                ),
            ],
        );
        assert_eq!(claude, (json!({ "m": off, "a": off, "b": on, "c": on }), 2));
        let gemini = import(
            Host::Gemini,
            &[
                ("/p/.gemini/settings.json", r#"{"mcp": {"allowed": ["a", "b"]}}"#),
                (
                    "/h/.gemini/settings.json",
                    &format!(r#"{{"mcpServers": {three}, "mcp": {{"excluded": ["b"]}}}}"#),
                ),
            ],
        );
        assert_eq!(gemini, (json!({ "a": on, "b": off, "c": off }), 2));
        let opencode = import(
            Host::Opencode,
            &[(
                "/p/opencode.json",
                r#"{"mcp": {"a": {"command": ["x"]}, "b": {"command": ["x"]}, "c.d": {"command": ["x"]}},
                    "tools": {"a_x": false, "b*": false, "bash": false, "c_*": false, "c_d_y": true}}"#,
            )],
        );
        let a = json!({ "command": "x", "args": [], "tools": { "block": ["x"] } });
        let b = json!({ "command": "x", "args": [], "disabled": true });
        let c = json!({ "command": "x", "args": [], "tools": { "allow": ["y"] } });
        assert_eq!(opencode, (json!({ "a": a, "b": b, "c.d": c }), 1));
    }
}
