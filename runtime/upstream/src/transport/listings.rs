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
    /// The list is of an earlier session, until one that begins after so many loads is published.
    stale_after: Option<u64>,
}

impl ToolListings {
    /// The list is loaded again after changes, and published in this catalog.
    pub(crate) fn follow(&self, server: Arc<str>, catalog: SharedCatalog) {
        let loads = Loads { server, catalog, begun: 0, ended: 0, failure: None, stale_after: None };
        self.loads.send_replace(Some(loads));
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
        self.modify(|loads| loads.begun += 1);
        self.loads.borrow().as_ref().map_or(0, |loads| loads.begun)
    }

    /// The load with this number has ended: the list is published, or this is why there is none.
    pub(crate) fn load_ended(&self, number: u64, failure: Option<String>) {
        self.modify(|loads| {
            if failure.is_none() {
                loads.stale_after.take_if(|begun| number > *begun);
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

    /// A session begins at the server, which may have other tools in it: loads that have begun are of an earlier one.
    pub(crate) fn expire(&self) {
        self.modify(|loads| loads.stale_after = Some(loads.begun));
    }

    /// True if the list is loaded again after changes, and is not yet of the session that began last.
    pub(crate) fn are_stale(&self) -> bool {
        self.loads.borrow().as_ref().is_some_and(|loads| loads.stale_after.is_some())
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
