//! Sessions of Python scripts: namespaces that scripts of one client (owner) share by `session_id`, with quotas and
//! expiry.

use crate::tools::CallOwner;
use crate::tools::owned_table::{Owned, OwnedTable};
use crate::tools::session::fault::{SessionFault, SessionReason};
use crate::tools::session::{SessionQuotas, session_id};
use ptc_base::sync::Locked;
use ptc_python::guest::{NamespacePermit, NoPermit, SharedNamespace};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The `session_id` that begins a session.
pub(super) const NEW: &str = "new";

/// The open sessions of scripts.
pub struct ScriptSessions {
    quotas: SessionQuotas,
    open: Arc<OwnedTable<Arc<ScriptSession>>>,
}

/// An open session.
pub(super) struct ScriptSession {
    pub(super) id: String,
    pub(super) owner: CallOwner,
    pub(super) namespace: Arc<SharedNamespace>,
    used: Mutex<Instant>,
}

impl ScriptSessions {
    /// Makes an empty table.
    pub fn new(quotas: SessionQuotas) -> Arc<ScriptSessions> {
        let end = |session: Arc<ScriptSession>, _| session.namespace.end();
        Arc::new(ScriptSessions { quotas, open: OwnedTable::new(Some(quotas.idle()), end) })
    }

    /// Takes a permit to run in the session `id`. [`NEW`] starts a session, which needs a tokio runtime for
    /// its expiry.
    pub(super) fn permit(
        sessions: &Arc<ScriptSessions>,
        owner: CallOwner,
        id: &str,
    ) -> Result<(Arc<ScriptSession>, NamespacePermit), SessionFault> {
        let session = match id {
            NEW => ScriptSessions::begin(sessions, owner)?,
            id => sessions.open.find(owner, id).ok_or_else(|| {
                SessionFault::new(SessionReason::NotFound, "no such session, or it has ended")
            })?,
        };
        match session.namespace.permit() {
            Ok(permit) => {
                session.touch();
                Ok((session, permit))
            }
            Err(NoPermit::Busy) => {
                Err(SessionFault::new(SessionReason::Busy, "a script is already running in this session"))
            }
            Err(NoPermit::Over) => {
                sessions.close(owner, &session.id);
                Err(SessionFault::new(SessionReason::Closed, "the process of this session has ended"))
            }
        }
    }

    fn begin(sessions: &Arc<ScriptSessions>, owner: CallOwner) -> Result<Arc<ScriptSession>, SessionFault> {
        let quotas = sessions.quotas;
        let session = Arc::new(ScriptSession {
            id: session_id()?,
            owner,
            namespace: Arc::default(),
            used: Mutex::new(Instant::now()),
        });
        let age = Duration::from_millis(quotas.ttl_ms);
        let inserted = sessions.open.insert((owner, &session.id), quotas.quota(), age, session.clone());
        inserted.map_err(|_| {
            let message = "there are too many sessions; end one with end_session";
            SessionFault::new(SessionReason::TooMany, message)
        })?;
        Ok(session)
    }

    pub(super) fn close(&self, owner: CallOwner, id: &str) {
        if let Some(session) = self.open.remove(owner, id) {
            session.namespace.end();
        }
    }
}

impl Owned for Arc<ScriptSession> {
    /// A running script keeps the session from being idle.
    fn last_used(&self) -> Instant {
        if self.namespace.is_busy() { Instant::now() } else { self.used() }
    }
}

impl ScriptSession {
    fn used(&self) -> Instant {
        *self.used.locked()
    }

    /// Notes that the session was used now.
    pub(super) fn touch(&self) {
        *self.used.locked() = Instant::now();
    }
}
