//! `ptc serve` follows its configuration files: what is edited counts without a restart.

use super::boot::{UpstreamFlags, abort};
use crate::console::exit::Abort;
use ptc_runtime::tools::SnapshotMode;
use ptc_runtime::{Reconfigured, Runtime};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The configuration files, as they were when they were read last.
pub(super) struct ConfigFiles {
    paths: Vec<PathBuf>,
    read: Vec<Stamp>,
}

/// What shows that a file is another one: when it was changed, and its length. `None` while there is none.
type Stamp = Option<(SystemTime, u64)>;

impl ConfigFiles {
    /// The files to follow, looked at before they are read. There are none where tool lists are to be kept for good.
    pub(super) fn followed(flags: &UpstreamFlags) -> Result<ConfigFiles, Abort> {
        let paths = match flags.snapshot()? {
            Some(SnapshotMode::Frozen) => Vec::new(),
            Some(SnapshotMode::Live) | None => flags.files(),
        };
        let read = stamps(&paths);
        Ok(ConfigFiles { paths, read })
    }

    /// Hands every edit to the runtime. Never ends.
    pub(super) async fn follow(mut self, flags: &UpstreamFlags, runtime: &Runtime) {
        let mut seen = self.read.clone();
        while !self.paths.is_empty() {
            tokio::time::sleep(LOOK).await;
            let now = stamps(&self.paths);
            // One that is still being written is looked at again.
            if std::mem::replace(&mut seen, now) != seen || seen == self.read {
                continue;
            }
            self.read.clone_from(&seen);
            let reloaded =
                flags.entries(&self.paths).and_then(|(new, _)| runtime.reconfigure(new).map_err(abort));
            match reloaded {
                Ok(changes) => tell(&changes),
                Err(Abort { message, .. }) => {
                    tracing::error!("the edited configuration is not used, the one before stays: {message}");
                }
            }
        }
        std::future::pending().await
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let data = Path::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    paths.iter().map(stamp).collect()
}

fn tell(changes: &Reconfigured) {
    let list = |names: &[Arc<str>]| names.join(", ");
    let Reconfigured { added, changed, removed } = changes;
    let (added, changed, removed) = (list(added), list(changed), list(removed));
    tracing::info!(added, changed, removed, "configuration reloaded");
}
