//! Work of a run on its way to the I/O runtime.
//!
//! A program with a thousand calls hands out a thousand pieces of work within microseconds. A task for each would cost more
//! than most of them, so pieces leave together, and what comes of them comes back together.

use super::{CallId, Reply, ReplySink};
use crate::run::RunId;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::RefCell;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Most pieces of work in one task: few enough that the threads of the I/O runtime share what a program hands out.
const MOST: usize = 32;

/// One piece, and what comes of it for its run, if anything does.
pub(super) type Departure = Pin<Box<dyn Future<Output = Option<(CallId, Reply)>> + Send>>;

/// What a run has handed out in this turn and is not on its way yet.
pub(crate) struct Departures {
    io: Handle,
    mailbox: Arc<dyn ReplySink>,
    run: RunId,
    waiting: RefCell<Vec<Departure>>,
}

impl Departures {
    pub(crate) fn new(io: Handle, mailbox: Arc<dyn ReplySink>, run: RunId) -> Departures {
        Departures { io, mailbox, run, waiting: RefCell::default() }
    }

    pub(super) fn add(&self, departure: Departure) {
        let count = {
            let mut waiting = self.waiting.borrow_mut();
            waiting.push(departure);
            waiting.len()
        };
        if count == MOST {
            self.leave();
        }
    }

    /// Sends off whatever waits. Asked for at the end of each turn, wherever the run was suspended.
    pub(crate) fn leave(&self) {
        let mut departures = self.waiting.take();
        let (mailbox, run) = (self.mailbox.clone(), self.run);
        match departures.len() {
            0 => {}
            1 => {
                let only = departures.pop();
                self.io.spawn(async move {
                    if let Some(work) = only
                        && let Some(reply) = work.await
                    {
                        mailbox.deliver(run, vec![reply]);
                    }
                });
            }
            _ => {
                let work: FuturesUnordered<Departure> = departures.into_iter().collect();
                self.io.spawn(async move {
                    let mut replies = work.filter_map(ready).ready_chunks(MOST);
                    while let Some(replies) = replies.next().await {
                        mailbox.deliver(run, replies);
                    }
                });
            }
        }
    }
}
