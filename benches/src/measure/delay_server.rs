//! An MCP server over stdio with one tool that answers after a fixed time, however many calls are in flight.
//!
//! All calls take equally long, so answers leave in the order of the calls. One thread with a queue is
//! therefore enough, and the server costs almost nothing compared with what it measures.

use ptc_server::protocol::params::Params;
use ptc_server::protocol::version::Version;
use ptc_server::protocol::{Frame, Message, RpcError, ServerMessage};
use ptc_server::server::outbox::write_line;
use serde_json::json;
use std::io::{self, BufRead, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The server's name as an upstream.
pub const NAME: &str = "delay";

/// The server's tool: returns its arguments after the delay.
pub const TOOL: &str = "wait";

/// Serves until the input ends.
///
/// # Errors
/// Broken pipes.
pub fn serve(
    delay: Duration,
    mut input: impl BufRead,
    mut output: impl Write + Send + 'static,
) -> io::Result<()> {
    let (sender, replies) = mpsc::channel::<(Instant, ServerMessage)>();
    let writer = std::thread::spawn(move || -> io::Result<()> {
        for (due, reply) in replies {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            write_line(&mut output, &reply)?;
            output.flush()?;
        }
        Ok(())
    });
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some((late, reply)) = answer(line.trim_ascii_end()) {
            let due = Instant::now() + if late { delay } else { Duration::ZERO };
            if sender.send((due, reply)).is_err() {
                break;
            }
        }
        line.clear();
    }
    drop(sender);
    writer.join().unwrap_or(Ok(()))
}

/// The JSON text of a call.
pub fn call(id: u64, n: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{TOOL}","arguments":{{"n":{n}}}}}}}"#
    )
}

/// The reply to a message, and whether it is delayed.
pub(super) fn answer(line: &[u8]) -> Option<(bool, ServerMessage)> {
    let mut frame = Frame::default();
    let (id, method, params) = match frame.read(line) {
        Err(error) => return Some((false, ServerMessage::error(None, &error.into()))),
        Ok(Message::Request { id, method, params }) => (id, method, params),
        Ok(_) => return None,
    };
    let arguments = params.map(Params::arguments_value).unwrap_or_default();
    let result = match method {
        "initialize" => json!({
            "protocolVersion": Version::LATEST_WITH_HANDSHAKE.name(),
            "serverInfo": { "name": NAME, "version": env!("CARGO_PKG_VERSION") },
            "capabilities": { "tools": {} },
        }),
        "tools/list" => json!({ "tools": [{
            "name": TOOL, "description": "Answers late",
            "inputSchema": { "type": "object", "properties": { "n": { "type": "integer" } } },
            "annotations": { "readOnlyHint": true },
        }] }),
        "ping" => json!({}),
        "tools/call" => {
            let result = json!({
                "content": [{ "type": "text", "text": "ok" }],
                "structuredContent": arguments, "isError": false,
            });
            return Some((true, ServerMessage::result(&id, &result)));
        }
        _ => return Some((false, ServerMessage::error(Some(&id), &RpcError::method_not_found()))),
    };
    Some((false, ServerMessage::result(&id, &result)))
}
