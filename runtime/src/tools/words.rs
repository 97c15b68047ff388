//! What is wrong with a call, in words.

use super::expectation::{Mismatch, Shape};
use super::schema::key;
use super::suggest::nearest;
use super::text;
use super::{Catalog, CatalogServer, Tool, ToolList};
use crate::tool_call::ParsedCall;
use ptc_vm::Fault;

/// Where in the arguments: `:filter.state`, `:ids[2]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    text: String,
}

impl Path {
    /// The entry of a map.
    pub(crate) fn entry(&self, name: &str) -> Path {
        let text = if self.text.is_empty() { key(name) } else { format!("{}.{name}", self.text) };
        Path { text }
    }

    /// The item of a list.
    pub(crate) fn item(&self, at: usize) -> Path {
        Path { text: format!("{}[{at}]", self.text) }
    }
}

/// One thing that is wrong with the arguments of a call: what, and what to do about it.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    /// A value that does not fit.
    pub(crate) fn mismatch(path: &Path, mismatch: &Mismatch<'_>, shape: &Shape<'_>) -> Problem {
        let what = format!("{} must be {}, got {}", path.text, mismatch.wanted(), shape.shown());
        let near = match shape {
            Shape::Text(text) => {
                nearest(text, &mismatch.texts()).map(|near| format!("Did you mean {near:?}?"))
            }
            _ => None,
        };
        let hint = near.or_else(|| Problem::conversion(mismatch, shape));
        Problem { what, hint }
    }

    /// How to write the same value in the type that is wanted.
    fn conversion(mismatch: &Mismatch<'_>, shape: &Shape<'_>) -> Option<String> {
        let shown = shape.shown();
        if matches!(shape, Shape::Nil) {
            return Some("nil counts as left out; give it a value.".to_owned());
        }
        let Mismatch::Type(word) = mismatch else { return None };
        let wants = |kind: &str| word.split('|').any(|wanted| wanted == kind);
        match shape {
            Shape::Text(text)
                if (text.parse::<f64>().is_ok() && (wants("integer") || wants("number")))
                    || (wants("boolean") && matches!(&**text, "true" | "false")) =>
            {
                Some(format!("Write {text} without quotes."))
            }
            Shape::Text(_) | Shape::Int(_) | Shape::Float(_) if wants("array") => {
                Some(format!("Write [{shown}]: a list, also of one."))
            }
            Shape::Int(_) | Shape::Float(_) | Shape::Bool(_) if wants("string") => {
                Some(format!("Write \"{shown}\" with quotes."))
            }
            _ => None,
        }
    }

    /// A name that the schema does not take. `declared` are those it has and the call does not give.
    pub(crate) fn unknown(path: &Path, name: &str, declared: &[&str]) -> Problem {
        let hint = nearest(name, declared).map(|near| format!("Did you mean {}?", key(near)));
        Problem { what: format!("unknown arg {}", path.text), hint }
    }

    /// Names that must be there.
    pub(crate) fn missing(within: &Path, names: &[&str]) -> Problem {
        let what = match within.text.as_str() {
            "" => format!("missing required args {}", names.join(", ")),
            text => format!("{text} misses required {}", names.join(", ")),
        };
        Problem { what, hint: None }
    }

    /// The message of a call with this problem.
    pub(crate) fn message(&self, server: &str, tool: &str) -> String {
        format!("tool '{server}.{tool}' rejected args: {}", self.what)
    }

    /// The hints of a call with this problem: what to do, and how the tool is called.
    pub(crate) fn hints(self, server: &str, tool: &Tool) -> Vec<String> {
        self.hint.into_iter().chain(std::iter::once(signature_hint(server, tool))).collect()
    }
}

/// The remark about a name that a schema does not declare and does not refuse.
pub(crate) fn undeclared_note(server: &str, tool: &Tool, name: &str) -> String {
    format!(
        "the schema of {server}/{} has no argument {}; it may be ignored. {}",
        tool.name,
        key(name),
        signature_hint(server, tool)
    )
}

fn signature_hint(server: &str, tool: &Tool) -> String {
    format!("Signature: {}", text::signature(server, tool))
}

/// The fault of a call to a server that is not configured. What it may have meant: the nearest name, the
/// server in a longer name, or the server that has a tool of one of the names.
pub(crate) fn no_such_server(call: &ParsedCall, catalog: &Catalog) -> Box<Fault> {
    let known: Vec<&str> = catalog.servers().map(|server| &*server.name).collect();
    let fault = call.no_such_server(&known);
    if !fault.hints.is_empty() || known.is_empty() {
        return fault;
    }
    let parts = call.server.split("__").chain(call.server.split('/'));
    if let Some(inner) = parts.filter_map(|part| known.iter().find(|name| **name == part)).next() {
        return fault.hint(format!("Did you mean {inner:?}?"));
    }
    for tool in [&call.tool, &call.server] {
        if let Some(server) = server_with(catalog, tool) {
            return fault.hint(format!("{tool:?} is a tool of {server:?}."));
        }
    }
    fault.hint("(apropos \"words\") searches the tools of all servers.")
}

/// The fault of a call to a tool that a complete list does not have, with the nearest tool and its signature.
pub(crate) fn no_such_tool(call: &ParsedCall, tools: &ToolList, catalog: &Catalog) -> Box<Fault> {
    let known: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let fault = call.no_such_tool(&known);
    if let Some(tool) = nearest(&call.tool, &known).and_then(|near| tools.get(near)) {
        return fault.hint(signature_hint(&call.server, tool));
    }
    // `server/tool`, or `mcp__server__tool` as hosts write it.
    let inner = call.tool.rsplit('/').next().into_iter().chain(call.tool.rsplit("__").next());
    if let Some(tool) = inner.filter_map(|name| tools.get(name)).next() {
        return fault.hint(format!("Did you mean {:?}?", tool.name)).hint(signature_hint(&call.server, tool));
    }
    match server_with(catalog, &call.tool) {
        Some(server) => fault.hint(format!("{:?} is a tool of {server:?}.", call.tool)),
        None => fault.hint(format!("(dir '{}) lists its tools with descriptions.", call.server)),
    }
}

/// The first server that has a tool of this name.
fn server_with<'c>(catalog: &'c Catalog, tool: &str) -> Option<&'c str> {
    let has = |server: &&CatalogServer| server.tools.as_ref().is_some_and(|tools| tools.get(tool).is_some());
    catalog.servers().find(has).map(|server| &*server.name)
}
