//! A small MCP server over stdio with sample or recorded answers, for `ptc demo` and `ptc prelude test --replay`.

use ptc_server::protocol::params::Params;
use ptc_server::protocol::version::Version;
use ptc_server::protocol::{Frame, Message, RpcError, ServerMessage};
use ptc_server::server::outbox::write_line;
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Tools of such a server.
pub(crate) trait SampleServer: Clone + Send + 'static {
    /// Duration of one call.
    const CALL_TIME: Duration;

    /// Its name.
    fn name(&self) -> &str;

    /// The entries of `tools/list`.
    fn tools(&self) -> Value;

    /// Runs a tool; the error is the text of an `isError` result.
    fn call(&self, tool: &str, arguments: &Value) -> Result<Value, String>;
}

/// Serves until the input ends.
pub(crate) fn serve<S: SampleServer>(
    sample: S,
    mut input: impl BufRead,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let output = Arc::new(Mutex::new(output));
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let mut frame = Frame::default();
        let reply = match frame.read(line.trim_ascii_end()) {
            Err(error) => Some(ServerMessage::error(None, &error.into())),
            Ok(Message::Request { id, method, params }) => {
                if method == "tools/call" {
                    let params = params.ok();
                    let name =
                        params.and_then(|params| params.name.as_deref()).unwrap_or_default().to_owned();
                    let arguments = params.map(Params::arguments_value).unwrap_or_default();
                    let id = id.into_owned();
                    let (output, sample) = (Arc::clone(&output), sample.clone());
                    // A thread for each call, so that calls overlap as on a real server.
                    std::thread::spawn(move || {
                        std::thread::sleep(S::CALL_TIME);
                        write(&output, &ServerMessage::result(&id, &call(&sample, &name, &arguments)))
                    });
                    None
                } else {
                    Some(match answer(&sample, method) {
                        Some(result) => ServerMessage::result(&id, &result),
                        None => ServerMessage::error(Some(&id), &RpcError::method_not_found()),
                    })
                }
            }
            Ok(_) => None,
        };
        if let Some(reply) = reply {
            write(&output, &reply)?;
        }
        line.clear();
    }
    Ok(())
}

fn write(output: &Mutex<impl Write>, reply: &ServerMessage) -> io::Result<()> {
    let Ok(mut output) = output.lock() else { return Ok(()) };
    write_line(&mut *output, reply)?;
    output.flush()
}

fn answer(sample: &impl SampleServer, method: &str) -> Option<Value> {
    match method {
        "initialize" => Some(json!({
            "protocolVersion": Version::LATEST_WITH_HANDSHAKE.name(),
            "serverInfo": { "name": sample.name(), "version": env!("CARGO_PKG_VERSION") },
            "capabilities": { "tools": {} },
        })),
        "tools/list" => Some(json!({ "tools": sample.tools() })),
        "ping" => Some(json!({})),
        _ => None,
    }
}

fn call(sample: &impl SampleServer, name: &str, arguments: &Value) -> Value {
    match sample.call(name, arguments) {
        // Only an object may be structured content.
        Ok(value) if !value.is_object() => {
            json!({ "content": [{ "type": "text", "text": value.to_string() }], "isError": false })
        }
        Ok(value) => json!({
            "content": [{ "type": "text", "text": "see structuredContent" }],
            "structuredContent": value, "isError": false,
        }),
        Err(message) => json!({ "content": [{ "type": "text", "text": message }], "isError": true }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::Sample;

    #[derive(Clone, Default)]
    struct DemoState(Arc<Mutex<Vec<u8>>>);

    impl Write for DemoState {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_handshake_is_answered_and_garbage_is_survived() {
        let output = DemoState::default();
        let input = b"garbage\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n\
            {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n";
        serve(Sample::Desk, &input[..], output.clone()).expect("served");
        let text = String::from_utf8(output.0.lock().expect("not poisoned").clone()).expect("UTF-8");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines[0]["error"]["code"], -32700);
        assert_eq!(lines[1]["result"]["serverInfo"]["name"], "desk");
        assert_eq!(lines[2]["result"]["tools"][0]["name"], "search_tickets");
    }

    #[test]
    fn calls_answer_with_structured_content() {
        let result = call(&Sample::Shop, "get_customer", &json!({ "id": "c-07" }));
        assert_eq!(result["structuredContent"]["id"], "c-07");
        assert_eq!(call(&Sample::Shop, "nope", &Value::Null)["isError"], true);
    }
}
