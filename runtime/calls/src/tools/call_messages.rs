//! Explains wrong tool calls in the caller's notation (Lisp, JSON, Python): unknown servers and tools, and arguments
//! that the schema does not have or allow.

use super::key::key;
use super::signature::python::{python_name, python_word};
use super::suggest::nearest;
use super::visible::visible_line;
use super::{Catalog, CatalogServer, Refusal, ToolList, UpstreamTool};
use super::{HOST, text};
use crate::schema::judge::{Mismatch, Names, ValueShape, Verdict};
use ptc_vm::BoundedText;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Limit of tools that a message lists.
const LISTED: usize = 40;

/// Limit of undeclared names that are reported for a call.
const MOST_UNDECLARED: usize = 10;

/// How a hint with a signature begins.
const SIGNATURE: &str = "Signature: ";

/// Cost of comparing two names for similarity, in required names checked.
const LIKENESS: u64 = 16;
const REQUIRED: usize = 8;

/// A wrong call, which is not sent: a message, and hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongCall {
    /// One line that says what is wrong.
    pub message: String,
    /// What to change, the most likely first.
    pub hints: Vec<String>,
}

impl WrongCall {
    /// What is wrong with the arguments, without the words that name the tool; `None` if something else is wrong.
    pub fn problem(&self, server: &str, tool: &str) -> Option<&str> {
        self.message.strip_prefix(&rejected(server, tool, ""))
    }

    /// The hints for callers who have another way to show the signature.
    pub fn suggestions(&self) -> impl Iterator<Item = &str> {
        self.hints.iter().map(String::as_str).filter(|hint| !hint.starts_with(SIGNATURE))
    }

    fn new(message: String) -> WrongCall {
        WrongCall { message, hints: Vec::new() }
    }

    fn hint(mut self, hint: impl Into<String>) -> WrongCall {
        self.hints.push(hint.into());
        self
    }

    /// Adds "Did you mean" when a known name is near.
    fn hint_closest(self, wanted: &str, known: &[&str]) -> WrongCall {
        match nearest(wanted, known) {
            Some(name) => self.hint(format!("Did you mean {name:?}?")),
            None => self,
        }
    }
}

/// The syntax in which the caller writes names and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `:name`, `nil`, and discovery forms in hints.
    Lisp,
    /// `name`, `null`.
    Json,
    /// `name`, `None`, types of Python; the words of Python for wrong arguments.
    Python,
}

impl Notation {
    /// The name of an entry.
    fn key(self, name: &str) -> Cow<'_, str> {
        match self {
            Notation::Lisp => Cow::Owned(key(name)),
            Notation::Json => Cow::Borrowed(name),
            Notation::Python => Cow::Owned(python_name(name)),
        }
    }

    /// What a schema demands, to follow `must be`.
    fn wanted(self, mismatch: &Mismatch<'_>) -> String {
        match (self, mismatch) {
            (Notation::Python, Mismatch::Type(word)) => {
                word.split('|').map(python_word).collect::<Vec<_>>().join(" or ")
            }
            _ => mismatch.wanted(),
        }
    }

    /// A value in a message.
    pub(super) fn shown(self, shape: &ValueShape<'_>) -> String {
        match (self, shape) {
            (Notation::Json, ValueShape::Nil) => "null".to_owned(),
            (Notation::Json, ValueShape::Map) => "an object".to_owned(),
            (Notation::Python, ValueShape::Nil) => "None".to_owned(),
            (Notation::Python, ValueShape::Bool(true)) => "True".to_owned(),
            (Notation::Python, ValueShape::Bool(false)) => "False".to_owned(),
            (Notation::Python, ValueShape::Map) => "a dict".to_owned(),
            _ => shape.shown(),
        }
    }
}

/// A path in the arguments: `:filter.state`, `:ids[2]`. It is cut at a length limit: names may be long, and
/// nest deeply.
#[derive(Clone, Debug)]
pub struct Path {
    text: BoundedText,
    notation: Notation,
}

impl Path {
    /// The arguments themselves.
    pub fn root(notation: Notation) -> Path {
        Path { text: BoundedText::default(), notation }
    }

    /// The entry of a map.
    pub fn entry(&self, name: &str) -> Path {
        let text = match self.text.as_str() {
            "" => BoundedText::new(self.notation.key(&BoundedText::new(name))),
            text => BoundedText::new(format_args!("{text}.{name}")),
        };
        Path { text, notation: self.notation }
    }

    /// The item of a list.
    pub fn item(&self, at: usize) -> Path {
        Path { text: BoundedText::new(format_args!("{}[{at}]", self.text)), notation: self.notation }
    }

    /// True when the limit is reached.
    pub fn is_full(&self) -> bool {
        self.text.is_full()
    }
}

/// One problem with the arguments of a call, with a hint.
#[derive(Debug)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Problem {
    /// A value that does not match.
    pub fn mismatch(path: &Path, mismatch: &Mismatch<'_>, shape: &ValueShape<'_>) -> Problem {
        let what = format!(
            "{} must be {}, got {}",
            path.text,
            path.notation.wanted(mismatch),
            path.notation.shown(shape)
        );
        let near = match shape {
            ValueShape::Text(text) => {
                nearest(text, &mismatch.texts()).map(|near| format!("Did you mean {near:?}?"))
            }
            _ => None,
        };
        let hint = near.or_else(|| Problem::conversion(mismatch, shape, path.notation));
        Problem { what, hint }
    }

    /// The same value in the type that is wanted, as a hint.
    fn conversion(mismatch: &Mismatch<'_>, shape: &ValueShape<'_>, notation: Notation) -> Option<String> {
        let shown = notation.shown(shape);
        if matches!(shape, ValueShape::Nil) {
            return Some(match notation {
                Notation::Lisp => "nil counts as left out; give it a value.".to_owned(),
                Notation::Json | Notation::Python => "Leave it out, or give it a value.".to_owned(),
            });
        }
        let Mismatch::Type(word) = mismatch else { return None };
        let wants = |kind: &str| word.split('|').any(|wanted| wanted == kind);
        match shape {
            ValueShape::Text(text)
                if (text.parse::<f64>().is_ok() && (wants("integer") || wants("number")))
                    || (wants("boolean") && matches!(&**text, "true" | "false")) =>
            {
                Some(format!("Write {text} without quotes."))
            }
            ValueShape::Text(_) | ValueShape::Int(_) | ValueShape::Float(_) if wants("array") => {
                Some(format!("Write [{shown}]: a list, also of one."))
            }
            ValueShape::Int(_) | ValueShape::Float(_) | ValueShape::Bool(_) if wants("string") => {
                Some(format!("Write \"{shown}\" with quotes."))
            }
            _ => None,
        }
    }

    /// A name that the schema refuses. `declared` are the declared names that the call does not give.
    pub fn unknown(path: &Path, name: &str, declared: &[&str]) -> Problem {
        let hint = nearest(name, declared).map(|near| format!("Did you mean {}?", path.notation.key(near)));
        let what = match path.notation {
            Notation::Python if !path.text.contains('.') => {
                format!("got an unexpected keyword argument '{}'", path.text)
            }
            Notation::Python => format!("got an unexpected member {}", path.text),
            Notation::Lisp | Notation::Json => format!("unknown arg {}", path.text),
        };
        Problem { what, hint }
    }

    /// Required names that are missing.
    pub fn missing(within: &Path, names: &[&str]) -> Problem {
        let what = match within.text.as_str() {
            "" if within.notation == Notation::Python => {
                let names: Vec<String> = names.iter().map(|name| python_name(name)).collect();
                let plural = if names.len() == 1 { "" } else { "s" };
                format!("missing {} required argument{plural}: {}", names.len(), names.join(", "))
            }
            "" => format!("missing required args {}", names.join(", ")),
            text => format!("{text} misses required {}", names.join(", ")),
        };
        Problem { what, hint: None }
    }

    /// The wrong call for this problem: message, hint, and signature of the tool.
    pub fn into_wrong_call(self, server: &str, tool: &UpstreamTool) -> WrongCall {
        WrongCall {
            message: visible_line(&rejected(server, &tool.name, &self.what)).into_owned(),
            hints: self
                .hint
                .map(|hint| visible_line(&hint).into_owned())
                .into_iter()
                .chain(std::iter::once(signature_hint(server, tool)))
                .collect(),
        }
    }
}

/// A call with arguments that cannot be sent.
pub(super) fn not_sent(server: &str, tool: &str, why: &str) -> WrongCall {
    WrongCall::new(rejected(server, tool, why))
}

/// Checks the names of a complete map. Reports names that the schema refuses, names that are near to a
/// declared one that is missing, and required names that are missing. Returns the first few other undeclared
/// names. Both map and schema may be large: `pay` is called with the cost before the work is done.
pub fn review<'n, E: From<Problem>>(
    names: &Names<'_>,
    given: impl Iterator<Item = &'n str>,
    has: impl Fn(&str) -> bool,
    path: impl Fn() -> Path,
    mut pay: impl FnMut(u64) -> Result<(), E>,
) -> Result<BTreeSet<&'n str>, E> {
    // The names that a wrong one may mean; computed when one is found.
    let mut free = None;
    let mut wrong: Option<&str> = None;
    let mut undeclared = BTreeSet::new();
    for name in given {
        let verdict = names.judge(name);
        if verdict == Verdict::Known {
            continue;
        }
        let free = free.get_or_insert_with(|| {
            let mut free = names.declared();
            free.retain(|name| !has(name));
            free
        });
        pay(LIKENESS * free.len() as u64)?;
        if verdict == Verdict::Refused || nearest(name, free).is_some() {
            wrong = Some(wrong.map_or(name, |wrong| wrong.min(name)));
        } else {
            undeclared.insert(name);
            if undeclared.len() > MOST_UNDECLARED {
                undeclared.pop_last();
            }
        }
    }
    if let Some(name) = wrong {
        return Err(Problem::unknown(&path().entry(name), name, &free.unwrap_or_default()).into());
    }
    pay((names.required().count() / REQUIRED) as u64)?;
    let missing: Vec<&str> = names.required().filter(|name| !has(name)).collect();
    if missing.is_empty() { Ok(undeclared) } else { Err(Problem::missing(&path(), &missing).into()) }
}

/// The message about arguments that cannot be sent.
pub fn rejected(server: &str, tool: &str, why: &str) -> String {
    match server {
        HOST => format!("{HOST}/{tool} rejected args: {why}"),
        _ => format!("tool '{server}.{tool}' rejected args: {why}"),
    }
}

/// A call of a tool that the host does not offer.
pub fn not_granted(tool: &str, granted: &[&str]) -> WrongCall {
    if granted.is_empty() {
        let wrong = WrongCall::new(format!("Unknown tool: {tool}. No tools available."));
        return wrong
            .hint("Upstream tools are called as (tool/call {:server \"name\" :tool \"name\" :args {…}}).");
    }
    let wrong = WrongCall::new(format!("Unknown tool: {tool}. Available tools: {}", granted.join(", ")));
    match nearest(tool, granted) {
        Some(near) => wrong.hint(format!("Did you mean `tool/{near}`?")),
        None => wrong,
    }
}

/// The note about a name that a schema neither declares nor refuses.
pub fn undeclared_note(server: &str, tool: &UpstreamTool, name: &str, notation: Notation) -> String {
    format!(
        "the schema of {server}/{} has no argument {}; it may be ignored. {}",
        tool.name,
        notation.key(name),
        signature_hint(server, tool)
    )
}

/// The hint with the tool's signature.
pub fn signature_hint(server: &str, tool: &UpstreamTool) -> String {
    format!("{SIGNATURE}{}", text::signature(server, tool))
}

/// The names of the configured servers, to append to a message.
pub fn configured(servers: &[&str]) -> String {
    if servers.is_empty() {
        " No upstreams are configured.".to_owned()
    } else {
        format!(" Configured upstreams: {}", servers.join(", "))
    }
}

/// The hint if no server is configured.
const NO_SERVERS: &str = "A file names servers: --upstreams-config FILE, or ~/.config/ptc/upstreams.json; `ptc add` adds \
    to it, `ptc config import` makes it of the files of other hosts.";

/// A call to a server that is not configured. Candidates for what it means: the nearest name, a known
/// name that is a part of it, or the server that has a tool of this name.
pub fn no_such_server(server: &str, tool: &str, catalog: &Catalog, notation: Notation) -> WrongCall {
    let known: Vec<&str> = catalog.servers().map(|server| &*server.name).collect();
    let wrong = WrongCall::new(format!("no upstream '{server}' configured.{}", configured(&known)))
        .hint_closest(server, &known);
    if known.is_empty() {
        return wrong.hint(NO_SERVERS);
    }
    if !wrong.hints.is_empty() {
        return wrong;
    }
    let parts = server.split("__").chain(server.split('/'));
    if let Some(inner) = parts.filter_map(|part| known.iter().find(|name| **name == part)).next() {
        return wrong.hint(format!("Did you mean {inner:?}?"));
    }
    for tool in [tool, server] {
        if let Some(server) = server_with(catalog, tool) {
            return wrong.hint(format!("{tool:?} is a tool of {server:?}."));
        }
    }
    match notation {
        Notation::Lisp => wrong.hint("(apropos \"words\") searches the tools of all servers."),
        Notation::Json | Notation::Python => wrong,
    }
}

/// A call to a tool that is not in the list, with the nearest tool and its signature.
pub fn no_such_tool(
    server: &str,
    tool: &str,
    tools: &ToolList,
    catalog: &Catalog,
    notation: Notation,
) -> WrongCall {
    let known: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let mut listed = known.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    if known.len() > LISTED {
        listed.push_str(&format!(", … ({} more)", known.len() - LISTED));
    }
    let within = match tools.cut() {
        None => format!("in upstream '{server}'"),
        Some(why) => {
            let count = known.len();
            format!("among the {count} known of upstream '{server}', whose list was cut because {why}")
        }
    };
    let wrong = WrongCall::new(format!("no tool '{tool}' {within}. Known tools: {listed}"))
        .hint_closest(tool, &known);
    if let Some(near) = nearest(tool, &known).and_then(|near| tools.get(near)) {
        return wrong.hint(signature_hint(server, near));
    }
    // `server/tool`, or `mcp__server__tool` as hosts write it.
    let inner = tool.rsplit('/').next().into_iter().chain(tool.rsplit("__").next());
    if let Some(tool) = inner.filter_map(|name| tools.get(name)).next() {
        return wrong.hint(format!("Did you mean {:?}?", tool.name)).hint(signature_hint(server, tool));
    }
    match (server_with(catalog, tool), notation) {
        (Some(server), _) => wrong.hint(format!("{tool:?} is a tool of {server:?}.")),
        (None, Notation::Lisp) => wrong.hint(format!("(dir '{server}) lists its tools with descriptions.")),
        (None, Notation::Json | Notation::Python) => wrong,
    }
}

/// A call to a tool that the configuration refuses.
pub fn refused_tool(server: &str, tool: &str, refusal: Refusal) -> WrongCall {
    WrongCall::new(format!("no tool '{tool}' in upstream '{server}': {refusal}"))
}

/// A request for resources or prompts that the configuration refuses.
pub fn refused_request(server: &str, method: &str, refusal: Refusal) -> WrongCall {
    WrongCall::new(format!("upstream '{server}' may not be sent {method}: {refusal}"))
        .hint(format!("{method:?} among the tools.allow of the server opens it."))
}

/// The first server that has a tool of this name.
fn server_with<'c>(catalog: &'c Catalog, tool: &str) -> Option<&'c str> {
    let has = |server: &&CatalogServer| server.tools.as_ref().is_some_and(|tools| tools.get(tool).is_some());
    catalog.servers().find(has).map(|server| &*server.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{Listed, SharedCatalog};
    use serde_json::json;

    #[test]
    fn a_wrong_name_is_told_with_the_nearest_in_the_notation_of_the_caller() {
        let catalog = SharedCatalog::new(["fs", "github"].map(|name| (name.into(), None))).snapshot();
        for notation in [Notation::Lisp, Notation::Json] {
            let wrong = no_such_server("gitub", "reed", &catalog, notation);
            assert_eq!(wrong.message, "no upstream 'gitub' configured. Configured upstreams: fs, github");
            assert_eq!(wrong.hints, ["Did you mean \"github\"?"]);
        }
        let read: UpstreamTool = serde_json::from_value(json!({"name": "read"})).unwrap();
        let tools = ToolList::new(vec![read]);
        let hints = |tool, notation| {
            let wrong = no_such_tool("fs", tool, &tools, &catalog, notation);
            assert_eq!(wrong.message, format!("no tool '{tool}' in upstream 'fs'. Known tools: read"));
            wrong.hints
        };
        assert_eq!(hints("reed", Notation::Json), ["Did you mean \"read\"?", "Signature: fs/read {}"]);
        assert_eq!(hints("xyz", Notation::Lisp), ["(dir 'fs) lists its tools with descriptions."]);
        let listed = Listed { cut: Some("tools/list has more than 9 bytes".into()), ..Listed::default() };
        let cut = ToolList::new(listed);
        let beyond = no_such_tool("fs", "far", &cut, &catalog, Notation::Json).message;
        let list =
            "among the 0 known of upstream 'fs', whose list was cut because tools/list has more than 9 bytes";
        assert_eq!(beyond, format!("no tool 'far' {list}. Known tools: "));
        assert!(hints("xyz", Notation::Json).is_empty());
    }
}
