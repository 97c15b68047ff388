//! Renders the configured servers and their tools as text for tool descriptions.
//!
//! Clients cache prompts that hold this text. It therefore depends only on the configuration and the tool
//! lists, in name order, and has the same bytes in every run.

use ptc_calls::tools::qualified_name;
use ptc_calls::tools::text::{count, one_line};
use ptc_calls::tools::visible::shown_name;
use ptc_engine::discovery::topics;
use ptc_python::functions::{parameter, parameters};
use std::borrow::Cow;
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

impl CatalogStyle {
    /// Whether it may list a server of so many tools with them.
    fn may_list(&self, tools: usize) -> bool {
        match self.mode {
            CatalogMode::Auto => tools <= self.inline_max_tools,
            CatalogMode::Inline => true,
            CatalogMode::Lazy => false,
        }
    }
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
    /// What it is for, from the configuration or its own text; may be empty.
    pub description: String,
    /// Tools in name order; `None` until the list is known.
    pub tools: Option<Vec<ToolView>>,
    /// What it has besides tools: `2 resources, 1 prompt`.
    pub others: String,
}

/// One tool of a server, with its texts as they are shown.
#[derive(Clone, Debug)]
pub struct ToolView {
    /// Name as the server lists it.
    pub name: String,
    /// Its description on one line; may be empty.
    description: Box<str>,
    /// Its parameters; optional ones end in `?`.
    parameters: Box<str>,
}

impl ToolView {
    /// A tool with this description and these parameters.
    pub fn new(name: &str, description: &str, parameters: &str) -> ToolView {
        ToolView {
            name: name.to_owned(),
            description: one_line(description, TOOL_DESCRIPTION).into(),
            parameters: one_line(parameters, PARAMETERS).into(),
        }
    }
}

/// Bytes of a server's purpose.
const PURPOSE: usize = 120;

/// Characters of a purpose that are read: it is cut after a word later, with a mark.
const LONGEST_PURPOSE: usize = 4 * PURPOSE;

/// A purpose that would have to be shorter than this says nothing, and is left out.
const SHORTEST_PURPOSE: usize = 16;

/// Characters of a server's name.
const NAME: usize = 80;

/// Characters of a tool's description.
const TOOL_DESCRIPTION: usize = 120;

/// Characters of a tool's parameters.
const PARAMETERS: usize = 2_000;

/// Number of topics that summarise the tools of a server.
const TOPICS: usize = 5;

/// Bytes reserved for the line that counts the servers left out.
const REST_OF_SERVERS: usize = 60;

/// What stands before the topics of tools.
const ABOUT: &str = " about ";

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
    /// Converts the runtime's catalog. Its texts hold no secrets: they are redacted when a list is read. Tools that
    /// this style never lists have their names only, since a list may have megabytes of texts.
    pub fn from_catalog(catalog: &ptc_calls::tools::Catalog, style: &CatalogStyle) -> CatalogView {
        let servers = catalog.servers().map(|server| ServerView {
            name: server.name.to_string(),
            description: server.purpose().unwrap_or_default(),
            others: server.described().map(|tools| tools.offers().counts()).unwrap_or_default(),
            tools: server.described().map(|tools| {
                let may_list = style.may_list(tools.len());
                let tools = tools.iter().map(|tool| {
                    if !may_list {
                        return ToolView::new(&tool.name, "", "");
                    }
                    let (names, required) = parameters(tool);
                    let mark = |at| if at < required { "" } else { "?" };
                    let marked = names.iter().enumerate();
                    let marked = marked.map(|(at, name)| format!("{}{}", parameter(name), mark(at)));
                    let parameters = marked.collect::<Vec<_>>().join(", ");
                    ToolView::new(&tool.name, tool.about().unwrap_or_default(), &parameters)
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
        let room = room.saturating_sub(wording.guidance.len());
        let lines = self.lines(room).unwrap_or_else(|| self.names(wording, room));
        lines + wording.guidance
    }

    /// A line for each server: its name, its purpose and the number of its tools. Purposes are cut to the same length
    /// until all lines fit, and left out when little of them would remain.
    pub fn lines(&self, room: usize) -> Option<String> {
        let purposes: Vec<String> = self.servers.iter().map(ServerView::purpose).collect();
        let with = |cap| {
            let lines = self.servers.iter().zip(&purposes).map(|(server, purpose)| {
                let purpose = cut_at_word(purpose, cap);
                server.line(&purpose)
            });
            lines.fold(HEADING.to_owned(), |text, line| text + "\n" + &line)
        };
        let bare = with(0).len();
        let size = |cap: usize| -> usize {
            purposes.iter().map(|purpose| purpose.len().min(cap) + ABOUT.len()).sum()
        };
        let cap = (SHORTEST_PURPOSE..=PURPOSE).rev().find(|cap| bare + size(*cap) <= room);
        match cap {
            Some(cap) => Some(with(cap)),
            None => (bare <= room).then(|| with(0)),
        }
    }

    /// As many servers as fit, by name and number of tools, on one line.
    fn names(&self, wording: &Wording, room: usize) -> String {
        let mut text = HEADING.to_owned();
        for (at, server) in self.servers.iter().enumerate() {
            let count = server.tools.as_ref().map(|tools| format!(" ({})", tools.len())).unwrap_or_default();
            let separator = if at == 0 { "\n" } else { ", " };
            let name = format!("{separator}{}{count}", one_line(&server.name, NAME));
            if text.len() + name.len() + REST_OF_SERVERS > room {
                let rest = self.servers.len() - at;
                let _ = write!(text, " … and {rest} more: {}", wording.rest);
                break;
            }
            text.push_str(&name);
        }
        text
    }

    fn render_as(&self, wording: &Wording, detail: Detail) -> String {
        let mut text = HEADING.to_owned();
        for server in &self.servers {
            let _ = write!(text, "\n{}", server.line(&cut_at_word(&server.purpose(), PURPOSE)));
            let tools = server.tools.as_deref().unwrap_or_default();
            if tools.is_empty() {
                continue;
            }
            text.push_str("\n  Tools:");
            for tool in tools {
                let _ = write!(text, "\n  - {}", (wording.tool)(&server.name, tool));
                if detail == Detail::Descriptions && !tool.description.is_empty() {
                    let _ = write!(text, " - {}", tool.description);
                }
            }
        }
        text
    }
}

impl ServerView {
    /// What the server is for: its description, else the topics of its tools. Without a full stop at the end.
    fn purpose(&self) -> String {
        let described = one_line(&self.description, LONGEST_PURPOSE);
        if !described.is_empty() {
            return described.trim_end_matches('.').to_owned();
        }
        let names = self.tools.iter().flatten().map(|tool| tool.name.as_str());
        topics(names, TOPICS).join(", ")
    }

    /// `- name: purpose. 12 tools.`, or `- name: 12 tools about issues, labels.` without a description.
    fn line(&self, purpose: &str) -> String {
        let (before, about) = match (purpose, self.description.trim()) {
            ("", _) => (String::new(), String::new()),
            (topics, "") => (String::new(), format!("{ABOUT}{topics}")),
            (purpose, _) => (format!(" {purpose}."), String::new()),
        };
        let count = match &self.tools {
            None => "Tools not loaded yet".to_owned(),
            Some(tools) => count(tools.len()),
        };
        // Behind topics a comma would make one more topic of it.
        let separator = if about.is_empty() { "," } else { ";" };
        let others =
            if self.others.is_empty() { String::new() } else { format!("{separator} {}", self.others) };
        format!("- {}:{before} {count}{about}{others}.", one_line(&self.name, NAME))
    }
}

/// The text, cut after a word so that it has at most this many bytes, with `…` for what is missing. Nothing when not
/// even one word fits.
fn cut_at_word(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let room = text.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    let words = match text[room..].starts_with(char::is_whitespace) {
        true => &text[..room],
        false => text[..room].trim_end_matches(|character: char| !character.is_whitespace()),
    };
    let words = words.trim_end();
    // A long first word is cut inside.
    let kept = if words.is_empty() { &text[..room] } else { words.trim_end_matches([',', ';', ':', '.']) };
    if kept.is_empty() { "".into() } else { format!("{kept}…").into() }
}

#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Descriptions,
    Names,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ToolView {
        ToolView::new(name, description, "a, b?")
    }

    fn server(name: &str, description: &str, tools: &[(&str, &str)]) -> ServerView {
        let tools = tools.iter().map(|(name, description)| tool(name, description)).collect();
        ServerView {
            name: name.into(),
            description: description.into(),
            tools: Some(tools),
            others: String::new(),
        }
    }

    #[test]
    fn texts_are_cut_after_a_word() {
        for (most, cut) in [
            (20, "Reads old files"),
            (14, "Reads old…"),
            (12, "Reads old…"),
            (8, "Reads…"),
            (7, "Read…"),
            (2, ""),
        ] {
            assert_eq!(cut_at_word("Reads old files", most), cut, "{most}");
        }
        assert_eq!(cut_at_word("ÄÄÄÄÄÄ", 8), "ÄÄ…");
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
- fs: Filesystem MCP server. 2 tools.
  Tools:
  - list_directory - List the entries in a directory
  - read_text_file - Read the contents of a UTF-8 text file
- github: GitHub MCP server. 2 tools.
  Tools:
  - get_pr - Get a pull request
  - search_repos";

    const LAZY: &str = "Configured upstream MCP servers:
- fs: Filesystem MCP server. 2 tools.
- github: GitHub MCP server. 2 tools.
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
            assert!(text.contains("\nserver-000 (1), server-001 (1)"), "{text}");
            assert!(text.contains(" more: (tool/servers)"), "{text}");
        }
    }

    #[test]
    fn each_server_has_a_line_with_as_much_of_its_purpose_as_fits() {
        let words = "Finds, reads and changes the issues, pull requests and files of repositories";
        let names = ["alpha", "beta", "gamma"];
        let mut catalog = CatalogView { servers: names.map(|name| server(name, words, &[])).into() };
        catalog.servers.push(server("tides", "", &[("get_tide", ""), ("list_tides", ""), ("find_port", "")]));
        let whole = catalog.lines(2_000).unwrap();
        assert_eq!(whole.matches(words).count(), 3);
        assert!(whole.ends_with("\n- tides: 3 tools about port, tides."), "{whole}");
        let cut = catalog.lines(300).unwrap();
        assert!(cut.len() <= 300 && cut.contains("- beta: Finds, reads and changes the issues"), "{cut}");
        assert!(cut.contains("…. 0 tools."), "{cut}");
        let bare = catalog.lines(120).unwrap();
        assert!(bare.contains("\n- beta: 0 tools.\n"), "{bare}");
        assert_eq!(catalog.lines(60), None);
    }
}
