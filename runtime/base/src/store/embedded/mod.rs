//! Implements the store for persistent state in one file, with an embedded database and durable transactions. One
//! process has it at a time.
//!
//! # Layout
//! - `file`: how its file is made and opened, and damage in it

mod file;
#[cfg(test)]
mod tests;

use self::file::{StoreFile, guarded, unavailable, with_tables};
use super::{Entry, Lease, LogName, LogNote, MESSAGES, NamedLocks, Store, StoreError, StoreLock};
use crate::panics;
use crate::sync::RwLocked;
use crate::tasks::{self, TaskOwner};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError, WriteTransaction};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{broadcast, watch};

/// Versions and values; an empty slot is a removed value.
const VALUES: TableDefinition<'_, &str, (u64, Option<&[u8]>)> = TableDefinition::new("values");

/// Records by log and number.
const LOGS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("logs");

/// Holder, epoch and end (milliseconds since 1970) by log.
const LEASES: TableDefinition<'_, &str, (&str, u64, u64)> = TableDefinition::new("leases");

/// A store in one file.
pub struct EmbeddedStore {
    database: Arc<OpenDatabase>,
    changes: watch::Sender<u64>,
    messages: broadcast::Sender<Arc<str>>,
    locks: NamedLocks,
}

type Open = Box<dyn Fn() -> Result<Database, StoreError> + Send + Sync>;

/// The database, which is opened again after it has failed: one that met a full disk refuses everything from then on,
/// and one that met damage is verified.
struct OpenDatabase {
    path: PathBuf,
    open: Open,
    current: RwLock<Opened>,
}

#[derive(Default)]
struct Opened {
    /// `None`: it has failed, or was never open.
    database: Option<Database>,
    /// How often it was opened.
    times: u64,
}

impl OpenDatabase {
    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut used = 0;
        let done = guarded(&self.path, || {
            if self.current.read_locked().database.is_none() {
                let mut current = self.current.write_locked();
                if current.database.is_none() {
                    current.database = Some((self.open)()?);
                    current.times += 1;
                }
            }
            let current = self.current.read_locked();
            used = current.times;
            match &current.database {
                Some(database) => work(database),
                None => Err(StoreError::Unavailable("it has just failed".to_owned())),
            }
        });
        if let Err(StoreError::Unavailable(_)) = done {
            self.close(used);
        }
        done
    }

    /// Closes the database that has failed, unless it was opened again meanwhile.
    fn close(&self, failed: u64) {
        let mut current = self.current.write_locked();
        if current.times == failed {
            let failed = current.database.take();
            // It writes when it is closed, and may meet the damage again. It has its file until then.
            let _ = panics::caught_as_damage(|| drop(failed));
        }
    }
}

impl EmbeddedStore {
    /// Opens the store `runs.redb` in a folder; both are created, for this user only, if they are missing. Verifies the
    /// checksums of all its pages, which takes two milliseconds for each megabyte.
    ///
    /// # Errors
    /// Another process has it; it is damaged; the file system refuses.
    pub fn open(folder: &Path) -> Result<EmbeddedStore, StoreError> {
        let file = StoreFile::new(folder)?;
        EmbeddedStore::opened_by(file.path().to_owned(), Box::new(move || file.open()))
    }

    fn opened_by(path: PathBuf, open: Open) -> Result<EmbeddedStore, StoreError> {
        let database = Arc::new(OpenDatabase { path, open, current: RwLock::default() });
        // A file of an earlier version may lack a table. They all exist from here on.
        database.with(with_tables)?;
        let (changes, messages) = (watch::Sender::new(0), broadcast::Sender::new(MESSAGES));
        Ok(EmbeddedStore { database, changes, messages, locks: NamedLocks::default() })
    }

    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = self.on_thread(|database| written(database, work)).await?;
        self.changes.send_modify(|changes| *changes += 1);
        Ok(done)
    }

    /// Changes something under a lease, unless that is lost; `work` gets the name of its log.
    async fn change_held(
        &self,
        lease: &Lease,
        work: impl FnOnce(&WriteTransaction, &str) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let lease = lease.clone();
        let write = move |transaction: &WriteTransaction| {
            must_hold(transaction, &lease)?;
            work(transaction, &lease.name)
        };
        self.change(write).await
    }

    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let database = self.database.clone();
        let done = tasks::blocking(TaskOwner::Process, move |_| database.with(work)).await;
        done.unwrap_or_else(|| Err(StoreError::Unavailable("the process ends".to_owned())))
    }
}

/// Runs a transaction. It is on the disk when this returns.
fn written<T>(
    database: &Database,
    work: impl FnOnce(&WriteTransaction) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = database.begin_write().map_err(unavailable)?;
    let done = work(&transaction)?;
    transaction.commit().map_err(unavailable)?;
    Ok(done)
}

fn table<T>(opened: Result<T, TableError>) -> Result<T, StoreError> {
    opened.map_err(unavailable)
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The end of a lease that begins now.
fn end_of(time: Duration) -> u64 {
    now_ms().saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Checks that a lease is the last one of its log.
fn must_hold(transaction: &WriteTransaction, lease: &Lease) -> Result<(), StoreError> {
    let leases = table(transaction.open_table(LEASES))?;
    let held = leases.get(&*lease.name).map_err(unavailable)?;
    match held.is_some_and(|held| held.value().1 == lease.epoch) {
        true => Ok(()),
        false => Err(StoreError::LeaseLost),
    }
}

/// Takes or renews a lease. A log that is not there is made if `is_new` says so.
fn leased(
    transaction: &WriteTransaction,
    log: &str,
    holder: &str,
    time: Duration,
    is_new: bool,
) -> Result<Option<Lease>, StoreError> {
    let mut leases = table(transaction.open_table(LEASES))?;
    let now = now_ms();
    let epoch = match leases.get(log).map_err(unavailable)? {
        Some(held) => match held.value() {
            (same, epoch, end) if same == holder && end > now => epoch,
            (_, _, end) if end > now || is_new => return Ok(None),
            (_, epoch, _) => now.max(epoch.saturating_add(1)),
        },
        None if is_new => now,
        None => return Ok(None),
    };
    leases.insert(log, (holder, epoch, end_of(time))).map_err(unavailable)?;
    Ok(Some(Lease { name: log.into(), epoch }))
}

/// Writes records to a log, from this number on.
fn appended(
    transaction: &WriteTransaction,
    log: &str,
    at: u64,
    records: &[Vec<u8>],
) -> Result<(), StoreError> {
    let mut logs = table(transaction.open_table(LOGS))?;
    for (number, record) in (at..).zip(records) {
        logs.insert((log, number), record.as_slice()).map_err(unavailable)?;
    }
    Ok(())
}

/// Writes a value, whatever version it has.
fn noted(transaction: &WriteTransaction, note: &LogNote) -> Result<(), StoreError> {
    let mut values = table(transaction.open_table(VALUES))?;
    let last = values.get(&*note.key).map_err(unavailable)?.map_or(0, |found| found.value().0);
    values.insert(&*note.key, (last + 1, note.value.as_deref())).map_err(unavailable)?;
    Ok(())
}

#[async_trait::async_trait]
impl Store for EmbeddedStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let key = key.to_owned();
        let read = move |database: &Database| {
            let transaction = database.begin_read().map_err(unavailable)?;
            let values = table(transaction.open_table(VALUES))?;
            let found = values.get(&*key).map_err(unavailable)?;
            Ok(found.and_then(|found| {
                let (version, value) = found.value();
                Some(Entry { version, value: value?.to_vec() })
            }))
        };
        self.on_thread(read).await
    }

    async fn put(&self, key: &str, expected: u64, value: Option<Vec<u8>>) -> Result<Option<u64>, StoreError> {
        let key = key.to_owned();
        let write = move |transaction: &WriteTransaction| {
            let mut values = table(transaction.open_table(VALUES))?;
            let (last, present) = match values.get(&*key).map_err(unavailable)? {
                Some(found) => {
                    let (version, value) = found.value();
                    (version, if value.is_some() { version } else { 0 })
                }
                None => (0, 0),
            };
            if present != expected {
                return Ok(None);
            }
            values.insert(&*key, (last + 1, value.as_deref())).map_err(unavailable)?;
            Ok(Some(last + 1))
        };
        self.change(write).await
    }

    async fn begin(
        &self,
        log: &str,
        holder: &str,
        time: Duration,
        records: Vec<Vec<u8>>,
    ) -> Result<Option<Lease>, StoreError> {
        let (log, holder) = (log.to_owned(), holder.to_owned());
        let write = move |transaction: &WriteTransaction| {
            let Some(lease) = leased(transaction, &log, &holder, time, true)? else { return Ok(None) };
            appended(transaction, &log, 0, &records)?;
            Ok(Some(lease))
        };
        self.change(write).await
    }

    async fn append(&self, lease: &Lease, at: u64, records: Vec<Vec<u8>>) -> Result<(), StoreError> {
        self.change_held(lease, move |transaction, log| appended(transaction, log, at, &records)).await
    }

    async fn read_from(&self, log: &str, first: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        let log = log.to_owned();
        let read = move |database: &Database| {
            let transaction = database.begin_read().map_err(unavailable)?;
            let logs = table(transaction.open_table(LOGS))?;
            let rows = logs.range((&*log, first)..=(&*log, u64::MAX)).map_err(unavailable)?;
            rows.map(|row| row.map(|(_, record)| record.value().to_vec()).map_err(unavailable)).collect()
        };
        self.on_thread(read).await
    }

    async fn lease(&self, log: &str, holder: &str, time: Duration) -> Result<Option<Lease>, StoreError> {
        let (log, holder) = (log.to_owned(), holder.to_owned());
        self.change(move |transaction| leased(transaction, &log, &holder, time, false)).await
    }

    async fn renew(&self, leases: &[Lease], time: Duration) -> Result<Vec<Lease>, StoreError> {
        let leases = leases.to_owned();
        let write = move |transaction: &WriteTransaction| {
            let mut table = table(transaction.open_table(LEASES))?;
            let mut lost = Vec::new();
            for lease in leases {
                let held = table.get(&*lease.name).map_err(unavailable)?;
                let held = held.map(|held| (held.value().0.to_owned(), held.value().1));
                match held.filter(|(_, epoch)| *epoch == lease.epoch) {
                    Some((holder, epoch)) => {
                        table.insert(&*lease.name, (&*holder, epoch, end_of(time))).map_err(unavailable)?;
                    }
                    None => lost.push(lease),
                }
            }
            Ok(lost)
        };
        self.on_thread(|database| written(database, write)).await
    }

    async fn note(&self, lease: &Lease, note: LogNote) -> Result<(), StoreError> {
        self.change_held(lease, move |transaction, _| noted(transaction, &note)).await
    }

    async fn remove(&self, lease: &Lease, note: Option<LogNote>) -> Result<(), StoreError> {
        let write = move |transaction: &WriteTransaction, log: &str| {
            let mut logs = table(transaction.open_table(LOGS))?;
            logs.retain_in((log, 0)..=(log, u64::MAX), |_, _| false).map_err(unavailable)?;
            table(transaction.open_table(LEASES))?.remove(log).map_err(unavailable)?;
            note.map_or(Ok(()), |note| noted(transaction, &note))
        };
        self.change_held(lease, write).await
    }

    async fn list(&self, prefix: &str, first: &str) -> Result<Vec<(String, Entry)>, StoreError> {
        let (prefix, first) = (prefix.to_owned(), first.max(prefix).to_owned());
        let read = move |database: &Database| {
            let transaction = database.begin_read().map_err(unavailable)?;
            let values = table(transaction.open_table(VALUES))?;
            let mut found = Vec::new();
            for row in values.range(&*first..).map_err(unavailable)? {
                let (key, entry) = row.map_err(unavailable)?;
                if !key.value().starts_with(&*prefix) {
                    break;
                }
                if let (version, Some(value)) = entry.value() {
                    found.push((key.value().to_owned(), Entry { version, value: value.to_vec() }));
                }
            }
            Ok(found)
        };
        self.on_thread(read).await
    }

    async fn logs(&self, prefix: &str) -> Result<Vec<LogName>, StoreError> {
        let prefix = prefix.to_owned();
        let read = move |database: &Database| {
            let transaction = database.begin_read().map_err(unavailable)?;
            let leases = table(transaction.open_table(LEASES))?;
            let (mut logs, now) = (Vec::new(), now_ms());
            for row in leases.range(&*prefix..).map_err(unavailable)? {
                let (log, lease) = row.map_err(unavailable)?;
                if !log.value().starts_with(&*prefix) {
                    break;
                }
                let (holder, _, end) = lease.value();
                let holder = (end > now).then(|| holder.to_owned());
                logs.push(LogName { name: log.value().to_owned(), holder });
            }
            Ok(logs)
        };
        self.on_thread(read).await
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn send(&self, message: &str) -> Result<(), StoreError> {
        // Without a receiver there is nothing to do.
        let _ = self.messages.send(message.into());
        Ok(())
    }

    async fn messages(&self) -> Result<broadcast::Receiver<Arc<str>>, StoreError> {
        Ok(self.messages.subscribe())
    }

    async fn lock(&self, name: &str) -> Result<StoreLock, StoreError> {
        Ok(StoreLock::new(self.locks.lock(name).await))
    }
}
