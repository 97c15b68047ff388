//! Keeps the MCP session of an HTTP connection, and when the server has lost it, renews it once for all requests that
//! used it.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use ptc_base::oauth::LoginId;
use ptc_base::sync::Locked;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// A session, as the requests that belong to it name it.
#[derive(Clone, Default)]
pub(super) struct HttpSession {
    /// `None`: the server has no sessions.
    pub(super) id: Option<Arc<str>>,
    /// The login with whose token it began; `None`: without a token.
    pub(super) login: Option<LoginId>,
    /// The negotiated revision, once there is one.
    pub(super) revision: Option<Arc<str>>,
    /// Its number among the sessions of this connection.
    pub(super) generation: u64,
}

/// Renewal of a session, shared by all requests that lost it.
pub(super) type Renewal = Shared<BoxFuture<'static, Result<(), Arc<str>>>>;

/// The session of one connection.
#[derive(Default)]
pub(super) struct SessionKeeper {
    state: Mutex<KeeperState>,
    /// The generation.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct KeeperState {
    session: HttpSession,
    /// The parameters of `initialize`, to repeat them.
    greeting: Option<Arc<str>>,
    renewal: Option<Renewal>,
}

impl SessionKeeper {
    pub(super) fn current(&self) -> HttpSession {
        self.state.locked().session.clone()
    }

    pub(super) fn greeting(&self) -> Option<Arc<str>> {
        self.state.locked().greeting.clone()
    }

    /// `initialize` with these parameters was answered.
    pub(super) fn begin(&self, greeting: &str, id: Option<&str>, login: Option<LoginId>) {
        let mut state = self.state.locked();
        state.greeting = Some(greeting.into());
        state.session.id = id.map(Arc::from);
        state.session.login = login;
    }

    /// The revision was agreed on.
    pub(super) fn agree(&self, revision: &str) {
        self.state.locked().session.revision = Some(revision.into());
    }

    /// There is another session, of the same revision.
    pub(super) fn renewed(&self, id: Option<Arc<str>>, login: Option<LoginId>) {
        let generation = {
            let mut state = self.state.locked();
            (state.session.id, state.session.login) = (id, login);
            state.session.generation += 1;
            state.renewal = None;
            state.session.generation
        };
        self.changes.send_replace(generation);
    }

    /// The renewal of a lost session; `None` when it was renewed already. The first request that lost it starts it with
    /// `renew`.
    pub(super) fn renewal(
        &self,
        lost: u64,
        renew: impl FnOnce() -> BoxFuture<'static, Result<(), Arc<str>>>,
    ) -> Option<Renewal> {
        let mut state = self.state.locked();
        (state.session.generation == lost)
            .then(|| state.renewal.get_or_insert_with(|| renew().shared()).clone())
    }

    /// Waits until there is another session than this one.
    pub(super) async fn changed(&self, from: u64) {
        // The sender is this very value.
        let _ = self.changes.subscribe().wait_for(|generation| *generation != from).await;
    }
}
