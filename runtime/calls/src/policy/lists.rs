//! Filters the tools of a server by the allow and block lists of its configuration entry, and in read-only operation
//! admits only tools that are annotated as read-only.
//!
//! The lists are applied where tool lists are made, so a refused tool exists for no front end. Requests for
//! resources and prompts are named by their methods (`resources/read`).

use super::look_alikes::look_alike;
use crate::run::outcome::Effect;
use crate::tools::{CallTarget, Listed, Refusal, ToolList, UpstreamTool, glob, nearest, qualified_name};

/// Notes of one kind about the tools of one server.
const NOTES: usize = 20;

/// The rules of one server. All of them must admit a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    rules: Vec<NameRule>,
    read_only: bool,
}

/// A list of names; tools that it does not decide about are admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Only tools that match one of these.
    Allow(Vec<ToolPattern>),
    /// No tool that matches one of these.
    Block(Vec<ToolPattern>),
}

/// A pattern for tool names: `*` stands for any characters, `?` for one. Written as `tool`, `server/tool` or
/// `mcp__server__tool`, the last with the names as they are or as [`qualified_name`] writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern {
    text: String,
}

impl ToolPolicy {
    /// Adds a rule.
    #[must_use]
    pub fn with_rule(mut self, rule: NameRule) -> ToolPolicy {
        self.rules.push(rule);
        self
    }

    /// With `true`, admits only tools that are annotated as read-only.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> ToolPolicy {
        ToolPolicy { read_only, ..self }
    }

    /// The tools of `server` that exist under these lists; of two tools with one name the first counts.
    pub fn admit(&self, server: &str, listed: impl Into<Listed>) -> ToolList {
        ToolList::new(self.admitted(server, listed.into()))
    }

    /// [`ToolPolicy::admit`] before it is a list.
    pub fn admitted(&self, server: &str, mut listed: Listed) -> Listed {
        // If the list was cut, missing names cannot be reported.
        if listed.cut.is_none() {
            let named = listed.tools.iter().map(|tool| &*tool.name);
            let names: Vec<&str> = named.chain(listed.refused.iter().map(|(name, _)| &**name)).collect();
            let notes = self.unmatched(server, &names);
            listed.notes.extend(notes);
        }
        let look_alikes = listed.tools.iter().filter_map(|tool| {
            let read = look_alike(&tool.name)?;
            Some(format!("the tool {} has letters that look like others: it is read as {read}", tool.name))
        });
        listed.notes.extend(look_alikes.take(NOTES));
        let refusal = |tool: &UpstreamTool| Some((tool.name.clone(), self.refusal(server, tool)?));
        let refused: Vec<_> = listed.tools.iter().filter_map(refusal).collect();
        listed.tools.retain(|tool| self.refusal(server, tool).is_none());
        listed.refused.extend(refused);
        listed.refused_requests = self.refused_requests(server).collect();
        listed
    }

    /// Why a tool of `server` may not be called; `None` when it may.
    pub fn refusal(&self, server: &str, tool: &UpstreamTool) -> Option<Refusal> {
        let is_writing = self.read_only && tool.effect() != Effect::Read;
        self.refusal_by_name(server, &tool.name).or(is_writing.then_some(Refusal::NotReadOnly))
    }

    /// The requests for resources and prompts that `server` may not be sent; all of them are read-only. The
    /// lists name them by their methods, so an allow list refuses those that it does not name.
    pub fn refused_requests(&self, server: &str) -> impl Iterator<Item = (&'static str, Refusal)> {
        CallTarget::METHODS
            .into_iter()
            .filter_map(move |method| Some((method, self.refusal_by_name(server, method)?)))
    }

    /// Patterns that name this server and match none of these tools: they have no effect, which may be an
    /// error.
    fn unmatched(&self, server: &str, names: &[&str]) -> Vec<String> {
        let mut notes = Vec::new();
        for rule in &self.rules {
            let (list, patterns) = match rule {
                NameRule::Allow(patterns) => ("tools.allow", patterns),
                NameRule::Block(patterns) => ("tools.block", patterns),
            };
            let of_server = patterns.iter().filter_map(|pattern| Some((pattern, pattern.tool_of(server)?)));
            for (pattern, tool) in of_server {
                if !tool.contains(['*', '?']) && !names.iter().any(|name| pattern.matches(server, name)) {
                    let near = nearest(tool, names);
                    let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                    notes.push(format!(
                        "{list} names {}, and the server has no such tool{near}",
                        pattern.text
                    ));
                }
            }
        }
        notes
    }

    fn refusal_by_name(&self, server: &str, name: &str) -> Option<Refusal> {
        for rule in &self.rules {
            let matches =
                |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.matches(server, name));
            match rule {
                NameRule::Allow(patterns) if !matches(patterns) => return Some(Refusal::NotAllowed),
                NameRule::Block(patterns) if matches(patterns) => return Some(Refusal::Blocked),
                NameRule::Allow(_) | NameRule::Block(_) => {}
            }
        }
        None
    }
}

impl ToolPattern {
    /// Reads a pattern.
    pub fn new(text: impl Into<String>) -> ToolPattern {
        ToolPattern { text: text.into() }
    }

    /// The part of the pattern for tools, if its part for servers matches.
    fn tool_of(&self, server: &str) -> Option<&str> {
        let qualified = qualified_name(server, "");
        let own = [format!("mcp__{server}__"), qualified, format!("{server}/")];
        own.iter().find_map(|prefix| self.text.strip_prefix(prefix.as_str()))
    }

    /// True when it matches this tool of this server.
    pub fn matches(&self, server: &str, tool: &str) -> bool {
        let text = self.text.as_str();
        if glob(text, tool) {
            return true;
        }
        if text.starts_with("mcp__") {
            return glob(text, &format!("mcp__{server}__{tool}"))
                || glob(text, &qualified_name(server, tool));
        }
        text.contains('/') && glob(text, &format!("{server}/{tool}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn three_spellings_name_a_tool() {
        for text in ["read", "fs/read", "mcp__fs__read", "fs/*", "mcp__fs__*", "*/read", "r*"] {
            assert!(ToolPattern::new(text).matches("fs", "read"), "{text}");
        }
        for text in ["db/read", "mcp__db__read", "fs", "fs/write", "mcp__fs__write"] {
            assert!(!ToolPattern::new(text).matches("fs", "read"), "{text}");
        }
        for text in ["mcp__internal_apis__delete_it", "mcp__internal-apis__delete.it"] {
            assert!(ToolPattern::new(text).matches("internal-apis", "delete.it"), "{text}");
        }
    }

    #[test]
    fn all_rules_must_admit_a_tool() {
        let tool = |name: &str, annotations| {
            serde_json::from_value::<UpstreamTool>(json!({"name": name, "annotations": annotations})).unwrap()
        };
        let read = tool("read", json!({"readOnlyHint": true}));
        let write = tool("write", json!({"destructiveHint": true}));
        let vague = tool("vague", json!(null));
        let patterns = |texts: &[&str]| texts.iter().map(|text| ToolPattern::new(*text)).collect();
        let policy = ToolPolicy::default()
            .with_rule(NameRule::Allow(patterns(&["read", "write"])))
            .with_rule(NameRule::Block(patterns(&["fs/w*"])));
        assert_eq!(policy.refusal("fs", &read), None);
        assert_eq!(policy.refusal("fs", &write), Some(Refusal::Blocked));
        assert_eq!(policy.refusal("db", &write), None);
        assert_eq!(policy.refusal("fs", &vague), Some(Refusal::NotAllowed));
        let read_only = ToolPolicy::default().read_only(true);
        assert_eq!(read_only.refusal("fs", &read), None);
        for tool in [&write, &vague] {
            assert_eq!(read_only.refusal("fs", tool), Some(Refusal::NotReadOnly));
        }
    }

    #[test]
    fn names_that_decide_nothing_are_told() {
        let list = |names: &[&str]| names.iter().map(|name| ToolPattern::new(*name)).collect::<Vec<_>>();
        let policy = ToolPolicy::default().with_rule(NameRule::Block(list(&[
            "mcp__financial_data__nosuch",
            "mcp__financial_data__naq",
            "financial-data/nap",
            "financial-data/x*",
            "other/tool",
            "plain",
        ])));
        assert_eq!(
            policy.unmatched("financial-data", &["nap", "query"]),
            [
                "tools.block names mcp__financial_data__nosuch, and the server has no such tool",
                "tools.block names mcp__financial_data__naq, and the server has no such tool; did you mean nap?"
            ]
        );
        assert!(policy.unmatched("web", &["nap"]).is_empty());
    }
}
