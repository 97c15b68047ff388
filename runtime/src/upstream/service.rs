//! The life of one stdio upstream: one owner task starts it, watches it, backs off after a crash and
//! shuts it down. Everybody else sees only the published [`Phase`].

use super::connection::{Connection, Request, StreamSink};
use super::group::{ProcessGroup, Signal};
use super::line::LineReader;
use super::process::StdioSpec;
use super::stderr::{StderrTail, log_lines};
use super::tool::{Tool, ToolList};
use super::{
    CallLimits, CallRequest, CallResult, ResultSink, SharedCatalog, SnapshotMode, ToolPolicy, Upstream,
    UpstreamFault, UpstreamState, UpstreamStatus, handshake,
};
use crate::secrets::SecretRegistry;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

/// The first recovery window; each crash without an answered call in between doubles it.
const SHORTEST_RECOVERY: Duration = Duration::from_millis(100);

/// The longest recovery window.
const LONGEST_RECOVERY: Duration = Duration::from_secs(30);

/// How long a server may take to end after its stdin was closed, and again after SIGTERM.
const STOP_GRACE: Duration = Duration::from_millis(1500);

/// How long the last output of an ended server, or the end of one that closed its output, is awaited.
const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// How to run one stdio upstream.
pub struct ServiceOptions {
    /// Configured name.
    pub name: Arc<str>,
    /// Configured description.
    pub description: Option<String>,
    /// How to start the process.
    pub spec: StdioSpec,
    /// Wall clock of one start, handshake and listing included.
    pub handshake_timeout: Duration,
    /// How long its tool list is good for.
    pub mode: SnapshotMode,
    /// Which of its tools may be called.
    pub policy: ToolPolicy,
    /// Limits on calls.
    pub limits: CallLimits,
    /// Where its tool list is published.
    pub catalog: SharedCatalog,
    /// Where secrets are known.
    pub secrets: SecretRegistry,
}

/// An MCP server behind stdin and stdout of a child process.
pub struct StdioUpstream {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
    phase: watch::Receiver<Phase>,
}

struct Shared {
    options: ServiceOptions,
    /// One permit a call that may be in flight.
    turns: Option<Semaphore>,
}

enum Command {
    Start,
    Stop(oneshot::Sender<()>),
}

#[derive(Clone)]
enum Phase {
    Idle,
    Starting,
    Ready(Arc<Session>),
    Down { until: Instant, why: Arc<str>, crashed: bool },
    Stopped,
}

struct Session {
    connection: Connection,
    started_in: Duration,
    server_info: String,
}

impl StdioUpstream {
    /// Creates the upstream and its owner task on the current tokio runtime; nothing is started yet.
    pub fn new(options: ServiceOptions) -> StdioUpstream {
        let turns =
            options.limits.max_concurrent.map(|most| Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let shared = Arc::new(Shared { options, turns });
        let (commands, inbox) = mpsc::unbounded_channel();
        let (publish, phase) = watch::channel(Phase::Idle);
        tokio::spawn(Owner { shared: shared.clone(), inbox, publish, recovery: SHORTEST_RECOVERY }.run());
        StdioUpstream { shared, commands, phase }
    }

    /// The running session, started if it may be.
    async fn session(&self) -> Result<Arc<Session>, UpstreamFault> {
        let mut phase = self.phase.clone();
        let mut asked = false;
        loop {
            let now = Instant::now();
            let may_ask = match &*phase.borrow_and_update() {
                Phase::Ready(session) => return Ok(session.clone()),
                Phase::Stopped => return Err(UpstreamFault::Unavailable("upstream is stopped".into())),
                Phase::Down { until, why, .. } if now < *until => {
                    let text = if asked { why.to_string() } else { format!("in recovery ({why})") };
                    return Err(UpstreamFault::Unavailable(text));
                }
                Phase::Starting => false,
                Phase::Idle | Phase::Down { .. } => true,
            };
            if may_ask && !asked {
                asked = true;
                let _ = self.commands.send(Command::Start);
            }
            if phase.changed().await.is_err() {
                return Err(UpstreamFault::Unavailable("upstream is stopped".into()));
            }
        }
    }
}

#[async_trait::async_trait]
impl Upstream for StdioUpstream {
    fn name(&self) -> &str {
        &self.shared.options.name
    }

    fn description(&self) -> Option<&str> {
        self.shared.options.description.as_deref()
    }

    fn status(&self) -> UpstreamStatus {
        let mut status = UpstreamStatus {
            state: UpstreamState::Idle,
            error: None,
            start_duration: None,
            server_info: None,
        };
        match &*self.phase.borrow() {
            Phase::Idle => {}
            Phase::Starting => status.state = UpstreamState::Starting,
            Phase::Ready(session) => {
                status.state = UpstreamState::Ready;
                status.start_duration = Some(session.started_in);
                status.server_info = Some(session.server_info.clone());
            }
            Phase::Down { why, crashed, .. } => {
                status.state = if *crashed { UpstreamState::BackingOff } else { UpstreamState::Failed };
                status.error = Some(why.to_string());
            }
            Phase::Stopped => status.state = UpstreamState::Stopped,
        }
        status
    }

    fn limits(&self) -> &CallLimits {
        &self.shared.options.limits
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        let options = &self.shared.options;
        options.catalog.snapshot().server(&options.name)?.tools.clone()
    }

    async fn start(&self) -> Result<(), UpstreamFault> {
        self.session().await.map(|_| ())
    }

    async fn call(&self, request: CallRequest) -> Result<CallResult, UpstreamFault> {
        let begun = Instant::now();
        let prepare = async {
            let turn = match &self.shared.turns {
                // The semaphore is never closed.
                Some(turns) => turns.acquire().await.ok(),
                None => None,
            };
            Ok::<_, UpstreamFault>((turn, self.session().await?))
        };
        let (_turn, session) = match timeout(request.timeout, prepare).await {
            Ok(prepared) => prepared?,
            Err(_) => return Err(UpstreamFault::Timeout(request.timeout)),
        };
        let name = serde_json::Value::from(&*request.tool);
        let params = format!("{{\"name\":{name},\"arguments\":{}}}", request.arguments);
        let ResultSink::Inline { max_bytes: cap } = request.sink;
        let left = request.timeout.saturating_sub(begun.elapsed());
        let rpc = Request { method: "tools/call", params: &params, cap, timeout: left };
        match session.connection.request(rpc).await {
            Ok(answer) => Ok(CallResult::Inline(answer)),
            Err(UpstreamFault::Timeout(_)) => Err(UpstreamFault::Timeout(request.timeout)),
            Err(fault) => Err(fault),
        }
    }

    async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.commands.send(Command::Stop(done)).is_ok() {
            let _ = stopped.await;
        }
    }
}

impl Shared {
    fn publish_tools(&self, tools: Vec<Tool>) {
        let ServiceOptions { name, policy, catalog, mode, .. } = &self.options;
        catalog.publish(name, ToolList::new(name, tools, policy), *mode);
    }

    /// The process that had the last list is gone; a frozen list holds for the one that comes next.
    fn outdate_tools(&self) {
        let ServiceOptions { name, catalog, mode, .. } = &self.options;
        if *mode == SnapshotMode::Live {
            catalog.outdate(name);
        }
    }
}

/// The task that owns the process.
struct Owner {
    shared: Arc<Shared>,
    inbox: mpsc::UnboundedReceiver<Command>,
    publish: watch::Sender<Phase>,
    recovery: Duration,
}

/// A started process with its pipes wired up.
struct Running {
    child: Child,
    group: ProcessGroup,
    connection: Connection,
    /// Becomes true when stdout has ended.
    ended: watch::Receiver<bool>,
    stderr: StderrTail,
}

/// Why a process is no longer watched.
enum End {
    /// It went away; the text says how.
    Gone { why: String, clean: bool },
    /// It must be shut down; the sender, if any, wants to know when that is done.
    Stop(Option<oneshot::Sender<()>>),
}

impl Owner {
    async fn run(mut self) {
        loop {
            match self.inbox.recv().await {
                Some(Command::Start) if self.may_start() => {}
                Some(Command::Start) => continue,
                Some(Command::Stop(done)) => return self.finish(Some(done)),
                None => return self.finish(None),
            }
            self.publish.send_replace(Phase::Starting);
            let mut running = match self.spawn() {
                Ok(running) => running,
                Err(why) => {
                    self.down(why, false);
                    continue;
                }
            };
            match self.attend(&mut running).await {
                End::Gone { why, clean } => {
                    self.shared.outdate_tools();
                    running.connection.close(&why);
                    let answered = running.connection.answered();
                    drop(running);
                    if answered {
                        self.recovery = SHORTEST_RECOVERY;
                    }
                    let was_ready = matches!(*self.publish.borrow(), Phase::Ready(_));
                    if clean && was_ready {
                        tracing::info!(upstream = %self.shared.options.name, "ended: {why}");
                        self.publish.send_replace(Phase::Idle);
                    } else {
                        self.down(why, was_ready);
                    }
                }
                End::Stop(done) => {
                    running.shut_down().await;
                    return self.finish(done);
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
        let why = self.shared.options.secrets.scrub(&why).into_owned();
        tracing::warn!(upstream = %self.shared.options.name, "unavailable: {why}");
        let until = Instant::now() + self.recovery;
        self.recovery = (self.recovery * 2).min(LONGEST_RECOVERY);
        self.publish.send_replace(Phase::Down { until, why: why.into(), crashed });
    }

    fn spawn(&self) -> Result<Running, String> {
        let options = &self.shared.options;
        let mut child = options.spec.spawn()?;
        let group = ProcessGroup::led_by(child.id());
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("the process has no pipes".to_owned());
        };
        let connection = Connection::open(options.name.clone(), StreamSink(stdin));
        let tail = StderrTail::default();
        tokio::spawn(log_lines(options.name.clone(), stderr, options.secrets.clone(), tail.clone()));
        let (publish, ended) = watch::channel(false);
        let reader = connection.clone();
        tokio::spawn(async move {
            reader.read(LineReader::new(stdout)).await;
            publish.send_replace(true);
        });
        Ok(Running { child, group, connection, ended, stderr: tail })
    }

    /// Brings a process up and watches it to its end.
    async fn attend(&mut self, running: &mut Running) -> End {
        let begun = Instant::now();
        let options = &self.shared.options;
        let connection = running.connection.clone();
        let startup = async {
            let info =
                handshake::initialize(&connection, &options.secrets, options.handshake_timeout).await?;
            let left = options.handshake_timeout.saturating_sub(begun.elapsed());
            let tools = handshake::list_tools(&connection, &options.secrets, left).await?;
            Ok::<_, UpstreamFault>((info, tools))
        };
        tokio::pin!(startup);
        let started = loop {
            tokio::select! {
                biased;
                started = &mut startup => break started,
                (why, _) = running.gone() => {
                    let stderr = running.stderr.text().map(|text| format!("; stderr: {text}"));
                    return End::Gone { why: why + &stderr.unwrap_or_default(), clean: false };
                }
                command = self.inbox.recv() => match command {
                    Some(Command::Start) => {}
                    Some(Command::Stop(done)) => return End::Stop(Some(done)),
                    None => return End::Stop(None),
                },
            }
        };
        match started {
            Ok((server_info, tools)) => {
                self.shared.publish_tools(tools);
                let session =
                    Session { connection: connection.clone(), started_in: begun.elapsed(), server_info };
                self.publish.send_replace(Phase::Ready(Arc::new(session)));
            }
            Err(fault) => {
                let why = match fault {
                    UpstreamFault::Timeout(_) => {
                        format!("handshake timed out after {} ms", options.handshake_timeout.as_millis())
                    }
                    fault => format!("handshake failed: {fault}"),
                };
                let stderr = running.stderr.text().map(|text| format!("; stderr: {text}"));
                return End::Gone { why: why + &stderr.unwrap_or_default(), clean: false };
            }
        }
        loop {
            tokio::select! {
                (why, clean) = running.gone() => return End::Gone { why, clean },
                () = connection.tools_changed(), if self.shared.options.mode == SnapshotMode::Live => self.relist(&connection),
                command = self.inbox.recv() => match command {
                    Some(Command::Start) => {}
                    Some(Command::Stop(done)) => return End::Stop(Some(done)),
                    None => return End::Stop(None),
                },
            }
        }
    }

    /// Loads the tool list again, in the background.
    fn relist(&self, connection: &Connection) {
        let shared = self.shared.clone();
        let connection = connection.clone();
        tokio::spawn(async move {
            let options = &shared.options;
            match handshake::list_tools(&connection, &options.secrets, options.handshake_timeout).await {
                Ok(tools) => shared.publish_tools(tools),
                Err(error) => tracing::warn!(upstream = %options.name, %error, "tools/list failed"),
            }
        });
    }
}

impl Running {
    /// Waits until the process has ended or closed its output; says how, and whether that was in order.
    /// Cancel safe.
    async fn gone(&mut self) -> (String, bool) {
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
                Err(_) => ("subprocess closed its output".to_owned(), false),
            },
        }
    }

    /// Closes stdin, waits, terminates, waits, kills.
    async fn shut_down(&mut self) {
        self.connection.close("upstream is shutting down");
        if timeout(STOP_GRACE, self.child.wait()).await.is_err() {
            self.group.signal(Signal::Terminate);
            if timeout(STOP_GRACE, self.child.wait()).await.is_err() {
                self.group.signal(Signal::Kill);
                let _ = self.child.wait().await;
            }
        }
        self.group.sweep();
    }
}

async fn has_ended(ended: &mut watch::Receiver<bool>) {
    // An error means that the reader task is gone, which is the same.
    let _ = ended.wait_for(|ended| *ended).await;
}

fn describe(status: std::io::Result<ExitStatus>) -> (String, bool) {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => (format!("subprocess exited (status={code})"), code == 0),
            (None, Some(signal)) => (format!("subprocess exited (signal={signal})"), false),
            (None, None) => ("subprocess exited".to_owned(), false),
        },
        Err(error) => (format!("subprocess exited ({error})"), false),
    }
}
