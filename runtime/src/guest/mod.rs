//! What runs on the workers: a program in some language, or whatever else makes tool calls and ends in an outcome.
//!
//! A worker knows a run only as a [`Guest`]. It gives it turns, hands it what came of its calls, and frees it. A
//! guest has a [`Seat`]: the account of its run, and a port by which the I/O runtime works for it. Nothing else is
//! shared; calls of tools go through [`crate::broker`].
//!
//! # Layout
//! - `seat`: what a guest is given; `departures`: work on its way to the I/O runtime; `outside`: guests whose work is done on the I/O runtime; [`lisp`]: PTC-Lisp
//!   programs

mod departures;
pub mod lisp;
mod outside;
mod seat;

pub(crate) use departures::Departures;
pub use departures::Errand;
pub use outside::{interrupted, outside};
pub use seat::{Port, ReplySink, Seat};

use crate::broker::{CallError, CallPayload, CallResponse, Permit};
use crate::run::account::Held;
use crate::run::client::CallingClient;
use crate::run::outcome::Ending;
use crate::run::trace::TraceContext;
use crate::spill::{LookError, Looked};

/// Something that a worker drives. It never leaves its thread.
///
/// A run is ended from outside by an interrupt on its account, and by nothing else, because a guest may be suspended
/// half-way: it has to look at [`crate::run::account::RunAccount::interrupted`] in whatever takes long, and its next
/// turn after an interrupt has to be its last.
pub trait Guest {
    /// Runs a slice, of about a millisecond at most.
    fn advance(&mut self) -> Progress;

    /// Takes what came of work that it handed out.
    fn answer(&mut self, call: CallId, reply: Reply);

    /// The lines that it has printed so far, for whoever follows the run; those of its [`Ending`] begin with them.
    fn printed(&self) -> &[String] {
        &[]
    }

    /// Logical bytes alive.
    fn live_bytes(&self) -> u64;

    /// Frees it; its outcome is on its way already. Not asked for after a defect in here.
    fn close(self: Box<Self>);
}

/// The same guest, for a caller whose trace is this one.
pub fn traced(guest: MakeGuest, trace: Option<TraceContext>) -> MakeGuest {
    match trace {
        None => guest,
        Some(trace) => Box::new(move |seat| {
            seat.account.set_trace(trace);
            guest(seat)
        }),
    }
}

/// The same guest, for a client that servers may ask which it calls.
pub fn asking(guest: MakeGuest, client: Option<CallingClient>) -> MakeGuest {
    match client {
        None => guest,
        Some(client) => Box::new(move |seat| {
            seat.account.set_client(client);
            guest(seat)
        }),
    }
}

/// What a guest needs next.
pub enum Progress {
    /// Another slice.
    Ready,
    /// An answer.
    Waiting,
    /// Nothing: this is its end.
    Finished(Box<Ending>),
}

/// A piece of work that a guest handed out, in its own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// What came of work that was handed out.
pub enum Reply {
    /// A call may be encoded ([`crate::broker::Pending::permit`]).
    Permit(Result<Permit, CallError>),
    /// A call came back ([`crate::broker::Parcel::send`]).
    Answer(Result<CallResponse, CallError>),
    /// The whole of a call ([`crate::broker::ToolBroker::call`]).
    Payload(Result<CallPayload, CallError>),
    /// What a look into a kept result has found.
    Looked(LookReply),
    /// Servers were asked to start; whether they did shows in the catalog.
    Started,
    /// The end of a run whose work is done elsewhere, in another process say.
    Ended(Box<Ending>),
}

/// What a look into a kept result has found, on the account of its run until it is dropped.
pub struct LookReply {
    pub(crate) looked: Result<Looked, LookError>,
    pub(crate) held: Held,
}

/// Makes a guest on the thread that it lives on; an error is the end of a run that could not begin.
pub type MakeGuest = Box<dyn FnOnce(Seat) -> Result<Box<dyn Guest>, Box<Ending>> + Send>;
