//! Connects ptc to the servers with the tools that programs call (MCP servers, OpenAPI services, local commands), and
//! reads their configuration.
//!
//! [`Upstream`] hides processes, sockets and protocols. From top to bottom:
//!
//! - `config`: the configuration file, read into entries of servers.
//! - `owners`: a server with a connection for each caller, which has its own login.
//! - `supervisor`: the life of a server, whatever its transport: starts, restarts, its tool list, its end.
//! - `openapi`: plain JSON services that a document describes.
//! - `mcp`: the protocol as a client speaks it: a connection that wraps another one.
//! - `transport`: how a server is reached: connections, events; a folder for each transport.
//! - `upstream`: the trait [`Upstream`]. `fault`: why a call failed. `limits`: the configured limits of calls.
//! - `request`: one request to a server, from the broker to the wire. `listing`: lists of tools, bounded.
//! - `relay`: one server for another process of this user.
//! - `recorded`: a server of a recording.
//! - `overflow`: a response in memory, or in a spill file if it is large.
//! - `jsonrpc`: messages as text.
//! - `login`: a login that a server waits for.
//! - `progress`: which call a progress notification belongs to, and what its listener gets.
//! - `client_features`: what servers may ask of the client that this process serves; `callers`: which of many is meant.
//!
//! The [`Catalog`](ptc_calls::tools::Catalog) holds the tools of all servers.

mod callers;
mod client_features;
pub mod config;
#[cfg(test)]
mod documents;
mod fault;
mod jsonrpc;
mod limits;
mod listing;
mod login;
mod mcp;
mod openapi;
mod overflow;
mod owners;
mod progress;
mod recorded;
mod relay;
mod request;
mod supervisor;
mod transport;
mod upstream;

pub use client_features::ClientFeatures;
pub use fault::{StartUnderWay, UpstreamFault};
pub use jsonrpc::error::shorten;
pub use jsonrpc::message::response;
pub use jsonrpc::{ErrorObject, RawAnswer};
pub use limits::CallLimits;
pub use login::LoginNeed;
pub(crate) use openapi::DEFAULT_SCHEMA_BYTES;
pub(crate) use openapi::is_pattern;
pub use openapi::{
    OpenApiInspection, OpenApiSpec, OperationOverride, SchemaSource, inspect_openapi, is_openapi_document,
};
pub use overflow::AnswerWriter;
pub use owners::OwnedUpstreams;
pub use ptc_calls::run::client::{
    CallingClient, ClientAnswer, ClientError, ClientTag, Offered, ProgressListener, ServedClient, ToolStep,
};
pub use ptc_calls::run::outgoing::Arguments;
pub use recorded::RecordedUpstream;
pub use relay::ServerRelay;
pub use request::{
    CallResult, Envelope, Era, Mirrored, Recheck, ResultSink, ServerRequest, TaskNotes, deadline,
};
pub use supervisor::{FailedStart, StartPermits, SupervisedUpstream, SupervisorOptions};
pub use transport::companions::{forget_companion, spawn_companion};
pub use transport::http::{EventParser, ServerSentEvent};
pub use transport::http::{HttpProtocol, HttpSpec};
pub use transport::local::{LocalHandler, LocalSpec, LocalWork};
pub(crate) use transport::stdio::is_inherited;
pub use transport::stdio::{ATTACHED, AttachedSpec, Environment, Guardian, StdioSpec, resolve_command};
pub(crate) use transport::unusable::UnusableEntry;
pub use transport::{
    ConnectContext, Connection, ConnectionEnd, Location, Opened, Opening, ServerEvents, Transport,
};
pub use upstream::{Upstream, UpstreamState, UpstreamStatus};
