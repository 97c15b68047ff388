//! A store in a file: an embedded database whose transactions are on the disk when they are acknowledged.

use super::{Head, HeadChange, StoreBackend, StoreError};
use crate::files::{self, LinkRule};
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition, TableError};
use std::cell::Cell;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// What is known of an id, as JSON.
const HEADS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("heads");

/// Texts, by id and version.
const SOURCES: TableDefinition<'_, (&str, u64), &str> = TableDefinition::new("sources");

/// Bytes of pages that are kept in memory. The default of the database is 1 GiB.
const CACHE_BYTES: usize = 8 << 20;

pub(super) struct FileBackend {
    database: Database,
    path: PathBuf,
}

impl FileBackend {
    pub(super) fn open(path: &Path) -> Result<FileBackend, StoreError> {
        let refused = |error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => StoreError::new(
                "prelude_store_error",
                format!("the store {} belongs to another process just now", path.display()),
            ),
            error => StoreError::broken(format_args!("{}: {error}", path.display())),
        };
        guarded(path, || {
            make(path).map_err(refused)?;
            let mut database = Database::builder().set_cache_size(CACHE_BYTES).open(path).map_err(|error| match path.metadata() {
                // A store has its name when it is whole, so this was one that has lost everything, or never was one.
                Ok(file) if file.is_file() && file.len() == 0 => StoreError::broken(format_args!(
                    "{} is empty, and no store: put a copy of the store in its place, or remove the file to begin anew",
                    path.display()
                )),
                _ => refused(error),
            })?;
            // Sums over all pages: what was changed from outside is found here, before anything is made of it.
            database.check_integrity().map_err(refused)?;
            Ok(FileBackend { database, path: path.to_owned() })
        })
    }
}

/// Makes a store where there is none. It gets its name when it is whole: a disk that is full, or a process that ends half-way,
/// leaves nothing in its place that is no store.
fn make(path: &Path) -> Result<(), redb::DatabaseError> {
    let real = files::settle(path, LinkRule::Follow)?;
    if real.exists() {
        return Ok(());
    }
    let new = real.with_file_name(format!(".ptc-{:016x}.new", files::random()));
    let file = files::create_new(&new)?;
    let made = redb::backends::FileBackend::new(file)
        .and_then(|backend| Database::builder().create_with_backend(backend))
        .and_then(|database| {
            drop(database);
            match files::give_name(&new, &real) {
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                linked => Ok(linked?),
            }
        });
    // There is nothing to do about a file that cannot be removed.
    let _ = std::fs::remove_file(&new);
    made
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// A panic of this thread, now, means that the file of a store is damaged. Whoever has opened it is told so, and there is
/// nothing to say beside that.
pub fn takes_panics_for_damage() -> bool {
    GUARDED.get()
}

/// The database takes its own pages for right and panics where they are not: that is an error of the file.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    done.unwrap_or_else(|_| {
        let path = path.display();
        Err(StoreError::broken(format_args!("{path} is damaged; put a copy of it in its place")))
    })
}

fn read(bytes: &[u8]) -> Result<Head, StoreError> {
    serde_json::from_slice(bytes).map_err(StoreError::broken)
}

impl StoreBackend for FileBackend {
    fn heads(&self) -> Result<Vec<(String, Head)>, StoreError> {
        guarded(&self.path, || {
            let transaction = self.database.begin_read().map_err(StoreError::broken)?;
            let Some(heads) = written(transaction.open_table(HEADS))? else { return Ok(Vec::new()) };
            let rows = heads.iter().map_err(StoreError::broken)?;
            rows.map(|row| {
                let (id, head) = row.map_err(StoreError::broken)?;
                Ok((id.value().to_owned(), read(head.value())?))
            })
            .collect()
        })
    }

    fn head(&self, id: &str) -> Result<Option<Head>, StoreError> {
        guarded(&self.path, || {
            let transaction = self.database.begin_read().map_err(StoreError::broken)?;
            let Some(heads) = written(transaction.open_table(HEADS))? else { return Ok(None) };
            let found = heads.get(id).map_err(StoreError::broken)?;
            found.map(|head| read(head.value())).transpose()
        })
    }

    fn source(&self, id: &str, version: u64) -> Result<Option<String>, StoreError> {
        guarded(&self.path, || {
            let transaction = self.database.begin_read().map_err(StoreError::broken)?;
            let Some(sources) = written(transaction.open_table(SOURCES))? else { return Ok(None) };
            let found = sources.get((id, version)).map_err(StoreError::broken)?;
            Ok(found.map(|text| text.value().to_owned()))
        })
    }

    fn update(
        &self,
        id: &str,
        decide: &mut dyn FnMut(Option<Head>, usize) -> Result<HeadChange, StoreError>,
    ) -> Result<(), StoreError> {
        guarded(&self.path, || {
            // Writers wait for each other here; a transaction that is not committed leaves no trace.
            let transaction = self.database.begin_write().map_err(StoreError::broken)?;
            {
                let mut heads = transaction.open_table(HEADS).map_err(StoreError::broken)?;
                let mut sources = transaction.open_table(SOURCES).map_err(StoreError::broken)?;
                let known =
                    heads.get(id).map_err(StoreError::broken)?.map(|head| read(head.value())).transpose()?;
                let count = usize::try_from(heads.len().map_err(StoreError::broken)?).unwrap_or(usize::MAX);
                let HeadChange { head, added, dropped } = decide(known, count)?;
                let head = serde_json::to_vec(&head).map_err(StoreError::broken)?;
                heads.insert(id, head.as_slice()).map_err(StoreError::broken)?;
                if let Some((version, text)) = added {
                    sources.insert((id, version), text.as_str()).map_err(StoreError::broken)?;
                }
                for version in dropped {
                    sources.remove((id, version)).map_err(StoreError::broken)?;
                }
            }
            transaction.commit().map_err(StoreError::broken)
        })
    }
}

/// A table; `None` when nothing was written yet.
fn written<T>(opened: Result<T, TableError>) -> Result<Option<T>, StoreError> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(StoreError::broken(error)),
    }
}
