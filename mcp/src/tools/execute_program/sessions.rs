//! Sessions of Python scripts: namespaces that scripts of one owner share by `session_id`, with quotas and
//! expiry.

use crate::tools::CallOwner;
use crate::tools::session::arguments::{SessionFault, SessionReason};
use crate::tools::session::{SessionQuotas, random_id};
use ptc_python::guest::{NamespacePermit, NoPermit, SharedNamespace};
use ptc_runtime::sync::Locked;
use ptc_runtime::tasks::{self, TaskOwner};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// The `session_id` that begins a session.
pub(super) const NEW: &str = "new";

/// The open sessions of scripts.
pub struct ScriptSessions {
    quotas: SessionQuotas,
    open: Mutex<HashMap<String, Arc<ScriptSession>>>,
}

/// An open session.
pub(super) struct ScriptSession {
    pub(super) id: String,
    owner: CallOwner,
    pub(super) namespace: Arc<SharedNamespace>,
    expires: Instant,
    used: Mutex<Instant>,
}

impl ScriptSessions {
    /// Makes an empty table.
    pub fn new(quotas: SessionQuotas) -> Arc<ScriptSessions> {
        Arc::new(ScriptSessions { quotas, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<ScriptSession>>> {
        self.open.locked()
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
            id => {
                let open = sessions.open();
                let own = open.get(id).filter(|session| session.owner == owner).cloned();
                own.ok_or_else(|| {
                    SessionFault::new(SessionReason::NotFound, "no such session, or it has ended")
                })?
            }
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
                sessions.close(&session.id);
                Err(SessionFault::new(SessionReason::Closed, "the process of this session has ended"))
            }
        }
    }

    fn begin(sessions: &Arc<ScriptSessions>, owner: CallOwner) -> Result<Arc<ScriptSession>, SessionFault> {
        let quotas = sessions.quotas;
        let mut open = sessions.open();
        let own = open.values().filter(|session| session.owner == owner).count();
        if open.len() as u64 >= quotas.sessions || own as u64 >= quotas.sessions_per_owner {
            let message = "there are too many sessions; end one with end_session";
            return Err(SessionFault::new(SessionReason::TooMany, message));
        }
        let now = Instant::now();
        let session = Arc::new(ScriptSession {
            id: random_id()?,
            owner,
            namespace: Arc::default(),
            expires: now.checked_add(Duration::from_millis(quotas.ttl_ms)).unwrap_or(now),
            used: Mutex::new(now),
        });
        open.insert(session.id.clone(), session.clone());
        tasks::spawn(TaskOwner::Connection, end_in_time(Arc::downgrade(sessions), Arc::downgrade(&session)));
        Ok(session)
    }

    pub(super) fn close(&self, id: &str) {
        if let Some(session) = self.open().remove(id) {
            session.namespace.end();
        }
    }

    /// When the session ends if it is not used. A running script keeps it from being idle.
    fn ends(&self, session: &ScriptSession) -> Instant {
        let used = if session.namespace.is_busy() { Instant::now() } else { session.used() };
        let idle = Duration::from_millis(self.quotas.idle_ms.max(1));
        used.checked_add(idle).map_or(session.expires, |idle| idle.min(session.expires))
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

/// Ends a session when it expires.
async fn end_in_time(sessions: Weak<ScriptSessions>, session: Weak<ScriptSession>) {
    loop {
        let (Some(table), Some(kept)) = (sessions.upgrade(), session.upgrade()) else { return };
        let ends = table.ends(&kept);
        if ends <= Instant::now() {
            return table.close(&kept.id);
        }
        drop((table, kept));
        tokio::time::sleep_until(ends.into()).await;
    }
}
