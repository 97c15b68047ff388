//! The life of one stdio server: one owner task starts it, watches it, backs off after a crash and shuts it
//! down. Nobody else touches the process.

use super::UpstreamFault;
use super::connection::{Connection, Params, Request, RequestFault, StreamSink};
use super::dialect::Dialect;
use super::group::{ProcessGroup, Signal};
use super::handshake::{Hello, Opening, Probe};
use super::line::LineReader;
use super::service::{Command, Phase, ServiceOptions, Session};
use super::stderr::{StderrTail, log_lines};
use crate::tools::{Listed, SnapshotMode, ToolList};
use futures_util::future::BoxFuture;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// The first recovery window; each crash without an answered call in between doubles it.
const SHORTEST_RECOVERY: Duration = Duration::from_millis(100);

/// The longest recovery window.
const LONGEST_RECOVERY: Duration = Duration::from_secs(30);

/// How long a server may take to end after its stdin was closed, and again after SIGTERM.
const STOP_GRACE: Duration = Duration::from_millis(1500);

/// How long the last output of an ended server, or the end of one that closed its output, is awaited.
const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// The shortest time between two loads of a tool list, however often the server says that it changed.
const RELIST_PAUSE: Duration = Duration::from_millis(250);

/// A subscription stays open as long as the connection.
const NO_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// The task that owns the process.
pub(super) struct Owner {
    options: Arc<ServiceOptions>,
    inbox: mpsc::UnboundedReceiver<Command>,
    publish: watch::Sender<Phase>,
    recovery: Duration,
    /// What the last start taught about the server's era.
    probe: Probe,
}

/// A started process with its pipes wired up.
struct Running {
    child: Child,
    group: ProcessGroup,
    connection: Connection,
    /// Becomes true when stdout has ended.
    ended: watch::Receiver<bool>,
    stderr: StderrTail,
    /// What moves its bytes. Ends with it, also when a process that it left behind holds a pipe open.
    _streams: JoinSet<()>,
}

/// Why a process is no longer watched.
enum End {
    /// It is of no use any more; the text says why.
    Gone { why: String, how: How },
    /// It must be shut down; the sender, if any, wants to know when that is done.
    Stop(Option<oneshot::Sender<()>>),
}

/// How a process was lost.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// It ended with status 0.
    Ended,
    /// It ended otherwise, or closed its output.
    Crashed,
    /// It lives, but we have given it up.
    GivenUp,
}

impl Owner {
    /// The owner of a server that is not started yet.
    pub(super) fn new(
        options: Arc<ServiceOptions>,
        inbox: mpsc::UnboundedReceiver<Command>,
        publish: watch::Sender<Phase>,
    ) -> Owner {
        Owner { options, inbox, publish, recovery: SHORTEST_RECOVERY, probe: Probe::Discover }
    }

    /// Works until the server is stopped for good, or nobody holds the upstream any more.
    pub(super) async fn run(mut self) {
        loop {
            match self.inbox.recv().await {
                Some(Command::Start) if self.may_start() => {}
                Some(Command::Start) => continue,
                Some(Command::Stop(done)) => return self.finish(Some(done)),
                None => return self.finish(None),
            }
            if let Err(done) = self.live().await {
                return self.finish(done);
            }
        }
    }

    /// One life of the process, from its start to its end. An error means that it was shut down for good.
    async fn live(&mut self) -> Result<(), Option<oneshot::Sender<()>>> {
        self.publish.send_replace(Phase::Starting);
        loop {
            let mut running = match self.spawn() {
                Ok(running) => running,
                Err(why) => {
                    self.down(why, false);
                    return Ok(());
                }
            };
            match self.attend(&mut running).await {
                End::Stop(done) => {
                    running.shut_down().await;
                    return Err(done);
                }
                End::Gone { why, how } => {
                    let was_ready = matches!(*self.publish.borrow(), Phase::Ready(_));
                    let heard = running.connection.has_spoken();
                    if !was_ready && !heard && how != How::GivenUp && self.probe == Probe::Discover {
                        // Some servers of the handshake era end when anything comes before `initialize`.
                        tracing::debug!(upstream = %self.options.name, "ended at once; trying initialize first");
                        self.probe = Probe::Skip;
                        running.connection.close(&why);
                        running.end().await;
                        continue;
                    }
                    if running.connection.answered() {
                        self.recovery = SHORTEST_RECOVERY;
                    }
                    if !was_ready {
                        self.probe = Probe::Discover;
                    }
                    self.outdate_tools();
                    running.connection.close(&why);
                    if was_ready && how == How::Ended {
                        tracing::info!(upstream = %self.options.name, "ended: {why}");
                        self.publish.send_replace(Phase::Idle);
                    } else {
                        self.down(why, was_ready);
                    }
                    // Nobody waits for this: the next start does.
                    running.end().await;
                    return Ok(());
                }
            }
        }
    }

    fn may_start(&self) -> bool {
        match *self.publish.borrow() {
            Phase::Idle => true,
            Phase::Down { until, .. } => Instant::now() >= until,
            Phase::Starting | Phase::Ready(_) | Phase::Stopped => false,
        }
    }

    fn finish(&self, done: Option<oneshot::Sender<()>>) {
        self.publish.send_replace(Phase::Stopped);
        if let Some(done) = done {
            let _ = done.send(());
        }
    }

    /// Arms the recovery window.
    fn down(&mut self, why: String, crashed: bool) {
        let why = self.options.secrets.scrub(&why).into_owned();
        let state = if crashed { "crashed" } else { "could not start" };
        let retry_ms = self.recovery.as_millis();
        tracing::warn!(upstream = %self.options.name, retry_ms, "{state}: {why}");
        let until = Instant::now() + self.recovery;
        self.recovery = (self.recovery * 2).min(LONGEST_RECOVERY);
        self.publish.send_replace(Phase::Down { until, why: why.into(), crashed });
    }

    /// Publishes a list on a thread for blocking work: it may be long, and is compared with the one before.
    async fn publish_tools(&self, listed: Listed) -> usize {
        let options = self.options.clone();
        let publish = move || {
            let ServiceOptions { name, policy, catalog, mode, .. } = &*options;
            let list = ToolList::new(name, listed, policy);
            for note in list.notes() {
                tracing::warn!(upstream = %name, "{note}");
            }
            let count = list.len();
            catalog.publish(name, list, *mode);
            count
        };
        tokio::task::spawn_blocking(publish).await.unwrap_or_default()
    }

    /// The process that had the last list is gone; a frozen list holds for the one that comes next.
    fn outdate_tools(&self) {
        if self.options.mode == SnapshotMode::Live {
            self.options.catalog.outdate(&self.options.name);
        }
    }

    fn spawn(&self) -> Result<Running, String> {
        let options = &self.options;
        let spawn = |mark: &str| options.spec.spawn(mark);
        let (mut child, mark) = options.guardian.spawn(spawn, Child::id)?;
        let group = ProcessGroup::led_by(child.id(), mark, options.guardian.clone());
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("the process has no pipes".to_owned());
        };
        let connection = Connection::new(options.name.clone());
        let tail = StderrTail::default();
        let mut streams = JoinSet::new();
        streams.spawn(log_lines(options.name.clone(), stderr, options.secrets.clone(), tail.clone()));
        let writer = connection.clone();
        streams.spawn(async move { writer.write(StreamSink(stdin)).await });
        let (publish, ended) = watch::channel(false);
        let reader = connection.clone();
        streams.spawn(async move {
            reader.read(LineReader::new(stdout)).await;
            publish.send_replace(true);
        });
        Ok(Running { child, group, connection, ended, stderr: tail, _streams: streams })
    }

    /// Brings a process up and watches it to its end.
    async fn attend(&mut self, running: &mut Running) -> End {
        let hello = match self.start(running).await {
            Ok(hello) => hello,
            Err(End::Gone { why, how }) => {
                let stderr = running.stderr.text().map(|text| format!("; stderr: {text}"));
                return End::Gone { why: why + &stderr.unwrap_or_default(), how };
            }
            Err(end) => return end,
        };
        self.watch(running, &hello).await
    }

    /// From the spawned process to one that takes calls.
    async fn start(&mut self, running: &mut Running) -> Result<Hello, End> {
        let begun = Instant::now();
        let options = self.options.clone();
        let probe = self.probe;
        let connection = running.connection.clone();
        let patience = options.handshake_timeout;
        let opening = Opening {
            connection: &connection,
            secrets: &options.secrets,
            timeout: options.handshake_timeout,
        };
        let startup = timeout(patience, async {
            let hello = opening.greet(probe).await?;
            let tools = opening.list_tools(&hello.dialect).await?;
            Ok::<_, UpstreamFault>((hello, tools))
        });
        tokio::pin!(startup);
        let started = loop {
            tokio::select! {
                biased;
                started = &mut startup => break started,
                (why, how) = running.gone() => return Err(End::Gone { why, how }),
                command = self.inbox.recv() => match command {
                    Some(Command::Start) => {}
                    Some(Command::Stop(done)) => return Err(End::Stop(Some(done))),
                    None => return Err(End::Stop(None)),
                },
            }
        };
        let why = match started {
            Ok(Ok((hello, tools))) => {
                let started_in = begun.elapsed();
                let tools = self.publish_tools(tools).await;
                let version = hello.dialect.version();
                tracing::info!(upstream = %options.name, tools, protocol = version,
                    ms = started_in.as_millis(), "ready");
                let session = Session {
                    connection: connection.clone(),
                    dialect: hello.dialect.clone(),
                    started_in,
                    server_info: hello.server_info.clone(),
                };
                self.publish.send_replace(Phase::Ready(Arc::new(session)));
                return Ok(hello);
            }
            Err(_) | Ok(Err(UpstreamFault::Timeout(_))) => {
                format!("handshake timed out after {} ms", patience.as_millis())
            }
            Ok(Err(fault)) => format!("handshake failed: {fault}"),
        };
        Err(End::Gone { why, how: How::GivenUp })
    }

    /// Watches a ready server: its end, changes of its tools, whether it still answers.
    async fn watch(&mut self, running: &mut Running, hello: &Hello) -> End {
        let connection = running.connection.clone();
        let options = self.options.clone();
        let live = options.mode == SnapshotMode::Live;
        let mut listing: Option<BoxFuture<'_, Result<Listed, UpstreamFault>>> = None;
        let mut subscription: Option<BoxFuture<'_, ()>> =
            (live && hello.offers_changes).then(|| Box::pin(listen(&connection, &hello.dialect)) as _);
        let mut liveness: Option<BoxFuture<'_, bool>> = None;
        let mut next_listing = Instant::now();
        loop {
            let changed = async {
                sleep_until(next_listing).await;
                connection.tools_changed().await;
            };
            tokio::select! {
                (why, how) = running.gone() => return End::Gone { why, how },
                command = self.inbox.recv() => match command {
                    Some(Command::Start) => {}
                    Some(Command::Stop(done)) => return End::Stop(Some(done)),
                    None => return End::Stop(None),
                },
                () = changed, if live && listing.is_none() => {
                    let (connection, options, dialect) = (&connection, &options, &hello.dialect);
                    listing = Some(Box::pin(async move {
                        let (secrets, timeout) = (&options.secrets, options.handshake_timeout);
                        Opening { connection, secrets, timeout }.list_tools(dialect).await
                    }));
                }
                listed = finished(&mut listing) => {
                    match listed {
                        Ok(tools) => {
                            let tools = self.publish_tools(tools).await;
                            tracing::info!(upstream = %options.name, tools, "tools listed again");
                        }
                        Err(error) => tracing::warn!(upstream = %options.name, %error, "tools/list failed"),
                    }
                    next_listing = Instant::now() + RELIST_PAUSE;
                }
                () = finished(&mut subscription) => {
                    tracing::debug!(upstream = %options.name, "the subscription to list changes has ended");
                }
                () = connection.call_lost(), if liveness.is_none() => {
                    liveness =
                        Some(Box::pin(is_alive(&connection, &hello.dialect, options.unresponsive_timeout)));
                }
                alive = finished(&mut liveness) => if !alive {
                    let silent = options.unresponsive_timeout.as_millis();
                    let why = format!("stopped answering: no answer for {silent} ms after a call was given up");
                    return End::Gone { why, how: How::GivenUp };
                },
            }
        }
    }
}

/// Waits for the future in the slot and empties it; forever while it is empty. Cancel safe.
async fn finished<T>(slot: &mut Option<BoxFuture<'_, T>>) -> T {
    let result = match slot {
        Some(work) => work.await,
        None => std::future::pending().await,
    };
    *slot = None;
    result
}

/// Asks a server of the stateless era to tell about changes, for as long as it likes.
async fn listen(connection: &Connection, dialect: &Dialect) {
    let params = dialect.params("\"notifications\":{\"toolsListChanged\":true}");
    let request = Request {
        method: "subscriptions/listen",
        params: Params::Own(&params),
        cap: 1 << 20,
        timeout: NO_DEADLINE,
    };
    if let Err(fault) = connection.request(request).await {
        let fault = UpstreamFault::from(fault);
        tracing::debug!(upstream = connection.name(), %fault, "no subscription to list changes");
    }
}

/// True when the server answers a ping, or any other request of ours, within `patience`. What it sends unasked
/// says nothing: one of its threads may talk on while the one that works hangs.
async fn is_alive(connection: &Connection, dialect: &Dialect, patience: Duration) -> bool {
    let signs = connection.signs_of_life();
    let params = dialect.params("");
    let params = Params::Own(&params);
    let request = Request { method: dialect.liveness_method(), params, cap: 1 << 20, timeout: patience };
    match connection.request(request).await {
        // An error is an answer too.
        Ok(_) | Err(RequestFault::Rpc(_)) => true,
        Err(RequestFault::Upstream(_)) => connection.signs_of_life() > signs,
    }
}

impl Running {
    /// Waits until the process has ended or closed its output; says how. Cancel safe.
    async fn gone(&mut self) -> (String, How) {
        let Running { child, ended, .. } = self;
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
                Err(_) => ("subprocess closed its output".to_owned(), How::Crashed),
            },
        }
    }

    /// Closes stdin, waits, terminates, waits, kills.
    async fn shut_down(&mut self) {
        let mut group = self.group.take();
        let noted = tokio::task::spawn_blocking(move || {
            group.note_kin();
            group
        });
        if let Ok(group) = noted.await {
            self.group = group;
        }
        self.connection.close("upstream is shutting down");
        if timeout(STOP_GRACE, self.child.wait()).await.is_err() {
            self.group.signal(Signal::Terminate);
            if timeout(STOP_GRACE, self.child.wait()).await.is_err() {
                self.group.signal(Signal::Kill);
                let _ = self.child.wait().await;
            }
        }
        self.end().await;
    }

    /// Ends whatever is left of the process and of what it has started. Blocks no thread of the I/O runtime.
    async fn end(&mut self) {
        let group = self.group.take();
        let _ = tokio::task::spawn_blocking(move || drop(group)).await;
    }
}

async fn has_ended(ended: &mut watch::Receiver<bool>) {
    // An error means that the reader task is gone, which is the same.
    let _ = ended.wait_for(|ended| *ended).await;
}

fn describe(status: std::io::Result<ExitStatus>) -> (String, How) {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(0), _) => ("subprocess exited (status=0)".to_owned(), How::Ended),
            (Some(code), _) => (format!("subprocess exited (status={code})"), How::Crashed),
            (None, Some(signal)) => (format!("subprocess exited (signal={signal})"), How::Crashed),
            (None, None) => ("subprocess exited".to_owned(), How::Crashed),
        },
        Err(error) => (format!("subprocess exited ({error})"), How::Crashed),
    }
}
