//! Keeps the sessions that clients begin with `initialize` over HTTP: for each, the negotiated protocol version, open
//! requests, questions to the client, and event streams.

use super::handlers::ListVersion;
use super::reply::SESSION;
use super::settings::HttpSettings;
use crate::protocol::borrowed::Raw;
use crate::protocol::{Id, Version};
use crate::server::connection_state::ConnectionState;
use crate::server::input_required::ClientRequests;
use crate::server::mailbox::Mailbox;
use crate::tools::owned_table::{Full, Owned, OwnedTable, Quota, random_id};
use crate::tools::{CallOwner, SessionTag};
use axum::http::HeaderMap;
use ptc_base::sync::Locked;
use ptc_upstream::ClientTag;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Random bytes of a name.
const NAME_BYTES: usize = 24;

/// A session.
pub(super) struct WebSession {
    pub(super) owner: CallOwner,
    /// Its key in the table.
    pub(super) name: String,
    tag: SessionTag,
    /// Identifies the client to upstream servers.
    client: ClientTag,
    /// Ids of requests to the client begin so. Those of one session are made by many nodes.
    asks_as: Arc<str>,
    /// The negotiated version.
    pub(super) version: Version,
    /// The tool list when the session began.
    pub(super) initial_list: ListVersion,
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
    /// Number of calls of this node that could ask the client.
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
    quota: Quota,
    /// How long a session may live.
    pub(super) age: Duration,
    open: Arc<OwnedTable<Arc<WebSession>>>,
    begun: AtomicU64,
    asks_as: Arc<str>,
    /// Held while a session of another node is taken in, so that it is taken in once.
    taking_in: Mutex<()>,
    /// Called with each session that has ended.
    ended: Arc<dyn Fn(SessionTag) + Send + Sync>,
}

impl Sessions {
    /// An empty table; `ended` is called with each session that has ended. `node` is the name of this node, if there are
    /// others.
    pub(super) fn new(
        settings: &HttpSettings,
        node: Option<&str>,
        ended: impl Fn(SessionTag) + Send + Sync + 'static,
    ) -> Sessions {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let limits = &settings.limits;
        let ended: Arc<dyn Fn(SessionTag) + Send + Sync> = Arc::new(ended);
        let on_end = ended.clone();
        let end = move |session: Arc<WebSession>, _| session.end(&*on_end);
        Sessions {
            quota: Quota { most: whole(limits.sessions), most_of_owner: whole(limits.sessions_per_owner) },
            age: Duration::from_millis(limits.session_ttl_ms),
            open: OwnedTable::new(Some(Duration::from_millis(limits.session_idle_ms)), end),
            begun: AtomicU64::new(0),
            asks_as: node.map_or("ptc".into(), |node| format!("ptc-{node}").into()),
            taking_in: Mutex::default(),
            ended,
        }
    }

    /// How many sessions there are.
    pub(super) fn count(&self) -> usize {
        self.open.count()
    }

    /// True when some client cannot begin a session. Where there is only one owner, its idle sessions make room for all.
    pub(super) fn is_full(&self, only: Option<CallOwner>) -> bool {
        let may_give_way = |owner, session: &Arc<WebSession>| Some(owner) == only && session.is_idle();
        self.count() >= self.quota.most && !self.open.any(may_give_way)
    }

    /// Creates a session under this name, or a random one; returns the name and the session.
    pub(super) fn begin(
        &self,
        owner: CallOwner,
        name: Option<String>,
        connection_state: ConnectionState,
        initial_list: ListVersion,
    ) -> Result<(String, Arc<WebSession>), SessionRefusal> {
        let name = name.or_else(|| random_id::<NAME_BYTES>("mcp_")).ok_or(SessionRefusal::NoRandomness)?;
        let session = self.insert((owner, &name), self.age, connection_state, initial_list)?;
        Ok((name, session))
    }

    /// Takes in a session that another node has begun, if this one does not have it.
    pub(super) fn take_in(
        &self,
        (owner, name): (CallOwner, &str),
        age: Duration,
        connection_state: ConnectionState,
    ) -> Result<Arc<WebSession>, SessionRefusal> {
        let _alone = self.taking_in.locked();
        match self.open.find(owner, name) {
            Some(known) => Ok(known),
            None => self.insert((owner, name), age, connection_state, ListVersion::UNKNOWN),
        }
    }

    fn insert(
        &self,
        (owner, name): (CallOwner, &str),
        age: Duration,
        connection_state: ConnectionState,
        initial_list: ListVersion,
    ) -> Result<Arc<WebSession>, SessionRefusal> {
        let tag = SessionTag(self.begun.fetch_add(1, Ordering::Relaxed) + 1);
        let connection_state = connection_state.within(tag);
        let session = Arc::new(WebSession {
            owner,
            name: name.to_owned(),
            tag,
            client: ClientTag::unique(),
            asks_as: self.asks_as.clone(),
            version: connection_state.version.unwrap_or(Version::LATEST_WITH_HANDSHAKE),
            initial_list,
            state: Mutex::new(WebSessionState {
                connection_state,
                used: Instant::now(),
                requests: HashMap::new(),
                questions: Vec::new(),
                asked: 0,
                listened: 0,
                listening: Vec::new(),
            }),
            closed: watch::Sender::new(false),
        });
        loop {
            let Err((_, full)) = self.open.insert((owner, name), self.quota, age, session.clone()) else {
                return Ok(session);
            };
            // Another request may take the room that is made.
            let may_retry = full != Full::Closed && self.make_room(owner);
            match full {
                _ if may_retry => {}
                Full::Quota { owner: true, .. } => return Err(SessionRefusal::Owner),
                Full::Quota { .. } | Full::Closed => return Err(SessionRefusal::Server),
            }
        }
    }

    /// Drops the session of an owner that has been idle for longest; false if all have requests or streams. Clients that go
    /// without an end of their session keep no others out. With nodes it is no end: any node can take it in again.
    fn make_room(&self, owner: CallOwner) -> bool {
        let idle = |whose, session: &Arc<WebSession>| {
            (whose == owner && session.is_idle()).then(|| session.state.locked().used)
        };
        let dropped = self.open.remove_least(idle);
        dropped.inspect(|session| session.end(&*self.ended)).is_some()
    }

    /// All sessions of this node.
    pub(super) fn every(&self) -> Vec<Arc<WebSession>> {
        self.open.every().into_iter().map(|(_, session)| session).collect()
    }

    /// The session with this name, if this node has it.
    pub(super) fn named(&self, owner: CallOwner, name: &str) -> Option<Arc<WebSession>> {
        self.open.find(owner, name)
    }

    /// Finds the session that a request names.
    pub(super) fn find(&self, owner: CallOwner, headers: &HeaderMap) -> Result<Arc<WebSession>, NoSession> {
        let name = headers.get(SESSION).ok_or(NoSession::Unnamed)?;
        let name = name.to_str().map_err(|_| NoSession::Unknown)?;
        let session = self.open.find(owner, name).ok_or(NoSession::Unknown)?;
        session.state.locked().used = Instant::now();
        Ok(session)
    }

    /// Ends a session.
    pub(super) fn close(&self, session: &Arc<WebSession>) {
        self.open.remove(session.owner, &session.name);
        session.end(&*self.ended);
    }
}

impl Owned for Arc<WebSession> {
    fn last_used(&self) -> Instant {
        if self.is_idle() { self.state.locked().used } else { Instant::now() }
    }
}

impl WebSession {
    /// It has no request and no stream: these hold references in addition to the table's.
    fn is_idle(self: &Arc<WebSession>) -> bool {
        Arc::strong_count(self) == 1
    }

    /// The negotiated state.
    pub(super) fn connection_state(&self) -> ConnectionState {
        self.state.locked().connection_state.clone()
    }

    /// Handles a message that may change the negotiated state.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut ConnectionState) -> T) -> T {
        change(&mut self.state.locked().connection_state)
    }

    /// Registers a request; `None` when its id is in use.
    pub(super) fn enter(self: &Arc<WebSession>, id: &Id<'_>) -> Option<SessionRequest> {
        let cancelled = Arc::new(Notify::new());
        let id = id.clone().into_owned();
        let mut state = self.state.locked();
        if state.requests.contains_key(&id) {
            return None;
        }
        state.requests.insert(id.clone(), cancelled.clone());
        Some(SessionRequest { session: self.clone(), id, cancelled })
    }

    /// Cancels a request; false if this node does not have it.
    pub(super) fn cancel(&self, id: &Id<'_>) -> bool {
        let state = self.state.locked();
        let cancelled = state.requests.get(id.as_json());
        cancelled.inspect(|cancelled| cancelled.notify_one()).is_some()
    }

    /// Registers one more listening stream.
    pub(super) fn listen(self: &Arc<WebSession>) -> Listening {
        let mut state = self.state.locked();
        state.listened += 1;
        let number = state.listened;
        state.listening.push(number);
        Listening { session: self.clone(), number }
    }

    /// Passes on the client's answer to a question; false if this node does not wait for it.
    pub(super) fn answered(&self, id: Option<Raw<'_>>, answer: Result<Raw<'_>, Raw<'_>>) -> bool {
        let questions: Vec<_> = self.state.locked().questions.iter().filter_map(Weak::upgrade).collect();
        let asking = questions.iter().find(|questions| questions.awaits(id));
        asking.inspect(|questions| questions.answer(id, answer)).is_some()
    }

    /// Waits until the session has ended.
    pub(super) async fn closed(&self) {
        let mut closed = self.closed.subscribe();
        // We hold the sender, so this cannot fail.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    fn end(&self, ended: &(dyn Fn(SessionTag) + Send + Sync)) {
        self.closed.send_replace(true);
        for cancelled in self.state.locked().requests.values() {
            cancelled.notify_one();
        }
        ended(self.tag);
    }
}

/// An open listening stream.
pub(super) struct Listening {
    session: Arc<WebSession>,
    /// Its number within the session.
    pub(super) number: u64,
}

impl Listening {
    /// True when no later stream of the session is open.
    pub(super) fn is_newest(&self) -> bool {
        self.session.state.locked().listening.last() == Some(&self.number)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.session.state.locked().listening.retain(|number| *number != self.number);
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
        let mut state = self.session.state.locked();
        state.asked += 1;
        let questions = {
            let name = format!("{}-{}", self.session.asks_as, state.asked);
            Arc::new(ClientRequests::for_call(name, mailbox))
        };
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
        let mut state = self.session.state.locked();
        state.requests.remove(&self.id);
        state.used = Instant::now();
    }
}
