//! Passes questions of upstream servers (MCP servers that programs call) on to the client that made the call, and the
//! client's answers back.
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
    AttachedRequest, InputRequiredCall, JobReporter, input_requests, input_required, inputs, supports,
};
pub(super) use client_requests::{ClientQuestion, ClientRequests};
pub(super) use parked::{CallKey, ParkedCall, ParkedCalls};
