//! Runs the HTTP server until it is stopped: listens, starts background tasks, accepts connections (`connection` serves
//! them), and drains requests at the end.

use super::addresses::Addresses;
use super::connection;
use super::tls::Tls;
use crate::server::gate::Gate;
use crate::server::http::access::Access;
use crate::server::http::nodes::{self, Nodes};
use crate::server::http::page::visits::Visits;
use crate::server::http::page::{self, PageDoor, ServedPage};
use crate::server::http::router::{RouterState, router};
use crate::server::http::settings::HttpSettings;
use crate::server::http::{Handlers, HttpServer, ServerStage};
use crate::tools::Facts;
use crate::ui::Page;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use ptc_base::files::ReloadSignal;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::DurableRuns;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Longest head of a request, in bytes.
pub(super) const LONGEST_HEAD: usize = 32 << 10;
/// Most headers of a request.
const MOST_HEADERS: usize = 100;
/// Pause after a failed `accept`.
const PAUSE: Duration = Duration::from_millis(50);
/// Shortest time in which new requests still get a response that the server ends.
const FAREWELL: Duration = Duration::from_millis(500);
/// How often to check for requests in flight while the server drains.
const LOOK: Duration = Duration::from_millis(10);

/// A listening socket.
pub struct HttpListener {
    listener: TcpListener,
    settings: HttpSettings,
    /// Serves over TLS.
    pub tls: Option<Arc<Tls>>,
    /// Whenever the number changes, watched files are read again.
    pub reloads: Option<watch::Receiver<u64>>,
    /// The page to show, if the settings ask for one.
    pub page: Option<Arc<Page>>,
    visits: Arc<Visits>,
    /// The state that other nodes may share.
    pub runs: Option<DurableRuns>,
}

impl HttpListener {
    /// Listens at the address of the settings.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this machine.
    pub async fn bind(mut settings: HttpSettings) -> io::Result<HttpListener> {
        raise_descriptors(settings.limits.connections);
        let listener = TcpListener::bind(settings.address).await?;
        settings.address = listener.local_addr()?;
        let visits = Visits::new();
        Ok(HttpListener { listener, settings, tls: None, reloads: None, page: None, visits, runs: None })
    }

    /// True if the settings ask for a page.
    pub fn has_page(&self) -> bool {
        self.settings.page
    }

    /// The line that leads people to the page: with a link where there is one holder, else they need a token.
    pub fn page_line(&self, access: &Access) -> Option<String> {
        if !self.settings.page {
            return None;
        }
        let link = access.only_holder().and_then(|_| self.door().link());
        Some(match link {
            Some(link) => page::page_line(&link),
            None => format!("page: {}{}", self.origin(), page::PATH),
        })
    }

    /// Where persons come in to the page.
    pub fn door(&self) -> PageDoor {
        PageDoor { visits: self.visits.clone(), url: self.origin() }
    }

    fn origin(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.settings.address)
    }

    /// URL of the MCP endpoint.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin(), self.settings.path)
    }

    /// Serves until `stop` resolves. Then it refuses new requests, and waits for those in flight within the
    /// grace of the settings. Each value of `facts` rebuilds the tool lists.
    pub async fn serve(
        self,
        handlers: Handlers,
        gate: &Arc<Gate>,
        access: Access,
        facts: watch::Receiver<Arc<Facts>>,
        stop: impl Future<Output = ()>,
    ) {
        let door = self.door();
        let HttpListener { listener, settings, tls, reloads, page, visits: _, runs } = self;
        let nodes = Nodes::of(runs);
        let grace = Duration::from_millis(settings.limits.grace_ms);
        let server = HttpServer {
            page: page.filter(|_| settings.page).map(|page| ServedPage { page, door }),
            is_tls: tls.is_some(),
            ..HttpServer::new(handlers, settings, access, gate.limits.parking, nodes)
        };
        let server = Arc::new(server);
        let following = server.clone();
        let (tokens, expiring, certificate) = (server.clone(), server.clone(), tls.clone());
        let (relaying, relaying_gate) = (server.clone(), gate.clone());
        let (reload_tokens, reload_tls) = (ReloadSignal(reloads.clone()), ReloadSignal(reloads));
        let tasks = [
            tasks::spawn(TaskOwner::Process, async move { following.follow(facts).await }),
            tasks::spawn(TaskOwner::Process, async move { tokens.follow_tokens(reload_tokens).await }),
            tasks::spawn(TaskOwner::Process, async move { expiring.follow_expiry().await }),
            tasks::spawn(TaskOwner::Process, async move { nodes::follow(&relaying, &relaying_gate).await }),
            tasks::spawn(TaskOwner::Process, async move {
                if let Some(certificate) = certificate {
                    certificate.follow(reload_tls).await;
                }
            }),
        ];
        let state = RouterState { server: server.clone(), gate: gate.clone() };
        let connections = Arc::new(Connections::new(state, tls));
        let mut accepting = pin!(connections.accept(&listener));
        let mut stop = pin!(stop);
        tokio::select! {
            () = &mut accepting => {}
            () = &mut stop => {}
        }
        server.stage.send_replace(ServerStage::Draining);
        // Their clients could not call again.
        server.parked.close();
        let end = Instant::now() + grace;
        let drained = async {
            sleep(FAREWELL.min(grace)).await;
            while server.in_flight() > 0 {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            // New requests are refused while the server drains.
            () = &mut accepting => {}
            drained = timeout(grace, drained) => if drained.is_err() {
                tracing::warn!(requests = server.in_flight(), "still in flight at the end of the grace period");
            }
        }
        server.stage.send_replace(ServerStage::Ending);
        connections.close(end).await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Raises the limit of open files to fit this many connections, as far as the system allows. The usual 1,024 is
/// a default for programs that do not ask for more.
fn raise_descriptors(connections: u64) {
    const OTHERS: u64 = 1_024;
    let limit = getrlimit(Resource::Nofile);
    let wanted = connections.saturating_add(OTHERS).min(limit.maximum.unwrap_or(u64::MAX));
    // None is no limit.
    if limit.current.is_some_and(|current| current < wanted)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).is_err()
    {
        tracing::warn!(wanted, "the limit of open files could not be raised");
    }
}

/// All connections of a server.
pub(super) struct Connections {
    pub(super) router: Router,
    pub(super) closing: watch::Sender<bool>,
    pub(super) server: Arc<HttpServer>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) http: http1::Builder,
    addresses: Addresses,
}

impl Connections {
    fn new(state: RouterState, tls: Option<Arc<Tls>>) -> Connections {
        let server = state.server.clone();
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(server.settings.keep_alive())
            .max_buf_size(LONGEST_HEAD)
            .max_headers(MOST_HEADERS);
        let most = usize::try_from(server.settings.limits.connections_per_address).unwrap_or(usize::MAX);
        Connections {
            router: router(state),
            closing: watch::Sender::new(false),
            server,
            tls,
            http,
            addresses: Addresses::new(most),
        }
    }

    /// Accepts connections as long as there are permits. Never ends.
    async fn accept(self: &Arc<Connections>, listener: &TcpListener) {
        loop {
            // The semaphore is never closed.
            let Ok(permit) = self.server.room.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, address)) => {
                    let Some(place) = self.addresses.enter(address.ip()) else {
                        tracing::debug!(%address, "too many connections from there");
                        continue;
                    };
                    // Responses are written whole, so delaying packets gains nothing.
                    let _ = stream.set_nodelay(true);
                    tasks::spawn(
                        TaskOwner::Process,
                        connection::run(self.clone(), stream, address, (permit, place)),
                    );
                }
                Err(error) => {
                    // Usually the error concerns one connection. But when there are no descriptors left, trying
                    // again at once is useless.
                    tracing::debug!(%error, "a connection could not be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Closes idle connections, and the others after their responses. It waits until `end`, and at least
    /// [`FAREWELL`], because clients may still be reading.
    async fn close(&self, end: Instant) {
        self.closing.send_replace(true);
        // Each connection holds a receiver.
        let _ = timeout_at(end.max(Instant::now() + FAREWELL), self.closing.closed()).await;
    }
}
