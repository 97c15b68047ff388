//! Sends HTTP requests over pooled connections, and follows redirects only to allowed addresses, without secret headers
//! at another origin.

use super::address::{AddressClass, class_of_literal};
use super::connector::Connector;
use super::error::THROUGH_PROXY;
use super::{Headers, NetError, NetFault, Payload, Response, TlsOptions};
use h2::Reason;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::{Method, StatusCode, Uri};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpInfo;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::error::Error;
use std::time::Duration;
use tower_http::decompression::{Decompression, DecompressionBody};
use tower_service::Service;
use url::Url;

/// Time limit of connecting, unless configured.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an unused connection is retained. Node.js and uvicorn close theirs after 5 s: one that is closed while a
/// request is on its way loses a call, which cannot be repeated safely.
const KEEP_IDLE: Duration = Duration::from_secs(4);

/// Most redirects of one request.
const REDIRECTS: usize = 5;

/// How often a request is repeated that the server has not looked at.
const REFUSALS: usize = 2;

/// How to make a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// Certificates.
    pub tls: TlsOptions,
    /// `http://host:port`; otherwise HTTP_PROXY, HTTPS_PROXY and NO_PROXY hold.
    pub proxy: Option<Url>,
    /// Time limit of connecting, including TLS; 5 s by default.
    pub connect_timeout: Option<Duration>,
    /// How long a body that is being read may be silent; no limit by default.
    pub idle_timeout: Option<Duration>,
}

/// Connections to servers. Clones share them.
#[derive(Clone)]
pub struct HttpClient {
    client: Connections,
    connector: Connector,
    idle: Option<Duration>,
    /// Redirects to another origin are an error.
    stays: bool,
    /// 302 and 303 name the place of a result (see [`HttpClient::finding_results`]).
    finds_results: bool,
}

type Connections = Decompression<legacy::Client<Connector, Payload>>;

fn connections(connector: Connector) -> Connections {
    let client = legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(KEEP_IDLE)
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .http2_adaptive_window(true)
        .build(connector);
    Decompression::new(client).gzip(true)
}

/// A response with its decompressed body.
pub(super) type Answer = hyper::Response<DecompressionBody<Incoming>>;

/// The user agent.
const OURSELVES: &str = concat!("ptc/", env!("CARGO_PKG_VERSION"));

impl HttpClient {
    /// A client without connections. Reads the files that the options name.
    ///
    /// # Errors
    /// [`NetFault::Setup`]: a file that cannot be read or is something else.
    pub fn new(options: &ClientOptions) -> Result<HttpClient, NetError> {
        let patience = options.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
        let connector = Connector::new(&options.tls, options.proxy.as_ref(), patience)?;
        let client = connections(connector.clone());
        Ok(HttpClient { client, connector, idle: options.idle_timeout, stays: false, finds_results: false })
    }

    /// A client for addresses that a server of this class has named, instead of a person: it goes only where the server
    /// may lead (see `address`), and follows no redirect to another origin. It has connections of its own.
    pub fn led_by(&self, from: AddressClass) -> HttpClient {
        let connector = self.connector.behind(from);
        HttpClient { client: connections(connector.clone()), connector, stays: true, ..self.clone() }
    }

    /// The same client, but it follows no redirect to another origin.
    pub fn within_origin(&self) -> HttpClient {
        HttpClient { stays: true, ..self.clone() }
    }

    /// The same client for a service that answers 302 and 303 when it has done what it was asked for, and names the place
    /// of the result: a GET goes there, so nothing is done twice.
    pub fn finding_results(&self) -> HttpClient {
        HttpClient { finds_results: true, ..self.clone() }
    }

    /// Fails if requests to this address are not allowed (see [`HttpClient::led_by`]).
    pub async fn check(&self, url: &Url) -> Result<(), NetError> {
        let Ok(to) = url.as_str().parse() else { return Ok(()) };
        let checked = self.connector.check(&to).await;
        checked.map_err(|error| NetError::new(NetFault::Redirect, format!("{error} ({})", place(url))))
    }

    /// Sends a request and waits for the headers of its answer, of whatever status. `headers` are all but those that
    /// say how long the body is. Dropping the future gives the request up.
    ///
    /// Redirects keep method and body (see also [`HttpClient::finding_results`]). They are followed within their origin; a
    /// GET is also followed elsewhere, but without the headers that are secret, never from https to http, and never from a
    /// public address into a network that is not (see `address`). After 301 and 302 a PUT or DELETE is not made again: the
    /// address may be that of its result.
    pub async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &Headers,
        body: Option<Payload>,
    ) -> Result<Response, NetError> {
        let (mut url, mut client) = (url.clone(), self.client.clone());
        let (mut method, mut headers, mut body) = (method, headers.clone(), body);
        for _ in 0..=REDIRECTS {
            let place = place(&url);
            let to: Uri = url.as_str().parse().map_err(|_| {
                NetError::new(NetFault::Setup, format!("an address that no request may have ({place})"))
            })?;
            let mut refusals = 0;
            let response = loop {
                let mut request = hyper::Request::new(body.clone().unwrap_or_default());
                *request.method_mut() = method.clone();
                *request.uri_mut() = to.clone();
                *request.headers_mut() = headers.map();
                self.complete(request.headers_mut(), &to);
                // The client is always ready: it manages its connections itself.
                match client.call(request).await {
                    Ok(answer) => break answer,
                    // The server has not begun to work on it.
                    Err(error) if refusals < REFUSALS && is_refused(&error) => refusals += 1,
                    Err(error) => return Err(self.failed(&error, &url, &place)),
                }
            };
            if self.finds_results && names_result(response.status(), &method) {
                (method, body) = (Method::GET, None);
                headers.remove(CONTENT_TYPE);
                headers.remove(CONTENT_LENGTH);
            }
            let Some(next) = target(&response, &url, &method)? else {
                let class = self.class(&response, &url);
                return Ok(Response::new(response, url, class, place, self.idle));
            };
            if next.origin() != url.origin() {
                allow_elsewhere(&method, &url, &next)?;
                if self.stays {
                    let text = format!("from {place} to {}, another origin", shown(&next));
                    return Err(NetError::new(NetFault::Redirect, text));
                }
                // Secrets do not come back, wherever the further redirects lead.
                headers = headers.public();
                // A connection to the target of a redirect is not used again.
                client = connections(self.connector.behind(self.class(&response, &url)));
            }
            url = next;
        }
        Err(NetError::new(NetFault::Redirect, format!("more than {REDIRECTS} times ({})", place(&url))))
    }

    /// What can reach the host that answered; unknown behind a proxy, which resolves names itself.
    fn class(&self, response: &Answer, url: &Url) -> AddressClass {
        let is_proxied = url.as_str().parse().is_ok_and(|to| self.connector.is_proxied(&to));
        match response.extensions().get::<HttpInfo>().filter(|_| !is_proxied) {
            Some(peer) => AddressClass::of(peer.remote_addr().ip()),
            None => url.host_str().and_then(class_of_literal).unwrap_or(AddressClass::Public),
        }
    }

    /// Adds the headers that each request has.
    fn complete(&self, headers: &mut HeaderMap, to: &Uri) {
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(OURSELVES));
        if let Some(authorization) = self.connector.proxy_authorization(to) {
            headers.entry(PROXY_AUTHORIZATION).or_insert(authorization);
        }
    }

    /// Why a request was not answered. Without a connection to the proxy the fault is the proxy's, not the host's.
    fn failed(&self, error: &legacy::Error, url: &Url, place: &str) -> NetError {
        let proxy = url.as_str().parse().ok().and_then(|to| self.connector.proxy_of(&to));
        match proxy.filter(|_| error.is_connect()) {
            Some(proxy) => NetError::of_request(error, &format!("{place}{THROUGH_PROXY}{proxy}")),
            None => NetError::of_request(error, place),
        }
    }
}

/// Whether a server of HTTP/2 reports that it has not looked at a request: it ends the connection in order, as many proxies
/// do after some number of requests, or it takes no more streams.
fn is_refused(error: &legacy::Error) -> bool {
    let mut source: Option<&(dyn Error + 'static)> = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<h2::Error>() {
            let is_end = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
            let is_full = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
            return error.is_remote() && (is_end || is_full);
        }
        source = cause.source();
    }
    false
}

/// Whether a response to this method says that the work is done, and where its result is.
fn names_result(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => *method != Method::HEAD,
        StatusCode::FOUND => matches!(*method, Method::POST | Method::PATCH),
        _ => false,
    }
}

/// The target of a redirect.
fn target(response: &Answer, url: &Url, method: &Method) -> Result<Option<Url>, NetError> {
    let status = response.status();
    let keeps_method = match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        // Browsers make a GET of a POST here; a server that moved its endpoint does not mean that. Many services answer a
        // DELETE or PUT in this way when it is done.
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => !matches!(*method, Method::PUT | Method::DELETE),
        StatusCode::SEE_OTHER => *method == Method::GET,
        _ => return Ok(None),
    };
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let wrong = |text: String| Err(NetError::new(NetFault::Redirect, text));
    let next = location.to_str().ok().and_then(|location| url.join(location).ok());
    match next.filter(|next| matches!(next.scheme(), "http" | "https")) {
        None => wrong(format!("to no address of HTTP ({})", place(url))),
        Some(next) if !keeps_method => {
            wrong(format!("a {method} with {} to {}", status.as_u16(), shown(&next)))
        }
        Some(next) => Ok(Some(next)),
    }
}

/// Whether a request may go on at another origin.
fn allow_elsewhere(method: &Method, from: &Url, next: &Url) -> Result<(), NetError> {
    let why = if from.scheme() == "https" && next.scheme() != "https" {
        "which is not https"
    } else if *method != Method::GET {
        "another origin, which is sent nothing"
    } else {
        return Ok(());
    };
    Err(NetError::new(NetFault::Redirect, format!("from {} to {}, {why}", place(from), shown(next))))
}

/// `host:port`.
fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// An address without the parts that may hold secrets.
pub(crate) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
