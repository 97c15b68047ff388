//! The loads of a server's tool list that changes, between its transport, which learns that the list has changed, and its
//! supervisor, which loads it. A call in a new session waits here until the list is of that session.

use ptc_calls::tools::{SharedCatalog, UpstreamTool};
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// What is known of the tool list of one connection.
#[derive(Default)]
pub(crate) struct ToolListings {
    changed: Notify,
    /// `None` where the list is loaded once.
    loads: watch::Sender<Option<Loads>>,
}

struct Loads {
    server: Arc<str>,
    catalog: SharedCatalog,
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

impl ToolListings {
    /// The list is loaded again after changes, and published in this catalog.
    pub(crate) fn follow(&self, server: Arc<str>, catalog: SharedCatalog) {
        self.loads.send_replace(Some(Loads {
            server,
            catalog,
            begun: 0,
            ended: 0,
            failure: None,
            session: 0,
            listed_in: 0,
            parts_from: None,
        }));
    }

    /// The list may have changed.
    pub(crate) fn change(&self) {
        self.changed.notify_one();
    }

    /// Waits for a change; one that came before is not missed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// A load begins. Gives its number.
    pub(crate) fn load_begins(&self) -> u64 {
        self.modify(|loads| (loads.begun, loads.parts_from) = (loads.begun + 1, None));
        self.loads.borrow().as_ref().map_or(0, |loads| loads.begun)
    }

    /// The load with this number has ended: the list is published, or this is why there is none.
    pub(crate) fn load_ended(&self, number: u64, failure: Option<String>) {
        self.modify(|loads| {
            if failure.is_none() {
                loads.listed_in = loads.parts_from.take().unwrap_or(loads.session);
            }
            (loads.ended, loads.failure) = (number, failure);
        });
    }

    /// The tool as the catalog has it, if the list is loaded again after changes.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<UpstreamTool>> {
        let loads = self.loads.borrow();
        let loads = loads.as_ref()?;
        loads.catalog.snapshot().tool(&loads.server, name).cloned()
    }

    /// The session with this number begins at the server, which may have other tools in it.
    pub(crate) fn session_begins(&self, session: u64) {
        self.modify(|loads| loads.session = session);
    }

    /// A part of the list comes from the session with this number.
    pub(crate) fn part_from(&self, session: u64) {
        self.modify(|loads| {
            loads.parts_from = Some(loads.parts_from.map_or(session, |earliest| earliest.min(session)));
        });
    }

    /// True if the list is loaded again after changes, and is not yet of the session that began last.
    pub(crate) fn are_stale(&self) -> bool {
        self.loads.borrow().as_ref().is_some_and(|loads| loads.listed_in < loads.session)
    }

    /// The connection has ended, and loads nothing any more.
    pub(crate) fn end(&self, why: String) {
        self.load_ended(u64::MAX, Some(why));
    }

    /// Waits until the list is of the session that began last.
    ///
    /// # Errors
    /// Why it could not be loaded.
    pub(crate) async fn refreshed(&self) -> Result<(), String> {
        while self.are_stale() {
            self.loaded_again().await?;
        }
        Ok(())
    }

    async fn loaded_again(&self) -> Result<(), String> {
        let mut loads = self.loads.subscribe();
        let Some(begun) = loads.borrow().as_ref().map(|loads| loads.begun) else { return Ok(()) };
        self.change();
        let is_over = |loads: &Option<Loads>| loads.as_ref().is_none_or(|loads| loads.ended > begun);
        // The sender is a field of this structure.
        let Ok(loads) = loads.wait_for(is_over).await else { return Ok(()) };
        loads.as_ref().and_then(|loads| loads.failure.clone()).map_or(Ok(()), Err)
    }

    fn modify(&self, change: impl FnOnce(&mut Loads)) {
        self.loads.send_modify(|loads| {
            if let Some(loads) = loads {
                change(loads);
            }
        });
    }
}
