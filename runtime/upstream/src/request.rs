//! Defines a request to a server ([`ServerRequest`]): what is called, with which arguments and deadline, and where the
//! result is written.

use super::{Arguments, RawAnswer, UpstreamFault};
use crate::jsonrpc::message;
use bytes::Bytes;
use ptc_base::spill::SpillStore;
use ptc_calls::policy::Permitted;
use ptc_calls::run::client::{CallingClient, ProgressListener};
use ptc_calls::run::trace::TraceContext;
use ptc_calls::tools::CallTarget;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// For deadlines beyond the range of the clock.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// One request. The broker makes it, the session of MCP adds its envelope, the connection writes it.
#[derive(Debug)]
pub struct ServerRequest {
    /// The target of the call.
    pub target: CallTarget,
    /// JSON object text, on the account of its program until it is dropped. Empty for a list, a resource and a
    /// question of the protocol.
    pub arguments: Arguments,
    /// Where the result goes.
    pub sink: ResultSink,
    /// Wall clock of the request; includes a needed start and the wait for a permit.
    pub timeout: Duration,
    /// When that is over. The caller drops the future then; a future that is dropped earlier was cancelled.
    pub deadline: Instant,
    /// The trace that it belongs to.
    pub trace: Option<TraceContext>,
    /// The client that the server may ask while the call is under way.
    pub client: Option<CallingClient>,
    /// Receives the progress that the server reports, if it is asked for any.
    pub progress: Option<Arc<dyn ProgressListener>>,
    /// What is known and noted of the task that the server makes of it.
    pub tasks: Option<Arc<dyn TaskNotes>>,
    /// Looks at it again when it has waited for its server. Without one it is not looked at.
    pub recheck: Option<Arc<dyn Recheck>>,
    /// How it is spoken in MCP. Other connections ignore it.
    pub envelope: Envelope,
    /// The right to leave.
    pub permitted: Permitted,
}

/// Looks at a call again before it is written: tools, pins and policies may have changed since it was decided about.
pub trait Recheck: fmt::Debug + Send + Sync {
    /// Lets the call leave.
    ///
    /// # Errors
    /// Why it must not leave any more.
    fn check(&self, request: &ServerRequest) -> Result<(), UpstreamFault>;
}

/// What outlives the process of a call that its server answers with a task.
pub trait TaskNotes: fmt::Debug + Send + Sync {
    /// The task of the same call in an earlier process.
    fn known(&self) -> Option<Arc<str>>;

    /// The server has made this task of the call.
    fn created(&self, task: &str);

    /// The call is not over when its future is dropped: a later process goes on with it.
    fn goes_on(&self) -> bool;
}

/// What the session of MCP adds to a request.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    /// JSON text of the parameters before the arguments.
    pub head: String,
    /// JSON text of the parameters after the arguments.
    pub tail: String,
    /// What a transport with headers writes into them.
    pub era: Era,
    /// Arguments that are repeated in headers, where the transport [has them](super::Connection::has_headers).
    pub mirrored: Vec<Mirrored>,
}

/// How far the versions of the protocol are agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// Nothing is agreed yet: `initialize`.
    #[default]
    Opening,
    /// After a handshake that ended with this revision.
    Handshake(Arc<str>),
    /// Each request stands for itself, in this revision.
    Stateless(&'static str),
}

/// An argument that is repeated in a header of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// As the schema calls it, a token.
    pub name: Arc<str>,
    /// As text.
    pub value: String,
}

/// The end of a time that begins now.
pub fn deadline(timeout: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or_else(|| now + FAR)
}

impl ServerRequest {
    /// A request with a time limit that begins now.
    pub fn new(
        permitted: Permitted,
        target: CallTarget,
        arguments: Arguments,
        timeout: Duration,
        sink: ResultSink,
    ) -> ServerRequest {
        let (deadline, envelope) = (deadline(timeout), Envelope::default());
        ServerRequest {
            target,
            arguments,
            sink,
            timeout,
            deadline,
            trace: None,
            client: None,
            progress: None,
            tasks: None,
            recheck: None,
            envelope,
            permitted,
        }
    }

    /// The same, with this time limit from now on.
    #[must_use]
    pub fn within(self, timeout: Duration) -> ServerRequest {
        ServerRequest { timeout, deadline: deadline(timeout), ..self }
    }

    /// Method of MCP.
    pub fn method(&self) -> &'static str {
        self.target.method()
    }

    /// A question of the session itself: small, and one of few.
    pub(crate) fn is_protocol(&self) -> bool {
        matches!(self.target, CallTarget::Protocol(_) | CallTarget::Task(..))
    }

    /// A cancellation may be sent to the server. `initialize` cannot be cancelled.
    pub(crate) fn is_cancellable(&self) -> bool {
        self.envelope.era != Era::Opening
    }

    /// The JSON text of the parameters.
    pub fn params(&self) -> String {
        [&self.envelope.head, self.arguments.as_str(), &self.envelope.tail].concat()
    }

    /// Takes the text of its message out of it, in three parts, so that arguments are not copied. `end` follows the
    /// message.
    pub(crate) fn take_text(&mut self, id: u64, end: &str) -> [Bytes; 3] {
        let head = message::begin(id, self.target.method(), &self.envelope.head);
        let tail = std::mem::take(&mut self.envelope.tail) + "}" + end;
        let arguments = std::mem::replace(&mut self.arguments, String::new().into());
        [head.into(), Bytes::from_owner(arguments), tail.into()]
    }

    /// The same call once more, for a server that has not looked at it.
    pub fn resend(&self) -> ServerRequest {
        ServerRequest {
            target: self.target.clone(),
            arguments: self.arguments.clone(),
            sink: self.sink.clone(),
            trace: self.trace.clone(),
            client: self.client.clone(),
            progress: self.progress.clone(),
            tasks: self.tasks.clone(),
            recheck: self.recheck.clone(),
            envelope: Envelope::default(),
            permitted: self.permitted.again(),
            ..*self
        }
    }

    /// The same question of the protocol once more.
    pub(crate) fn again(&self) -> ServerRequest {
        let Envelope { head, tail, era, .. } = &self.envelope;
        let envelope =
            Envelope { head: head.clone(), tail: tail.clone(), era: era.clone(), mirrored: Vec::new() };
        ServerRequest {
            target: self.target.clone(),
            arguments: String::new().into(),
            sink: self.sink.clone(),
            trace: self.trace.clone(),
            client: None,
            progress: None,
            tasks: None,
            recheck: None,
            envelope,
            permitted: Permitted::by_caller(),
            ..*self
        }
    }
}

/// Where the result of a call goes.
#[derive(Clone, Debug)]
pub struct ResultSink {
    /// Most bytes of a result in memory.
    pub max_bytes: usize,
    /// Where the file of a larger one is written as it arrives. Without a place for it, it is refused before it is decoded.
    pub store: Option<SpillStore>,
}

impl ResultSink {
    /// The same for an answer with so many bytes around the result.
    pub(crate) fn with_room(&self, bytes: usize) -> ResultSink {
        ResultSink { max_bytes: self.max_bytes.saturating_add(bytes), store: self.store.clone() }
    }

    /// The fault of an answer of so many bytes that goes nowhere.
    pub fn too_large(&self, bytes: u64) -> UpstreamFault {
        UpstreamFault::TooLarge { bytes, cap: self.max_bytes as u64 }
    }
}

/// The result of a call: its kind, with its bytes as they came, in memory or in a file.
#[derive(Clone, Debug)]
pub enum CallResult {
    /// The `result` of a request of MCP. In a file it is the whole message.
    Mcp(RawAnswer),
    /// JSON text that is the value itself; an empty text is no value.
    Json(RawAnswer),
    /// UTF-8 text that is the value itself, even if it looks like JSON.
    Text(RawAnswer),
    /// The tool has failed; its server works.
    Failed {
        /// A short message, with secrets redacted.
        message: String,
        /// JSON text with more, or an empty text.
        body: RawAnswer,
    },
}

impl CallResult {
    /// Its bytes.
    pub fn answer(&self) -> &RawAnswer {
        let (CallResult::Mcp(answer)
        | CallResult::Json(answer)
        | CallResult::Text(answer)
        | CallResult::Failed { body: answer, .. }) = self;
        answer
    }

    /// Its bytes, alone.
    pub(crate) fn into_answer(self) -> RawAnswer {
        let (CallResult::Mcp(answer)
        | CallResult::Json(answer)
        | CallResult::Text(answer)
        | CallResult::Failed { body: answer, .. }) = self;
        answer
    }
}
