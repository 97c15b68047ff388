//! Remembers on disk what tools a server listed last and how long it took to start, so that its tools can be described
//! before it has started.

use super::{Kind, ServerKey, StateStore};
use crate::tools::Listed;
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;

/// The memory of one server's list.
#[derive(Clone)]
pub struct ListMemory {
    store: Arc<StateStore>,
    key: ServerKey,
}

impl ListMemory {
    /// The memory of this server; `identity` says how it is reached, secrets included.
    pub fn new(store: &Arc<StateStore>, server: &str, identity: &Json) -> ListMemory {
        ListMemory { store: store.clone(), key: store.key(server, identity) }
    }

    /// The list of an earlier run, before any policy.
    pub fn last(&self) -> Option<Listed> {
        self.store.read(Kind::ToolLists, &self.key)
    }

    /// How long the last start took.
    pub fn last_start(&self) -> Option<Duration> {
        self.store.read(Kind::Starts, &self.key).map(Duration::from_millis)
    }

    /// Remembers how long a start took. It blocks.
    pub fn keep_start(&self, took: Duration) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if let Err(error) = self.store.write(Kind::Starts, &self.key, &ms) {
            tracing::debug!(%error, "the time of the start is not remembered");
        }
    }

    /// Remembers a list. The server has redacted it already. It blocks.
    pub fn keep(&self, listed: &Listed) {
        if let Err(error) = self.store.write(Kind::ToolLists, &self.key, listed) {
            tracing::debug!(%error, "the tool list is not remembered");
        }
    }
}
