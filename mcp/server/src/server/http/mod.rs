//! Serves MCP to many clients over Streamable HTTP. It uses the same handler and gate as standard input.
//!
//! # Layout
//!
//! - here: state that all requests share; follows changes of tool lists and tokens.
//!
//! From the socket inwards:
//!
//! - `socket`: connections, plain or over TLS.
//! - `fairness`: fairness between tenants. `router`: routes, and the checks of Host and Origin ([`guard`]) and of
//!   tokens ([`access`]).
//! - `revision`: the headers that each protocol version requires, and the era of a request. `body`: reads its
//!   body.
//! - `handlers`: selects the handler by the servers that a token allows.
//! - `endpoint`: POST, GET and DELETE of the MCP path. `posted`: a POST with a call that runs. `sessions`:
//!   sessions of the handshake era.
//! - `nodes`: other nodes with the same database.
//! - `metrics`: metrics for Prometheus.
//! - `page`: the page for people (`--ui`).
//! - `reply`: makes all responses. `events`: server-sent events.
//! - [`settings`]: settings of the command line.
//!
//! A request belongs to no MCP connection: it is handled within its HTTP request, with the state of its session
//! if it has one. It is cancelled when its client has gone, because hyper then drops the future that follows
//! its call.

pub mod access;
mod body;
mod cors;
mod endpoint;
mod events;
mod fairness;
pub mod guard;
mod handlers;
mod metrics;
mod nodes;
mod page;
mod posted;
mod reply;
mod revision;
mod router;
mod sessions;
pub mod settings;
mod socket;

pub use access::Access;
use access::TokenHolder;
pub use handlers::{Handlers, MakeRestricted};
pub use page::{PageDoor, page_line};
pub use settings::{HttpLimits, HttpSettings};
pub use socket::{HttpListener, Tls};

use crate::server::gate::ParkingLimits;
use crate::server::input_required::ParkedCalls;
use crate::tools::Facts;
use fairness::BusyThrottle;
use handlers::ListVersion;
use metrics::HttpCounts;
use nodes::Nodes;
use page::ServedPage;
use ptc_base::files::ReloadSignal;
use sessions::Sessions;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

/// Shortest and longest time between two searches for expired tokens.
const SHORTEST_NAP: Duration = Duration::from_millis(10);
const LONGEST_NAP: Duration = Duration::from_secs(60);

/// State that all requests share.
pub(super) struct HttpServer {
    handlers: Arc<Handlers>,
    settings: HttpSettings,
    access: Access,
    sessions: Sessions,
    /// Other nodes with the same database, if there can be any.
    nodes: Option<Arc<Nodes>>,
    /// Runs of stateless clients that have to call again.
    parked: Arc<ParkedCalls>,
    /// Notifies waiters of new tool lists.
    tools: watch::Sender<ToolListState>,
    stage: watch::Sender<ServerStage>,
    /// Requests that have not been answered yet.
    in_flight: AtomicUsize,
    /// Random number of this process; ids of events are valid within it only.
    boot: u64,
    /// Number of requests so far, for ids of requests that have none.
    requests: AtomicUsize,
    /// A permit for each connection.
    room: Arc<Semaphore>,
    /// A permit for each byte of a body.
    bodies: Arc<Semaphore>,
    counts: Option<HttpCounts>,
    throttle: BusyThrottle,
    /// The page, if there is one.
    page: Option<ServedPage>,
    /// Its connections speak TLS.
    is_tls: bool,
}

/// Stage of the server's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ServerStage {
    Serving,
    /// It takes no more requests.
    Draining,
    /// Requests in flight end now.
    Ending,
}

/// State of the tool lists. A receiver of an update checks whether its own list has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ToolListState {
    is_ready: bool,
}

impl HttpServer {
    fn new(
        handlers: Handlers,
        settings: HttpSettings,
        access: Access,
        parking: ParkingLimits,
        nodes: Option<Arc<Nodes>>,
    ) -> HttpServer {
        let permits = |most: u64| {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)))
        };
        let mut boot = [0; 8];
        // Without random numbers, ids of events of an earlier process might match ours. That costs a client one
        // superfluous notification.
        let _ = getrandom::fill(&mut boot);
        let handlers = Arc::new(handlers);
        let notified = handlers.clone();
        HttpServer {
            tools: watch::Sender::new(ToolListState { is_ready: handlers.unrestricted.is_ready() }),
            handlers,
            sessions: Sessions::new(&settings, nodes.as_deref().map(Nodes::name), move |session| {
                notified.session_ended(session);
            }),
            parked: ParkedCalls::new(parking, nodes.as_deref().map(Nodes::name)),
            nodes,
            access,
            stage: watch::Sender::new(ServerStage::Serving),
            in_flight: AtomicUsize::new(0),
            boot: u64::from_le_bytes(boot),
            requests: AtomicUsize::new(0),
            room: permits(settings.limits.connections),
            bodies: permits(settings.limits.all_bodies_bytes),
            counts: settings.metrics.as_ref().map(|metrics| HttpCounts::new(&metrics.calls)),
            settings,
            throttle: BusyThrottle::new(),
            page: None,
            is_tls: false,
        }
    }

    fn is_draining(&self) -> bool {
        *self.stage.borrow() != ServerStage::Serving
    }

    /// Waits until the server is at this stage or beyond it.
    async fn reached(&self, stage: ServerStage) {
        // We own the sender, so this cannot fail.
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }

    /// Number of open connections.
    fn connections(&self) -> usize {
        let most = usize::try_from(self.settings.limits.connections).unwrap_or(usize::MAX);
        most.min(Semaphore::MAX_PERMITS) - self.room.available_permits()
    }

    fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Rebuilds the tool lists whenever their facts change, and notifies listeners. Ends with the facts.
    async fn follow(&self, mut facts: watch::Receiver<Arc<Facts>>) {
        while facts.changed().await.is_ok() {
            let now = facts.borrow_and_update().clone();
            self.handlers.describe(&now);
            self.tools.send_replace(ToolListState { is_ready: true });
        }
    }

    /// Reloads the file of tokens, and notifies listeners with tokens that are no longer valid, or for other
    /// servers. Never ends.
    async fn follow_tokens(&self, reloads: ReloadSignal) {
        let replaced = |gone: Vec<Arc<TokenHolder>>| {
            self.end_work(&gone, false);
            self.handlers.retain(|servers| self.access.grants(servers));
            self.tools.send_modify(|_| {});
        };
        let issued = async {
            match &self.access.oauth {
                Some(oauth) => oauth.follow(reloads.clone(), replaced).await,
                None => std::future::pending().await,
            }
        };
        tokio::join!(self.access.follow(reloads.clone(), replaced), issued);
    }

    /// Ends the work of expired tokens. Never ends.
    async fn follow_expiry(&self) {
        let mut replaced = self.tools.subscribe();
        loop {
            let (gone, next) = self.access.expired();
            if !gone.is_empty() {
                self.end_work(&gone, true);
                // Notifies listeners.
                self.tools.send_modify(|_| {});
            }
            // The clock may be set meanwhile, so look now and then.
            let look = next.unwrap_or(LONGEST_NAP).clamp(SHORTEST_NAP, LONGEST_NAP);
            tokio::select! {
                () = sleep(look) => {}
                // We own the sender, so this cannot fail.
                _ = replaced.changed() => {}
            }
        }
    }

    /// Cancels the running and parked calls of these tokens, and their tasks. The tasks of an owner that an issuer names
    /// outlive one token that has expired: the owner comes back with another.
    fn end_work(&self, holders: &[Arc<TokenHolder>], has_expired: bool) {
        for holder in holders {
            // This comes first: a call that is parked later checks it itself.
            holder.revoke();
            let parked = self.parked.end_all(holder.owner);
            if !(has_expired && holder.is_of_issuer()) {
                self.handlers.unrestricted.detached.end_all(holder.owner);
            }
            tracing::info!(token = holder.name, parked, "a token is good no longer: its calls are cancelled");
        }
    }

    /// The tool list of a token; `None` when it is no longer valid. An edit of the file of tokens may have made it another
    /// list.
    fn list_for(&self, holder: &Arc<TokenHolder>) -> Option<ListVersion> {
        match holder.is_of_issuer() {
            true => self.handlers.list_for(holder).filter(|_| holder.is_valid() && !holder.is_revoked()),
            false => self.handlers.list_for(&*self.access.holder(holder.owner)?),
        }
    }

    /// Waits until requests that need the tool list can be answered.
    async fn ready(&self) {
        // We own the sender, so this cannot fail.
        let _ = self.tools.subscribe().wait_for(|seen| seen.is_ready).await;
    }

    /// Counts a request in flight as long as the guard lives.
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
