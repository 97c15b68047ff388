//! Sessions of the handshake era over HTTP: the state that `initialize` negotiated, under a random name that
//! the client repeats.

use super::handlers::ListVersion;
use super::reply::SESSION;
use super::settings::HttpSettings;
use crate::protocol::borrowed::Raw;
use crate::protocol::{Id, Version};
use crate::server::connection_state::ConnectionState;
use crate::server::input_required::ClientRequests;
use crate::server::mailbox::Mailbox;
use crate::tools::{CallOwner, SessionTag};
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ptc_runtime::sync::Locked;
use ptc_runtime::upstream::ClientTag;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// How often expired sessions are removed.
pub(super) const SWEEP: Duration = Duration::from_secs(30);

/// Random bytes of a name.
const NAME_BYTES: usize = 24;

/// A session.
pub(super) struct WebSession {
    pub(super) owner: CallOwner,
    tag: SessionTag,
    /// Identifies the client to upstream servers.
    client: ClientTag,
    /// The negotiated version.
    pub(super) version: Version,
    /// The tool list when the session began.
    pub(super) initial_list: ListVersion,
    created: Instant,
    state: Mutex<WebSessionState>,
    closed: watch::Sender<bool>,
}

struct WebSessionState {
    connection_state: ConnectionState,
    used: Instant,
    /// Requests without an answer, each with the signal that cancels it.
    requests: HashMap<Id<'static>, Arc<Notify>>,
    /// Questions of running calls to the client.
    questions: Vec<Weak<ClientRequests>>,
    /// Number of calls that could ask the client.
    asked: u64,
    /// Number of listening streams opened so far; `listening` has the numbers of those that are open.
    listened: u64,
    listening: Vec<u64>,
}

/// Why a session cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionRefusal {
    Owner,
    Server,
    /// The system has no random numbers.
    NoRandomness,
}

/// Why a request has no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSession {
    /// It names no session.
    Unnamed,
    /// It names an unknown session, or one of another owner.
    Unknown,
}

/// All sessions.
pub(super) struct Sessions {
    most: usize,
    most_of_one: usize,
    ttl: Duration,
    idle: Duration,
    open: Mutex<HashMap<String, Arc<WebSession>>>,
    begun: AtomicU64,
    /// Called with each session that has ended.
    ended: Box<dyn Fn(SessionTag) + Send + Sync>,
}

impl Sessions {
    /// An empty table; `ended` is called with each session that has ended.
    pub(super) fn new(
        settings: &HttpSettings,
        ended: impl Fn(SessionTag) + Send + Sync + 'static,
    ) -> Sessions {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let limits = &settings.limits;
        Sessions {
            most: whole(limits.sessions),
            most_of_one: whole(limits.sessions_per_owner),
            ttl: Duration::from_millis(limits.session_ttl_ms),
            idle: Duration::from_millis(limits.session_idle_ms),
            open: Mutex::default(),
            begun: AtomicU64::new(0),
            ended: Box::new(ended),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<WebSession>>> {
        self.open.locked()
    }

    /// How many sessions there are.
    pub(super) fn count(&self) -> usize {
        self.open().len()
    }

    /// True when no further session can be created.
    pub(super) fn is_full(&self) -> bool {
        self.count() >= self.most
    }

    /// Creates a session; returns its name and the session.
    pub(super) fn begin(
        &self,
        owner: CallOwner,
        connection_state: ConnectionState,
        initial_list: ListVersion,
    ) -> Result<(String, Arc<WebSession>), SessionRefusal> {
        let mut random = [0; NAME_BYTES];
        getrandom::fill(&mut random).map_err(|_| SessionRefusal::NoRandomness)?;
        let name = format!("mcp_{}", BASE64_URL_SAFE_NO_PAD.encode(random));
        let now = Instant::now();
        let is_full =
            |open: &HashMap<_, _>| open.len() >= self.most || self.count_for(open, owner) >= self.most_of_one;
        if is_full(&self.open()) {
            self.sweep();
        }
        let mut open = self.open();
        if self.count_for(&open, owner) >= self.most_of_one {
            return Err(SessionRefusal::Owner);
        }
        if open.len() >= self.most {
            return Err(SessionRefusal::Server);
        }
        let tag = SessionTag(self.begun.fetch_add(1, Ordering::Relaxed) + 1);
        let connection_state = connection_state.within(tag);
        let session = Arc::new(WebSession {
            owner,
            tag,
            client: ClientTag::unique(),
            version: connection_state.version().unwrap_or(Version::LATEST_WITH_HANDSHAKE),
            initial_list,
            created: now,
            state: Mutex::new(WebSessionState {
                connection_state,
                used: now,
                requests: HashMap::new(),
                questions: Vec::new(),
                asked: 0,
                listened: 0,
                listening: Vec::new(),
            }),
            closed: watch::Sender::new(false),
        });
        open.insert(name.clone(), session.clone());
        Ok((name, session))
    }

    fn count_for(&self, open: &HashMap<String, Arc<WebSession>>, owner: CallOwner) -> usize {
        open.values().filter(|session| session.owner == owner).count()
    }

    /// Finds the session that a request names.
    pub(super) fn find(&self, owner: CallOwner, headers: &HeaderMap) -> Result<Arc<WebSession>, NoSession> {
        let name = headers.get(SESSION).ok_or(NoSession::Unnamed)?;
        let name = name.to_str().map_err(|_| NoSession::Unknown)?;
        let now = Instant::now();
        let is_theirs = |session: &&Arc<WebSession>| session.owner == owner && self.is_live(session, now);
        let session = self.open().get(name).filter(is_theirs).cloned().ok_or(NoSession::Unknown)?;
        session.state().used = now;
        Ok(session)
    }

    /// Ends a session.
    pub(super) fn close(&self, session: &Arc<WebSession>) {
        self.open().retain(|_, open| !Arc::ptr_eq(open, session));
        self.end(session);
    }

    /// Ends expired sessions.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        let mut over = Vec::new();
        self.open().retain(|_, session| {
            let lives = self.is_live(session, now);
            if !lives {
                over.push(session.clone());
            }
            lives
        });
        over.iter().for_each(|session| self.end(session));
    }

    fn end(&self, session: &WebSession) {
        session.close();
        (self.ended)(session.tag);
    }

    fn is_live(&self, session: &Arc<WebSession>, now: Instant) -> bool {
        // The table holds one reference; a request or a stream of the session holds another.
        let is_busy = Arc::strong_count(session) > 1;
        now < session.created + self.ttl && (is_busy || now < session.state().used + self.idle)
    }
}

impl WebSession {
    fn state(&self) -> MutexGuard<'_, WebSessionState> {
        self.state.locked()
    }

    /// The negotiated state.
    pub(super) fn connection_state(&self) -> ConnectionState {
        self.state().connection_state.clone()
    }

    /// Handles a message that may change the negotiated state.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut ConnectionState) -> T) -> T {
        change(&mut self.state().connection_state)
    }

    /// Registers a request; `None` when its id is in use.
    pub(super) fn enter(self: &Arc<WebSession>, id: &Id<'_>) -> Option<SessionRequest> {
        let cancelled = Arc::new(Notify::new());
        let id = id.clone().into_owned();
        let mut state = self.state();
        if state.requests.contains_key(&id) {
            return None;
        }
        state.requests.insert(id.clone(), cancelled.clone());
        Some(SessionRequest { session: self.clone(), id, cancelled })
    }

    /// Cancels a request; an unknown id is ignored.
    pub(super) fn cancel(&self, id: &Id<'_>) {
        if let Some(cancelled) = self.state().requests.get(id.as_json()) {
            cancelled.notify_one();
        }
    }

    /// Registers one more listening stream.
    pub(super) fn listen(self: &Arc<WebSession>) -> Listening {
        let mut state = self.state();
        state.listened += 1;
        let number = state.listened;
        state.listening.push(number);
        Listening { session: self.clone(), number }
    }

    /// Passes on the client's answer to a question. An answer with an unknown id is ignored.
    pub(super) fn answered(&self, id: Option<Raw<'_>>, answer: Result<Raw<'_>, Raw<'_>>) {
        let questions: Vec<_> = self.state().questions.iter().filter_map(Weak::upgrade).collect();
        if let Some(questions) = questions.iter().find(|questions| questions.awaits(id)) {
            questions.answer(id, answer);
        }
    }

    /// Waits until the session has ended.
    pub(super) async fn closed(&self) {
        let mut closed = self.closed.subscribe();
        // We hold the sender, so this cannot fail.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    fn close(&self) {
        self.closed.send_replace(true);
        for cancelled in self.state().requests.values() {
            cancelled.notify_one();
        }
    }
}

/// An open listening stream.
pub(super) struct Listening {
    session: Arc<WebSession>,
    number: u64,
}

impl Listening {
    /// Its number within the session.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// True when no later stream of the session is open.
    pub(super) fn is_newest(&self) -> bool {
        self.session.state().listening.last() == Some(&self.number)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.session.state().listening.retain(|number| *number != self.number);
    }
}

/// A request of a session that has no answer yet.
pub(super) struct SessionRequest {
    session: Arc<WebSession>,
    id: Id<'static>,
    cancelled: Arc<Notify>,
}

impl SessionRequest {
    /// Creates the channel on which the request's call asks the client. `mailbox` is woken for each question.
    pub(super) fn questions(&self, mailbox: Arc<Mailbox>) -> Arc<ClientRequests> {
        let mut state = self.session.state();
        state.asked += 1;
        let questions = Arc::new(ClientRequests::for_call(format!("ptc-{}", state.asked), mailbox));
        state.questions.retain(|questions| questions.strong_count() > 0);
        state.questions.push(Arc::downgrade(&questions));
        questions
    }

    /// The calling client.
    pub(super) fn client(&self) -> ClientTag {
        self.session.client
    }

    /// Waits until the request is cancelled.
    pub(super) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for SessionRequest {
    fn drop(&mut self) {
        let mut state = self.session.state();
        state.requests.remove(&self.id);
        state.used = Instant::now();
    }
}
