//! Handles what a server sends without being asked: notifications, progress of calls, and requests, which are passed to
//! the client. Nothing waits here and nothing is queued: a server that talks without end costs no memory, and one event
//! cannot delay the answer behind it.

use super::listings::ToolListings;
use super::questions::{AskingCall, Questions};
use crate::callers::{CallUnderWay, Callers, RequestKind};
use crate::client_features::{PassedRequest, forwarded};
use crate::jsonrpc::message::{self, ProgressNote};
use crate::progress::{CallProgress, FollowedCall, FollowedCalls};
use crate::{CallingClient, ClientError, ClientFeatures, Offered};
use ptc_base::sync::Locked;
use ptc_calls::tools::ServerText;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::Notify;

/// Notifications after which the tool list may have changed. Changes before a subscription began are not reported, so
/// its beginning counts as a change.
const TOOL_CHANGES: [&str; 2] =
    ["notifications/tools/list_changed", "notifications/subscriptions/acknowledged"];

/// Notifications after which what the server offers besides tools may have changed.
const OFFER_CHANGES: [&str; 2] =
    ["notifications/resources/list_changed", "notifications/prompts/list_changed"];

/// Size limit of a client's answer that is forwarded.
const LARGEST_ANSWER: usize = 256 << 10;

/// JSON-RPC code of a refused request.
const REFUSED: i64 = -32603;

/// A call that has not ended. Its end may end the requests of the server.
pub(crate) struct UnderWay {
    /// `None` where there is only one client.
    _caller: Option<CallUnderWay>,
    _asking: AskingCall,
}

/// The events of one connection, from its transport to its supervisor.
pub struct ServerEvents {
    server: Arc<str>,
    client: ClientFeatures,
    /// The features that were declared to the server.
    declared: OnceLock<Offered>,
    questions: Questions,
    /// The clients whose calls are under way, where there are many clients.
    callers: Arc<Callers>,
    /// The calls whose progress is asked for.
    followed: Arc<FollowedCalls>,
    /// Why requests were not forwarded, each reason once.
    declined: Mutex<Vec<&'static str>>,
    heard: AtomicBool,
    signs_of_life: AtomicU64,
    pub(crate) tools: ToolListings,
    offers_changed: Notify,
}

impl ServerEvents {
    pub(crate) fn new(server: Arc<str>, client: ClientFeatures) -> ServerEvents {
        ServerEvents {
            server,
            client,
            declared: OnceLock::new(),
            questions: Questions::default(),
            callers: Arc::default(),
            followed: Arc::default(),
            declined: Mutex::default(),
            heard: AtomicBool::new(false),
            signs_of_life: AtomicU64::new(0),
            tools: ToolListings::default(),
            offers_changed: Notify::new(),
        }
    }

    /// Configured name of the server, for logs.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Notes that a message of any kind has come.
    pub fn heard(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// Notes that a request of ours was answered, with a result or an error, even if its caller has gone; or that the
    /// server works at it. To be called once for each answer. Only these are signs of life: what a server says unasked
    /// may come from a part of it that does not listen.
    pub fn answered(&self) {
        self.heard();
        self.signs_of_life.fetch_add(1, Ordering::Relaxed);
    }

    /// A notification of the server.
    pub fn notification(&self, method: &str) {
        self.heard();
        if TOOL_CHANGES.contains(&method) {
            self.tools.change();
        } else if OFFER_CHANGES.contains(&method) {
            self.offers_changed.notify_one();
        } else {
            tracing::debug!(upstream = &*self.server, method = %ServerText::new(method), "notification ignored");
        }
    }

    /// Registers a call that the server may report progress of, until the result is dropped.
    pub(crate) fn follow(&self, call: CallProgress) -> FollowedCall {
        self.followed.enter(call)
    }

    /// The server reports progress of a request of ours.
    pub(crate) fn progress(&self, note: &ProgressNote) {
        self.heard();
        self.followed.deliver(&self.server, note);
    }

    /// A request of the server, with the JSON text of its id and of its parameters. `reply` sends the answer: at once,
    /// or, for a request that is forwarded to our client, when the client has answered.
    pub fn request(&self, id: &str, method: &str, params: &str, reply: impl FnOnce(String) + Send + 'static) {
        self.heard();
        tracing::debug!(upstream = &*self.server, method = %ServerText::new(method), "request from the server");
        let declared = self.declared.get().copied().unwrap_or_default();
        let passed = match forwarded(declared, &self.server, method, params) {
            None => return reply(message::reply(id, method)),
            Some(Err(why)) => return reply(message::answer(id, &Err(refused(why)))),
            Some(Ok(passed)) => passed,
        };
        let PassedRequest { kind, method, params } = passed;
        let client = match self.client.asked(&self.callers, kind) {
            Ok(client) => client,
            Err(why) => {
                self.tell_declined(method, why);
                return reply(message::answer(id, &Err(refused(why))));
            }
        };
        // Folders may be for later calls, unless the client is known by its calls alone.
        let may_be_of_call = kind == RequestKind::Form || self.client.are_callers();
        let own = id.to_owned();
        let answer = async move { client.ask(method, params).await.and_then(passable) };
        let answered = move |answer: Result<String, ClientError>| reply(message::answer(&own, &answer));
        if let Err((why, answered)) = self.questions.ask(id, may_be_of_call, answer, answered) {
            answered(Err(refused(why)));
        }
    }

    /// Logs each reason once: a server that asks in a loop would fill the log.
    fn tell_declined(&self, method: &str, why: &'static str) {
        let mut declined = self.declined.locked();
        if !declined.contains(&why) {
            declined.push(why);
            let method = ServerText::new(method);
            tracing::warn!(upstream = &*self.server, %method, why, "a request of the server was declined");
        }
    }

    /// Registers a call of this client until the result is dropped.
    pub(crate) fn under_way(&self, client: Option<CallingClient>) -> UnderWay {
        // One that has gone on as a task asks in another way than the only client.
        let is_known =
            self.client.are_callers() || client.as_ref().is_some_and(|client| client.asked.is_some());
        UnderWay { _caller: is_known.then(|| self.callers.enter(client)), _asking: self.questions.enter() }
    }

    /// The client of this process.
    pub(crate) fn client(&self) -> ClientFeatures {
        self.client.clone()
    }

    /// The server withdraws a request of its own.
    pub fn withdrawal(&self, id: &str) {
        self.heard();
        self.questions.withdraw(id);
    }

    /// Aborts the requests that wait for the client.
    pub(crate) fn forget_requests(&self) {
        self.questions.abort();
    }

    /// The features to declare to the server. Its requests are judged by them.
    pub(crate) async fn declare(&self) -> Offered {
        let offered = self.client.offered().await;
        *self.declared.get_or_init(|| offered)
    }

    pub(crate) fn has_spoken(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    pub(crate) fn signs_of_life(&self) -> u64 {
        self.signs_of_life.load(Ordering::Relaxed)
    }

    /// Waits for a change of the lists of resources or prompts; one that came before is not missed.
    pub(crate) async fn offers_changed(&self) {
        self.offers_changed.notified().await;
    }
}

/// The error for a request that is not answered by the client.
pub(super) fn refused(why: &str) -> ClientError {
    ClientError { code: REFUSED, message: why.to_owned() }
}

/// The answer of a client on one line, since a message to a server is a line. In JSON, line breaks stand between values
/// only.
fn passable(answer: String) -> Result<String, ClientError> {
    if answer.len() > LARGEST_ANSWER {
        return Err(refused("the answer of the client is too large to be passed on"));
    }
    Ok(if answer.contains(['\n', '\r']) { answer.replace(['\n', '\r'], " ") } else { answer })
}
