//! Paths, and the order in which somebody is looked at before being let in.

use super::listen::Asking;
use super::settings::{HEALTH, READY};
use super::{HttpServer, endpoint, guard, reply};
use crate::server::gate::Gate;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use axum::routing::{any, get};
use serde_json::json;
use std::sync::Arc;

/// What every request is handled with.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) server: Arc<HttpServer>,
    pub(super) gate: Arc<Gate>,
}

/// All paths.
pub(super) fn paths(front: Front) -> Router {
    let path = front.server.settings.path.clone();
    Router::new()
        .route(HEALTH, get(health))
        .route(READY, get(ready))
        .route(&path, any(mcp))
        .fallback(async || reply::text(StatusCode::NOT_FOUND, "not found"))
        .method_not_allowed_fallback(async || {
            reply::text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        })
        .with_state(front)
}

async fn health() -> Response {
    reply::json(StatusCode::OK, br#"{"status":"ok"}"#.to_vec())
}

async fn ready(State(Front { server, .. }): State<Front>) -> Response {
    let not = |status: &str| {
        reply::json(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": status }).to_string().into_bytes())
    };
    if server.is_draining() {
        return not("draining");
    }
    if !server.handler.is_ready() {
        return not("starting");
    }
    if server.clients.are_full() {
        return not("saturated");
    }
    let ready = json!({ "status": "ready", "instance": server.settings.instance });
    reply::json(StatusCode::OK, ready.to_string().into_bytes())
}

async fn mcp(State(Front { server, gate }): State<Front>, request: Request<Body>) -> Response {
    let headers = request.headers();
    if !guard::lets_in(&server.settings, headers) {
        return reply::text(StatusCode::FORBIDDEN, "forbidden");
    }
    let Some(from) = request.extensions().get::<Asking>().map(|asking| asking.address.ip()) else {
        // Each connection says whose it is.
        return reply::text(StatusCode::INTERNAL_SERVER_ERROR, "no address");
    };
    let holder = match server.access.admit(from, headers) {
        Ok(holder) => holder,
        Err(refused) => return reply::refused(refused),
    };
    let is_last = server.is_draining();
    let response = endpoint::answer(&server, &gate, &holder, request).await;
    // Who comes again finds another connection, at another server.
    if is_last || server.is_draining() {
        return reply::with(response, header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
