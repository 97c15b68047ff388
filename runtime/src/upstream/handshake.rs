//! initialize, notifications/initialized, tools/list with all its pages.

use super::connection::{Connection, NO_SUCH_METHOD, Request};
use super::tool::Tool;
use super::{RawAnswer, UpstreamFault};
use crate::secrets::SecretRegistry;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

/// The version we ask for; any version the server answers is accepted.
const PROTOCOL_VERSION: &str = "2025-11-25";

/// Most bytes of one page of the tool list.
const LIST_CAP: usize = 16 << 20;

/// Most pages of the tool list.
const PAGES: usize = 1_000;

/// Most tools of one server.
const TOOLS: usize = 100_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    #[serde(default)]
    protocol_version: String,
    #[serde(default)]
    server_info: ServerInfo,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerInfo {
    name: String,
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolPage {
    tools: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Introduces us; the answer is `name version` of the server.
pub(super) async fn initialize(
    connection: &Connection,
    secrets: &SecretRegistry,
    timeout: Duration,
) -> Result<String, UpstreamFault> {
    let params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "ptc", "version": env!("CARGO_PKG_VERSION")},
    })
    .to_string();
    let request = Request { method: "initialize", params: &params, cap: LIST_CAP, timeout };
    let answer = connection.request(request).await?;
    let result: InitializeResult = decode(&answer, secrets, "initialize")?;
    connection.notify("notifications/initialized");
    tracing::debug!(version = result.protocol_version, "handshake done");
    let ServerInfo { name, version } = result.server_info;
    Ok(format!("{name} {version}").trim().to_owned())
}

/// Loads the whole tool list. A server without tools has an empty one.
pub(super) async fn list_tools(
    connection: &Connection,
    secrets: &SecretRegistry,
    timeout: Duration,
) -> Result<Vec<Tool>, UpstreamFault> {
    let mut tools = Vec::new();
    let mut seen = HashSet::new();
    let mut params = "{}".to_owned();
    for _ in 0..PAGES {
        let request = Request { method: "tools/list", params: &params, cap: LIST_CAP, timeout };
        let answer = match connection.request(request).await {
            Err(UpstreamFault::Protocol(text)) if tools.is_empty() && text == NO_SUCH_METHOD => break,
            answer => answer?,
        };
        let page: ToolPage = decode(&answer, secrets, "tools/list")?;
        for tool in page.tools {
            // One tool that cannot be read is no reason to lose the others.
            match serde_json::from_value::<Tool>(tool) {
                Ok(tool) if !tool.name.is_empty() => tools.push(tool),
                Ok(_) => tracing::warn!(upstream = connection.name(), "ignored a tool without a name"),
                Err(error) => {
                    tracing::warn!(upstream = connection.name(), %error, "ignored a malformed tool")
                }
            }
        }
        if tools.len() > TOOLS {
            return Err(UpstreamFault::Protocol(format!("tools/list has more than {TOOLS} tools")));
        }
        let Some(cursor) = page.next_cursor else { return Ok(tools) };
        if !seen.insert(cursor.clone()) {
            return Err(UpstreamFault::Protocol("tools/list repeats a cursor".into()));
        }
        params = json!({ "cursor": cursor }).to_string();
    }
    if seen.len() == PAGES {
        return Err(UpstreamFault::Protocol(format!("tools/list has more than {PAGES} pages")));
    }
    Ok(tools)
}

/// Catalog text is scrubbed before anything sees it.
fn decode<T: DeserializeOwned>(
    answer: &RawAnswer,
    secrets: &SecretRegistry,
    method: &str,
) -> Result<T, UpstreamFault> {
    let text = String::from_utf8_lossy(answer.bytes());
    serde_json::from_str(&secrets.scrub(&text))
        .map_err(|error| UpstreamFault::Protocol(format!("{method} returned unexpected payload: {error}")))
}
