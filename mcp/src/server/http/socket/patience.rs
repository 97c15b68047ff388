//! Clients that send the head of a request, or read their answer, so slowly that they do nothing but hold a connection.

use axum::body::Bytes;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes of an answer a second that a client has to read at least, beyond the time that it may take anyway: one byte now
/// and then buys next to nothing.
const SLOWEST_READER: u64 = 1 << 10;

/// How many requests of a connection were begun and have ended; while one is worked on, no time of the client runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Worked(Arc<WorkedCounts>);

#[derive(Debug, Default)]
struct WorkedCounts {
    begun: AtomicUsize,
    ended: AtomicUsize,
    reading: AtomicBool,
}

impl Worked {
    /// One more, as long as the guard lives.
    pub(super) fn enter(&self) -> WorkedGuard {
        self.0.begun.fetch_add(1, Ordering::AcqRel);
        WorkedGuard(self.clone())
    }

    /// How many were begun.
    pub(super) fn begun(&self) -> usize {
        self.0.begun.load(Ordering::Acquire)
    }

    /// True while the head of a request is there in part.
    pub(super) fn is_reading(&self) -> bool {
        self.0.reading.load(Ordering::Acquire)
    }

    /// True while a request is worked on.
    pub(super) fn is_any(&self) -> bool {
        self.begun() != self.0.ended.load(Ordering::Acquire)
    }
}

/// See [`Worked::enter`].
#[derive(Debug)]
pub(super) struct WorkedGuard(Worked);

impl Drop for WorkedGuard {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

/// A stream that fails when the other side takes too long over something it has begun.
pub(super) struct Patient<S> {
    inner: S,
    /// What was read before, and comes first.
    unread: Bytes,
    worked: Worked,
    /// How many requests had begun when something was read last.
    begun: usize,
    timeout: Duration,
    /// When the head of a request was begun that is not there yet.
    head: Option<Instant>,
    /// Since when an answer could not be written as it was, and how much of it was nevertheless.
    stuck: Option<(Instant, u64)>,
    /// There while one of the two is.
    clock: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// A stream of which this was read before.
    pub(super) fn new(inner: S, unread: Bytes, worked: Worked, timeout: Duration) -> Patient<S> {
        Patient { inner, unread, worked, begun: 0, timeout, head: None, stuck: None, clock: None }
    }

    /// The stream itself.
    pub(super) fn into_inner(self) -> S {
        self.inner
    }

    fn set_head(&mut self, head: Option<Instant>) {
        self.head = head;
        self.worked.0.reading.store(head.is_some(), Ordering::Release);
    }

    /// Ready when this moment is over.
    fn is_over(&mut self, end: Instant, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if clock.deadline() != end {
            clock.as_mut().reset(end);
        }
        clock.as_mut().poll(context)
    }

    /// Looks at a write, of which `taken` says how many bytes were taken. That is not yet the end of waiting for the
    /// client, even if all were: over TLS they may go no further than into a buffer.
    fn written<T>(
        &mut self,
        result: Poll<io::Result<T>>,
        taken: impl Fn(&T) -> usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match result {
            Poll::Ready(Ok(value)) => {
                if let Some((_, bytes)) = &mut self.stuck {
                    *bytes += taken(&value) as u64;
                }
                Poll::Ready(Ok(value))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let (since, bytes) = *self.stuck.get_or_insert_with(|| (Instant::now(), 0));
                let bought = Duration::from_millis(bytes.saturating_mul(1_000) / SLOWEST_READER);
                ready!(self.is_over(since + self.timeout + bought, context));
                Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client does not read")))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
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
        let begun = self.worked.begun();
        if std::mem::replace(&mut self.begun, begun) != begun {
            self.set_head(None);
        }
        if self.worked.is_any() {
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
        ready!(self.is_over(end, context));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client does not send on")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.written(result, |taken| *taken, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(context, parts);
        self.written(result, |taken| *taken, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    // Whoever has written all that there was flushes; then it is on its way, over TLS too.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_flush(context);
        if matches!(result, Poll::Ready(Ok(()))) && self.stuck.take().is_some() && self.head.is_none() {
            self.clock = None;
        }
        self.written(result, |()| 0, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_shutdown(context);
        self.written(result, |()| 0, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_runtime::tasks::{self, TaskOwner};
    use rustls::crypto::ring;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore, ServerConfig};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    const TIMEOUT: Duration = Duration::from_secs(15);

    /// Bytes that are on their way at once.
    const ON_THE_WAY: usize = 64;

    trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
    impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

    /// A server's stream and what its client reads of it from the wire: plain, and over TLS.
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
        // Nobody reads them.
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

    /// Writes so many bytes in pieces of this size, and waits until they are on their way.
    async fn write(ours: Box<dyn Stream>, bytes: usize, piece: usize) -> io::Result<()> {
        let mut ours = Patient::new(ours, Bytes::new(), Worked::default(), TIMEOUT);
        for _ in 0..bytes / piece {
            ours.write_all(&vec![0; piece]).await?;
        }
        ours.flush().await
    }

    /// Reads so many bytes at a time, as often as that, until there are no more.
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
