//! The delay server, which answers each call after a fixed time, over HTTP; and a minimal HTTP client that
//! only posts requests to it.

use super::delay_server;
use crate::measure::programs::Program;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Listens, passes the port to `say`, and serves until the process ends.
///
/// # Errors
/// No port to listen at; errors of `say`.
pub async fn serve(delay: Duration, say: impl FnOnce(u16) -> io::Result<()>) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    say(listener.local_addr()?.port())?;
    loop {
        let (stream, _) = listener.accept().await?;
        // The connection ends when its client closes it.
        tokio::spawn(async move { connection(stream, delay).await });
    }
}

async fn connection(mut stream: TcpStream, delay: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (input, mut output) = stream.split();
    let mut input = tokio::io::BufReader::new(input);
    while let Some((method, length)) = head(&mut input).await? {
        let mut body = vec![0; length];
        input.read_exact(&mut body).await?;
        let answer = if method == "POST" { delay_server::answer(&body) } else { None };
        let mut text = match (&answer, method.as_str()) {
            (Some((_, message)), _) => {
                let length = message.as_bytes().len();
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
                )
            }
            (None, "POST") => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
            (None, _) => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned(),
        }
        .into_bytes();
        if let Some((is_late, message)) = answer {
            text.extend_from_slice(message.as_bytes());
            if is_late {
                sleep(delay).await;
            }
        }
        output.write_all(&text).await?;
    }
    Ok(())
}

/// Reads the head of a request: its method and the length of its body; `None` at the end of the input.
async fn head(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<(String, usize)>> {
    let mut line = String::new();
    if input.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let method = line.split(' ').next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        input.read_line(&mut line).await?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
            None => return Ok(Some((method, length))),
        }
    }
}

/// The delay server as a child process; it ends when dropped.
pub struct DelayService {
    child: Child,
    port: u16,
}

impl DelayService {
    /// Starts this binary with arguments that make it serve over HTTP and print its port.
    ///
    /// # Errors
    /// A process that does not start or prints something else.
    pub fn start(arguments: &[&str]) -> io::Result<DelayService> {
        let mut child = Program::Own.command()?.args(arguments).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let port = line.trim().parse().map_err(io::Error::other)?;
        Ok(DelayService { child, port })
    }

    /// The address of the endpoint.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for DelayService {
    fn drop(&mut self) {
        // Only this client uses the server, so it ends with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The baseline client: reqwest alone, which posts requests and reads bodies.
pub struct BareHttpClient {
    client: reqwest::Client,
    url: String,
    next_id: u64,
}

impl BareHttpClient {
    /// Makes a client of the server at `url`.
    ///
    /// # Errors
    /// reqwest cannot be set up.
    pub fn new(url: String) -> io::Result<BareHttpClient> {
        // Fails when a provider is already installed, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().map_err(io::Error::other)?;
        Ok(BareHttpClient { client, url, next_id: 1 })
    }

    /// Makes calls that are all in flight at the same time.
    ///
    /// # Errors
    /// A call that failed.
    pub async fn calls(&mut self, count: usize) -> io::Result<()> {
        let mut all = JoinSet::new();
        for n in 0..count {
            let request = self.client.post(&self.url).body(delay_server::call(self.next_id, n));
            let request = request
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "application/json, text/event-stream");
            self.next_id += 1;
            all.spawn(async move { request.send().await?.error_for_status()?.bytes().await });
        }
        while let Some(done) = all.join_next().await {
            done.map_err(io::Error::other)?.map_err(io::Error::other)?;
        }
        Ok(())
    }
}
