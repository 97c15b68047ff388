//! The requests of one server that wait for the client. A request that came while calls were under way is for one of them:
//! when the last of these calls ends, the client is asked no more, and the server gets an error. The other requests wait
//! until the client answers, the server withdraws them, or there is no room for a further one.

use crate::ClientError;
use ptc_base::sync::Locked;
use ptc_base::tasks::{self, TaskOwner};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Requests of one server that may wait for the client at a time.
const MOST: usize = 16;

/// Why a request is not answered by the client.
const CALL_ENDED: &str = "the call that this request was for has ended";
const MADE_ROOM: &str = "the client has not answered, and further requests wait for it";
const FULL: &str = "too many requests wait for the client";

/// The requests of one server that wait for the client. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Questions(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    calls: usize,
    /// By the JSON text of their ids.
    waiting: HashMap<String, Waiting>,
}

struct Waiting {
    number: u64,
    /// It is for a call that is under way.
    is_of_call: bool,
    task: AbortHandle,
    give_up: oneshot::Sender<&'static str>,
}

impl Waiting {
    /// Asks the client no more, and answers the server.
    fn give_up(self, why: &'static str) {
        // The client may just have answered.
        let _ = self.give_up.send(why);
    }
}

impl Questions {
    /// Counts a call until the result is dropped.
    pub(super) fn enter(&self) -> AskingCall {
        self.0.locked().calls += 1;
        AskingCall(self.clone())
    }

    /// Waits for the `answer` of the client in a task, and gives it to `reply`. The answer to a request whose id is
    /// waiting already is that of the later one. `may_be_of_call`: a request of this kind is for one call only.
    ///
    /// # Errors
    /// Too many requests wait; `reply` is handed back.
    pub(super) fn ask<R>(
        &self,
        id: &str,
        may_be_of_call: bool,
        answer: impl Future<Output = Result<String, ClientError>> + Send + 'static,
        reply: R,
    ) -> Result<(), (&'static str, R)>
    where
        R: FnOnce(Result<String, ClientError>) + Send + 'static,
    {
        let mut state = self.0.locked();
        if state.waiting.len() >= MOST && !state.waiting.contains_key(id) && !state.make_room() {
            return Err((FULL, reply));
        }
        let (number, is_of_call) = (state.next, may_be_of_call && state.calls > 0);
        state.next += 1;
        let (give_up, given_up) = oneshot::channel();
        let (questions, own) = (self.clone(), id.to_owned());
        let task = tasks::spawn(TaskOwner::Connection, async move {
            let answer = tokio::select! {
                biased;
                answer = answer => answer,
                Ok(why) = given_up => Err(super::events::refused(why)),
            };
            questions.forget(&own, number);
            reply(answer);
        });
        let waiting = Waiting { number, is_of_call, task: task.abort_handle(), give_up };
        if let Some(before) = state.waiting.insert(id.to_owned(), waiting) {
            before.task.abort();
        }
        Ok(())
    }

    /// The server withdraws a request of its own.
    pub(super) fn withdraw(&self, id: &str) {
        if let Some(waiting) = self.0.locked().waiting.remove(id) {
            waiting.task.abort();
        }
    }

    /// Aborts all requests.
    pub(super) fn abort(&self) {
        for (_, waiting) in self.0.locked().waiting.drain() {
            waiting.task.abort();
        }
    }

    /// A request was answered.
    fn forget(&self, id: &str, number: u64) {
        let mut state = self.0.locked();
        if state.waiting.get(id).is_some_and(|waiting| waiting.number == number) {
            state.waiting.remove(id);
        }
    }
}

impl State {
    /// Gives up the oldest request that is for no call; false if there is none.
    fn make_room(&mut self) -> bool {
        let others = self.waiting.iter().filter(|(_, waiting)| !waiting.is_of_call);
        let oldest = others.min_by_key(|(_, waiting)| waiting.number).map(|(id, _)| id.clone());
        let oldest = oldest.and_then(|id| self.waiting.remove(&id));
        oldest.map(|waiting| waiting.give_up(MADE_ROOM)).is_some()
    }
}

/// A call that a server may ask for.
pub(crate) struct AskingCall(Questions);

impl Drop for AskingCall {
    fn drop(&mut self) {
        let mut state = self.0.0.locked();
        state.calls -= 1;
        if state.calls == 0 {
            for (_, waiting) in state.waiting.extract_if(|_, waiting| waiting.is_of_call) {
                waiting.give_up(CALL_ENDED);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::sync::mpsc;

    type Answers = mpsc::UnboundedSender<(&'static str, Result<String, ClientError>)>;

    fn ask(questions: &Questions, id: &'static str, is_form: bool, answers: &Answers) -> bool {
        let answers = answers.clone();
        let reply = move |answer| answers.send((id, answer)).expect("read");
        questions.ask(id, is_form, pending(), reply).is_ok()
    }

    #[tokio::test]
    async fn a_request_ends_with_the_last_call_that_was_under_way() {
        let (questions, (answers, mut read)) = (Questions::default(), mpsc::unbounded_channel());
        assert!(ask(&questions, "before", true, &answers));
        let (first, second) = (questions.enter(), questions.enter());
        assert!(ask(&questions, "form", true, &answers) && ask(&questions, "folders", false, &answers));
        drop(first);
        tokio::task::yield_now().await;
        assert!(read.try_recv().is_err());
        drop(second);
        let (id, answer) = read.recv().await.expect("an answer");
        assert_eq!((id, &*answer.expect_err("no answer of the client").message), ("form", CALL_ENDED));
        tokio::task::yield_now().await;
        assert!(read.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_request_for_no_call_makes_room() {
        let (questions, (answers, mut read)) = (Questions::default(), mpsc::unbounded_channel());
        assert!(ask(&questions, "first", true, &answers));
        let _call = questions.enter();
        let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
        assert!(ids.into_iter().all(|id| ask(&questions, id, true, &answers)));
        let (id, answer) = read.recv().await.expect("an answer");
        assert_eq!((id, &*answer.expect_err("no answer of the client").message), ("first", MADE_ROOM));
        assert!(!ask(&questions, "q", true, &answers));
        // Those for a call are not given up.
        assert!(read.try_recv().is_err());
    }
}
