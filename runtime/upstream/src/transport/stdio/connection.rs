//! Connects to a server that runs as a child process, and manages the process: starts it, watches it, and ends it with
//! everything that it has started.

use super::StdioSpec;
use super::channel::StdioChannel;
use super::group::{ProcessGroup, Signal};
use super::said::SaidLines;
use super::stderr::log_lines;
use crate::transport::{ConnectContext, Connection, ConnectionEnd};
use crate::{CallResult, ServerRequest, UpstreamFault};
use ptc_base::secrets::SecretRegistry;
use ptc_base::tasks::{self, TaskOwner};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a server may take to end after its stdin was closed, and again after SIGTERM.
const STOP_GRACE: Duration = Duration::from_millis(1500);

/// How long the last output of an ended server, or the end of one that closed its output, is awaited.
const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// Bytes of a line that are shown when a start fails.
const EXCERPT: usize = 200;

/// A started process with its pipes connected.
pub(super) struct StdioConnection {
    channel: Arc<StdioChannel>,
    /// Only the supervisor locks it: for one thing at a time.
    process: Mutex<Process>,
    /// Becomes true when stdout has ended.
    ended: watch::Receiver<bool>,
    stderr: SaidLines,
    /// What it wrote to stdout that is not JSON-RPC.
    noise: SaidLines,
}

struct Process {
    child: Child,
    group: ProcessGroup,
    /// Tasks that move its bytes. They end with it, even when a process that it left behind holds a pipe open.
    _streams: JoinSet<()>,
}

impl StdioConnection {
    pub(super) fn spawn(spec: &StdioSpec, context: &ConnectContext) -> Result<StdioConnection, String> {
        let ConnectContext { events, guardian, secrets, .. } = context;
        let (mut child, mark) = guardian.spawn(|mark| spec.spawn(mark), Child::id)?;
        let group = ProcessGroup::led_by(child.id(), mark, guardian.clone());
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("the process has no pipes".to_owned());
        };
        let channel = Arc::new(StdioChannel::new(events.clone()));
        let (tail, noise) = (SaidLines::default(), SaidLines::default());
        let mut streams = JoinSet::new();
        streams.spawn(log_lines(events.server().into(), stderr, secrets.clone(), tail.clone()));
        let writer = channel.clone();
        streams.spawn(async move { writer.write(stdin).await });
        let (publish, ended) = watch::channel(false);
        let (reader, heard, known) = (channel.clone(), noise.clone(), secrets.clone());
        streams.spawn(async move {
            reader.read(stdout, |line| heard.push_first(|| excerpt(line, &known))).await;
            publish.send_replace(true);
        });
        let process = Mutex::new(Process { child, group, _streams: streams });
        Ok(StdioConnection { channel, process, ended, stderr: tail, noise })
    }
}

impl Process {
    /// Ends what is left of it. Blocks no thread of the I/O runtime.
    async fn discard(&mut self) {
        let group = self.group.take();
        let _ = tasks::blocking(TaskOwner::Connection, move |_| drop(group)).await;
    }
}

#[async_trait::async_trait]
impl Connection for StdioConnection {
    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        self.channel.call(request).await
    }

    fn notify(&self, method: &'static str, _: &str) {
        self.channel.notify(method);
    }

    /// Waits until the process has ended or closed its output.
    async fn gone(&self) -> ConnectionEnd {
        let (mut process, mut ended) = (self.process.lock().await, self.ended.clone());
        let exited = tokio::select! {
            status = process.child.wait() => Some(status),
            () = has_ended(&mut ended) => None,
        };
        match exited {
            Some(status) => {
                let _ = timeout(DRAIN_GRACE, has_ended(&mut ended)).await;
                describe(status)
            }
            None => match timeout(DRAIN_GRACE, process.child.wait()).await {
                Ok(status) => describe(status),
                Err(_) => ConnectionEnd { why: "subprocess closed its output".to_owned(), is_orderly: false },
            },
        }
    }

    fn diagnostics(&self) -> Option<String> {
        let said = [self.noise.text("stdout"), self.stderr.text("stderr")];
        let said: Vec<String> = said.into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    fn close(&self, why: &str) {
        self.channel.close(why);
    }

    async fn discard(&self) {
        self.process.lock().await.discard().await;
    }

    /// Closes stdin, waits, terminates, waits, kills.
    async fn shut_down(&self) {
        let mut process = self.process.lock().await;
        let mut group = process.group.take();
        let noted = tasks::blocking(TaskOwner::Connection, move |_| {
            group.note_kin();
            group
        });
        if let Some(group) = noted.await {
            process.group = group;
        }
        self.channel.close("upstream is shutting down");
        if timeout(STOP_GRACE, process.child.wait()).await.is_err() {
            process.group.signal(Signal::Terminate);
            if timeout(STOP_GRACE, process.child.wait()).await.is_err() {
                process.group.signal(Signal::Kill);
                let _ = process.child.wait().await;
            }
        }
        process.discard().await;
    }
}

/// The beginning of a line, without secrets.
fn excerpt(line: &[u8], secrets: &SecretRegistry) -> String {
    match line.len() {
        0..=EXCERPT => secrets.scrub(String::from_utf8_lossy(line).trim()).into_owned(),
        // The part that is cut off may be the rest of a secret, or of a character.
        _ => {
            let head = String::from_utf8_lossy(&line[..EXCERPT]);
            secrets.scrub_cut(head.trim_end_matches('\u{fffd}').trim()).into_owned()
        }
    }
}

async fn has_ended(ended: &mut watch::Receiver<bool>) {
    // An error means that the reader task is gone, which is the same.
    let _ = ended.wait_for(|ended| *ended).await;
}

fn describe(status: std::io::Result<ExitStatus>) -> ConnectionEnd {
    use std::os::unix::process::ExitStatusExt;
    let (why, is_orderly) = match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(0), _) => ("subprocess exited (status=0)".to_owned(), true),
            (Some(code), _) => (format!("subprocess exited (status={code})"), false),
            (None, Some(signal)) => (format!("subprocess exited (signal={signal})"), false),
            (None, None) => ("subprocess exited".to_owned(), false),
        },
        Err(error) => (format!("subprocess exited ({error})"), false),
    };
    ConnectionEnd { why, is_orderly }
}
