//! Ends a session at all processes that share its store.
//!
//! A session is over once the store says so: no process opens it or adds to it from then on. The process that ends it
//! sends a message, at which others look whether they have it. A message may be lost, so each also looks after that, and
//! now and then at the sessions in which a program is under way. The message has only a digest of the id: what it says
//! counts as a reason to look, and as no more.

use super::counted;
use super::fault::SessionFault;
use super::stored::{StoredSession, key_of, remove_until_done, stored_session, unavailable};
use super::table::{Closed, OpenSession, SessionTable};
use crate::tools::CallOwner;
use ptc_base::digest::sha256_hex;
use ptc_base::store::MESSAGES_LOST;
use ptc_base::tasks::{self, TaskOwner};
use ptc_calls::journal::DurableRuns;
use ptc_engine::session::SessionEnd;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Begins the message that a session has ended.
const ENDED: &str = "session-ended ";

/// The pause between two looks at sessions with a program under way.
const LOOK: Duration = Duration::from_secs(1);

/// The caller has no such session.
struct NoSuchSession;

impl SessionTable {
    /// Ends a session of this or another process, also one that cannot be restored. In this process its program is
    /// cancelled at once.
    ///
    /// # Errors
    /// There is no such session; the store cannot be written, so other processes may still have it.
    pub(super) async fn close_everywhere(
        self: &Arc<SessionTable>,
        owner: CallOwner,
        id: &str,
    ) -> Result<Closed, SessionFault> {
        let is_in_memory_only = self.find(owner, id).is_ok_and(|session| session.log().is_none());
        let closed = self.close(owner, id, SessionEnd::Closed);
        let Some(runs) = self.durable().filter(|_| !is_in_memory_only && super::stored::is_id(id)) else {
            return closed;
        };
        let key = key_of(id);
        let ended = runs.change(&key, |before| {
            let stored = before.and_then(|text| serde_json::from_slice::<StoredSession>(text).ok());
            let stored = stored.filter(|stored| self.may_use(owner, stored) && !stored.is_over());
            stored.map(|stored| (stored.ended(), ())).ok_or(NoSuchSession)
        });
        let why = |error| unavailable(format_args!("{error}; it may still be open: close it again"));
        if let Err(NoSuchSession) = ended.await.map_err(why)? {
            return closed;
        }
        if closed.is_err() {
            self.remember_closed(owner, id);
        }
        if runs.is_shared() {
            counted::end(runs, owner, id).await;
        }
        let (runs, id) = (runs.clone(), id.to_owned());
        tasks::spawn(TaskOwner::Process, async move {
            announce(&runs, &id).await;
            remove_until_done(&runs, &id).await;
        });
        Ok(Closed)
    }

    /// Drops sessions from memory that other processes have ended.
    pub(super) fn follow_ends(table: &Arc<SessionTable>) {
        let Some(runs) = table.durable().filter(|runs| runs.is_shared()).cloned() else { return };
        let table = Arc::downgrade(table);
        tasks::spawn(TaskOwner::Process, async move {
            while table.strong_count() > 0 {
                match runs.messages().await {
                    Ok(received) => follow(&table, &runs, received).await,
                    Err(_) => sleep(LOOK).await,
                }
            }
        });
    }

    /// Drops those of these sessions from memory that are stored no longer.
    async fn drop_ended(
        self: &Arc<SessionTable>,
        runs: &DurableRuns,
        is_looked_at: impl Fn(&OpenSession) -> bool,
    ) {
        for (owner, session) in self.every() {
            if session.is_begun()
                && is_looked_at(&session)
                && matches!(stored_session(runs, &session.id).await, Ok(None))
            {
                // It may have been closed here meanwhile.
                let _ = self.close(owner, &session.id, SessionEnd::Closed);
            }
        }
    }
}

/// Says that a session has ended. If it is lost, others find out by themselves.
async fn announce(runs: &DurableRuns, id: &str) {
    if runs.is_shared()
        && let Err(error) = runs.send(&format!("{ENDED}{}", sha256_hex(id.as_bytes()))).await
    {
        tracing::debug!(%error, "other nodes find out later that a session was closed");
    }
}

async fn follow(table: &Weak<SessionTable>, runs: &DurableRuns, mut received: broadcast::Receiver<Arc<str>>) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let text = tokio::select! {
            text = received.recv() => text.map(Some),
            _ = look.tick() => Ok(None),
        };
        let Some(table) = table.upgrade() else { return };
        match text {
            Ok(Some(text)) if *text == *MESSAGES_LOST => table.drop_ended(runs, |_| true).await,
            Ok(Some(text)) => {
                if let Some(ended) = text.strip_prefix(ENDED) {
                    let is_it = |session: &OpenSession| sha256_hex(session.id.as_bytes()) == ended;
                    table.drop_ended(runs, is_it).await;
                }
            }
            Ok(None) if table.is_empty() => {}
            Ok(None) => {
                // Makes a lost connection again.
                let _ = runs.messages().await;
                let has_program =
                    |session: &OpenSession| session.log().is_some_and(|log| log.turns.has_program());
                table.drop_ended(runs, has_program).await;
            }
            Err(broadcast::error::RecvError::Lagged(_)) => table.drop_ended(runs, |_| true).await,
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
