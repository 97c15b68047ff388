//! Implements the store for persistent state in PostgreSQL, so that several ptc servers (nodes) share it.
//!
//! Every operation is one statement, so it is atomic without a transaction that could stay open, and a node that stops
//! between two steps holds nothing. Time is that of the database: clocks of nodes do not matter. A lease that another
//! holder has taken has another epoch, and every append checks the epoch in the same statement.
//!
//! # Layout
//! - this file: the operations; `schema`: tables and migrations
//! - `connection`: the connection that all operations share; `connecting`: how it is made
//! - `messages`: messages between nodes; `farm`: a queue of lines for many workers

mod connecting;
mod connection;
mod farm;
mod messages;
mod schema;

pub use connection::password_in;
pub use farm::{FarmJob, JobProgress, NumberedLine};

use super::{
    Entry, Lease, LogName, LogNote, MESSAGES, MESSAGES_LOST, NamedLocks, Store, StoreError, StoreLock,
};
use crate::tasks::{self, TaskOwner};
use connecting::OpenConnection;
use connection::{Connection, PATIENCE};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, broadcast, watch};
use tokio::time::{Instant, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

/// Appends to a log, as a part of a statement: $1 is its name, $2 the number of the first record, $3 the records. A
/// record that is there already stays.
const APPEND: &str = "INSERT INTO ptc_logs (log, number, record)
    SELECT $1, $2 + new.place - 1, new.record FROM held, unnest($3) WITH ORDINALITY AS new (record, place)
    ON CONFLICT (log, number) DO NOTHING";

/// Begins a log, as a part of a statement: $1 is its name, $4 the holder, $5 the time in milliseconds. The same holder may
/// repeat it. A log that was removed leaves its row for some time, without a holder, so that a begin that arrives late does
/// not make it again. An epoch never comes twice, whatever happens to the row.
const BEGIN: &str = "INSERT INTO ptc_leases AS lease (log, holder, epoch, until)
    VALUES ($1, $4, nextval('ptc_epochs'), now() + $5 * interval '1 millisecond')
    ON CONFLICT (log) DO UPDATE SET until = excluded.until WHERE lease.holder = excluded.holder
    RETURNING epoch";

/// Takes or renews the lease of a log that is there: $1 is its name, $2 the holder, $3 the time in milliseconds.
const TAKE: &str = "UPDATE ptc_leases SET
        holder = $2,
        until = now() + $3 * interval '1 millisecond',
        epoch = CASE WHEN holder = $2 AND until > now() THEN epoch ELSE nextval('ptc_epochs') END
    WHERE log = $1 AND holder <> '' AND (holder = $2 OR until <= now())
    RETURNING epoch";

/// Writes the note of a log that is held, as a part of a statement: $3 is the key, $4 the value. A removed value leaves its
/// version, as everywhere.
const NOTE: &str = "INSERT INTO ptc_values AS old (key, version, value, removed)
    SELECT $3, 1, $4, CASE WHEN $4 IS NULL THEN now() END FROM held
    ON CONFLICT (key) DO UPDATE SET
        version = old.version + 1, value = excluded.value, removed = excluded.removed";

/// How often another process is asked for a lock that it has.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Longest time of all migrations together.
const MIGRATION: Duration = Duration::from_secs(60);

/// A store in PostgreSQL.
pub struct PostgresStore {
    connection: Arc<Connection>,
    changes: watch::Sender<u64>,
    messages: broadcast::Sender<Arc<str>>,
    locks: NamedLocks,
}

impl PostgresStore {
    /// Opens the store at `postgres://USER:PASSWORD@HOST/DATABASE`, and makes its tables if they are missing or older.
    /// They are in the first schema of the search path, with names that begin with `ptc_`. It must be called on a tokio
    /// runtime.
    ///
    /// # Errors
    /// The address cannot be read; the database does not answer or refuses; its tables are newer than this program.
    pub async fn open(url: &str) -> Result<PostgresStore, StoreError> {
        let store = PostgresStore::at(url)?;
        prepare(&store.connection).await?;
        Ok(store)
    }

    fn at(url: &str) -> Result<PostgresStore, StoreError> {
        let changes = watch::Sender::new(0);
        let messages = broadcast::Sender::new(MESSAGES);
        let connection = Arc::new(Connection::new(url, changes.clone(), messages.clone())?);
        Ok(PostgresStore { connection, changes, messages, locks: NamedLocks::default() })
    }

    /// What there is to say about the store at this address, which is not changed.
    ///
    /// # Errors
    /// The address cannot be read; the database does not answer or refuses.
    pub async fn check(url: &str) -> Result<StoreCheck, StoreError> {
        let store = PostgresStore::at(url)?;
        let checking = async { check(&store.connection.open().await?.client).await };
        timeout(PATIENCE, checking).await.unwrap_or_else(|_| Err(silent()))
    }

    /// Executes one statement that changes something, and says so to those who watch.
    async fn change(&self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        let rows = self.connection.query(statement, values).await?;
        self.changes.send_modify(|changes| *changes += 1);
        Ok(rows)
    }

    /// Executes a statement that changes something under a lease, $1 and $2, with a note, $3 and $4.
    async fn change_held(
        &self,
        statement: &str,
        lease: &Lease,
        note: Option<&LogNote>,
    ) -> Result<(), StoreError> {
        let (name, epoch) = (&*lease.name, number(lease.epoch));
        let mut values: Vec<Value<'_>> = vec![(&name, Type::TEXT), (&epoch, Type::INT8)];
        if let Some(LogNote { key, value }) = note {
            values.extend([(key as _, Type::TEXT), (value as _, Type::BYTEA)]);
        }
        match self.change(statement, &values).await?.is_empty() {
            true => Err(StoreError::LeaseLost),
            false => Ok(()),
        }
    }
}

/// Makes the tables of a database, or takes them to the newest version.
async fn prepare(connection: &Connection) -> Result<(), StoreError> {
    let open = connection.open().await?;
    timeout(MIGRATION, schema::migrate(&open.client)).await.unwrap_or_else(|_| Err(silent()))
}

async fn check(client: &Client) -> Result<StoreCheck, StoreError> {
    let server = client.query_one("SELECT current_setting('server_version'), pg_is_in_recovery()", &[]);
    let server = server.await.map_err(failed)?;
    let version = schema::version(client).await?;
    let mut check = StoreCheck {
        server: server.get(0),
        is_read_only: server.get(1),
        schema: (version, schema::newest()),
        ..StoreCheck::default()
    };
    if version > 0 {
        let counts = "SELECT count(*), count(*) FILTER (WHERE until > now()),
            count(DISTINCT holder) FILTER (WHERE until > now())
            FROM ptc_leases WHERE starts_with(log, 'run/') AND holder <> ''";
        let counts = client.query_one(counts, &[]).await.map_err(failed)?;
        // Older tables lack some of these.
        let size = "SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::bigint
            FROM unnest(ARRAY['ptc_values', 'ptc_logs', 'ptc_leases', 'ptc_farm']) AS name";
        check.bytes = client.query_one(size, &[]).await.map_err(failed)?.get(0);
        (check.runs, check.held, check.nodes) = (counts.get(0), counts.get(1), counts.get(2));
    }
    Ok(check)
}

/// A value in a statement, with its type: a statement with types needs one round trip.
type Value<'v> = (&'v (dyn ToSql + Sync), Type);

/// A number of the database, which has no unsigned ones.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// A column that is never negative.
fn unsigned(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or_default()
}

/// The failure of a statement. What the database says is behind it, and has no password.
fn failed(error: tokio_postgres::Error) -> StoreError {
    match error.as_db_error() {
        Some(why) => unavailable(why.message()),
        None => match std::error::Error::source(&error) {
            Some(why) => unavailable(format_args!("{error}: {why}")),
            None => unavailable(error),
        },
    }
}

fn unavailable(why: impl fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("the state cannot be used: {why}"))
}

/// The failure of a database that accepts connections or statements and does not answer, or does not even accept them.
fn silent() -> StoreError {
    unavailable("the database does not answer")
}

#[async_trait::async_trait]
impl Store for PostgresStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let statement = "SELECT version, value FROM ptc_values WHERE key = $1 AND value IS NOT NULL";
        let rows = self.connection.query(statement, &[(&key, Type::TEXT)]).await?;
        Ok(rows.first().map(|row| Entry { version: unsigned(row, 0), value: row.get(1) }))
    }

    async fn put(&self, key: &str, expected: u64, value: Option<Vec<u8>>) -> Result<Option<u64>, StoreError> {
        const NOTIFY: &str = "SELECT version, pg_notify('ptc', '') FROM put";
        // A removed value leaves its version for a day, so that a write that arrives late does not bring it back.
        const OLD: &str = "DELETE FROM ptc_values WHERE removed < now() - interval '1 day'";
        let rows = match (expected, &value) {
            (0, _) => {
                let insert = format!(
                    "WITH put AS (INSERT INTO ptc_values AS old (key, version, value) VALUES ($1, 1, $2)
                    ON CONFLICT (key) DO UPDATE SET version = old.version + 1, value = excluded.value, removed = NULL
                    WHERE old.value IS NULL RETURNING version) {NOTIFY}"
                );
                self.change(&insert, &[(&key, Type::TEXT), (&value, Type::BYTEA)]).await?
            }
            (_, Some(value)) => {
                let update = format!(
                    "WITH put AS (UPDATE ptc_values SET version = version + 1, value = $2
                    WHERE key = $1 AND version = $3 AND value IS NOT NULL RETURNING version) {NOTIFY}"
                );
                let expected = number(expected);
                let values: [Value<'_>; 3] =
                    [(&key, Type::TEXT), (value, Type::BYTEA), (&expected, Type::INT8)];
                self.change(&update, &values).await?
            }
            (_, None) => {
                let remove = format!(
                    "WITH old AS ({OLD}), put AS (UPDATE ptc_values
                    SET version = version + 1, value = NULL, removed = now()
                    WHERE key = $1 AND version = $2 AND value IS NOT NULL RETURNING version) {NOTIFY}"
                );
                let expected = number(expected);
                self.change(&remove, &[(&key, Type::TEXT), (&expected, Type::INT8)]).await?
            }
        };
        Ok(rows.first().map(|row| unsigned(row, 0)))
    }

    async fn begin(
        &self,
        log: &str,
        holder: &str,
        time: Duration,
        records: Vec<Vec<u8>>,
    ) -> Result<Option<Lease>, StoreError> {
        let statement = format!("WITH held AS ({BEGIN}), added AS ({APPEND}) SELECT epoch FROM held");
        let (first, time) = (0_i64, milliseconds(time));
        let values: [Value<'_>; 5] = [
            (&log, Type::TEXT),
            (&first, Type::INT8),
            (&records, Type::BYTEA_ARRAY),
            (&holder, Type::TEXT),
            (&time, Type::INT8),
        ];
        let rows = self.change(&statement, &values).await?;
        Ok(rows.first().map(|row| Lease { name: log.into(), epoch: unsigned(row, 0) }))
    }

    async fn append(&self, lease: &Lease, at: u64, records: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let statement = format!(
            "WITH held AS (SELECT 1 FROM ptc_leases WHERE log = $1 AND epoch = $4 AND holder <> '' FOR UPDATE),
            added AS ({APPEND}) SELECT 1 FROM held"
        );
        let (at, epoch) = (number(at), number(lease.epoch));
        let values: [Value<'_>; 4] = [
            (&&*lease.name, Type::TEXT),
            (&at, Type::INT8),
            (&records, Type::BYTEA_ARRAY),
            (&epoch, Type::INT8),
        ];
        match self.change(&statement, &values).await?.is_empty() {
            true => Err(StoreError::LeaseLost),
            false => Ok(()),
        }
    }

    async fn read_from(&self, log: &str, first: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        let statement = "SELECT record FROM ptc_logs WHERE log = $1 AND number >= $2 ORDER BY number";
        let first = number(first);
        let rows = self.connection.query(statement, &[(&log, Type::TEXT), (&first, Type::INT8)]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn lease(&self, log: &str, holder: &str, time: Duration) -> Result<Option<Lease>, StoreError> {
        let time = milliseconds(time);
        let values: [Value<'_>; 3] = [(&log, Type::TEXT), (&holder, Type::TEXT), (&time, Type::INT8)];
        let rows = self.change(TAKE, &values).await?;
        Ok(rows.first().map(|row| Lease { name: log.into(), epoch: unsigned(row, 0) }))
    }

    async fn renew(&self, leases: &[Lease], time: Duration) -> Result<Vec<Lease>, StoreError> {
        let statement = "UPDATE ptc_leases AS lease SET until = now() + $3 * interval '1 millisecond'
            FROM unnest($1, $2) AS held (log, epoch) WHERE lease.log = held.log AND lease.epoch = held.epoch AND lease.holder <> ''
            RETURNING lease.log, lease.epoch";
        let names: Vec<&str> = leases.iter().map(|lease| &*lease.name).collect();
        let epochs: Vec<i64> = leases.iter().map(|lease| number(lease.epoch)).collect();
        let time = milliseconds(time);
        let values: [Value<'_>; 3] =
            [(&names, Type::TEXT_ARRAY), (&epochs, Type::INT8_ARRAY), (&time, Type::INT8)];
        let rows = self.connection.query(statement, &values).await?;
        let renewed: HashSet<(&str, u64)> = rows.iter().map(|row| (row.get(0), unsigned(row, 1))).collect();
        let is_lost = |lease: &&Lease| !renewed.contains(&(&*lease.name, lease.epoch));
        Ok(leases.iter().filter(is_lost).cloned().collect())
    }

    async fn note(&self, lease: &Lease, note: LogNote) -> Result<(), StoreError> {
        let statement = format!(
            "WITH held AS (SELECT 1 FROM ptc_leases WHERE log = $1 AND epoch = $2 AND holder <> '' FOR UPDATE),
            noted AS ({NOTE}) SELECT pg_notify('ptc', '') FROM held"
        );
        self.change_held(&statement, lease, Some(&note)).await
    }

    async fn remove(&self, lease: &Lease, note: Option<LogNote>) -> Result<(), StoreError> {
        let noted = note.as_ref().map_or_else(String::new, |_| format!(", noted AS ({NOTE})"));
        // Rows of logs that were removed long ago go with it.
        let statement = format!(
            "WITH held AS (
                UPDATE ptc_leases SET holder = '', until = now() + interval '1 day'
                WHERE log = $1 AND epoch = $2 AND holder <> '' RETURNING log),
            gone AS (DELETE FROM ptc_logs USING held WHERE ptc_logs.log = held.log),
            old AS (DELETE FROM ptc_leases WHERE holder = '' AND until <= now()){noted}
            SELECT pg_notify('ptc', '') FROM held"
        );
        self.change_held(&statement, lease, note.as_ref()).await
    }

    async fn list(&self, prefix: &str, first: &str) -> Result<Vec<(String, Entry)>, StoreError> {
        let statement = "SELECT key, version, value FROM ptc_values
            WHERE key >= $2 AND starts_with(key, $1) AND value IS NOT NULL ORDER BY key";
        let first = first.max(prefix);
        let rows = self.connection.query(statement, &[(&prefix, Type::TEXT), (&first, Type::TEXT)]).await?;
        let entry = |row: &Row| (row.get(0), Entry { version: unsigned(row, 1), value: row.get(2) });
        Ok(rows.iter().map(entry).collect())
    }

    async fn logs(&self, prefix: &str) -> Result<Vec<LogName>, StoreError> {
        let statement = "SELECT log, CASE WHEN until > now() THEN holder END FROM ptc_leases
            WHERE log >= $1 AND starts_with(log, $1) AND holder <> '' ORDER BY log";
        let rows = self.connection.query(statement, &[(&prefix, Type::TEXT)]).await?;
        Ok(rows.iter().map(|row| LogName { name: row.get(0), holder: row.get(1) }).collect())
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn send(&self, message: &str) -> Result<(), StoreError> {
        let parts = messages::parts(message);
        self.connection.query(messages::SEND, &[(&parts, Type::TEXT_ARRAY)]).await.map(drop)
    }

    async fn messages(&self) -> Result<broadcast::Receiver<Arc<str>>, StoreError> {
        let received = self.messages.subscribe();
        self.connection.open().await?;
        Ok(received)
    }

    async fn lock(&self, name: &str) -> Result<StoreLock, StoreError> {
        // The database's lock belongs to the connection, so this process needs one of its own.
        let here = self.locks.lock(name).await;
        let statement = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))";
        loop {
            let (taken, connection) = self.connection.query_with(statement, &[(&name, Type::TEXT)]).await?;
            if taken.first().is_some_and(|row| row.get(0)) {
                let held = HeldLock { connection, name: name.to_owned(), here: Some(here) };
                return Ok(StoreLock::new(held));
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }
}

/// A lock of the database, which is released when this is dropped. A connection that is lost releases it, too.
struct HeldLock {
    connection: Arc<OpenConnection>,
    name: String,
    /// Released after that of the database.
    here: Option<OwnedMutexGuard<()>>,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let (connection, name) = (self.connection.clone(), std::mem::take(&mut self.name));
        let here = self.here.take();
        tasks::spawn(TaskOwner::Process, async move {
            let statement = "SELECT pg_advisory_unlock(hashtextextended($1, 0))";
            // If it fails, the connection is lost, and with it the lock.
            let until = Instant::now() + PATIENCE;
            let _ = connection.query(statement, &[(&name, Type::TEXT)], until).await;
            drop(here);
        });
    }
}

/// What [`PostgresStore::check`] finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// Version of the database.
    pub server: String,
    /// The database is a standby, which takes no writes.
    pub is_read_only: bool,
    /// Version of the tables, and the one that this program makes.
    pub schema: (i32, i32),
    /// Runs that have not ended.
    pub runs: i64,
    /// Those that a node executes.
    pub held: i64,
    /// Nodes that execute runs.
    pub nodes: i64,
    /// Size of the tables.
    pub bytes: i64,
}

#[cfg(test)]
mod tests;
