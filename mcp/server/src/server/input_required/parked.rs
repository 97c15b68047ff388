//! Holds tool calls that wait for answers of their clients (parked), each under an unguessable key, the MCP request
//! state, that the client sends back with the answers.
//!
//! A state works once, for the same owner and the same call only.

use super::call::InputRequiredCall;
use super::client_requests::ClientQuestion;
use crate::server::calls::StartedJob;
use crate::server::gate::ParkingLimits;
use crate::tools::CallOwner;
use crate::tools::owned_table::{Full, Owned, OwnedTable, Quota, random_id};
use ring::digest::{Context, Digest, SHA256};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

/// Random bytes of a state.
const STATE_BYTES: usize = 32;

/// Ends the name of the node in a state.
const NODE_ENDS: char = '.';

/// Identity of a call: the tool and its arguments, in any order of keys. Most calls never ask, so the digest is
/// computed on demand.
#[derive(Clone, Debug)]
pub(in crate::server) enum CallKey {
    /// Not digested yet. `arguments` is JSON text.
    Text {
        tool: Box<str>,
        arguments: Option<Box<str>>,
    },
    Known(Digest),
}

impl CallKey {
    /// A call of this tool with these arguments (JSON text).
    pub(in crate::server) fn new(tool: &str, arguments: Option<&str>) -> CallKey {
        CallKey::Text { tool: tool.into(), arguments: arguments.map(Into::into) }
    }

    /// Digest that is equal for equal calls. The text is dropped.
    pub(in crate::server) fn digest(&mut self) -> Digest {
        let digest = match self {
            CallKey::Text { tool, arguments } => compute_digest(tool, arguments.as_deref()),
            CallKey::Known(digest) => *digest,
        };
        *self = CallKey::Known(digest);
        digest
    }
}

fn compute_digest(tool: &str, arguments: Option<&str>) -> Digest {
    let mut key = Context::new(&SHA256);
    key.update(tool.as_bytes());
    match arguments.map(|text| (text, serde_json::from_str::<Value>(text))) {
        None => key.update(b"\nnone"),
        Some((_, Ok(mut arguments))) => {
            arguments.sort_all_objects();
            key.update(b"\ndata");
            key.update(arguments.to_string().as_bytes());
        }
        // Arguments that nest deeper than the parser reads. A client has to repeat them as the same text.
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
    pub(in crate::server) run: InputRequiredCall,
    pub(in crate::server) job: StartedJob,
    pub(in crate::server) asked: Vec<ClientQuestion>,
    pub(in crate::server) since: Instant,
}

impl ParkedCall {
    /// Takes what is needed to go on: the run, its job, and the questions.
    pub(in crate::server) fn resume(mut self) -> (InputRequiredCall, StartedJob, Vec<ClientQuestion>) {
        (self.run.clone(), std::mem::take(&mut self.job), std::mem::take(&mut self.asked))
    }
}

impl Drop for ParkedCall {
    fn drop(&mut self) {
        // A resumed run is not cancelled: `resume` has taken this.
        if let Some(cancel) = self.job.cancel.take() {
            cancel();
        }
    }
}

/// Why a run cannot be parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum ParkError {
    /// Too many runs are parked.
    Busy,
    /// The server or the connection ends.
    Ending,
    /// The system has no random numbers.
    NoRandomness,
}

impl ParkError {
    /// Error text for the upstream server that asks.
    pub(in crate::server) fn message(self) -> &'static str {
        match self {
            ParkError::Busy => {
                "busy: as many calls wait for answers of their clients as may (max-parked); ask again later"
            }
            ParkError::Ending => "the client cannot be asked any more: it is being disconnected",
            ParkError::NoRandomness => "the client cannot be asked: there are no random numbers",
        }
    }
}

/// Why a state is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum StateError {
    /// It is unknown, expired, already used, or another owner's. Which of these is not disclosed.
    Unknown,
    /// It belongs to another call.
    OtherCall,
}

impl StateError {
    /// Error text for the client.
    pub(in crate::server) fn message(self) -> &'static str {
        match self {
            StateError::Unknown => {
                "unknown requestState: it was used, has expired, or was not given to this client; its program does not \
                 go on, and a call without requestState begins another one"
            }
            StateError::OtherCall => {
                "requestState belongs to another call: repeat that one, with the same name and arguments"
            }
        }
    }
}

impl Owned for ParkedCall {
    /// It expires by its age only.
    fn last_used(&self) -> Instant {
        self.since
    }
}

/// The parked runs of one connection, or of all clients over HTTP.
pub(in crate::server) struct ParkedCalls {
    limits: ParkingLimits,
    /// States begin so: with the name of this node, where there can be others.
    prefix: String,
    calls: Arc<OwnedTable<ParkedCall>>,
}

impl ParkedCalls {
    /// An empty table, of the node with this name.
    pub(in crate::server) fn new(limits: ParkingLimits, node: Option<&str>) -> Arc<ParkedCalls> {
        let prefix = node.map_or_else(String::new, |node| format!("{node}{NODE_ENDS}"));
        // Dropping an expired call ends its run.
        Arc::new(ParkedCalls { limits, prefix, calls: OwnedTable::new(None, |expired, _| drop(expired)) })
    }

    /// True for a state that says that this node has given it: no other one knows what has become of its run.
    pub(in crate::server) fn is_of_this_node(&self, state: &str) -> bool {
        !self.prefix.is_empty() && state.starts_with(&self.prefix)
    }

    /// True for a state that says that a node has given it.
    pub(in crate::server) fn is_of_a_node(state: &str) -> bool {
        state.contains(NODE_ENDS)
    }

    /// Parks a run; at most `most_of_owner` per owner. Returns the state that the client is to send back.
    ///
    /// # Errors
    /// There is no room; the run is handed back.
    pub(in crate::server) fn park(
        &self,
        call: ParkedCall,
        most_of_owner: usize,
    ) -> Result<String, (Box<ParkedCall>, ParkError)> {
        let Some(name) = random_id::<STATE_BYTES>(&self.prefix) else {
            return Err((Box::new(call), ParkError::NoRandomness));
        };
        let (owner, quota) = (call.owner, Quota { most: self.limits.most, most_of_owner });
        if let Err(Full::Quota { .. }) = self.calls.check_room(owner, quota) {
            // The ended run of this owner that has waited longest for its answer to be fetched.
            let over =
                |whose, call: &ParkedCall| (whose == owner && call.run.is_over()).then_some(call.since);
            drop(self.calls.remove_least(over));
        }
        match self.calls.insert((owner, &name), quota, self.limits.timeout, call) {
            Ok(()) => Ok(name),
            Err((call, Full::Closed)) => Err((Box::new(call), ParkError::Ending)),
            Err((call, Full::Quota { .. })) => Err((Box::new(call), ParkError::Busy)),
        }
    }

    /// Takes the run of this owner and call.
    ///
    /// # Errors
    /// There is none under this state.
    pub(in crate::server) fn take(
        &self,
        name: &str,
        owner: CallOwner,
        key: &mut CallKey,
    ) -> Result<ParkedCall, StateError> {
        let theirs = self.calls.look(owner, name, |call| call.key).ok_or(StateError::Unknown)?;
        if theirs.as_ref() != key.digest().as_ref() {
            return Err(StateError::OtherCall);
        }
        self.calls.remove(owner, name).ok_or(StateError::Unknown)
    }

    /// Ends all runs of an owner, and returns how many they were.
    pub(in crate::server) fn end_all(&self, owner: CallOwner) -> usize {
        self.calls.remove_all(|whose, _| whose == owner).len()
    }

    /// Ends all runs, and parks no more.
    pub(in crate::server) fn close(&self) {
        drop(self.calls.close());
    }
}
