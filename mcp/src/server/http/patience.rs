//! Clients that send the head of a request, or read their answer, so slowly that they do nothing but hold a connection.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How many requests of a connection were begun and have ended; while one is worked on, no time of the client runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Worked(Arc<WorkedCounts>);

#[derive(Debug, Default)]
struct WorkedCounts {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Worked {
    /// One more, as long as the guard lives.
    pub(super) fn enter(&self) -> WorkedGuard {
        self.0.begun.fetch_add(1, Ordering::AcqRel);
        WorkedGuard(self.clone())
    }

    fn begun(&self) -> usize {
        self.0.begun.load(Ordering::Acquire)
    }

    fn is_any(&self) -> bool {
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
    worked: Worked,
    /// How many requests had begun when something was read last.
    begun: usize,
    timeout: Duration,
    /// When the head of a request was begun that is not there yet.
    head: Option<Instant>,
    /// Since when nothing could be written.
    stuck: Option<Instant>,
    /// There while one of the two is.
    clock: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(inner: S, worked: Worked, timeout: Duration) -> Patient<S> {
        // A connection that says nothing at all holds its place no longer than one whose first head never ends.
        Patient { inner, worked, begun: 0, timeout, head: Some(Instant::now()), stuck: None, clock: None }
    }

    /// Ready when the time is over that began then.
    fn is_over(&mut self, since: Instant, context: &mut Context<'_>) -> Poll<()> {
        let end = since + self.timeout;
        let clock = self.clock.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if clock.deadline() != end {
            clock.as_mut().reset(end);
        }
        clock.as_mut().poll(context)
    }

    fn progress(&mut self) {
        self.stuck = None;
        if self.head.is_none() {
            self.clock = None;
        }
    }

    fn written<T>(&mut self, result: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.progress();
            return result;
        }
        let since = *self.stuck.get_or_insert_with(Instant::now);
        ready!(self.is_over(since, context));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(context, buffer);
        let begun = self.worked.begun();
        if std::mem::replace(&mut self.begun, begun) != begun {
            self.head = None;
        }
        if self.worked.is_any() {
            return result;
        }
        if result.is_ready() {
            if buffer.filled().len() > before {
                self.head.get_or_insert_with(Instant::now);
            }
            return result;
        }
        let Some(since) = self.head else { return Poll::Pending };
        ready!(self.is_over(since, context));
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
        self.written(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(context, parts);
        self.written(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_flush(context);
        self.written(result, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_shutdown(context);
        self.written(result, context)
    }
}
