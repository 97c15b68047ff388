//! A stdio upstream as its callers see it. They share what its owner task publishes: the [`Phase`].

use super::connection::{Connection, Params, Request};
use super::dialect::Dialect;
use super::owner::Owner;
use super::process::StdioSpec;
use super::{
    CallLimits, CallRequest, CallResult, Guardian, ResultSink, Upstream, UpstreamFault, UpstreamState,
    UpstreamStatus,
};
use crate::secrets::SecretRegistry;
use crate::tools::{SharedCatalog, SnapshotMode, ToolList, ToolPolicy};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

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
    /// How long it may leave us without any answer, once a call to it was given up, before it counts as crashed.
    pub unresponsive_timeout: Duration,
    /// How long its tool list is good for.
    pub mode: SnapshotMode,
    /// Which of its tools may be called.
    pub policy: ToolPolicy,
    /// Limits on calls.
    pub limits: CallLimits,
    /// Where its tool list is published.
    pub catalog: SharedCatalog,
    /// Ends its processes if this process is killed.
    pub guardian: Arc<Guardian>,
    /// Where secrets are known.
    pub secrets: SecretRegistry,
}

/// An MCP server behind stdin and stdout of a child process.
pub struct StdioUpstream {
    options: Arc<ServiceOptions>,
    /// One permit a call that may be in flight.
    turns: Option<Semaphore>,
    commands: mpsc::UnboundedSender<Command>,
    phase: watch::Receiver<Phase>,
}

/// What the owner is asked to do.
pub(super) enum Command {
    Start,
    Stop(oneshot::Sender<()>),
}

/// What the owner publishes.
#[derive(Clone)]
pub(super) enum Phase {
    Idle,
    Starting,
    Ready(Arc<Session>),
    Down { until: Instant, why: Arc<str>, crashed: bool },
    Stopped,
}

/// A server that takes calls.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) dialect: Dialect,
    pub(super) started_in: Duration,
    pub(super) server_info: String,
}

impl StdioUpstream {
    /// Creates the upstream and its owner task on the current tokio runtime; nothing is started yet.
    pub fn new(options: ServiceOptions) -> StdioUpstream {
        let turns =
            options.limits.max_concurrent.map(|most| Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let options = Arc::new(options);
        let (commands, inbox) = mpsc::unbounded_channel();
        let (publish, phase) = watch::channel(Phase::Idle);
        tokio::spawn(Owner::new(options.clone(), inbox, publish).run());
        StdioUpstream { options, turns, commands, phase }
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

    /// Waits for a turn and for the server.
    async fn prepare(
        &self,
    ) -> Result<(Option<tokio::sync::SemaphorePermit<'_>>, Arc<Session>), UpstreamFault> {
        let turn = match &self.turns {
            // The semaphore is never closed.
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        Ok((turn, self.session().await?))
    }
}

#[async_trait::async_trait]
impl Upstream for StdioUpstream {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn description(&self) -> Option<&str> {
        self.options.description.as_deref()
    }

    fn status(&self) -> UpstreamStatus {
        let mut status = UpstreamStatus {
            state: UpstreamState::Idle,
            error: None,
            start_duration: None,
            server_info: None,
            protocol: None,
        };
        match &*self.phase.borrow() {
            Phase::Idle => {}
            Phase::Starting => status.state = UpstreamState::Starting,
            Phase::Ready(session) => {
                status.state = UpstreamState::Ready;
                status.start_duration = Some(session.started_in);
                status.server_info = Some(session.server_info.clone());
                status.protocol = Some(session.dialect.version().to_owned());
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
        &self.options.limits
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        self.options.catalog.snapshot().server(&self.options.name)?.tools.clone()
    }

    async fn start(&self) -> Result<(), UpstreamFault> {
        self.session().await.map(|_| ())
    }

    async fn call(&self, request: CallRequest) -> Result<CallResult, UpstreamFault> {
        let begun = Instant::now();
        let (_turn, session) = match timeout(request.timeout, self.prepare()).await {
            Ok(prepared) => prepared?,
            Err(_) => return Err(UpstreamFault::Timeout(request.timeout)),
        };
        let (head, tail) = session.dialect.call(&request.tool);
        let params = Params::Call { head, arguments: request.arguments, tail };
        let ResultSink::Inline { max_bytes: cap } = request.sink;
        let left = request.timeout.saturating_sub(begun.elapsed());
        let rpc = Request { method: "tools/call", params, cap, timeout: left };
        match session.connection.request(rpc).await.map_err(UpstreamFault::from) {
            Ok(answer) => Ok(CallResult::Inline(answer)),
            // The whole time, of which the request had the rest.
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
