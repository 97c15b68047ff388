//! One request to a server, and who takes it.

use crate::run::outgoing::Arguments;
use crate::run::trace::TraceContext;
use crate::spill::SpillStore;
use crate::upstream::UpstreamFault;
use crate::upstream::jsonrpc::{ErrorObject, RawAnswer};
use crate::upstream::openapi::OpenApiService;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::time::Instant;

/// The other end of a link: takes any number of requests at once.
#[async_trait::async_trait]
pub trait Peer: Send + Sync {
    /// Sends a request and waits for its answer. The caller drops the future at the deadline, or when nobody wants
    /// the answer any more: a request that was not sent is taken back then, one that was is cancelled.
    ///
    /// # Errors
    /// An error of the server, or why there is no answer.
    async fn request(&self, request: PeerRequest<'_>) -> Result<RawAnswer, RequestFault>;

    /// Sends a notification without parameters, if the server takes it.
    fn notify(&self, method: &'static str, era: RequestEra<'_>);

    /// True for a transport that shows some arguments beside the text of a call, where a schema asks for it
    /// (`x-mcp-header`).
    fn mirrors_arguments(&self) -> bool {
        false
    }
}

/// What a server that was reached takes requests in.
#[derive(Clone)]
pub enum Line {
    /// MCP.
    Mcp(Arc<dyn Peer>),
    /// Plain HTTP, as an OpenAPI document describes it.
    OpenApi(Arc<OpenApiService>),
}

/// One request.
#[derive(Debug)]
pub struct PeerRequest<'a> {
    /// Method of MCP.
    pub method: &'static str,
    /// JSON text.
    pub params: RequestParams<'a>,
    /// What the protocol wants to know about each request, beside its text.
    pub era: RequestEra<'a>,
    /// A larger answer is refused while it is read, or goes to a file.
    pub max_bytes: usize,
    /// Where larger answers go, if anywhere. A transport that cannot do that refuses them.
    pub overflow: Option<SpillStore>,
    /// When the future is dropped at the latest; one that is dropped earlier was cancelled.
    pub deadline: Instant,
    /// The server may be told that nobody wants the answer any more.
    pub is_cancellable: bool,
}

/// The parameters of a request.
#[derive(Debug)]
pub enum RequestParams<'a> {
    /// Of a question of our own: a few bytes, which need no room.
    Own(&'a str),
    /// Of a call of a program: one JSON text in three parts, so that arguments are not copied.
    Call {
        /// The tool's name as the server lists it, or what else the call is about.
        subject: &'a str,
        /// What stands before the arguments.
        head: String,
        /// On the account of its program until it is dropped.
        arguments: Arguments,
        /// What stands behind the arguments.
        tail: String,
        /// Arguments that the transport shows beside the text, if it [does that](Peer::mirrors_arguments).
        mirrored: Vec<Mirrored>,
        /// The trace that a transport with headers says there, too.
        trace: Option<TraceContext>,
    },
}

impl RequestParams<'_> {
    /// The whole JSON text.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            RequestParams::Own(text) => Cow::Borrowed(text),
            RequestParams::Call { head, arguments, tail, .. } => {
                Cow::Owned([head, arguments.as_str(), tail].concat())
            }
        }
    }
}

/// An argument that is shown beside the text of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// As the schema calls it, a token.
    pub name: Arc<str>,
    /// As text.
    pub value: String,
}

/// How a request is spoken: what a transport with headers writes into them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEra<'a> {
    /// Nothing is agreed yet: `initialize`.
    Opening,
    /// After a handshake that ended with this revision.
    Handshake(&'a str),
    /// Each request stands for itself, in this revision.
    Stateless(&'a str),
}

/// Why a request has no result.
#[derive(Debug)]
pub enum RequestFault {
    /// The server answered with an error.
    Rpc(ErrorObject),
    /// There is no answer.
    Upstream(UpstreamFault),
}

impl From<RequestFault> for UpstreamFault {
    fn from(fault: RequestFault) -> UpstreamFault {
        match fault {
            RequestFault::Rpc(error) => UpstreamFault::Protocol(error.message),
            RequestFault::Upstream(fault) => fault,
        }
    }
}
