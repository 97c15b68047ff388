//! Stores preludes (versioned Lisp libraries) in a file that processes share: an embedded database, opened under a lock
//! for one operation at a time.

use super::{Head, HeadChange, StoreBackend, StoreError};
use ptc_base::files::{self, FileLock, LinkRule};
use ptc_base::panics::caught_as_damage;
use ptc_base::sync::Locked;
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition, TableError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// Facts about each id, as JSON.
const HEADS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("heads");

/// Texts, by id and version.
const SOURCES: TableDefinition<'_, (&str, u64), &str> = TableDefinition::new("sources");

/// Size of the page cache. The database's default is 1 GiB.
const CACHE_BYTES: usize = 8 << 20;

/// How long a process waits for others that use the store. Each holds it for one operation.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens the database for one operation at a time, because it admits one process; a lock file next to it
/// decides which.
pub(super) struct FileBackend {
    /// With links resolved, so that all names of the file share one lock.
    path: PathBuf,
    lock: PathBuf,
    /// State of the file when this process used it last.
    seen: Mutex<Option<Stamp>>,
}

/// Modification time and size: they show that another process has changed the file.
type Stamp = (SystemTime, u64);

impl FileBackend {
    pub(super) fn open(path: &Path) -> Result<FileBackend, StoreError> {
        guarded(path, || make(path).map_err(|error| refused(path, error)))?;
        // A path that cannot be resolved is reported when it is opened.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut lock = path.clone().into_os_string();
        lock.push(".lock");
        let store = FileBackend { path, lock: lock.into(), seen: Mutex::default() };
        store.with(|_| Ok(()))?;
        Ok(store)
    }

    /// Runs `work` on the database while no other process and no other thread uses it.
    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let path = &self.path;
        guarded(path, || {
            // Threads of this process wait here, without a limit: each operation is short. Only other processes are
            // waited for with patience.
            let mut seen = self.seen.locked();
            let _lock = self.lock()?;
            let mut database = Database::builder().set_cache_size(CACHE_BYTES).open(path).map_err(|error| match path.metadata() {
                // A store gets its name only when it is complete. So this file was truncated, or never was a
                // store.
                Ok(file) if file.is_file() && file.len() == 0 => StoreError::broken(format_args!(
                    "{} is empty, and no store: put a copy of the store in its place, or remove the file to begin anew",
                    path.display()
                )),
                _ => refused(path, error),
            })?;
            if seen.is_none() || *seen != stamp(path) {
                // Verifies checksums of all pages, so that outside changes are found before the data is used.
                database.check_integrity().map_err(|error| refused(path, error))?;
            }
            let done = work(&database);
            drop(database);
            *seen = stamp(path);
            done
        })
    }

    fn lock(&self) -> Result<FileLock, StoreError> {
        FileLock::wait(&self.lock, PATIENCE).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => taken(&self.path),
            _ => StoreError::broken(format_args!("{}: {error}", self.lock.display())),
        })
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = path.metadata().ok()?;
    Some((file.modified().ok()?, file.len()))
}

fn taken(path: &Path) -> StoreError {
    let text = format!("the store {} belongs to another process just now", path.display());
    StoreError::new("prelude_store_error", text)
}

fn refused(path: &Path, error: redb::DatabaseError) -> StoreError {
    match error {
        redb::DatabaseError::DatabaseAlreadyOpen => taken(path),
        error => StoreError::broken(format_args!("{}: {error}", path.display())),
    }
}

/// Creates a store. It gets its name only when it is complete, so a full disk or a process that dies leaves
/// no broken store.
fn make(path: &Path) -> Result<(), redb::DatabaseError> {
    if files::settle(path, LinkRule::Follow)?.exists() {
        return Ok(());
    }
    // A link may lead to a store anywhere, but a new file is made in the named folder only.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = files::settle(path, LinkRule::Within(folder))?;
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
    // Best effort: a temporary file that cannot be removed stays.
    let _ = std::fs::remove_file(&new);
    made
}

/// The database trusts its pages and panics when they are inconsistent: that is an error of the file.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    caught_as_damage(work).unwrap_or_else(|| {
        let path = path.display();
        Err(StoreError::broken(format_args!("{path} is damaged; put a copy of it in its place")))
    })
}

fn read(id: &str, bytes: &[u8]) -> Result<Head, StoreError> {
    let damaged = |error| {
        StoreError::broken(format_args!(
            "what is stored about {id} is damaged ({error}); put a copy of the store in its place"
        ))
    };
    serde_json::from_slice(bytes).map_err(damaged)
}

impl StoreBackend for FileBackend {
    fn heads(&self) -> Result<Vec<(String, Head)>, StoreError> {
        self.with(|database| {
            let transaction = database.begin_read().map_err(StoreError::broken)?;
            let Some(heads) = written(transaction.open_table(HEADS))? else { return Ok(Vec::new()) };
            let rows = heads.iter().map_err(StoreError::broken)?;
            rows.map(|row| {
                let (id, head) = row.map_err(StoreError::broken)?;
                Ok((id.value().to_owned(), read(id.value(), head.value())?))
            })
            .collect()
        })
    }

    fn head(&self, id: &str) -> Result<Option<Head>, StoreError> {
        self.with(|database| {
            let transaction = database.begin_read().map_err(StoreError::broken)?;
            let Some(heads) = written(transaction.open_table(HEADS))? else { return Ok(None) };
            let found = heads.get(id).map_err(StoreError::broken)?;
            found.map(|head| read(id, head.value())).transpose()
        })
    }

    fn source(&self, id: &str, version: u64) -> Result<Option<String>, StoreError> {
        self.with(|database| {
            let transaction = database.begin_read().map_err(StoreError::broken)?;
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
        self.with(|database| {
            // Writers wait for each other here; an uncommitted transaction leaves no trace.
            let transaction = database.begin_write().map_err(StoreError::broken)?;
            {
                let mut heads = transaction.open_table(HEADS).map_err(StoreError::broken)?;
                let mut sources = transaction.open_table(SOURCES).map_err(StoreError::broken)?;
                let known = heads
                    .get(id)
                    .map_err(StoreError::broken)?
                    .map(|head| read(id, head.value()))
                    .transpose()?;
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

/// A table; `None` before the first write.
fn written<T>(opened: Result<T, TableError>) -> Result<Option<T>, StoreError> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(StoreError::broken(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PreludeRef, PreludeStore};
    use super::*;

    const TEXT: &str = "(ns a)\n(defn one [] 1)\n";

    /// A store with the prelude `a`, whose file `change` has changed.
    fn changed(change: impl Fn(&redb::WriteTransaction)) -> (tempfile::TempDir, PreludeStore) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("preludes.redb");
        let store = PreludeStore::open(&path).unwrap();
        store.write("a", TEXT, serde_json::Map::new(), None).unwrap();
        let database = Database::builder().open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        change(&transaction);
        transaction.commit().unwrap();
        drop(database);
        (folder, store)
    }

    fn read_a(store: &PreludeStore) -> Result<String, StoreError> {
        let reference = PreludeRef { id: "a".to_owned(), version: None, checksum: None };
        store.read(&reference).map(|found| found.source)
    }

    #[test]
    fn another_text_than_that_of_the_checksum_is_not_read() {
        let (_folder, store) = changed(|_| ());
        assert_eq!(read_a(&store).unwrap(), TEXT);
        let (_folder, store) = changed(|transaction| {
            let mut sources = transaction.open_table(SOURCES).unwrap();
            sources.insert(("a", 1), "(ns a)\n(defn one [] 2)\n").unwrap();
        });
        let why = read_a(&store).unwrap_err().to_string();
        assert!(why.contains("a@1 is not the one with its checksum"), "{why}");
    }

    #[test]
    fn facts_that_cannot_be_are_errors() {
        let with = |from: &'static str, to: &'static str| {
            changed(move |transaction| {
                let mut heads = transaction.open_table(HEADS).unwrap();
                let head = String::from_utf8(heads.get("a").unwrap().unwrap().value().to_vec()).unwrap();
                assert!(head.contains(from), "{head}");
                heads.insert("a", head.replace(from, to).as_bytes()).unwrap();
            })
        };
        let write = |store: &PreludeStore| {
            store.write("b", "(ns b)\n(defn two [] 2)\n", serde_json::Map::new(), None)
        };
        let (_folder, store) = with("\"source_bytes\":23", "\"source_bytes\":18446744073709551615");
        assert_eq!(write(&store).unwrap_err().reason, "store_full");
        let (_folder, store) = with("\"latest\":1", "\"latest\":18446744073709551615");
        let full = store.write("a", TEXT, serde_json::Map::new(), None).unwrap_err();
        assert!(full.to_string().contains("no numbers left"), "{full}");
        let (_folder, store) = with("{", "{,");
        assert!(write(&store).unwrap_err().to_string().contains("stored about a is damaged"));
    }
}
