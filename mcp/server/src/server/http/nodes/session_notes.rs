//! Shares between nodes (server processes) what changes in a session after `initialize`: whether it is closed, and the
//! level of its log messages. Every node reads the changes before it takes in the session. Ids of sessions are signed
//! and read here, too, with the key of all nodes.

use super::{NodeMessage, Nodes, SessionUpdate, SignedSession};
use crate::protocol::log_level::LogLevel;
use crate::server::http::HttpServer;
use crate::server::http::sessions::WebSession;
use ptc_base::store::StoreError;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Keys begin so, before the name.
const PREFIX: &str = "mcp-session/";

/// What is stored of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::server::http) struct SessionNote {
    /// The client has closed it.
    pub(in crate::server::http) is_closed: bool,
    /// The level of its log messages.
    log: Option<String>,
    /// When nothing is to be known any more, in seconds since 1970.
    until: u64,
}

impl SessionNote {
    /// A session that is closed.
    pub(in crate::server::http) fn closed() -> SessionNote {
        SessionNote { is_closed: true, ..SessionNote::default() }
    }

    /// A session with this level.
    pub(in crate::server::http) fn logging(level: LogLevel) -> SessionNote {
        SessionNote { log: Some(level.name().to_owned()), ..SessionNote::default() }
    }

    /// This change after an earlier one of the session: what it leaves open stays, and a closed session stays closed.
    fn after(self, before: SessionNote) -> SessionNote {
        SessionNote {
            is_closed: self.is_closed || before.is_closed,
            log: self.log.or(before.log),
            until: self.until.max(before.until),
        }
    }

    /// The level of its log messages.
    pub(in crate::server::http) fn log(&self) -> Option<LogLevel> {
        self.log.as_deref().and_then(LogLevel::from_name)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Nodes {
    /// The id of a new session; `None` without the key of all nodes.
    pub(in crate::server::http) fn sign(&self, session: &SignedSession) -> Option<String> {
        Some(session.signed(self.session_key()?))
    }

    /// The session with this id, if a node of this database has made it.
    pub(in crate::server::http) fn read_id(&self, id: &str) -> Option<SignedSession> {
        SignedSession::read(self.session_key()?, id)
    }

    /// What has changed in a session. A database that does not answer knows of no change.
    pub(in crate::server::http) async fn note(&self, session: &SignedSession) -> SessionNote {
        let read = self.runs.read_note(&format!("{PREFIX}{}", session.name())).await;
        let text = read.ok().flatten();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// Names of the sessions that are closed.
    pub(super) async fn closed_sessions(&self) -> Result<HashSet<String>, StoreError> {
        let closed = |(key, text): (String, Vec<u8>)| {
            let note = serde_json::from_slice::<SessionNote>(&text).ok()?;
            note.is_closed.then(|| key.strip_prefix(PREFIX).map(str::to_owned))?
        };
        Ok(self.runs.notes(PREFIX).await?.into_iter().filter_map(closed).collect())
    }

    /// Stores what has changed in a session that may live for this time.
    ///
    /// # Errors
    /// The database cannot be written, so other nodes do not know of it.
    pub(in crate::server::http) async fn set_note(
        &self,
        id: &str,
        note: SessionNote,
        age: Duration,
    ) -> Result<(), StoreError> {
        let Some(session) = self.read_id(id) else { return Ok(()) };
        let note = SessionNote { until: now().saturating_add(age.as_secs()), ..note };
        let key = format!("{PREFIX}{}", session.name());
        let changed = self.runs.change(&key, |before| {
            let before = before.and_then(|text| serde_json::from_slice::<SessionNote>(text).ok());
            let note = note.clone().after(before.unwrap_or_default());
            // Plain data.
            Ok::<_, Infallible>((serde_json::to_vec(&note).unwrap_or_default(), ()))
        });
        let Ok(()) = changed.await.inspect_err(
            |error| tracing::warn!(%error, "other nodes do not know of a change of a session"),
        )?;
        Ok(())
    }

    /// Removes what is stored of sessions that are over.
    pub(in crate::server::http) async fn sweep_notes(&self) {
        for (key, text) in self.runs.notes(PREFIX).await.unwrap_or_default() {
            let note = serde_json::from_slice::<SessionNote>(&text);
            if note.is_ok_and(|note| note.until < now()) {
                // It is tried again by the next node that starts.
                let _ = self.runs.note(&key, None).await;
            }
        }
    }
}

impl HttpServer {
    /// Closes a session at this node and at all others.
    ///
    /// # Errors
    /// The database cannot be written, so other nodes would go on with it: it is closed nowhere.
    pub(in crate::server::http) async fn close_at_all_nodes(
        &self,
        session: &Arc<WebSession>,
    ) -> Result<(), StoreError> {
        let Some(nodes) = &self.nodes else {
            self.sessions.close(session);
            return Ok(());
        };
        let (owner, name) = (session.owner.0, session.name.to_owned());
        // First, so that no node takes it in again.
        nodes.set_note(&name, SessionNote::closed(), self.sessions.age).await?;
        self.sessions.close(session);
        nodes.send(NodeMessage::Session { owner, session: name, update: SessionUpdate::Closed }).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_session_stays_closed() {
        let closed = SessionNote { until: 9, ..SessionNote::closed() };
        let level = SessionNote { until: 5, ..SessionNote::logging(LogLevel::Debug) };
        for note in [level.clone().after(closed.clone()), closed.after(level)] {
            assert!(note.is_closed && note.until == 9 && note.log().is_some(), "{note:?}");
        }
    }
}
