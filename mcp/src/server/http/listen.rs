//! Connections: accepted, served, drained.

use super::access::Access;
use super::clients::SWEEP;
use super::front::{Front, paths};
use super::patience::{Patient, Worked, WorkedGuard};
use super::settings::HttpSettings;
use super::{HttpServer, RequestCount, ServerStage};
use crate::server::gate::Gate;
use crate::server::handler::Handler;
use crate::tools::Facts;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tower_service::Service as _;

/// Bytes of the head of a request.
const LONGEST_HEAD: usize = 32 << 10;
/// Headers of a request.
const MOST_HEADERS: usize = 100;
/// How long the server waits when the system gives it no more connections.
const PAUSE: Duration = Duration::from_millis(50);
/// How long new requests are still told that the server ends, at least.
const FAREWELL: Duration = Duration::from_millis(500);
/// How often it is looked whether requests are in flight, once the server is to end.
const LOOK: Duration = Duration::from_millis(10);

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    /// The other end of the connection.
    pub(super) address: SocketAddr,
}

/// A socket that listens.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    settings: HttpSettings,
}

impl HttpListener {
    /// Listens at the address of the settings.
    ///
    /// # Errors
    /// The address is taken, or not ours.
    pub async fn bind(mut settings: HttpSettings) -> io::Result<HttpListener> {
        raise_descriptors(settings.limits.connections);
        let listener = TcpListener::bind(settings.address).await?;
        settings.address = listener.local_addr()?;
        Ok(HttpListener { listener, settings })
    }

    /// Where MCP is spoken.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.settings.address, self.settings.path)
    }

    /// Serves until `stop` resolves; then tells new requests to go elsewhere, and waits for those in flight, within
    /// the grace of the settings. Each value of `facts` makes the tool list again.
    pub async fn serve(
        self,
        handler: Arc<Handler>,
        gate: &Arc<Gate>,
        access: Access,
        facts: watch::Receiver<Arc<Facts>>,
        stop: impl Future<Output = ()>,
    ) {
        let HttpListener { listener, settings } = self;
        let grace = Duration::from_millis(settings.limits.grace_ms);
        let server = Arc::new(HttpServer::new(handler, settings, access));
        let following = server.clone();
        let tokens = server.clone();
        let tasks = [
            tokio::spawn(async move { following.follow(facts).await }),
            tokio::spawn(async move { tokens.access.follow().await }),
            tokio::spawn(sweep(server.clone())),
        ];
        let connections = Connections {
            paths: paths(Front { server: server.clone(), gate: gate.clone() }),
            closing: watch::Sender::new(false),
            server: server.clone(),
        };
        let mut accepting = pin!(connections.accept(&listener));
        let mut stop = pin!(stop);
        tokio::select! {
            () = &mut accepting => {}
            () = &mut stop => {}
        }
        server.stage.send_replace(ServerStage::Draining);
        let end = Instant::now() + grace;
        let drained = async {
            sleep(FAREWELL.min(grace)).await;
            while server.in_flight() > 0 {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            // Who comes now is told to go elsewhere.
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

/// Takes descriptors for so many connections, as far as the system lets us: the usual limit of 1,024 is a default for
/// programs that do not ask.
fn raise_descriptors(connections: u64) {
    const OTHERS: u64 = 1_024;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both functions are given a valid `rlimit`, and change nothing but the limit of this process.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return;
        }
        let wanted = connections.saturating_add(OTHERS).min(limit.rlim_max);
        if limit.rlim_cur < wanted {
            limit.rlim_cur = wanted;
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) != 0 {
                tracing::warn!(wanted, "the limit of open files could not be raised");
            }
        }
    }
}

async fn closed(mut closing: watch::Receiver<bool>) {
    // The sender goes when everything does.
    let _ = closing.wait_for(|closing| *closing).await;
}

async fn sweep(server: Arc<HttpServer>) {
    loop {
        sleep(SWEEP).await;
        server.clients.sweep();
    }
}

/// All connections of a server.
struct Connections {
    paths: Router,
    closing: watch::Sender<bool>,
    server: Arc<HttpServer>,
}

impl Connections {
    /// Accepts connections as long as there is room. Never ends.
    async fn accept(&self, listener: &TcpListener) {
        loop {
            // The semaphore is never closed.
            let Ok(permit) = self.server.room.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, address)) => self.serve(stream, address, permit),
                Err(error) => {
                    // Mostly of one connection; but when there are no descriptors left, trying at once is no use.
                    tracing::debug!(%error, "a connection could not be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream, address: SocketAddr, permit: OwnedSemaphorePermit) {
        // Answers are written whole, and nobody gains by waiting for more.
        let _ = stream.set_nodelay(true);
        let settings = &self.server.settings;
        let worked = Worked::default();
        let stream = Patient::new(stream, worked.clone(), settings.request_timeout());
        let (paths, server) = (self.paths.clone(), self.server.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let guards = (worked.enter(), server.enter());
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Asking { address });
            let answer = paths.clone().call(request);
            async move {
                let response = answer.await?;
                Ok::<_, Infallible>(response.map(|body| WorkedBody { body, _guards: guards }))
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(Duration::from_millis(settings.limits.keep_alive_ms))
            .max_buf_size(LONGEST_HEAD)
            .max_headers(MOST_HEADERS);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let closing = closed(self.closing.subscribe());
        let held = self.closing.subscribe();
        tokio::spawn(async move {
            // What is held to the end says that there is this connection.
            let _held = (permit, held);
            let mut connection = pin!(connection);
            let served = tokio::select! {
                served = connection.as_mut() => served,
                () = closing => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = served {
                tracing::debug!(%address, %error, "a connection has failed");
            }
        });
    }

    /// Closes connections that are idle, and the others after their answers, which clients may still be reading; waits for
    /// that until then, and a moment at least.
    async fn close(&self, end: Instant) {
        self.closing.send_replace(true);
        // Each connection holds a receiver.
        let _ = timeout_at(end.max(Instant::now() + FAREWELL), self.closing.closed()).await;
    }
}

/// A body of an answer; its request is worked on until it was taken.
struct WorkedBody {
    body: Body,
    _guards: (WorkedGuard, RequestCount),
}

impl HttpBody for WorkedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
