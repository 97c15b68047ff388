//! Answers the MCP requests of another process by passing them to one running server, so that both processes can use
//! it.

use super::jsonrpc::message;
use super::{
    CallResult, ErrorObject, ProgressListener, ResultSink, ServerRequest, ToolStep, Upstream, UpstreamFault,
};
use ptc_calls::policy::Permitted;
use ptc_calls::tools::{CallTarget, ListKind};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The revision that the other process is greeted with.
const REVISION: &str = "2025-11-25";

/// Wall clock of a call. The other process has a deadline of its own, and takes the call back then.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Most bytes of one result; the other process has a smaller limit.
const RESULT_BYTES: usize = 64 << 20;

/// JSON-RPC code of a method that is not known.
const METHOD_NOT_FOUND: i64 = super::jsonrpc::error::METHOD_NOT_FOUND;

/// One server, shared with another process.
pub struct ServerRelay {
    upstream: Arc<dyn Upstream>,
}

/// The members of all requests that have parameters.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Params<'a> {
    name: Option<String>,
    uri: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

/// Sends the steps of a call to the other process.
#[derive(Debug)]
struct RelayedSteps {
    /// JSON text of the other process's name for its request.
    token: String,
    messages: mpsc::Sender<Vec<u8>>,
}

impl ProgressListener for RelayedSteps {
    fn stepped(&self, step: ToolStep) {
        let ToolStep { progress, total, message, .. } = step;
        let members = [
            Some(format!("\"progressToken\":{}", self.token)),
            progress.map(|progress| format!("\"progress\":{}", json!(progress))),
            total.map(|total| format!("\"total\":{}", json!(total))),
            message.map(|message| format!("\"message\":{}", json!(message))),
        ];
        let params = members.into_iter().flatten().collect::<Vec<_>>().join(",");
        let message = message::notification(message::PROGRESS, Some(&format!("{{{params}}}")));
        // The queue is full when the other process reads slowly. A later step says more.
        let _ = self.messages.try_send(message.into_bytes());
    }
}

impl ServerRelay {
    /// A relay for this server.
    pub fn new(upstream: Arc<dyn Upstream>) -> ServerRelay {
        ServerRelay { upstream }
    }

    /// The JSON text of a result. Dropping the future cancels a call. The progress of a call goes to `messages`, if the
    /// request asks for it.
    ///
    /// # Errors
    /// The error of the server, or why there is no answer.
    pub async fn answer(
        &self,
        method: &str,
        params: Option<&RawValue>,
        messages: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Vec<u8>, ErrorObject> {
        let params: Params<'_> = match params {
            Some(params) => {
                serde_json::from_str(params.get()).map_err(|error| ErrorObject::about(error.to_string()))?
            }
            None => Params::default(),
        };
        let steps = params.meta.token.map(|token| -> Arc<dyn ProgressListener> {
            Arc::new(RelayedSteps { token: token.get().to_owned(), messages: messages.clone() })
        });
        let list = |kind: ListKind| kind.parts().0 == method;
        match method {
            "initialize" => self.greet().await.map_err(failed),
            "ping" => Ok(b"{}".to_vec()),
            "tools/list" => Ok(self.tools()),
            "tools/call" => self.call(CallTarget::Tool(name(&params.name)?), arguments(&params), steps).await,
            "prompts/get" => {
                self.call(CallTarget::Prompt(name(&params.name)?), arguments(&params), steps).await
            }
            "resources/read" => {
                self.call(CallTarget::Resource(name(&params.uri)?), String::new(), steps).await
            }
            _ => match ListKind::ALL.into_iter().find(|kind| list(*kind)) {
                Some(kind) => {
                    let all = self.call(CallTarget::List(kind), String::new(), None).await?;
                    Ok([format!("{{\"{}\":", kind.parts().1).as_bytes(), &all, b"}"].concat())
                }
                None => Err(ErrorObject {
                    code: METHOD_NOT_FOUND,
                    ..ErrorObject::about("there is no such method")
                }),
            },
        }
    }

    /// Starts the server, and introduces it.
    async fn greet(&self) -> Result<Vec<u8>, UpstreamFault> {
        self.upstream.start().await?;
        let status = self.upstream.status();
        let tools = self.upstream.tools();
        let mut capabilities = json!({ "tools": {} });
        for list in tools.iter().flat_map(|tools| tools.offers().lists()) {
            capabilities[list.kind.capability()] = json!({});
        }
        let info = status.server_info.unwrap_or_default();
        let (name, version) = info.rsplit_once(' ').unwrap_or((&info, ""));
        let mut hello = json!({
            "protocolVersion": REVISION, "capabilities": capabilities,
            "serverInfo": { "name": name, "version": version },
        });
        if let Some(instructions) = tools.as_ref().and_then(|tools| tools.instructions()) {
            hello["instructions"] = instructions.into();
        }
        Ok(hello.to_string().into_bytes())
    }

    fn tools(&self) -> Vec<u8> {
        let tools = self.upstream.tools();
        let tools: Vec<Value> = tools
            .iter()
            .flat_map(|tools| tools.iter())
            .filter_map(|tool| serde_json::to_value(&**tool).ok())
            .collect();
        json!({ "tools": tools }).to_string().into_bytes()
    }

    async fn call(
        &self,
        target: CallTarget,
        arguments: String,
        progress: Option<Arc<dyn ProgressListener>>,
    ) -> Result<Vec<u8>, ErrorObject> {
        let sink = ResultSink { max_bytes: RESULT_BYTES, store: None };
        let request = ServerRequest::new(Permitted::by_caller(), target, arguments.into(), PATIENCE, sink);
        let request = ServerRequest { progress, ..request };
        let result: CallResult = self.upstream.call(request).await.map_err(failed)?;
        Ok(result.answer().bytes().to_vec())
    }
}

fn arguments(params: &Params<'_>) -> String {
    params.arguments.map_or("{}", RawValue::get).to_owned()
}

fn name(given: &Option<String>) -> Result<Arc<str>, ErrorObject> {
    given.as_deref().map(Arc::from).ok_or_else(|| ErrorObject::about("the request names nothing"))
}

fn failed(fault: UpstreamFault) -> ErrorObject {
    match fault {
        UpstreamFault::Rpc(error) => error,
        fault => ErrorObject::about(fault.to_string()),
    }
}
