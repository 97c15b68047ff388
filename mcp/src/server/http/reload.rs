//! Files that are followed: looked at twice a second, and whenever somebody asks for it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::sleep;

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Changes whenever files are to be read again, whatever they look like.
#[derive(Clone, Debug)]
pub(super) struct Reloads(pub(super) Option<watch::Receiver<u64>>);

/// What shows that files are others.
type Stamps = Vec<Option<(SystemTime, u64)>>;

impl Reloads {
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

    /// Calls `read` whenever one of these files is another one, or is to be read. Never ends.
    pub(super) async fn follow(mut self, paths: &[PathBuf], mut read: impl FnMut()) {
        let stamp = |path: &PathBuf| {
            let data = path.metadata().ok()?;
            Some((data.modified().ok()?, data.len()))
        };
        let stamps = || -> Stamps { paths.iter().map(stamp).collect() };
        let mut seen = stamps();
        loop {
            let is_asked = tokio::select! {
                () = self.asked() => true,
                () = sleep(LOOK) => false,
            };
            let now = stamps();
            if std::mem::replace(&mut seen, now) != seen || is_asked {
                read();
            }
        }
    }
}
