//! The server: method dispatch, and the transports that messages arrive over.
//!
//! # Layout
//!
//! - [`handler`]: method dispatch. `tool_lists`: `tools/list` of both eras. `result_writer`: tool results as
//!   messages. [`offerings`]: resources, prompts and completions.
//! - [`connection`]: one connection without its transport. [`handshake`]: its negotiated state. `calls`: its
//!   calls in flight. `asking`: questions of upstream servers to its client. [`progress`]: rate-limited
//!   progress notifications. [`mailbox`]: events from jobs and from the gate.
//! - [`gate`]: admission control over all connections, one a process.
//! - [`outbox`]: the sending side of a connection.
//! - [`http`]: many clients over Streamable HTTP.
//! - [`stdio`]: one connection over standard input and output. [`lines`]: the reader thread, which splits bytes
//!   into bounded lines. [`output`]: the writer thread, which measures how far the client is behind.

mod asking;
mod calls;
pub mod connection;
pub mod gate;
pub mod handler;
pub mod handshake;
pub mod http;
pub mod lines;
pub mod mailbox;
pub mod offerings;
pub mod outbox;
pub mod output;
pub mod progress;
mod result_writer;
pub mod stdio;
mod tool_lists;

pub use asking::ResumedCall;
pub use connection::ClientConnection;
pub use gate::{Gate, Load, Parking};
pub use handler::{Action, Handler, Surface};
pub use handshake::HandshakeState;
pub use offerings::Offerings;
pub use outbox::{Outbox, Route};
