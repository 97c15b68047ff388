//! What servers ask the clients that we serve, while calls of these are under way.
//!
//! - `client_requests`: the questions of one client or call, from who asks to who sends them, and the answers back.
//! - `rounds`: a call whose client cannot be sent requests (2026-07-28): its answer asks, and the client calls again.
//! - `parked`: the runs of such calls between two rounds.

mod client_requests;
mod parked;
mod rounds;

pub(super) use client_requests::ClientRequests;
pub(super) use parked::{CallKey, ParkedCall, ParkedCalls};
pub use rounds::ResumedCall;
pub(super) use rounds::{
    AttachedRequest, RoundReporter, RoundedCall, input_requests, input_required, inputs,
};
