//! The client side of the background process that `ptc up` starts: other commands use it to query or stop that process,
//! to get a link to its web page, and to reach the MCP servers that it keeps running.

use super::protocol::{PageAnswer, Request, State, build};
use super::socket;
use ptc_base::files;
use ptc_upstream::AttachedSpec;
use ptc_upstream::config::ServerEntry;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the process may take to say its state.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long its servers may take to start. Those that take longer go on starting.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// How long it may take to end, its servers included.
const END_PATIENCE: Duration = Duration::from_secs(15);

/// Seconds that the process may take to be gone once its servers have ended.
const GONE_PATIENCE: i64 = 5;

/// The running process.
pub(super) struct Background {
    socket: PathBuf,
    pub(super) state: State,
}

impl Background {
    /// Finds it. The socket has to be in a folder that no other user can enter.
    pub(super) fn find() -> Option<Background> {
        let socket = socket().filter(|socket| socket.parent().is_some_and(files::is_private_folder))?;
        let state = serde_json::from_str(&ask(&socket, &Request::State, PATIENCE)?).ok()?;
        Some(Background { socket, state })
    }

    /// Whether something listens that [`Background::find`] gets no answer from.
    pub(super) fn is_silent() -> bool {
        let socket = socket().filter(|socket| socket.parent().is_some_and(files::is_private_folder));
        socket.is_some_and(|socket| UnixStream::connect(socket).is_ok())
    }

    /// Whether it runs the same file as this process.
    pub(super) fn is_of_this_version(&self) -> bool {
        self.state.build == build()
    }

    /// Its state once each server has started or failed.
    pub(super) fn settled(&self) -> Option<State> {
        serde_json::from_str(&ask(&self.socket, &Request::Settled, START_PATIENCE)?).ok()
    }

    /// A link to its page, which works once.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn page_link(&self) -> Result<String, String> {
        let answer = ask(&self.socket, &Request::Page, PATIENCE).unwrap_or_default();
        let answer: PageAnswer = serde_json::from_str(&answer).map_err(|_| "`ptc up` does not answer")?;
        answer.link.ok_or_else(|| answer.error.unwrap_or_default())
    }

    /// Ends it, and waits until the process is gone: its socket, lock and page are free then.
    ///
    /// # Errors
    /// It has not ended in time.
    pub(super) fn stop(&self) -> io::Result<()> {
        // A handle of the process, since its number may be that of another one afterwards.
        let pid = i32::try_from(self.state.process).ok().and_then(Pid::from_raw);
        let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        ask(&self.socket, &Request::Stop, END_PATIENCE);
        // It is gone already, or the system has no handles (some containers forbid them): its answer has to do.
        let Some(process) = process else { return Ok(()) };
        let patience = Timespec { tv_sec: GONE_PATIENCE, tv_nsec: 0 };
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut ended, Some(&patience)))? == 0 {
            let message = format!("process {} has not ended in time", self.state.process);
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        Ok(())
    }
}

fn ask(socket: &PathBuf, request: &Request, patience: Duration) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.write_all(format!("{}\n", json!(request)).as_bytes()).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    Some(line)
}

/// Reaches servers through the process of `ptc up`, if it runs. A server whose configuration differs there is started by
/// this process.
pub(in crate::cli) fn attach(servers: &mut [ServerEntry]) {
    if !servers.iter().any(|server| server.transport.speaks_mcp()) {
        return;
    }
    let Some(background) = Background::find() else { return };
    if !background.is_of_this_version() {
        tracing::warn!(
            "`ptc up` was run by another version of ptc: its servers are not used until `ptc up` is run again"
        );
        return;
    }
    for server in servers.iter_mut().filter(|server| server.transport.speaks_mcp()) {
        if background.state.servers.iter().any(|kept| *kept.name == *server.name) {
            let request =
                Request::Server { name: server.name.to_string(), fingerprint: server.fingerprint() };
            server.transport = Arc::new(AttachedSpec {
                inner: server.transport.clone(),
                socket: background.socket.clone(),
                request: json!(request).to_string(),
            });
        }
    }
}
