//! Questions of upstream servers to our clients, while the clients' calls run.
//!
//! - `client_requests`: the open questions of one client or call, and the answers to them.
//! - `rounds`: a call of a client that cannot be sent requests (2026-07-28): its response asks, and the client
//!   calls again.
//! - `parked`: the runs of such calls while their clients answer.

mod client_requests;
mod parked;
mod rounds;

pub(super) use client_requests::ClientRequests;
pub(super) use parked::{CallKey, ParkedCall, ParkedCalls};
pub use rounds::ResumedCall;
pub(super) use rounds::{
    AttachedRequest, RoundReporter, RoundedCall, input_requests, input_required, inputs,
};
