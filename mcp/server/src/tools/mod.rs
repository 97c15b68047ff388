//! The tools that this server offers, and the interface that all of them implement.
//!
//! A tool has a definition ([`Tool::definition`]) and begins calls ([`Tool::begin`]). It answers at once, or
//! returns a [`Job`] that the server admits, starts and may cancel. Only the tool itself knows what its jobs
//! do and how it renders their outcome.
//!
//! # Layout
//!
//! - [`registry`]: the list of all tools, one line each.
//! - [`definition`]: an entry of `tools/list`, and the facts that it depends on.
//! - [`job`]: work that takes a while.
//! - [`log`]: log messages about a run. `owned_table`: sessions and the like, by owner, until they expire.
//! - [`catalog`]: the upstream servers and tools that a description may list.
//! - [`lisp_eval`]: runs a program. [`execute_program`]: runs a Python script. [`proxy`]: one tool in front
//!   of all others.
//! - [`exposed`]: exports of preludes as tools of their own.
//! - [`lisp_run`]: goes on with calls that outlive their requests.
//! - [`lisp_task`]: solves a task in natural language with a model of the server.
//! - [`session`]: programs that build on each other. [`lisp_debug`]: recent calls and statistics of the
//!   server.
//!
//! Architecture invariant: adding a tool touches its own folder and one line of [`registry`].

pub mod catalog;
pub mod definition;
pub mod execute_program;
pub mod exposed;
pub mod job;
pub mod lisp_debug;
pub mod lisp_eval;
pub mod lisp_run;
pub mod lisp_task;
pub mod log;
pub mod owned_table;
pub mod proxy;
pub mod registry;
pub mod session;

pub use crate::answer::ToolAnswer;
pub use definition::{Definition, Facts, ToolAnnotations};
pub use job::{Cancel, Job, Reporter, Started};
pub use registry::Registry;

use crate::answer::caps::Profile;
use crate::protocol::params::Params;
use crate::protocol::{Era, RpcError, log_level::LogLevel};
use ptc_calls::trace::TraceContext;
use serde::Serialize;
use std::fmt;

/// A tool of the server.
pub trait Tool: Send + Sync {
    /// Its name in `tools/list` and `tools/call`, which never changes while the server runs.
    fn name(&self) -> &str;

    /// Its entry of `tools/list`, made from these facts.
    fn definition(&self, facts: &Facts) -> Definition;

    /// Whether its calls are recorded.
    fn is_recorded(&self) -> bool {
        true
    }

    /// Whether the tool makes the state that a client sends back (`Params::request_state`). Otherwise the state
    /// belongs to a parked run.
    fn keeps_state(&self) -> bool {
        false
    }

    /// Whether calls may go on without their requests, as tasks.
    fn task_support(&self) -> TaskSupport {
        TaskSupport::Forbidden
    }

    /// Goes on with a call that was under way when an earlier process ended. `memo` is that of its [`Job`].
    fn resume(&self, _run: &str, _memo: &str, _call: &CallContext) -> Option<Job> {
        None
    }

    /// A session of a client has ended. Drops what the tool retained for it.
    fn session_ended(&self, _: SessionTag) {}

    /// Begins a call with the client's parameters, of which nothing is checked. A client of 2026-07-28 also sends its
    /// answers to [`crate::answer::Content::InputRequired`], by the names of the requests, and the state that was sent with
    /// them. Runs on the thread that serves the connection, so it must be quick; longer work is a job.
    fn begin(&self, params: &Params<'_>, call: &CallContext, reply: Responder<'_>) -> Begun;
}

/// Whether calls of a tool may be tasks, as MCP names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// Each call is answered by its own request.
    Forbidden,
    /// A call that takes long may go on as a task.
    Optional,
    /// Every call is a task.
    Required,
}

/// The owner of a call, which separates the data of clients: a token, or the one client over standard input
/// (the default).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallOwner(pub u64);

impl CallOwner {
    /// Marks owners that an issuer names, so that no token of this server has the same one.
    const OF_ISSUER: u64 = 1 << 63;

    /// The owner of what is begun with a token of this server, by the digest of the token.
    pub(crate) fn of_token(digest: &[u8; 32]) -> CallOwner {
        CallOwner(first(digest) & !CallOwner::OF_ISSUER)
    }

    /// The owner that an issuer names, by a digest of that name.
    pub(crate) fn of_issuer(digest: &[u8; 32]) -> CallOwner {
        CallOwner(first(digest) | CallOwner::OF_ISSUER)
    }

    /// True for an owner that an issuer names.
    pub(crate) fn is_of_issuer(self) -> bool {
        self.0 & CallOwner::OF_ISSUER != 0
    }
}

/// The first bytes of a digest.
fn first(digest: &[u8; 32]) -> u64 {
    digest[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl fmt::Display for CallOwner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// The client session of a call; retained data ends with it. The default is a session that lasts as long as the
/// server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionTag(pub u64);

/// Facts about a call, apart from its parameters.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The owner; never taken from an argument.
    pub owner: CallOwner,
    /// The client session.
    pub session: SessionTag,
    /// How much of a run the answer shows.
    pub profile: Profile,
    /// The protocol era of the request.
    pub era: Era,
    /// The least severe log messages that the client wants; `None` for no messages.
    pub log: Option<LogLevel>,
    /// Bytes of the answer's message without its result.
    pub frame_bytes: usize,
    /// Whether entries of sessions go to the log.
    pub logs_turns: bool,
    /// The client's trace that the call belongs to.
    pub trace: Option<TraceContext>,
}

/// The outcome of beginning a call.
pub enum Begun {
    /// The call is over: [`Responder::with`] returns this.
    Answered(Answered),
    /// The call takes a while.
    Run(Job),
    /// The call is invalid, which is an error of the protocol.
    Refused(Box<RpcError>),
}

/// Proof that a call was answered; only [`Responder::with`] makes it.
#[derive(Debug)]
pub struct Answered(());

/// Sends the answer of a call that is over at once. The answer is written before `with` returns, so it may
/// borrow.
pub struct Responder<'r>(&'r mut dyn FnMut(&ToolAnswer<'_>));

impl<'r> Responder<'r> {
    /// Makes a responder that passes at most one answer to `write`.
    pub fn new(write: &'r mut dyn FnMut(&ToolAnswer<'_>)) -> Responder<'r> {
        Responder(write)
    }

    /// Answers the call.
    pub fn with(self, answer: &ToolAnswer<'_>) -> Begun {
        (self.0)(answer);
        Begun::Answered(Answered(()))
    }
}
