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
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Most commands at a time.
const MOST: usize = 32;

/// Most bytes of a command.
const COMMAND_BYTES: u64 = 4_096;

/// Most time until a command has arrived. It is one line, which its client has before it connects.
const COMMAND_TIME: Duration = Duration::from_secs(5);

/// Most time that a client waits until the server takes its command.
const TAKING_TIME: Duration = Duration::from_secs(15);

/// Most time of a command that waits for nothing but the store, and of sending an answer.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// Most bytes of an answer.
const ANSWER_BYTES: u64 = 256 << 20;

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

/// Sends a command to the server that has the folder. An empty line says that the server has taken it, as a run that goes on
/// may take its time; the next line is the answer.
pub(super) async fn ask(folder: &Path, request: &Request) -> io::Result<Reply> {
    let taken = async {
        let mut stream = UnixStream::connect(socket(folder)).await?;
        stream.write_all(&line(request)?).await?;
        let mut reader = BufReader::new(stream.take(ANSWER_BYTES));
        match reader.read_u8().await? {
            b'\n' => Ok(reader),
            _ => Err(io::Error::new(ErrorKind::InvalidData, "it is another program")),
        }
    };
    let mut reader = within(TAKING_TIME, taken).await?;
    let mut answer = String::new();
    let read = reader.read_line(&mut answer);
    match request {
        Request::Resume { .. } => read.await?,
        Request::List | Request::Show { .. } | Request::Cancel { .. } => within(ANSWER_TIME, read).await?,
    };
    Ok(serde_json::from_str(&answer)?)
}

async fn within<T>(time: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = |_| io::Error::new(ErrorKind::TimedOut, format!("nothing came for {} s", time.as_secs()));
    timeout(time, work).await.map_err(late)?
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
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
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
    let mut reader = BufReader::new(reader.take(COMMAND_BYTES));
    let taken = within(COMMAND_TIME, async {
        reader.read_line(&mut command).await?;
        writer.write_all(b"\n").await
    });
    let taken = taken.await;
    let Some(runs) = runtime.broker().durable().filter(|_| taken.is_ok()) else { return };
    let reply = match serde_json::from_str(&command) {
        Ok(request) => perform(runs, Some(&runtime), &request, Palette::PLAIN).await,
        Err(error) => Reply { refused: Some(error.to_string()), ..Reply::default() },
    };
    if let Ok(line) = line(&reply) {
        let line = redact::clean(line, Form::Json(&shapes::REPORT)).into_bytes();
        // Its client may have gone, or read nothing.
        let _ = within(ANSWER_TIME, writer.write_all(&line)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that is stopped accepts connections and says nothing.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let _silent = Socket::listen(folder.path()).unwrap();
        let refused = ask(folder.path(), &Request::Resume { id: "a".to_owned(), asks: false }).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_command_is_taken_and_answered() {
        let folder = tempfile::tempdir().unwrap();
        let socket = Socket::listen(folder.path()).unwrap();
        let server = async {
            let (mut stream, _) = socket.listener.accept().await.unwrap();
            BufReader::new(&mut stream).read_line(&mut String::new()).await.unwrap();
            stream.write_all(b"\n{\"text\": \"none\"}\n").await.unwrap();
        };
        let (reply, ()) = tokio::join!(ask(folder.path(), &Request::List), server);
        assert_eq!(reply.unwrap().text, "none");
    }
}
