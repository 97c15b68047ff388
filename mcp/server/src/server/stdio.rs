//! Serves one MCP client over standard input and output: reads its messages, hands them to the message handler, and
//! writes the answers.
//!
//! A single task owns the whole connection: no lock, and no log line is formatted unless its level is on. Each
//! wake-up takes all available input and all finished jobs, and sends their answers in few writes.

use super::connection::ClientConnection;
use super::gate::Gate;
use super::handler::Handler;
use super::lines::{self, Input};
use super::output::Output;
use crate::protocol::FrameError;
use crate::redact::RedactingWriter;
use crate::tools::Facts;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How long requests in flight may take after the client has closed its side.
const GRACE: Duration = Duration::from_secs(2);

/// Rounds of input and finished jobs before the loop looks at anything else.
const TURN: usize = 256;

/// Bytes of answers that are handed to the writer while more input is available.
const ENOUGH_OUTPUT: usize = 32 << 10;

/// Serves one connection until its input ends, `exit` arrives, the client stops reading, or `stop` resolves.
/// Then it answers what is in flight, within a grace of 2 s. A line is at most `max_line_bytes` long. Each
/// value of `facts` rebuilds the tool list, and the client is notified when it has changed. The first value
/// makes a handler ready.
///
/// # Errors
/// The input cannot be read, or the answers cannot be written although the client has not closed its side.
pub async fn serve(
    handler: Arc<Handler>,
    gate: &Arc<Gate>,
    max_line_bytes: usize,
    input: impl Read + Send + 'static,
    output: RedactingWriter<impl Write + Send + 'static>,
    facts: watch::Receiver<Arc<Facts>>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let (mut input, end) = lines::spawn_reader(input, max_line_bytes)?;
    let output = Output::spawn(output)?;
    let connection = ClientConnection::new(handler.clone(), gate, max_line_bytes, Vec::new()).single_client();
    Loop { connection, handler, output: &output, unread: None }.run(&mut input, facts, stop).await;
    let flushed = tokio::time::timeout(GRACE, output.finish()).await;
    match flushed {
        Err(_) => tracing::warn!("client does not read its answers; giving up"),
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(explained("answers cannot be written", &error));
        }
        Ok(_) => {}
    }
    // Where the input goes on, nothing has failed.
    end.result().map_err(|error| explained("cannot read standard input", &error))
}

fn explained(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

struct Loop<'l> {
    connection: ClientConnection<Vec<u8>>,
    handler: Arc<Handler>,
    output: &'l Output,
    /// A batch that did not fit completely, and the offset of its first unread line.
    unread: Option<(Input, usize)>,
}

impl Loop<'_> {
    async fn run(
        mut self,
        input: &mut mpsc::Receiver<Input>,
        mut facts: watch::Receiver<Arc<Facts>>,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut deadline: Option<Instant> = None;
        let mut follow_facts = true;
        let mailbox = self.connection.mailbox();
        loop {
            let open = self.connection.open;
            if !open && deadline.is_none() {
                tracing::debug!("input has ended");
                deadline = Some(Instant::now() + GRACE);
            }
            if self.output.is_closed() || (!open && self.connection.is_idle()) {
                break;
            }
            let end = deadline.unwrap_or_else(Instant::now);
            let report = self.connection.next_report();
            let report_at = report.unwrap_or_else(Instant::now);
            tokio::select! {
                batch = input.recv(), if open && self.reads() => match batch {
                    Some(batch) => self.take_lines(batch, 0),
                    None => self.connection.close(),
                },
                () = mailbox.arrival() => {}
                () = self.output.progress() => {}
                () = tokio::time::sleep_until(report_at), if report.is_some() => self.connection.report_progress(),
                changed = facts.changed(), if follow_facts && open => match changed {
                    Ok(()) => self.describe(&facts.borrow_and_update().clone()),
                    Err(_) => follow_facts = false,
                },
                () = tokio::time::sleep_until(end), if deadline.is_some() => {
                    tracing::warn!("requests still in flight at the end of the grace period are dropped");
                    break;
                }
                () = &mut stop, if open => self.connection.close(),
            }
            self.take_what_is_there(input);
            self.output.send(self.connection.outbox());
            // Unread answers must not pile up: then neither more requests nor more jobs are started.
            self.connection.hold(!self.output.has_room());
        }
        self.output.send(self.connection.outbox());
    }

    /// True when a request would be taken now.
    fn reads(&self) -> bool {
        self.unread.is_none() && self.connection.has_room() && self.output.has_room()
    }

    fn take_what_is_there(&mut self, input: &mut mpsc::Receiver<Input>) {
        for _ in 0..TURN {
            self.connection.take_events();
            if !self.connection.open {
                return;
            }
            if let Some((batch, at)) = self.unread.take() {
                self.take_lines(batch, at);
            }
            if !self.reads() {
                return;
            }
            let Ok(batch) = input.try_recv() else { return };
            self.take_lines(batch, 0);
        }
    }

    /// Takes the lines of a batch from offset `from` on as long as there is room, and stores the rest.
    fn take_lines(&mut self, batch: Input, from: usize) {
        let (mut next, mut has_room) = (from, true);
        for (line, end) in batch.lines_from(from) {
            has_room = self.connection.has_room()
                && self.output.has_room()
                && !line.is_some_and(|line| self.connection.must_wait(line));
            if !has_room {
                break;
            }
            match line {
                Some(line) => self.connection.text(line),
                None => self.connection.reject(FrameError::Parse),
            }
            if !self.connection.open {
                return;
            }
            if self.connection.outbox().len() >= ENOUGH_OUTPUT {
                self.output.send(self.connection.outbox());
            }
            next = end;
        }
        if !has_room {
            self.unread = Some((batch, next));
        }
    }

    fn describe(&mut self, facts: &Facts) {
        match self.handler.describe(facts) {
            Ok(true) => self.connection.tools_changed(),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "the tool list could not be written"),
        }
    }
}
