//! Serves the HTTP requests of one client connection, which uses next to no memory while it is idle. Hyper gets the
//! stream, and allocates its buffers, only from the first byte of a request until no request has been there for a
//! moment.

use super::addresses::AddressPermit;
use super::listen::{Connections, LONGEST_HEAD};
use super::slow_client::{RequestCounter, RequestGuard, TimedStream};
use super::wire::{ClientStream, is_disconnected, tcp};
use crate::server::gate::Flow;
use crate::server::http::RequestCount;
use axum::body::{Body, Bytes};
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::{Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{sleep, timeout};
use tokio_util::either::Either;
use tower_service::Service as _;

/// How often to check whether a waiting client has gone, or whether a connection is idle.
const LOOK: Duration = Duration::from_millis(100);

/// Origin of a request: its connection.
#[derive(Clone, Debug)]
pub(in crate::server::http) struct RequestOrigin {
    /// The other end of the connection.
    pub(in crate::server::http) address: SocketAddr,
    /// Its flow at the gate, within its tenant.
    pub(in crate::server::http) flow: Arc<Flow>,
}

/// Serves a connection to its end, and then releases its permits.
pub(super) async fn run(
    all: Arc<Connections>,
    stream: TcpStream,
    address: SocketAddr,
    _places: (OwnedSemaphorePermit, AddressPermit),
) {
    // This receiver, held to the end, shows that the connection exists.
    let mut closing = all.closing.subscribe();
    let settings = &all.server.settings;
    let mut wire = match &all.tls {
        None => Either::Left(stream),
        Some(tls) => {
            // Boxed, as is the future below: a task is as large as the largest of its states.
            let accepting = Box::pin(tls.acceptor().accept(stream));
            match timeout(settings.request_timeout(), accepting).await {
                Ok(Ok(stream)) => Either::Right(Box::new(stream)),
                Ok(Err(_)) | Err(_) => return,
            }
        }
    };
    let origin = RequestOrigin { address, flow: Arc::default() };
    // A connection without a first request is closed as early as one with an incomplete request head.
    let mut wait = settings.request_timeout();
    loop {
        tokio::select! {
            // Requests that arrive before the end are answered.
            biased;
            readable = timeout(wait, tcp(&wire).readable()) => match readable {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            },
            () = closed(&mut closing) => return,
        }
        match Box::pin(serve(&all, wire, &origin, &mut closing)).await {
            Some(IdleConnection { wire: idle, has_asked }) => {
                wire = idle;
                if has_asked {
                    wait = settings.keep_alive();
                }
            }
            None => return,
        }
    }
}

/// An idle connection.
struct IdleConnection {
    wire: ClientStream,
    /// It has had a request.
    has_asked: bool,
}

/// Serves requests until the connection is idle; `None` when it has ended.
async fn serve(
    all: &Connections,
    wire: ClientStream,
    origin: &RequestOrigin,
    closing: &mut watch::Receiver<bool>,
) -> Option<IdleConnection> {
    let mut was_idle = false;
    let (mut wire, mut unread) = (wire, Bytes::new());
    loop {
        let requests = RequestCounter::default();
        // hyper owns the stream now; the socket stays the same until hyper gives it back.
        let socket = tcp(&wire).as_raw_fd();
        let stream = TimedStream::new(wire, unread, requests.clone(), all.server.settings.request_timeout());
        let service = {
            let requests = requests.clone();
            service_fn(move |request: Request<Incoming>| {
                let guards = (requests.enter(), all.server.enter());
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(origin.clone());
                // hyper's own limit is that of its buffer, which a head may exceed by what one read brings.
                let answer = (head_bytes(&request) <= LONGEST_HEAD).then(|| all.router.clone().call(request));
                async move {
                    let response = match answer {
                        Some(answer) => answer.await?,
                        None => too_long(),
                    };
                    Ok::<_, Infallible>(response.map(|body| CountedBody { body, _guards: guards }))
                }
            })
        };
        let mut connection = all.http.serve_connection(TokioIo::new(stream), service);
        loop {
            tokio::select! {
                served = &mut connection => {
                    if let Err(error) = served {
                        tracing::debug!(address = %origin.address, %error, "a connection has failed");
                    }
                    return None;
                }
                () = closed(closing) => {
                    Pin::new(&mut connection).graceful_shutdown();
                    let _ = (&mut connection).await;
                    return None;
                }
                () = sleep(LOOK) => {}
            }
            if requests.is_busy() {
                // hyper notices a closed connection only while no unread data is left.
                if is_disconnected(socket) {
                    return None;
                }
                was_idle = false;
            } else if !requests.is_reading_head() && std::mem::replace(&mut was_idle, true) {
                break;
            }
        }
        let has_asked = requests.begun() > 0;
        let parts = connection.into_parts();
        wire = parts.io.into_inner().into_inner();
        unread = parts.read_buf;
        if unread.is_empty() {
            return Some(IdleConnection { wire, has_asked });
        }
        // The start of the next request, which arrived together with the last one.
        was_idle = false;
    }
}

/// Bytes of the head of a request, as a client writes it without superfluous blanks.
fn head_bytes(request: &Request<Body>) -> usize {
    let target = request.uri().path_and_query().map_or(1, |target| target.as_str().len());
    let line = request.method().as_str().len() + target + "  HTTP/1.1\r\n".len();
    let headers =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + headers.sum::<usize>() + "\r\n".len()
}

/// The response to a request with too long a head. The connection ends with it.
fn too_long() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which also means closed.
    let _ = closing.wait_for(|closing| *closing).await;
}

/// A response body. Its request counts as in progress until hyper drops the body.
struct CountedBody {
    body: Body,
    _guards: (RequestGuard, RequestCount),
}

impl HttpBody for CountedBody {
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
