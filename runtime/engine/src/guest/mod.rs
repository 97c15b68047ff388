//! Defines [`Guest`], the interface of code that runs in the engine, in any language: a worker thread runs a guest
//! slice by slice, and delivers the replies to the guest's tool calls.
//!
//! A worker knows a run only as a [`Guest`]. It lets the guest run, delivers replies to its calls, and frees
//! it. A guest has the account of its run (budget, ledger, deadline and interrupt), a [`Port`] to start work on the I/O
//! runtime, and a way to be suspended half-way in native work. Nothing else is shared; tool calls go through
//! [`crate::broker`].
//!
//! # Layout
//! - `port`: starts work on the I/O runtime, in batches; `async_run`: runs without a worker, on the I/O runtime;
//!   [`lisp`]: PTC-Lisp programs

mod async_run;
pub mod lisp;
mod port;

pub use async_run::{AsyncRun, interrupted};
pub use port::{Port, TaskHandle};

use crate::broker::{CallError, CallPayload, CallResponse, Permit};
use ptc_base::spill::{LookError, Looked};
use ptc_calls::run::account::{Held, RunAccount};
use ptc_calls::run::outcome::Outcome;
use ptc_vm::Preemption;
use std::rc::Rc;
use std::sync::Arc;

/// Something that a worker drives. It never leaves its thread.
///
/// Only an interrupt on its account ends a run from outside, because a guest may be suspended half-way. So it
/// has to check [`ptc_calls::run::account::RunAccount::interrupted`] in everything that takes long, and the first
/// call of `advance` after an interrupt has to be the last.
pub trait Guest {
    /// Runs a slice of about a millisecond at most.
    fn advance(&mut self) -> Progress;

    /// Receives the reply to work that it handed out.
    fn answer(&mut self, call: CallId, reply: Reply);

    /// The lines that it has printed so far, for those who follow the run; those of its [`Outcome`] begin with
    /// them.
    fn printed(&self) -> &[String] {
        &[]
    }

    /// Logical bytes alive.
    fn live_bytes(&self) -> u64;

    /// Frees it after its outcome was sent. Not called after a panic in this guest.
    fn close(self: Box<Self>);
}

/// What a guest needs next.
pub enum Progress {
    /// Another slice.
    Ready,
    /// A reply.
    Waiting,
    /// Nothing: this is its end.
    Finished(Box<Outcome>),
}

/// Number of a piece of work, chosen by the guest that handed it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// The reply to a piece of work.
pub enum Reply {
    /// A call may be encoded ([`crate::broker::Pending::permit`]).
    Permit(Result<Permit, CallError>),
    /// A call has returned ([`crate::broker::PreparedCall::send`]).
    Answer(Result<CallResponse, CallError>),
    /// The result of a whole call ([`crate::broker::ToolBroker::call`]).
    Payload(Result<CallPayload, CallError>),
    /// A part of a spilled result.
    Looked(LookReply),
    /// Servers were asked to start; the catalog shows whether they did.
    Started,
}

/// A part of a spilled result, on the account of its run until it is dropped.
pub struct LookReply {
    pub(crate) looked: Result<Looked, LookError>,
    pub(crate) held: Held,
}

/// Makes a guest on the thread that it lives on. [`Preemption`] suspends native work of the guest at its polls. An error
/// is the end of a run that could not begin.
pub type MakeGuest =
    Box<dyn FnOnce(Arc<RunAccount>, Rc<Port>, Preemption) -> Result<Box<dyn Guest>, Box<Outcome>> + Send>;
