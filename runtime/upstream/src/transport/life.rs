//! Tracks whether the connection to a server without a process is still usable: closing it on this side fails all
//! requests, and a loss of the server is reported to the tasks that watch for it.

use crate::UpstreamFault;
use crate::transport::ConnectionEnd;
use tokio::sync::watch;

/// The life of one connection.
pub(crate) struct Life {
    closed: watch::Sender<Option<String>>,
    end: watch::Sender<Option<ConnectionEnd>>,
}

impl Life {
    pub(crate) fn new() -> Life {
        Life { closed: watch::Sender::new(None), end: watch::Sender::new(None) }
    }

    /// Fails every request, now and later. The first reason holds.
    pub(crate) fn close(&self, why: &str) {
        self.closed.send_if_modified(|closed| {
            let is_first = closed.is_none();
            closed.get_or_insert_with(|| why.to_owned());
            is_first
        });
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.borrow().is_some()
    }

    /// The work, unless the connection is closed before it has ended.
    pub(crate) async fn unless_closed<T>(&self, work: impl Future<Output = T>) -> Result<T, UpstreamFault> {
        let mut closed = self.closed.subscribe();
        tokio::select! {
            biased;
            // The sender is this very value.
            why = closed.wait_for(Option::is_some) => {
                let why = why.ok().and_then(|why| why.clone()).unwrap_or_default();
                Err(UpstreamFault::Unavailable(why))
            }
            result = work => Ok(result),
        }
    }

    /// The server is of no more use. The first reason holds.
    pub(crate) fn end(&self, why: impl Into<String>, is_orderly: bool) {
        self.end.send_if_modified(|end| {
            let is_first = end.is_none();
            end.get_or_insert_with(|| ConnectionEnd { why: why.into(), is_orderly });
            is_first
        });
    }

    /// Waits for the end. Cancel safe.
    pub(crate) async fn ended(&self) -> ConnectionEnd {
        let mut end = self.end.subscribe();
        let seen = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        match seen {
            Some(end) => end,
            // The sender is this very value.
            None => std::future::pending().await,
        }
    }
}
