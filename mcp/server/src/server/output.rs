//! Sends the messages of a connection from a writer thread, so that a client that reads slowly cannot block the server.
//! All waiting bytes go out in one write, and the number of those that still wait is known.

use crate::redact::RedactingWriter;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{Notify, mpsc, oneshot};

/// Bytes that a client may be behind before we stop reading its requests.
const MAX_BEHIND: usize = 16 << 20;

/// Most bytes that a buffer has room for before the next message.
const MOST_ROOM: usize = 64 << 10;

/// The sending side.
#[derive(Debug)]
pub struct Output {
    sender: mpsc::UnboundedSender<Vec<u8>>,
    state: Arc<OutputState>,
    finished: oneshot::Receiver<io::Result<()>>,
}

#[derive(Debug, Default)]
struct OutputState {
    behind: AtomicUsize,
    closed: AtomicBool,
    progress: Notify,
}

impl Output {
    /// Starts the writer thread. `output` redacts secrets.
    pub fn spawn(output: RedactingWriter<impl Write + Send + 'static>) -> io::Result<Output> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (done, finished) = oneshot::channel();
        let state = Arc::new(OutputState::default());
        let shared = Arc::clone(&state);
        std::thread::Builder::new().name("ptc-stdout".into()).spawn(move || {
            let written = write_all(output, receiver, &shared);
            shared.closed.store(true, Ordering::Release);
            shared.progress.notify_one();
            // The receiver is gone if the connection was given up.
            let _ = done.send(written);
        })?;
        Ok(Output { sender, state, finished })
    }

    /// Queues the bytes of a buffer, if there are any; never waits. The buffer is left empty, with room for as many again.
    pub fn send(&self, buffer: &mut Vec<u8>) {
        if buffer.is_empty() {
            return;
        }
        let room = buffer.len().min(MOST_ROOM);
        let bytes = std::mem::replace(buffer, Vec::with_capacity(room));
        self.state.behind.fetch_add(bytes.len(), Ordering::AcqRel);
        if self.sender.send(bytes).is_err() {
            self.state.closed.store(true, Ordering::Release);
        }
    }

    /// True while the client reads fast enough.
    pub fn has_room(&self) -> bool {
        self.state.behind.load(Ordering::Acquire) < MAX_BEHIND
    }

    /// True when the client has closed its side.
    pub fn is_closed(&self) -> bool {
        self.state.closed.load(Ordering::Acquire)
    }

    /// Waits until more was written, or until the client has closed its side.
    pub async fn progress(&self) {
        self.state.progress.notified().await;
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// Something could not be written; with `BrokenPipe` the client has closed its side.
    pub async fn finish(self) -> io::Result<()> {
        drop(self.sender);
        self.finished.await.unwrap_or_else(|_| Err(no_writer()))
    }

    /// [`Output::finish`] outside of async code.
    ///
    /// # Errors
    /// As there.
    pub fn finish_blocking(self) -> io::Result<()> {
        drop(self.sender);
        self.finished.blocking_recv().unwrap_or_else(|_| Err(no_writer()))
    }
}

fn no_writer() -> io::Error {
    io::Error::other("the writer of the output has ended")
}

fn write_all(
    mut output: RedactingWriter<impl Write>,
    mut receiver: mpsc::UnboundedReceiver<Vec<u8>>,
    state: &OutputState,
) -> io::Result<()> {
    while let Some(mut bytes) = receiver.blocking_recv() {
        while let Ok(more) = receiver.try_recv() {
            bytes.extend_from_slice(&more);
        }
        output.write_all(&bytes).and_then(|()| output.flush())?;
        let before = state.behind.fetch_sub(bytes.len(), Ordering::AcqRel);
        if before >= MAX_BEHIND {
            state.progress.notify_one();
        }
    }
    Ok(())
}
