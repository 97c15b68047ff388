//! Implements `(apropos query)`, with which a program searches tools, servers and names of the language, and gets
//! matches best first.
//!
//! Exports of the host come before tools, tools before servers with unknown tools, and all of them
//! before names of the language. Within a group the score decides, then the name, so the order is the same in
//! every run.

use super::LINE_TICKS;
use super::provider::Provider;
use super::record::NameOrigin;
use super::search::Query;
use ptc_calls::tools::text::{SUMMARY, hints, one_line, tool_line};
use ptc_calls::tools::visible::{shown_name, visible_line};
use ptc_calls::tools::{Catalog, CatalogServer, ToolList, UpstreamTool};
use ptc_vm::{Context, Fault};
use std::cmp::Reverse;
use std::sync::Arc;

/// The groups in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Export,
    Tool,
    Offer,
    UnloadedServer,
    Local,
}

/// The place of a match: its group, its score, its namespace and its name.
type Rank = (Group, Reverse<u32>, String, String);

/// One match.
struct Hit<'c> {
    rank: Rank,
    found: Found<'c>,
}

/// What was found. The line of a tool takes time to write, so only those that are shown get one.
enum Found<'c> {
    Line(String),
    Tool(&'c UpstreamTool),
}

/// The result of a search.
pub(crate) struct Matches {
    pub(crate) lines: Vec<String>,
    /// Servers that could not be searched, because their tools are not loaded.
    pub(crate) unsearched: Vec<String>,
}

/// Searches, and describes the first `limit` matches. `tools_only`: only tools are found.
pub(crate) fn search(
    cx: &mut Context,
    catalog: &Catalog,
    text: &str,
    limit: usize,
    tools_only: bool,
    providers: &[&dyn Provider],
) -> Result<Matches, Box<Fault>> {
    let query = Query::new(text);
    let (mut hits, mut unsearched) = (Vec::new(), Vec::new());
    for server in catalog.servers() {
        match &server.tools {
            Some(tools) => {
                for tool in tools.iter() {
                    hits.extend(tool_hit(cx, &query, server, tool)?);
                }
                offer_hits(cx, &query, server, tools, &mut hits)?;
            }
            None => match server_hit(&query, server).filter(|_| !tools_only) {
                Some(hit) => hits.push(hit),
                None => unsearched.push(server.name.to_string()),
            },
        }
    }
    for provider in providers {
        let found = provider.search(&query);
        cx.tick(found.len() as u64 + 64)?;
        let wanted = found.into_iter().filter(|(_, record)| !tools_only || record.origin == NameOrigin::Tool);
        hits.extend(wanted.map(|(score, record)| {
            let group = match record.origin {
                NameOrigin::Prelude | NameOrigin::Tool => Group::Export,
                NameOrigin::Language => Group::Local,
            };
            let found = Found::Line(record.found_line());
            Hit { rank: (group, Reverse(score), record.namespace, record.name), found }
        }));
    }
    hits.sort_by(|one, other| one.rank.cmp(&other.rank));
    hits.truncate(limit);
    let mut lines = Vec::with_capacity(hits.len());
    for Hit { rank: (.., server, name), found } in hits {
        let line = match found {
            Found::Line(line) => line,
            Found::Tool(tool) => {
                cx.tick(LINE_TICKS)?;
                tool_line(&format!("{server}/{}", shown_name(&name)), tool)
            }
        };
        // A name of a server may hold anything.
        lines.push(visible_line(&line).into_owned());
    }
    Ok(Matches { lines, unsearched })
}

fn tool_hit<'c>(
    cx: &mut Context,
    query: &Query,
    server: &CatalogServer,
    tool: &'c UpstreamTool,
) -> Result<Option<Hit<'c>>, Box<Fault>> {
    // Reading the text is the work to charge.
    let bytes: usize = texts(tool).map(str::len).sum();
    cx.tick(bytes as u64 / 8 + 8)?;
    let score = score(query, server, tool);
    Ok((score > 0).then(|| Hit {
        rank: (Group::Tool, Reverse(score), server.name.to_string(), tool.name.to_string()),
        found: Found::Tool(tool),
    }))
}

/// Resources and prompts of a server. They are found with tools: a program uses them as it uses tools.
fn offer_hits(
    cx: &mut Context,
    query: &Query,
    server: &CatalogServer,
    tools: &ToolList,
    hits: &mut Vec<Hit<'_>>,
) -> Result<(), Box<Fault>> {
    for list in tools.offers().lists() {
        cx.tick(list.entries.len() as u64 * 32)?;
        for entry in &list.entries {
            let names = [&*server.name, &*entry.address].into_iter();
            let score = query.score(names, [&*entry.about, list.kind.words().0].into_iter());
            if score > 0 {
                let about = if entry.about.is_empty() { "" } else { " - " };
                let form = entry.form(list.kind, &server.name);
                hits.push(Hit {
                    rank: (Group::Offer, Reverse(score), server.name.to_string(), entry.address.clone()),
                    found: Found::Line(format!("{form}{about}{}", entry.about)),
                });
            }
        }
    }
    Ok(())
}

fn texts(tool: &UpstreamTool) -> impl Iterator<Item = &str> {
    let own = [tool.description.as_deref(), tool.title.as_deref()];
    let hints = hints(&tool.annotations).map(|hint| hint.searched);
    own.into_iter().flatten().chain(tool.annotations.texts()).chain(hints)
}

fn score(query: &Query, server: &CatalogServer, tool: &UpstreamTool) -> u32 {
    let properties = tool.input_schema.get("properties").and_then(serde_json::Value::as_object);
    let keys = properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
    query.score([&*server.name, &*tool.name].into_iter(), texts(tool).chain(keys))
}

/// The tools of these lists that match a query, best first, with the names of their servers. The order is
/// that of `(apropos query)`.
pub fn matching_tools<'c>(
    servers: impl Iterator<Item = (&'c CatalogServer, &'c Arc<ToolList>)>,
    text: &str,
) -> Vec<(&'c str, &'c Arc<UpstreamTool>)> {
    let query = Query::new(text);
    let tools = servers.flat_map(|(server, tools)| tools.iter().map(move |tool| (server, tool)));
    let mut found: Vec<_> = tools
        .map(|(server, tool)| (Reverse(score(&query, server, tool)), &*server.name, tool))
        .filter(|(Reverse(score), ..)| *score > 0)
        .collect();
    found.sort_by(|(score, server, tool), other| {
        (score, server, &tool.name).cmp(&(&other.0, &other.1, &other.2.name))
    });
    found.into_iter().map(|(_, server, tool)| (server, tool)).collect()
}

fn server_hit(query: &Query, server: &CatalogServer) -> Option<Hit<'static>> {
    let description = server.about().unwrap_or_default();
    let score = query.score(std::iter::once(&*server.name), std::iter::once(&*description));
    (score > 0).then(|| {
        let name = serde_json::Value::from(&*server.name);
        let about = one_line(&description, SUMMARY);
        let about = about.trim_end_matches('.');
        let about = if about.is_empty() { String::new() } else { format!(" {about}.") };
        let line = format!("{}:{about} Catalog not loaded. Use (dir {name} {{:limit 20}}).", server.name);
        Hit {
            rank: (Group::UnloadedServer, Reverse(score), server.name.to_string(), String::new()),
            found: Found::Line(line),
        }
    })
}
