//! Creates the private folder in which a process keeps results that are too large for memory, and removes the folders
//! of processes that have ended.
//!
//! The folders of all processes of a user lie in one base folder. Each has a lock that its process holds: a
//! folder with a free lock is abandoned, however its process ended.

use crate::files;
use std::fs::{DirBuilder, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Name of the lock file in each folder.
const LOCK: &str = ".lock";

pub(super) struct SpillFolder {
    path: PathBuf,
    /// Locked while the folder is in use.
    _lock: File,
}

impl SpillFolder {
    /// Makes a new folder under `base`, after removing those of dead processes.
    pub(super) fn open(base: &Path) -> io::Result<SpillFolder> {
        private(base)?;
        // Holds the lock of `base`, so that no folder is made during the search for abandoned ones.
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

/// The base folder of this user; constant while this process runs.
pub(super) fn usual_base() -> PathBuf {
    static BASE: OnceLock<PathBuf> = OnceLock::new();
    BASE.get_or_init(|| choose_base(&std::env::temp_dir())).clone()
}

/// A folder with the user's id in its name. If another user has created that, a folder with an unpredictable
/// name, which the next process finds again.
fn choose_base(temp: &Path) -> PathBuf {
    let name = format!("ptc-spill-{}", files::user());
    let usual = temp.join(&name);
    match std::fs::symlink_metadata(&usual) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return usual,
        Ok(found) if is_private(&found) => return usual,
        _ => {}
    }
    let begins =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&format!("{name}-"));
    let entries = std::fs::read_dir(temp).into_iter().flatten().filter_map(Result::ok);
    let ours = entries.filter(begins).map(|entry| entry.path());
    let there =
        ours.filter(|path| std::fs::symlink_metadata(path).is_ok_and(|found| is_private(&found))).min();
    there.unwrap_or_else(|| temp.join(format!("{name}-{:016x}", files::random())))
}

fn is_private(found: &Metadata) -> bool {
    found.is_dir() && found.uid() == files::user() && found.mode() & 0o077 == 0
}

/// Creates the base folder, or verifies that this user owns it.
fn private(base: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = std::fs::symlink_metadata(base)?;
    if is_private(&found) {
        return Ok(());
    }
    let text = format!("{} is not a private folder of this user", base.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Removes the folders of processes that have ended. What cannot be removed is left for later.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Another user may have created anything under the usual name.
    #[test]
    fn a_folder_of_the_usual_name_that_is_not_ours_does_not_keep_a_server_from_starting() {
        let temp = tempfile::tempdir().expect("a folder");
        let temp = temp.path();
        let usual = temp.join(format!("ptc-spill-{}", files::user()));
        assert_eq!(choose_base(temp), usual);
        let planters: [fn(&Path); 4] = [
            |path| drop(files::create_new(path).expect("a file")),
            |path| symlink("/", path).expect("a link"),
            |path| symlink("/nowhere", path).expect("a link"),
            |path| {
                std::fs::create_dir(path).expect("a folder");
                let open = std::fs::Permissions::from_mode(0o777);
                set_mode(path, open);
            },
        ];
        let mut chosen = None;
        for plant in planters {
            plant(&usual);
            let base = choose_base(temp);
            assert_ne!(base, usual);
            // It is found again, and what was left in it is removed.
            let folder = SpillFolder::open(&base).expect("a folder");
            assert!(chosen.replace(base.clone()).is_none_or(|before| before == base));
            assert!(folder.path().starts_with(&base));
            let _ = std::fs::remove_file(&usual);
            let _ = std::fs::remove_dir(&usual);
        }
        SpillFolder::open(&usual).expect("a folder");
        assert_eq!(choose_base(temp), usual);
    }

    #[allow(clippy::disallowed_methods, reason = "a test")]
    fn set_mode(path: &Path, mode: std::fs::Permissions) {
        std::fs::set_permissions(path, mode).expect("a mode");
    }
}
