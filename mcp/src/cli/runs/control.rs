//! Sends the commands of `ptc runs` over a Unix socket to the server process that holds the stored runs, and carries
//! them out in that process. A command is a line of JSON. The socket is in the folder of the runs, and only its user
//! can connect to it.

use super::perform;
use super::state::StateLocation;
use ptc_base::files;
use ptc_calls::outcome::Palette;
use ptc_engine::Runtime;
use ptc_server::redact::{self, Form, shapes};
use rustix::fs::{Mode, chmod};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Most commands at a time.
const MOST: usize = 32;

/// Most bytes of a command.
const COMMAND_BYTES: u64 = 4_096;

/// Pause after a connection that cannot be accepted.
const PAUSE: Duration = Duration::from_millis(200);

/// A command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    List,
    Show {
        id: String,
    },
    Cancel {
        id: String,
    },
    Resume {
        id: String,
        /// A person decides about calls in doubt.
        asks: bool,
    },
}

/// What a command gives.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Reply {
    /// Text for people.
    pub(super) text: String,
    /// What a program printed, and its value.
    pub(super) data: String,
    /// Runs, for `--output json`.
    pub(super) runs: Vec<Value>,
    /// Lines for standard error.
    pub(super) complaints: Vec<String>,
    /// The program failed.
    pub(super) has_failed: bool,
    /// Why the command was not carried out.
    pub(super) refused: Option<String>,
}

impl Reply {
    /// Nothing but a text.
    pub(super) fn text(text: String) -> Reply {
        Reply { text, ..Reply::default() }
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("runs.sock")
}

/// Sends a command to the server that has the folder.
pub(super) async fn ask(folder: &Path, request: &Request) -> io::Result<Reply> {
    let mut stream = UnixStream::connect(socket(folder)).await?;
    stream.write_all(&line(request)?).await?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await?;
    Ok(serde_json::from_str(&answer)?)
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// A socket that is removed when this is dropped.
struct Socket {
    path: PathBuf,
    listener: UnixListener,
}

impl Socket {
    /// Listens in a private folder. The lock of the store says that no other process does, so a socket that is there is one
    /// of a process that was killed.
    fn listen(folder: &Path) -> io::Result<Socket> {
        let path = socket(folder);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        chmod(&path, Mode::from_raw_mode(0o600))?;
        Ok(Socket { path, listener })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // One that stays is replaced by the next server.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Carries commands out for as long as it is polled, if runs are stored in a folder: a database is there for the command
/// itself. A failure is logged: the server serves its clients all the same.
pub(in crate::cli) async fn serve(location: Option<StateLocation>, runtime: Arc<Runtime>) {
    let folder = location.as_ref().and_then(StateLocation::folder);
    let listening = folder.map(Socket::listen).transpose();
    let socket = match listening {
        Ok(Some(socket)) => socket,
        Ok(None) => return std::future::pending().await,
        Err(error) => {
            tracing::warn!(%error, "`ptc runs` cannot reach this server");
            return std::future::pending().await;
        }
    };
    let mut commands = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.listener.accept(), if commands.len() < MOST => match accepted {
                Ok((stream, _)) => {
                    commands.spawn(carry_out(runtime.clone(), stream));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = commands.join_next() => {}
        }
    }
}

/// One connection: a command and its answer.
async fn carry_out(runtime: Arc<Runtime>, stream: UnixStream) {
    // The folder keeps others out already.
    if stream.peer_cred().is_ok_and(|peer| peer.uid() != files::user()) {
        return;
    }
    let (reader, mut writer) = stream.into_split();
    let mut command = String::new();
    let read = BufReader::new(reader.take(COMMAND_BYTES)).read_line(&mut command).await;
    let Some(runs) = runtime.broker().durable().filter(|_| read.is_ok()) else { return };
    let reply = match serde_json::from_str(&command) {
        Ok(request) => perform(runs, Some(&runtime), &request, Palette::PLAIN).await,
        Err(error) => Reply { refused: Some(error.to_string()), ..Reply::default() },
    };
    if let Ok(line) = line(&reply) {
        // Its client may have gone.
        let _ = writer.write_all(&redact::clean(line, Form::Json(&shapes::REPORT)).into_bytes()).await;
    }
}
