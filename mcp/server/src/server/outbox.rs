//! Defines the trait through which the server sends messages to a client, each labelled with the request that it
//! belongs to, so that HTTP can route it. For stdio, a buffer collects the messages.

use crate::protocol::{Id, RpcError, ServerMessage};
use std::io::{self, Write};

/// What a message belongs to. A transport with one stream, such as stdio, need not look at it. Over HTTP a
/// message goes to the response of its request, or to the stream of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// The answer to this request, or a notification while it is worked on.
    Request(&'a Id<'a>),
    /// A message that belongs to no request.
    Connection,
}

/// Sends the messages of one connection. It never waits, and it adds what separates messages.
pub trait Outbox {
    /// Sends the message that `write` appends to the buffer it is given.
    fn write(&mut self, to: Route<'_>, write: impl FnOnce(&mut Vec<u8>));

    /// Answers a request with an error.
    fn refuse(&mut self, id: &Id<'_>, error: &RpcError) {
        self.send(Route::Request(id), ServerMessage::error(Some(id), error));
    }

    /// Sends a message.
    fn send(&mut self, to: Route<'_>, message: ServerMessage) {
        self.write(to, |out| out.extend_from_slice(message.as_bytes()));
    }
}

/// Writes a message as a line.
///
/// # Errors
/// A broken stream.
pub fn write_line(out: &mut impl Write, message: &ServerMessage) -> io::Result<()> {
    out.write_all(message.as_bytes())?;
    out.write_all(b"\n")
}

/// Collects messages, one on each line, for a stream that another part writes to.
impl Outbox for Vec<u8> {
    fn write(&mut self, _: Route<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        write(self);
        self.push(b'\n');
    }

    fn send(&mut self, _: Route<'_>, message: ServerMessage) {
        self.extend_from_slice(message.as_bytes());
        self.push(b'\n');
    }
}
