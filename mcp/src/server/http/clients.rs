//! Sessions of the handshake era over HTTP: who said what `initialize` and what follows it say, under a name that the
//! client is given and repeats.

use super::handlers::ListNumber;
use super::reply::SESSION;
use super::settings::HttpSettings;
use crate::protocol::borrowed::Raw;
use crate::protocol::{Id, Version};
use crate::server::asking::ClientRequests;
use crate::server::handshake::HandshakeState;
use crate::server::mailbox::Mailbox;
use crate::tools::{CallOwner, SessionTag};
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ptc_runtime::upstream::ClientTag;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// How often sessions are looked through for those whose time is over.
pub(super) const SWEEP: Duration = Duration::from_secs(30);

/// Random bytes of a name.
const NAME_BYTES: usize = 24;

/// A session.
pub(super) struct WebSession {
    pub(super) owner: CallOwner,
    tag: SessionTag,
    /// What servers know it by that it calls.
    client: ClientTag,
    /// The revision that was agreed on.
    pub(super) version: Version,
    /// The tool list that there was when it began.
    pub(super) tools_seen: ListNumber,
    created: Instant,
    state: Mutex<WebSessionState>,
    closed: watch::Sender<bool>,
}

struct WebSessionState {
    handshake: HandshakeState,
    used: Instant,
    /// Requests without an answer yet; each is told when it is cancelled.
    requests: HashMap<Id<'static>, Arc<Notify>>,
    /// What calls ask the client, while they run.
    asking: Vec<Weak<ClientRequests>>,
    /// Calls that could ask, so far.
    asked: u64,
    /// Streams that were opened to listen, so far, and the numbers of those that are open.
    listened: u64,
    listening: Vec<u64>,
}

/// Why there is no new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooManySessions {
    Owner,
    Server,
    /// No name could be made.
    NoChance,
}

/// Why a request has no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSession {
    /// It names none.
    Unnamed,
    /// It names none of ours, or somebody else's.
    Unknown,
}

/// All sessions.
pub(super) struct Clients {
    most: usize,
    most_of_one: usize,
    ttl: Duration,
    idle: Duration,
    open: Mutex<HashMap<String, Arc<WebSession>>>,
    begun: AtomicU64,
    /// Told of each session that has ended.
    ended: Box<dyn Fn(SessionTag) + Send + Sync>,
}

impl Clients {
    /// None yet; `ended` is told of each that has ended.
    pub(super) fn new(
        settings: &HttpSettings,
        ended: impl Fn(SessionTag) + Send + Sync + 'static,
    ) -> Clients {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let limits = &settings.limits;
        Clients {
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
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.open().len()
    }

    /// True when nobody can begin another one.
    pub(super) fn are_full(&self) -> bool {
        self.count() >= self.most
    }

    /// Begins a session; its name and itself.
    pub(super) fn begin(
        &self,
        owner: CallOwner,
        handshake: HandshakeState,
        tools_seen: ListNumber,
    ) -> Result<(String, Arc<WebSession>), TooManySessions> {
        let mut random = [0; NAME_BYTES];
        getrandom::fill(&mut random).map_err(|_| TooManySessions::NoChance)?;
        let name = format!("mcp_{}", BASE64_URL_SAFE_NO_PAD.encode(random));
        let now = Instant::now();
        let is_full =
            |open: &HashMap<_, _>| open.len() >= self.most || self.of(open, owner) >= self.most_of_one;
        if is_full(&self.open()) {
            self.sweep();
        }
        let mut open = self.open();
        if self.of(&open, owner) >= self.most_of_one {
            return Err(TooManySessions::Owner);
        }
        if open.len() >= self.most {
            return Err(TooManySessions::Server);
        }
        let tag = SessionTag(self.begun.fetch_add(1, Ordering::Relaxed) + 1);
        let handshake = handshake.within(tag);
        let session = Arc::new(WebSession {
            owner,
            tag,
            client: ClientTag::unique(),
            version: handshake.version().unwrap_or(Version::LATEST_WITH_HANDSHAKE),
            tools_seen,
            created: now,
            state: Mutex::new(WebSessionState {
                handshake,
                used: now,
                requests: HashMap::new(),
                asking: Vec::new(),
                asked: 0,
                listened: 0,
                listening: Vec::new(),
            }),
            closed: watch::Sender::new(false),
        });
        open.insert(name.clone(), session.clone());
        Ok((name, session))
    }

    fn of(&self, open: &HashMap<String, Arc<WebSession>>, owner: CallOwner) -> usize {
        open.values().filter(|session| session.owner == owner).count()
    }

    /// The session that a request names.
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

    /// Ends those whose time is over.
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
        // A request or a stream of it holds it, as the table does.
        let is_busy = Arc::strong_count(session) > 1;
        now < session.created + self.ttl && (is_busy || now < session.state().used + self.idle)
    }
}

impl WebSession {
    fn state(&self) -> MutexGuard<'_, WebSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said on it.
    pub(super) fn handshake(&self) -> HandshakeState {
        self.state().handshake.clone()
    }

    /// Handles a message that may change that.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut HandshakeState) -> T) -> T {
        change(&mut self.state().handshake)
    }

    /// Enters a request; `None` when its id is that of another one.
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

    /// Cancels a request; one that is unknown is ignored.
    pub(super) fn cancel(&self, id: &Id<'_>) {
        if let Some(cancelled) = self.state().requests.get(id.as_json()) {
            cancelled.notify_one();
        }
    }

    /// Opens one more stream that listens.
    pub(super) fn listen(self: &Arc<WebSession>) -> Listening {
        let mut state = self.state();
        state.listened += 1;
        let number = state.listened;
        state.listening.push(number);
        Listening { session: self.clone(), number }
    }

    /// The client has answered something that it was asked. An answer that nobody waits for is ignored.
    pub(super) fn answered(&self, id: Option<Raw<'_>>, answer: Result<Raw<'_>, Raw<'_>>) {
        let asking: Vec<_> = self.state().asking.iter().filter_map(Weak::upgrade).collect();
        if let Some(asking) = asking.iter().find(|asking| asking.awaits(id)) {
            asking.answer(id, answer);
        }
    }

    /// Waits until it has ended.
    pub(super) async fn closed(&self) {
        let mut closed = self.closed.subscribe();
        // We hold the sender.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    fn close(&self) {
        self.closed.send_replace(true);
        for cancelled in self.state().requests.values() {
            cancelled.notify_one();
        }
    }
}

/// An open stream that listens.
pub(super) struct Listening {
    session: Arc<WebSession>,
    number: u64,
}

impl Listening {
    /// Its number among those of its session.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// True when none was opened later that is still there.
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
    /// Where whoever works on it asks the client; `mailbox` is told when somebody does.
    pub(super) fn asking(&self, mailbox: Arc<Mailbox>) -> Arc<ClientRequests> {
        let mut state = self.session.state();
        state.asked += 1;
        let asking = Arc::new(ClientRequests::of_call(format!("ptc-{}", state.asked), mailbox));
        state.asking.retain(|asking| asking.strong_count() > 0);
        state.asking.push(Arc::downgrade(&asking));
        asking
    }

    /// Whose it is.
    pub(super) fn client(&self) -> ClientTag {
        self.session.client
    }

    /// Waits until somebody cancels it.
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
