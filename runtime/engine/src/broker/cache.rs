//! Caches the results of read-only, idempotent tool calls for a limited time, to answer equal calls of the same client.
//! Equal calls that are under way at once wait for the first of them.
//!
//! Invariant: an entry was made after the last call that may have changed something on its server had ended. Entries of
//! failed calls, and of results in files, do not exist.

use ptc_base::digest::sha256;
use ptc_base::sync::Locked;
use ptc_calls::run::account::RunAccount;
use ptc_calls::run::outcome::Effect;
use ptc_calls::tools::{CallTarget, UpstreamTool};
use ptc_upstream::{CallResult, RawAnswer, ResultSink, ServerRequest, Upstream, UpstreamFault};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Which results are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultCaching {
    /// How long a result is good for.
    pub ttl: Duration,
    /// Size limit of all cached results.
    pub max_bytes: usize,
}

impl ResultCaching {
    /// The default size limit.
    pub const DEFAULT_BYTES: usize = 64 << 20;
}

/// Memory of an entry in addition to its result.
const ENTRY_BYTES: usize = 512;

/// SHA-256 over owner, server, tool and canonical arguments.
type Key = [u8; 32];

/// What a call means for cached results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Its result may be given to equal calls.
    Same,
    /// It reads, and may say something else the next time.
    Reads,
    /// It may change what others have read.
    Changes,
}

impl Repeat {
    /// That of a call of a tool, by its annotations.
    pub(super) fn of(target: &CallTarget, tool: &UpstreamTool) -> Repeat {
        match (target, tool.effect()) {
            (CallTarget::Tool(_), Effect::Read) if tool.annotations.idempotent_hint == Some(true) => {
                Repeat::Same
            }
            (_, Effect::Read) => Repeat::Reads,
            (_, Effect::Write | Effect::Unknown) => Repeat::Changes,
        }
    }
}

/// The cached results of all servers.
pub(crate) struct ResultCache {
    caching: ResultCaching,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, CachedResult>,
    /// The same in the order in which they were made, which is that in which they end.
    order: BTreeMap<u64, Key>,
    made: u64,
    bytes: usize,
    /// Calls under way that others wait for.
    flights: HashMap<Key, Flight>,
    /// How often each server may have been changed.
    changes: HashMap<Arc<str>, u64>,
    /// How often the servers were replaced.
    generation: u64,
}

struct CachedResult {
    number: u64,
    server: Arc<str>,
    expires: Instant,
    bytes: usize,
    result: Arc<CallResult>,
}

struct Flight {
    number: u64,
    server: Arc<str>,
    landing: watch::Receiver<Landing>,
}

/// The state of a call that others wait for. A dropped sender means that the call was cancelled.
#[derive(Clone)]
enum Landing {
    UnderWay,
    Given(Arc<CallResult>),
    Failed,
}

/// The state of a server at a moment.
type Epoch = (u64, u64);

/// A call that others may wait for. Dropped without an end, one of them takes its place.
struct Lead {
    cache: Arc<ResultCache>,
    key: Key,
    server: Arc<str>,
    number: u64,
    epoch: Epoch,
    told: watch::Sender<Landing>,
}

/// A call that may change something: cached results of its server are dropped when it ends, with or without success.
struct ServerChange {
    cache: Arc<ResultCache>,
    server: Arc<str>,
}

impl Drop for ServerChange {
    fn drop(&mut self) {
        self.cache.state.locked().forget(&self.server);
    }
}

/// A result that may be cached, unless its reader finds that it is a failure.
pub(super) struct Keepable {
    lead: Lead,
    result: Option<Arc<CallResult>>,
}

/// What came of a call.
pub(super) struct CameBack {
    /// The result, or why there is none.
    pub(super) result: Result<CallResult, UpstreamFault>,
    /// It was cached, or is that of an equal call: its server was not asked.
    pub(super) cached: bool,
    /// To be cached when it has been read.
    pub(super) keepable: Option<Keepable>,
}

impl CameBack {
    pub(super) fn upstream(result: Result<CallResult, UpstreamFault>) -> CameBack {
        CameBack { result, cached: false, keepable: None }
    }

    fn kept(result: &CallResult) -> CameBack {
        CameBack { result: Ok(result.clone()), cached: true, keepable: None }
    }
}

/// How a call gets its result.
enum CacheAccess {
    Cached(Arc<CallResult>),
    Lead(Lead),
    Wait(watch::Receiver<Landing>),
}

impl ResultCache {
    /// An empty cache.
    pub(crate) fn new(caching: ResultCaching) -> Arc<ResultCache> {
        Arc::new(ResultCache { caching, state: Mutex::default() })
    }

    /// Forgets everything: a name may mean another server from now on.
    pub(super) fn clear(&self) {
        let mut state = self.state.locked();
        let State { generation, changes, .. } = std::mem::take(&mut *state);
        // Counters go on, so that calls that began before are not cached.
        (state.generation, state.changes) = (generation + 1, changes);
    }

    /// Calls a server, unless the result of an equal call is there or on its way.
    pub(super) async fn ask(
        self: &Arc<ResultCache>,
        account: &RunAccount,
        upstream: &Arc<dyn Upstream>,
        request: ServerRequest,
        repeat: Repeat,
    ) -> CameBack {
        let server = upstream.name();
        let changes = repeat == Repeat::Changes;
        let _change = changes.then(|| ServerChange { cache: self.clone(), server: server.clone() });
        let owner = account.client().map(|client| client.owner);
        match (repeat == Repeat::Same).then(|| key(owner, server, &request)).flatten() {
            Some(key) => self.call(key, upstream, request).await,
            None => CameBack::upstream(upstream.call(request).await),
        }
    }

    async fn call(
        self: &Arc<ResultCache>,
        key: Key,
        upstream: &Arc<dyn Upstream>,
        request: ServerRequest,
    ) -> CameBack {
        loop {
            let lead = match self.turn(key, upstream.name()) {
                CacheAccess::Cached(result) if fits(&result, &request.sink) => {
                    return CameBack::kept(&result);
                }
                // What this caller cannot carry is refused by its server, or goes to a file.
                CacheAccess::Cached(_) => None,
                CacheAccess::Lead(lead) => Some(lead),
                CacheAccess::Wait(mut landing) => {
                    let landed = landing.wait_for(|landing| !matches!(landing, Landing::UnderWay));
                    match timeout_at(request.deadline, landed)
                        .await
                        .map(|landed| landed.map(|landing| landing.clone()))
                    {
                        Err(_) => return CameBack::upstream(Err(UpstreamFault::Timeout(request.timeout))),
                        // It was cancelled.
                        Ok(Err(_)) => continue,
                        Ok(Ok(Landing::Given(result))) if fits(&result, &request.sink) => {
                            return CameBack::kept(&result);
                        }
                        // A failure is that of one call.
                        Ok(Ok(_)) => None,
                    }
                }
            };
            let result = upstream.call(request).await;
            let keepable = lead.and_then(|lead| {
                let kept = result.as_ref().ok().filter(|result| inline(result).is_some());
                match kept {
                    Some(result) => Some(Keepable { lead, result: Some(Arc::new(result.clone())) }),
                    None => {
                        lead.fail();
                        None
                    }
                }
            });
            return CameBack { result, cached: false, keepable };
        }
    }

    fn turn(self: &Arc<ResultCache>, key: Key, server: &Arc<str>) -> CacheAccess {
        let mut state = self.state.locked();
        state.expire(Instant::now());
        if let Some(entry) = state.entries.get(&key) {
            return CacheAccess::Cached(entry.result.clone());
        }
        if let Some(flight) = state.flights.get(&key)
            && flight.landing.has_changed().is_ok()
        {
            return CacheAccess::Wait(flight.landing.clone());
        }
        let (told, landing) = watch::channel(Landing::UnderWay);
        state.made += 1;
        let number = state.made;
        state.flights.insert(key, Flight { number, server: server.clone(), landing });
        let epoch = state.epoch(server);
        CacheAccess::Lead(Lead { cache: self.clone(), key, server: server.clone(), number, epoch, told })
    }
}

impl State {
    fn epoch(&self, server: &str) -> Epoch {
        (self.generation, self.changes.get(server).copied().unwrap_or_default())
    }

    /// Forgets what is known of a server.
    fn forget(&mut self, server: &Arc<str>) {
        *self.changes.entry(server.clone()).or_default() += 1;
        let State { entries, order, bytes, flights, .. } = self;
        entries.retain(|_, entry| {
            let stays = entry.server != *server;
            if !stays {
                order.remove(&entry.number);
                *bytes -= entry.bytes;
            }
            stays
        });
        // Callers that wait for it began before the change had ended; later ones must not join them.
        flights.retain(|_, flight| flight.server != *server);
    }

    fn remove_first(&mut self) {
        if let Some((_, key)) = self.order.pop_first()
            && let Some(entry) = self.entries.remove(&key)
        {
            self.bytes -= entry.bytes;
        }
    }

    fn first(&self) -> Option<&CachedResult> {
        self.entries.get(self.order.first_key_value()?.1)
    }

    fn expire(&mut self, now: Instant) {
        while self.first().is_some_and(|entry| entry.expires <= now) {
            self.remove_first();
        }
    }

    /// Caches a result; the oldest ones are evicted for it.
    fn insert(&mut self, key: Key, server: Arc<str>, result: Arc<CallResult>, caching: ResultCaching) {
        let now = Instant::now();
        let Some(expires) = now.checked_add(caching.ttl) else { return };
        let bytes = inline(&result).map_or(0, |held| held + ENTRY_BYTES);
        if bytes == 0 || bytes > caching.max_bytes {
            return;
        }
        self.expire(now);
        if let Some(before) = self.entries.remove(&key) {
            self.order.remove(&before.number);
            self.bytes -= before.bytes;
        }
        while self.bytes + bytes > caching.max_bytes && !self.order.is_empty() {
            self.remove_first();
        }
        self.made += 1;
        let number = self.made;
        self.bytes += bytes;
        self.order.insert(number, key);
        self.entries.insert(key, CachedResult { number, server, expires, bytes, result });
    }
}

impl Lead {
    /// Fails; the callers that wait send their own calls.
    fn fail(self) {
        self.told.send_replace(Landing::Failed);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut state = self.cache.state.locked();
        if state.flights.get(&self.key).is_some_and(|flight| flight.number == self.number) {
            state.flights.remove(&self.key);
        }
    }
}

impl Keepable {
    /// Caches the result, unless its server may have changed meanwhile.
    pub(super) fn keep(mut self) {
        let Some(result) = self.result.take() else { return };
        let lead = &self.lead;
        let mut state = lead.cache.state.locked();
        if state.epoch(&lead.server) == lead.epoch {
            state.insert(lead.key, lead.server.clone(), result.clone(), lead.cache.caching);
        }
        drop(state);
        lead.told.send_replace(Landing::Given(result));
    }
}

impl Drop for Keepable {
    fn drop(&mut self) {
        // It was read, and is a failure; `keep` has taken any other.
        if self.result.is_some() {
            self.lead.told.send_replace(Landing::Failed);
        }
    }
}

/// Bytes of a result that is a value in memory.
fn inline(result: &CallResult) -> Option<usize> {
    let is_value = !matches!(result, CallResult::Failed { .. });
    let answer = Some(result.answer()).filter(|answer| is_value && answer.spilled().is_none());
    answer.map(RawAnswer::held_bytes)
}

/// Whether a caller with this sink may have it in memory.
fn fits(result: &CallResult, sink: &ResultSink) -> bool {
    inline(result).is_some_and(|bytes| bytes <= sink.max_bytes)
}

fn key(owner: Option<u64>, server: &str, request: &ServerRequest) -> Option<Key> {
    let CallTarget::Tool(tool) = &request.target else { return None };
    let mut arguments: serde_json::Value = serde_json::from_slice(request.arguments.as_ref()).ok()?;
    arguments.sort_all_objects();
    // As JSON, so that no name can run into the next one.
    let text = serde_json::json!([owner, server, tool, arguments]).to_string();
    Some(sha256(text.as_bytes()))
}

#[cfg(test)]
mod tests;
