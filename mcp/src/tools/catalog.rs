//! Renders the configured servers and their tools as text for tool descriptions.
//!
//! Clients cache prompts that hold this text. It therefore depends only on the configuration and the tool
//! lists, in name order, and has the same bytes in every run.

use ptc_python::functions::{parameter, parameters};
use ptc_runtime::discovery::topics;
use ptc_runtime::tools::qualified_name;
use ptc_runtime::tools::text::one_line;
use ptc_runtime::tools::visible::shown_name;
use std::fmt::Write as _;

/// How much of the catalog the description shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CatalogMode {
    /// All tools when they are few, without descriptions when those take too much room, else servers only.
    #[default]
    Auto,
    /// All tools with descriptions, however many.
    Inline,
    /// Servers only.
    Lazy,
}

/// Limits of the catalog text in a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogStyle {
    /// How much to show.
    pub mode: CatalogMode,
    /// Most characters of a list of tools in mode [`CatalogMode::Auto`].
    pub inline_max_chars: usize,
    /// Most tools of such a list.
    pub inline_max_tools: usize,
}

impl Default for CatalogStyle {
    fn default() -> CatalogStyle {
        CatalogStyle { mode: CatalogMode::Auto, inline_max_chars: 800, inline_max_tools: 8 }
    }
}

/// Every configured server, in name order.
#[derive(Clone, Debug, Default)]
pub struct CatalogView {
    /// Servers.
    pub servers: Vec<ServerView>,
}

/// One configured server.
#[derive(Clone, Debug)]
pub struct ServerView {
    /// Name in `tool/call`.
    pub name: String,
    /// From the configuration; may be empty.
    pub description: String,
    /// Tools in name order; `None` until the list is loaded.
    pub tools: Option<Vec<ToolView>>,
}

/// One tool of a server.
#[derive(Clone, Debug)]
pub struct ToolView {
    /// Name as the server lists it.
    pub name: String,
    /// Its description; may be empty.
    pub description: String,
    /// Its parameters; optional ones end in `?`.
    pub parameters: String,
}

/// Characters of a server's description.
const SERVER_DESCRIPTION: usize = 80;

/// Characters of a tool's description.
const TOOL_DESCRIPTION: usize = 120;

/// Number of topics that summarise the tools of a server.
const TOPICS: usize = 3;

/// Bytes reserved for the line that counts the servers left out.
const REST_OF_SERVERS: usize = 60;

const HEADING: &str = "Configured upstream MCP servers:";

/// The notation of a language for finding and calling tools.
pub struct Wording {
    /// Formats a tool of a server as programs call it.
    tool: fn(&str, &ToolView) -> String,
    /// Says how to find tools that are not listed.
    guidance: &'static str,
    /// The expression that lists the servers left out.
    rest: &'static str,
}

/// PTC-Lisp.
pub const LISP: Wording = Wording {
    tool: |_, tool| shown_name(&tool.name).into_owned(),
    // Descriptions with a catalog begin with the other ways to find a tool.
    guidance: "\n(dir 'server) lists their tools.",
    rest: "(tool/servers)",
};

/// Python.
pub const PYTHON: Wording = Wording {
    tool: |server, tool| format!("{}({})", qualified_name(server, &tool.name), tool.parameters),
    guidance: "\nTheir functions: print(tools()) lists, tools(\"words\") searches, help(mcp__server__tool) explains.",
    rest: "tools()",
};

impl CatalogView {
    /// Converts the runtime's catalog. Its texts hold no secrets: they are redacted when a list is read.
    pub fn from_catalog(catalog: &ptc_runtime::tools::Catalog) -> CatalogView {
        let servers = catalog.servers().map(|server| ServerView {
            name: server.name.to_string(),
            description: server.about().unwrap_or_default().into_owned(),
            tools: server.tools.as_ref().map(|tools| {
                let tools = tools.iter().map(|tool| ToolView {
                    name: tool.name.to_string(),
                    description: tool.about().unwrap_or_default().to_owned(),
                    parameters: {
                        let (names, required) = parameters(tool);
                        let mark = |at| if at < required { "" } else { "?" };
                        let marked = names
                            .iter()
                            .enumerate()
                            .map(|(at, name)| format!("{}{}", parameter(name), mark(at)));
                        marked.collect::<Vec<_>>().join(", ")
                    },
                });
                tools.collect()
            }),
        });
        CatalogView { servers: servers.collect() }
    }

    /// Whether no server is configured.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Renders the catalog. The text fits into `room` bytes, except in mode [`CatalogMode::Inline`].
    pub fn render(&self, wording: &Wording, style: &CatalogStyle, room: usize) -> String {
        match style.mode {
            CatalogMode::Inline => self.render_as(wording, Detail::Descriptions),
            CatalogMode::Auto => {
                self.inline(wording, style, room).unwrap_or_else(|| self.lazy(wording, room))
            }
            CatalogMode::Lazy => self.lazy(wording, room),
        }
    }

    /// The list of tools with as many details as fit. `None` when it does not fit or a list is not loaded.
    fn inline(&self, wording: &Wording, style: &CatalogStyle, room: usize) -> Option<String> {
        let counts = self.servers.iter().map(|server| server.tools.as_ref().map(Vec::len));
        let tools: usize = counts.sum::<Option<usize>>()?;
        if tools > style.inline_max_tools {
            return None;
        }
        let fits = |text: &String| text.chars().count() <= style.inline_max_chars && text.len() <= room;
        let details = [Detail::Descriptions, Detail::Names].into_iter();
        details.map(|detail| self.render_as(wording, detail)).find(fits)
    }

    /// Servers only, and the guidance on how to find their tools.
    fn lazy(&self, wording: &Wording, room: usize) -> String {
        let mut text = self.render_as(wording, Detail::Servers);
        if text.len() + wording.guidance.len() > room {
            text = self.some_servers(wording, room.saturating_sub(wording.guidance.len()));
        }
        text + wording.guidance
    }

    /// As many servers as fit, by name only.
    fn some_servers(&self, wording: &Wording, room: usize) -> String {
        let mut text = HEADING.to_owned();
        for (at, server) in self.servers.iter().enumerate() {
            let line = format!("\n- {}", one_line(&server.name, SERVER_DESCRIPTION));
            if text.len() + line.len() + REST_OF_SERVERS > room {
                let rest = self.servers.len() - at;
                let _ = write!(text, "\n- … and {rest} more: {}", wording.rest);
                break;
            }
            text.push_str(&line);
        }
        text
    }

    fn render_as(&self, wording: &Wording, detail: Detail) -> String {
        let mut text = HEADING.to_owned();
        for server in &self.servers {
            let _ = write!(text, "\n- {}:", server.name);
            let description = one_line(&server.description, SERVER_DESCRIPTION);
            let description = description.trim_end_matches('.');
            if !description.is_empty() {
                let _ = write!(text, " {description}.");
            }
            let Some(tools) = &server.tools else {
                text.push_str(" Tools not loaded yet.");
                continue;
            };
            let plural = if tools.len() == 1 { "" } else { "s" };
            let _ = write!(text, " {} tool{plural}.", tools.len());
            let topics = topics(tools.iter().map(|tool| tool.name.as_str()), TOPICS);
            if !topics.is_empty() {
                let _ = write!(text, " {}.", topics.join(", "));
            }
            if tools.is_empty() || detail == Detail::Servers {
                continue;
            }
            text.push_str("\n  Tools:");
            for tool in tools {
                let _ = write!(text, "\n  - {}", (wording.tool)(&server.name, tool));
                let description = one_line(&tool.description, TOOL_DESCRIPTION);
                if detail == Detail::Descriptions && !description.is_empty() {
                    let _ = write!(text, " - {description}");
                }
            }
        }
        text
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Descriptions,
    Names,
    Servers,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ToolView {
        ToolView { name: name.into(), description: description.into(), parameters: "a, b?".into() }
    }

    fn server(name: &str, description: &str, tools: &[(&str, &str)]) -> ServerView {
        let tools = tools.iter().map(|(name, description)| tool(name, description)).collect();
        ServerView { name: name.into(), description: description.into(), tools: Some(tools) }
    }

    fn sample() -> CatalogView {
        let fs = [
            ("list_directory", "List the entries\n in a directory"),
            ("read_text_file", "Read the contents of a UTF-8 text file"),
        ];
        let github = [("get_pr", "Get a pull request"), ("search_repos", "")];
        CatalogView {
            servers: vec![
                server("fs", "Filesystem MCP server.", &fs),
                server("github", "GitHub MCP server", &github),
            ],
        }
    }

    fn style(mode: CatalogMode) -> CatalogStyle {
        CatalogStyle { mode, ..CatalogStyle::default() }
    }

    const FULL: &str = "Configured upstream MCP servers:
- fs: Filesystem MCP server. 2 tools. directory, file.
  Tools:
  - list_directory - List the entries in a directory
  - read_text_file - Read the contents of a UTF-8 text file
- github: GitHub MCP server. 2 tools. pr, repos.
  Tools:
  - get_pr - Get a pull request
  - search_repos";

    const LAZY: &str = "Configured upstream MCP servers:
- fs: Filesystem MCP server. 2 tools. directory, file.
- github: GitHub MCP server. 2 tools. pr, repos.
(dir 'server) lists their tools.";

    #[test]
    fn auto_drops_descriptions_before_it_drops_tools() {
        let catalog = sample();
        let names = FULL.lines().map(|line| match line.strip_prefix("  - ") {
            Some(tool) => format!("  - {}", tool.split(" - ").next().unwrap_or_default()),
            None => line.to_owned(),
        });
        let names = names.collect::<Vec<_>>().join("\n");
        let auto = |chars, room| {
            let style = CatalogStyle { inline_max_chars: chars, ..CatalogStyle::default() };
            catalog.render(&LISP, &style, room)
        };
        assert_eq!(auto(800, 2_000), FULL);
        assert_eq!(auto(FULL.len() - 1, 2_000), names);
        assert_eq!(auto(800, FULL.len() - 1), names);
        assert_eq!(auto(names.len() - 1, 2_000), LAZY);
    }

    #[test]
    fn many_or_unknown_tools_are_not_listed_unless_asked_for() {
        let mut catalog = sample();
        let few = CatalogStyle { inline_max_tools: 3, ..CatalogStyle::default() };
        assert_eq!(catalog.render(&LISP, &few, 2_000), LAZY);
        assert_eq!(catalog.render(&LISP, &style(CatalogMode::Lazy), 2_000), LAZY);
        assert_eq!(catalog.render(&LISP, &style(CatalogMode::Inline), 10), FULL);
        catalog.servers[1].tools = None;
        let auto = catalog.render(&LISP, &style(CatalogMode::Auto), 2_000);
        assert!(
            auto.contains("\n- github: GitHub MCP server. Tools not loaded yet.\n(dir 'server) lists"),
            "{auto}"
        );
        let inline = catalog.render(&LISP, &style(CatalogMode::Inline), 10);
        assert!(
            inline.contains("- read_text_file - Read") && inline.ends_with("Tools not loaded yet."),
            "{inline}"
        );
    }

    #[test]
    fn scripts_see_functions() {
        let text = sample().render(&PYTHON, &style(CatalogMode::Inline), 10);
        assert!(
            text.contains("\n  - mcp__fs__list_directory(a, b?) - List the entries in a directory\n"),
            "{text}"
        );
        let text = sample().render(&PYTHON, &style(CatalogMode::Lazy), 2_000);
        assert!(text.ends_with(PYTHON.guidance) && !text.contains("list_directory("), "{text}");
    }

    #[test]
    fn no_number_of_servers_exceeds_the_room() {
        let names: Vec<String> = (0..200).map(|index| format!("server-{index:03}")).collect();
        let catalog =
            CatalogView { servers: names.iter().map(|name| server(name, "x", &[("t", "")])).collect() };
        for room in [300, 500, 1_000] {
            let text = catalog.render(&LISP, &CatalogStyle::default(), room);
            assert!(text.len() <= room, "{} bytes: {text}", text.len());
            assert!(text.contains("\n- server-000\n") && text.contains(" more: (tool/servers)"), "{text}");
        }
    }
}
