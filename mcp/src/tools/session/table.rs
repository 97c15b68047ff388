//! The table of open Lisp sessions, with quotas per owner and expiry by age and idle time.

use super::arguments::{SessionFault, SessionReason};
use super::preludes::{FrozenPreludes, RequestedPreludes, StoreAccess};
use crate::observe::entry::moment;
use crate::tools::CallOwner;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ptc_runtime::limits::Limits;
use ptc_runtime::session::{Session, SessionEnd, SessionLimits};
use ptc_runtime::sync::Locked;
use ptc_runtime::tasks::{self, StopFlag, TaskOwner};
use ptc_runtime::{Runtime, limit_table};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant, SystemTime};

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

/// Number of ended sessions with remembered ids, so that a call can be answered with `session_closed`.
const REMEMBERED: usize = 1_024;

/// Random bytes of an id.
const ID_BYTES: usize = 18;

/// Makes an id that cannot be guessed.
pub(crate) fn random_id() -> Result<String, SessionFault> {
    let mut random = [0; ID_BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| SessionFault::new(SessionReason::TooMany, format!("no random number: {error}")))?;
    Ok(format!("ptcs_{}", BASE64_URL_SAFE_NO_PAD.encode(random)))
}

/// The open sessions of a server.
pub struct SessionTable {
    runtime: Arc<Runtime>,
    quotas: SessionQuotas,
    limits: SessionLimits,
    /// Limits of each program.
    pub(super) programs: Limits,
    /// The source of preludes for sessions.
    pub(super) stores: StoreAccess,
    open: Mutex<OpenSessions>,
}

#[derive(Default)]
struct OpenSessions {
    sessions: HashMap<String, Arc<OpenSession>>,
    ended: VecDeque<(CallOwner, String)>,
}

/// An open session with its dates.
pub(super) struct OpenSession {
    id: String,
    owner: CallOwner,
    title: Option<String>,
    session: Session,
    preludes: FrozenPreludes,
    quotas: SessionQuotas,
    created: Timestamp,
    expires: (Timestamp, Instant),
    used: Mutex<(Timestamp, Instant)>,
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
        Arc::new(SessionTable { runtime, quotas, limits, programs, stores, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, OpenSessions> {
        self.open.locked()
    }

    /// Starts a session. Needs a tokio runtime for its expiry.
    pub(super) fn start(
        table: &Arc<SessionTable>,
        owner: CallOwner,
        title: Option<String>,
        ttl_ms: Option<u64>,
        preludes: RequestedPreludes,
        stop: &StopFlag,
    ) -> Result<Arc<OpenSession>, SessionFault> {
        let quotas = table.quotas;
        // Checks the quota before it compiles preludes.
        table.open().check_room(&quotas, owner)?;
        let (place, preludes) = table.stores.place(&table.runtime, preludes, stop)?;
        let mut open = table.open();
        open.check_room(&quotas, owner)?;
        let id = random_id()?;
        let ttl = Duration::from_millis(ttl_ms.map_or(quotas.ttl_ms, |ttl| ttl.min(quotas.ttl_ms)));
        let (created, begun) = (now(), Instant::now());
        let expires = created.checked_add(ttl).unwrap_or(Timestamp::MAX);
        let session = Arc::new(OpenSession {
            id: id.clone(),
            owner,
            title,
            session: place.session(table.limits),
            preludes,
            quotas,
            created,
            expires: (expires, begun.checked_add(ttl).unwrap_or(begun)),
            used: Mutex::new((created, begun)),
        });
        open.sessions.insert(id, session.clone());
        tasks::spawn(TaskOwner::Connection, end_in_time(Arc::downgrade(table), Arc::downgrade(&session)));
        Ok(session)
    }

    /// Finds a session of this owner. Sessions of other owners do not exist for it.
    pub(super) fn find(&self, owner: CallOwner, id: &str) -> Result<Arc<OpenSession>, SessionFault> {
        let open = self.open();
        match open.sessions.get(id).filter(|session| session.owner == owner) {
            Some(session) if session.expires.1 > Instant::now() => Ok(session.clone()),
            found => Err(missing(found.is_some() || open.has_ended(owner, id))),
        }
    }

    /// All sessions of an owner, the most recently used first.
    pub(super) fn all(&self, owner: CallOwner) -> Vec<Arc<OpenSession>> {
        let open = self.open();
        let mut sessions: Vec<_> =
            open.sessions.values().filter(|session| session.owner == owner).cloned().collect();
        drop(open);
        sessions.sort_by_key(|session| std::cmp::Reverse(session.used().1));
        sessions
    }

    pub(super) fn close(&self, owner: CallOwner, id: &str, why: SessionEnd) -> Result<Closed, SessionFault> {
        let session = {
            let mut open = self.open();
            let is_own = open.sessions.get(id).is_some_and(|session| session.owner == owner);
            let Some(session) = is_own.then(|| open.sessions.remove(id)).flatten() else {
                return Err(missing(open.has_ended(owner, id)));
            };
            if open.ended.len() >= REMEMBERED {
                open.ended.pop_front();
            }
            open.ended.push_back((owner, id.to_owned()));
            session
        };
        session.session.close(why);
        Ok(Closed)
    }
}

impl OpenSessions {
    /// Checks the quotas for one more session of this owner.
    fn check_room(&self, quotas: &SessionQuotas, owner: CallOwner) -> Result<(), SessionFault> {
        if self.sessions.len() as u64 >= quotas.sessions {
            return Err(SessionFault::new(SessionReason::TooMany, "maximum number of sessions reached"));
        }
        let own = self.sessions.values().filter(|session| session.owner == owner).count();
        if own as u64 >= quotas.sessions_per_owner {
            let message = "maximum number of sessions for this owner reached";
            return Err(SessionFault::new(SessionReason::TooMany, message));
        }
        Ok(())
    }

    fn has_ended(&self, owner: CallOwner, id: &str) -> bool {
        self.ended.iter().any(|(whose, ended)| *whose == owner && ended == id)
    }
}

fn missing(has_ended: bool) -> SessionFault {
    match has_ended {
        true => SessionFault::new(SessionReason::Closed, "session is closed"),
        false => SessionFault::new(SessionReason::NotFound, "session not found"),
    }
}

/// Ends a session when it expires.
async fn end_in_time(table: Weak<SessionTable>, session: Weak<OpenSession>) {
    loop {
        let Some(deadline) = session.upgrade().map(|session| session.ends()) else { return };
        tokio::time::sleep_until(deadline.into()).await;
        let (Some(table), Some(session)) = (table.upgrade(), session.upgrade()) else { return };
        let now = Instant::now();
        if session.ends() <= now {
            let why = if session.expires.1 <= now { SessionEnd::Expired } else { SessionEnd::Idle };
            // The session may have been closed at the same time.
            let _ = table.close(session.owner, &session.id, why);
            return;
        }
    }
}

impl OpenSession {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    pub(super) fn preludes(&self) -> &FrozenPreludes {
        &self.preludes
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn quotas(&self) -> &SessionQuotas {
        &self.quotas
    }

    pub(super) fn created(&self) -> Timestamp {
        self.created
    }

    pub(super) fn expires(&self) -> Timestamp {
        self.expires.0
    }

    /// The time of the last use.
    pub(super) fn used(&self) -> (Timestamp, Instant) {
        *self.used.locked()
    }

    /// Notes that the session was used now.
    pub(super) fn touch(&self) {
        *self.used.locked() = (now(), Instant::now());
    }

    /// When the session ends if it is not used. A running program keeps it from being idle.
    fn ends(&self) -> Instant {
        let used = if self.session.is_busy() { Instant::now() } else { self.used().1 };
        let idle = Duration::from_millis(self.quotas.idle_ms.max(1));
        used.checked_add(idle).map_or(self.expires.1, |idle| idle.min(self.expires.1))
    }
}

fn now() -> Timestamp {
    moment(SystemTime::now()).unwrap_or_default()
}
