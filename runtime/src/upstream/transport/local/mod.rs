//! Tools that the configuration itself defines: a command with arguments, or a file operation, in one folder. To
//! whoever is above they are a server like any other, so their calls have the same budgets, ledger and checks.
//!
//! - here: the server that they are; `work`: what they do.

mod work;

use super::{Line, Link, LinkEnd, Peer, PeerEvents, PeerRequest, RequestEra, RequestFault, Transport};
use crate::upstream::UpstreamFault;
use crate::upstream::jsonrpc::{ErrorObject, RawAnswer};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// The tools of one entry.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalSpec {
    /// Where commands run and files are; no file operation leaves it.
    pub folder: PathBuf,
    /// The tools, one at least, each with a name of its own.
    pub handlers: Vec<LocalHandler>,
}

/// One tool.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalHandler {
    /// Its name.
    pub name: String,
    /// What models read about it.
    pub description: Option<String>,
    /// What it does.
    pub work: LocalWork,
    /// Schemas of parameters, where they say more than "a string".
    pub parameters: Map<String, Value>,
}

/// What a tool does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalWork {
    /// Starts this program with these arguments, without a shell. `{name}` in an argument stands for the parameter.
    Command(Vec<String>),
    /// Gives the text of the file `path`.
    Read,
    /// Gives the names in the folder `path`, those of folders with `/`.
    List,
    /// Writes `text` into the file `path`.
    Write,
}

impl LocalWork {
    /// The parameters that it must have.
    fn parameters(&self) -> Vec<&str> {
        match self {
            LocalWork::Command(words) => {
                let mut names = Vec::new();
                for name in words.iter().flat_map(|word| work::placeholders(word)) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                names
            }
            LocalWork::Read | LocalWork::List => vec!["path"],
            LocalWork::Write => vec!["path", "text"],
        }
    }

    fn only_reads(&self) -> bool {
        matches!(self, LocalWork::Read | LocalWork::List)
    }
}

impl LocalHandler {
    /// Its entry of `tools/list`.
    fn definition(&self) -> Value {
        let required = self.work.parameters();
        let schema = |name: &&str| {
            let said = self.parameters.get(*name).cloned();
            ((*name).to_owned(), said.unwrap_or_else(|| json!({ "type": "string" })))
        };
        let properties: Map<String, Value> = required.iter().map(schema).collect();
        let mut tool = json!({
            "name": self.name,
            "inputSchema": { "type": "object", "properties": properties, "required": required,
                "additionalProperties": false },
            "annotations": { "readOnlyHint": self.work.only_reads() },
        });
        if let Some(description) = &self.description {
            tool["description"] = description.as_str().into();
        }
        tool
    }
}

/// Reaches the tools of one entry.
pub(crate) struct LocalTransport(Arc<LocalSpec>);

impl LocalTransport {
    pub(crate) fn new(spec: LocalSpec) -> LocalTransport {
        LocalTransport(Arc::new(spec))
    }
}

#[async_trait::async_trait]
impl Transport for LocalTransport {
    async fn open(&self, events: Arc<PeerEvents>) -> Result<Box<dyn Link>, String> {
        let folder = self.0.folder.clone();
        match std::fs::metadata(&folder) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => return Err(format!("{} is not a folder", folder.display())),
            Err(error) => return Err(format!("{}: {error}", folder.display())),
        }
        let peer = LocalPeer { spec: self.0.clone(), events, closed: watch::Sender::new(None) };
        Ok(Box::new(LocalLink(Arc::new(peer))))
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

impl LocalSpec {
    /// What it is, for people.
    pub fn describe(&self) -> String {
        format!("handlers in {}", self.folder.display())
    }
}

struct LocalLink(Arc<LocalPeer>);

#[async_trait::async_trait]
impl Link for LocalLink {
    fn line(&self) -> Line {
        Line::Mcp(self.0.clone())
    }

    /// There is no connection that could end.
    async fn gone(&mut self) -> LinkEnd {
        std::future::pending().await
    }

    fn close(&mut self, why: &str) {
        self.0.closed.send_replace(Some(why.into()));
    }

    async fn discard(&mut self) {}

    async fn shut_down(&mut self) {
        self.close("shutting down");
    }
}

struct LocalPeer {
    spec: Arc<LocalSpec>,
    events: Arc<PeerEvents>,
    /// Why no request is answered any more.
    closed: watch::Sender<Option<Arc<str>>>,
}

/// JSON-RPC codes.
const NO_METHOD: i64 = -32601;
const WRONG_PARAMS: i64 = -32602;

#[async_trait::async_trait]
impl Peer for LocalPeer {
    async fn request(&self, request: PeerRequest<'_>) -> Result<RawAnswer, RequestFault> {
        let mut closed = self.closed.subscribe();
        let answer = tokio::select! {
            biased;
            why = closed.wait_for(Option::is_some) => {
                let why = why.ok().and_then(|why| why.as_deref().map(str::to_owned)).unwrap_or_default();
                return Err(RequestFault::Upstream(UpstreamFault::Unavailable(why)));
            }
            answer = self.answer(&request) => answer,
        };
        self.events.answered();
        let text = answer?.to_string();
        let cap = request.max_bytes;
        if text.len() > cap {
            let (bytes, cap) = (text.len() as u64, cap as u64);
            return Err(RequestFault::Upstream(UpstreamFault::TooLarge { bytes, cap }));
        }
        Ok(RawAnswer::from_bytes(text))
    }

    fn notify(&self, _: &'static str, _: RequestEra<'_>) {}
}

impl LocalPeer {
    async fn answer(&self, request: &PeerRequest<'_>) -> Result<Value, RequestFault> {
        let refused = |code, message: &str| {
            RequestFault::Rpc(ErrorObject { code, message: message.to_owned(), data: None })
        };
        match request.method {
            "initialize" => Ok(json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "local", "version": env!("CARGO_PKG_VERSION") },
            })),
            "ping" => Ok(json!({})),
            "tools/list" => {
                let tools: Vec<Value> = self.spec.handlers.iter().map(LocalHandler::definition).collect();
                Ok(json!({ "tools": tools }))
            }
            "tools/call" => {
                let text = request.params.text();
                let params: Value =
                    serde_json::from_str(&text).map_err(|error| refused(WRONG_PARAMS, &error.to_string()))?;
                let name = params["name"].as_str().unwrap_or_default();
                let handler = self.spec.handlers.iter().find(|handler| handler.name == name);
                let handler = handler.ok_or_else(|| refused(WRONG_PARAMS, "there is no such tool"))?;
                let done =
                    work::run(&self.spec.folder, handler, &params["arguments"], request.max_bytes).await;
                let (text, is_error) = match done {
                    Ok(text) => (text, false),
                    Err(why) => (why, true),
                };
                Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
            }
            _ => Err(refused(NO_METHOD, "method not found")),
        }
    }
}
