//! Opens the connections of the HTTP client, directly or through a proxy, with or without TLS. It lets no connection
//! keep its thread busy with endless input.

use super::address::{AddressClass, ForbiddenAddress, RuledResolver, class_of_literal};
use super::{NetError, NetFault, TlsOptions};
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use std::error::Error;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop;
use tokio::time::timeout;
use tower_service::Service;
use url::Url;

/// How long a silent connection goes without asking whether the other host is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Bytes for which a read counts as one more operation of its task. Tokio gives a task 128 operations before it yields, so
/// a connection has the thread for about a megabyte. Otherwise endless interim responses would keep the loop busy that
/// reads the head of a response and does not yield by itself.
const PORTION: usize = 8 << 10;

type Fault = Box<dyn Error + Send + Sync>;

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    /// The server that leads there; `None` for a configured address.
    from: Option<AddressClass>,
    tls: Arc<ClientConfig>,
    /// For a connection to a proxy, which speaks HTTP/1.1.
    proxy_tls: Arc<ClientConfig>,
    proxies: Arc<Matcher>,
    patience: Duration,
}

impl Connector {
    /// Reads the files that the options name. Without a proxy, HTTP_PROXY, HTTPS_PROXY and NO_PROXY hold.
    pub(super) fn new(
        tls: &TlsOptions,
        proxy: Option<&Url>,
        patience: Duration,
    ) -> Result<Connector, NetError> {
        let tls = tls.config()?;
        let mut proxy_tls = tls.clone();
        proxy_tls.alpn_protocols.clear();
        let proxies = match proxy {
            Some(proxy) => Matcher::builder().all(proxy.as_str()).build(),
            None => Matcher::from_env(),
        };
        if let Some(proxy) = proxy
            && proxies.intercept(&Uri::from_static("http://example.com")).is_none()
        {
            let text = format!("proxy: no address of a proxy ({}://)", proxy.scheme());
            return Err(NetError::new(NetFault::Setup, text));
        }
        let (tls, proxy_tls) = (Arc::new(tls), Arc::new(proxy_tls));
        Ok(Connector { from: None, tls, proxy_tls, proxies: Arc::new(proxies), patience })
    }

    /// The same for a redirect, or an address that a server named: only to what a server of this class may lead to.
    pub(super) fn behind(&self, from: AddressClass) -> Connector {
        Connector { from: Some(from), ..self.clone() }
    }

    /// Whether a proxy finds the address of the host.
    pub(super) fn is_proxied(&self, to: &Uri) -> bool {
        self.proxies.intercept(to).is_some()
    }

    /// The proxy that a connection to this address goes through, as `host:port`.
    pub(super) fn proxy_of(&self, to: &Uri) -> Option<String> {
        let proxy = self.proxies.intercept(to)?;
        let (host, port) = (proxy.uri().host()?, proxy.uri().port_u16());
        Some(port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    }

    /// The credentials for the proxy that forwards requests to this address unencrypted.
    pub(super) fn proxy_authorization(&self, to: &Uri) -> Option<HeaderValue> {
        let proxy = (to.scheme_str() == Some("http")).then(|| self.proxies.intercept(to))??;
        proxy.basic_auth().cloned()
    }

    /// Fails if a connection to this address is not allowed. Nothing is connected; a name without an address fails later.
    pub(super) async fn check(&self, to: &Uri) -> Result<(), Fault> {
        let Some(host) = to.host() else { return Ok(()) };
        match (self.from, class_of_literal(host)) {
            (Some(from), Some(class)) => Ok(ForbiddenAddress::check(from, class)?),
            (None, Some(_)) => Ok(()),
            (_, None) if self.is_proxied(to) => Ok(()),
            (from, None) => match RuledResolver::new(from).call(host.parse()?).await {
                Err(error) if error.is::<ForbiddenAddress>() => Err(error),
                Ok(_) | Err(_) => Ok(()),
            },
        }
    }

    async fn connect(self, to: Uri) -> Result<TokioIo<Wire>, Fault> {
        // What is no name is not resolved; the address of a name is the proxy's to find.
        if let (Some(from), Some(class)) = (self.from, to.host().and_then(class_of_literal)) {
            ForbiddenAddress::check(from, class)?;
        }
        let Some(proxy) = self.proxies.intercept(&to) else {
            let mut direct = HttpsConnector::from((tcp(self.from, self.patience), self.tls));
            return Ok(Wire::new(direct.call(to).await?, false));
        };
        let mut before = HttpsConnector::from((tcp(None, self.patience), self.proxy_tls));
        if to.scheme_str() != Some("https") {
            return Ok(Wire::new(before.call(proxy.uri().clone()).await?, true));
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), before);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let mut through = HttpsConnector::from((tunnel, self.tls));
        Ok(Wire::new(through.call(to).await?, false))
    }
}

fn tcp(from: Option<AddressClass>, patience: Duration) -> HttpConnector<RuledResolver> {
    let mut tcp = HttpConnector::new_with_resolver(RuledResolver::new(from));
    // Of addresses with TLS, the TCP part.
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_connect_timeout(Some(patience));
    tcp
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Wire>;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Wire>, Fault>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            match timeout(connector.patience, connector.connect(to)).await {
                Ok(connected) => connected,
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        })
    }
}

trait Stream: Read + Write + Connection + Send + Unpin {}

impl<T: Read + Write + Connection + Send + Unpin> Stream for T {}

/// A connection whose reads count against the cooperative budget of its task.
pub(super) struct Wire {
    stream: TokioIo<Box<dyn Stream>>,
    /// The other end is a proxy, which expects absolute addresses.
    is_proxied: bool,
    /// Bytes that were read and not counted yet.
    owed: usize,
}

impl Wire {
    fn new(stream: impl Stream + 'static, is_proxied: bool) -> TokioIo<Wire> {
        TokioIo::new(Wire { stream: TokioIo::new(Box::new(stream)), is_proxied, owed: 0 })
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        let connected = self.stream.inner().connected();
        if self.is_proxied { connected.proxy(true) } else { connected }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.owed >= PORTION {
            ready!(coop::poll_proceed(cx)).made_progress();
            self.owed -= PORTION;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.owed += buffer.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
