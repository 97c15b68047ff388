//! Provides the tools that the configuration itself defines, each of which is a command with arguments, or a file
//! operation, in one folder. They are a server like any other, so their calls have the same budgets, ledger and checks.
//!
//! - here: their specification and connection; `work`: what they do.

mod work;

use super::life::Life;
use super::{ConnectContext, Connection, Location, Opened, Opening, Transport, path_text};
use crate::{CallResult, RawAnswer, ServerRequest, UpstreamFault, listing};
use ptc_calls::tools::CallTarget;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::Arc;

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

#[async_trait::async_trait]
impl Transport for LocalSpec {
    async fn connect(&self, context: &ConnectContext) -> Result<Arc<dyn Connection>, UpstreamFault> {
        let folder = self.folder.display();
        match std::fs::metadata(&self.folder) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => return Err(format!("{folder} is not a folder").into()),
            Err(error) => return Err(format!("{folder}: {error}").into()),
        }
        let (spec, context, life) = (self.clone(), context.clone(), Life::new());
        Ok(Arc::new(LocalConnection { spec, context, life }))
    }

    fn describe(&self) -> String {
        format!("handlers in {}", self.folder.display())
    }

    fn speaks_mcp(&self) -> bool {
        false
    }

    fn descriptor(&self) -> Value {
        let names: Vec<&str> = self.handlers.iter().map(|handler| &*handler.name).collect();
        json!({ "type": "local", "folder": path_text(&self.folder), "handlers": names })
    }

    fn locate(&self) -> Location {
        let place = self.folder.is_dir().then(|| self.folder.display().to_string());
        Location { kind: "folder", place }
    }

    fn remedy(&self, _: &str) -> String {
        "make the folder, or correct the entry".to_owned()
    }
}

struct LocalConnection {
    spec: LocalSpec,
    context: ConnectContext,
    life: Life,
}

#[async_trait::async_trait]
impl Connection for LocalConnection {
    async fn open(&self, _: Opening) -> Result<Opened, UpstreamFault> {
        let tools = self.spec.handlers.iter().map(|handler| handler.definition().to_string());
        let listed = listing::read(tools, &self.context.secrets).await?;
        let server_info = format!("local {}", env!("CARGO_PKG_VERSION"));
        Ok(Opened { listed, server_info, version: "2025-11-25".to_owned(), tools_may_change: false })
    }

    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let result = self.life.unless_closed(self.run(&request)).await?;
        self.context.events.answered();
        result
    }

    fn close(&self, why: &str) {
        self.life.close(why);
    }

    async fn shut_down(&self) {
        self.close("shutting down");
    }
}

impl LocalConnection {
    async fn run(&self, request: &ServerRequest) -> Result<CallResult, UpstreamFault> {
        let CallTarget::Tool(name) = &request.target else {
            return Err(UpstreamFault::Protocol("method not found".to_owned()));
        };
        let handler = self.spec.handlers.iter().find(|handler| *handler.name == **name);
        let handler = handler.ok_or_else(|| UpstreamFault::Protocol("there is no such tool".to_owned()))?;
        let arguments: Value = serde_json::from_str(request.arguments.as_str())
            .map_err(|error| UpstreamFault::Protocol(error.to_string()))?;
        let max_bytes = request.sink.max_bytes;
        let (text, is_error) = match work::run(&self.spec.folder, handler, &arguments, max_bytes).await {
            Ok(text) => (text, false),
            Err(why) => (why, true),
        };
        let result = json!({ "content": [{ "type": "text", "text": text }], "isError": is_error });
        let text = result.to_string();
        if text.len() > max_bytes {
            return Err(request.sink.too_large(text.len() as u64));
        }
        Ok(CallResult::Mcp(RawAnswer::from_bytes(text)))
    }
}
