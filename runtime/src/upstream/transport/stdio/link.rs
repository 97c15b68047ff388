//! The life of one child process, from its start to the end of everything that it has started.

use super::StdioTransport;
use super::group::{ProcessGroup, Signal};
use super::peer::StdioPeer;
use super::stderr::{StderrTail, log_lines};
use crate::tasks::{self, TaskOwner};
use crate::upstream::transport::{Line, Link, LinkEnd, PeerEvents};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a server may take to end after its stdin was closed, and again after SIGTERM.
const STOP_GRACE: Duration = Duration::from_millis(1500);

/// How long the last output of an ended server, or the end of one that closed its output, is awaited.
const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// A started process with its pipes wired up.
pub(super) struct StdioLink {
    child: Child,
    group: ProcessGroup,
    peer: Arc<StdioPeer>,
    /// Becomes true when stdout has ended.
    ended: watch::Receiver<bool>,
    stderr: StderrTail,
    /// What moves its bytes. Ends with it, also when a process that it left behind holds a pipe open.
    _streams: JoinSet<()>,
}

impl StdioLink {
    pub(super) fn spawn(transport: &StdioTransport, events: Arc<PeerEvents>) -> Result<StdioLink, String> {
        let StdioTransport { name, spec, guardian, secrets } = transport;
        let (mut child, mark) = guardian.spawn(|mark| spec.spawn(mark), Child::id)?;
        let group = ProcessGroup::led_by(child.id(), mark, guardian.clone());
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("the process has no pipes".to_owned());
        };
        let peer = Arc::new(StdioPeer::new(events));
        let tail = StderrTail::default();
        let mut streams = JoinSet::new();
        streams.spawn(log_lines(name.clone(), stderr, secrets.clone(), tail.clone()));
        let writer = peer.clone();
        streams.spawn(async move { writer.write(stdin).await });
        let (publish, ended) = watch::channel(false);
        let reader = peer.clone();
        streams.spawn(async move {
            reader.read(stdout).await;
            publish.send_replace(true);
        });
        Ok(StdioLink { child, group, peer, ended, stderr: tail, _streams: streams })
    }
}

#[async_trait::async_trait]
impl Link for StdioLink {
    fn line(&self) -> Line {
        Line::Mcp(self.peer.clone())
    }

    /// Waits until the process has ended or closed its output.
    async fn gone(&mut self) -> LinkEnd {
        let StdioLink { child, ended, .. } = self;
        let exited = tokio::select! {
            status = child.wait() => Some(status),
            () = has_ended(ended) => None,
        };
        match exited {
            Some(status) => {
                let _ = timeout(DRAIN_GRACE, has_ended(ended)).await;
                describe(status)
            }
            None => match timeout(DRAIN_GRACE, child.wait()).await {
                Ok(status) => describe(status),
                Err(_) => LinkEnd { why: "subprocess closed its output".to_owned(), is_orderly: false },
            },
        }
    }

    fn diagnostics(&self) -> Option<String> {
        self.stderr.text().map(|text| format!("stderr: {text}"))
    }

    fn close(&mut self, why: &str) {
        self.peer.close(why);
    }

    /// Blocks no thread of the I/O runtime.
    async fn discard(&mut self) {
        let group = self.group.take();
        let _ = tasks::blocking(TaskOwner::Connection, move |_| drop(group)).await;
    }

    /// Closes stdin, waits, terminates, waits, kills.
    async fn shut_down(&mut self) {
        let mut group = self.group.take();
        let noted = tasks::blocking(TaskOwner::Connection, move |_| {
            group.note_kin();
            group
        });
        if let Some(group) = noted.await {
            self.group = group;
        }
        self.peer.close("upstream is shutting down");
        if timeout(STOP_GRACE, self.child.wait()).await.is_err() {
            self.group.signal(Signal::Terminate);
            if timeout(STOP_GRACE, self.child.wait()).await.is_err() {
                self.group.signal(Signal::Kill);
                let _ = self.child.wait().await;
            }
        }
        self.discard().await;
    }
}

async fn has_ended(ended: &mut watch::Receiver<bool>) {
    // An error means that the reader task is gone, which is the same.
    let _ = ended.wait_for(|ended| *ended).await;
}

fn describe(status: std::io::Result<ExitStatus>) -> LinkEnd {
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
    LinkEnd { why, is_orderly }
}
