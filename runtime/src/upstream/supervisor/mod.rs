//! A supervised server as its callers see it. They share what its owner task publishes: the [`Phase`].
//!
//! - [`owner`]: the task that starts the server, watches it and starts it again, over any transport.
//! - [`calls`]: what it learns from those who call.

mod calls;
mod owner;

use super::session::ServerSession;
use super::transport::PeerEvents;
use super::{
    CallLimits, CallRequest, CallResult, ClientFeatures, Guardian, TransportSpec, Upstream, UpstreamFault,
    UpstreamState, UpstreamStatus,
};
use crate::secrets::SecretRegistry;
use crate::tasks::{self, TaskOwner};
use crate::tools::{SharedCatalog, SnapshotMode, ToolList, ToolPolicy};
use calls::CallTracker;
use owner::Owner;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

/// How to run one server.
pub struct SupervisorOptions {
    /// Configured name.
    pub name: Arc<str>,
    /// Configured description.
    pub description: Option<String>,
    /// How it is reached.
    pub transport: TransportSpec,
    /// Wall clock of one start, handshake and listing included, from the moment that it has a place.
    pub handshake_timeout: Duration,
    /// Where it gets a place for a start.
    pub places: StartPlaces,
    /// Who cares for a start that failed.
    pub failed_start: FailedStart,
    /// How long it may leave us without any answer, once a call to it was given up, before it counts as crashed.
    pub unresponsive_timeout: Duration,
    /// How long its tool list is good for.
    pub mode: SnapshotMode,
    /// The age at which a live list is asked for again, though the server says nothing of a change.
    pub list_ttl: Option<Duration>,
    /// Which of its tools may be called.
    pub policy: ToolPolicy,
    /// Limits on calls.
    pub limits: CallLimits,
    /// Where its tool list is published.
    pub catalog: SharedCatalog,
    /// Ends its processes, if it has any, should this process be killed.
    pub guardian: Arc<Guardian>,
    /// Where secrets are known.
    pub secrets: SecretRegistry,
    /// Whom the server may ask through us.
    pub client: ClientFeatures,
}

/// How many servers may be starting at one moment: a start is mostly work, so more of them at once than there are
/// cores only make each of them late. Clones share the places.
#[derive(Clone, Debug)]
pub struct StartPlaces(Arc<Semaphore>);

impl StartPlaces {
    /// This many places, at least one.
    pub fn new(places: usize) -> StartPlaces {
        StartPlaces(Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Waits for a place, first come first served; it is free again when the value is dropped.
    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.0.clone().acquire_owned().await.ok()
    }
}

impl Default for StartPlaces {
    /// Two more than there are cores, because starts wait as well.
    fn default() -> StartPlaces {
        StartPlaces::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get) + 2)
    }
}

/// Who cares for a start that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailedStart {
    /// Whoever asked for it, and reports it.
    Reported,
    /// The log tells of it, and the next call tries again.
    #[default]
    NextCall,
    /// The log tells of it, and it is tried again after this pause, which doubles with every failure.
    TriedAgain(Duration),
}

/// A server whose life is supervised: started when it is called, and again when it was lost.
pub struct SupervisedUpstream {
    about: Arc<SupervisorOptions>,
    /// One permit a call that may be in flight.
    turns: Option<Semaphore>,
    commands: mpsc::UnboundedSender<Command>,
    phase: watch::Receiver<Phase>,
}

/// What the owner is asked to do.
enum Command {
    Start,
    Stop(oneshot::Sender<()>),
}

/// What the owner publishes.
#[derive(Clone)]
enum Phase {
    Idle,
    Starting,
    Ready(Arc<ReadyServer>),
    Down { until: Instant, why: Arc<str>, crashed: bool },
    Stopped,
}

/// A server that takes calls.
struct ReadyServer {
    session: ServerSession,
    calls: Arc<CallTracker>,
    events: Arc<PeerEvents>,
    started_in: Duration,
}

impl SupervisedUpstream {
    /// Creates the upstream and its owner task on the current tokio runtime; nothing is started yet.
    pub fn new(options: SupervisorOptions) -> SupervisedUpstream {
        let most = options.limits.max_concurrent;
        let turns = most.map(|most| Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let transport = options.transport.clone();
        let transport = transport.transport(&options.name, &options.guardian, &options.secrets);
        let about = Arc::new(options);
        let (commands, inbox) = mpsc::unbounded_channel();
        let (publish, phase) = watch::channel(Phase::Idle);
        tasks::spawn(TaskOwner::Connection, Owner::new(about.clone(), transport, inbox, publish).run());
        SupervisedUpstream { about, turns, commands, phase }
    }

    /// The running server, started if it may be.
    async fn ready(&self) -> Result<Arc<ReadyServer>, UpstreamFault> {
        let mut phase = self.phase.clone();
        let mut asked = false;
        loop {
            let now = Instant::now();
            let may_ask = match &*phase.borrow_and_update() {
                Phase::Ready(server) => return Ok(server.clone()),
                Phase::Stopped => return Err(UpstreamFault::Unavailable("upstream is stopped".into())),
                // What has been asked for has failed, however long ago: nobody starts it again for this one.
                Phase::Idle if asked => return Err(UpstreamFault::Unavailable("upstream has ended".into())),
                Phase::Down { until, why, .. } if asked || now < *until => {
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
    ) -> Result<(Option<tokio::sync::SemaphorePermit<'_>>, Arc<ReadyServer>), UpstreamFault> {
        let turn = match &self.turns {
            // The semaphore is never closed.
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        Ok((turn, self.ready().await?))
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
            server_info: None,
            protocol: None,
        };
        match &*self.phase.borrow() {
            Phase::Idle => {}
            Phase::Starting => status.state = UpstreamState::Starting,
            Phase::Ready(server) => {
                status.state = UpstreamState::Ready;
                status.start_duration = Some(server.started_in);
                status.server_info = Some(server.session.server_info().to_owned());
                status.protocol = Some(server.session.version().to_owned());
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
        &self.about.limits
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        self.about.catalog.snapshot().server(&self.about.name)?.tools.clone()
    }

    async fn start(&self) -> Result<(), UpstreamFault> {
        self.ready().await.map(|_| ())
    }

    async fn call(&self, mut request: CallRequest) -> Result<CallResult, UpstreamFault> {
        let begun = Instant::now();
        let (_turn, server) = match timeout(request.timeout, self.prepare()).await {
            Ok(prepared) => prepared?,
            Err(_) => return Err(UpstreamFault::Timeout(request.timeout)),
        };
        let _under_way = server.events.under_way(request.client.take());
        server.calls.follow(server.session.call(request, begun)).await
    }

    async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.commands.send(Command::Stop(done)).is_ok() {
            let _ = stopped.await;
        }
    }
}
