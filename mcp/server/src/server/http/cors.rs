//! Lets web pages of allowed origins use the server (CORS): answers the question that a browser asks before a request, and
//! marks the answers that the page may read. Origins that are allowed only because they are of this machine get neither.

use super::guard::{self, Origin, single_header};
use super::reply;
use super::settings::HttpSettings;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// Headers that clients of MCP send, in both eras, with those of a trace.
const REQUESTED: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, \
     traceparent, tracestate, x-request-id",
);

/// Headers of answers that a page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, x-request-id",
);

/// Seconds for which a browser need not ask again.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The answer to the question of a browser whether a page of any origin may get a document that is for everyone.
pub(super) fn public_preflight() -> Response {
    let allowed: [(HeaderName, HeaderValue); 4] = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
        (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET")),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, REQUESTED),
        (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    let mut response = reply::empty(StatusCode::NO_CONTENT);
    response.headers_mut().extend(allowed);
    response
}

/// The origin of a page that the settings name.
#[derive(Clone)]
pub(super) struct PageOrigin(HeaderValue);

impl PageOrigin {
    /// The origin of a request, if it is named.
    pub(super) fn of(settings: &HttpSettings, headers: &HeaderMap) -> Option<PageOrigin> {
        let text = single_header(headers, &header::ORIGIN).flatten()?;
        let is_named = Origin::parse(text).is_some_and(|origin| settings.origins.contains(&origin));
        // Browsers compare the answer with the text that they have sent.
        HeaderValue::try_from(text.trim()).ok().filter(|_| is_named).map(PageOrigin)
    }

    /// The answer to the question of a browser whether it may send a request. It carries no token.
    pub(super) fn preflight(
        &self,
        settings: &HttpSettings,
        method: &Method,
        headers: &HeaderMap,
    ) -> Option<Response> {
        let asks = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || !guard::is_allowed(settings, headers) {
            return None;
        }
        let allowed: [(HeaderName, HeaderValue); 3] = [
            (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, REQUESTED),
            (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
        ];
        let mut response = reply::empty(StatusCode::NO_CONTENT);
        response.headers_mut().extend(allowed);
        Some(response)
    }

    /// Lets the page read an answer.
    pub(super) fn mark(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        response
    }
}
