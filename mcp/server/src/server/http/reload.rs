//! Watches files for changes, twice a second and on demand.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::sleep;

/// How often files are checked.
const LOOK: Duration = Duration::from_millis(500);

/// Changes whenever files are to be read again, even if they look unchanged.
#[derive(Clone, Debug)]
pub(super) struct ReloadSignal(pub(super) Option<watch::Receiver<u64>>);

/// Modification time and size of each file; a difference means a change.
type Stamps = Vec<Option<(SystemTime, u64)>>;

impl ReloadSignal {
    async fn asked(&mut self) {
        let is_over = match &mut self.0 {
            Some(reloads) => reloads.changed().await.is_err(),
            None => true,
        };
        if is_over {
            self.0 = None;
            std::future::pending().await
        }
    }

    /// Calls `read` whenever one of these files has changed and then stays unchanged between two checks: half
    /// of a file may mean something else than the whole. A request to reload calls it at once. The first check
    /// also reads, because the files may have changed since they were last read. Never ends.
    pub(super) async fn follow(mut self, paths: &[PathBuf], mut read: impl FnMut()) {
        let stamp = |path: &PathBuf| {
            let data = path.metadata().ok()?;
            Some((data.modified().ok()?, data.len()))
        };
        let stamps = || -> Stamps { paths.iter().map(stamp).collect() };
        let (mut seen, mut was_read) = (stamps(), None);
        loop {
            let is_asked = tokio::select! {
                () = self.asked() => true,
                () = sleep(LOOK) => false,
            };
            let is_same = std::mem::replace(&mut seen, stamps()) == seen;
            if is_asked || is_same && was_read.as_ref() != Some(&seen) {
                was_read = Some(seen.clone());
                read();
            }
        }
    }
}
