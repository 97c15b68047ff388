//! Dispatches a message that a server sends over HTTP: an answer goes to the call that waits for it, anything else to
//! the connection's event handler. A message in a file is matched with the request that it answers.

use crate::jsonrpc::message::{self, Incoming, OversizeKind, PROGRESS};
use crate::jsonrpc::{ErrorObject, RawAnswer};
use crate::transport::ServerEvents;
use ptc_base::spill::RawSpill;

/// Sends what answers a request of the server.
pub(super) type Reply = Box<dyn FnOnce(String) + Send>;

/// Bytes of both ends of a message in a file that are read to find its id.
const ENDS: usize = 4_096;

/// The request that a message in a file answers.
pub(super) fn identify(raw: &RawSpill) -> OversizeKind {
    match raw.ends(ENDS) {
        Ok((head, tail)) => message::identify(&head, &tail),
        Err(_) => OversizeKind::Unknown,
    }
}

/// Whether it may be the answer to this request.
pub(super) fn may_answer(raw: &RawSpill, id: u64) -> bool {
    match identify(raw) {
        OversizeKind::Response(theirs) => theirs == id,
        OversizeKind::Unknown => true,
        OversizeKind::Other => false,
    }
}

/// Receives an answer and the id of its request; `None`: the only request in flight.
pub(super) type Answers<'a> = dyn FnMut(Option<u64>, Result<RawAnswer, ErrorObject>) + 'a;

/// Handles a message. `answers` gets the answers in it; `reply` makes the function that answers the server's own
/// requests.
pub(super) fn handle(
    incoming: Incoming,
    events: &ServerEvents,
    answers: &mut Answers<'_>,
    reply: &dyn Fn() -> Reply,
) {
    match incoming {
        Incoming::Response { id, body } => answers(Some(id), body),
        Incoming::Broken { ids, why, .. } => {
            let error = || Err(ErrorObject::about(why.clone()));
            if ids.is_empty() {
                answers(None, error());
            }
            for id in ids {
                answers(Some(id), error());
            }
        }
        Incoming::Batch(frames) => {
            for frame in frames {
                handle(frame, events, answers, reply);
            }
        }
        Incoming::Open(text) => return handle(message::cut_short(text), events, answers, reply),
        Incoming::Request { id, method, params } => events.request(&id, &method, &params, reply()),
        Incoming::Withdrawal { id } => events.withdrawal(&id),
        Incoming::Progress(note) => {
            events.answered();
            events.progress(&note);
        }
        Incoming::Notification { method } if method == PROGRESS => events.answered(),
        Incoming::Notification { method } => events.notification(&method),
        // It is no message.
        Incoming::Noise => return,
    }
    events.heard();
}
