//! Flags of `proxy-dispatch`, an MCP tool through which clients call any upstream tool: they limit the large results
//! that are kept in files, and choose the compact notation TOON for results.

use super::limits::{FlagTable, LimitFlags};
use super::variables;
use ptc_base::spill::{LazySpillStore, SpillStore};
use ptc_calls::limit_table;
use ptc_server::console::Abort;
use ptc_server::files::FileRoots;
use ptc_server::tools::proxy::SpillRules;
use std::sync::Arc;
use std::time::Duration;

limit_table! {
    /// The limits of results that are kept in files.
    SpillLimits;
    /// Bytes of one result of proxy-dispatch beyond which it is kept in a file; 0 means only what is too large to be
    /// carried.
    threshold: Bytes = 0, "proxy-threshold", "autoSpilled";
    /// Bytes of all results that are kept in files; the oldest go.
    most_bytes: Bytes = 2 << 30, "max-spill-bytes", "response_too_large";
    /// How long an unused result of proxy-dispatch is kept; 0 means as long as there is room.
    most_age_ms: Millis = 86_400_000, "max-spill-age", "there is no kept result";
}

impl FlagTable for SpillLimits {}

/// Flags of `proxy-dispatch`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "proxy-dispatch")]
pub struct ProxyFlags {
    /// Show and keep lists and objects as TOON, where there is a threshold
    #[arg(long)]
    proxy_toon: bool,
    #[command(flatten)]
    limits: LimitFlags<SpillLimits>,
}

/// The parts that `proxy-dispatch` needs apart from a runtime.
pub struct ProxyParts {
    /// Where results are written.
    pub store: SpillStore,
    /// Files that calls may name.
    pub roots: Arc<FileRoots>,
    /// Rules for large results.
    pub rules: SpillRules,
}

impl ProxyFlags {
    /// Sets the limit of all spilled results, including those of programs.
    pub fn bound(&self, spills: &LazySpillStore) -> Result<(), Abort> {
        spills.set_most_bytes(self.limits.limits(false)?.most_bytes);
        Ok(())
    }

    /// Opens the storage and folders that the flags name.
    pub fn parts(
        &self,
        spills: &LazySpillStore,
        roots: FileRoots,
        is_http: bool,
    ) -> Result<ProxyParts, Abort> {
        let SpillLimits { threshold, most_age_ms, .. } = self.limits.limits(false)?;
        let store = spills.store()?;
        let toon = variables::switch(self.proxy_toon, "proxy-toon")?;
        let most_age = Some(Duration::from_millis(most_age_ms)).filter(|most| !most.is_zero());
        let rules = SpillRules { threshold, toon, most_age, shows_arguments: !is_http };
        Ok(ProxyParts { store, roots: Arc::new(roots), rules })
    }
}
