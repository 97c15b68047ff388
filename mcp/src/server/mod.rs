//! The server: what is done about messages, and the transports they come over.
//!
//! # Layout
//!
//! - [`handler`]: method dispatch. `tool_lists`: `tools/list` of both eras. `result_writer`: results of calls as messages. [`offerings`]: what there is beside tools.
//! - [`connection`]: one connection without its transport. [`handshake`]: what was said on it. `calls`: its calls in flight. `asking`: what
//!   servers ask its client. [`progress`]: what a
//!   client is told meanwhile. [`mailbox`]: what jobs tell.
//! - [`gate`]: how much may be in the server at once, one a process.
//! - [`outbox`]: where messages go.
//! - [`http`]: many clients over Streamable HTTP.
//! - [`stdio`]: the loop that gives a connection standard input and output. [`lines`]: bytes to lines, bounded; a
//!   thread that reads them. [`output`]: a thread that writes, and how much it is behind.

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
