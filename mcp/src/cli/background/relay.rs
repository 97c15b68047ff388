//! Answers the MCP requests that another `ptc` process sends over a socket, by passing them to an upstream server that
//! the background process (`ptc up`) keeps running. A connection leads to one server; when it ends, the requests in
//! flight are cancelled.

use ptc_upstream::{ErrorObject, ServerRelay};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Answers that wait for a reader.
const ANSWERS: usize = 16;

/// A message of the other process.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Requests in flight, by the text of their id.
type InFlight = Arc<Mutex<HashMap<String, AbortHandle>>>;

/// Answers requests until the other process has gone; its calls in flight are cancelled then.
pub(super) async fn exchange(
    relay: Arc<ServerRelay>,
    reader: BufReader<OwnedReadHalf>,
    mut writer: OwnedWriteHalf,
) {
    let (answers, mut ready) = mpsc::channel::<Vec<u8>>(ANSWERS);
    let written = async {
        while let Some(answer) = ready.recv().await {
            if write(&mut writer, answer).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = read(relay, reader, answers) => {}
        () = written => {}
    }
}

async fn read(relay: Arc<ServerRelay>, mut reader: BufReader<OwnedReadHalf>, answers: mpsc::Sender<Vec<u8>>) {
    let in_flight = InFlight::default();
    let mut calls = JoinSet::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
            begin(&relay, &line, &in_flight, &answers, &mut calls);
            while calls.try_join_next().is_some() {}
        } else {
            return;
        }
    }
}

/// Begins to answer a request, or cancels one.
fn begin(
    relay: &Arc<ServerRelay>,
    line: &[u8],
    in_flight: &InFlight,
    answers: &mpsc::Sender<Vec<u8>>,
    calls: &mut JoinSet<()>,
) {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else { return };
    let Some(id) = message.id.map(|id| id.get().to_owned()) else {
        if message.method == "notifications/cancelled" {
            let params: Value =
                message.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
            if let Some(call) = lock(in_flight).remove(&params["requestId"].to_string()) {
                call.abort();
            }
        }
        return;
    };
    let (relay, answers, flights) = (relay.clone(), answers.clone(), in_flight.clone());
    let (method, params) = (message.method, message.params.map(ToOwned::to_owned));
    let key = id.clone();
    let call = calls.spawn(async move {
        let answer = answered(&id, relay.answer(&method, params.as_deref(), &answers).await);
        lock(&flights).remove(&id);
        let _ = answers.send(answer).await;
    });
    lock(in_flight).insert(key, call);
}

fn lock(in_flight: &InFlight) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
    in_flight.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The message with this result.
fn answered(id: &str, result: Result<Vec<u8>, ErrorObject>) -> Vec<u8> {
    match result {
        Ok(result) => {
            let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
            // Messages are lines, and results may have line breaks between their tokens.
            let result: Vec<u8> = result
                .into_iter()
                .map(|byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte })
                .collect();
            [head.as_bytes(), &result, b"}"].concat()
        }
        Err(ErrorObject { code, message, .. }) => {
            let error = json!({ "code": code, "message": message });
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into_bytes()
        }
    }
}

/// Sends a line.
pub(super) async fn write(writer: &mut OwnedWriteHalf, mut line: Vec<u8>) -> std::io::Result<()> {
    line.push(b'\n');
    writer.write_all(&line).await
}
