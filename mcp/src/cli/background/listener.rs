//! Runs the process of `ptc up`, which keeps the configured servers running and relays requests of other `ptc`
//! processes to them over a socket.

use super::client::{PageAnswer, Request, RunningServer, State, build};
use super::page::BackgroundPage;
use super::{READY, socket};
use crate::cli::boot::{UpstreamFlags, keep};
use crate::cli::reload::{ConfigFiles, ConfigReload};
use crate::cli::stop::Stop;
use ptc_base::files;
use ptc_engine::Runtime;
use ptc_server::console;
use ptc_server::console::exit::{Abort, Exit};
use ptc_upstream::{ATTACHED, ErrorObject, ServerRelay};
use rustix::fs::Mode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// Answers that wait for a reader.
const ANSWERS: usize = 16;

/// Those who wait for the end of the process.
type Waiting = Vec<oneshot::Sender<()>>;

/// What connections share.
struct Shared {
    runtime: Arc<Runtime>,
    /// Changes when a connection begins and ends.
    used: watch::Sender<usize>,
    stops: mpsc::UnboundedSender<oneshot::Sender<()>>,
    page: BackgroundPage,
}

/// Counts a connection while it is open.
struct Use(Arc<Shared>);

impl Use {
    fn begin(shared: &Arc<Shared>) -> Use {
        shared.used.send_modify(|count| *count += 1);
        Use(shared.clone())
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.used.send_modify(|count| *count -= 1);
    }
}

/// Runs until the end is asked for, or nothing has used it for `idle`.
pub(super) async fn run(flags: &UpstreamFlags, idle: Option<Duration>) -> Result<Exit, Abort> {
    let path = socket().ok_or_else(|| Abort::usage("no folder for the socket: HOME is not set"))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    files::private_folder(folder)?;
    // Of two that start at once, one goes on. The lock is held until the process ends.
    let lock = files::open_to_lock(&folder.join("background.lock"))?;
    lock.try_lock().map_err(|_| Abort { exit: Exit::Io, message: "it runs already".to_owned() })?;
    let stop = Stop::listen(true);
    let edits = ConfigFiles::followed(flags, Some(ConfigReload::Watch))?;
    let runtime = Arc::new(keep(flags)?);
    let listener = bind(&path)?;
    console::write_line(READY)?;
    let (stops, mut stopping) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        runtime: runtime.clone(),
        used: watch::Sender::new(0),
        stops,
        page: BackgroundPage::default(),
    });
    let mut connections = JoinSet::new();
    let mut waiting: Waiting = Vec::new();
    let accept = async {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(shared.clone(), stream));
            }
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop.asked() => {}
        () = unused(shared.used.subscribe(), idle) => tracing::info!("nothing has used it for its idle time"),
        asked = stopping.recv() => waiting.extend(asked),
        () = edits.follow(flags, &runtime, stop.reloads()) => {}
    }
    // No command finds it from here on.
    let _ = std::fs::remove_file(&path);
    runtime.shutdown().await;
    for waiting in waiting {
        // Who has asked may have gone.
        let _ = waiting.send(());
    }
    // Their answers are on the way.
    connections.abort_all();
    Ok(Exit::Ok)
}

/// Listens on a socket that only this user can connect to. A socket of a process that was killed is replaced; the lock
/// says that no other process listens on it.
fn bind(path: &Path) -> Result<UnixListener, Abort> {
    let _ = std::fs::remove_file(path);
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    bound.map_err(|error| Abort { exit: Exit::Io, message: format!("{}: {error}", path.display()) })
}

/// Waits until no connection has been open for `idle`.
async fn unused(mut used: watch::Receiver<usize>, idle: Option<Duration>) {
    let Some(idle) = idle else { return std::future::pending().await };
    loop {
        let open = *used.borrow_and_update();
        let until = Instant::now() + idle;
        tokio::select! {
            changed = used.changed() => if changed.is_err() { return },
            () = sleep_until(until), if open == 0 => return,
        }
    }
}

/// One connection, from its first line.
async fn serve(shared: Arc<Shared>, stream: UnixStream) {
    // The folder keeps others out already.
    if stream.peer_cred().is_ok_and(|peer| peer.uid() != files::user()) {
        return;
    }
    let (reader, mut writer) = stream.into_split();
    let (mut reader, mut line) = (BufReader::new(reader), String::new());
    if reader.read_line(&mut line).await.is_err() {
        return;
    }
    let answer = match serde_json::from_str(&line) {
        Err(error) => json!({ "error": error.to_string() }).to_string(),
        Ok(Request::State) => json!(state(&shared.runtime)).to_string(),
        Ok(Request::Settled) => {
            shared.runtime.settle().await;
            json!(state(&shared.runtime)).to_string()
        }
        Ok(Request::Stop) => {
            let (done, ended) = oneshot::channel();
            let _ = shared.stops.send(done);
            let _ = ended.await;
            json!({ "ok": true }).to_string()
        }
        Ok(Request::Page) => json!(match shared.page.link(&shared.runtime).await {
            Ok(link) => PageAnswer { link: Some(link), error: None },
            Err(error) => PageAnswer { link: None, error: Some(error.to_string()) },
        })
        .to_string(),
        Ok(Request::Server { name, fingerprint }) => match shared.runtime.relay(&name, fingerprint) {
            Some(relay) => {
                let used = Use::begin(&shared);
                if write(&mut writer, ATTACHED.into()).await.is_ok() {
                    exchange(Arc::new(relay), reader, writer).await;
                }
                return drop(used);
            }
            None => json!({ "ok": false }).to_string(),
        },
    };
    let _ = write(&mut writer, answer.into_bytes()).await;
}

async fn write(writer: &mut OwnedWriteHalf, mut line: Vec<u8>) -> std::io::Result<()> {
    line.push(b'\n');
    writer.write_all(&line).await
}

fn state(runtime: &Runtime) -> State {
    let kept = runtime.servers().into_iter().map(|server| RunningServer {
        name: server.name.to_string(),
        state: server.state.name().to_owned(),
        error: server.error.map(|error| error.to_string()),
        tools: server.tools.len(),
    });
    State {
        package: env!("CARGO_PKG_VERSION").to_owned(),
        build: build(),
        process: std::process::id(),
        servers: kept.collect(),
    }
}

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
async fn exchange(relay: Arc<ServerRelay>, reader: BufReader<OwnedReadHalf>, mut writer: OwnedWriteHalf) {
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
