//! An upstream in memory for tests: requests and answers are values; no process, bytes, lines or ids.

use async_trait::async_trait;
use ptc_upstream::config::ServerEntry;
use ptc_upstream::{
    CallResult, ConnectContext, Connection, ConnectionEnd, ErrorObject, RawAnswer, ServerEvents,
    ServerRequest, Transport, UpstreamFault,
};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio::time::Instant;

/// The behaviour of a [`MemoryServer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Habit {
    /// It supports only the stateless era.
    Stateless,
    /// It ends when its era is probed.
    EndsAtProbe,
    /// It does not answer pings.
    Mute,
    /// Connecting fails.
    Absent,
    /// Connecting never ends.
    Unreachable,
}

/// The server, which is also its own transport. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct MemoryServer {
    state: Arc<Mutex<State>>,
    /// While true, connecting waits.
    held: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct State {
    habits: HashSet<Habit>,
    grown: bool,
    /// The observed events, in order.
    log: Vec<String>,
    live: Option<Arc<MemoryConnection>>,
}

impl MemoryServer {
    pub(crate) fn new(habits: &[Habit]) -> MemoryServer {
        let server = MemoryServer::default();
        server.state.lock().unwrap().habits.extend(habits);
        server
    }

    pub(crate) fn entry(&self) -> ServerEntry {
        ServerEntry::custom("memory", Arc::new(self.clone()))
    }

    pub(crate) fn set(&self, habit: Habit, on: bool) {
        let habits = &mut self.state.lock().unwrap().habits;
        if on {
            habits.insert(habit)
        } else {
            habits.remove(&habit)
        };
    }

    /// Makes connections wait, or lets all waiting ones through.
    pub(crate) fn hold(&self, is_held: bool) {
        self.held.send_replace(is_held);
    }

    /// Whether a connection was attempted since the start or the last read of the log.
    pub(crate) fn opened(&self) -> bool {
        self.state.lock().unwrap().log.iter().any(|line| line == "open")
    }

    /// Adds a tool without a notification.
    pub(crate) fn grow(&self) {
        self.state.lock().unwrap().grown = true;
    }

    fn has(&self, habit: Habit) -> bool {
        self.state.lock().unwrap().habits.contains(&habit)
    }

    fn note(&self, text: impl Into<String>) {
        self.state.lock().unwrap().log.push(text.into());
    }

    /// The events since the last call.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().log)
    }

    fn live(&self) -> Arc<MemoryConnection> {
        self.state.lock().unwrap().live.clone().unwrap()
    }

    /// Ends the connection.
    pub(crate) fn end(&self, why: &str, is_orderly: bool) {
        self.live().end.send_replace(Some(ConnectionEnd { why: why.to_owned(), is_orderly }));
    }

    /// Sends a request of the server. Gives the response.
    pub(crate) fn ask(&self, method: &str) -> Value {
        let (sender, answer) = std::sync::mpsc::channel();
        self.live().events.request("\"q1\"", method, "{}", move |text| sender.send(text).unwrap());
        serde_json::from_str(&answer.recv().unwrap()).unwrap()
    }
}

#[async_trait]
impl Transport for MemoryServer {
    async fn connect(&self, context: &ConnectContext) -> Result<Arc<dyn Connection>, UpstreamFault> {
        self.note("open");
        if self.has(Habit::Absent) {
            return Err("nobody is there".to_owned().into());
        }
        if self.has(Habit::Unreachable) {
            std::future::pending::<()>().await;
        }
        let _ = self.held.subscribe().wait_for(|is_held| !is_held).await;
        let (end, closed) = (watch::Sender::new(None), watch::Sender::new(None));
        let (server, events) = (self.clone(), context.events.clone());
        let connection = Arc::new(MemoryConnection { server, events, end, closed });
        self.state.lock().unwrap().live = Some(connection.clone());
        Ok(connection)
    }

    fn describe(&self) -> String {
        "memory:".to_owned()
    }
}

struct MemoryConnection {
    server: MemoryServer,
    events: Arc<ServerEvents>,
    end: watch::Sender<Option<ConnectionEnd>>,
    closed: watch::Sender<Option<String>>,
}

#[async_trait]
impl Connection for MemoryConnection {
    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let params: Value = serde_json::from_str(&request.params()).unwrap();
        let tool = params["name"].as_str().map(|name| format!(" {name}")).unwrap_or_default();
        let what = format!("{}{tool}", request.method());
        self.server.note(format!("{what} {:?}", request.envelope.era));
        let mut exchange =
            Exchange { server: &self.server, what, deadline: request.deadline, is_answered: false };
        let mut closed = self.closed.subscribe();
        let answer = tokio::select! {
            biased;
            why = closed.wait_for(Option::is_some) => {
                Err(UpstreamFault::Unavailable(why.unwrap().clone().unwrap()))
            }
            answer = self.serve(request.method(), &params) => {
                self.events.answered();
                answer.map_err(UpstreamFault::Rpc)
            }
        };
        exchange.is_answered = true;
        let text = answer?.to_string();
        if text.len() > request.sink.max_bytes {
            return Err(request.sink.too_large(text.len() as u64));
        }
        Ok(CallResult::Mcp(RawAnswer::from_bytes(text)))
    }

    fn notify(&self, method: &'static str, revision: &str) {
        self.server.note(format!("{method} Handshake({revision:?})"));
    }

    async fn gone(&self) -> ConnectionEnd {
        let mut end = self.end.subscribe();
        let end = end.wait_for(Option::is_some).await.unwrap();
        end.clone().unwrap()
    }

    fn diagnostics(&self) -> Option<String> {
        Some("status 503".to_owned())
    }

    fn close(&self, why: &str) {
        self.closed.send_replace(Some(why.to_owned()));
    }

    async fn discard(&self) {
        self.server.note("discard");
    }

    async fn shut_down(&self) {
        self.close("shutting down");
        self.server.note("shut down");
    }
}

impl MemoryConnection {
    async fn serve(&self, method: &str, params: &Value) -> Result<Value, ErrorObject> {
        let is_stateless = self.server.has(Habit::Stateless);
        assert_eq!(params["_meta"].is_object(), is_stateless || method == "server/discover", "{method}");
        match method {
            "server/discover" if self.server.has(Habit::EndsAtProbe) => {
                self.server.end("hung up", false);
                std::future::pending().await
            }
            "server/discover" if is_stateless => Ok(json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "memory", "version": "2"}},
            })),
            "initialize" => Ok(json!({
                "protocolVersion": "2025-06-18", "serverInfo": {"name": "memory", "version": "1"},
                "capabilities": {},
            })),
            "tools/list" => Ok(self.page(params["cursor"].as_str())),
            "tools/call" => self.call(&params["name"], &params["arguments"]).await,
            "subscriptions/listen" => {
                self.events.notification("notifications/subscriptions/acknowledged");
                std::future::pending().await
            }
            "ping" | "server/discover" if self.server.has(Habit::Mute) => std::future::pending().await,
            "ping" => Ok(json!({})),
            _ => Err(ErrorObject::read(br#"{"code":-32601}"#)),
        }
    }

    /// One page for each tool.
    fn page(&self, cursor: Option<&str>) -> Value {
        const TOOLS: [&str; 5] = ["echo", "hang", "fail", "grow", "grown"];
        let count = if self.server.state.lock().unwrap().grown { 5 } else { 4 };
        let at: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let next = (at + 1 < count).then(|| (at + 1).to_string());
        let properties = if TOOLS[at] == "fail" { json!({"why": {"type": "string"}}) } else { json!({}) };
        let schema = json!({"type": "object", "properties": properties});
        json!({"tools": [{"name": TOOLS[at], "inputSchema": schema}], "nextCursor": next})
    }

    async fn call(&self, tool: &Value, arguments: &Value) -> Result<Value, ErrorObject> {
        match tool.as_str().unwrap() {
            "hang" => std::future::pending().await,
            "fail" => {
                let why = arguments["why"].as_str().unwrap_or("no");
                Err(ErrorObject::read(json!({"code": -32000, "message": why}).to_string().as_bytes()))
            }
            "grow" => {
                self.server.grow();
                self.events.notification("notifications/tools/list_changed");
                Ok(json!({"content": []}))
            }
            _ => Ok(json!({"structuredContent": arguments, "content": []})),
        }
    }
}

/// A request in flight; logs when its caller drops it.
struct Exchange<'a> {
    server: &'a MemoryServer,
    what: String,
    deadline: Instant,
    is_answered: bool,
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let how = if Instant::now() >= self.deadline { "timed out" } else { "cancelled" };
            self.server.note(format!("{} {how}", self.what));
        }
    }
}
