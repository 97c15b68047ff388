//! Defines the trait of an open connection to a server, which every transport implements and the MCP session wraps.

use crate::{CallResult, ServerRequest, UpstreamFault};
use ptc_calls::tools::{ListKind, Listed};
use std::time::Duration;

/// A server that was reached. Takes any number of requests at once. Dropping it ends, in a hurry, whatever belongs to
/// it.
///
/// A connection of MCP carries messages and leaves greeting, listing and liveness to the session that wraps it; any
/// other connection has its own.
#[async_trait::async_trait]
pub trait Connection: Send + Sync {
    /// Sends a request and waits for its result. The caller drops the future at the request's deadline or when the
    /// result is not wanted any more: a request that was not sent is taken back then, one that was sent is cancelled.
    ///
    /// # Errors
    /// An error of the server, or why there is no answer.
    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault>;

    /// Makes the server ready for calls and lists its tools. Each question of it has `opening.patience`; the caller
    /// bounds all of them together.
    ///
    /// # Errors
    /// The server cannot be used.
    async fn open(&self, _opening: Opening) -> Result<Opened, UpstreamFault> {
        Ok(Opened::default())
    }

    /// Loads the whole tool list again. Only asked for where [`Opened::tools_may_change`].
    ///
    /// # Errors
    /// There is no list.
    async fn list_tools(&self, _patience: Duration, _may_list: MayList) -> Result<Listed, UpstreamFault> {
        Ok(Listed::default())
    }

    /// Listens for changes of the tool list for as long as the server reports them; forever where it has to be asked
    /// for none.
    ///
    /// # Errors
    /// There is no such report.
    async fn listen(&self) -> Result<(), UpstreamFault> {
        std::future::pending().await
    }

    /// True when the server shows within `patience` that it works.
    async fn is_alive(&self, _patience: Duration) -> bool {
        true
    }

    /// Sends a notification without parameters, under the revision that was agreed on.
    fn notify(&self, _method: &'static str, _revision: &str) {}

    /// True for a transport of MCP with headers: arguments whose schema asks for it (`x-mcp-header`) are repeated
    /// there.
    fn has_headers(&self) -> bool {
        false
    }

    /// Waits until the server is of no more use. Cancel safe; forever for a connection that does not end by itself.
    async fn gone(&self) -> ConnectionEnd {
        std::future::pending().await
    }

    /// The last that the server said outside of the protocol, for error messages; without secrets.
    fn diagnostics(&self) -> Option<String> {
        None
    }

    /// Fails every request in flight and every later one with [`UpstreamFault::Unavailable`] of this text, at once.
    fn close(&self, why: &str);

    /// Ends what is left of a closed connection without asking the server.
    async fn discard(&self) {}

    /// Closes the connection, gives the server a moment to end by itself, then discards it.
    async fn shut_down(&self) {
        self.close("upstream is shutting down");
    }
}

/// How a server is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Wall clock of each question.
    pub patience: Duration,
    /// The last connection ended before the server had said anything: it may not bear to be asked for its era.
    pub ended_silently: bool,
    /// Lists that may be requested along with the tools.
    pub may_list: MayList,
}

/// The lists, other than that of tools, that a policy allows to request.
#[derive(Clone, Copy, Debug, Default)]
pub struct MayList([bool; ListKind::ALL.len()]);

impl MayList {
    /// The lists of which the methods are not among these.
    pub fn without(refused: &[&str]) -> MayList {
        MayList(ListKind::ALL.map(|kind| !refused.contains(&kind.parts().0)))
    }

    /// Whether it may be requested.
    pub fn has(self, kind: ListKind) -> bool {
        self.0[kind as usize]
    }
}

/// What a server said when it was opened.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// Its tools.
    pub listed: Listed,
    /// `name version` as it introduces itself.
    pub server_info: String,
    /// What is spoken, as a version.
    pub version: String,
    /// Its tools may change while it runs, so they are listed again.
    pub tools_may_change: bool,
}

/// How a connection ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// What happened, in words for people.
    pub why: String,
    /// The server had nothing more to do: it may be started again at once. Otherwise it has crashed.
    pub is_orderly: bool,
}
