//! Manages the store's connection to PostgreSQL: executes statements, each within a bounded time, and connects again
//! after a loss. All operations share it: each is one statement, and statements that are under way together are
//! pipelined.

use super::connecting::{Connector, OpenConnection};
use super::{StoreError, Value, silent, unavailable};
use crate::sync::Locked;
use crate::tasks::{self, TaskOwner};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, broadcast, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::{Config, Row};

/// Longest time of an operation, a new connection included. A database that does not answer counts as away.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a database that did not answer is not asked again, so that those who wait do not wait one after the other.
const REST: Duration = Duration::from_secs(2);

/// The connection, made again after it was lost.
pub(super) struct Connection {
    connector: Arc<Connector>,
    present: Arc<Mutex<Option<Arc<OpenConnection>>>>,
    rest: Arc<Rest>,
}

/// The time during which a database that did not answer is left alone.
#[derive(Default)]
struct Rest(std::sync::Mutex<Option<Instant>>);

impl Rest {
    fn begin(&self) {
        *self.0.locked() = Some(Instant::now() + REST);
    }

    fn check(&self) -> Result<(), StoreError> {
        match self.0.locked().is_some_and(|until| Instant::now() < until) {
            true => Err(silent()),
            false => Ok(()),
        }
    }
}

/// The password in an address of a database.
#[must_use]
pub fn password_in(url: &str) -> Option<String> {
    let config: Config = url.parse().ok()?;
    Some(String::from_utf8_lossy(config.get_password()?).into_owned())
}

impl Connection {
    /// A connection to this address, which is made when it is needed.
    pub(super) fn new(
        url: &str,
        changes: watch::Sender<u64>,
        messages: broadcast::Sender<Arc<str>>,
    ) -> Result<Connection, StoreError> {
        let connector = Arc::new(Connector::new(url, changes, messages)?);
        Ok(Connection { connector, present: Arc::default(), rest: Arc::default() })
    }

    /// Executes one statement.
    pub(super) async fn query(&self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        self.query_with(statement, values).await.map(|(rows, _)| rows)
    }

    /// Executes one statement, and says on which connection.
    pub(super) async fn query_with(
        &self,
        statement: &str,
        values: &[Value<'_>],
    ) -> Result<(Vec<Row>, Arc<OpenConnection>), StoreError> {
        self.rest.check()?;
        let until = Instant::now() + PATIENCE;
        let open = timeout_at(until, self.open()).await.unwrap_or_else(|_| Err(silent()))?;
        match open.query(statement, values, until).await {
            Some(done) => Ok((done?, open)),
            None => {
                self.rest.begin();
                Err(silent())
            }
        }
    }

    /// The present connection, or a new one.
    pub(super) async fn open(&self) -> Result<Arc<OpenConnection>, StoreError> {
        timeout(PATIENCE, self.present_or_new()).await.unwrap_or_else(|_| Err(silent()))
    }

    async fn present_or_new(&self) -> Result<Arc<OpenConnection>, StoreError> {
        let mut present = self.present.clone().lock_owned().await;
        if let Some(open) = present.as_ref().filter(|open| !open.client.is_closed()) {
            return Ok(open.clone());
        }
        // An attempt that others have waited for may just have failed.
        self.rest.check()?;
        let (connector, rest) = (self.connector.clone(), self.rest.clone());
        // The attempt goes on without those that have no more time for it: otherwise impatient ones would begin it anew
        // again and again, and never reach the second server of an address.
        let attempt = tasks::spawn(TaskOwner::Process, async move {
            match connector.connect().await {
                Ok(open) => Ok(present.insert(Arc::new(open)).clone()),
                Err(none) => {
                    if none.was_silent {
                        rest.begin();
                    }
                    Err(none.error)
                }
            }
        });
        attempt.await.unwrap_or_else(|_| Err(unavailable("this process ends")))
    }
}
