//! Collects the data that the tool list of `ptc serve` is made from (upstream tools, limits, Lisp libraries), and
//! publishes it again when the tools of an upstream server change.

use crate::cli::boot::Booted;
use ptc_calls::limits::Limits;
use ptc_calls::tools::Catalog;
use ptc_engine::{ExportHints, ExposedExport, Prelude};
use ptc_server::answer::caps::Profile;
use ptc_server::tools::Facts;
use ptc_server::tools::catalog::{CatalogStyle, CatalogView};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// When the facts are published although servers are still starting.
const EARLY: Duration = Duration::from_secs(5);

/// The sources of the facts behind the tool list.
pub(super) struct Described<'b> {
    pub(super) booted: &'b Booted,
    pub(super) catalog_style: CatalogStyle,
    pub(super) profile: Profile,
    pub(super) limits: Limits,
    pub(super) read_only: bool,
    pub(super) prelude: Option<Arc<Prelude>>,
    pub(super) is_private: bool,
}

impl Described<'_> {
    pub(super) fn facts(&self) -> Facts {
        let catalog = self.booted.runtime.catalog();
        let seen =
            |prelude: &Arc<Prelude>| prelude.seen_with(&catalog).map_or_else(|| prelude.clone(), Arc::new);
        Facts {
            catalog: Arc::new(CatalogView::from_catalog(&catalog, &self.catalog_style)),
            catalog_style: self.catalog_style,
            max_calls: self.limits.max_upstream_calls,
            timeout_ms: self.limits.timeout_ms,
            profile: self.profile,
            read_only: self.read_only,
            hints: Arc::new(self.hints(&catalog)),
            prelude: self.prelude.as_ref().map(seen),
            is_private: self.is_private,
            ..Facts::default()
        }
    }

    /// What calls of exports that are tools may do.
    fn hints(&self, catalog: &Catalog) -> BTreeMap<String, ExportHints> {
        let Some(prelude) = &self.prelude else { return BTreeMap::new() };
        let hints = |export: ExposedExport| {
            let hints = prelude.hints(&export.reference, catalog);
            (export.reference, hints)
        };
        prelude.exposed().map(hints).collect()
    }

    /// Logs the unmet requirements of the prelude, once for each message.
    pub(super) fn warn_of_prelude(&self, told: &mut String) {
        let missing = self.booted.runtime.check_prelude().err().map(|failure| failure.message);
        let missing = missing.unwrap_or_default();
        if !missing.is_empty() && missing != *told {
            tracing::warn!("no program can run: {missing}");
        }
        *told = missing;
    }

    /// Publishes the facts again whenever the tools of an upstream server change. While servers start, that happens
    /// once early, if the start takes long, and once when all have started or failed: clients fetch the list again
    /// each time. Never ends.
    pub(super) async fn follow(
        &self,
        mut changes: watch::Receiver<Arc<Catalog>>,
        publish: watch::Sender<Arc<Facts>>,
    ) {
        let mut surface = changes.borrow().surface();
        let mut told = self.booted.runtime.check_prelude().err().map(|it| it.message).unwrap_or_default();
        let mut settled = pin!(self.booted.runtime.settle());
        let mut early = pin!(tokio::time::sleep(EARLY));
        let (mut is_settled, mut was_early, mut is_due) = (false, false, false);
        loop {
            let mut publishes = is_settled;
            tokio::select! {
                biased;
                changed = changes.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                    let now = changes.borrow_and_update().surface();
                    is_due |= now != surface;
                    surface = now;
                }
                () = &mut settled, if !is_settled => (is_settled, publishes) = (true, true),
                () = &mut early, if !is_settled && !was_early => (was_early, publishes) = (true, true),
            }
            if is_due && publishes {
                is_due = false;
                self.warn_of_prelude(&mut told);
                // The receiver is gone once the connection has ended.
                let _ = publish.send(Arc::new(self.facts()));
            }
        }
    }
}
