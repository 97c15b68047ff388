//! The process of `ptc up`: keeps the configured servers running, listens on a Unix socket for other `ptc` processes of
//! the same user that share them. It follows edits of the configuration, and ends when nothing has used it for long.

use super::page::BackgroundPage;
use super::protocol::{PageAnswer, Request, RunningServer, State, UpSettings, build};
use super::relay::{exchange, write};
use super::{COMMAND, READY, socket};
use crate::cli::boot::{UpstreamFlags, keep};
use crate::cli::reload::ConfigFiles;
use crate::cli::stop::Stop;
use ptc_base::files;
use ptc_engine::Runtime;
use ptc_server::console::{self, Abort, Exit};
use ptc_upstream::ATTACHED;
use rustix::fs::Mode;
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Those who wait for the end of the process.
type Waiting = Vec<oneshot::Sender<()>>;

/// What connections share.
struct Shared {
    runtime: Arc<Runtime>,
    settings: UpSettings,
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
    let edits = ConfigFiles::expected(flags)?;
    let words: Vec<OsString> =
        std::env::args_os().skip(1).skip_while(|word| word != COMMAND).skip(1).collect();
    let settings = UpSettings::new(&words, flags)?;
    let runtime = Arc::new(keep(flags)?);
    let listener = bind(&path)?;
    console::write_line(READY)?;
    let (stops, mut stopping) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        runtime: runtime.clone(),
        settings,
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
        () = edits.follow(flags, &runtime, stop.reloads.clone()) => {}
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
        Ok(Request::State) => json!(state(&shared)).to_string(),
        Ok(Request::Settled) => {
            shared.runtime.settle().await;
            // Signals of the terminal that `ptc up` was typed at are no concern of this process any more.
            let _ = rustix::process::setpgid(None, None);
            json!(state(&shared)).to_string()
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

fn state(shared: &Shared) -> State {
    let kept = shared.runtime.servers().into_iter().map(|server| RunningServer {
        name: server.name.to_string(),
        state: server.state.name().to_owned(),
        error: server.error.map(|error| error.to_string()),
        tools: server.tools.len(),
    });
    State {
        package: env!("CARGO_PKG_VERSION").to_owned(),
        build: build(),
        process: std::process::id(),
        settings: shared.settings.clone(),
        servers: kept.collect(),
    }
}
