//! Runs whose clients were asked and have not called again. Each is kept under a state that nobody can guess and that is
//! good once, for whoever made the call and for the same call only.

use super::client_requests::ClientQuestion;
use super::rounds::RoundedCall;
use crate::server::gate::Parking;
use crate::tools::{CallOwner, Cancel};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ptc_runtime::tasks::{self, TaskOwner};
use ring::digest::{Context, Digest, SHA256};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// Random bytes of a state.
const STATE_BYTES: usize = 32;

/// Which call: the tool and its arguments, in whatever order they are written. Most calls are never asked about, so what
/// they are is worked out when somebody wants to know.
#[derive(Clone, Debug)]
pub(in crate::server) enum CallKey {
    /// JSON text.
    Text {
        tool: Box<str>,
        arguments: Option<Box<str>>,
    },
    Known(Digest),
}

impl CallKey {
    /// Of this tool with these arguments, JSON text.
    pub(in crate::server) fn of(tool: &str, arguments: Option<&str>) -> CallKey {
        CallKey::Text { tool: tool.into(), arguments: arguments.map(Into::into) }
    }

    /// Is the same for the same call. The text goes.
    pub(in crate::server) fn digest(&mut self) -> Digest {
        let digest = match self {
            CallKey::Text { tool, arguments } => digest_of(tool, arguments.as_deref()),
            CallKey::Known(digest) => *digest,
        };
        *self = CallKey::Known(digest);
        digest
    }
}

fn digest_of(tool: &str, arguments: Option<&str>) -> Digest {
    let mut key = Context::new(&SHA256);
    key.update(tool.as_bytes());
    match arguments.map(|text| (text, serde_json::from_str::<Value>(text))) {
        None => key.update(b"\nnone"),
        Some((_, Ok(mut arguments))) => {
            arguments.sort_all_objects();
            key.update(b"\ndata");
            key.update(arguments.to_string().as_bytes());
        }
        // They nest deeper than is read here: who repeats such a call writes it as before.
        Some((text, Err(_))) => {
            key.update(b"\ntext");
            key.update(text.as_bytes());
        }
    }
    key.finish()
}

/// A run that waits for its client to call again. Dropping it ends the run.
pub(in crate::server) struct ParkedCall {
    pub(in crate::server) owner: CallOwner,
    pub(in crate::server) key: Digest,
    pub(in crate::server) run: RoundedCall,
    pub(in crate::server) cancel: Option<Cancel>,
    pub(in crate::server) asked: Vec<ClientQuestion>,
    pub(in crate::server) since: Instant,
}

impl ParkedCall {
    /// Goes on: the run, how it is stopped, and what its client was asked.
    pub(in crate::server) fn resume(mut self) -> (RoundedCall, Option<Cancel>, Vec<ClientQuestion>) {
        (self.run.clone(), self.cancel.take(), std::mem::take(&mut self.asked))
    }
}

impl Drop for ParkedCall {
    fn drop(&mut self) {
        // What goes on is not parked any more.
        if let Some(cancel) = self.cancel.take() {
            cancel();
        }
    }
}

/// Why a run cannot be parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum NoParking {
    /// As many wait as may.
    Busy,
    /// The server, or the connection, ends.
    Ending,
    /// No state could be made.
    NoChance,
}

impl NoParking {
    /// What the server is told that asks.
    pub(in crate::server) fn message(self) -> &'static str {
        match self {
            NoParking::Busy => {
                "busy: as many calls wait for answers of their clients as may (max-parked); ask again later"
            }
            NoParking::Ending => "the client cannot be asked any more: it is being disconnected",
            NoParking::NoChance => "the client cannot be asked: there are no random numbers",
        }
    }
}

/// Why a state is good for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum WrongState {
    /// It is none of ours, somebody else's, was used before, or its time is over. Which of these is nobody's business.
    Unknown,
    /// It was given to another call.
    OtherCall,
}

impl WrongState {
    /// What the client is told.
    pub(in crate::server) fn message(self) -> &'static str {
        match self {
            WrongState::Unknown => {
                "unknown requestState: it was used, has expired, or was not given to this client; its program does not \
                 go on, and a call without requestState begins another one"
            }
            WrongState::OtherCall => {
                "requestState belongs to another call: repeat that one, with the same name and arguments"
            }
        }
    }
}

/// The runs of one connection, or of all clients over HTTP.
pub(in crate::server) struct ParkedCalls {
    limits: Parking,
    state: Mutex<ParkedState>,
}

#[derive(Default)]
struct ParkedState {
    calls: HashMap<String, (ParkedCall, Expiry)>,
    is_closed: bool,
}

impl ParkedState {
    fn has_room(&self, owner: CallOwner, most: usize, most_of_owner: usize) -> bool {
        let of_owner = self.calls.values().filter(|(parked, _)| parked.owner == owner).count();
        self.calls.len() < most && of_owner < most_of_owner
    }

    /// Forgets the run of this owner that has ended and has waited longest to tell its answer.
    fn forget_ended(&mut self, owner: CallOwner) -> Option<ParkedCall> {
        let ended = self.calls.iter().filter(|(_, (call, _))| call.owner == owner && call.run.is_over());
        let oldest = ended.min_by_key(|(_, (call, _))| call.since).map(|(name, _)| name.clone())?;
        self.calls.remove(&oldest).map(|(call, _)| call)
    }
}

/// Ends a run that is parked too long, unless it is dropped.
struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ParkedCalls {
    /// None yet.
    pub(in crate::server) fn new(limits: Parking) -> Arc<ParkedCalls> {
        Arc::new(ParkedCalls { limits, state: Mutex::default() })
    }

    /// Keeps a run, of whose owner there may be so many; the state that its client is to send back.
    ///
    /// # Errors
    /// There is no room; the run is handed back.
    pub(in crate::server) fn park(
        self: &Arc<ParkedCalls>,
        call: ParkedCall,
        most_of_owner: usize,
    ) -> Result<String, (Box<ParkedCall>, NoParking)> {
        let mut random = [0; STATE_BYTES];
        if getrandom::fill(&mut random).is_err() {
            return Err((Box::new(call), NoParking::NoChance));
        }
        let name = BASE64_URL_SAFE_NO_PAD.encode(random);
        let mut state = self.lock();
        if state.is_closed {
            return Err((Box::new(call), NoParking::Ending));
        }
        let mut forgotten = None;
        if !state.has_room(call.owner, self.limits.most, most_of_owner) {
            forgotten = state.forget_ended(call.owner);
            if !state.has_room(call.owner, self.limits.most, most_of_owner) {
                return Err((Box::new(call), NoParking::Busy));
            }
        }
        let (parked, expired, patience) = (Arc::downgrade(self), name.clone(), self.limits.patience);
        let expiry = tasks::spawn(TaskOwner::Connection, async move {
            sleep(patience).await;
            if let Some(parked) = parked.upgrade() {
                // Here nobody waits for the table.
                let over = parked.lock().calls.remove(&expired);
                drop(over);
            }
        });
        state.calls.insert(name.clone(), (call, Expiry(expiry.abort_handle())));
        drop(state);
        drop(forgotten);
        Ok(name)
    }

    /// Takes a run for the same call of its owner.
    ///
    /// # Errors
    /// There is none under this state.
    pub(in crate::server) fn take(
        &self,
        name: &str,
        owner: CallOwner,
        key: &mut CallKey,
    ) -> Result<ParkedCall, WrongState> {
        let is_theirs = self.lock().calls.get(name).is_some_and(|(call, _)| call.owner == owner);
        if !is_theirs {
            return Err(WrongState::Unknown);
        }
        // Here nobody waits for the table.
        let key = key.digest();
        let mut state = self.lock();
        match state.calls.get(name) {
            Some((call, _)) if call.owner != owner => Err(WrongState::Unknown),
            Some((call, _)) if call.key.as_ref() != key.as_ref() => Err(WrongState::OtherCall),
            _ => state.calls.remove(name).map(|(call, _)| call).ok_or(WrongState::Unknown),
        }
    }

    /// Ends those of an owner; how many they were.
    pub(in crate::server) fn end_of(&self, owner: CallOwner) -> usize {
        let gone: Vec<_> = self.lock().calls.extract_if(|_, (call, _)| call.owner == owner).collect();
        // They are dropped here, where nobody waits for the table.
        gone.len()
    }

    /// Ends all of them, and keeps no more.
    pub(in crate::server) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        drop(calls);
    }

    fn lock(&self) -> MutexGuard<'_, ParkedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ParkedCalls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ParkedCalls").field("limits", &self.limits).finish_non_exhaustive()
    }
}
