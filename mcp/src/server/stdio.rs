//! One connection over standard input and output.
//!
//! A single task owns everything of the connection: no lock, and no log line is formatted unless its
//! level is on. Each wake-up takes all input and all finished programs that are there, and sends their
//! answers as one write.

use super::admission::{Admission, Load};
use super::lines::{self, Input};
use super::output::Output;
use crate::engine::Engine;
use crate::protocol::handler::{Action, Handler, Session};
use crate::protocol::{FrameError, Message, Reply, frame, reply::RpcError};
use std::io::{self, Read, Write};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long requests in flight may take after the client has closed its side.
const GRACE: Duration = Duration::from_secs(2);

/// Events handled before the answers go out, so that a flood of input cannot hold them back.
const TURN: usize = 256;

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct StdioConfig {
    /// Longest line.
    pub max_frame_bytes: usize,
    /// Admission.
    pub load: Load,
}

/// Serves one connection until its input ends, `exit` arrives, the client stops reading, or `stop`
/// resolves; then answers what is in flight, within a grace of 2 s.
pub async fn serve<E: Engine>(
    engine: &E,
    handler: &Handler,
    config: StdioConfig,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut input = lines::spawn_reader(input, config.max_frame_bytes)?;
    let output = Output::spawn(output)?;
    let mut connection = Connection {
        handler,
        config,
        session: Session::default(),
        admission: Admission::new(engine, config.load),
        out: Vec::new(),
        open: true,
    };
    connection.run(&mut input, &output, stop).await;
    let flushed = tokio::time::timeout(GRACE, output.finish()).await;
    if flushed.is_err() {
        tracing::warn!("client does not read its answers; giving up");
    }
    Ok(())
}

struct Connection<'e, E> {
    handler: &'e Handler,
    config: StdioConfig,
    session: Session,
    admission: Admission<'e, E>,
    out: Vec<u8>,
    open: bool,
}

impl<E: Engine> Connection<'_, E> {
    async fn run(
        &mut self,
        input: &mut mpsc::Receiver<Input>,
        output: &Output,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut deadline: Option<Instant> = None;
        loop {
            if !self.open && deadline.is_none() {
                tracing::debug!("input has ended");
                deadline = Some(Instant::now() + GRACE);
            }
            if output.is_closed() || (!self.open && self.admission.is_idle()) {
                break;
            }
            let end = deadline.unwrap_or_else(Instant::now);
            tokio::select! {
                batch = input.recv(), if self.open && output.has_room() => self.take(batch),
                (ticket, outcome) = self.admission.next() => {
                    let reply = self.handler.finish(&ticket, outcome);
                    self.out.extend_from_slice(reply.as_bytes());
                }
                () = output.progress() => {}
                () = tokio::time::sleep_until(end), if deadline.is_some() => {
                    tracing::warn!("requests still in flight at the end of the grace period are dropped");
                    break;
                }
                () = &mut stop, if self.open => self.open = false,
            }
            self.take_what_is_there(input, output);
            if !self.out.is_empty() {
                output.send(std::mem::take(&mut self.out));
            }
        }
    }

    fn take_what_is_there(&mut self, input: &mut mpsc::Receiver<Input>, output: &Output) {
        for _ in 0..TURN {
            let mut idle = true;
            if let Some((ticket, outcome)) = self.admission.try_next() {
                let reply = self.handler.finish(&ticket, outcome);
                self.out.extend_from_slice(reply.as_bytes());
                idle = false;
            }
            if self.open
                && output.has_room()
                && let Ok(batch) = input.try_recv()
            {
                self.take(Some(batch));
                idle = false;
            }
            if idle {
                return;
            }
        }
    }

    fn take(&mut self, batch: Option<Input>) {
        match batch {
            None => self.open = false,
            Some(Input::Oversize) => self.reject(FrameError::Parse),
            Some(Input::Lines(lines)) => {
                for line in lines::split(&lines) {
                    self.line(line);
                    if !self.open {
                        return;
                    }
                }
            }
        }
    }

    fn line(&mut self, line: &[u8]) {
        if line.len() > self.config.max_frame_bytes {
            return self.reject(FrameError::Parse);
        }
        let message = match frame::parse(line) {
            Ok(message) => message,
            Err(error) => return self.reject(error),
        };
        if let Message::Request { id, .. } = &message
            && self.admission.contains(id)
        {
            return self.send(&Reply::error(Some(id), &RpcError::duplicate_id(id)));
        }
        match self.handler.handle(message, &mut self.session) {
            Action::None => {}
            Action::Reply(reply) => self.send(&reply),
            Action::Cancel(id) => self.admission.cancel(&id),
            Action::Exit => self.open = false,
            Action::Run(call) => {
                if let Err((ticket, in_flight)) = self.admission.admit(*call) {
                    self.send(&self.handler.busy(&ticket, in_flight));
                }
            }
        }
    }

    fn reject(&mut self, error: FrameError) {
        tracing::debug!(?error, "malformed frame");
        self.send(&Reply::error(None, &error.into()));
    }

    fn send(&mut self, reply: &Reply) {
        self.out.extend_from_slice(reply.as_bytes());
    }
}
