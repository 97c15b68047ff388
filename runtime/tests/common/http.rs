//! A scripted HTTP server for tests, which can also violate HTTP.
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

use futures_util::future::BoxFuture;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    /// Number of its connection, from 0.
    pub(crate) connection: usize,
    pub(crate) method: String,
    /// Includes the query.
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// One step of an answer.
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Waits for a future.
    Until(BoxFuture<'static, ()>),
    /// Sends what the channel delivers as chunks; `None` sends the last chunk.
    Said(mpsc::UnboundedReceiver<Option<Vec<u8>>>),
    /// Sends this repeatedly until the client disconnects.
    Forever(Vec<u8>),
    /// Closes the connection, with a reset if unread data is left.
    Close,
    /// Waits until the client closes the connection.
    Hang,
}

/// The steps that answer a request; the connection is reused afterwards.
pub(crate) struct Reply(pub(crate) Vec<Step>);

impl Reply {
    /// A whole answer.
    pub(crate) fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        let body = body.as_ref();
        let mut text = head(status, headers);
        text.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
        text.extend_from_slice(body);
        Reply(vec![Step::Send(text)])
    }

    pub(crate) fn json(body: &serde_json::Value) -> Reply {
        Reply::new(200, &[("content-type", "application/json")], body.to_string())
    }

    /// The head of a chunked answer; [`chunk`] makes its chunks.
    pub(crate) fn chunked(status: u16, headers: &[(&str, &str)]) -> Reply {
        let mut text = head(status, headers);
        text.extend(b"transfer-encoding: chunked\r\n\r\n");
        Reply(vec![Step::Send(text)])
    }

    /// An event stream that stays open.
    pub(crate) fn events() -> Reply {
        Reply::chunked(200, &[("content-type", "text/event-stream")])
    }

    pub(crate) fn then(mut self, step: Step) -> Reply {
        self.0.push(step);
        self
    }

    pub(crate) fn chunk(self, data: impl AsRef<[u8]>) -> Reply {
        self.then(Step::Send(chunk(data)))
    }

    /// The last chunk.
    pub(crate) fn end(self) -> Reply {
        self.then(Step::Send(b"0\r\n\r\n".to_vec()))
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Some\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text.into_bytes()
}

/// Data as one chunk of a body.
pub(crate) fn chunk(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// The server. It ends with the test's runtime.
pub(crate) struct HttpServer {
    pub(crate) port: u16,
    scheme: &'static str,
    got: Arc<Mutex<Vec<Got>>>,
}

type Handler = dyn Fn(&Got) -> Reply + Send + Sync;

impl HttpServer {
    pub(crate) async fn new(handler: impl Fn(&Got) -> Reply + Send + Sync + 'static) -> HttpServer {
        HttpServer::start(None, Arc::new(handler)).await
    }

    pub(crate) async fn tls(
        authority: &Authority,
        handler: impl Fn(&Got) -> Reply + Send + Sync + 'static,
    ) -> HttpServer {
        HttpServer::start(Some(authority.acceptor(&[])), Arc::new(handler)).await
    }

    async fn start(tls: Option<TlsAcceptor>, handler: Arc<Handler>) -> HttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::new(Mutex::new(Vec::new()));
        let scheme = if tls.is_some() { "https" } else { "http" };
        tokio::spawn(accept(listener, tls, handler, got.clone()));
        HttpServer { port, scheme, got }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let host = if self.scheme == "https" { "localhost" } else { "127.0.0.1" };
        format!("{}://{host}:{}{path}", self.scheme, self.port)
    }

    /// All requests since the last call.
    pub(crate) fn got(&self) -> Vec<Got> {
        std::mem::take(&mut self.got.lock().unwrap())
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Arc<Handler>,
    got: Arc<Mutex<Vec<Got>>>,
) {
    let count = AtomicUsize::new(0);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (handler, got, tls) = (handler.clone(), got.clone(), tls.clone());
        let connection = count.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            match tls {
                None => serve(stream, connection, &*handler, &got).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => serve(stream, connection, &*handler, &got).await,
                    Err(_) => None,
                },
            }
        });
    }
}

/// Serves one connection to its end.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    handler: &Handler,
    log: &Mutex<Vec<Got>>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let got = request(&mut stream, connection).await?;
        log.lock().unwrap().push(got.clone());
        for step in handler(&got).0 {
            match step {
                Step::Send(bytes) => stream.write_all(&bytes).await.ok()?,
                Step::Until(future) => {
                    // A client that hangs up is noticed at once.
                    tokio::select! {
                        () = future => {}
                        _ = stream.fill_buf() => return None,
                    }
                }
                Step::Forever(bytes) => loop {
                    stream.write_all(&bytes).await.ok()?;
                },
                Step::Said(mut said) => loop {
                    let text = tokio::select! {
                        text = said.recv() => text?,
                        _ = stream.fill_buf() => return None,
                    };
                    let is_last = text.is_none();
                    let bytes = text.map_or_else(|| b"0\r\n\r\n".to_vec(), chunk);
                    stream.write_all(&bytes).await.ok()?;
                    stream.flush().await.ok()?;
                    if is_last {
                        break;
                    }
                },
                Step::Close => return None,
                Step::Hang => {
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                    return None;
                }
            }
            stream.flush().await.ok()?;
        }
    }
}

async fn request(stream: &mut (impl AsyncBufReadExt + Unpin), connection: usize) -> Option<Got> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|&bytes| bytes > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None => break,
        }
    }
    let mut got = Got { connection, method, path, headers, body: String::new() };
    let length = got.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    got.body = String::from_utf8(body).unwrap();
    Some(got)
}

/// A certificate authority for a test, and the certificates it has signed, as PEM files.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
    root: CertificateDer<'static>,
    server: (CertificateDer<'static>, Vec<u8>),
    asks_clients: bool,
}

impl Authority {
    /// `asks_clients`: only clients with a certificate of this authority are served.
    pub(crate) fn new(asks_clients: bool) -> Authority {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let signed = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            (params.signed_by(&key, &issuer).unwrap(), key)
        };
        let (server, server_key) = signed("localhost");
        let (client, client_key) = signed("client");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        std::fs::write(folder.path().join("client.pem"), client.pem()).unwrap();
        std::fs::write(folder.path().join("client.key"), client_key.serialize_pem()).unwrap();
        Authority {
            folder,
            root: issuer.der().clone(),
            server: (server.der().clone(), server_key.serialize_der()),
            asks_clients,
        }
    }

    /// `ca.pem`, `client.pem`, `client.key`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Accepts TLS connections, with these ALPN protocols.
    pub(crate) fn acceptor(&self, protocols: &[&str]) -> TlsAcceptor {
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if self.asks_clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.root.clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let (certificate, key) = &self.server;
        let key = PrivateKeyDer::try_from(key.clone()).unwrap();
        let mut config = builder.with_single_cert(vec![certificate.clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A port without a listener.
pub(crate) async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}
