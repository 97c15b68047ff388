//! Receives the result of an OAuth login on a local port: redirects the browser to the authorization server, and waits
//! until that server redirects it back (RFC 8252, section 7.3).
//!
//! Other users of this machine reach the listener too, and any web page can lead a browser to it. So the address that
//! leads to the login is not guessable, `Host` has to name this machine, and connections of other users are closed where
//! the system says that they are.

use crate::net::Url;
use crate::net::peer::is_of_another_user;
use crate::oauth::flow::code::PendingLogin;
use crate::oauth::login::ServerLogin;
use crate::oauth::random;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The path of the redirect address.
const CALLBACK: &str = "/callback";

/// Size limit of a request.
const REQUEST_BYTES: usize = 16 << 10;

/// Time limit of one request: browsers open connections that they do not use.
const PATIENCE: Duration = Duration::from_secs(5);

/// Limit of connections at once.
const MOST_VISITS: usize = 64;

/// A listener for one login.
pub struct LoopbackListener {
    listener: TcpListener,
    port: u16,
    /// The path that leads to the authorization server.
    start: String,
    /// The port was given, so the client is registered with the name of this machine.
    is_named: bool,
}

impl LoopbackListener {
    /// Listens on a port of loopback; 0 is any.
    ///
    /// # Errors
    /// The port is taken.
    async fn bind(port: u16, is_named: bool) -> io::Result<LoopbackListener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = listener.local_addr()?.port();
        let start = random::unregistered().map_err(io::Error::other)?;
        Ok(LoopbackListener { listener, port, start: format!("/{}", start.expose()), is_named })
    }

    /// The address that the authorization server sends the browser back to.
    pub fn redirect_uri(&self) -> String {
        // Clients that are registered by hand have the name of this machine in it, as hosts document it.
        let host = if self.is_named { "localhost" } else { "127.0.0.1" };
        format!("http://{host}:{}{CALLBACK}", self.port)
    }

    /// The address for the browser, which leads to the authorization server. It holds no state and no token.
    pub fn start_address(&self) -> String {
        format!("http://{}:{}{}", Ipv4Addr::LOCALHOST, self.port, self.start)
    }

    /// Waits for the answer to this login, and gives its query. Answers with another state are refused and do not end
    /// the wait. The browser is answered when the login is known to be good or not: see [`Arrived::answer`].
    ///
    /// # Errors
    /// Those of the listener.
    pub async fn wait(&self, pending: &PendingLogin) -> io::Result<Arrived> {
        let mut visits = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if visits.len() < MOST_VISITS => {
                    let (stream, peer) = accepted?;
                    visits.push(self.visit(stream, peer, pending));
                }
                // The first answer ends the wait: it is the only one.
                Some(Some(arrived)) = visits.next(), if !visits.is_empty() => return Ok(arrived),
            }
        }
    }

    /// Handles one connection; gives the answer if it brings it.
    async fn visit(
        &self,
        mut stream: TcpStream,
        peer: SocketAddr,
        pending: &PendingLogin,
    ) -> Option<Arrived> {
        if is_of_another_user(peer, self.port).await {
            return None;
        }
        let read = timeout(PATIENCE, read(&mut stream)).await;
        let Visit { path, query, host } = read.ok()?.ok()??;
        let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        let page = match path.as_str() {
            // Another name leads here: a page of that name would read the answer.
            _ if !names.iter().any(|name| host.eq_ignore_ascii_case(name)) => Page::Missing,
            path if path == self.start => Page::Elsewhere(pending.address()),
            CALLBACK if pending.is_answered_by(&query) => return Some(Arrived { stream, query }),
            CALLBACK => Page::Refused("This answer belongs to another login."),
            _ => Page::Missing,
        };
        respond(&mut stream, page).await;
        None
    }
}

impl ServerLogin {
    /// Listens for the answer of a login: on the configured port, or on the port with which the client of the last login
    /// is registered, or on any.
    ///
    /// # Errors
    /// The configured port is taken.
    pub async fn listen(&self) -> io::Result<LoopbackListener> {
        if let Some(port) = self.inner().settings.redirect_port {
            return LoopbackListener::bind(port, true).await;
        }
        let stored = self.inner().stored().await.ok().flatten();
        let address = stored.and_then(|stored| Url::parse(&stored.client.redirect_uri?).ok());
        let port = address.and_then(|address| address.port()).unwrap_or_default();
        match LoopbackListener::bind(port, false).await {
            Ok(listener) => Ok(listener),
            Err(_) => LoopbackListener::bind(0, false).await,
        }
    }
}

/// The answer of a login, whose browser still waits.
pub struct Arrived {
    stream: TcpStream,
    query: String,
}

impl Arrived {
    /// The query of the answer.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Tells the browser how the login ended.
    pub async fn answer(mut self, is_good: bool) {
        let page = match is_good {
            true => Page::Done,
            false => Page::Refused("The login failed. ptc says why."),
        };
        respond(&mut self.stream, page).await;
    }
}

/// What a browser is answered.
enum Page<'a> {
    Elsewhere(&'a Url),
    Done,
    Refused(&'static str),
    Missing,
}

/// What a browser asks for.
struct Visit {
    path: String,
    query: String,
    host: String,
}

/// Reads a GET request. `None` for anything else.
async fn read(stream: &mut TcpStream) -> io::Result<Option<Visit>> {
    let mut text = Vec::new();
    while !text.windows(4).any(|end| end == b"\r\n\r\n") {
        if text.len() > REQUEST_BYTES || stream.read_buf(&mut text).await? == 0 {
            return Ok(None);
        }
    }
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some("GET"), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    });
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Ok(None) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Some(Visit { path: path.to_owned(), query: query.to_owned(), host }))
}

async fn respond(stream: &mut TcpStream, page: Page<'_>) {
    let (status, location, text) = match page {
        Page::Elsewhere(url) => ("302 Found", Some(url), "Log in there."),
        Page::Done => ("200 OK", None, "Logged in. You can close this window."),
        Page::Refused(text) => ("400 Bad Request", None, text),
        Page::Missing => ("404 Not Found", None, "There is nothing here."),
    };
    let location = location.map(|url| format!("location: {url}\r\n")).unwrap_or_default();
    let body = format!("<!doctype html><meta charset=utf-8><title>ptc</title><p>{text}</p>");
    let answer = format!(
        "HTTP/1.1 {status}\r\n{location}content-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
        cache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\n\
        connection: close\r\n\r\n{body}",
        body.len()
    );
    // A browser that has gone gets no answer.
    let _ = timeout(PATIENCE, async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}
