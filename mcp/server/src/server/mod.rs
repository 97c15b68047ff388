//! The MCP server: handles the messages of clients over standard input and output, or over HTTP.
//!
//! # Layout
//!
//! - [`handler`]: method dispatch. `tool_lists`: `tools/list` of both eras. `result_writer`: tool results as
//!   messages. [`offerings`]: resources, prompts and completions.
//! - [`connection`]: one connection without its transport. [`connection_state`]: its negotiated state. `calls`: its
//!   calls in flight. `detached`: calls that go on without their requests. `input_required`: questions of upstream
//!   servers to its client. [`progress`]: bounded progress notifications. [`mailbox`]: events from jobs and from the
//!   gate.
//! - [`gate`]: admission control over all connections, one a process.
//! - [`outbox`]: the sending side of a connection.
//! - [`http`]: many clients over Streamable HTTP.
//! - [`stdio`]: one connection over standard input and output. [`lines`]: the reader thread, which splits bytes
//!   into bounded lines. [`output`]: the writer thread, which measures how far the client is behind.

mod calls;
pub mod connection;
pub mod connection_state;
mod detached;
pub mod gate;
pub mod handler;
pub mod http;
mod input_required;
pub mod lines;
pub mod mailbox;
pub mod offerings;
pub mod outbox;
pub mod output;
pub mod progress;
mod result_writer;
pub mod stdio;
mod tool_lists;

pub use connection::ClientConnection;
pub use connection_state::ConnectionState;
pub use detached::{
    AwaitedTask, Detach, DetachedLimits, DetachedRuns, Handle, OwnerRights, TakeEnded, Unfinished,
};
pub use gate::{Gate, GateLimits, ParkingLimits};
pub use handler::{Action, Handler, Surface};
pub use input_required::ResumedCall;
pub use offerings::Offerings;
pub use outbox::{Outbox, Route};
