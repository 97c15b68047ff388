//! Presents the built-in tools that read, search and write local files as an in-process server, so that programs call
//! them like tools of external MCP servers.

use super::{FileRoots, tools};
use async_trait::async_trait;
use ptc_base::spill::SpillError;
use ptc_base::tasks::{StopFlag, read_blocking};
use ptc_calls::tools::{CallTarget, UpstreamTool};
use ptc_upstream::{
    AnswerWriter, CallResult, ConnectContext, Connection, Opened, Opening, RawAnswer, ServerRequest,
    Transport, UpstreamFault,
};
use serde_json::json;
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
    async fn connect(&self, _: &ConnectContext) -> Result<Arc<dyn Connection>, UpstreamFault> {
        Ok(Arc::new(FileConnection { utilities: self.clone(), is_closed: AtomicBool::new(false) }))
    }

    fn describe(&self) -> String {
        let folders: Vec<_> = self.roots.paths().map(|path| path.display().to_string()).collect();
        let how = if self.writes { "read and written" } else { "read" };
        format!("files in {}, {how} by this process", folders.join(", "))
    }

    fn speaks_mcp(&self) -> bool {
        false
    }
}

struct FileConnection {
    utilities: FileUtilities,
    is_closed: AtomicBool,
}

#[async_trait]
impl Connection for FileConnection {
    async fn open(&self, _: Opening) -> Result<Opened, UpstreamFault> {
        let tools =
            tools::list(self.utilities.writes).into_iter().map(serde_json::from_value::<UpstreamTool>);
        let tools = tools.collect::<Result<Vec<_>, _>>();
        let listed = tools.map_err(|error| UpstreamFault::Protocol(error.to_string()))?.into();
        let server_info = format!("file utilities {}", env!("CARGO_PKG_VERSION"));
        Ok(Opened { listed, server_info, version: "2025-11-25".to_owned(), tools_may_change: false })
    }

    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(UpstreamFault::Unavailable("the server is shutting down".to_owned()));
        }
        let ServerRequest { target: CallTarget::Tool(tool), arguments, sink, .. } = request else {
            return Err(UpstreamFault::Protocol("unknown method".to_owned()));
        };
        let utilities = self.utilities.clone();
        let work = move |stop: &StopFlag| {
            utilities.call(&tool, arguments.as_str(), AnswerWriter::of_result(sink), stop)
        };
        let done = read_blocking(work).await;
        done.unwrap_or_else(|| Ok(refusal("it panicked"))).map(CallResult::Mcp)
    }

    fn close(&self, _: &str) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
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
