//! Matches names of tools against the patterns of policy rules: `tool`, `server/tool` or `mcp__server__tool`, with `*`
//! and `?`.
//!
//! In `server/tool` a slash in the name of the server is `~1`, and `~` is `~0` (as in RFC 6901), so each text names
//! tools of one server only. A rule that denies or asks also applies where the slash is not escaped, and to names that
//! look alike.

use super::look_alikes::{forms, is_alike};
use crate::tools::glob::{glob, glob_by};
use crate::tools::qualified_name;

/// A name of tools.
#[derive(Clone, Debug)]
pub(super) struct RulePattern {
    text: String,
    exact: Spelling,
    /// The same in the forms of [`forms`].
    loose: [Spelling; 3],
}

/// How a pattern names tools.
#[derive(Clone, Debug)]
enum Spelling {
    /// A tool of any server.
    Tool(String),
    /// `server/tool`.
    OfServer { server: String, tool: String, text: String },
    /// `mcp__server__tool`.
    Qualified(String),
}

/// How exactly a name has to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exactness {
    /// As it is written: for rules that allow.
    Exact,
    /// Also in another case, with look-alike letters, or with invisible characters: for rules that deny or ask.
    Loose,
}

impl Spelling {
    fn new(text: &str, exactness: Exactness) -> Spelling {
        let is_qualified = glob_as(exactness)("mcp__*", text);
        match text.split_once('/') {
            _ if is_qualified => Spelling::Qualified(text.to_owned()),
            Some((server, tool)) => Spelling::OfServer {
                server: server.replace("~1", "/").replace("~0", "~"),
                tool: tool.to_owned(),
                text: text.to_owned(),
            },
            None => Spelling::Tool(text.to_owned()),
        }
    }

    fn matches(&self, server: &str, tool: &str, exactness: Exactness) -> bool {
        let glob = glob_as(exactness);
        match self {
            Spelling::Tool(name) => glob(name, tool),
            Spelling::OfServer { server: of, tool: name, text } => {
                let is_split_at = |(at, _)| glob(&text[..at], server) && glob(&text[at + 1..], tool);
                (glob(of, server) && glob(name, tool))
                    || (exactness == Exactness::Loose && text.match_indices('/').any(is_split_at))
            }
            Spelling::Qualified(name) => {
                // A server may list both `get.x` and `get_x`, which have one qualified name.
                glob(name, &format!("mcp__{server}__{tool}"))
                    || glob(name, &(qualified_name(server, "") + tool))
                    || (exactness == Exactness::Loose && glob(name, &qualified_name(server, tool)))
            }
        }
    }
}

impl RulePattern {
    pub(super) fn new(text: &str) -> RulePattern {
        let loose = forms(text).map(|form| Spelling::new(&form, Exactness::Loose));
        RulePattern { text: text.to_owned(), exact: Spelling::new(text, Exactness::Exact), loose }
    }

    /// As it is written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// True when it names this tool of this server.
    pub(super) fn matches(&self, server: &str, tool: &str, exactness: Exactness) -> bool {
        match exactness {
            Exactness::Exact => self.exact.matches(server, tool, exactness),
            // Names that a glob takes as they are written may be longer or shorter as they are drawn.
            Exactness::Loose => {
                let (servers, tools) = (forms(server), forms(tool));
                let mut names = servers.iter().zip(&tools);
                self.exact.matches(server, tool, exactness)
                    || self.loose.iter().any(|pattern| {
                        names.next().is_some_and(|(server, tool)| pattern.matches(server, tool, exactness))
                    })
            }
        }
    }

    /// True when it may name tools of this server.
    pub(super) fn names_server(&self, server: &str) -> bool {
        match &self.exact {
            Spelling::Tool(_) => true,
            Spelling::OfServer { server: of, .. } => glob(of, server),
            Spelling::Qualified(name) => {
                let own = [format!("mcp__{server}__"), qualified_name(server, "")];
                own.iter().any(|prefix| may_begin_with(name, prefix))
            }
        }
    }

    /// True when it names tools alone.
    pub(super) fn is_of_any_server(&self) -> bool {
        matches!(self.exact, Spelling::Tool(_))
    }

    /// True if it is the name of one tool, without a server.
    pub(super) fn is_bare_name(&self) -> bool {
        self.is_of_any_server() && !self.text.contains(['*', '?'])
    }

    /// The part that names servers, for suggestions.
    pub(super) fn server_part(&self) -> &str {
        match &self.exact {
            Spelling::Tool(_) => "*",
            Spelling::OfServer { server, .. } => server,
            Spelling::Qualified(name) => {
                let rest = name.strip_prefix("mcp__").unwrap_or(name);
                rest.split_once("__").map_or(rest, |(server, _)| server)
            }
        }
    }

    /// The part that names tools, for suggestions.
    pub(super) fn tool_part(&self) -> &str {
        match &self.exact {
            Spelling::Tool(tool) | Spelling::OfServer { tool, .. } => tool,
            Spelling::Qualified(name) => {
                let rest = name.strip_prefix("mcp__").unwrap_or(name);
                rest.split_once("__").map_or(rest, |(_, tool)| tool)
            }
        }
    }
}

/// How texts are compared with patterns.
fn glob_as(exactness: Exactness) -> fn(&str, &str) -> bool {
    match exactness {
        Exactness::Exact => glob,
        Exactness::Loose => |pattern, text| glob_by(pattern, text, is_alike),
    }
}

/// True if a text that begins with `prefix` can match this glob.
fn may_begin_with(pattern: &str, prefix: &str) -> bool {
    // Everything after the prefix is open, so the pattern may end anywhere.
    let ends = pattern.char_indices().map(|(at, c)| at + c.len_utf8());
    std::iter::once(0).chain(ends).any(|end| glob(&pattern[..end], prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_names_a_tool_of_its_server_alone() {
        for text in ["read", "fs/read", "mcp__fs__read", "fs/*", "mcp__fs__*", "*/read", "r*", "f?/re*"] {
            let pattern = RulePattern::new(text);
            assert!(pattern.matches("fs", "read", Exactness::Exact), "{text}");
            assert!(pattern.names_server("fs"), "{text}");
        }
        for text in ["db/read", "mcp__db__read", "fs", "fs/write", "mcp__fs__write", "Fs/read", "fs/Read"] {
            assert!(!RulePattern::new(text).matches("fs", "read", Exactness::Exact), "{text}");
        }
        // A server cannot take the name of another server's tool.
        assert!(!RulePattern::new("fs/read").matches("evil", "fs/read", Exactness::Exact));
        let qualified = RulePattern::new("mcp__internal_apis__delete_it");
        assert!(qualified.matches("internal-apis", "delete_it", Exactness::Exact));
        // A rule that allows one tool does not allow another with the same qualified name; one that denies it does.
        assert!(!qualified.matches("internal-apis", "delete.it", Exactness::Exact));
        assert!(qualified.matches("internal-apis", "delete.it", Exactness::Loose));
        assert!(!RulePattern::new("mcp__db__*").names_server("fs"));
    }

    #[test]
    fn a_slash_in_the_name_of_a_server_is_escaped() {
        let plain = RulePattern::new("acme/files/read");
        assert!(plain.matches("acme", "files/read", Exactness::Exact));
        assert!(!plain.matches("acme/files", "read", Exactness::Exact));
        assert!(plain.matches("acme/files", "read", Exactness::Loose));
        assert!(!plain.names_server("acme/files"));
        let escaped = RulePattern::new("acme~1files/read");
        assert!(
            escaped.matches("acme/files", "read", Exactness::Exact) && escaped.names_server("acme/files")
        );
        assert!(!escaped.matches("acme", "files/read", Exactness::Exact));
    }

    #[test]
    fn look_alikes_are_denied_and_never_allowed() {
        let pattern = RulePattern::new("github/delete_*");
        for tool in
            ["Delete_repo", "DELETE_REPO", "d\u{0435}lete_repo", "delete\u{200b}_repo", "ｄｅｌｅｔｅ＿repo"]
        {
            assert!(pattern.matches("github", tool, Exactness::Loose), "{tool}");
            assert!(!pattern.matches("github", tool, Exactness::Exact), "{tool}");
        }
        assert!(!pattern.matches("github", "undelete_repo", Exactness::Loose));
        for tool in
            ["deІete_repo", "deΙete_repo", "deӀete_repo", "del\u{2065}ete_repo", "del\u{FFF0}ete_repo"]
        {
            assert!(pattern.matches("github", tool, Exactness::Loose), "{tool}");
        }
        for (text, tool) in [
            ("s/delete*", "delete\u{301}_all"),
            ("s/drop*", "drop\u{307}table"),
            ("mcp__s__admin*", "admin\u{303}"),
            ("get_?", "get_ß"),
            ("get_?", "get_ﬁ"),
            ("get_?", "get_½"),
        ] {
            assert!(RulePattern::new(text).matches("s", tool, Exactness::Exact), "{text} {tool}");
            assert!(RulePattern::new(text).matches("s", tool, Exactness::Loose), "{text} {tool}");
        }
        for (text, tool) in [
            ("get_?", "get\u{34F}_ß"),
            ("s/delete*", "de\u{34F}lete\u{301}"),
            ("s/delete*", "\u{FF44}elete\u{301}_all"),
        ] {
            assert!(RulePattern::new(text).matches("s", tool, Exactness::Loose), "{text} {tool}");
        }
    }
}
