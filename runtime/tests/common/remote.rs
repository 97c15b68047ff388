//! A remote MCP server for tests, any answer of which a test may replace.

use super::http::{Authority, Got, HttpServer, Reply};
use ptc_base::net::{ClientOptions, Headers};
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{HttpProtocol, HttpSpec};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// The protocol that a [`RemoteServer`] speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Handshake and sessions; answers are JSON.
    Sessions,
    /// The same; answers are event streams.
    Events,
    /// The stateless era, with its headers.
    Stateless,
}

impl Style {
    pub(crate) const ALL: [Style; 3] = [Style::Sessions, Style::Events, Style::Stateless];
}

pub(crate) struct RemoteServer {
    pub(crate) http: HttpServer,
    sessions: Arc<Mutex<Sessions>>,
}

#[derive(Default)]
struct Sessions {
    live: HashSet<String>,
    made: usize,
}

impl RemoteServer {
    /// `answer` sees every request first, and may answer it.
    pub(crate) async fn new(
        style: Style,
        answer: impl Fn(&Got) -> Option<Reply> + Send + Sync + 'static,
    ) -> RemoteServer {
        let sessions = Arc::<Mutex<Sessions>>::default();
        let known = sessions.clone();
        let http = HttpServer::new(move |got| answer(got).unwrap_or_else(|| usual(style, &known, got))).await;
        RemoteServer { http, sessions }
    }

    /// The same behind TLS.
    pub(crate) async fn tls(style: Style, authority: &Authority) -> RemoteServer {
        let sessions = Arc::<Mutex<Sessions>>::default();
        let known = sessions.clone();
        let http = HttpServer::tls(authority, move |got| usual(style, &known, got)).await;
        RemoteServer { http, sessions }
    }

    pub(crate) fn spec(&self) -> HttpSpec {
        spec(&self.http.url("/mcp"), HttpProtocol::Streamable)
    }

    pub(crate) fn entry(&self) -> ServerEntry {
        ServerEntry::http("remote", self.spec())
    }

    /// Forgets all sessions.
    pub(crate) fn forget(&self) {
        self.sessions.lock().unwrap().live.clear();
    }

    /// `method` or `method tool` of each message since the last call, or the HTTP method.
    pub(crate) fn log(&self) -> Vec<String> {
        self.http.got().iter().map(name).collect()
    }
}

pub(crate) fn spec(url: &str, protocol: HttpProtocol) -> HttpSpec {
    HttpSpec {
        url: url.parse().unwrap(),
        protocol,
        headers: Headers::default(),
        client: ClientOptions::default(),
        login: None,
    }
}

/// The subject of a request.
pub(crate) fn name(got: &Got) -> String {
    let message = got.json();
    match (message["method"].as_str(), message["params"]["name"].as_str()) {
        (Some(method), Some(tool)) => format!("{method} {tool}"),
        (Some(method), None) => method.to_owned(),
        (None, _) if got.method == "POST" => "answer".to_owned(),
        (None, _) => got.method.clone(),
    }
}

/// The called tool, if any.
pub(crate) fn tool(got: &Got) -> Option<String> {
    let message = got.json();
    (message["method"] == "tools/call").then(|| message["params"]["name"].as_str().unwrap().to_owned())
}

/// The message that answers a request.
pub(crate) fn result(got: &Got, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": got.json()["id"], "result": result})
}

/// A message as an event.
pub(crate) fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

pub(crate) fn refuse(status: u16, got: &Got, code: i64, message: &str) -> Reply {
    let error =
        json!({"jsonrpc": "2.0", "id": got.json()["id"], "error": {"code": code, "message": message}});
    Reply::new(status, &[("content-type", "application/json")], error.to_string())
}

/// The answer of a server that does not know the session and has not read the request.
pub(crate) fn lost_session(status: u16) -> Reply {
    let error = json!({"code": -32000, "message": "Session not found"});
    let message = json!({"jsonrpc": "2.0", "id": null, "error": error});
    Reply::new(status, &[("content-type", "application/json")], message.to_string())
}

fn usual(style: Style, sessions: &Mutex<Sessions>, got: &Got) -> Reply {
    let message = got.json();
    let method = message["method"].as_str().unwrap_or_default();
    if got.method == "GET" {
        return Reply::new(405, &[], "");
    }
    if style == Style::Stateless {
        let revision = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let told = (got.header("mcp-protocol-version"), got.header("mcp-method"), got.header("mcp-name"));
        let named = message["params"]["name"].as_str();
        if told != (revision, Some(method), named) {
            return refuse(400, got, -32020, &format!("header mismatch: {told:?}"));
        }
    } else if method == "initialize" {
        let mut sessions = sessions.lock().unwrap();
        sessions.made += 1;
        let id = format!("session-{}", sessions.made);
        sessions.live.insert(id.clone());
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "remote", "version": "1"},
        });
        let headers = [("mcp-session-id", id.as_str()), ("content-type", "application/json")];
        return Reply::new(200, &headers, result(got, &hello).to_string());
    } else {
        let session = got.header("mcp-session-id");
        if method == "server/discover" {
            return refuse(400, got, -32600, "no session");
        }
        if !session.is_some_and(|session| sessions.lock().unwrap().live.contains(session)) {
            return lost_session(404);
        }
        assert_eq!(got.header("mcp-protocol-version"), Some("2025-06-18"));
    }
    if got.method == "DELETE" {
        return Reply::new(200, &[], "");
    }
    if message["id"].is_null() || message["method"].is_null() {
        return Reply::new(202, &[], "");
    }
    let answer = match method {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "remote", "version": "2"}},
        }),
        "tools/list" => {
            let tools =
                ["echo", "fault", "slow", "grow"].map(|name| json!({"name": name, "inputSchema": {}}));
            json!({"tools": tools})
        }
        "tools/call" => json!({"content": [], "structuredContent": message["params"]["arguments"]}),
        "ping" => json!({}),
        _ => return refuse(404, got, -32601, "Method not found"),
    };
    let answer = result(got, &answer);
    match style {
        Style::Events => Reply::events().chunk(event(&answer)).end(),
        Style::Sessions | Style::Stateless => Reply::json(&answer),
    }
}
