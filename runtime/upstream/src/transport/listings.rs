//! The loads of a server's tool list that changes, between its transport, which learns that the list has changed, and its
//! supervisor, which loads it. A call in a new session waits here until the list is of that session.

use ptc_calls::tools::{SharedCatalog, UpstreamTool};
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// What is known of the tool list of one connection.
#[derive(Default)]
pub(crate) struct ToolListings {
    changed: Notify,
    wanted: Notify,
    loads: watch::Sender<Loads>,
}

#[derive(Default)]
struct Loads {
    /// The server, and the catalog that the list is published in; `None` where the list is loaded once.
    followed: Option<(Arc<str>, SharedCatalog)>,
    begun: u64,
    /// The number of the last one that has ended, and why it failed, if it did.
    ended: u64,
    failure: Option<String>,
    /// The session that the connection is in, and the earliest one that a part of the published list is from, by number.
    session: u64,
    listed_in: u64,
    /// The earliest session that a part of the list under way is from.
    parts_from: Option<u64>,
}

/// A load that has begun.
#[derive(Clone, Copy, Default)]
pub(crate) struct ListLoad {
    number: u64,
    session: u64,
}

impl Loads {
    fn are_stale(&self) -> bool {
        self.followed.is_some() && self.listed_in < self.session
    }

    fn published(&mut self) {
        self.listed_in = self.parts_from.take().unwrap_or(self.session);
    }
}

impl ToolListings {
    /// The first list is published in this catalog, and loaded again after changes.
    pub(crate) fn follow(&self, server: Arc<str>, catalog: SharedCatalog) {
        self.loads.send_modify(|loads| {
            loads.followed = Some((server, catalog));
            loads.published();
        });
    }

    /// The list may have changed.
    pub(crate) fn change(&self) {
        self.changed.notify_one();
    }

    /// Waits for a change; one that came before is not missed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits until a call needs the list of its session.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// A load begins.
    pub(crate) fn load_begins(&self) -> ListLoad {
        self.loads.send_modify(|loads| (loads.begun, loads.parts_from) = (loads.begun + 1, None));
        let loads = self.loads.borrow();
        ListLoad { number: loads.begun, session: loads.session }
    }

    /// The load has ended: the list is published, or this is why there is none. True if another session began meanwhile.
    pub(crate) fn load_ended(&self, load: ListLoad, failure: Option<String>) -> bool {
        self.loads.send_modify(|loads| {
            if failure.is_none() {
                loads.published();
            }
            (loads.ended, loads.failure) = (load.number, failure);
        });
        self.loads.borrow().session != load.session
    }

    /// The tool as the catalog has it, if the list is loaded again after changes.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<UpstreamTool>> {
        let loads = self.loads.borrow();
        let (server, catalog) = loads.followed.as_ref()?;
        catalog.snapshot().tool(server, name).cloned()
    }

    /// The session with this number begins at the server, which may have other tools in it.
    pub(crate) fn session_begins(&self, session: u64) {
        self.loads.send_modify(|loads| loads.session = session);
    }

    /// A part of the list comes from the session with this number.
    pub(crate) fn part_from(&self, session: u64) {
        self.loads.send_modify(|loads| {
            loads.parts_from = Some(loads.parts_from.map_or(session, |earliest| earliest.min(session)));
        });
    }

    /// True if the list is loaded again after changes, and is not yet of the session that began last.
    pub(crate) fn are_stale(&self) -> bool {
        self.loads.borrow().are_stale()
    }

    /// The connection has ended, and loads nothing any more.
    pub(crate) fn end(&self, why: String) {
        self.load_ended(ListLoad { number: u64::MAX, session: 0 }, Some(why));
    }

    /// Waits until the list is of the session that began last.
    ///
    /// # Errors
    /// Why it could not be loaded.
    pub(crate) async fn refreshed(&self) -> Result<(), String> {
        while self.are_stale() {
            let mut loads = self.loads.subscribe();
            let begun = loads.borrow().begun;
            self.wanted.notify_one();
            // The sender is a field of this structure.
            let Ok(loads) = loads.wait_for(|loads| loads.ended > begun).await else { return Ok(()) };
            loads.failure.clone().map_or(Ok(()), Err)?;
        }
        Ok(())
    }
}
