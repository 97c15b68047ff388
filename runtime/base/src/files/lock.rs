//! Waits for the lock of a file, at most for a given time, so that a process that never releases it does not block
//! others.

use super::{make_folder, open_to_lock, state_folder};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Pauses between attempts: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// The lock of a file, for this process. Dropping it releases the lock.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Waits for the lock of this file, which is created if it is missing. Blocks the thread for at most `patience`.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: another process still holds it; others of the file system.
    pub fn wait(path: &Path, patience: Duration) -> io::Result<FileLock> {
        let file = open_to_lock(path)?;
        let (until, mut pause) = (Instant::now() + patience, PAUSES.0);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(FileLock { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(pause),
                Err(TryLockError::WouldBlock) => {
                    let (path, seconds) = (path.display(), patience.as_secs_f64());
                    let why = format!("another process has held {path} for more than {seconds} s");
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

/// How long an edit waits for another one. Each takes moments.
const EDIT_PATIENCE: Duration = Duration::from_secs(20);

/// Waits for the right to read a file of the user, change it and write it again: of two commands at once one would lose what
/// the other has written. There is one right for all files, as edits are rare. `None`: there is no place for the lock, such
/// as a home; then commands at once are the user's concern.
///
/// # Errors
/// Another process does not give it up.
pub fn lock_edits() -> io::Result<Option<FileLock>> {
    let Some(folder) = state_folder() else { return Ok(None) };
    if make_folder(&folder).is_err() {
        return Ok(None);
    }
    match FileLock::wait(&folder.join("edits.lock"), EDIT_PATIENCE) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        Err(_) => Ok(None),
    }
}
