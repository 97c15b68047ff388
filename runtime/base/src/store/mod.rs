//! Stores data that must outlive a process, as versioned values and logs, and coordinates the processes that share the
//! store, by leases, locks and messages.
//!
//! [`Store`] has few methods, so that several nodes can share a database. [`EmbeddedStore`] is a file of one process,
//! `PostgresStore` a database that many nodes share.
//!
//! # Layout
//! - `embedded`: the store in a file; `postgres`: the store in PostgreSQL
//! - `suite`: the tests that every store passes

mod embedded;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(test)]
pub(crate) mod suite;

pub use embedded::EmbeddedStore;
#[cfg(feature = "postgres")]
pub use postgres::{FarmJob, JobProgress, NumberedLine, PostgresStore, StoreCheck, password_in};

use crate::sync::Locked;
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, broadcast, watch};

/// Most messages that a receiver may be behind. It loses older ones.
const MESSAGES: usize = 4_096;

/// What a receiver of messages gets where messages may have been lost. No process can send it.
pub const MESSAGES_LOST: &str = "\0";

/// A value with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Grows with every write of the key, also over removals.
    pub version: u64,
    /// The value.
    pub value: Vec<u8>,
}

/// The right to append to a log. Another holder's lease ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The log.
    pub name: Arc<str>,
    /// Grows with every holder, also over removals: a holder that has lost its lease cannot append.
    pub epoch: u64,
}

/// A value that goes with a log: only the holder of the log's lease writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogNote {
    /// Its key, among those of all values.
    pub key: String,
    /// The value; `None` removes it.
    pub value: Option<Vec<u8>>,
}

/// A log of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogName {
    /// Its name.
    pub name: String,
    /// The holder of its lease, which is not over.
    pub holder: Option<String>,
}

/// Why a store did not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// Another holder has the lease.
    LeaseLost,
    /// Another process has the store.
    Taken(String),
    /// The store cannot be used now.
    Unavailable(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::LeaseLost => out.write_str("another process has taken over the run"),
            StoreError::Taken(why) | StoreError::Unavailable(why) => out.write_str(why),
        }
    }
}

impl std::error::Error for StoreError {}

/// The exclusive right to a name. It ends when this is dropped.
pub struct StoreLock(#[expect(dead_code, reason = "dropping it releases the lock")] Box<dyn Any + Send>);

impl StoreLock {
    /// A right that ends when `held` is dropped.
    fn new(held: impl Any + Send) -> StoreLock {
        StoreLock(Box::new(held))
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("StoreLock")
    }
}

/// The locks of this process, by name.
#[derive(Default)]
struct NamedLocks(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl NamedLocks {
    async fn lock(&self, name: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.locked();
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            locks.entry(name.to_owned()).or_default().clone()
        };
        lock.lock_owned().await
    }
}

/// A store. Every write is on the disk when its method returns.
#[async_trait::async_trait]
pub trait Store: Send + Sync {
    /// The value of a key.
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// Writes a value, or removes it with `None`, if the key has this version; 0: the key has no value. Returns the new
    /// version, or `None` if the key has another one.
    async fn put(&self, key: &str, expected: u64, value: Option<Vec<u8>>) -> Result<Option<u64>, StoreError>;

    /// Makes a log with its first records, and takes its lease, at once. `None`: another holder has it, or it was there
    /// and is removed. It can be repeated if its outcome is not known.
    async fn begin(
        &self,
        log: &str,
        holder: &str,
        time: Duration,
        records: Vec<Vec<u8>>,
    ) -> Result<Option<Lease>, StoreError>;

    /// Appends records to the log of a lease. `at` is the number of the first one: how many the log has. An append can be
    /// repeated if its outcome is not known: records that are there already are not written again.
    async fn append(&self, lease: &Lease, at: u64, records: Vec<Vec<u8>>) -> Result<(), StoreError>;

    /// The records of a log from this one on, in order.
    async fn read_from(&self, log: &str, first: u64) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Takes the lease of a log that is there for some time, or renews that of this holder. `None`: another holder has it,
    /// or there is no such log.
    async fn lease(&self, log: &str, holder: &str, time: Duration) -> Result<Option<Lease>, StoreError>;

    /// Makes leases last for this time from now on. A lease that is lost stays lost: returns those.
    async fn renew(&self, leases: &[Lease], time: Duration) -> Result<Vec<Lease>, StoreError>;

    /// Writes a value, whatever version it has, if the lease is not lost: both are one step.
    async fn note(&self, lease: &Lease, note: LogNote) -> Result<(), StoreError>;

    /// Removes the log of a lease, and writes its last note: both, or nothing.
    async fn remove(&self, lease: &Lease, note: Option<LogNote>) -> Result<(), StoreError>;

    /// Keys that begin so, from this one on, with their values, sorted.
    async fn list(&self, prefix: &str, first: &str) -> Result<Vec<(String, Entry)>, StoreError>;

    /// Logs with names that begin so, sorted.
    async fn logs(&self, prefix: &str) -> Result<Vec<LogName>, StoreError>;

    /// A receiver that changes with every write to a key or a log of this store.
    fn watch(&self) -> watch::Receiver<u64>;

    /// Sends a message to all processes with this store, this one included. It arrives once, or not at all where the
    /// connection is lost.
    async fn send(&self, message: &str) -> Result<(), StoreError>;

    /// A receiver of the messages that are sent from now on. It makes a lost connection again: call it now and then, as
    /// nothing arrives while there is none. [`MESSAGES_LOST`] follows a loss.
    async fn messages(&self) -> Result<broadcast::Receiver<Arc<str>>, StoreError>;

    /// Waits for the exclusive right to a name.
    async fn lock(&self, name: &str) -> Result<StoreLock, StoreError>;
}
