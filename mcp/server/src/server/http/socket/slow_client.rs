//! Limits how slowly a client may send the head of a request or read a response, so that slow clients cannot occupy
//! connections.

use axum::body::Bytes;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes a second that a client has to read beyond the timeout, so that a byte now and then buys next to no
/// time.
const SLOWEST_READER: u64 = 1 << 10;

/// Counts the requests of a connection that began and ended. While one is being handled, the client's timeouts
/// are paused.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestCounter(Arc<RequestCounts>);

#[derive(Debug, Default)]
struct RequestCounts {
    begun: AtomicUsize,
    ended: AtomicUsize,
    reading: AtomicBool,
}

impl RequestCounter {
    /// Counts one more request as long as the guard lives.
    pub(super) fn enter(&self) -> RequestGuard {
        self.0.begun.fetch_add(1, Ordering::AcqRel);
        RequestGuard(self.clone())
    }

    /// How many requests have begun.
    pub(super) fn begun(&self) -> usize {
        self.0.begun.load(Ordering::Acquire)
    }

    /// True while a request head has arrived in part.
    pub(super) fn is_reading_head(&self) -> bool {
        self.0.reading.load(Ordering::Acquire)
    }

    /// True while a request is being handled.
    pub(super) fn is_busy(&self) -> bool {
        self.begun() != self.0.ended.load(Ordering::Acquire)
    }
}

/// See [`RequestCounter::enter`].
#[derive(Debug)]
pub(super) struct RequestGuard(RequestCounter);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

/// A stream that fails when its client is too slow with a request head or a response.
pub(super) struct TimedStream<S> {
    inner: S,
    /// Bytes that were read before; they come first.
    unread: Bytes,
    requests: RequestCounter,
    /// How many requests had begun at the last read.
    begun: usize,
    timeout: Duration,
    /// When the incomplete request head began.
    head: Option<Instant>,
    /// When a write was first blocked, and how many bytes were written since.
    blocked: Option<(Instant, u64)>,
    /// Timer while one of the two is set.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedStream<S> {
    /// Wraps a stream from which `unread` was read before.
    pub(super) fn new(
        inner: S,
        unread: Bytes,
        requests: RequestCounter,
        timeout: Duration,
    ) -> TimedStream<S> {
        TimedStream { inner, unread, requests, begun: 0, timeout, head: None, blocked: None, timer: None }
    }

    /// The inner stream.
    pub(super) fn into_inner(self) -> S {
        self.inner
    }

    fn set_head(&mut self, head: Option<Instant>) {
        self.head = head;
        self.requests.0.reading.store(head.is_some(), Ordering::Release);
    }

    /// Ready when `end` has passed.
    fn poll_deadline(&mut self, end: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if timer.deadline() != end {
            timer.as_mut().reset(end);
        }
        timer.as_mut().poll(context)
    }

    /// Updates the timeout after a write; `taken` gives the bytes that were accepted. Accepted bytes do not end
    /// the wait: over TLS they may only have reached a buffer.
    fn update_timeout<T>(
        &mut self,
        result: Poll<io::Result<T>>,
        taken: impl Fn(&T) -> usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match result {
            Poll::Ready(Ok(value)) => {
                if let Some((_, bytes)) = &mut self.blocked {
                    *bytes += taken(&value) as u64;
                }
                Poll::Ready(Ok(value))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let (since, bytes) = *self.blocked.get_or_insert_with(|| (Instant::now(), 0));
                let bought = Duration::from_millis(bytes.saturating_mul(1_000) / SLOWEST_READER);
                ready!(self.poll_deadline(since + self.timeout + bought, context));
                Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client does not read")))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = if self.unread.is_empty() {
            Pin::new(&mut self.inner).poll_read(context, buffer)
        } else {
            let room = buffer.remaining().min(self.unread.len());
            buffer.put_slice(&self.unread.split_to(room));
            Poll::Ready(Ok(()))
        };
        let begun = self.requests.begun();
        if std::mem::replace(&mut self.begun, begun) != begun {
            self.set_head(None);
        }
        if self.requests.is_busy() {
            return result;
        }
        if result.is_ready() {
            if buffer.filled().len() > before && self.head.is_none() {
                self.set_head(Some(Instant::now()));
            }
            return result;
        }
        let Some(since) = self.head else { return Poll::Pending };
        let end = since + self.timeout;
        ready!(self.poll_deadline(end, context));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client does not send on")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.update_timeout(result, |taken| *taken, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(context, parts);
        self.update_timeout(result, |taken| *taken, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    // A caller flushes after writing everything. Then the bytes are on their way, over TLS too.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_flush(context);
        if matches!(result, Poll::Ready(Ok(()))) && self.blocked.take().is_some() && self.head.is_none() {
            self.timer = None;
        }
        self.update_timeout(result, |()| 0, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_shutdown(context);
        self.update_timeout(result, |()| 0, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_base::tasks::{self, TaskOwner};
    use rustls::crypto::ring;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore, ServerConfig};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    const TIMEOUT: Duration = Duration::from_secs(15);

    /// Capacity of the test pipe.
    const ON_THE_WAY: usize = 64;

    trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
    impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

    /// A server's stream and the client's raw end of it: plain, and over TLS.
    async fn pairs() -> Vec<(Box<dyn Stream>, DuplexStream)> {
        let (ours, theirs) = duplex(ON_THE_WAY);
        let plain: (Box<dyn Stream>, _) = (Box::new(ours), theirs);
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let certificate: CertificateDer<'static> = made.cert.into();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(ring::default_provider());
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .expect("a key that fits");
        // The test client does not read session tickets.
        server.send_tls13_tickets = 0;
        let mut roots = RootCertStore::empty();
        roots.add(certificate).expect("a certificate");
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (ours, theirs) = duplex(ON_THE_WAY);
        let name = ServerName::try_from("localhost").expect("a name");
        let (ours, theirs) = tokio::join!(
            TlsAcceptor::from(Arc::new(server)).accept(ours),
            TlsConnector::from(Arc::new(client)).connect(name, theirs),
        );
        let (theirs, _) = theirs.expect("greeted").into_inner();
        vec![plain, (Box::new(ours.expect("greeted")), theirs)]
    }

    /// Writes `bytes` bytes in pieces, and waits until they are flushed.
    async fn write(ours: Box<dyn Stream>, bytes: usize, piece: usize) -> io::Result<()> {
        let mut ours = TimedStream::new(ours, Bytes::new(), RequestCounter::default(), TIMEOUT);
        for _ in 0..bytes / piece {
            ours.write_all(&vec![0; piece]).await?;
        }
        ours.flush().await
    }

    /// Reads `bytes` bytes after each pause, until the end.
    async fn read(mut theirs: DuplexStream, bytes: usize, pause: Duration) {
        let mut buffer = vec![0; bytes];
        loop {
            tokio::time::sleep(pause).await;
            if theirs.read_exact(&mut buffer).await.is_err() {
                return;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_little_now_and_then_buys_no_time() {
        for (bytes, piece) in [(1, 100_000), (ON_THE_WAY, ON_THE_WAY)] {
            for (ours, theirs) in pairs().await {
                let reading = tasks::spawn(
                    TaskOwner::Connection,
                    read(theirs, bytes, TIMEOUT - Duration::from_secs(1)),
                );
                let begun = Instant::now();
                let written = write(ours, 200_000, piece).await;
                assert_eq!(written.map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
                assert!(begun.elapsed() < 2 * TIMEOUT, "{:?}", begun.elapsed());
                reading.abort();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_on_has_time() {
        for (ours, theirs) in pairs().await {
            // 64 bytes in 20 ms are more than a client has to read.
            let reading =
                tasks::spawn(TaskOwner::Connection, read(theirs, ON_THE_WAY, Duration::from_millis(20)));
            write(ours, 200_000, 50_000).await.expect("it is read");
            reading.abort();
        }
    }
}
