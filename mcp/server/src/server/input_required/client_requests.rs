//! Queues the questions that upstream servers (MCP servers that programs call) ask one client, and matches the client's
//! answers to them.
//!
//! An upstream's request waits here. The connection sends it, and passes the client's answer back.

use super::call::PendingRequestSlot;
use crate::protocol::{Raw, ServerMessage, notify};
use crate::server::mailbox::Mailbox;
use ptc_base::sync::Locked;
use ptc_upstream::{ClientAnswer, ClientError, ErrorObject, ServedClient};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Most requests that may wait for the client at a time, over all upstreams.
const MOST: usize = 64;

/// Most requests of one call: a person must not be asked without end.
const MOST_OF_CALL: u64 = 100;

/// JSON-RPC code for a request that the client does not answer.
const UNANSWERED: i64 = -32603;

/// How long a question waits for others before the response asks them all: parallel branches ask at the same
/// time.
const GATHERED: Duration = Duration::from_millis(20);

/// Result of an elicitation that the client does not answer.
const CANCEL: &str = r#"{"action":"cancel"}"#;

type Answer = Result<String, ClientError>;

/// The open requests to one client.
pub(in crate::server) struct ClientRequests {
    /// Prefix of their ids.
    name: String,
    /// Most requests, over the lifetime.
    most: u64,
    state: Mutex<RequestState>,
    delivery: Delivery,
}

#[derive(Default)]
struct RequestState {
    next: u64,
    outgoing: Vec<UnsentMessage>,
    waiting: HashMap<String, oneshot::Sender<Answer>>,
    is_closed: bool,
}

/// How the client gets them.
enum Delivery {
    /// A connection sends them; its mailbox is woken.
    Stream(Arc<Mailbox>),
    /// The response to the call asks them.
    InResponse(Arc<PendingRequestSlot>),
}

/// A message to the client that has not been sent.
enum UnsentMessage {
    Question(ClientQuestion),
    Withdrawal(String),
}

/// A request to the client.
pub(in crate::server) struct ClientQuestion {
    /// Its name.
    pub(in crate::server) id: String,
    pub(super) method: &'static str,
    /// JSON text.
    pub(super) params: String,
    /// The client was asked before and did not answer.
    again: bool,
}

impl ClientRequests {
    /// Requests over a connection, without a limit on their number. `name` prefixes their ids.
    pub(in crate::server) fn for_connection(name: String, mailbox: Arc<Mailbox>) -> ClientRequests {
        ClientRequests { most: u64::MAX, ..ClientRequests::for_call(name, mailbox) }
    }

    /// Requests of one call, sent over a connection. `name` prefixes their ids.
    pub(in crate::server) fn for_call(name: String, mailbox: Arc<Mailbox>) -> ClientRequests {
        ClientRequests::new(name, Delivery::Stream(mailbox))
    }

    /// Requests of one call, asked in its responses.
    pub(super) fn for_input_required(name: String, slot: Arc<PendingRequestSlot>) -> ClientRequests {
        ClientRequests::new(name, Delivery::InResponse(slot))
    }

    fn new(name: String, delivery: Delivery) -> ClientRequests {
        ClientRequests { name, most: MOST_OF_CALL, state: Mutex::default(), delivery }
    }

    /// Takes the messages that are to be sent.
    pub(in crate::server) fn take(&self) -> Vec<ServerMessage> {
        let outgoing = std::mem::take(&mut self.state.locked().outgoing);
        let message = |outgoing| match outgoing {
            UnsentMessage::Question(ClientQuestion { id, method, params, .. }) => {
                ServerMessage::request(&id, method, &params)
            }
            UnsentMessage::Withdrawal(id) => notify::cancelled(&id),
        };
        outgoing.into_iter().map(message).collect()
    }

    /// Takes the questions that a response is to ask.
    pub(in crate::server) fn questions(&self) -> Vec<ClientQuestion> {
        let outgoing = std::mem::take(&mut self.state.locked().outgoing);
        let asked = |outgoing| match outgoing {
            UnsentMessage::Question(question) => Some(question),
            UnsentMessage::Withdrawal(_) => None,
        };
        outgoing.into_iter().filter_map(asked).collect()
    }

    /// True while a request with this id waits.
    pub(in crate::server) fn awaits(&self, id: Option<Raw<'_>>) -> bool {
        let id: Option<String> = id.and_then(|id| serde_json::from_str(id.get()).ok());
        id.is_some_and(|id| self.state.locked().waiting.contains_key(&id))
    }

    /// Passes on the client's answer. An answer with an unknown id is ignored.
    pub(in crate::server) fn answer(&self, id: Option<Raw<'_>>, answer: Result<Raw<'_>, Raw<'_>>) {
        let id: Option<String> = id.and_then(|id| serde_json::from_str(id.get()).ok());
        let Some(id) = id else { return };
        self.settle(&id, || match answer {
            Ok(result) => Ok(result.get().to_owned()),
            Err(error) => Err(ErrorObject::read(error.get().as_bytes()).into()),
        });
    }

    /// Passes on the client's answer to this question.
    pub(in crate::server) fn answered(&self, question: &ClientQuestion, result: String) {
        self.settle(&question.id, || Ok(result));
    }

    /// Passes on the client's answer to this question, or its error.
    pub(in crate::server) fn settled(&self, question: &ClientQuestion, answer: Result<&str, &str>) {
        self.settle(&question.id, || match answer {
            Ok(result) => Ok(result.to_owned()),
            Err(error) => Err(ErrorObject::read(error.as_bytes()).into()),
        });
    }

    /// True while a question waits for its answer.
    pub(in crate::server) fn is_open(&self, question: &ClientQuestion) -> bool {
        self.state.locked().waiting.contains_key(&question.id)
    }

    /// Handles a question that the client did not answer in its next call. It is asked once more, as the
    /// protocol requires. After the second time it counts as unanswered.
    pub(super) fn unanswered_once(&self, question: ClientQuestion) {
        if question.again {
            return self.settle(&question.id, || match question.method {
                "elicitation/create" => Ok(CANCEL.to_owned()),
                _ => Err(unanswered("the client does not answer")),
            });
        }
        let mut state = self.state.locked();
        if state.waiting.contains_key(&question.id) {
            state.outgoing.push(UnsentMessage::Question(ClientQuestion { again: true, ..question }));
        }
    }

    /// Fails a question that the client will not be asked.
    pub(in crate::server) fn refuse(&self, question: &ClientQuestion, why: &str) {
        self.settle(&question.id, || Err(unanswered(why)));
    }

    fn settle(&self, id: &str, answer: impl FnOnce() -> Answer) {
        let Some(waiting) = self.state.locked().waiting.remove(id) else { return };
        // The upstream may just have given up.
        let _ = waiting.send(answer());
    }

    /// Fails all requests: the client has gone.
    pub(in crate::server) fn close(&self) {
        let mut state = self.state.locked();
        state.is_closed = true;
        state.waiting.clear();
        state.outgoing.clear();
    }

    fn begin(
        &self,
        method: &'static str,
        params: String,
    ) -> Result<(String, oneshot::Receiver<Answer>), ClientError> {
        let mut state = self.state.locked();
        if state.is_closed {
            return Err(unanswered("the client has gone"));
        }
        if state.next >= self.most {
            return Err(unanswered("the client was asked too often in one call"));
        }
        if state.waiting.len() >= MOST || state.outgoing.len() >= 2 * MOST {
            return Err(unanswered("too many requests wait for the client"));
        }
        state.next += 1;
        let id = format!("{}-{}", self.name, state.next);
        let (sender, answer) = oneshot::channel();
        let question = ClientQuestion { id: id.clone(), method, params, again: false };
        state.outgoing.push(UnsentMessage::Question(question));
        state.waiting.insert(id.clone(), sender);
        Ok((id, answer))
    }

    /// Notifies the connection or the waiting request of a new question.
    async fn notify(&self) {
        match &self.delivery {
            Delivery::Stream(mailbox) => mailbox.wake(),
            Delivery::InResponse(slot) => {
                sleep(GATHERED).await;
                slot.notify_question();
            }
        }
    }

    /// Withdraws a request that has no answer yet.
    fn withdraw(&self, id: &str) {
        let mut state = self.state.locked();
        if state.waiting.remove(id).is_none() {
            return;
        }
        let is_it = |outgoing: &UnsentMessage| matches!(outgoing, UnsentMessage::Question(question) if question.id == id);
        if let Some(unsent) = state.outgoing.iter().position(is_it) {
            state.outgoing.remove(unsent);
        } else if let Delivery::Stream(mailbox) = &self.delivery {
            state.outgoing.push(UnsentMessage::Withdrawal(id.to_owned()));
            drop(state);
            mailbox.wake();
        }
    }
}

impl ServedClient for ClientRequests {
    fn ask(self: Arc<Self>, method: &'static str, params: String) -> ClientAnswer {
        Box::pin(async move {
            let (id, answer) = self.begin(method, params)?;
            let _awaited = WithdrawOnDrop { requests: &self, id };
            self.notify().await;
            answer.await.unwrap_or_else(|_| Err(unanswered("the client has gone")))
        })
    }
}

/// Withdraws a request when it is dropped without an answer.
struct WithdrawOnDrop<'r> {
    requests: &'r ClientRequests,
    id: String,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        self.requests.withdraw(&self.id);
    }
}

fn unanswered(why: &str) -> ClientError {
    ClientError { code: UNANSWERED, message: why.to_owned() }
}
