//! The file tools as an in-memory MCP server: an upstream like any other, without a process.

use super::{FileRoots, tools};
use async_trait::async_trait;
use ptc_runtime::spill::SpillError;
use ptc_runtime::tasks::{StopFlag, look_aside};
use ptc_runtime::upstream::{
    AnswerWriter, ErrorObject, Line, Link, LinkEnd, Peer, PeerEvents, PeerRequest, RawAnswer, RequestEra,
    RequestFault, Transport, UpstreamFault,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The tools on these folders. Clones are the same server.
#[derive(Clone)]
pub struct FileUtilities {
    roots: Arc<FileRoots>,
    writes: bool,
}

impl FileUtilities {
    /// Tools that read in these folders, and also write there if `writes` is set.
    pub fn new(roots: Arc<FileRoots>, writes: bool) -> FileUtilities {
        FileUtilities { roots, writes }
    }

    /// Calls a tool; an error of the tool itself is a result, too. It blocks until it is done, or until `stop`
    /// is set.
    ///
    /// # Errors
    /// The answer is too large to be passed on.
    pub fn call(
        &self,
        tool: &str,
        arguments: &str,
        mut answer: AnswerWriter,
        stop: &StopFlag,
    ) -> Result<RawAnswer, UpstreamFault> {
        let done = tools::call((&self.roots, self.writes), tool, arguments, &mut answer, stop);
        match done {
            Ok(()) => Ok(answer.finish()?),
            Err(FileFault::Upstream(fault)) => Err(fault),
            Err(FileFault::Said(said)) => Ok(refusal(&said)),
        }
    }
}

/// The result for an error of the tool.
fn refusal(said: &str) -> RawAnswer {
    let content = json!([{ "type": "text", "text": said }]);
    RawAnswer::from_bytes(json!({ "content": content, "isError": true }).to_string())
}

#[async_trait]
impl Transport for FileUtilities {
    async fn open(&self, _: Arc<PeerEvents>) -> Result<Box<dyn Link>, String> {
        let peer = FilePeer { utilities: self.clone(), is_closed: AtomicBool::new(false) };
        Ok(Box::new(FileLink(Arc::new(peer))))
    }

    fn describe(&self) -> String {
        let folders: Vec<_> = self.roots.paths().map(|path| path.display().to_string()).collect();
        let how = if self.writes { "read and written" } else { "read" };
        format!("files in {}, {how} by this process", folders.join(", "))
    }
}

struct FileLink(Arc<FilePeer>);

#[async_trait]
impl Link for FileLink {
    fn line(&self) -> Line {
        Line::Mcp(self.0.clone())
    }

    async fn gone(&mut self) -> LinkEnd {
        std::future::pending().await
    }

    fn close(&mut self, _: &str) {
        self.0.is_closed.store(true, Ordering::Relaxed);
    }

    async fn discard(&mut self) {}

    async fn shut_down(&mut self) {
        self.close("");
    }
}

struct FilePeer {
    utilities: FileUtilities,
    is_closed: AtomicBool,
}

/// Why a tool has no answer.
#[derive(Debug)]
pub(super) enum FileFault {
    /// An error of the tool itself.
    Said(String),
    /// The answer is too large to be passed on.
    Upstream(UpstreamFault),
}

impl From<String> for FileFault {
    fn from(said: String) -> FileFault {
        FileFault::Said(said)
    }
}

impl From<io::Error> for FileFault {
    fn from(error: io::Error) -> FileFault {
        FileFault::Said(error.to_string())
    }
}

impl From<SpillError> for FileFault {
    fn from(error: SpillError) -> FileFault {
        FileFault::Upstream(error.into())
    }
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[async_trait]
impl Peer for FilePeer {
    async fn request(&self, request: PeerRequest<'_>) -> Result<RawAnswer, RequestFault> {
        if self.is_closed.load(Ordering::Relaxed) {
            let why = "the server is shutting down".to_owned();
            return Err(RequestFault::Upstream(UpstreamFault::Unavailable(why)));
        }
        let whole = |value: &Value| Ok(RawAnswer::from_bytes(value.to_string()));
        match request.method {
            "initialize" => whole(&json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "file utilities", "version": env!("CARGO_PKG_VERSION") },
            })),
            "tools/list" => whole(&json!({ "tools": tools::list(self.utilities.writes) })),
            "ping" => whole(&json!({})),
            "tools/call" => self.call(request).await,
            _ => Err(RequestFault::Rpc(ErrorObject::read(br#"{"code":-32601,"message":"unknown method"}"#))),
        }
    }

    fn notify(&self, _: &'static str, _: RequestEra<'_>) {}
}

impl FilePeer {
    async fn call(&self, request: PeerRequest<'_>) -> Result<RawAnswer, RequestFault> {
        let params = request.params.text().into_owned();
        let answer = AnswerWriter::of_result(request.max_bytes, request.overflow);
        let utilities = self.utilities.clone();
        let work = move |stop: &StopFlag| match serde_json::from_str(&params) {
            Ok(CallParams { name, arguments }) => {
                utilities.call(&name, arguments.map_or("{}", RawValue::get), answer, stop)
            }
            Err(error) => Ok(refusal(&format!("the call cannot be read: {error}"))),
        };
        let done = look_aside(work).await;
        done.unwrap_or_else(|| Ok(refusal("it panicked"))).map_err(RequestFault::Upstream)
    }
}
