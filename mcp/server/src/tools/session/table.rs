//! Keeps the open sessions (in a session, Lisp programs can use the values that earlier ones defined), and limits how
//! many sessions an owner may open and how long they live. A session ends by its age or when it is idle for too long;
//! an owner is the holder of a token, or the client over standard input.

use super::changes::SessionLog;
use super::fault::{SessionFault, SessionReason};
use super::preludes::{FrozenPreludes, RequestedPreludes, StoreAccess};
use super::view::SessionFacts;
use crate::observe::entry::moment;
use crate::tools::CallOwner;
use crate::tools::owned_table::{self, Expired, Full, Owned, OwnedTable, Quota};
use jiff::Timestamp;
use ptc_base::digest::sha256_hex;
use ptc_base::sync::Locked;
use ptc_base::tasks::StopFlag;
use ptc_calls::journal::DurableRuns;
use ptc_calls::limit_table;
use ptc_calls::limits::Limits;
use ptc_engine::Runtime;
use ptc_engine::session::{Session, SessionEnd, SessionLimits};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

limit_table! {
    /// How many sessions a server has, and how long.
    SessionQuotas;
    /// Sessions of a server.
    sessions: Positive = 64, "max-sessions", "session_limit_exceeded";
    /// Sessions of one owner: who has one token, or a client over standard input.
    sessions_per_owner: Positive = 16, "max-sessions-per-owner", "session_limit_exceeded";
    /// How long a session lives at most.
    ttl_ms: Millis = 1_800_000, "session-ttl", "session_closed";
    /// How long a session lives in which nothing happens.
    idle_ms: Millis = 900_000, "session-idle-timeout", "session_closed";
}

/// Random bytes of an id.
const ID_BYTES: usize = 18;

/// The id of a new session.
pub(crate) fn session_id() -> Result<String, SessionFault> {
    let id = owned_table::random_id::<ID_BYTES>("ptcs_");
    id.ok_or_else(|| SessionFault::new(SessionReason::TooMany, "no random number"))
}

impl SessionQuotas {
    /// How many sessions there may be.
    pub(crate) fn quota(&self) -> Quota {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Quota { most: whole(self.sessions), most_of_owner: whole(self.sessions_per_owner) }
    }

    /// How long a session lives.
    pub(super) fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }

    /// How long a session may be idle.
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms.max(1))
    }
}

/// The open sessions of a server.
pub struct SessionTable {
    /// What runs the programs.
    pub(super) runtime: Arc<Runtime>,
    /// How many sessions there may be, and how long.
    pub(super) quotas: SessionQuotas,
    /// Limits of new sessions.
    pub(super) limits: SessionLimits,
    /// Limits of each program.
    pub(super) programs: Limits,
    /// The source of preludes for sessions.
    pub(super) stores: StoreAccess,
    open: Arc<OwnedTable<Arc<OpenSession>>>,
    /// Held while a stored session is opened, which happens once.
    pub(super) loading: tokio::sync::Mutex<()>,
}

/// An open session with its dates.
pub(super) struct OpenSession {
    pub(super) id: String,
    pub(super) title: Option<String>,
    pub(super) session: Session,
    pub(super) preludes: FrozenPreludes,
    /// Its changes in the state of the server.
    log: Option<SessionLog>,
    pub(super) quotas: SessionQuotas,
    pub(super) created: Timestamp,
    pub(super) expires: Timestamp,
    used: Mutex<(Timestamp, Instant)>,
}

/// A session whose start was not reported yet. It ends if the call is cancelled before.
pub(super) struct Unreported {
    table: Arc<SessionTable>,
    owner: CallOwner,
    pub(super) session: Arc<OpenSession>,
    is_reported: bool,
}

impl Unreported {
    /// The session, which stays open.
    pub(super) fn report(mut self) -> Arc<OpenSession> {
        self.is_reported = true;
        self.session.clone()
    }
}

impl Drop for Unreported {
    fn drop(&mut self) {
        if !self.is_reported {
            if let Some(log) = &self.session.log {
                log.remove();
            }
            // It may have expired meanwhile.
            let _ = self.table.close(self.owner, &self.session.id, SessionEnd::Closed);
        }
    }
}

/// Proof that a session was ended.
pub(super) struct Closed;

impl SessionTable {
    /// Makes an empty table; programs of its sessions have the limits `programs`.
    pub fn new(
        runtime: Arc<Runtime>,
        quotas: SessionQuotas,
        limits: SessionLimits,
        programs: Limits,
        stores: StoreAccess,
    ) -> Arc<SessionTable> {
        let open = OwnedTable::new(Some(quotas.idle()), |session: Arc<OpenSession>, why| {
            match (why, &session.log) {
                (_, None) => {}
                (Expired::Age, Some(log)) => log.remove(),
                (Expired::Idle, Some(log)) => log.remove_idle(),
            }
            session.session.close(match why {
                Expired::Age => SessionEnd::Expired,
                Expired::Idle => SessionEnd::Idle,
            });
        });
        let loading = tokio::sync::Mutex::default();
        let table = Arc::new(SessionTable { runtime, quotas, limits, programs, stores, open, loading });
        SessionTable::sweep(&table);
        SessionTable::follow_ends(&table);
        table
    }

    /// Where sessions are stored.
    pub(super) fn durable(&self) -> Option<&DurableRuns> {
        self.runtime.broker().durable()
    }

    /// Starts a session. Needs a tokio runtime for its expiry.
    pub(super) fn start(
        table: &Arc<SessionTable>,
        owner: CallOwner,
        title: Option<String>,
        ttl_ms: Option<u64>,
        preludes: RequestedPreludes,
        stop: &StopFlag,
    ) -> Result<Unreported, SessionFault> {
        let quotas = table.quotas;
        // Checks the quota before it compiles preludes.
        table.make_room(owner)?;
        let (place, preludes) = table.stores.place(&table.runtime, preludes, stop)?;
        let id = session_id()?;
        let ttl = Duration::from_millis(ttl_ms.map_or(quotas.ttl_ms, |ttl| ttl.min(quotas.ttl_ms)));
        let created = now();
        // What a program writes to the store of preludes is not written again.
        let log = table.durable().filter(|_| !preludes.may_write);
        let session = Arc::new(OpenSession {
            id: id.clone(),
            title,
            session: place.session(table.limits),
            preludes,
            log: log.map(|runs| SessionLog::new(runs.clone(), &id, false)),
            quotas,
            created,
            expires: created.checked_add(ttl).unwrap_or(Timestamp::MAX),
            used: Mutex::new((created, Instant::now())),
        });
        table.insert(owner, ttl, &session)?;
        Ok(Unreported { table: table.clone(), owner, session, is_reported: false })
    }

    /// Opens a session that is stored, without its changes.
    pub(super) fn open_again(
        self: &Arc<SessionTable>,
        owner: CallOwner,
        id: &str,
        (title, limits): (Option<String>, SessionLimits),
        (created, expires): (Timestamp, Timestamp),
        preludes: RequestedPreludes,
        stop: &StopFlag,
    ) -> Result<Arc<OpenSession>, SessionFault> {
        let (place, preludes) = self.stores.place(&self.runtime, preludes, stop)?;
        let session = Arc::new(OpenSession {
            id: id.to_owned(),
            title,
            session: place.session(limits),
            preludes,
            log: self.durable().map(|runs| SessionLog::new(runs.clone(), id, true)),
            quotas: self.quotas,
            created,
            expires,
            used: Mutex::new((now(), Instant::now())),
        });
        let left = expires.duration_since(now());
        self.insert(owner, Duration::try_from(left).unwrap_or_default(), &session)?;
        Ok(session)
    }

    fn insert(
        &self,
        owner: CallOwner,
        ttl: Duration,
        session: &Arc<OpenSession>,
    ) -> Result<(), SessionFault> {
        if session.log.is_some() {
            // Limits count its calls at all processes, and when it comes back into memory.
            session.session.count_as(&sha256_hex(session.id.as_bytes()));
        }
        loop {
            let inserted = self.open.insert((owner, &session.id), self.quotas.quota(), ttl, session.clone());
            match inserted {
                Ok(()) => return Ok(()),
                // Another request may take the room that is made.
                Err(_) => self.make_room(owner)?,
            }
        }
    }

    /// Makes room in memory for one more session of an owner. In a database any session can be opened again, so one that
    /// is not in use is dropped, one of this owner first.
    ///
    /// # Errors
    /// There is no room.
    fn make_room(&self, owner: CallOwner) -> Result<(), SessionFault> {
        let is_shared = self.durable().is_some_and(DurableRuns::is_shared);
        while let Err(fault) = self.open.check_room(owner, self.quotas.quota()) {
            let of_owner = matches!(fault, Full::Quota { owner: true, .. });
            let idle = |whose: CallOwner, session: &Arc<OpenSession>| {
                // The table has the only reference to it.
                let is_idle = session.is_begun() && Arc::strong_count(session) == 1;
                (is_idle && (whose == owner || !of_owner)).then(|| (whose != owner, session.used().1))
            };
            let dropped = if is_shared { self.open.remove_least(idle) } else { None };
            dropped.ok_or_else(|| full(fault))?.session.close(SessionEnd::Closed);
        }
        Ok(())
    }

    /// Ends a session in this process. What is stored of it stays.
    pub(super) fn drop_from_memory(&self, owner: CallOwner, session: &Arc<OpenSession>) {
        // Another request may have opened it again meanwhile.
        self.open.remove_if(owner, &session.id, |present| Arc::ptr_eq(present, session));
        session.session.close(SessionEnd::Closed);
    }

    /// Finds a session of this owner. Sessions of other owners do not exist for it.
    pub(super) fn find(&self, owner: CallOwner, id: &str) -> Result<Arc<OpenSession>, SessionFault> {
        self.open.find(owner, id).ok_or_else(|| missing(self.open.was_removed(owner, id)))
    }

    /// All sessions, with their owners.
    pub(super) fn every(&self) -> Vec<(CallOwner, Arc<OpenSession>)> {
        self.open.every()
    }

    /// True if this process has no session in memory.
    pub(super) fn is_empty(&self) -> bool {
        self.open.count() == 0
    }

    /// All sessions of an owner, the most recently used first.
    pub(super) fn all(&self, owner: CallOwner) -> Vec<Arc<OpenSession>> {
        let mut sessions = self.open.all(owner);
        sessions.sort_by_key(|session| std::cmp::Reverse(session.used().1));
        sessions
    }

    /// What a page shows of the sessions of an owner, the most recently used first.
    pub(crate) fn facts(&self, owner: CallOwner) -> Vec<SessionFacts> {
        self.all(owner).iter().map(|session| SessionFacts::new(session)).collect()
    }

    /// Remembers that a session was closed that this process does not have in memory.
    pub(super) fn remember_closed(&self, owner: CallOwner, id: &str) {
        self.open.remember_removed(owner, id);
    }

    pub(super) fn close(&self, owner: CallOwner, id: &str, why: SessionEnd) -> Result<Closed, SessionFault> {
        let Some(session) = self.open.remove(owner, id) else {
            return Err(missing(self.open.was_removed(owner, id)));
        };
        session.session.close(why);
        Ok(Closed)
    }
}

/// Why an owner gets no further session.
pub(super) const OWNER_IS_FULL: &str = "maximum number of sessions for this owner reached";

fn full(fault: Full) -> SessionFault {
    let message = match fault {
        Full::Quota { table: false, .. } => OWNER_IS_FULL,
        Full::Quota { .. } | Full::Closed => "maximum number of sessions reached",
    };
    SessionFault::new(SessionReason::TooMany, message)
}

fn missing(has_ended: bool) -> SessionFault {
    match has_ended {
        true => SessionFault::new(SessionReason::Closed, "session is closed"),
        false => SessionFault::new(SessionReason::NotFound, "session not found"),
    }
}

impl Owned for Arc<OpenSession> {
    /// A running program keeps the session from being idle.
    fn last_used(&self) -> Instant {
        if self.session.is_busy() { Instant::now() } else { self.used().1 }
    }
}

impl OpenSession {
    pub(super) fn log(&self) -> Option<&SessionLog> {
        self.log.as_ref()
    }

    /// The time of the last use.
    pub(super) fn used(&self) -> (Timestamp, Instant) {
        *self.used.locked()
    }

    /// Notes that the session was used now.
    pub(super) fn touch(&self) {
        *self.used.locked() = (now(), Instant::now());
    }
}

pub(super) fn now() -> Timestamp {
    moment(SystemTime::now()).unwrap_or_default()
}
