//! Manages the life of one upstream server: starts it when a call needs it, limits concurrent calls, watches it, and
//! restarts it after a crash. Callers read what the owner task publishes: the [`Phase`].
//!
//! - [`owner`]: the task that starts the server, watches it and restarts it, over any transport.
//! - [`calls`]: tracks calls, so that the owner notices an unresponsive server.

mod calls;
mod owner;

use super::transport::{Connection, ServerEvents, Transport};
use super::{
    CallLimits, CallResult, ClientFeatures, Guardian, LoginNeed, ServerRequest, StartUnderWay, Upstream,
    UpstreamFault, UpstreamState, UpstreamStatus,
};
use calls::CallTracker;
use owner::Owner;
use ptc_base::oauth::LoginOptions;
use ptc_base::secrets::SecretRegistry;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::policy::{Pins, ToolPolicy};
use ptc_calls::state::ListMemory;
use ptc_calls::tools::{ServerText, SharedCatalog, SnapshotMode, ToolList};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// How to run one server.
#[derive(Clone)]
pub struct SupervisorOptions {
    /// Configured name.
    pub name: Arc<str>,
    /// Configured description.
    pub description: Option<String>,
    /// How to reach it.
    pub transport: Arc<dyn Transport>,
    /// Time limit of one start, including handshake and listing, from the moment that it may begin.
    pub handshake_timeout: Duration,
    /// Limits concurrent starts.
    pub start_permits: StartPermits,
    /// What to do about a failed start.
    pub failed_start: FailedStart,
    /// How long it may send no answer after a call to it was given up, before it counts as crashed.
    pub unresponsive_timeout: Duration,
    /// How long its tool list is valid.
    pub mode: SnapshotMode,
    /// The age at which a live list is fetched again without a notification.
    pub list_ttl: Option<Duration>,
    /// Which of its tools may be called.
    pub policy: ToolPolicy,
    /// What its tools were when they were reviewed; `None`: that is not compared.
    pub pins: Option<Arc<Pins>>,
    /// Limits on calls.
    pub limits: CallLimits,
    /// The catalog in which its tool list is published.
    pub catalog: SharedCatalog,
    /// Remembers its tool list for the next run of the program.
    pub memory: Option<ListMemory>,
    /// Ends its processes, if it has any, when this process is killed.
    pub guardian: Arc<Guardian>,
    /// The secrets that texts are redacted of.
    pub secrets: SecretRegistry,
    /// The features of the client that the server may use.
    pub client: ClientFeatures,
    /// Where logins are stored, and what else holds for all of them.
    pub logins: LoginOptions,
}

/// Limits how many servers may be starting at once. A start is mostly work, so more starts than cores only
/// delay each other. Clones share the limit.
#[derive(Clone, Debug)]
pub struct StartPermits(Arc<Semaphore>);

impl StartPermits {
    /// Allows this many starts at once, at least one.
    pub fn new(places: usize) -> StartPermits {
        StartPermits(Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Waits for a permit, first come first served.
    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.0.clone().acquire_owned().await.ok()
    }
}

impl Default for StartPermits {
    /// Two more than there are cores, because starts also wait.
    fn default() -> StartPermits {
        StartPermits::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get) + 2)
    }
}

/// What to do about a failed start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailedStart {
    /// The caller that requested the start reports it.
    Reported,
    /// The log reports it, and the next call tries again.
    #[default]
    NextCall,
    /// The log reports it, and it is retried after this pause, which doubles with every failure.
    TriedAgain(Duration),
}

/// A supervised server: it is started when it is called, and restarted when it was lost.
pub struct SupervisedUpstream {
    about: Arc<SupervisorOptions>,
    /// One permit per call in flight.
    permits: Option<Semaphore>,
    commands: mpsc::UnboundedSender<Command>,
    phase: watch::Receiver<Phase>,
}

/// A command to the owner.
enum Command {
    Start,
    Stop(oneshot::Sender<()>),
}

/// The phase that the owner publishes.
#[derive(Clone)]
enum Phase {
    Idle,
    Starting { since: Instant, usual: Option<Duration> },
    Ready(Arc<ReadyServer>),
    Down { until: Instant, why: ServerText, crashed: bool },
    LoginRequired(LoginNeed),
    Stopped,
}

/// A server that takes calls.
struct ReadyServer {
    /// Belongs to the owner: dropping that ends whatever belongs to the connection.
    connection: Weak<dyn Connection>,
    calls: Arc<CallTracker>,
    events: Arc<ServerEvents>,
    server_info: String,
    version: String,
    started_in: Duration,
}

impl SupervisedUpstream {
    /// Creates the upstream and its owner task on the current tokio runtime; nothing is started yet.
    pub fn new(options: SupervisorOptions) -> SupervisedUpstream {
        let most = options.limits.max_concurrent;
        let permits = most.map(|most| Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let about = Arc::new(options);
        let (commands, inbox) = mpsc::unbounded_channel();
        let (publish, phase) = watch::channel(Phase::Idle);
        tasks::spawn(TaskOwner::Connection, Owner::new(about.clone(), inbox, publish).run());
        SupervisedUpstream { about, permits, commands, phase }
    }

    /// The running server, started if allowed.
    async fn ready(&self) -> Result<Arc<ReadyServer>, UpstreamFault> {
        let mut phase = self.phase.clone();
        let mut asked = false;
        loop {
            let now = Instant::now();
            let mut need = None;
            let may_ask = match &*phase.borrow_and_update() {
                Phase::Ready(server) => return Ok(server.clone()),
                Phase::Stopped => return Err(UpstreamFault::Unavailable("upstream is stopped".into())),
                // The requested start has failed, however long ago; it is not repeated for this call.
                Phase::Idle if asked => return Err(UpstreamFault::Unavailable("upstream has ended".into())),
                Phase::Down { until, why, .. } if asked || now < *until => {
                    let text = if asked { why.to_string() } else { format!("in recovery ({why})") };
                    return Err(UpstreamFault::Unavailable(text));
                }
                Phase::LoginRequired(asked_for) if asked => {
                    return Err(UpstreamFault::LoginRequired(asked_for.clone()));
                }
                Phase::LoginRequired(asked_for) => {
                    need = Some(asked_for.clone());
                    true
                }
                Phase::Starting { .. } => false,
                Phase::Idle | Phase::Down { .. } => true,
            };
            if let Some(need) = need
                && !need.login().has_changed().await
            {
                return Err(UpstreamFault::LoginRequired(need));
            }
            if may_ask && !asked {
                asked = true;
                let _ = self.commands.send(Command::Start);
            }
            if phase.changed().await.is_err() {
                return Err(UpstreamFault::Unavailable("upstream is stopped".into()));
            }
        }
    }

    /// Waits for a permit and for the server.
    async fn prepare(&self) -> Result<(Option<SemaphorePermit<'_>>, Arc<ReadyServer>), UpstreamFault> {
        let permit = match &self.permits {
            // The semaphore is never closed.
            Some(permits) => permits.acquire().await.ok(),
            None => None,
        };
        Ok((permit, self.ready().await?))
    }
}

#[async_trait::async_trait]
impl Upstream for SupervisedUpstream {
    fn name(&self) -> &Arc<str> {
        &self.about.name
    }

    fn description(&self) -> Option<&str> {
        self.about.description.as_deref()
    }

    fn status(&self) -> UpstreamStatus {
        let mut status = UpstreamStatus {
            state: UpstreamState::Idle,
            error: None,
            start_duration: None,
            starting: None,
            server_info: None,
            protocol: None,
        };
        match &*self.phase.borrow() {
            Phase::Idle => {}
            Phase::Starting { since, usual } => {
                status.state = UpstreamState::Starting;
                status.starting = Some(StartUnderWay { elapsed: since.elapsed(), usual: *usual });
            }
            Phase::Ready(server) => {
                status.state = UpstreamState::Ready;
                status.start_duration = Some(server.started_in);
                status.server_info = Some(server.server_info.clone());
                status.protocol = Some(server.version.clone());
            }
            Phase::Down { why, crashed, .. } => {
                status.state = if *crashed { UpstreamState::BackingOff } else { UpstreamState::Failed };
                status.error = Some(why.clone());
            }
            Phase::LoginRequired(need) => {
                status.state = UpstreamState::LoginRequired;
                status.error = Some(ServerText::new(&need.to_string()));
            }
            Phase::Stopped => status.state = UpstreamState::Stopped,
        }
        status
    }

    fn is_ready(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Ready(_))
    }

    fn limits(&self) -> &CallLimits {
        &self.about.limits
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        self.about.catalog.snapshot().server(&self.about.name)?.tools.clone()
    }

    async fn start(&self) -> Result<(), UpstreamFault> {
        self.ready().await.map(|_| ())
    }

    async fn call(&self, request: ServerRequest) -> Result<CallResult, UpstreamFault> {
        let (deadline, late) = (request.deadline, UpstreamFault::Timeout(request.timeout));
        let Ok(prepared) = timeout_at(deadline, self.prepare()).await else { return Err(late) };
        let (_permit, server) = prepared?;
        if let Some(recheck) = &request.recheck {
            recheck.check(&request)?;
        }
        let Some(connection) = server.connection.upgrade() else {
            return Err(UpstreamFault::Unavailable("upstream has gone".to_owned()));
        };
        let _under_way = server.events.under_way(request.client.clone());
        let answered = timeout_at(deadline, connection.call(request));
        server.calls.follow(async { answered.await.unwrap_or(Err(late)) }).await
    }

    async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.commands.send(Command::Stop(done)).is_ok() {
            let _ = stopped.await;
        }
    }
}
