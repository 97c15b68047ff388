//! Compares the tool list of `ptc`, which a client reads before its first call, with the lists of its
//! upstreams; also serves made-up tools as such an upstream.
//!
//! The upstreams are processes of this binary with made-up tools of ordinary size.

use ptc_calls::limits::Limits;
use ptc_engine::Runtime;
use ptc_server::answer::caps::Profile;
use ptc_server::protocol::version::Version;
use ptc_server::protocol::{Frame, Message, RpcError, ServerMessage};
use ptc_server::server::outbox::write_line;
use ptc_server::tools::catalog::{CatalogMode, CatalogStyle, CatalogView};
use ptc_server::tools::registry::MoreTools;
use ptc_server::tools::{Facts, Registry};
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use std::sync::Arc;

/// Number of tools of one server.
pub const TOOLS_A_SERVER: usize = 20;

/// Bytes of tool lists, as `tools/list` results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The lists of all upstreams together.
    pub upstreams: usize,
    /// Our list in the default mode.
    pub auto: usize,
    /// Our list with every tool named and described.
    pub inline: usize,
}

/// Measures the lists of a runtime after its servers have started.
pub fn measure(runtime: &Arc<Runtime>) -> Sizes {
    let tools = |server: &ptc_engine::ServerStatus| -> usize {
        let tools: Vec<Value> = server
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema,
                })
            })
            .collect();
        json!({ "tools": tools }).to_string().len()
    };
    let list = |mode| tool_list(runtime, mode).to_string().len();
    Sizes {
        upstreams: runtime.servers().iter().map(tools).sum(),
        auto: list(CatalogMode::Auto),
        inline: list(CatalogMode::Inline),
    }
}

/// Our `tools/list` result.
pub fn tool_list(runtime: &Arc<Runtime>, mode: CatalogMode) -> Value {
    let catalog_style = CatalogStyle { mode, ..CatalogStyle::default() };
    let facts = Facts {
        catalog: CatalogView::from_catalog(&runtime.catalog(), &catalog_style).into(),
        catalog_style,
        max_calls: 50,
        timeout_ms: 10_000,
        profile: Profile::Slim,
        ..Facts::default()
    };
    let registry = Registry::of_server(runtime.clone(), Limits::default(), MoreTools::default());
    json!({ "tools": registry.list(&facts).ok() })
}

const VERBS: [&str; 5] = ["list", "get", "search", "create", "update"];
const NOUNS: [&str; 4] = ["issues", "comments", "labels", "milestones"];

/// Makes the made-up tools of a server.
pub fn tools(count: usize) -> Vec<Value> {
    (0..count)
        .map(|index| {
            let (verb, noun) = (VERBS[index % VERBS.len()], NOUNS[index / VERBS.len() % NOUNS.len()]);
            let round = index / (VERBS.len() * NOUNS.len());
            let name = if round == 0 { format!("{verb}_{noun}") } else { format!("{verb}_{noun}_{round}") };
            json!({
                "name": name,
                "description": format!(
                    "Use this tool to {verb} the {noun} of a repository. Results come in pages of at most 100 \
                     items; pass the cursor of one page to get the next."
                ),
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "owner": { "type": "string", "description": "Account that owns the repository" },
                        "repo": { "type": "string", "description": "Name of the repository without the owner" },
                        "state": { "type": "string", "enum": ["open", "closed", "all"], "default": "open" },
                        "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
                        "cursor": { "type": "string", "description": "Where the page begins" },
                    },
                    "required": ["owner", "repo"], "additionalProperties": false,
                },
            })
        })
        .collect()
}

/// Serves made-up tools until the input ends.
///
/// # Errors
/// Broken pipes.
pub fn serve(count: usize, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let tools = tools(count);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(reply) = answer(line.trim_ascii_end(), &tools) {
            write_line(&mut output, &reply)?;
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}

fn answer(line: &[u8], tools: &[Value]) -> Option<ServerMessage> {
    let mut frame = Frame::default();
    let (id, method) = match frame.read(line) {
        Err(error) => return Some(ServerMessage::error(None, &error.into())),
        Ok(Message::Request { id, method, .. }) => (id, method),
        Ok(_) => return None,
    };
    let result = match method {
        "initialize" => json!({
            "protocolVersion": Version::LATEST_WITH_HANDSHAKE.name(),
            "serverInfo": { "name": "tools", "version": env!("CARGO_PKG_VERSION") },
            "capabilities": { "tools": {} },
        }),
        "tools/list" => json!({ "tools": tools }),
        "tools/call" => json!({ "content": [] }),
        "ping" => json!({}),
        _ => return Some(ServerMessage::error(Some(&id), &RpcError::method_not_found())),
    };
    Some(ServerMessage::result(&id, &result))
}
