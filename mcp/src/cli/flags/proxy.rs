//! Flags of `proxy-dispatch`.

use super::limits::{FlagTable, LimitFlags};
use crate::console::exit::Abort;
use crate::tools::proxy::{FileRoots, ProxyPlace};
use ptc_runtime::limit_table;
use ptc_runtime::spill::SpillPlace;
use std::path::PathBuf;
use std::sync::Arc;

limit_table! {
    /// The limits of results that are kept in files.
    SpillLimits;
    /// Bytes of one result of proxy-dispatch beyond which it is kept in a file; 0 means only what is too large to be
    /// carried.
    threshold: Bytes = 0, "proxy-threshold", "autoSpilled";
    /// Bytes of all results that are kept in files; the oldest go.
    most_bytes: Bytes = 2 << 30, "max-spill-bytes", "response_too_large";
}

impl FlagTable for SpillLimits {}

/// Flags of `proxy-dispatch`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "proxy-dispatch")]
pub struct ProxyFlags {
    /// Folder that files may be named in (argumentsFile); may be given several times
    #[arg(long, value_name = "DIR")]
    files_root: Vec<PathBuf>,
    #[command(flatten)]
    limits: LimitFlags<SpillLimits>,
}

impl ProxyFlags {
    /// Sets how much may be kept of all results, those of programs as well.
    pub fn bound(&self, spills: &SpillPlace) -> Result<(), Abort> {
        spills.set_most_bytes(self.limits.limits(false)?.most_bytes);
        Ok(())
    }

    /// Opens what they name.
    pub fn place(&self, spills: &SpillPlace) -> Result<ProxyPlace, Abort> {
        let SpillLimits { threshold, .. } = self.limits.limits(false)?;
        let roots = FileRoots::open(&self.files_root)
            .map_err(|(path, error)| Abort::usage(format!("--files-root {}: {error}", path.display())))?;
        let store = spills.store()?;
        Ok(ProxyPlace { store, roots: Arc::new(roots), threshold })
    }
}
