//! Watches files, such as the configuration, to have them read again after an edit or on request. It looks for edits
//! twice a second.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::sleep;

/// How often files are checked.
const LOOK: Duration = Duration::from_millis(500);

/// Changes whenever files are to be read again, even if they look unchanged. `None`: there are no such requests.
#[derive(Clone, Debug)]
pub struct ReloadSignal(pub Option<watch::Receiver<u64>>);

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
}

/// Modification time and size of each file, `None` where there is none; a difference means an edit.
type Stamps = Vec<Option<(SystemTime, u64)>>;

/// Files whose edits are followed.
pub struct FollowedFiles {
    paths: Vec<PathBuf>,
    /// Their state when they were last read, if it is known.
    read: Option<Stamps>,
    looks: bool,
}

impl FollowedFiles {
    /// Files that are read after this.
    pub fn unread(paths: Vec<PathBuf>) -> FollowedFiles {
        let read = Some(stamps(&paths));
        FollowedFiles { paths, read, looks: true }
    }

    /// Files that were read before this. They are read again at the first check, because they may have changed since.
    pub fn read(paths: Vec<PathBuf>) -> FollowedFiles {
        FollowedFiles { paths, read: None, looks: true }
    }

    /// Files that are read again on request only.
    #[must_use]
    pub fn on_request(self) -> FollowedFiles {
        FollowedFiles { looks: false, ..self }
    }

    /// True where edits are noticed without a request.
    pub fn looks(&self) -> bool {
        self.looks && !self.paths.is_empty()
    }

    /// Calls `read` whenever one of the files has changed and then stays unchanged between two checks: half of a file may
    /// mean something else than the whole. A request calls it at once. Never ends.
    pub async fn follow(mut self, mut reloads: ReloadSignal, mut read: impl FnMut(&[PathBuf])) {
        if self.paths.is_empty() {
            return std::future::pending().await;
        }
        let mut seen = self.read.clone().unwrap_or_else(|| stamps(&self.paths));
        loop {
            let is_asked = tokio::select! {
                () = reloads.asked() => true,
                () = sleep(LOOK), if self.looks => false,
            };
            let is_same = std::mem::replace(&mut seen, stamps(&self.paths)) == seen;
            if is_asked || is_same && self.read.as_ref() != Some(&seen) {
                self.read = Some(seen.clone());
                read(&self.paths);
            }
        }
    }
}

fn stamps(paths: &[PathBuf]) -> Stamps {
    let stamp = |path: &PathBuf| {
        let data = path.metadata().ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    paths.iter().map(stamp).collect()
}
