//! Shares between nodes (server processes) what changes in a session after `initialize`: whether it is closed, and the
//! level of its log messages. Every node reads the changes before it takes in the session. Ids of sessions are signed
//! and read here, too, with the key of all nodes.

use super::{Nodes, SignedSession};
use crate::protocol::log_level::LogLevel;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
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

    /// Stores what has changed in a session that may live for this time.
    pub(in crate::server::http) async fn set_note(&self, id: &str, note: SessionNote, age: Duration) {
        let Some(session) = self.read_id(id) else { return };
        let note = SessionNote { until: now().saturating_add(age.as_secs()), ..note };
        let key = format!("{PREFIX}{}", session.name());
        let changed = self.runs.change(&key, |before| {
            let before = before.and_then(|text| serde_json::from_slice::<SessionNote>(text).ok());
            let note = note.clone().after(before.unwrap_or_default());
            // Plain data.
            Ok::<_, Infallible>((serde_json::to_vec(&note).unwrap_or_default(), ()))
        });
        if let Err(error) = changed.await {
            tracing::warn!(%error, "other nodes do not know of a change of a session");
        }
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
