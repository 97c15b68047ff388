//! Makes and opens the file of the embedded store, and finds damage in it: pages have checksums, which are verified
//! whenever the file is opened.

use super::super::StoreError;
use super::{LEASES, LOGS, VALUES};
use crate::files;
use crate::panics;
use redb::Database;
use redb::backends::FileBackend;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Size of the page cache. The database's default is 1 GiB.
const CACHE_BYTES: usize = 16 << 20;

/// The file of a store, in a folder of this user.
pub(super) struct StoreFile {
    folder: PathBuf,
    path: PathBuf,
    /// Held for as long as the store is there: the database is closed for a moment when it is opened again.
    #[expect(dead_code, reason = "dropping it releases the lock")]
    lock: File,
}

impl StoreFile {
    /// Locks the folder, which is made if it is missing, for this process.
    pub(super) fn new(folder: &Path) -> Result<StoreFile, StoreError> {
        let cannot = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", folder.display()));
        files::private_folder(folder).map_err(cannot)?;
        let lock = files::open_to_lock(&folder.join("runs.lock")).map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => Ok(StoreFile { folder: folder.to_owned(), path: folder.join("runs.redb"), lock }),
            Err(TryLockError::WouldBlock) => Err(taken(folder)),
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the database, which is made if it is missing.
    pub(super) fn open(&self) -> Result<Database, StoreError> {
        let file = match files::open_own(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.make()?;
                files::open_own(&self.path)
            }
            opened => opened,
        };
        let file = file.map_err(unavailable)?;
        // A file gets its name only when it is complete. So this one was cut.
        if file.metadata().map_err(unavailable)?.len() == 0 {
            return Err(damaged("it is empty"));
        }
        let backend = FileBackend::new(file).map_err(unavailable)?;
        let opened = builder().set_check_integrity_on_open(true).create_with_backend(backend);
        opened.map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => taken(&self.folder),
            error => unavailable(error),
        })
    }

    /// Makes a store. It gets its name only when it is complete, so a full disk or a process that dies leaves no broken
    /// one.
    fn make(&self) -> Result<(), StoreError> {
        let new = self.folder.join("runs.new");
        // One of a process that died. No other process makes one: this one has the lock.
        let _ = std::fs::remove_file(&new);
        let made = files::create_new(&new).map_err(unavailable).and_then(|file| {
            let backend = FileBackend::new(file).map_err(unavailable)?;
            let database = builder().create_with_backend(backend).map_err(unavailable)?;
            with_tables(&database)?;
            drop(database);
            files::rename(&new, &self.path).map_err(unavailable)?;
            files::sync_folder(&self.folder).map_err(unavailable)
        });
        made.inspect_err(|_| {
            let _ = std::fs::remove_file(&new);
        })
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Makes the tables that are missing.
pub(super) fn with_tables(database: &Database) -> Result<(), StoreError> {
    let transaction = database.begin_write().map_err(unavailable)?;
    transaction.open_table(VALUES).map_err(unavailable)?;
    transaction.open_table(LOGS).map_err(unavailable)?;
    transaction.open_table(LEASES).map_err(unavailable)?;
    transaction.commit().map_err(unavailable)
}

/// Runs work on the database of a file. The database trusts its pages and panics when they are inconsistent: that is an
/// error of the file. All errors name the file.
pub(super) fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let done = panics::caught_as_damage(work);
    let done = done.unwrap_or_else(|| Err(damaged("its pages contradict each other")));
    done.map_err(|error| match error {
        StoreError::Unavailable(why) => {
            StoreError::Unavailable(format!("the state in {} cannot be used: {why}", path.display()))
        }
        error => error,
    })
}

fn taken(folder: &Path) -> StoreError {
    StoreError::Taken(format!("the state in {} belongs to another process", folder.display()))
}

fn damaged(why: &str) -> StoreError {
    StoreError::Unavailable(format!(
        "it is damaged ({why}); end the process that uses it and put a copy of the file in its place, or move it away \
         to begin without the runs and sessions that it holds"
    ))
}

/// The reason for an error of the database; [`guarded`] adds the file.
pub(super) fn unavailable(error: impl Into<redb::Error>) -> StoreError {
    match error.into() {
        redb::Error::Corrupted(why) => damaged(&why),
        // It is no database, or it ends before a page.
        redb::Error::Io(error)
            if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
        {
            damaged(&error.to_string())
        }
        error => StoreError::Unavailable(error.to_string()),
    }
}
