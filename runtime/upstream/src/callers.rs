//! Tracks which clients have calls under way at one server, to find the client that a request of the server is
//! for. A server's request does not name the call that it belongs to, so it is forwarded to a client only if
//! all calls under way are that client's.

use ptc_base::sync::Locked;
use ptc_calls::run::client::{CallingClient, Offered, ServedClient};
use std::sync::{Arc, Mutex};

/// Calls under way at one server.
#[derive(Default)]
pub(super) struct Callers(Mutex<CallersState>);

#[derive(Default)]
struct CallersState {
    next: u64,
    /// In the order in which they began; `None` for a call of an unknown client.
    calls: Vec<(u64, Option<CallingClient>)>,
    /// Owners of all calls so far.
    owners: Owners,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Owners {
    #[default]
    None,
    One(u64),
    Several,
}

/// What a server wants from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// Input from a person: for one call only.
    Form,
    /// Folders: a server may use them for later calls, too.
    Roots,
}

impl RequestKind {
    /// Whether a client that supports this can be asked.
    pub(super) fn is_among(self, offered: Offered) -> bool {
        match self {
            RequestKind::Form => offered.elicitation,
            RequestKind::Roots => offered.roots,
        }
    }
}

impl Callers {
    /// Records a call of this client until the returned value is dropped.
    pub(super) fn enter(self: &Arc<Callers>, client: Option<CallingClient>) -> CallUnderWay {
        let mut state = self.0.locked();
        let number = state.next;
        state.next += 1;
        state.owners = match (state.owners, client.as_ref().map(|client| client.owner)) {
            (Owners::None, Some(owner)) => Owners::One(owner),
            (Owners::One(known), Some(owner)) if known == owner => Owners::One(known),
            _ => Owners::Several,
        };
        state.calls.push((number, client));
        CallUnderWay { callers: self.clone(), number }
    }

    /// The client to ask, if it is unambiguous.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn asked(&self, kind: RequestKind) -> Result<Arc<dyn ServedClient>, &'static str> {
        let state = self.0.locked();
        let clients = || state.calls.iter().map(|(_, client)| client.as_ref());
        let Some(first) = clients().next() else {
            return Err("no call is under way, so there is no client to be asked");
        };
        let tag = first.map(|client| client.tag);
        if clients().count() > 1 && (tag.is_none() || clients().any(|client| client.map(|c| c.tag) != tag)) {
            return Err(
                "calls of several clients are under way, and it is not known which of them is to be asked",
            );
        }
        if kind == RequestKind::Roots && state.owners == Owners::Several {
            return Err(
                "clients of several owners call this server, which would use the folders of one for all",
            );
        }
        let offers = |client: &CallingClient| kind.is_among(client.offered);
        // The latest call most likely caused the request.
        let asked =
            clients().rev().flatten().filter(|client| offers(client)).find_map(|client| client.asked.clone());
        asked.ok_or("the client whose call is under way does not offer this")
    }
}

/// A call that has not ended.
pub(super) struct CallUnderWay {
    callers: Arc<Callers>,
    number: u64,
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        self.callers.0.locked().calls.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_calls::run::client::{ClientAnswer, ClientIdentity, ClientTag};

    struct Nothing;

    impl ServedClient for Nothing {
        fn ask(self: Arc<Self>, _: &'static str, _: String) -> ClientAnswer {
            Box::pin(async { Ok("{}".to_owned()) })
        }
    }

    fn client(owner: u64, offered: Offered) -> CallingClient {
        let (tag, identity) = (ClientTag::unique(), ClientIdentity::default());
        CallingClient { tag, owner, identity, offered, asked: Some(Arc::new(Nothing)) }
    }

    #[test]
    fn only_one_client_can_be_meant() {
        let all = Offered { elicitation: true, roots: true, urls: false };
        let callers = Arc::<Callers>::default();
        let why = |kind| callers.asked(kind).err().unwrap_or("asked");
        assert!(why(RequestKind::Form).starts_with("no call is under way"));
        let one = client(1, all);
        let first = callers.enter(Some(one.clone()));
        let again = callers.enter(Some(CallingClient { asked: None, ..one.clone() }));
        assert_eq!((why(RequestKind::Form), why(RequestKind::Roots)), ("asked", "asked"));
        let other = callers.enter(Some(client(1, Offered::default())));
        assert!(why(RequestKind::Form).starts_with("calls of several clients"));
        drop((first, again));
        assert!(why(RequestKind::Form).ends_with("does not offer this"));
        drop(other);
        let unknown = callers.enter(None);
        assert!(why(RequestKind::Form).ends_with("does not offer this"));
        let _first = callers.enter(Some(one));
        assert!(why(RequestKind::Form).starts_with("calls of several clients"));
        drop(unknown);
        assert_eq!(why(RequestKind::Form), "asked");
        // There was a call of an unknown owner.
        assert!(why(RequestKind::Roots).starts_with("clients of several owners"));
    }
}
