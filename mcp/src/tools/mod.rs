//! The tools that this server offers.
//!
//! A tool says what it is ([`Tool::definition`]) and begins a call ([`Tool::begin`]): it answers at once, or gives
//! a [`Job`] that the server admits, starts and may cancel. What a job does, and how its outcome is rendered,
//! nobody but its tool knows.
//!
//! # Layout
//!
//! - [`registry`]: the list of all tools, one line each.
//! - [`definition`]: an entry of `tools/list`, and the facts that it may depend on.
//! - [`job`]: work that takes a while.
//! - [`log`]: what a run tells a client that wants log messages.
//! - [`catalog`]: the upstream servers and tools that a description may list.
//! - [`lisp_eval`]: runs a program. [`execute_program`]: runs a Python script. [`proxy`]: one tool in front of all
//!   others.
//! - [`lisp_task`]: solves a task in words with a model of the server's.
//! - [`session`]: programs that build on each other. [`lisp_debug`]: what the server has been doing.
//!
//! Architecture invariant: adding a tool touches its own folder and one line of [`registry`].

pub mod catalog;
pub mod definition;
pub mod execute_program;
pub mod job;
pub mod lisp_debug;
pub mod lisp_eval;
pub mod lisp_task;
pub mod log;
pub mod proxy;
pub mod registry;
pub mod session;

pub use crate::answer::ToolAnswer;
pub use definition::{Definition, Facts, ToolAnnotations};
pub use job::{Cancel, Job, Reporter};
pub use registry::Registry;

use crate::answer::caps::Profile;
use crate::protocol::arguments::GivenArguments;
use crate::protocol::borrowed::Raw;
use crate::protocol::{Era, RpcError, log_level::LogLevel};
use ptc_runtime::trace::TraceContext;
use std::fmt;

/// A tool of the server.
pub trait Tool: Send + Sync {
    /// Its name in `tools/list` and `tools/call`, the same for the life of the server.
    fn name(&self) -> &str;

    /// Its entry of `tools/list` as these facts have it.
    fn definition(&self, facts: &Facts) -> Definition;

    /// Whether its calls are recorded.
    fn is_recorded(&self) -> bool {
        true
    }

    /// Whether the state that a client sends back is one of its own making ([`Tool::begin_with_inputs`]), and not that of a
    /// run which waits for the client.
    fn keeps_state(&self) -> bool {
        false
    }

    /// [`Tool::begin`] for a tool that asks its client for input: what has come of that is in `inputs`.
    fn begin_with_inputs(
        &self,
        arguments: Option<&GivenArguments<'_>>,
        _: &CallInputs<'_>,
        call: &CallContext,
        reply: Responder<'_>,
    ) -> Begun {
        self.begin(arguments, call, reply)
    }

    /// A session of a client has ended: what was kept for it alone is not needed any more.
    fn session_ended(&self, _: SessionTag) {}

    /// Begins a call. `arguments` is whatever the client sent, unchecked. Runs on the thread that serves the
    /// connection, so it must be quick: anything else is a job.
    fn begin(
        &self,
        arguments: Option<&GivenArguments<'_>>,
        call: &CallContext,
        reply: Responder<'_>,
    ) -> Begun;
}

/// Whose a call is, so that nobody reaches what belongs to others: who has one token, or the one client over standard
/// input (the default).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallOwner(pub u64);

impl fmt::Display for CallOwner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// In which session of a client a call is, so that what is kept for it ends with it; the default is none that ends before
/// the server does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionTag(pub u64);

/// What a tool knows of a call beside its arguments.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// Whose it is; never said by an argument.
    pub owner: CallOwner,
    /// The session that it is in.
    pub session: SessionTag,
    /// How much of a run an answer shows.
    pub profile: Profile,
    /// The era of the request.
    pub era: Era,
    /// The least severe log messages that the client wants to have; `None`: none at all.
    pub log: Option<LogLevel>,
    /// Bytes of the answer's message beside its result.
    pub frame_bytes: usize,
    /// The turns of sessions are logged.
    pub logs_turns: bool,
    /// The trace of the client that it belongs to.
    pub trace: Option<TraceContext>,
}

/// What a client of 2026-07-28 sends with a call beside its arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallInputs<'a> {
    /// Its answers to [`crate::answer::Content::InputRequired`], by the names of the requests.
    pub responses: Option<Raw<'a>>,
    /// The state that it was told to send back; it may have been changed on the way.
    pub state: Option<Raw<'a>>,
    /// What it declares to be able to do.
    pub capabilities: Option<Raw<'a>>,
}

/// How a call goes on.
#[derive(Debug)]
pub enum Begun {
    /// It is over: [`Responder::with`] gives this.
    Answered(Answered),
    /// It takes a while.
    Run(Job),
    /// It is no call that could be answered: an error of the protocol.
    Refused(Box<RpcError>),
}

/// A call was answered; only [`Responder::with`] can say so.
#[derive(Debug)]
pub struct Answered(());

/// Where a call is answered that is over at once: what the answer shows is written before it goes, so that it need not
/// be owned.
pub struct Responder<'r>(&'r mut dyn FnMut(&ToolAnswer<'_>));

impl<'r> Responder<'r> {
    /// Answers go here, one at most.
    pub fn new(write: &'r mut dyn FnMut(&ToolAnswer<'_>)) -> Responder<'r> {
        Responder(write)
    }

    /// Answers the call.
    pub fn with(self, answer: &ToolAnswer<'_>) -> Begun {
        (self.0)(answer);
        Begun::Answered(Answered(()))
    }
}
