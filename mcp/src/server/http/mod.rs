//! Many clients over Streamable HTTP: the same handler and gate as over standard input.
//!
//! # Layout
//!
//! From the socket inwards:
//!
//! - `socket`: connections, plain or over TLS.
//! - `turns`: what busy parties leave to others. `front`: paths, and who gets in: Host and Origin ([`guard`]), tokens ([`access`]).
//! - `revision`: what each revision of the protocol wants in headers, and which era a request is of. `body`: its body.
//! - `handlers`: who answers whom, by the servers that they may use.
//! - `endpoint`: POST, GET and DELETE of the one path that speaks MCP. `posted`: a request that is answered later.
//!   `clients`: sessions of the handshake era.
//! - `metrics`: what Prometheus gathers.
//! - `reply`: every answer is made there. `events`: streams of server-sent events.
//! - [`settings`]: what the command line says. `reload`: files that are followed.
//!
//! A request has no connection of MCP around it: it is handled where its HTTP request is, with the state of its session
//! if it has one, and is cancelled when its client has gone, by dropping what follows its call.

pub mod access;
mod body;
mod clients;
mod endpoint;
mod events;
mod front;
pub mod guard;
mod handlers;
mod metrics;
mod posted;
mod reload;
mod reply;
mod revision;
pub mod settings;
mod socket;
mod turns;

pub use access::Access;
use access::TokenHolder;
pub use handlers::{Handlers, MakePart};
pub use settings::{HttpLimits, HttpSettings};
pub use socket::{HttpListener, Tls};

use crate::server::asking::ParkedCalls;
use crate::server::gate::Parking;
use crate::tools::{CallOwner, Facts};
use clients::Clients;
use handlers::ListNumber;
use metrics::HttpCounts;
use reload::Reloads;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use turns::BusyTurns;

/// How long it is at least, and at most, until tokens are looked through for those whose time is over.
const SHORTEST_NAP: Duration = Duration::from_millis(10);
const LONGEST_NAP: Duration = Duration::from_secs(60);

/// What all requests share.
pub(super) struct HttpServer {
    handlers: Arc<Handlers>,
    settings: HttpSettings,
    access: Access,
    clients: Clients,
    /// Runs whose clients have no session, and have to call again.
    parked: Arc<ParkedCalls>,
    /// Wakes who waits for tool lists.
    tools: watch::Sender<ToolsSeen>,
    stage: watch::Sender<ServerStage>,
    /// Requests that have not been answered yet.
    in_flight: AtomicUsize,
    /// Made by chance when the server started: ids of events are good for one life of it.
    boot: u64,
    /// Requests so far, for names of those that have none.
    requests: AtomicUsize,
    /// A permit for each connection.
    room: Arc<Semaphore>,
    /// A permit for each byte of a body.
    bodies: Arc<Semaphore>,
    counts: Option<HttpCounts>,
    turns: BusyTurns,
}

/// How far the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ServerStage {
    Serving,
    /// It takes no more requests.
    Draining,
    /// What is still in flight ends now.
    Ending,
}

/// What is known of tool lists. Who is told that it was written looks whether a list of theirs is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ToolsSeen {
    is_ready: bool,
}

impl HttpServer {
    fn new(handlers: Handlers, settings: HttpSettings, access: Access, parking: Parking) -> HttpServer {
        let permits = |most: u64| {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))
        };
        let mut boot = [0; 8];
        // Without chance ids of events of an earlier life might be taken for ours, which costs a client one look.
        let _ = getrandom::fill(&mut boot);
        let handlers = Arc::new(handlers);
        let told = handlers.clone();
        HttpServer {
            tools: watch::Sender::new(ToolsSeen { is_ready: handlers.whole().is_ready() }),
            handlers,
            clients: Clients::new(&settings, move |session| told.session_ended(session)),
            parked: ParkedCalls::new(parking),
            access,
            stage: watch::Sender::new(ServerStage::Serving),
            in_flight: AtomicUsize::new(0),
            boot: u64::from_le_bytes(boot),
            requests: AtomicUsize::new(0),
            room: permits(settings.limits.connections),
            bodies: permits(settings.limits.all_bodies_bytes),
            counts: settings.metrics.as_ref().map(|metrics| HttpCounts::new(&metrics.calls)),
            settings,
            turns: BusyTurns::new(),
        }
    }

    fn is_draining(&self) -> bool {
        *self.stage.borrow() != ServerStage::Serving
    }

    /// Waits until the server is at this stage or beyond it.
    async fn reached(&self, stage: ServerStage) {
        // The sender lives as long as we do.
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }

    /// Open connections.
    fn connections(&self) -> usize {
        let most = usize::try_from(self.settings.limits.connections).unwrap_or(usize::MAX);
        most.min(Semaphore::MAX_PERMITS) - self.room.available_permits()
    }

    fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Makes the tool lists again whenever their facts change, and tells who listens. Ends with the facts.
    async fn follow(&self, mut facts: watch::Receiver<Arc<Facts>>) {
        while facts.changed().await.is_ok() {
            let now = facts.borrow_and_update().clone();
            self.handlers.describe(&now);
            self.tools.send_replace(ToolsSeen { is_ready: true });
        }
    }

    /// Follows the file of tokens: who listens by one that is good no longer, or for other servers, is told. Never ends.
    async fn follow_tokens(&self, reloads: Reloads) {
        let replaced = |gone: Vec<Arc<TokenHolder>>| {
            self.end_work_of(&gone);
            self.handlers.retain(|servers| self.access.grants(servers));
            self.tools.send_modify(|_| {});
        };
        self.access.follow(reloads, replaced).await;
    }

    /// Ends what is under way with tokens when their time is over. Never ends.
    async fn follow_expiry(&self) {
        let mut replaced = self.tools.subscribe();
        loop {
            let (gone, next) = self.access.expired();
            if !gone.is_empty() {
                self.end_work_of(&gone);
                // Who listens is told.
                self.tools.send_modify(|_| {});
            }
            // The clock may be set meanwhile.
            let look = next.unwrap_or(LONGEST_NAP).clamp(SHORTEST_NAP, LONGEST_NAP);
            tokio::select! {
                () = sleep(look) => {}
                // The sender lives as long as we do.
                _ = replaced.changed() => {}
            }
        }
    }

    /// Cancels the calls of these tokens, and their runs that wait for them to call again.
    fn end_work_of(&self, holders: &[Arc<TokenHolder>]) {
        for holder in holders {
            // First: a call that is parked after this looks there itself.
            holder.end();
            let parked = self.parked.end_of(holder.owner);
            tracing::info!(token = holder.name, parked, "a token is good no longer: its calls are cancelled");
        }
    }

    /// The list that somebody is shown; `None` when they have no token any more.
    fn list_of(&self, owner: CallOwner) -> Option<ListNumber> {
        let holder = self.access.holder(owner)?;
        self.handlers.list_of(&holder)
    }

    /// Waits until requests that need the tool list can be answered.
    async fn ready(&self) {
        // The sender lives as long as we do.
        let _ = self.tools.subscribe().wait_for(|seen| seen.is_ready).await;
    }

    /// Counts a request as long as the guard lives.
    fn enter(self: &Arc<HttpServer>) -> RequestCount {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        RequestCount(self.clone())
    }
}

/// A request that has not been answered yet.
pub(super) struct RequestCount(Arc<HttpServer>);

impl Drop for RequestCount {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
