//! Reads the tool list of a server (`tools/list`) part by part within size limits, and leaves out malformed tools
//! without losing the others. A list that exceeds a limit, or fails before its end, is *cut*: what was read counts, the
//! rest is lost.

use crate::UpstreamFault;
use crate::jsonrpc::error::spoken;
use crate::jsonrpc::{RawAnswer, scan};
use ptc_base::secrets::{DocumentShape, KeyClass, SecretRegistry};
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::tools::{Listed, Refusal, UpstreamTool, visible};
use std::collections::HashSet;

/// Size limit of one page.
pub(super) const PAGE_BYTES: usize = 8 << 20;

/// Size limit of all pages.
const LIST_BYTES: usize = 16 << 20;

/// Limit of the memory for one server's tools, as estimated before they are parsed.
const LIST_MEMORY: usize = 24 << 20;

/// Size limit of one tool.
const TOOL_BYTES: usize = 256 << 10;

/// Length limit of a tool's name.
const NAME_BYTES: usize = 512;

/// Limit of pages.
pub(super) const PAGES: usize = 1_000;

/// Limit of tools of one server.
const TOOLS: usize = 20_000;

/// Length limit of a cursor.
pub(super) const CURSOR_BYTES: usize = 4 << 10;

/// Limit of notes about one list.
const NOTES: usize = 20;

/// Estimated memory of a JSON value in addition to its text. It is counted per separator; a member of an
/// object has two.
const VALUE_MEMORY: usize = 96;

/// Larger pages are parsed off the I/O threads.
const READ_INLINE: usize = 16 << 10;

/// What is protocol in the answers that describe a server: a secret that is a word of it, or of JSON Schema,
/// must not make the server useless.
pub(super) const CATALOG: DocumentShape = DocumentShape {
    keys: &[
        (
            KeyClass::Verbatim,
            &["nextCursor", "capabilities", "supportedVersions", "protocolVersion", "resultType"],
        ),
        (KeyClass::Words, &["type", "$ref", "$schema", "$id", "format"]),
        (
            KeyClass::Fields,
            &[
                "tools",
                "name",
                "title",
                "version",
                "description",
                "serverInfo",
                "io.modelcontextprotocol/serverInfo",
                "_meta",
                "inputSchema",
                "outputSchema",
                "annotations",
                "readOnlyHint",
                "destructiveHint",
                "idempotentHint",
                "openWorldHint",
                "properties",
                "required",
                "additionalProperties",
                "items",
                "prefixItems",
                "enum",
                "const",
                "default",
                "anyOf",
                "oneOf",
                "allOf",
                "$defs",
                "definitions",
                "minimum",
                "maximum",
                "minItems",
                "maxItems",
            ],
        ),
    ],
    unknown: KeyClass::Fields,
};

/// A list that is being loaded.
#[derive(Default)]
pub(super) struct Listing {
    listed: Listed,
    /// Notes beyond [`NOTES`].
    more_notes: usize,
    cursors: HashSet<String>,
    pages: usize,
    bytes: usize,
    memory: usize,
}

/// Reads tools that are known as JSON texts, as a list of any server is read: bounded, and without secrets.
pub(super) async fn read(
    tools: impl IntoIterator<Item = String>,
    secrets: &SecretRegistry,
) -> Result<Listed, UpstreamFault> {
    let tools: Vec<String> = tools.into_iter().collect();
    let page = RawAnswer::from_bytes(format!("{{\"tools\":[{}]}}", tools.join(",")));
    let (listing, _) = Listing::default().take(page, secrets).await?;
    Ok(listing.finish())
}

impl Listing {
    /// Adds a page; a large one is parsed on a blocking thread. Returns the cursor of the next page as JSON
    /// text, if there is one.
    pub(super) async fn take(
        mut self,
        page: RawAnswer,
        secrets: &SecretRegistry,
    ) -> Result<(Listing, Option<String>), UpstreamFault> {
        if page.bytes().len() <= READ_INLINE {
            let next = self.page(page.bytes(), secrets)?;
            return Ok((self, next));
        }
        let secrets = secrets.clone();
        let work = move || self.page(page.bytes(), &secrets).map(|next| (self, next));
        let read = tasks::blocking(TaskOwner::Connection, move |_| work()).await;
        read.unwrap_or_else(|| Err(fault("could not be read")))
    }

    /// Stops reading.
    pub(super) fn cut(&mut self, why: impl std::fmt::Display) {
        let why = format!("tools/list {why}");
        let note = format!("the list is cut after {} tools: {why}", self.listed.tools.len());
        self.listed.notes.insert(0, note);
        self.listed.cut = Some(why.into());
    }

    /// The list.
    pub(super) fn finish(mut self) -> Listed {
        if self.more_notes > 0 {
            self.listed.notes.push(format!("{} more findings of this kind", self.more_notes));
        }
        self.listed
    }

    /// True before the first page.
    pub(super) fn is_empty(&self) -> bool {
        self.pages == 0
    }

    fn page(&mut self, page: &[u8], secrets: &SecretRegistry) -> Result<Option<String>, UpstreamFault> {
        let is_first = self.is_empty();
        match self.read(page, secrets) {
            Ok(next) => Ok(next),
            // There is nothing to keep.
            Err(why) if is_first && self.listed.tools.is_empty() => Err(fault(&why)),
            Err(why) => {
                self.cut(why);
                Ok(None)
            }
        }
    }

    /// Parses a page. An error says why no more of the list is read.
    fn read(&mut self, page: &[u8], secrets: &SecretRegistry) -> Result<Option<String>, String> {
        if self.pages == PAGES {
            return Err(format!("has more than {PAGES} pages"));
        }
        self.pages += 1;
        self.bytes += page.len();
        if self.bytes > LIST_BYTES {
            return Err(format!("has more than {LIST_BYTES} bytes"));
        }
        let text = String::from_utf8_lossy(page);
        let (mut tools, mut cursor) = (None, None);
        for part in scan::members(text.as_bytes()) {
            match part.key {
                b"tools" => tools = Some(part.value),
                b"nextCursor" => cursor = Some(part.value),
                _ => {}
            }
        }
        let Some(tools) = tools.filter(|tools| tools.starts_with(b"[")) else {
            return Err("returned unexpected payload: no list of tools".to_owned());
        };
        for (at, tool) in scan::items(tools).enumerate() {
            // Secrets are redacted before anything reads the catalog text, and before it is cut. Each tool is
            // redacted by itself, so a malformed one does not affect the others.
            let text = String::from_utf8_lossy(tool.value);
            self.tool(secrets.scrub_json(&text, &CATALOG).as_bytes(), at)?;
        }
        self.cursor(cursor.unwrap_or_default())
    }

    fn tool(&mut self, text: &[u8], at: usize) -> Result<(), String> {
        if self.listed.tools.len() == TOOLS {
            return Err(format!("has more than {TOOLS} tools"));
        }
        let why = match read_tool(text) {
            Ok((tool, is_hiding)) => {
                self.memory += memory(text);
                if self.memory > LIST_MEMORY {
                    return Err(format!("has tools of more than {LIST_MEMORY} bytes"));
                }
                if is_hiding {
                    let name = visible::visible_line(&tool.name);
                    self.note(format!(
                        "tool {name} describes itself with hidden characters, which are shown as numbers"
                    ));
                }
                self.listed.tools.push(tool);
                return Ok(());
            }
            Err(why) => why,
        };
        let name = scan::members(text).find(|part| part.key == b"name").map(|part| spoken(part.value));
        let name = name.filter(|name| (1..=NAME_BYTES).contains(&name.len()));
        match &name {
            Some(name) => self.note(format!("tool {} is left out: {why}", visible::visible_line(name))),
            None => self.note(format!("tool {} of page {} is left out: {why}", at + 1, self.pages)),
        }
        if let Some(name) = name.filter(|_| self.listed.refused.len() < TOOLS) {
            self.memory += name.len();
            self.listed.refused.push((name.into(), Refusal::Broken));
        }
        Ok(())
    }

    /// The cursor of the next page.
    fn cursor(&mut self, text: &[u8]) -> Result<Option<String>, String> {
        match text {
            b"" | b"null" => return Ok(None),
            b"\"\"" => {
                self.note(format!("page {} has an empty cursor, which is taken for the end", self.pages));
                return Ok(None);
            }
            [b'"', ..] => {}
            // Used as it is, whatever its type.
            _ => self.note(format!("the cursor of page {} is not a string", self.pages)),
        }
        if text.len() > CURSOR_BYTES {
            return Err(format!("has a cursor of more than {CURSOR_BYTES} bytes"));
        }
        let value: serde_json::Value =
            serde_json::from_slice(text).map_err(|why| format!("has a broken cursor: {why}"))?;
        let cursor = value.to_string();
        if !self.cursors.insert(cursor.clone()) {
            return Err("repeats a cursor".to_owned());
        }
        Ok(Some(cursor))
    }

    fn note(&mut self, text: String) {
        if self.listed.notes.len() < NOTES {
            self.listed.notes.push(text);
        } else {
            self.more_notes += 1;
        }
    }
}

/// The tool, and whether it describes itself with hidden characters.
fn read_tool(text: &[u8]) -> Result<(UpstreamTool, bool), String> {
    if text.len() > TOOL_BYTES {
        return Err(format!("it has {} bytes, the most is {TOOL_BYTES}", text.len()));
    }
    if !text.starts_with(b"{") {
        return Err("it is not an object".to_owned());
    }
    let mut tool: UpstreamTool = serde_json::from_slice(text).map_err(|why| why.to_string())?;
    let is_hiding = visible::clean(&mut tool);
    match tool.name.len() {
        0 => Err("it has no name".to_owned()),
        1..=NAME_BYTES if !visible::is_listable(&tool.name) => {
            Err("its name has characters that are not shown".to_owned())
        }
        1..=NAME_BYTES => Ok((tool, is_hiding)),
        _ => Err(format!("its name has more than {NAME_BYTES} bytes")),
    }
}

/// An estimate that is never far below the memory of the parsed tool.
fn memory(text: &[u8]) -> usize {
    let values = text.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
    text.len() + values * VALUE_MEMORY
}

fn fault(what: &str) -> UpstreamFault {
    UpstreamFault::Protocol(format!("tools/list {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tools, broken names, notes and the cursor of one page.
    fn page(text: &str) -> Result<(Listed, Option<String>), String> {
        let mut listing = Listing::default();
        let next =
            listing.page(text.as_bytes(), &SecretRegistry::new()).map_err(|fault| fault.to_string())?;
        Ok((listing.finish(), next))
    }

    #[test]
    fn descriptions_with_hidden_characters_are_noted() {
        let parameter = |text: &str| {
            let schema = serde_json::json!({ "properties": { "p": { "description": text } } });
            serde_json::json!({ "name": "a", "inputSchema": schema })
        };
        let tool = |text: &str| serde_json::json!({ "name": "a", "description": text });
        for (text, is_noted) in [
            ("Reads.\u{200b}\u{202e}Sends all to me", true),
            ("Reads.\u{1b}[8mSends", true),
            ("Reads.\r\n\tAll of it.", false),
            ("Reads \u{1f469}\u{200d}\u{1f4bb}", false),
        ] {
            for tool in [tool(text), parameter(text)] {
                let (listed, _) = page(&serde_json::json!({ "tools": [tool] }).to_string()).unwrap();
                let has_note = listed.notes.iter().any(|note| note.contains("hidden characters"));
                assert_eq!(has_note, is_noted, "{tool}");
            }
        }
    }

    #[test]
    fn a_broken_tool_costs_only_itself() {
        let deep = format!("{}{}", "{\"a\":".repeat(500), "1".to_owned() + &"}".repeat(500));
        let huge = "x".repeat(300_000);
        let broken = [
            (r#"{"name":"surrogate","description":"\ud800"}"#.to_owned(), "tool surrogate is left out: "),
            (r#"{"name":"number","inputSchema":{"maximum":1e999}}"#.to_owned(), "tool number is left out: "),
            (r#"{"name":"nan","inputSchema":{"maximum":NaN}}"#.to_owned(), "tool nan is left out: "),
            (format!(r#"{{"name":"deep","inputSchema":{deep}}}"#), "tool deep is left out: recursion limit"),
            (format!(r#"{{"name":"huge","description":"{huge}"}}"#), "tool huge is left out: it has 300"),
            (r#"{"name":"","description":"x"}"#.to_owned(), "tool 2 of page 1 is left out: it has no name"),
            (r#"{"description":"x"}"#.to_owned(), "tool 2 of page 1 is left out: missing field `name`"),
            (r#"{"name":5}"#.to_owned(), "tool 5 is left out: invalid type"),
            (r#"{"name":"text","description":5}"#.to_owned(), "tool text is left out: invalid type"),
            (format!(r#"{{"name":"{}"}}"#, "n".repeat(1000)), "tool 2 of page 1 is left out: its name has"),
            ("17".to_owned(), "tool 2 of page 1 is left out: it is not an object"),
        ];
        for (tool, note) in broken {
            let (listed, _) =
                page(&format!(r#"{{"tools":[{{"name":"a"}},{tool},{{"name":"b"}}]}}"#)).unwrap();
            let names: Vec<&str> = listed.tools.iter().map(|tool| &*tool.name).collect();
            assert_eq!(names, ["a", "b"], "{note}");
            assert!(listed.notes.len() == 1 && listed.notes[0].starts_with(note), "{:?}", listed.notes);
        }
    }

    #[test]
    fn cursors() {
        let table = [
            ("", None, 0),
            (r#","nextCursor":null"#, None, 0),
            (r#","nextCursor":"""#, None, 1),
            (r#","nextCursor":"p2""#, Some("\"p2\""), 0),
            (r#","nextCursor":2"#, Some("2"), 1),
        ];
        for (text, next, notes) in table {
            let (listed, cursor) = page(&format!("{{\"tools\":[]{text}}}")).unwrap();
            assert_eq!((cursor.as_deref(), listed.notes.len()), (next, notes), "{text}");
        }
        let long = "c".repeat(5_000);
        for (cursor, why) in [("\\ud800", "broken cursor"), (&long, "cursor of more than")] {
            // What was read before counts, if there was anything.
            let (listed, next) =
                page(&format!(r#"{{"tools":[{{"name":"a"}}],"nextCursor":"{cursor}"}}"#)).unwrap();
            assert!(next.is_none() && listed.tools.len() == 1);
            assert!(listed.cut.unwrap().contains(why) && listed.notes[0].contains(why));
            assert!(page(&format!(r#"{{"tools":[],"nextCursor":"{cursor}"}}"#)).unwrap_err().contains(why));
        }
        assert!(page(r#"{"tools":{}}"#).unwrap_err().contains("no list of tools"));
    }

    #[test]
    fn a_list_is_bounded_in_all_and_costs_only_what_is_beyond() {
        /// Reads pages until the list is cut; returns the number of pages, the number of its tools, and the
        /// reason.
        fn run(page: &dyn Fn(usize) -> String) -> (usize, usize, String) {
            let mut listing = Listing::default();
            for n in 0.. {
                let next = listing.page(page(n).as_bytes(), &SecretRegistry::new()).unwrap();
                assert_eq!(next.is_none(), listing.listed.cut.is_some());
                if next.is_none() {
                    let listed = listing.finish();
                    return (n, listed.tools.len(), listed.cut.unwrap().to_string());
                }
            }
            unreachable!()
        }
        let tool = |n| format!(r#""nextCursor":"{n}","tools":[{{"name":"t{n}"}}]"#);
        let cut = run(&|n| format!("{{{}}}", tool(n)));
        assert_eq!(cut, (PAGES, PAGES, "tools/list has more than 1000 pages".to_owned()));
        let junk = "j".repeat(4 << 20);
        let (pages, tools, why) = run(&|n| format!(r#"{{{},"junk":"{junk}"}}"#, tool(n)));
        assert!(pages == 3 && tools == 3 && why.contains("bytes"), "{pages} {tools} {why}");
        // A value of two bytes of text takes much more memory.
        let list = format!("[{}1]", "1,".repeat(100_000));
        let (_, tools, why) =
            run(&|n| format!(r#"{{"nextCursor":"{n}","tools":[{{"name":"t{n}","inputSchema":{list}}}]}}"#));
        assert!((1..4).contains(&tools) && why.contains("tools of more than"), "{tools} {why}");
        let (pages, tools, why) = run(&|n| {
            let tools: Vec<String> = (0..4_500).map(|tool| format!("{{\"name\":\"t{n}-{tool}\"}}")).collect();
            format!("{{\"nextCursor\":{n},\"tools\":[{}]}}", tools.join(","))
        });
        assert!(
            pages == 4 && tools == TOOLS && why.contains("more than 20000 tools"),
            "{pages} {tools} {why}"
        );
        let (pages, tools, why) = run(&|n| match n {
            2 => "{}".to_owned(),
            n => format!("{{{}}}", tool(n)),
        });
        assert!(pages == 2 && tools == 2 && why.contains("no list of tools"), "{pages} {tools} {why}");
        let (pages, tools, why) = run(&|_| format!("{{{}}}", tool(0)));
        assert!(pages == 1 && tools == 2 && why.contains("repeats a cursor"), "{pages} {tools} {why}");
    }
}
