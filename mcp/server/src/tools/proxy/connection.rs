//! Names, finds and lists the configured servers for the tool `proxy-dispatch`, which calls them connections and gives
//! each an alias and an id.

use md5::{Digest as _, Md5};
use ptc_base::digest::hex;
use ptc_calls::tools::UpstreamTool;
use ptc_engine::{Runtime, ServerStatus};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// One configured server.
pub(super) struct Connection {
    /// `c1` for the first in name order.
    pub(super) alias: String,
    /// The MD5 of its name and descriptor, without secrets; stable while these do not change.
    pub(super) id: String,
    pub(super) status: ServerStatus,
}

/// The parts of tools that a list shows.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) schemas: bool,
    pub(super) annotations: bool,
}

impl Connection {
    /// All connections, in name order.
    pub(super) fn all(runtime: &Runtime) -> Vec<Connection> {
        let connection = |(at, status): (usize, ServerStatus)| {
            let canonical = json!([status.name, status.descriptor]).to_string();
            Connection { alias: format!("c{}", at + 1), id: hex(&Md5::digest(canonical)), status }
        };
        runtime.servers().into_iter().enumerate().map(connection).collect()
    }

    /// Whether `word` is its alias, id or name.
    pub(super) fn is(&self, word: &str) -> bool {
        [&*self.alias, &*self.id, &*self.status.name].contains(&word)
    }

    pub(super) fn label(&self) -> String {
        format!("{} ({})", self.alias, self.status.name)
    }

    /// Its entry in a list, with its tools if `tools` is given. Arguments of local commands are only for the
    /// person who configured them: they may hold a secret under no telling name.
    pub(super) fn entry(&self, tools: Option<Shown>, shows_arguments: bool) -> Value {
        let status = &self.status;
        let mut descriptor = status.descriptor.clone();
        if !shows_arguments && let Some(members) = descriptor.as_object_mut() {
            members.remove("args");
        }
        let mut entry = json!({
            "id": self.id, "alias": self.alias, "name": status.name, "state": status.state.name(),
            "descriptor": descriptor,
        });
        let optional = [
            ("description", status.description.clone().map(Value::from)),
            ("serverInfo", status.server_info.clone().map(Value::from)),
            ("toolCount", status.tools_loaded.then(|| status.tools.len().into())),
            ("lastRefreshed", status.listed_at.and_then(timestamp).map(Value::from)),
            ("error", status.error.as_deref().map(Value::from)),
            ("notes", Some(status.notes.clone().into()).filter(|_| !status.notes.is_empty())),
            (
                "tools",
                tools.map(|shown| {
                    status.tools.iter().map(|tool| Value::from(tool_entry(tool, shown))).collect()
                }),
            ),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                entry[key] = value;
            }
        }
        entry
    }
}

/// The entry of a tool in a list.
pub(super) fn tool_entry(tool: &UpstreamTool, shown: Shown) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("name".into(), (*tool.name).into());
    if let Some(title) = &tool.title {
        entry.insert("title".into(), title.as_str().into());
    }
    if let Some(description) = &tool.description {
        entry.insert("description".into(), description.as_str().into());
    }
    if shown.schemas {
        entry.insert("inputSchema".into(), tool.input_schema.clone());
    }
    if shown.annotations
        && let Ok(Value::Object(annotations)) = serde_json::to_value(&tool.annotations)
        && !annotations.is_empty()
    {
        entry.insert("annotations".into(), annotations.into());
    }
    entry
}

/// Finds a connection by alias, id or name.
///
/// # Errors
/// The message lists the connections if none matches.
pub(super) fn find<'c>(all: &'c [Connection], word: &str) -> Result<&'c Connection, String> {
    all.iter().find(|connection| connection.is(word)).ok_or_else(|| {
        const NAMED: usize = 30;
        let labels: Vec<String> = all.iter().take(NAMED).map(Connection::label).collect();
        let mut message = format!("there is no connection {word:?}; there is: {}", labels.join(", "));
        if all.len() > NAMED {
            let _ = write!(message, ", … and {} more", all.len() - NAMED);
        }
        message
    })
}

/// Formats a time as ISO 8601 in UTC, to the second.
fn timestamp(time: SystemTime) -> Option<String> {
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let timestamp = jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    Some(timestamp.to_string())
}
