//! Requests of servers that are passed to the client of a connection: whoever asks leaves them here, the connection
//! sends them, and the client's answers come back through it.

use super::mailbox::Mailbox;
use crate::protocol::{Raw, ServerMessage, notify};
use ptc_runtime::upstream::{ClientAnswer, ClientError, ErrorObject, ServedClient};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Requests that may wait for the client at a time, those of all servers.
const MOST: usize = 64;

/// Requests of one call: a person is not to be asked without end.
const MOST_OF_CALL: u64 = 100;

/// JSON-RPC code of a request that nobody answers.
const UNANSWERED: i64 = -32603;

type Answer = Result<String, ClientError>;

/// The requests to one client.
pub(super) struct ClientRequests {
    /// What the ids of these requests begin with.
    name: String,
    /// Requests that there may be, one after the other.
    most: u64,
    state: Mutex<RequestState>,
    /// Wakes the connection.
    mailbox: Arc<Mailbox>,
}

#[derive(Default)]
struct RequestState {
    next: u64,
    outgoing: Vec<ServerMessage>,
    waiting: HashMap<String, oneshot::Sender<Answer>>,
    is_closed: bool,
}

impl ClientRequests {
    /// No requests; their ids begin with this. There is no end to those of a connection.
    pub(super) fn of_connection(name: String, mailbox: Arc<Mailbox>) -> ClientRequests {
        ClientRequests { name, most: u64::MAX, state: Mutex::default(), mailbox }
    }

    /// No requests, for those of one call.
    pub(super) fn of_call(name: String, mailbox: Arc<Mailbox>) -> ClientRequests {
        ClientRequests { name, most: MOST_OF_CALL, state: Mutex::default(), mailbox }
    }

    /// What is to be sent.
    pub(super) fn take(&self) -> Vec<ServerMessage> {
        std::mem::take(&mut self.lock().outgoing)
    }

    /// True when a request with this id waits.
    pub(super) fn awaits(&self, id: Option<Raw<'_>>) -> bool {
        let id: Option<String> = id.and_then(|id| serde_json::from_str(id.get()).ok());
        id.is_some_and(|id| self.lock().waiting.contains_key(&id))
    }

    /// The client has answered. An answer that nobody waits for is ignored.
    pub(super) fn answer(&self, id: Option<Raw<'_>>, answer: Result<Raw<'_>, Raw<'_>>) {
        let id: Option<String> = id.and_then(|id| serde_json::from_str(id.get()).ok());
        let Some(waiting) = id.and_then(|id| self.lock().waiting.remove(&id)) else { return };
        let answer = match answer {
            Ok(result) => Ok(result.get().to_owned()),
            Err(error) => Err(ErrorObject::read(error.get().as_bytes()).into()),
        };
        // Whoever asked may have given up in this instant.
        let _ = waiting.send(answer);
    }

    /// The client has gone.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.waiting.clear();
    }

    fn begin(&self, method: &str, params: &str) -> Result<(String, oneshot::Receiver<Answer>), ClientError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(unanswered("the client has gone"));
        }
        if state.next >= self.most {
            return Err(unanswered("the client was asked too often in one call"));
        }
        // Those that were taken back before the client could be told wait, too.
        if state.waiting.len() >= MOST || state.outgoing.len() >= 2 * MOST {
            return Err(unanswered("too many requests wait for the client"));
        }
        state.next += 1;
        let id = format!("{}-{}", self.name, state.next);
        let (sender, answer) = oneshot::channel();
        state.outgoing.push(ServerMessage::request(&id, method, params));
        state.waiting.insert(id.clone(), sender);
        drop(state);
        self.mailbox.wake();
        Ok((id, answer))
    }

    fn lock(&self) -> MutexGuard<'_, RequestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ClientRequests {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientRequests").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ServedClient for ClientRequests {
    fn ask(self: Arc<Self>, method: &'static str, params: String) -> ClientAnswer {
        Box::pin(async move {
            let (id, answer) = self.begin(method, &params)?;
            let _awaited = AwaitedAnswer { requests: &self, id };
            answer.await.unwrap_or_else(|_| Err(unanswered("the client has gone")))
        })
    }
}

/// Takes a request back that has no answer when this is dropped.
struct AwaitedAnswer<'r> {
    requests: &'r ClientRequests,
    id: String,
}

impl Drop for AwaitedAnswer<'_> {
    fn drop(&mut self) {
        let mut state = self.requests.lock();
        if state.waiting.remove(&self.id).is_some() {
            state.outgoing.push(notify::cancelled(&self.id));
            drop(state);
            self.requests.mailbox.wake();
        }
    }
}

fn unanswered(why: &str) -> ClientError {
    ClientError { code: UNANSWERED, message: why.to_owned() }
}
