//! The facts behind the list of tools, made again whenever the tools of an upstream server change.

use crate::answer::caps::Profile;
use crate::cli::boot::Booted;
use crate::tools::Facts;
use crate::tools::catalog::CatalogStyle;
use ptc_runtime::Prelude;
use ptc_runtime::limits::Limits;
use ptc_runtime::tools::Catalog;
use std::sync::Arc;
use tokio::sync::watch;

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
            catalog: self.booted.catalog(),
            catalog_style: self.catalog_style,
            max_calls: self.limits.max_upstream_calls,
            timeout_ms: self.limits.timeout_ms,
            profile: self.profile,
            read_only: self.read_only,
            prelude: self.prelude.as_ref().map(seen),
            is_private: self.is_private,
            ..Facts::default()
        }
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

    /// Publishes the facts again whenever the tools of an upstream server change. Never ends.
    pub(super) async fn follow(
        &self,
        mut changes: watch::Receiver<Arc<Catalog>>,
        publish: watch::Sender<Arc<Facts>>,
    ) {
        let mut surface = changes.borrow().surface();
        let mut told = self.booted.runtime.check_prelude().err().map(|it| it.message).unwrap_or_default();
        while changes.changed().await.is_ok() {
            let now = changes.borrow_and_update().surface();
            if now != surface {
                surface = now;
                self.warn_of_prelude(&mut told);
                // The receiver is gone once the connection has ended.
                let _ = publish.send(Arc::new(self.facts()));
            }
        }
        std::future::pending().await
    }
}
