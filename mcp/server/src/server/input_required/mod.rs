//! Questions of upstream servers to our clients, while the clients' calls run.
//!
//! - `client_requests`: the open questions of one client or call, and the answers to them.
//! - `call`: a call of a client that cannot be sent requests (2026-07-28): its response asks, and the client
//!   calls again.
//! - `parked`: the runs of such calls while their clients answer.

mod call;
mod client_requests;
mod parked;

pub use call::ResumedCall;
pub(super) use call::{
    AttachedRequest, InputRequiredCall, InputRequiredReporter, input_requests, input_required, inputs,
    supports,
};
pub(super) use client_requests::{ClientQuestion, ClientRequests};
pub(super) use parked::{CallKey, ParkedCall, ParkedCalls};
