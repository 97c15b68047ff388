//! Builds all HTTP responses of the server, with secrets redacted in their bodies.

use super::access::AccessDenied;
use super::access::oauth::TokenRefusal;
use super::access::oauth::challenge::Challenges;
use crate::protocol::{ErrorCode, Id, RpcError, ServerMessage};
use crate::redact::{self, Form, RedactedBytes, shapes};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::{Stream, StreamExt as _};
use std::convert::Infallible;
use std::time::Duration;

/// Header of the session (handshake era).
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Header of the protocol version.
pub(super) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Content types.
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Seconds after which the keys of an issuer are asked for again.
const KEYS_AGAIN: u64 = 30;

/// Seconds after which a client that was refused as `busy` may try again.
pub(super) const SOON: u64 = 1;

fn with_body(status: StatusCode, kind: HeaderValue, body: RedactedBytes) -> Response {
    let mut response = Response::new(Body::from(body.into_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A JSON text.
pub(super) fn json(status: StatusCode, text: Vec<u8>) -> Response {
    with_body(status, JSON, redact::clean(text, Form::Json(&shapes::MCP)))
}

/// A short text for people.
pub(super) fn text(status: StatusCode, text: &str) -> Response {
    with_body(status, TEXT, redact::clean(text.as_bytes().to_vec(), Form::Text))
}

/// What a browser may load for a view of the page, and who may show it.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
);

/// Headers of everything of the page.
const PAGE_HEADERS: [(HeaderName, HeaderValue); 6] = [
    (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    // With `no-referrer` browsers would send forms with the origin `null`.
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

fn of_page(mut response: Response) -> Response {
    response.headers_mut().extend(PAGE_HEADERS);
    response
}

/// A view of the page.
pub(super) fn page(status: StatusCode, document: &str) -> Response {
    const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
    of_page(with_body(status, HTML, redact::clean(document.as_bytes().to_vec(), Form::Text)))
}

/// A constant part of the page.
pub(super) fn asset(kind: &'static str, text: &'static str) -> Response {
    of_page(with_body(StatusCode::OK, HeaderValue::from_static(kind), RedactedBytes::constant(text)))
}

/// Metrics for Prometheus.
pub(super) fn metrics(text: &str) -> Response {
    const NUMBERS: HeaderValue =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    with_body(StatusCode::OK, NUMBERS, redact::clean(text.as_bytes().to_vec(), Form::Text))
}

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

/// A JSON-RPC error.
pub(super) fn error(status: StatusCode, id: Option<&Id<'_>>, error: &RpcError) -> Response {
    json(status, ServerMessage::error(id, error).as_bytes().to_vec())
}

/// [`error`] for a server that cannot take the request now.
pub(super) fn unavailable(status: StatusCode, id: Option<&Id<'_>>, message: &str) -> Response {
    error(status, id, &RpcError::new(ErrorCode::Unavailable, message))
}

/// Adds a header.
pub(super) fn with(mut response: Response, name: HeaderName, value: HeaderValue) -> Response {
    response.headers_mut().insert(name, value);
    response
}

/// Adds `Retry-After`.
pub(super) fn retry_after(response: Response, seconds: u64) -> Response {
    with(response, header::RETRY_AFTER, HeaderValue::from(seconds.max(1)))
}

/// Something is not there for now.
pub(super) fn ask_again(why: &str) -> Response {
    retry_after(unavailable(StatusCode::SERVICE_UNAVAILABLE, None, why), SOON)
}

/// JSON that every web page may read.
pub(super) fn public(text: Vec<u8>) -> Response {
    let response =
        with(json(StatusCode::OK, text), header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    with(response, header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))
}

/// The response to a request that is not authenticated. `issued` are the challenges of a server that accepts tokens of
/// issuers.
pub(super) fn refused(refused: &AccessDenied, issued: Option<&Challenges>) -> Response {
    let challenge = |status: StatusCode, words: &str, written: Option<String>, plain: &'static str| {
        let value = written.and_then(|written| HeaderValue::try_from(written).ok());
        with(text(status, words), header::WWW_AUTHENTICATE, value.unwrap_or(HeaderValue::from_static(plain)))
    };
    const WRONG: &str = "Bearer error=\"invalid_token\"";
    match refused {
        AccessDenied::NoToken => {
            challenge(StatusCode::UNAUTHORIZED, "unauthorized", issued.map(Challenges::no_token), "Bearer")
        }
        AccessDenied::WrongToken => {
            challenge(StatusCode::UNAUTHORIZED, "unauthorized", issued.map(Challenges::wrong_token), WRONG)
        }
        AccessDenied::Refused(refusal) => {
            let (status, words, plain) = match refusal {
                TokenRefusal::Invalid(_) => (StatusCode::UNAUTHORIZED, "unauthorized", WRONG),
                TokenRefusal::Insufficient(_) => (
                    StatusCode::FORBIDDEN,
                    "forbidden: the token allows nothing here",
                    "Bearer error=\"insufficient_scope\"",
                ),
                TokenRefusal::Unavailable => {
                    let response = text(
                        StatusCode::SERVICE_UNAVAILABLE,
                        "the keys of the token's issuer are not available",
                    );
                    return retry_after(response, KEYS_AGAIN);
                }
            };
            challenge(status, words, issued.map(|issued| issued.refused(refusal)), plain)
        }
        AccessDenied::TooMany(wait) => {
            let response = text(StatusCode::TOO_MANY_REQUESTS, "too many failed attempts");
            retry_after(response, seconds(*wait))
        }
    }
}

/// A time in whole seconds, rounded up.
pub(super) fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// The HTTP status for an error code. Stateless responses use it, since they have no session to fall back on.
pub(super) fn status(code: Option<ErrorCode>) -> StatusCode {
    match code {
        None => StatusCode::OK,
        Some(ErrorCode::MethodNotFound) => StatusCode::NOT_FOUND,
        Some(ErrorCode::Internal) => StatusCode::INTERNAL_SERVER_ERROR,
        Some(ErrorCode::Unavailable) => StatusCode::SERVICE_UNAVAILABLE,
        Some(
            ErrorCode::Parse
            | ErrorCode::InvalidRequest
            | ErrorCode::InvalidParams
            | ErrorCode::HeaderMismatch
            | ErrorCode::MissingCapability
            | ErrorCode::UnsupportedVersion,
        ) => StatusCode::BAD_REQUEST,
    }
}

/// The answer of another node, which has redacted it.
pub(super) fn relayed(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// A stream of events, each as [`super::events`] encodes it.
pub(super) fn events(events: impl Stream<Item = RedactedBytes> + Send + 'static) -> Response {
    const NO_BUFFER: HeaderName = HeaderName::from_static("x-accel-buffering");
    let pieces = events.map(|event| Ok::<_, Infallible>(Bytes::from(event.into_bytes())));
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENTS);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(NO_BUFFER, HeaderValue::from_static("no"));
    response
}
