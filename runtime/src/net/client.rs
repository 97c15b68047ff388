//! Requests over connections that are used again, and where a redirect may lead.

use super::{Headers, NetError, NetFault, Payload, Response, TlsOptions};
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, StatusCode, Url};
use std::time::Duration;

/// How long a connection may take when nobody says.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection that nobody uses is kept. Node.js and uvicorn close theirs after 5 s: one that is closed
/// while a request is on its way loses a call that nobody dares to repeat.
const KEEP_IDLE: Duration = Duration::from_secs(4);

/// How long a silent connection goes without asking whether the other host is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Most redirects of one request.
const REDIRECTS: usize = 5;

/// How to make a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// Certificates.
    pub tls: TlsOptions,
    /// `http://host:port`; otherwise HTTP_PROXY, HTTPS_PROXY and NO_PROXY hold.
    pub proxy: Option<Url>,
    /// How long a connection may take, TLS included; 5 s if nothing is said.
    pub connect_timeout: Option<Duration>,
    /// How long nothing may come of a body that is being read; no limit if nothing is said.
    pub idle_timeout: Option<Duration>,
}

/// Connections to servers. Clones share them.
#[derive(Clone)]
pub struct HttpClient {
    client: reqwest::Client,
    idle: Option<Duration>,
}

/// One request.
pub struct Request<'a> {
    /// GET, POST …
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// All headers but those that say how long the body is.
    pub headers: &'a Headers,
    /// What follows them.
    pub body: Option<Payload>,
}

impl HttpClient {
    /// A client without connections. Reads the files that the options name.
    ///
    /// # Errors
    /// [`NetFault::Setup`]: a file that cannot be read or is something else.
    pub fn new(options: &ClientOptions) -> Result<HttpClient, NetError> {
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(options.tls.config()?)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(options.connect_timeout.unwrap_or(CONNECT_TIMEOUT))
            .pool_idle_timeout(KEEP_IDLE)
            .tcp_keepalive(KEEPALIVE)
            .http2_adaptive_window(true)
            .user_agent(concat!("ptc/", env!("CARGO_PKG_VERSION")));
        if let Some(proxy) = &options.proxy {
            let proxy = reqwest::Proxy::all(proxy.clone());
            builder = builder.proxy(proxy.map_err(|error| NetError::classify(error, "proxy"))?);
        }
        let client = builder.build().map_err(|error| NetError::classify(error, "client"))?;
        Ok(HttpClient { client, idle: options.idle_timeout })
    }

    /// Sends a request and waits for the headers of its answer, of whatever status. Dropping the future gives the
    /// request up.
    ///
    /// Redirects keep method and body. They are followed within their origin; a GET is also followed elsewhere, but
    /// without the headers that are secret, and never from https to http.
    pub async fn send(&self, request: Request<'_>) -> Result<Response, NetError> {
        let Request { method, mut url, headers, body } = request;
        let mut sent = headers.map();
        for _ in 0..=REDIRECTS {
            let place = place(&url);
            let response = self.once(&method, &url, &sent, body.clone(), &place).await?;
            let Some(next) = target(&response, &method)? else {
                return Ok(Response::new(response, place, self.idle));
            };
            if next.origin() != url.origin() {
                allow_elsewhere(&method, &url, &next)?;
                sent = headers.public();
            }
            url = next;
        }
        Err(NetError::new(NetFault::Redirect, format!("more than {REDIRECTS} times ({})", place(&url))))
    }

    async fn once(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Option<Payload>,
        place: &str,
    ) -> Result<reqwest::Response, NetError> {
        let mut builder = self.client.request(method.clone(), url.clone()).headers(headers.clone());
        if let Some(body) = body {
            builder = builder.body(body);
        }
        builder.send().await.map_err(|error| NetError::classify(error, place))
    }
}

/// Where a response sends us.
fn target(response: &reqwest::Response, method: &Method) -> Result<Option<Url>, NetError> {
    let keeps_method = match response.status() {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        // Browsers make a GET of a POST here; a server that moved its endpoint does not mean that.
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => true,
        StatusCode::SEE_OTHER => *method == Method::GET,
        _ => return Ok(None),
    };
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let wrong = |text: String| Err(NetError::new(NetFault::Redirect, text));
    let next = location.to_str().ok().and_then(|location| response.url().join(location).ok());
    match next.filter(|next| matches!(next.scheme(), "http" | "https")) {
        None => wrong(format!("to no address of HTTP ({})", place(response.url()))),
        Some(next) if !keeps_method => wrong(format!("a {method} with 303 to {}", shown(&next))),
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

/// An address without what may be secret in it.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}
