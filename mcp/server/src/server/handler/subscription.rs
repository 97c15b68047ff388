//! Handles the request `subscriptions/listen`, with which a client subscribes to changes of the tool list and of its
//! tasks.

use super::Handler;
use crate::protocol::params::{Params, Wanted};
use crate::protocol::{Id, RpcError, ServerMessage, notify};
use crate::server::connection_state::ConnectionState;
use crate::server::detached::DetachedRun;
use std::sync::Arc;

/// An open `subscriptions/listen`.
#[derive(Clone)]
pub struct Subscription {
    /// Id of the request.
    pub id: Id<'static>,
    /// The client subscribes to changes of the tool list, and the list can change.
    pub tools_list_changed: bool,
    /// The client subscribes to changes of these tasks; `None`: of none.
    pub(in crate::server) tasks: Option<Vec<Arc<DetachedRun>>>,
}

impl Handler {
    /// A subscription to what exists.
    pub(super) fn subscription(
        &self,
        id: &Id<'_>,
        params: &Params<'_>,
        state: &ConnectionState,
    ) -> Result<Subscription, RpcError> {
        let none = Wanted::default();
        let wanted = params.notifications.as_ref().unwrap_or(&none);
        let tasks = wanted.task_ids.as_ref().filter(|_| self.has_tasks);
        let tasks = tasks.map(|ids| self.detached.followed(params, ids, state.owner)).transpose()?;
        let tools_list_changed = wanted.tools_list_changed && self.changes;
        Ok(Subscription { id: id.clone().into_owned(), tools_list_changed, tasks })
    }
}

impl Subscription {
    /// The first message, which says what the client will be notified of.
    pub(in crate::server) fn acknowledged(&self) -> ServerMessage {
        let ids: Option<Vec<String>> =
            self.tasks.as_ref().map(|tasks| tasks.iter().map(|run| run.id.clone()).collect());
        notify::subscription_acknowledged(&self.id, self.tools_list_changed, ids.as_deref())
    }
}
