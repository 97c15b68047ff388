//! Routes HTTP requests by their path to MCP (with authentication and logging), health, readiness, metrics, OAuth
//! metadata or the web page.

use super::access::TokenHolder;
use super::access::oauth::OAuthAccess;
use super::access::oauth::challenge::METADATA;
use super::cors::{self, PageOrigin};
use super::settings::{HEALTH, READY};
use super::socket::RequestOrigin;
use super::{HttpServer, endpoint, guard, page, reply};
use crate::server::gate::Gate;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{any, get};
use ptc_calls::trace::TraceContext;
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// State that all routes share.
#[derive(Clone)]
pub(super) struct RouterState {
    pub(super) server: Arc<HttpServer>,
    pub(super) gate: Arc<Gate>,
}

/// All routes.
pub(super) fn router(state: RouterState) -> Router {
    let path = state.server.settings.path.clone();
    let metrics = state.server.settings.metrics.as_ref().map(|metrics| metrics.path.clone());
    let paths = match metrics {
        Some(path) => Router::new().route(&path, get(show_metrics)),
        None => Router::new(),
    };
    let paths = if state.server.page.is_some() { page::routes(paths) } else { paths };
    let about = format!("This is ptc, an MCP server. MCP clients connect to {path} of this address.\n");
    paths
        .route(HEALTH, get(health))
        .route(READY, get(ready))
        .route(&path, any(mcp))
        .route(METADATA, get(describe_resource).options(describe_resource))
        .route(&format!("{METADATA}/{{*path}}"), get(describe_resource).options(describe_resource))
        .fallback(async move |request: Request<Body>| match (request.method(), request.uri().path()) {
            // What a person sees who opens the address in a browser.
            (&Method::GET, "/") => reply::text(StatusCode::OK, &about),
            _ => reply::text(StatusCode::NOT_FOUND, "not found"),
        })
        .method_not_allowed_fallback(async || {
            reply::text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        })
        .with_state(state)
}

async fn health() -> Response {
    reply::json(StatusCode::OK, br#"{"status":"ok"}"#.to_vec())
}

async fn ready(State(RouterState { server, .. }): State<RouterState>, request: Request<Body>) -> Response {
    let not = |status: &str| {
        reply::json(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": status }).to_string().into_bytes())
    };
    if server.is_draining() {
        return not("draining");
    }
    if !server.handlers.unrestricted.is_ready() {
        return not("starting");
    }
    let only = server.access.only_holder().map(|holder| holder.owner);
    if server.sessions.is_full(only) {
        return not("saturated");
    }
    let mut ready = json!({ "status": "ready" });
    // The node stays in the balancer: programs that only read go on, and all nodes have the same database.
    if server.nodes.as_ref().is_some_and(|nodes| nodes.is_database_away()) {
        ready["state"] = "unavailable".into();
    }
    // A load balancer asks without a token; only authorized clients see the name of the machine.
    if authenticate(&server, Asking::by(&request)).await.is_ok() {
        ready["instance"] = server.settings.instance.as_str().into();
    }
    reply::json(StatusCode::OK, ready.to_string().into_bytes())
}

/// The metadata of this resource (RFC 9728), for everyone. Browsers ask first (OPTIONS) for clients that send a version of
/// the protocol with the request.
async fn describe_resource(
    State(RouterState { server, .. }): State<RouterState>,
    request: Request<Body>,
) -> Response {
    let challenges = server.access.oauth.as_ref().map(OAuthAccess::challenges);
    let below = request.uri().path().strip_prefix(METADATA).unwrap_or_default();
    match challenges.and_then(|challenges| challenges.document(below, &server.settings.path)) {
        Some(_) if request.method() == Method::OPTIONS => cors::public_preflight(),
        Some(document) => reply::public(document.to_string().into_bytes()),
        None => reply::text(StatusCode::NOT_FOUND, "not found"),
    }
}

async fn show_metrics(
    State(RouterState { server, gate }): State<RouterState>,
    request: Request<Body>,
) -> Response {
    match (authenticate(&server, Asking::by(&request)).await, &server.counts) {
        // The metrics name servers that this token may not know.
        (Ok(holder), Some(_)) if holder.servers().is_some() => {
            reply::text(StatusCode::FORBIDDEN, "forbidden: metrics name servers that this token may not see")
        }
        (Ok(_), Some(counts)) => reply::metrics(&counts.text(&server, &gate)),
        (Ok(_), None) => reply::text(StatusCode::NOT_FOUND, "not found"),
        (Err(refused), _) => *refused,
    }
}

/// What a request is authenticated by. Its body is no part of it.
struct Asking<'r> {
    target: &'r Uri,
    headers: &'r HeaderMap,
    from: Option<IpAddr>,
}

impl Asking<'_> {
    fn by(request: &Request<Body>) -> Asking<'_> {
        let origin = request.extensions().get::<RequestOrigin>();
        let from = origin.map(|origin| origin.address.ip());
        Asking { target: request.uri(), headers: request.headers(), from }
    }
}

/// Authenticates a request; otherwise returns the error response.
async fn authenticate(
    server: &HttpServer,
    Asking { target, headers, from }: Asking<'_>,
) -> Result<Arc<TokenHolder>, Box<Response>> {
    if !guard::target_matches_host(target, headers) {
        return Err(reply::text(StatusCode::BAD_REQUEST, "the target is not the Host").into());
    }
    if !guard::is_allowed(&server.settings, headers) {
        return Err(reply::text(StatusCode::FORBIDDEN, "forbidden").into());
    }
    let Some(from) = from else {
        // Each connection sets its address, so this cannot happen.
        return Err(reply::text(StatusCode::INTERNAL_SERVER_ERROR, "no address").into());
    };
    server.access.admit(from, headers).await.map_err(|refused| {
        let challenges = server.access.oauth.as_ref().map(OAuthAccess::challenges);
        reply::refused(&refused, challenges.as_ref()).into()
    })
}

async fn mcp(State(RouterState { server, gate }): State<RouterState>, request: Request<Body>) -> Response {
    let (begun, method) = (Instant::now(), request.method().clone());
    let name = request_name(&server, request.headers());
    let is_last = server.is_draining();
    let page = PageOrigin::of(&server.settings, request.headers());
    let preflight =
        page.as_ref().and_then(|page| page.preflight(&server.settings, &method, request.headers()));
    let (holder, mut response) = match preflight {
        Some(allowed) => (None, allowed),
        None => match authenticate(&server, Asking::by(&request)).await {
            Ok(holder) => {
                server.throttle.wait(&holder, begun).await;
                let response = endpoint::answer(&server, &gate, &holder, request).await;
                (Some(holder), response)
            }
            Err(refused) => (None, *refused),
        },
    };
    let (status, time) = (response.status().as_u16(), begun.elapsed());
    if let Some(counts) = &server.counts {
        counts.answered(method.as_str(), status, time);
    }
    tracing::info!(
        request_id = name.to_str().unwrap_or_default(),
        instance = server.settings.instance,
        %method,
        path = server.settings.path,
        status,
        duration_ms = time.as_secs_f64() * 1_000.0,
        owner_hash = holder.as_ref().map(|holder| holder.owner.to_string()),
        token = holder.as_ref().map(|holder| &*holder.name),
        trace_id = response.extensions().get().map(TraceContext::trace_id),
        "http_request_stop"
    );
    response.headers_mut().insert(REQUEST, name);
    if let Some(page) = page {
        response = page.mark(response);
    }
    // The client reconnects, and reaches another server.
    if is_last || server.is_draining() {
        return reply::with(response, header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

const REQUEST: HeaderName = HeaderName::from_static("x-request-id");

/// Longest request id that is taken over, in bytes.
const LONGEST_NAME: usize = 128;

/// The request id that the client or a proxy sent, or a new unique one.
fn request_name(server: &HttpServer, headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(REQUEST).filter(|name| name.len() <= LONGEST_NAME && name.to_str().is_ok());
    given.cloned().unwrap_or_else(|| {
        let number = server.requests.fetch_add(1, Ordering::Relaxed);
        // Hexadecimal digits are a valid header value.
        HeaderValue::try_from(format!("{:x}-{number:x}", server.boot))
            .unwrap_or(HeaderValue::from_static("-"))
    })
}
