//! How a server is reached. A transport opens [`Link`]s and carries requests, answers and events; it knows neither
//! eras nor handshakes, starts nothing again and keeps no tool list: the [supervisor](super::supervisor) does, once
//! for all transports.
//!
//! - [`peer`]: one request, and who takes it. [`events`]: what a server says unasked.
//! - [`spec`]: the closed list of transports, as a configuration names them.
//! - [`stdio`]: a child process. [`http`]: a remote server. [`local`]: tools that the configuration defines. [`pace`], [`throttle`]: how fast a server is listened to and logged.

pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod local;
pub(crate) mod pace;
pub(crate) mod peer;
pub(crate) mod spec;
pub(crate) mod stdio;
pub(crate) mod throttle;

pub use events::PeerEvents;
pub use peer::{Line, Mirrored, Peer, PeerRequest, RequestEra, RequestFault, RequestParams};
pub use spec::{Location, TransportSpec};

use std::sync::Arc;

/// Opens links to one server.
#[async_trait::async_trait]
pub trait Transport: Send + Sync {
    /// Reaches the server, without a word of MCP: a process is started, an address looked up. What the server says
    /// unasked goes to `events` for as long as the link lives. Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// Why the server cannot be reached, in words for people; secrets in it are taken out later.
    async fn open(&self, events: Arc<PeerEvents>) -> Result<Box<dyn Link>, String>;

    /// Where the server is, in words for people: a command line, an address.
    fn describe(&self) -> String;
}

/// A server that was reached. Dropping it ends whatever belongs to it, in a hurry.
#[async_trait::async_trait]
pub trait Link: Send {
    /// What takes requests until the link is closed.
    fn line(&self) -> Line;

    /// Waits until the server is of no more use to anybody. Cancel safe; forever for a link that has no end of its
    /// own.
    async fn gone(&mut self) -> LinkEnd;

    /// The last that the server said beside the protocol, for error messages; without secrets.
    fn diagnostics(&self) -> Option<String> {
        None
    }

    /// Fails every request in flight and every later one with [`UpstreamFault::Unavailable`] of this text, at once.
    ///
    /// [`UpstreamFault::Unavailable`]: super::UpstreamFault::Unavailable
    fn close(&mut self, why: &str);

    /// Ends what is left of a closed link without asking the server.
    async fn discard(&mut self);

    /// Closes the link, gives the server a moment to end by itself, then discards it.
    async fn shut_down(&mut self);
}

/// How a link ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    /// What happened, in words for people.
    pub why: String,
    /// As a server may end that has nothing more to do: it may be started again at once. Otherwise it has crashed.
    pub is_orderly: bool,
}
