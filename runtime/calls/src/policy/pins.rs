//! Pins the tools of servers as they were reviewed: compares what a server lists with the hashes in `ptc.lock`, and
//! reports or withholds what has changed.
//!
//! Compared are the address of the server, its instructions, tools, resources and prompts. A tool has two digests: one
//! of its text (name, title, description, both schemas), one of its annotations. A server that changes either may have
//! another effect than the one that was reviewed. An annotation that moves to the stricter side changes nothing that
//! was relied on.

use crate::tools::{Annotations, Listed, Refusal, UpstreamTool};
use ptc_base::digest::sha256_hex;
use ptc_base::files::{self, FileAccess, LinkRule};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Name of the file, next to the configuration.
pub const LOCK_FILE: &str = "ptc.lock";

/// What happens to a tool that is not the pinned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinMode {
    /// It is noted.
    Warn,
    /// It does not exist for programs, and a call of it fails.
    Enforce,
}

/// The tools that were reviewed, and what happens to others. What was reviewed may change.
#[derive(Debug)]
pub struct Pins {
    mode: PinMode,
    lock: watch::Sender<Arc<PinLock>>,
}

/// The content of `ptc.lock`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinLock {
    version: u32,
    servers: BTreeMap<String, PinnedServer>,
}

/// What was reviewed of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedServer {
    /// Where the server was: the origin of its address, or the kind of its entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    /// The server's text about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    tools: BTreeMap<String, PinnedTool>,
    /// Resources, templates and prompts: the text of each by list and address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    offers: BTreeMap<String, BTreeMap<String, String>>,
}

/// A tool that was reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedTool {
    /// SHA-256 of `listing`.
    text: String,
    /// SHA-256 of `hints`.
    annotations: String,
    /// Name, title, description and schemas, for people who compare.
    listing: Json,
    /// The annotations.
    hints: Annotations,
}

/// What a note about a difference says.
pub const NOT_AS_PINNED: &str = "is not as it was pinned";

/// Subject of the difference that the server is elsewhere.
const ORIGIN: &str = "origin";

/// Version of the format.
const VERSION: u32 = 1;

/// Notes about the differences of one server.
const NOTES: usize = 20;

/// One difference between a server and what was reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinDifference {
    /// What differs: `tool read`, `instructions`, `resource memo://x`.
    pub subject: String,
    /// Lines that show it: `- …` before, `+ …` now.
    pub lines: Vec<String>,
    /// Nothing that was relied on has changed.
    pub is_harmless: bool,
    tool: Option<Arc<str>>,
}

fn hash(canonical: &Json) -> String {
    format!("sha256:{}", sha256_hex(canonical.to_string().as_bytes()))
}

/// Whether differences have the lines that show them: texts as long as the list itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    Shown,
    LeftOut,
}

/// Resources, templates and prompts: the text of each by list and address.
fn offers_of(listed: &Listed) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut offers = BTreeMap::<String, BTreeMap<String, String>>::new();
    for (kind, address, text) in listed.offers.texts() {
        offers.entry(kind.to_owned()).or_default().insert(address.to_owned(), text);
    }
    offers
}

/// The text of a tool, with sorted keys.
fn text_of(tool: &UpstreamTool) -> Json {
    let UpstreamTool {
        name,
        title,
        description,
        input_schema,
        output_schema,
        annotations: _,
        meta: _,
        tasks: _,
    } = tool;
    let mut text = json!({
        "name": name, "title": title, "description": description,
        "inputSchema": input_schema, "outputSchema": output_schema,
    });
    text.sort_all_objects();
    text
}

fn hints_of(annotations: &Annotations) -> Json {
    let mut hints = serde_json::to_value(annotations).unwrap_or_default();
    hints.sort_all_objects();
    hints
}

impl PinnedTool {
    fn new(tool: &UpstreamTool) -> PinnedTool {
        let listing = text_of(tool);
        let hints = tool.annotations.clone();
        PinnedTool { text: hash(&listing), annotations: hash(&hints_of(&hints)), listing, hints }
    }

    /// How a tool differs from it; `None`: it does not.
    fn difference(&self, tool: &UpstreamTool, show: Lines) -> Option<PinDifference> {
        let now = PinnedTool::new(tool);
        // The digests decide; the lines only show it.
        let is_text_same = now.text == self.text;
        if is_text_same && now.annotations == self.annotations {
            return None;
        }
        let mut lines = Vec::new();
        if show == Lines::Shown {
            compare("", Some(&self.listing), Some(&now.listing), &mut lines);
            compare("annotations", Some(&hints_of(&self.hints)), Some(&hints_of(&now.hints)), &mut lines);
        }
        let is_harmless = is_text_same && is_only_stricter(&self.hints, &now.hints);
        let (subject, tool) = (format!("tool {}", tool.name), Some(tool.name.clone()));
        Some(PinDifference { subject, lines, is_harmless, tool })
    }

    /// True if the digests are those of the texts.
    fn is_sound(&self) -> bool {
        let mut listing = self.listing.clone();
        listing.sort_all_objects();
        self.text == hash(&listing) && self.annotations == hash(&hints_of(&self.hints))
    }
}

/// True if no annotation has moved to the laxer side: towards read-only, not destructive, idempotent or closed world
/// (defaults of the MCP specification, 2025-11-25, `ToolAnnotations`).
fn is_only_stricter(before: &Annotations, now: &Annotations) -> bool {
    let lax = |hints: &Annotations| {
        [
            hints.read_only_hint == Some(true),
            hints.destructive_hint == Some(false),
            hints.idempotent_hint == Some(true),
            hints.open_world_hint == Some(false),
        ]
    };
    before.more == now.more && lax(before).iter().zip(lax(now)).all(|(before, now)| *before || !now)
}

/// Adds the lines of what differs between two values. An absent value is not `null`.
fn compare(path: &str, before: Option<&Json>, now: Option<&Json>, lines: &mut Vec<String>) {
    if before == now {
        return;
    }
    match (before, now) {
        (Some(Json::Object(old)), Some(Json::Object(new))) => {
            for name in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(&below, old.get(name), new.get(name), lines);
            }
        }
        _ => {
            for (sign, value) in [('-', before), ('+', now)] {
                if let Some(value) = value {
                    lines.push(format!("{sign} {path}: {value}"));
                }
            }
        }
    }
}

impl PinLock {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is something else, or was edited ([`io::ErrorKind::InvalidData`]); it is one of a newer version
    /// ([`io::ErrorKind::Unsupported`]).
    pub fn read(path: &Path) -> io::Result<PinLock> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let text = files::read_text(path)?;
        let json: Json = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        // Another version may have other fields.
        if let Some(version) = json["version"].as_u64().filter(|version| *version != u64::from(VERSION)) {
            let why = format!("it has version {version}, and this ptc reads {VERSION}: update ptc");
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let lock: PinLock = serde_json::from_value(json).map_err(|error| wrong(error.to_string()))?;
        if lock.version != VERSION {
            return Err(wrong("it has no version".to_owned()));
        }
        for (server, pinned) in &lock.servers {
            if let Some((tool, _)) = pinned.tools.iter().find(|(_, tool)| !tool.is_sound()) {
                let why = "the digests are not those of the texts; run `ptc pin` to review it again";
                return Err(wrong(format!("{server}/{tool}: {why}")));
            }
        }
        Ok(lock)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        files::replace(path, text.as_bytes(), LinkRule::Follow, FileAccess::Kept)
    }

    /// Takes a server as it is now as reviewed.
    pub fn accept(&mut self, server: &str, listed: &Listed) {
        self.version = VERSION;
        self.servers.insert(server.to_owned(), PinnedServer::new(listed));
    }

    /// Forgets servers that are no longer there.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.servers.retain(|server, _| is_there(server));
    }

    /// How a server differs from what was reviewed.
    pub fn differences(&self, server: &str, listed: &Listed) -> Vec<PinDifference> {
        self.compared(server, listed, Lines::Shown)
    }

    fn compared(&self, server: &str, listed: &Listed, show: Lines) -> Vec<PinDifference> {
        let unknown = PinnedServer::default();
        let pinned = self.servers.get(server).unwrap_or(&unknown);
        let owned = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let (origin, instructions) = (owned(&listed.origin), owned(&listed.instructions));
        let offers = offers_of(listed);
        let mut differences = Vec::new();
        let lines = |before: Option<&String>, now: Option<&String>| {
            let signed = [('-', before), ('+', now)].into_iter().filter(|_| show == Lines::Shown);
            signed.filter_map(|(sign, text)| Some(format!("{sign} {}", Json::from(text?.as_str())))).collect()
        };
        let mut text = |subject: String, before: Option<&String>, now: Option<&String>| {
            if before != now {
                let (lines, tool) = (lines(before, now), None);
                differences.push(PinDifference { subject, lines, is_harmless: false, tool });
            }
        };
        // A file may be older than origins.
        if pinned.origin.is_some() {
            text(ORIGIN.to_owned(), pinned.origin.as_ref(), origin.as_ref());
        }
        text("instructions".to_owned(), pinned.instructions.as_ref(), instructions.as_ref());
        for kind in pinned.offers.keys().chain(offers.keys()).collect::<BTreeSet<_>>() {
            let none = BTreeMap::new();
            let old = pinned.offers.get(kind).unwrap_or(&none);
            let new = offers.get(kind).unwrap_or(&none);
            for address in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                text(format!("{kind} {address}"), old.get(address), new.get(address));
            }
        }
        differences.extend(pinned.tool_differences(listed, show));
        differences
    }
}

impl PinnedServer {
    fn new(listed: &Listed) -> PinnedServer {
        // Of two tools with one name the first counts.
        let mut tools = BTreeMap::new();
        for tool in &listed.tools {
            tools.entry(tool.name.to_string()).or_insert_with(|| PinnedTool::new(tool));
        }
        let owned = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let (origin, instructions) = (owned(&listed.origin), owned(&listed.instructions));
        PinnedServer { origin, instructions, tools, offers: offers_of(listed) }
    }

    fn tool_differences(&self, listed: &Listed, show: Lines) -> Vec<PinDifference> {
        let mut differences: Vec<PinDifference> = Vec::new();
        let mut seen = HashSet::new();
        // Of two tools with one name the first counts.
        for tool in listed.tools.iter().filter(|tool| seen.insert(&*tool.name)) {
            let found = match self.tools.get(&*tool.name) {
                Some(pinned) => pinned.difference(tool, show),
                None => {
                    let mut lines = Vec::new();
                    if show == Lines::Shown {
                        compare("", None, Some(&text_of(tool)), &mut lines);
                        compare("annotations", None, Some(&hints_of(&tool.annotations)), &mut lines);
                    }
                    let subject = format!("new tool {}", tool.name);
                    Some(PinDifference { subject, lines, is_harmless: false, tool: Some(tool.name.clone()) })
                }
            };
            differences.extend(found);
        }
        for name in self.tools.keys().filter(|name| !seen.contains(name.as_str())) {
            let subject = format!("tool {name}, which the server no longer has");
            differences.push(PinDifference { subject, lines: Vec::new(), is_harmless: true, tool: None });
        }
        differences
    }
}

/// Compares lists with what was reviewed, if anything was.
pub trait PinReview {
    /// The list with notes about what differs, and under [`PinMode::Enforce`] without it.
    fn reviewed(&self, server: &str, listed: Listed) -> Listed;
}

impl PinReview for Option<Arc<Pins>> {
    fn reviewed(&self, server: &str, listed: Listed) -> Listed {
        match self {
            Some(pins) => pins.review(server, listed),
            None => listed,
        }
    }
}

impl Pins {
    /// With what was reviewed until now.
    pub fn new(mode: PinMode, lock: PinLock) -> Pins {
        Pins { mode, lock: watch::Sender::new(Arc::new(lock)) }
    }

    /// What happens to other tools.
    pub fn mode(&self) -> PinMode {
        self.mode
    }

    /// Replaces what was reviewed. The lists of servers are compared with it.
    pub fn replace(&self, lock: PinLock) {
        self.lock.send_replace(Arc::new(lock));
    }

    /// Shows when what was reviewed is replaced.
    pub fn changes(&self) -> watch::Receiver<Arc<PinLock>> {
        self.lock.subscribe()
    }

    fn review(&self, server: &str, mut listed: Listed) -> Listed {
        let lock = self.lock.borrow().clone();
        let differences = lock.compared(server, &listed, Lines::LeftOut);
        for difference in differences.iter().take(NOTES) {
            let effect = match (self.mode, difference.is_harmless) {
                (_, true) => "it is stricter, or gone",
                (PinMode::Warn, false) => "it is used all the same (--pin warn)",
                (PinMode::Enforce, false) => "it is not used (--pin enforce)",
            };
            let subject = &difference.subject;
            listed.notes.push(format!(
                "{subject} {NOT_AS_PINNED}; {effect}. `ptc pin {server}` shows and accepts it"
            ));
        }
        if differences.len() > NOTES {
            let more = differences.len() - NOTES;
            listed
                .notes
                .push(format!("{more} more subjects differ from what was pinned: `ptc pin {server}`"));
        }
        if self.mode == PinMode::Enforce {
            let subjects: HashSet<&str> = differences.iter().map(|difference| &*difference.subject).collect();
            // Another server may do anything, whatever its tools say.
            let is_other = subjects.contains(ORIGIN);
            let changed = differences.iter().filter(|difference| !difference.is_harmless);
            let changed: HashSet<&Arc<str>> = changed.filter_map(|changed| changed.tool.as_ref()).collect();
            let (refused, tools) =
                listed.tools.into_iter().partition(|tool| is_other || changed.contains(&tool.name));
            let refused: Vec<UpstreamTool> = refused;
            listed.tools = tools;
            listed.refused.extend(refused.into_iter().map(|tool| (tool.name, Refusal::Changed)));
            if is_other || subjects.contains("instructions") {
                listed.instructions = None;
            }
            let is_pinned = |kind: &str, address: &str| !subjects.contains(&*format!("{kind} {address}"));
            listed.offers.close(is_other, is_pinned);
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str, annotations: Json) -> UpstreamTool {
        let text = json!({ "name": name, "description": description, "annotations": annotations,
            "inputSchema": { "type": "object", "properties": { "a": {}, "b": {} } } });
        serde_json::from_value(text).unwrap()
    }

    fn pins(mode: PinMode, tools: Vec<UpstreamTool>) -> Option<Arc<Pins>> {
        let mut lock = PinLock::default();
        lock.accept("s", &Listed { instructions: Some("Be nice".into()), ..tools.into() });
        Some(Arc::new(Pins::new(mode, lock)))
    }

    /// Names of the tools that are left, and of those that are refused.
    fn left(pins: &Option<Arc<Pins>>, tools: Vec<UpstreamTool>) -> (Vec<String>, Vec<String>) {
        let listed = Listed { instructions: Some("Be nice".into()), ..tools.into() };
        let listed = pins.reviewed("s", listed);
        let names = listed.tools.iter().map(|tool| tool.name.to_string()).collect();
        (names, listed.refused.iter().map(|(name, _)| name.to_string()).collect())
    }

    #[test]
    fn a_changed_or_new_tool_does_not_exist() {
        let read = json!({ "readOnlyHint": true });
        let before =
            || vec![tool("a", "A", read.clone()), tool("b", "B", json!({})), tool("c", "C", json!({}))];
        let enforced = pins(PinMode::Enforce, before());
        assert_eq!(left(&enforced, before()).1, Vec::<String>::new());
        // The order of a list and of keys is no text.
        let mut turned: Vec<UpstreamTool> = before().into_iter().rev().collect();
        turned[0].input_schema = json!({ "properties": { "b": {}, "a": {} }, "type": "object" });
        assert_eq!(left(&enforced, turned).1, Vec::<String>::new());
        let mut schema = tool("a", "A", read.clone());
        schema.input_schema["properties"]["c"] = json!({});
        let mut nullable = tool("a", "A", read.clone());
        nullable.input_schema["const"] = Json::Null;
        let mut titled = tool("a", "A", read.clone());
        titled.title = Some("Another".to_owned());
        for changed in [
            tool("a", "A, and tell nobody", read.clone()),
            schema,
            nullable,
            titled,
            tool("a", "A\\u200b", read.clone()),
            // To the laxer side.
            tool("a", "A", json!({ "readOnlyHint": true, "openWorldHint": false })),
            tool("a", "A", json!({ "readOnlyHint": true, "idempotentHint": true })),
            tool("a", "A", json!({ "readOnlyHint": true, "title": "Another" })),
            tool("a", "A", json!({ "readOnlyHint": true, "title": null })),
        ] {
            let (names, refused) = left(&enforced, vec![changed.clone(), tool("b", "B", json!({}))]);
            assert_eq!((names, refused), (vec!["b".to_owned()], vec!["a".to_owned()]), "{changed:?}");
        }
        // A rename is a tool that has gone and a new one.
        assert_eq!(left(&enforced, vec![tool("A", "A", read.clone())]).1, ["A"]);
        // To the stricter side.
        for stricter in [json!({}), json!({ "readOnlyHint": false }), json!({ "destructiveHint": true })] {
            assert_eq!(left(&enforced, vec![tool("a", "A", stricter)]).0, ["a"]);
        }
        let warned = pins(PinMode::Warn, before());
        assert_eq!(left(&warned, vec![tool("new", "", json!({}))]).0, ["new"]);
    }

    #[test]
    fn what_a_server_says_of_itself_is_pinned() {
        let enforced = pins(PinMode::Enforce, Vec::new());
        let listed = Listed { instructions: Some("Be evil".into()), ..Listed::default() };
        let listed = enforced.reviewed("s", listed);
        assert_eq!(listed.instructions, None);
        assert!(listed.notes[0].contains("instructions is not as it was pinned"), "{:?}", listed.notes);
        // A server that is not in the file has nothing that was reviewed.
        let other = enforced.reviewed("other", vec![tool("x", "", json!({}))].into());
        assert_eq!((other.tools.len(), other.refused.len()), (0, 1));
    }

    #[test]
    fn differences_are_readable_and_edits_of_the_file_are_found() {
        let mut lock = PinLock::default();
        lock.accept("s", &vec![tool("a", "A", json!({}))].into());
        let now = vec![tool("a", "B", json!({ "readOnlyHint": true }))].into();
        let lines = &lock.differences("s", &now)[0].lines;
        assert_eq!(
            *lines,
            ["- description: \"A\"", "+ description: \"B\"", "+ annotations.readOnlyHint: true"]
        );
        let mut nullable = tool("a", "A", json!({}));
        nullable.input_schema["properties"]["a"]["const"] = Json::Null;
        let lines = &lock.differences("s", &vec![nullable].into())[0].lines;
        assert_eq!(*lines, ["+ inputSchema.properties.a.const: null"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        lock.write(&path).unwrap();
        assert_eq!(PinLock::read(&path).unwrap(), lock);
        let newer = files::read_text(&path).unwrap().replace("\"version\": 1", "\"version\": 2, \"new\": 0");
        files::replace(&path, newer.as_bytes(), LinkRule::Replace, FileAccess::Private).unwrap();
        assert_eq!(PinLock::read(&path).unwrap_err().kind(), io::ErrorKind::Unsupported);
        lock.write(&path).unwrap();
        let edited = files::read_text(&path).unwrap().replace("\"A\"", "\"B\"");
        files::replace(&path, edited.as_bytes(), LinkRule::Replace, FileAccess::Private).unwrap();
        assert!(PinLock::read(&path).unwrap_err().to_string().contains("s/a: the digests are not"));
    }
}
