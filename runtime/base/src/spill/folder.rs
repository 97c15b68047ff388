//! Creates the private folder in which a process keeps results that are too large for memory, and removes the folders
//! of processes that have ended.
//!
//! The folders of all processes of a user lie in one base folder. Each has a lock that its process holds: a
//! folder with a free lock is abandoned, however its process ended. A folder gets its name when its lock is held, so
//! processes need not wait for each other: another one may hold a lock for as long as it likes.

use crate::files;
use std::fs::{DirBuilder, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// Name of the lock file in each folder.
const LOCK: &str = ".lock";

/// How names of folders begin whose lock is not held yet.
const NEW: &str = ".new-";

/// After this time a folder without its name is one of a process that died while it made it.
const LONGEST_BIRTH: Duration = Duration::from_secs(600);

pub(super) struct SpillFolder {
    path: PathBuf,
    /// Locked while the folder is in use.
    _lock: File,
}

impl SpillFolder {
    /// Makes a new folder under `base`, after removing those of dead processes.
    pub(super) fn open(base: &Path) -> io::Result<SpillFolder> {
        private(base)?;
        sweep(base);
        let new = base.join(format!("{NEW}{:016x}", files::random()));
        DirBuilder::new().mode(0o700).create(&new)?;
        let made = SpillFolder::locked(&new).and_then(|lock| Ok((named(&new, base)?, lock)));
        match made {
            Ok((path, lock)) => Ok(SpillFolder { path, _lock: lock }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&new);
                Err(error)
            }
        }
    }

    /// The lock of a new folder, which no other process has.
    fn locked(new: &Path) -> io::Result<File> {
        let lock = files::open_to_lock(&new.join(LOCK))?;
        lock.try_lock()?;
        Ok(lock)
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

/// Gives a folder its name: that of the process with the first number that is free.
fn named(new: &Path, base: &Path) -> io::Result<PathBuf> {
    let mut number = 0_u32;
    loop {
        let path = base.join(format!("{}-{number}", std::process::id()));
        let named =
            if path.exists() { Err(io::ErrorKind::AlreadyExists.into()) } else { files::rename(new, &path) };
        match named {
            Ok(()) => return Ok(path),
            // A folder of this process has the name, perhaps since a moment ago.
            Err(error) if number < u32::MAX && is_taken(&error) => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty | NotADirectory)
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
        let Ok(found) = std::fs::symlink_metadata(&path) else { continue };
        if !found.is_dir() || is_being_made(&path, &found) {
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

fn is_being_made(path: &Path, found: &Metadata) -> bool {
    let is_new = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NEW));
    let age = found.modified().ok().and_then(|made| made.elapsed().ok()).unwrap_or_default();
    is_new && age < LONGEST_BIRTH
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

    /// A server that runs as this user can hold any lock there for ever.
    #[test]
    fn a_lock_that_another_process_holds_keeps_no_folder_from_being_made() {
        let base = tempfile::tempdir().expect("a folder");
        set_mode(base.path(), std::fs::Permissions::from_mode(0o700));
        let held = files::open_to_lock(&base.path().join(LOCK)).expect("a file");
        held.lock().expect("a lock");
        let (sender, made) = std::sync::mpsc::channel();
        let path = base.path().to_owned();
        std::thread::spawn(move || {
            sender.send(SpillFolder::open(&path).map(|folder| folder.path().to_owned()))
        });
        let made = made.recv_timeout(Duration::from_secs(20)).expect("it does not wait").expect("a folder");
        assert_eq!(made.file_name(), Some(format!("{}-0", std::process::id()).as_ref()));
    }

    #[test]
    fn folders_of_dead_processes_go_and_those_that_are_being_made_stay() {
        let base = tempfile::tempdir().expect("a folder");
        set_mode(base.path(), std::fs::Permissions::from_mode(0o700));
        let (dead, new) = (base.path().join("1-0"), base.path().join(".new-1"));
        for path in [&dead, &new] {
            std::fs::create_dir(path).expect("a folder");
            files::create_new(&path.join(LOCK)).expect("a file");
        }
        let (first, second) = (SpillFolder::open(base.path()), SpillFolder::open(base.path()));
        let (first, second) = (first.expect("a folder"), second.expect("a folder"));
        assert!(first.path().exists() && second.path().exists() && new.exists() && !dead.exists());
    }

    #[allow(clippy::disallowed_methods, reason = "a test")]
    fn set_mode(path: &Path, mode: std::fs::Permissions) {
        std::fs::set_permissions(path, mode).expect("a mode");
    }
}
