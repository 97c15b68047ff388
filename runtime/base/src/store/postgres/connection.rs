//! Manages the store's connection to PostgreSQL: executes statements, receives notifications, and connects again after
//! a loss. All operations share it: each is one statement, and statements that are under way together are pipelined.

use super::messages::{self, Assembly};
use super::{StoreError, Value, failed, unavailable};
use crate::net::TlsOptions;
use crate::sync::Locked;
use crate::tasks::{self, TaskOwner};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, broadcast, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_postgres::{AsyncMessage, Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Channel of the notifications about changed values.
pub(super) const CHANNEL: &str = "ptc";

/// How long a connection may take, if the address does not say.
const CONNECT: Duration = Duration::from_secs(5);

/// Longest time of an operation. A database that does not answer counts as away.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a database that did not answer is not asked again, so that those who wait do not wait one after the other.
const REST: Duration = Duration::from_secs(2);

/// Settings of a connection: the server gives up before this process does, and a commit is on the disk.
const SETTINGS: &str = "SET statement_timeout = '8s'; SET lock_timeout = '5s'; SET synchronous_commit = on";

/// The connection, made again after it was lost.
pub(super) struct Connection {
    config: Config,
    tls: MakeRustlsConnect,
    open: Mutex<Option<Open>>,
    rests_until: std::sync::Mutex<Option<Instant>>,
    changes: watch::Sender<u64>,
    messages: broadcast::Sender<Arc<str>>,
}

/// An open connection. Dropping it ends the connection, and statements that are under way fail.
struct Open {
    client: Arc<Client>,
    task: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
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
        // The message of the parser may quote parts of the address, which has a password.
        let mut config: Config = url
            .parse()
            .map_err(|_| unavailable("its address cannot be read: postgres://USER@HOST/DATABASE"))?;
        if config.get_application_name().is_none() {
            config.application_name("ptc");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let mut tls = TlsOptions::default().config().map_err(unavailable)?;
        // The server refuses names of HTTP versions.
        tls.alpn_protocols.clear();
        let tls = MakeRustlsConnect::new(tls);
        config.tcp_user_timeout(PATIENCE);
        let (open, rests_until) = Default::default();
        Ok(Connection { config, tls, open, rests_until, changes, messages })
    }

    /// Executes one statement.
    pub(super) async fn query(&self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        if self.rests_until.locked().is_some_and(|until| Instant::now() < until) {
            return Err(unavailable("the database does not answer"));
        }
        let work = async {
            let client = self.client().await?;
            client.query_typed(statement, values).await.map_err(failed)
        };
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(done) => done,
            Err(_) => {
                *self.rests_until.locked() = Some(Instant::now() + REST);
                self.open.lock().await.take();
                Err(unavailable("the database does not answer"))
            }
        }
    }

    /// The present connection, or a new one.
    pub(super) async fn client(&self) -> Result<Arc<Client>, StoreError> {
        let mut present = self.open.lock().await;
        if let Some(open) = present.as_ref().filter(|open| !open.client.is_closed()) {
            return Ok(open.client.clone());
        }
        let open = self.connect().await?;
        let client = open.client.clone();
        *present = Some(open);
        Ok(client)
    }

    async fn connect(&self) -> Result<Open, StoreError> {
        let (client, mut connection) = self.config.connect(self.tls.clone()).await.map_err(failed)?;
        let (changes, messages) = (self.changes.clone(), self.messages.clone());
        let task = tasks::spawn(TaskOwner::Process, async move {
            // Dropping the connection makes every statement under way fail.
            let mut assembly = Assembly::default();
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    AsyncMessage::Notification(part) if part.channel() == messages::CHANNEL => {
                        if let Some(message) = assembly.add(part.process_id(), part.payload()) {
                            // Without a receiver there is nothing to do.
                            let _ = messages.send(message.into());
                        }
                    }
                    AsyncMessage::Notification(_) => changes.send_modify(|changes| *changes += 1),
                    _ => {}
                }
            }
        });
        let open = Open { client: Arc::new(client), task: task.abort_handle() };
        open.client
            .batch_execute(&format!("{SETTINGS}; LISTEN {CHANNEL}; LISTEN {}", messages::CHANNEL))
            .await
            .map_err(failed)?;
        Ok(open)
    }
}
