//! The private folder of one process.
//!
//! All folders of a user lie in one, each with a lock that its process holds: a folder whose lock is free belongs to
//! nobody any more, however its process ended.

use crate::files;
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The lock in each folder.
const LOCK: &str = ".lock";

pub(super) struct SpillFolder {
    path: PathBuf,
    /// Held as long as the folder is in use.
    _lock: File,
}

impl SpillFolder {
    /// A new folder under `base`, once those of dead processes are gone.
    pub(super) fn open(base: &Path) -> io::Result<SpillFolder> {
        private(base)?;
        // Nobody makes a folder while somebody looks which are in use.
        let turn = files::open_to_lock(&base.join(LOCK))?;
        turn.lock()?;
        sweep(base);
        let path = (0..)
            .map(|number: u32| base.join(format!("{}-{number}", std::process::id())))
            .find(|path| !path.exists())
            .unwrap_or_else(|| base.to_owned());
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = files::open_to_lock(&path.join(LOCK))?;
        lock.lock()?;
        Ok(SpillFolder { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Makes the folder of all folders, or makes sure that nobody else has made it.
fn private(base: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = std::fs::symlink_metadata(base)?;
    if found.is_dir() && found.uid() == files::user() && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let text = format!("{} is not a private folder of this user", base.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Removes the folders whose processes have gone. What cannot be removed is left to the next one.
fn sweep(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let is_folder = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        if !is_folder {
            continue;
        }
        let is_dead = match files::open_to_lock(&path.join(LOCK)) {
            Ok(lock) => !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
            Err(_) => false,
        };
        if is_dead {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}
